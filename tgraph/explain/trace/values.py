"""Trace values: a session record as a tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tgraph.errors import UsageError
from tgraph.explain.trace.judgements import RecordedInfluence, RecordedVerdict
from tgraph.model import EntityMatch, Quotation
from tgraph.rendering import (
    brief_repr,
    describe_confidence,
    describe_short_confidence,
    render_value,
)
from tgraph.store.files import write_private


@dataclass(frozen=True, slots=True)
class TraceQuotation(Quotation):
    """A document place: ``quote`` is ``text[start:end]`` of the page (or document).

    ``edge_selection`` is the selection supporting a citation, blank for evidence of an edge.
    ``via`` leads from the selected item, such as a report, down to the place; ``way`` describes
    the same path by labels. ``graph`` and ``sources`` are the statement's origin according to
    an imported graph."""

    edge_selection: str = ""
    via: tuple[str, ...] = ()
    way: tuple[str, ...] = ()
    graph: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceItem:
    """An edge or other item: selected with reasoning, or an unselected candidate with rejection
    reason.

    ``label`` is the item as text; edges also have three term labels. ``bridge`` is a place in
    another document leading to the item: both answer the question together. ``authority`` is
    the weight of the item's sources."""

    iri: str
    kind: str
    item: str
    label: str
    score: float
    reasoning: str
    rank: int
    hop: int
    tokens: int
    subject: str = ""
    subject_label: str = ""
    predicate: str = ""
    predicate_label: str = ""
    object: str = ""
    object_label: str = ""
    evidence: tuple[TraceQuotation, ...] = ()
    bridge: TraceQuotation | None = None
    authority: float = 1.0

    @property
    def edge(self) -> str | None:
        """Edge IRI; None for non-edge items."""
        return self.item if self.kind == "edge" else None

    @property
    def words(self) -> str:
        """Edge labels joined by dashes; for other items, the item label."""
        if self.kind != "edge":
            return self.label
        labels = (self.subject_label, self.predicate_label, self.object_label)
        return " — ".join(" ".join(label.split()) for label in labels)


@dataclass(frozen=True, slots=True)
class TraceNote:
    """A note beside the answer, such as documents disagreeing, with supporting places."""

    iri: str
    text: str
    places: tuple[TraceQuotation, ...]


@dataclass(frozen=True, slots=True)
class TraceSentence:
    """An answer sentence with supporting selections and citations.

    ``verdict`` belongs to the latest verification, ``lost_at`` is the step where support was
    lost; both are blank if absent."""

    iri: str
    text: str
    edge_selections: tuple[str, ...]
    citations: tuple[TraceQuotation, ...]
    verdict: str = ""
    lost_at: str = ""


