"""Interfaces for the steps between question and answer: language-model and embedded variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tgraph.model import Agent, Evidence, Retrieval, Selected, Selection
from tgraph.models.base import CallSink, ChatRequest
from tgraph.retrieve.base import Context, Question


@dataclass(frozen=True, slots=True)
class Draft:
    """A sentence as written by the synthesiser: text plus supporting selections.

    ``evidence`` narrows a citation to some evidence of the items; empty ``evidence`` means all
    evidence in the prompt. ``lead`` is the separator before the sentence: a space, a new
    paragraph, a new list item; ``label`` is told before the sentence."""

    text: str
    selections: tuple[Selected, ...]
    evidence: tuple[str, ...] = ()
    lead: str = " "
    label: str = ""


@dataclass(slots=True)
class Notes:
    """Material omitted by a synthesiser, counted by reason; filled while drafts are read.

    ``nearest`` are the places nearest to an answer where no answer exists, best first;
    ``missing`` are unanswered question parts, in the words of the question; ``remarks`` are told
    beside the answer."""

    dropped: dict[str, int] = field(default_factory=dict)
    nearest: list[Evidence] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


class Step(Protocol):
    """A step on the way to an answer; the record names the step's agent."""

    @property
    def agent(self) -> Agent: ...


class ConceptFinder(Step, Protocol):
    """A step that finds the subject concepts of a question."""

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        """Return short noun phrases, most specific first; the question itself if no phrase is
        found."""


class Selector(Step, Protocol):
    """A step that selects relevant candidates, with a reason for each candidate.

    ``step`` is the class of the step's activity."""

    @property
    def step(self) -> str: ...

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """Return at most ``limit`` edges, best first; reject every other candidate with a
        reason."""


class Synthesiser(Step, Protocol):
    """A step composing answers from the selection alone."""

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """Yield answer sentences as they arrive; yield nothing for a selection without an
        answer.

        A synthesiser that may use its own knowledge can still answer, and marks such sentences."""


@dataclass(frozen=True, slots=True)
class WriterPrompt:
    """Selections shown to the answer writer, mapped by id and formatted as text lines.

    ``request`` is the chat request for a model; None where no model would be asked."""

    by_id: Mapping[str, Selected]
    text: str
    request: ChatRequest | None = None


@runtime_checkable
class PromptedSynthesiser(Protocol):
    """A synthesiser that asks a model."""

    def build_prompt(self, question: Question, selection: Selection, notes: Notes) -> WriterPrompt:
        """Return the prompt for the model; ``notes`` record selections exceeding the available
        room."""
