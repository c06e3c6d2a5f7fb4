"""Knowledge as a question sees it: edges and items with evidence, communities with reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.model.extraction import ClaimStatus

Object = NamedNode | Literal
ItemKind = Choice["chunk", "report", "entity", "claim", "point", "summary"]


@dataclass(frozen=True, slots=True)
class Community:
    """Related entities, by IRI, with the edges between the entities.

    ``level`` 0 is the coarsest; ``parent`` is the containing community of the previous level,
    None at level 0; ``children`` contains communities of the next level."""

    iri: str
    level: int
    members: tuple[str, ...]
    edges: tuple[str, ...]
    parent: str | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """An insight of a report, citing report input by IRI."""

    iri: str
    summary: str
    explanation: str
    cites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CommunityReport:
    """A community report; ``rating`` expresses community importance from 0 to 10."""

    iri: str
    community: str
    level: int
    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: tuple[Finding, ...] = ()

    @property
    def text(self) -> str:
        """The complete report as Markdown."""
        parts = [f"# {self.title}", self.summary]
        parts += [f"## {finding.summary}\n\n{finding.explanation}" for finding in self.findings]
        return "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Edge:
    """A knowledge graph relationship with human-readable labels."""

    subject: NamedNode
    predicate: NamedNode
    object: Object
    subject_label: str
    predicate_label: str
    object_label: str
    weight: float = 1.0
    description: str = ""

    @property
    def iri(self) -> str:
        return v.edge_iri(self.subject, self.predicate, self.object)

    @property
    def kind(self) -> Choice["edge"]:
        return "edge"

    @property
    def labels(self) -> tuple[str, str, str]:
        return self.subject_label, self.predicate_label, self.object_label

    @property
    def named_terms(self) -> dict[str, str]:
        """Terms as texts, and labels, by field: subject, subject_label, predicate...

        The object is an IRI, or a literal as an N-Triples term."""
        value = self.object.value if isinstance(self.object, NamedNode) else str(self.object)
        return {
            "subject": self.subject.value,
            "subject_label": self.subject_label,
            "predicate": self.predicate.value,
            "predicate_label": self.predicate_label,
            "object": value,
            "object_label": self.object_label,
        }

    @property
    def text(self) -> str:
        return " ".join(self.labels)


@dataclass(frozen=True, slots=True)
class Item:
    """An answer's basis other than an edge; ``text`` is shown to models.

    A point is a conclusion drawn by a model or method from reports on the way to an answer.
    ``preface`` is document metadata placed before a chunk. ``title`` is shown to models in place
    of the label, nothing if it is empty."""

    kind: ItemKind
    iri: str
    label: str
    text: str
    preface: str = ""
    title: str | None = None

    @property
    def shown_title(self) -> str:
        return self.label if self.title is None else self.title


@dataclass(frozen=True, slots=True)
class Evidence:
    """An immutable stating place, with exact characters and position.

    ``statement`` is the supported edge, entity or claim, or the chunk itself. ``via`` leads
    from an item down to the evidence, by IRI; empty for the item's own evidence. ``relevance``
    measures how well the evidence answers the current question (0 to 1), if measured.
    ``by_hand`` states whether a person, not a document, is the source."""

    iri: str
    statement: str
    chunk: str
    document: str
    title: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str
    strength: float = 5.0
    via: tuple[str, ...] = ()
    relevance: float | None = None
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A knowledge claim with standing evidence, sorted by place.

    ``subject`` and ``object`` are canonical entity IRIs; ``object`` is empty if the claim
    concerns nobody else. ``statement`` of the evidence is the claim's IRI."""

    iri: str
    subject: str
    subject_label: str
    object: str
    object_label: str
    type: str
    status: ClaimStatus
    description: str
    started: Literal | None = None
    ended: Literal | None = None
    evidence: tuple[Evidence, ...] = ()