@dataclass(frozen=True, slots=True)
class TraceStepAnswer:
    """A separately answered question step: question, answer, and supporting place or None.

    The answer is blank if missing, or if the answer is the whole sentence."""

    number: int
    question: str
    answer: str
    place: TraceQuotation | None

    @property
    def words(self) -> str:
        """One text line describing the step."""
        answer_text = self.answer or (f"“{self.place.quote}”" if self.place else "no answer")
        where = f" ({self.place.title})" if self.place else ""
        return f"{self.question} → {' '.join(answer_text.split())}{where}"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A session step with its agents.

    ``prompts`` are prompt names used in the step's calls, token fields are call totals."""

    iri: str
    kind: str
    label: str
    started: str
    ended: str
    agents: tuple[str, ...]
    prompts: tuple[str, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TracePrompt:
    """A session prompt, before placeholders are filled.

    ``hash`` is the SHA-256 of ``text``, which is blank if ``state`` says that the text was
    erased or is missing instead of kept."""

    iri: str
    name: str
    hash: str
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class TraceCall:
    """A recorded call to a language model or embedder.

    ``step`` is the IRI of the step containing the call, ``prompt`` the prompt name, ``content``
    the librarian's hash of request and reply; each is blank if absent."""

    iri: str
    label: str
    agent: str
    input_tokens: int
    output_tokens: int
    milliseconds: int
    error: str
    step: str = ""
    prompt: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class TraceRating:
    """A report rating made while descending levels: ``score`` ranges from 0 to 1, None if
    unrated."""

    report: str
    label: str
    level: int
    score: float | None
    relevant: bool
    reasoning: str


@dataclass(frozen=True, slots=True)
class TracePoint:
    """An intermediate statement toward the answer.

    ``cites`` lists source IRIs; ``rejected`` is the rejection reason, blank for used points."""

    iri: str
    text: str
    score: float
    cites: tuple[str, ...]
    rejected: str


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """A batch of reports read at once, by IRI, with resulting points.

    ``error`` explains an unreadable reply."""

    iri: str
    reports: tuple[str, ...]
    tokens: int
    points: tuple[TracePoint, ...]
    error: str
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TraceAction:
    """A question in the action tree: ``kind`` is question (the original), fold (of the primer)
    or follow-up.

    ``promise`` decided whether a follow-up was asked, ``reasoning`` explains the promise;
    ``score`` is the answer's self-assessment. ``status`` is answered, unanswered, failed or
    pruned, and ``reason`` names the limit or failure. ``retrieved`` and ``shown`` count
    candidates. ``proposed_again`` counts other answers proposing the same question."""

    number: int
    kind: str
    iri: str
    query: str
    depth: int
    status: str
    reason: str = ""
    promise: float | None = None
    reasoning: str = ""
    score: float | None = None
    retrieved: int = 0
    shown: int = 0
    proposed_again: int = 0
    points: tuple[TracePoint, ...] = ()
    children: tuple[TraceAction, ...] = ()


@dataclass(frozen=True, slots=True)
class Trace:
    """Complete record of one session.

    ``actions`` is the tree of a DRIFT search. ``questioned`` states since when and why the
    answer no longer stands; blank while it stands. ``influence`` is the latest influence
    analysis, or None. ``short`` is a short answer, ``short_confidence`` the probability that the
    short answer is right, ``confidence`` the probability that the documents answer the question
    (0 to 1), if recorded; ``verdict`` is answered, uncertain or no_evidence, blank in records of
    earlier releases; ``judged`` is what the latest verification says of the answer as a whole.
    ``as_of`` is the requested time, generation or session, blank for newest knowledge.
    ``published`` is the start time of the queried knowledge (xsd:dateTime).
    ``sparql`` is the query of a computed answer, ``written_query`` the same as a
    person or a model writes it."""

    explain_id: str
    explain_collection: str
    question: str
    mode: str
    status: str
    error: str
    started: str
    ended: str
    generation: int
    parameters: Mapping[str, str]
    usage: Mapping[str, int]
    concepts: tuple[str, ...]
    matches: tuple[EntityMatch, ...]
    edge_count: int
    item_count: int
    answer: str
    sentences: tuple[TraceSentence, ...]
    selected: tuple[TraceItem, ...]
    rejected: tuple[TraceItem, ...]
    steps: tuple[TraceStep, ...]
    calls: tuple[TraceCall, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    ratings: tuple[TraceRating, ...] = ()
    notes: tuple[TraceNote, ...] = ()
    batches: tuple[TraceBatch, ...] = ()
    actions: TraceAction | None = None
    keywords: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    choice: str = ""
    step_answers: tuple[TraceStepAnswer, ...] = ()
    questioned: str = ""
    influence: RecordedInfluence | None = None
    prompts: tuple[TracePrompt, ...] = ()
    short: str = ""
    confidence: float | None = None
    short_confidence: float | None = None
    verdict: str = ""
    judged: RecordedVerdict | None = None
    as_of: str = ""
    published: str = ""
    sparql: str = ""
    written_query: str = ""
    report: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def choice_text(self) -> str:
        """The automatically chosen mode and its reason; blank if chosen by the user."""
        return f"auto chose {self.mode} because {self.choice}" if self.choice else ""

    @property
    def introduction(self) -> str:
        """The words before the passages of an uncertain answer."""
        if self.verdict != "uncertain" or not self.sentences:
            return ""
        return self.answer.partition(self.sentences[0].text)[0].strip()

    @property
    def confidence_text(self) -> str:
        """The probabilities that the documents answer the question and that the short answer is
        right; blank without judgement."""
        sure = describe_confidence(self.confidence)
        if not self.short:
            return sure
        short_sure = describe_short_confidence(self.short_confidence)
        return "; ".join(filter(None, (sure, f"“{self.short}”: {short_sure}")))

    def name_scores(self, items: Iterable[TraceItem]) -> str:
        """Return what the scores of selected or rejected items are, such as ``retrieval score``."""
        names = ("point score" if i.kind == "point" else self._score_name(i) for i in items)
        return " or ".join(dict.fromkeys(names))

    def _score_name(self, item: TraceItem) -> str:
        if any(item is candidate for candidate in self.rejected):
            return "retrieval score"
        agents = {step.kind: step.agents[0] for step in self.steps if step.agents}
        if not agents.get("EdgeSelecting", "embedded").startswith("embedded"):
            return "model score"
        writer = self.parameters.get("writer") or agents.get("Synthesising", "embedded")
        is_read = "Reading" in agents and writer.startswith("embedded")
        return "reader probability" if is_read else "retrieval score"

    @property
    def filters_text(self) -> str:
        """Question filters as text; blank without filters."""
        filter_values = {
            n.removeprefix("filter-"): x for n, x in self.parameters.items() if "filter-" in n
        }
        return "; ".join(f"{name} {_format_list(text)}" for name, text in filter_values.items())

    @property
    def concepts_text(self) -> str:
        """Question concepts as text, grouped by level if levels exist."""
        if not self.keywords:
            return ", ".join(self.concepts)
        levels = ((level, ", ".join(words)) for level, words in self.keywords.items())
        return "; ".join(f"{level} level: {words}" for level, words in levels)

    def to_html(self, path: str | Path) -> None:
        """Write the session report: a self-contained HTML file readable only by its owner."""
        if self.report is None:
            raise UsageError("This trace was not read from a graph.", "Use `kg.trace(ID)`.")
        write_private(Path(path), self.report().encode())

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")

    def as_dict(self) -> dict[str, Any]:
        """Return all values as plain data for JSON."""
        values = asdict(replace(self, report=None))
        del values["report"]
        return values


def _format_list(text: str) -> str:
    """Return a recorded list as text, or any other value unchanged."""
    return ", ".join(json.loads(text)) if text.startswith("[") else text
