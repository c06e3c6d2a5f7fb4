"""Choosing a mode by question form, with the embedded default or a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import BaseModel
from pyoxigraph import NamedNode

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.answer.model import ModelStep, question_values
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.labels import labels_of
from tgraph.retrieve.modes.base import Form
from tgraph.retrieve.modes.bm25 import BM25
from tgraph.retrieve.reasons import THIRD_WORDING, explain
from tgraph.retrieve.search.names import is_name
from tgraph.retrieve.text.document_questions import subject_for_documents
from tgraph.retrieve.text.question_form import form_of
from tgraph.version import __version__

_WORD = re.compile(r"\w")
_ASKER = re.compile(r"I(?:['’]\w+)?")
_NAME = re.compile(r"(?<![.?!]\s)\b[^\W\d_a-z][\w.’'-]*(?:\s+[^\W\d_a-z][\w.’'-]*)*")


@dataclass(frozen=True, slots=True)
class ModeReason:
    """The question form and its reason; ``dropped`` counts failures.

    ``mode`` is set where one mode alone, without a model, answers such a question."""

    form: Form
    reason: str
    dropped: Mapping[str, int] = field(default_factory=dict)
    mode: str = ""


class Chooser(Step, Protocol):
    """A step that determines a question's form."""

    def choose(self, question: Question, context: Context, sink: CallSink) -> ModeReason:
        """Return the question's form; equal questions over equal knowledge have equal forms."""


class EmbeddedChooser:
    """Chooses by sentence structure and names in the question."""

    agent = Agent("method", "embedded-mode-choice", __version__)

    def choose(self, question: Question, context: Context, sink: CallSink = no_sink) -> ModeReason:
        """Return the question's form as ``Chooser.choose`` does, without a model call."""
        subject = subject_for_documents(question.text)
        if subject and context.wording >= THIRD_WORDING:
            reason = explain("form", predicate=f"asks what each document says on {subject}")
            return ModeReason("listed", reason, mode=BM25.name)
        form = form_of(question.text, _find_names(question, context))
        return ModeReason(form.form, form.reason)


def _find_names(question: Question, context: Context) -> list[str]:
    """Return graph names contained in the question, in any spelling, plus other words written
    as names.

    A name within another name counts once."""
    concepts = EmbeddedConcepts().find(question, context, no_sink)
    graph_names = [concept for concept in concepts if _is_known(concept, context)]
    written = [
        " ".join(match.group().split())
        for match in _NAME.finditer(question.text)
        if _WORD.search(question.text[: match.start()])  # the first word is written so anyhow
        and not _ASKER.fullmatch(match.group())
    ]
    names: list[str] = []
    for name in (*graph_names, *written):
        folded = name.casefold()
        if not any(
            folded in earlier_name.casefold() or earlier_name.casefold() in folded
            for earlier_name in names
        ):
            names.append(name)
    return names


def _is_known(concept: str, context: Context) -> bool:
    """Return whether the concept matches an entity whose label is written as a proper name."""
    entities = [NamedNode(iri) for iri in match_names(concept, context.graph)]
    return any(map(is_name, labels_of(context.graph, entities).values()))


class _ChoiceReply(BaseModel):
    form: Form
    reason: str = ""


class ModelChooser(ModelStep):
    """Chooses by a language model; falls back to the embedded method if the model is
    unreachable or its reply unusable."""

    name = "choose_mode"

    def choose(self, question: Question, context: Context, sink: CallSink) -> ModeReason:
        """As ``Chooser.choose``."""
        try:
            reply = self.ask(question_values(question), _ChoiceReply, sink).value
        except EndpointError:
            why = "mode choice without the model, which can't be reached"
        except ModelError:
            why = "mode choice without the model, whose reply can't be used"
        else:
            reason = " ".join(reply.reason.split())[:300].rstrip(".")
            return ModeReason(reply.form, reason or "the model gave no reason")
        return replace(EmbeddedChooser().choose(question, context), dropped={why: 1})
