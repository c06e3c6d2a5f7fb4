"""The values of a trace: a session's record as a tree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tgraph.errors import UsageError
from tgraph.explain.trace.judgements import RecordedInfluence
from tgraph.model import EntityMatch, Quotation
from tgraph.rendering import brief, render
from tgraph.store.files import write_private


@dataclass(frozen=True, slots=True)
class TraceQuotation(Quotation):
    """A place in a document: ``quote`` is ``text[start:end]`` of the page (or the document).

    ``edge_selection`` is what a citation rests on; it is empty for the evidence of an edge. ``via``
    leads from what was selected, such as a report, down to the place; ``way`` is the same in words.
    ``graph`` and ``sources`` are where an imported graph has the statement from, by its own word.
    """

    edge_selection: str = ""
    via: tuple[str, ...] = ()
    way: tuple[str, ...] = ()
    graph: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceItem:
    """An edge or another item: selected, with the reasoning, or a candidate with why it was not.

    ``label`` is the item in words; of an edge there are its three terms as well. ``bridge`` is the
    place, in another document, that leads to it: the two answer together. ``authority`` is what
    its sources were weighed by.
    """

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
        """The IRI of the edge, None where the item is none."""
        return self.item if self.kind == "edge" else None

    @property
    def words(self) -> str:
        """An edge by its labels; anything else by its own."""
        if self.kind != "edge":
            return self.label
        labels = (self.subject_label, self.predicate_label, self.object_label)
        return " — ".join(" ".join(label.split()) for label in labels)


@dataclass(frozen=True, slots=True)
class TraceNote:
    """What was noted beside the answer, such as that documents disagree, with the places."""

    iri: str
    text: str
    places: tuple[TraceQuotation, ...]


@dataclass(frozen=True, slots=True)
class TraceSentence:
    """A sentence of the answer with the selections it rests on, and its citations.

    ``verdict`` is that of the last verification, ``lost_at`` the step where support was lost; both
    are empty where there is none.
    """

    iri: str
    text: str
    edge_selections: tuple[str, ...]
    citations: tuple[TraceQuotation, ...]
    verdict: str = ""
    lost_at: str = ""


@dataclass(frozen=True, slots=True)
class TraceStepAnswer:
    """A part of the question that was asked by itself, its answer (empty where it has none, or is
    the whole sentence) and the place that says so, None where none does."""

    number: int
    question: str
    answer: str
    place: TraceQuotation | None

    @property
    def words(self) -> str:
        """The step in a line."""
        said = self.answer or (f"“{self.place.quote}”" if self.place else "no answer")
        where = f" ({self.place.title})" if self.place else ""
        return f"{self.question} → {' '.join(said.split())}{where}"


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of the session and who did it. ``prompts`` are the names of those that its calls
    were made with, and the tokens what these calls took together."""

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
    """A prompt of the session, as it was before anything was filled in.

    ``hash`` is the SHA-256 of its ``text``, which is empty where ``state`` says that it was erased
    or is missing, and not kept.
    """

    iri: str
    name: str
    hash: str
    text: str
    state: str


@dataclass(frozen=True, slots=True)
class TraceCall:
    """A call of a model or an embedder: ``step`` is the IRI of the step that it was part of,
    ``prompt`` the name of its prompt, ``content`` the hash by which the librarian keeps what was
    asked and replied; each is empty where there is none."""

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
    """A report that was rated on the way down: ``score`` 0 to 1, None where no rating came."""

    report: str
    label: str
    level: int
    score: float | None
    relevant: bool
    reasoning: str


@dataclass(frozen=True, slots=True)
class TracePoint:
    """A statement on the way to the answer. ``cites`` are what it was drawn from, by IRI;
    ``rejected`` says why it is not used, and is empty where it is."""

    iri: str
    text: str
    score: float
    cites: tuple[str, ...]
    rejected: str


@dataclass(frozen=True, slots=True)
class TraceBatch:
    """Reports that were read together, by IRI, and the points that they gave. ``error`` says why
    nothing could be read of the reply."""

    iri: str
    reports: tuple[str, ...]
    tokens: int
    points: tuple[TracePoint, ...]
    error: str
    dropped: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TraceAction:
    """A question of the tree: ``kind`` is question (the one that was asked), fold (of the primer)
    or follow-up.

    ``promise`` decided whether a follow-up was asked, ``reasoning`` says what it is made of;
    ``score`` is the answer's own judgement. ``status`` is answered, unanswered, failed or pruned,
    and ``reason`` says by what limit, or what failed. ``retrieved`` and ``shown`` count candidates.
    ``proposed_again`` counts the other answers that proposed the same question.
    """

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
    """Everything that was recorded of one session. ``actions`` is the tree of a DRIFT search.
    ``questioned`` says since when and why the answer does not stand; empty while it does.
    ``influence`` is the last influence analysis, None where there is none. ``short`` is the answer
    in a few words, ``confidence`` how likely the documents answer (0 to 1), where they are on
    record. ``as_of`` is the time, generation or session as of which the question was asked; empty
    where it was asked of the newest knowledge. ``published`` is since when there was the
    knowledge that was asked (xsd:dateTime)."""

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
    as_of: str = ""
    published: str = ""
    report: Callable[[], str] | None = field(default=None, repr=False, compare=False)

    @property
    def choice_text(self) -> str:
        """Which mode was chosen, and why; empty where the user chose."""
        return f"auto chose {self.mode} because {self.choice}" if self.choice else ""

    @property
    def confidence_text(self) -> str:
        """How likely the documents answer, and the answer in a few words; empty where nobody
        judged that."""
        if self.confidence is None:
            return ""
        return f"{self.confidence:.2f}" + (f" for “{self.short}”" if self.short else "")

    @property
    def filters_text(self) -> str:
        """What the question might be answered from; empty where that was everything."""
        said = {n.removeprefix("filter-"): x for n, x in self.parameters.items() if "filter-" in n}
        return "; ".join(f"{name} {_listed(text)}" for name, text in said.items())

    @property
    def concepts_text(self) -> str:
        """The concepts; where they have levels, level by level."""
        if not self.keywords:
            return ", ".join(self.concepts)
        levels = ((level, ", ".join(words)) for level, words in self.keywords.items())
        return "; ".join(f"{level} level: {words}" for level, words in levels)

    def to_html(self, path: str | Path) -> None:
        """Write the report of the session, one file that needs nothing else and is its owner's."""
        if self.report is None:
            raise UsageError("This trace was not read from a graph.", "Use `kg.trace(ID)`.")
        write_private(Path(path), self.report().encode())

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        values = asdict(replace(self, report=None))
        del values["report"]
        return values


def _listed(text: str) -> str:
    """A list on record in words; anything else as it is."""
    return ", ".join(json.loads(text)) if text.startswith("[") else text
