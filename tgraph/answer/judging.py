"""Judging answers: what a text states, and whether another text entails it.

The statements are what RAGChecker (Ru et al. 2024, arXiv:2408.08067) calls claims. Here they have
a name of their own: a ``Claim`` is what a chunk claims of an entity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tgraph.answer.base import Step
from tgraph.model import Prompt
from tgraph.models.base import CallSink

ENTAILMENT, NEUTRAL, CONTRADICTION = "Entailment", "Neutral", "Contradiction"
LABELS = (ENTAILMENT, NEUTRAL, CONTRADICTION)

Statement = tuple[str, ...]
"""Subject, predicate and object; or one part, a sentence as it stands."""


def spoken(statement: Statement) -> str:
    """The statement as a text."""
    return " ".join(part for part in statement if part)


@dataclass(frozen=True, slots=True)
class Stated:
    """What a text states, in its order; ``dropped`` counts what could not be read."""

    statements: tuple[Statement, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """A label of ``LABELS`` for each statement; ``dropped`` counts what could not be read."""

    labels: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class StatementExtractor(Step, Protocol):
    """Takes a text apart into statements."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def statements(self, question: str, text: str, sink: CallSink) -> Stated:
        """What the text, an answer to the question, states. ``ModelError`` where a reply can't be
        used."""


class EntailmentChecker(Step, Protocol):
    """Says of statements whether a reference entails or contradicts them."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def check(
        self, question: str, reference: str, statements: Sequence[Statement], sink: CallSink
    ) -> Checked:
        """A label for each statement, in their order. ``ModelError`` for an unusable reply."""
