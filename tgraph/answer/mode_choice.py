"""Choosing a mode: by the form of a question, by the embedded default or by a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import BaseModel
from pyoxigraph import NamedNode

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.answer.model import ModelStep, asked
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.labels import labels_of
from tgraph.retrieve.modes.base import Form
from tgraph.retrieve.search.names import is_name
from tgraph.retrieve.text.question_form import form_of
from tgraph.version import __version__

_WORD = re.compile(r"\w")
_ASKER = re.compile(r"I(?:['’]\w+)?")
_NAME = re.compile(r"(?<![.?!]\s)\b[^\W\d_a-z][\w.’'-]*(?:\s+[^\W\d_a-z][\w.’'-]*)*")


@dataclass(frozen=True, slots=True)
class ModeReason:
    """The form of a question, and how that was told; ``dropped`` counts what went wrong."""

    form: Form
    reason: str
    dropped: Mapping[str, int] = field(default_factory=dict)


class Chooser(Step, Protocol):
    """Tells the form of a question."""

    def choose(self, question: Question, context: Context, sink: CallSink) -> ModeReason:
        """The same question over the same knowledge has the same form."""


class EmbeddedChooser:
    """By how the question is built, and by the names in it."""

    agent = Agent("method", "embedded-mode-choice", __version__)

    def choose(self, question: Question, context: Context, sink: CallSink = no_sink) -> ModeReason:
        """As ``Chooser.choose``; nothing is called."""
        found = form_of(question.text, _names(question, context))
        return ModeReason(found.form, found.reason)


def _names(question: Question, context: Context) -> list[str]:
    """Names of the graph that it contains, however they are written in it, and what else is
    written as a name; a name within another counts once."""
    concepts = EmbeddedConcepts().find(question, context, no_sink)
    known = [concept for concept in concepts if _is_known(concept, context)]
    written = [
        " ".join(found.group().split())
        for found in _NAME.finditer(question.text)
        if _WORD.search(question.text[: found.start()])  # the first word is written so anyhow
        and not _ASKER.fullmatch(found.group())
    ]
    names: list[str] = []
    for name in (*known, *written):
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in names):
            names.append(name)
    return names


def _is_known(concept: str, context: Context) -> bool:
    """Whether an entity is called so whose own label is written as a name."""
    entities = [NamedNode(iri) for iri in match_names(concept, context.graph)]
    return any(map(is_name, labels_of(context.graph, entities).values()))


class _ChoiceReply(BaseModel):
    form: Form
    reason: str = ""


class ModelChooser(ModelStep):
    """The model tells; where its reply can't be used, or it can't be reached, the embedded way."""

    name = "choose_mode"

    def choose(self, question: Question, context: Context, sink: CallSink) -> ModeReason:
        """As ``Chooser.choose``."""
        try:
            reply = self.ask(asked(question), _ChoiceReply, sink).value
        except EndpointError:
            why = "mode choice without the model, which can't be reached"
        except ModelError:
            why = "mode choice without the model, whose reply can't be used"
        else:
            reason = " ".join(reply.reason.split())[:300].rstrip(".")
            return ModeReason(reply.form, reason or "the model gave no reason")
        return replace(EmbeddedChooser().choose(question, context), dropped={why: 1})
