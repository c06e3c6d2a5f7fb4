"""Choosing a mode: whether a question is about one thing, several linked things, or everything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import BaseModel

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.answer.model import ModelStep, asked
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink
from tgraph.resources import word_set
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.modes.base import Breadth
from tgraph.retrieve.text.lexical import terms, words
from tgraph.retrieve.text.question_analysis import descriptions, is_broad
from tgraph.version import __version__

_WHOLE = word_set("questions", "overview")
_COMPARING = word_set("questions", "comparing")
_LISTED = 3
_WORD = re.compile(r"\w")
_NAME = re.compile(r"(?<![.?!]\s)\b[^\W\d_a-z][\w.’'-]*(?:\s+[^\W\d_a-z][\w.’'-]*)*")


@dataclass(frozen=True, slots=True)
class QuestionBreadth:
    """What a question is about, and how that was told; ``dropped`` counts what went wrong."""

    breadth: Breadth
    reason: str
    dropped: Mapping[str, int] = field(default_factory=dict)


class Chooser(Step, Protocol):
    """Tells what a question is about."""

    def choose(self, question: Question, context: Context, sink: CallSink) -> QuestionBreadth:
        """The same question over the same knowledge is about the same."""


class EmbeddedChooser:
    """By the names that the question contains, its words of summary and comparison, and whether it
    describes what it is about instead of naming it."""

    agent = Agent("method", "embedded-mode-choice", __version__)

    def choose(
        self, question: Question, context: Context, sink: CallSink = no_sink
    ) -> QuestionBreadth:
        """As ``Chooser.choose``; nothing is called."""
        names = _names(question, context)
        said = words(question.text)
        if is_broad(question) and terms(question.text):
            return QuestionBreadth("whole", "it asks about the documents as a whole")
        if not names and (whole := [word for word in said if word in _WHOLE]):
            return QuestionBreadth("whole", f"it names nothing and speaks of “{whole[0]}”")
        if len(names) > 1:
            return QuestionBreadth("several", f"it names {_enumerated(names)}")
        if compared := [word for word in said if word in _COMPARING]:
            return QuestionBreadth(
                "several", f"it asks what things have to do with each other ({compared[0]})"
            )
        if described := descriptions(question.text):
            text = described[0].text.rstrip(" ?.!")
            return QuestionBreadth("several", f"it describes “{text}” instead of naming it")
        if names:
            return QuestionBreadth("one", f"it names one thing, {names[0]}")
        return QuestionBreadth("one", "it names nothing that is known and asks for one thing")


def _enumerated(names: Sequence[str]) -> str:
    last = f"{len(names) - _LISTED} more" if len(names) > _LISTED else names[-1]
    first = names[:_LISTED] if len(names) > _LISTED else names[:-1]
    return f"{', '.join(first)} and {last}"


def _names(question: Question, context: Context) -> list[str]:
    """Names of the graph that it contains, and what else is written as a name; a name within
    another counts once."""
    concepts = EmbeddedConcepts().find(question, context, no_sink)
    known = [concept for concept in concepts if match_names(concept, context.store)]
    written = [
        " ".join(found.group().split())
        for found in _NAME.finditer(question.text)
        if _WORD.search(question.text[: found.start()])  # the first word is written so anyhow
    ]
    names: list[str] = []
    for name in (*(k for k in known if not k.islower()), *written):
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in names):
            names.append(name)
    return names


class _ChoiceReply(BaseModel):
    about: Breadth
    reason: str = ""


class ModelChooser(ModelStep):
    """The model tells; where its reply can't be used, or it can't be reached, the embedded way."""

    name = "choose_mode"

    def choose(self, question: Question, context: Context, sink: CallSink) -> QuestionBreadth:
        """As ``Chooser.choose``."""
        try:
            reply = self.ask(asked(question), _ChoiceReply, sink).value
        except EndpointError:
            why = "mode choice without the model, which can't be reached"
        except ModelError:
            why = "mode choice without the model, whose reply can't be used"
        else:
            reason = " ".join(reply.reason.split())[:300].rstrip(".")
            return QuestionBreadth(reply.about, reason or "the model gave no reason")
        return replace(EmbeddedChooser().choose(question, context), dropped={why: 1})
