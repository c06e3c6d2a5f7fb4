"""What a DRIFT search came to: candidates, answers and points, and how they are put on record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tgraph import vocabulary as v
from tgraph.answer.drift import Explorer, Point, Response, Told
from tgraph.model import Candidate, Edge, Item, Rejected, Retrieval, Selected, Selection
from tgraph.record import drift as record_of
from tgraph.record.drift import Recorded, RecordedPoint
from tgraph.record.session import SessionRecord
from tgraph.retrieve.actions import Action, ActionGraph
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.nearest import NearReport

UNUSED = "cited by no answer on the way"
UNHELPFUL = "it does not help to answer"
REPEATED = "said by another point"
BEHIND_OTHERS = "none of the points that cite it was selected"


@dataclass(slots=True)
class Done:
    """What has been done about an action: what was retrieved and shown for it, and what it said."""

    step: str
    retrieved: tuple[Candidate, ...] = ()
    selected: tuple[Selected, ...] = ()
    reports: tuple[NearReport, ...] = ()
    response: Response | None = None

    @property
    def shown(self) -> list[str]:
        """What was read for it, by IRI."""
        return [
            *(each.candidate.item.iri for each in self.reports),
            *(each.item.iri for each in self.selected),
        ]


@dataclass(slots=True)
class Found:
    """What a search has come to so far.

    ``candidates`` are ranked in the order in which the tree came to them; ``reasons`` say why one
    was not read; ``edges`` are all edges that were retrieved.
    """

    done: dict[int, Done] = field(default_factory=dict)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            iri = candidate.item.iri
            known = self.candidates.get(iri)
            rank = known.rank if known else len(self.candidates) + 1
            score = max(candidate.score, known.score if known else 0.0)
            self.candidates[iri] = replace(known or candidate, rank=rank, score=score)
            if isinstance(candidate.item, Edge):
                self.edges.setdefault(iri)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def response(self, number: int) -> Response:
        return self.done[number].response or Response()

    @property
    def answered(self) -> list[int]:
        """The actions that have said something, if only that they failed."""
        return sorted(n for n, done in self.done.items() if done.response is not None)

    @property
    def retrieval(self) -> Retrieval:
        candidates = tuple(self.candidates.values())
        among = sum(isinstance(c.item, Edge) for c in candidates)
        return Retrieval(
            candidates,
            total=len(self.edges),
            items=len(candidates) - among,
            cut=tuple(self.edges) if len(self.edges) > among else (),
            dropped=self.dropped,
        )

    def rank(self, iri: str) -> int:
        return self.candidates[iri].rank


@dataclass(frozen=True, slots=True)
class Made:
    """A point as an item of the session, the action that made it, and what it cites, by IRI."""

    item: Candidate
    action: int
    cites: tuple[str, ...]


def weighed(
    found: Found,
    graph: ActionGraph,
    explorer: Explorer,
    question: Question,
    context: Context,
    uuid: str,
) -> list[Made]:
    """The points of all answers in their order, scored for the question as a whole."""
    told = [Told(graph[n].query, found.response(n)) for n in found.answered]
    points = explorer.weigh(question, told, context)
    return [
        Made(
            _item(graph[number], index, point, uuid),
            number,
            tuple(candidate.item.iri for candidate in point.cites),
        )
        for number, own in zip(found.answered, points, strict=True)
        for index, point in enumerate(own)
    ]


def _item(action: Action, index: int, point: Point, uuid: str) -> Candidate:
    iri = v.session_part_iri("point", uuid, action.number, index)
    what = "the question" if action.depth == 0 else f"“{action.query}”"
    how = "from reports" if action.kind == "fold" else "from a local search"
    why = f"it answers {what} {how}"
    item = Item("point", iri, action.query, point.text)
    return Candidate(item, 0, point.score, evidence=point.evidence, reasons=(why,))


def select(found: Found, points: Sequence[Made]) -> Selection:
    """The points, best first, each statement once, and the candidates that no selected point
    cites."""
    ranked = sorted(points, key=lambda made: -made.item.score)
    selected: list[Selected] = []
    rejected: list[Rejected] = []
    said: set[str] = set()
    used: set[str] = set()
    for made in ranked:
        wording = v.normalise_name(made.item.item.text)
        if made.item.score <= 0 or wording in said:
            reason = REPEATED if wording in said else UNHELPFUL
            rejected.append(Rejected(made.item, reason))
            continue
        said.add(wording)
        used.update(made.cites)
        candidate = replace(made.item, rank=len(selected) + 1)
        why = f"Chosen because {' and '.join(candidate.reasons)}."
        selected.append(Selected(len(selected), candidate, why, candidate.score))
    cited = {iri for made in points for iri in made.cites}
    rejected += [
        Rejected(candidate, BEHIND_OTHERS if iri in cited else found.reasons.get(iri, UNUSED))
        for iri, candidate in found.candidates.items()
        if iri not in used
    ]
    return Selection(tuple(selected), tuple(rejected))


def write(record: SessionRecord, graph: ActionGraph, found: Found, points: Sequence[Made]) -> str:
    """Put the tree and all that it retrieved on record; the IRI of the retrieval."""
    for reason, count in graph.dropped.items():
        found.drop(reason, count)
    record_of.actions(record, [_recorded(action, graph, found, points) for action in graph])
    steps = {number: done.step for number, done in found.done.items()}
    record_of.points(
        record,
        [
            RecordedPoint(made.item, steps[made.action], tuple(map(found.rank, made.cites)))
            for made in points
        ],
    )
    return record.retrieval(found.retrieval, found.origins)


def _recorded(action: Action, graph: ActionGraph, found: Found, points: Sequence[Made]) -> Recorded:
    done = found.done.get(action.number, Done(""))
    shown = set(done.shown)
    return Recorded(
        action,
        tuple(graph.parents(action.number)),
        done.step,
        tuple(found.rank(candidate.item.iri) for candidate in done.retrieved),
        tuple(sorted(found.rank(iri) for iri in shown)),
        done.response,
        tuple(made.item.item.iri for made in points if made.action == action.number),
    )
