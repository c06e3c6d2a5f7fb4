"""DRIFT search's steps: expand the question, prime it with reports, answer what follows from that.

Each answer on the way is a list of points: statements with what proves them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tgraph.answer.base import Step
from tgraph.model import Candidate, CommunityReport, Evidence, Selected
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.nearest import NearReport


@dataclass(frozen=True, slots=True)
class Point:
    """A statement on the way to the answer: the candidates that it cites, and the places that prove
    it, each with the way from the cited item down to it.

    ``score`` says how well it answers the question as a whole, 0 to 1.
    """

    text: str
    cites: tuple[Candidate, ...]
    evidence: tuple[Evidence, ...]
    score: float = 0.0


def with_way(evidence: Evidence) -> Evidence:
    """The evidence with the way from a point down to it: the edge, entity or claim that it is for,
    where nothing else leads there."""
    if evidence.via or evidence.statement == evidence.chunk:
        return evidence
    return replace(evidence, via=(evidence.statement,))


@dataclass(frozen=True, slots=True)
class Response:
    """What an action answered: points, a score of its own (0 to 1), what should be asked next."""

    points: tuple[Point, ...] = ()
    score: float = 0.0
    follow_ups: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer of an action to ``query``."""

    query: str
    response: Response


class Explorer(Step, Protocol):
    """Does the steps that a model or an embedded method can do."""

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        """The question put as a hypothetical answer in the manner of the report. ``ModelError``
        where there is none."""

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        """The question answered from some reports."""

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        """The query answered from what a local search selected for it."""

    def weigh(
        self, question: Question, told: Sequence[Told], context: Context
    ) -> list[list[Point]]:
        """The points of each response with their scores for the question as a whole."""
