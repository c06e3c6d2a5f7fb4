"""Candidates of a question, and the candidates that are selected for its answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from tgraph.model.computed import WitnessRole
from tgraph.model.knowledge import Edge, Evidence, Item


@dataclass(frozen=True, slots=True)
class Candidate:
    """An item considered by retrieval: rank (from 1), score and, for edges, hops from a seed
    entity.

    ``tokens`` is the prompt cost, if the mode has a budget; ``bridge`` is the IRI of the
    evidence, in another document, that names an entity of the candidate, where both answer
    together; ``authority`` is the highest weight of the sources, 1 unless a person decided."""

    item: Edge | Item
    rank: int
    score: float
    hop: int = 0
    evidence: tuple[Evidence, ...] = ()
    reasons: tuple[str, ...] = ()
    tokens: int | None = None
    bridge: str = ""
    authority: float = 1.0

    @property
    def edge(self) -> Edge:
        """The edge; raises ``TypeError`` for other items."""
        if not isinstance(self.item, Edge):
            raise TypeError(f"{self.item.iri} is a {self.item.kind}, not an edge")
        return self.item


@dataclass(frozen=True, slots=True)
class EntityMatch:
    """An entity matched by a question concept; ``method`` is name, vector, edge or centre (of a
    community)."""

    entity: str
    label: str
    concept: str
    score: float
    method: str


@dataclass(frozen=True, slots=True)
class RivalAnswers:
    """Short answers of two documents to one question, where the one is about as likely as the
    other, each with the place where it stands.

    ``is_exact`` tells numbers, measures and dates, of which one at most is right; two names may
    both be."""

    answer: str
    place: Evidence
    other_answer: str
    other_place: Evidence
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the documents answer a question, judged from the sentences that answer best.

    ``confidence`` is the probability that they do (0 to 1), ``answer`` the likeliest answer in a
    few words and ``place`` where it stands; there are none where nothing was read. ``missing`` are
    the words of the question that nothing has that was read. ``confidence`` is None where an answer
    was found without a reader. ``short_confidence`` is the probability that ``answer`` is right,
    None where nobody judged that. ``rivals`` are answers of two documents that differ, at most one
    pair for each part of the question.
    """

    confidence: float | None
    answer: str = ""
    place: Evidence | None = None
    missing: tuple[str, ...] = ()
    short_confidence: float | None = None
    rivals: tuple[RivalAnswers, ...] = ()


@dataclass(frozen=True, slots=True)
class RankedOrder:
    """The end of a search's ranking, after the cut of a limit.

    ``limit`` is the name of the limit and ``cutoff`` its value, None where it is no number.
    ``items`` are IRIs after the cut, best first; ``total`` counts all things that were ranked, 0
    where that is not known. The rank of an item is its place after the cut, or its number in
    ``ranks``; ``scores`` are there where the limit is one of scores. ``kind`` says what the items
    are, ``about`` is the entity whose edges they are, ``query`` the question on the way to the
    answer that they were ranked for, empty where that is the question itself. ``reason`` says in
    words why an item was left out; ``tgraph.retrieve.orders`` has the names in braces.
    """

    kind: str
    limit: str
    cutoff: int | float | None
    items: tuple[str, ...]
    total: int
    reason: str
    ranks: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    about: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What a question retrieved: the candidates, best first, and how they were found.

    ``total`` counts the edges retrieved, ``items`` everything else; ``cut`` lists them all
    by IRI where a limit left some out of the candidates. ``dropped`` counts what was left out, by
    reason. ``judgement`` is there once the candidates were read. ``orders`` are what limits cut
    off.
    """

    candidates: tuple[Candidate, ...]
    total: int
    items: int = 0
    concepts: tuple[str, ...] = ()
    matches: tuple[EntityMatch, ...] = ()
    cut: tuple[str, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)
    judgement: Judgement | None = None
    orders: tuple[RankedOrder, ...] = field(default=(), metadata={"in_package": False})


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that a selector did not select, with the reason, such as ``over the edge limit``.

    ``SessionRecord.selection`` records the reason as ``tg:rejectionReason``."""

    candidate: Candidate
    reason: str


@dataclass(frozen=True, slots=True)
class Selected:
    """A selected edge or item with selection reasoning; ``index`` counts from 0.

    A witness of a computed result has a ``role``, and the numbers of the ``rows`` that it is a
    witness of."""

    index: int
    candidate: Candidate
    reasoning: str
    score: float
    role: WitnessRole | None = None
    rows: tuple[int, ...] = ()

    @property
    def item(self) -> Edge | Item:
        return self.candidate.item

    @property
    def edge(self) -> Edge:
        """The edge; raises ``TypeError`` for other items."""
        return self.candidate.edge


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """A separately asked part of a question: ``places`` contains answering places, best first.

    If no place answers, ``missing`` contains the part's words, and ``nearest`` the nearest
    places. ``label`` is told before the part's answer, ``remark`` beside all answers."""

    places: tuple[Evidence, ...] = ()
    missing: str = ""
    nearest: tuple[Evidence, ...] = ()
    label: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected and rejected candidates; ``unknown_ids`` counts ids invented by a model.

    ``judgement`` states whether the candidates answer the question, if read before selection;
    ``parts`` contains separately asked parts of the question."""

    selected: tuple[Selected, ...]
    rejected: tuple[Rejected, ...] = ()
    unknown_ids: int = 0
    malformed: int = 0
    judgement: Judgement | None = None
    parts: tuple[QuestionPart, ...] = ()

    def keep_selected(self, positions: Collection[int]) -> Selection:
        """Return the selection as if only the items at the positions had been selected."""
        kept = tuple(each for at, each in enumerate(self.selected) if at in positions)
        return replace(self, selected=kept)
