"""The steps between a question and its answer, each with a model's and an embedded way to do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tgraph.model import Agent, Evidence, Retrieval, Selected, Selection
from tgraph.models.base import CallSink, ChatRequest
from tgraph.retrieve.base import Context, Question


@dataclass(frozen=True, slots=True)
class Draft:
    """A sentence as a synthesiser wrote it: its text and what it says that it rests on.

    ``evidence`` narrows a citation to some of the items' evidence; empty means all that was shown.
    ``lead`` is what stands before the sentence: a space, a new paragraph, a new item of a list.
    """

    text: str
    selections: tuple[Selected, ...]
    evidence: tuple[str, ...] = ()
    lead: str = " "


@dataclass(slots=True)
class Notes:
    """What a synthesiser had to leave out, by reason; filled in while the drafts are read.

    ``nearest`` are places that come nearest to an answer where there is none, best first;
    ``missing`` are the parts of the question that nothing answers, in its words."""

    dropped: dict[str, int] = field(default_factory=dict)
    nearest: list[Evidence] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


class Step(Protocol):
    """What is done on the way to an answer; the record names who did it."""

    @property
    def agent(self) -> Agent: ...


class ConceptFinder(Step, Protocol):
    """Finds what a question is about."""

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        """Short noun phrases, the most specific first; the question itself where there are none."""


class Selector(Step, Protocol):
    """Chooses what matters, with a reason for each. ``step`` is the class of its activity."""

    @property
    def step(self) -> str: ...

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """At most ``limit`` edges, best first; every other candidate is rejected with a reason."""


class Synthesiser(Step, Protocol):
    """Composes the answer from the selection alone."""

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """The answer's sentences as they come; none where the selection has no answer, unless the
        synthesiser may use knowledge of its own, which it then marks as such."""


@dataclass(frozen=True, slots=True)
class WriterPrompt:
    """What of the selection is shown to who writes the answer, by its ids, and as one text with a
    line for each. ``request`` is what a model is asked; None where no model would be."""

    by_id: Mapping[str, Selected]
    text: str
    request: ChatRequest | None = None


@runtime_checkable
class PromptedSynthesiser(Protocol):
    """A synthesiser that asks a model."""

    def prompted(self, question: Question, selection: Selection, notes: Notes) -> WriterPrompt:
        """What it would ask; what there is no room for is in the notes."""
