"""Report writer input for a community: a JSON row with an id for each entity, edge, claim and
sub-report."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from pyoxigraph import NamedNode

from tgraph.model import Community, CommunityReport, Edge, Evidence

LONGEST_QUOTE = 600
"""Characters of a quote that are shown; evidence without a span is a whole chunk."""

SHORT = 200
"""Characters of a description where there is too much to show."""

Parts = Mapping[Hashable, str]
"""What a row is made of, by keys: a quote that several edges share is shown once."""


@dataclass(frozen=True, slots=True)
class EntityDetail:
    """A community member as report writer input.

    ``links`` counts the entity's edges inside the community; ``evidence`` supports the name and
    descriptions, or is the summary of the descriptions, supported by the evidence of the
    descriptions."""

    iri: str
    name: str
    type: str
    links: int
    descriptions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeDetail:
    """A community edge as report writer input.

    ``links`` is the combined degree of the edge's ends inside the community; ``summary`` is the
    IRI of the summary used as description, where several descriptions existed."""

    edge: Edge
    links: int
    evidence: tuple[Evidence, ...] = ()
    summary: str = ""

    @property
    def iri(self) -> str:
        return self.edge.iri

    @property
    def rests_on(self) -> tuple[str, ...]:
        """IRIs of the shown evidence, plus the summary IRI."""
        return (*(item.iri for item in self.evidence), *([self.summary] if self.summary else []))

    @property
    def ends(self) -> tuple[str, ...]:
        """Entities at the edge's ends: a single entity for literal objects."""
        nodes = (self.edge.subject, self.edge.object)
        return tuple(node.value for node in nodes if isinstance(node, NamedNode))


@dataclass(frozen=True, slots=True)
class ClaimDetail:
    """A claim about a community member, in words."""

    iri: str
    subject: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A sub-community with an existing report."""

    community: Community
    report: CommunityReport


@dataclass(frozen=True, slots=True)
class SubReport:
    """A sub-community's report as shown to the writer, optionally lacking findings."""

    report: CommunityReport
    whole: bool = True


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a report writer is shown, under short ids: entities E1, E2..., edges R1..., claims
    C1..., sub-reports S1... and their findings S1.1...

    ``brief`` says that only the beginning of what there is to say of each is shown; ``left_out``
    counts what had no room, by reason. ``relationships`` counts the edges between members, shown or
    not.
    """

    community: Community
    entities: tuple[EntityDetail, ...]
    edges: tuple[EdgeDetail, ...]
    claims: tuple[ClaimDetail, ...] = ()
    reports: tuple[SubReport, ...] = ()
    brief: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)
    relationships: int = 0

    def ids(self) -> dict[str, str]:
        """Return the IRI of each id's item."""
        iri_by_id = {f"E{n}": entity.iri for n, entity in enumerate(self.entities, 1)}
        iri_by_id |= {f"R{n}": edge.iri for n, edge in enumerate(self.edges, 1)}
        iri_by_id |= {f"C{n}": claim.iri for n, claim in enumerate(self.claims, 1)}
        for n, sub in enumerate(self.reports, 1):
            iri_by_id[f"S{n}"] = sub.report.iri
            if sub.whole:
                numbered_findings = enumerate(sub.report.findings, 1)
                iri_by_id |= {f"S{n}.{m}": finding.iri for m, finding in numbered_findings}
        return iri_by_id

    def sources(self) -> dict[str, tuple[str, ...]]:
        """Return, by item IRI, sources for texts citing the item: the item's evidence, or the
        sub-report itself."""
        sources_by_iri = {entity.iri: entity.evidence for entity in self.entities}
        sources_by_iri |= {edge.iri: edge.rests_on for edge in self.edges}
        sources_by_iri |= {claim.iri: claim.evidence for claim in self.claims}
        for sub in self.reports:
            sources_by_iri |= {
                iri: (iri,) for iri in (sub.report.iri, *(f.iri for f in sub.report.findings))
            }
        return sources_by_iri

    def rows(self) -> dict[str, list[str]]:
        """The lines of ``entities``, ``edges``, ``claims`` and ``reports``, each a JSON object."""
        quote_edges: dict[Hashable, str] = {}

        def lines(letter: str, rows: Iterable[Mapping[str, object]]) -> list[str]:
            return [as_json({"id": f"{letter}{n}", **row}) for n, row in enumerate(rows, 1)]

        edges = enumerate(self.edges, 1)
        reports = enumerate(self.reports, 1)
        return {
            "entities": lines("E", (_entity_row(e, brief=self.brief) for e in self.entities)),
            "edges": lines(
                "R", (_edge_row(e, f"R{n}", quote_edges, brief=self.brief) for n, e in edges)
            ),
            "claims": lines("C", ({"claim": claim.text} for claim in self.claims)),
            "reports": lines("S", (_report_row(sub, f"S{n}") for n, sub in reports)),
        }

    @property
    def text(self) -> str:
        """All text shown to the writer: contexts with equal text request equal reports."""
        return "\n\n".join(f"{name}\n" + "\n".join(rows) for name, rows in self.rows().items())


def as_json(value: object) -> str:
    """Serialise a value as single-line JSON, so that no text can pose as a row."""
    return json.dumps(value, ensure_ascii=False)


def _entity_row(entity: EntityDetail, *, brief: bool) -> dict[str, object]:
    row: dict[str, object] = {"name": entity.name, "type": entity.type, "links": entity.links}
    described = " ".join(entity.descriptions[:1] if brief else entity.descriptions)
    if brief:
        described = shorten_text(described, SHORT)
    return {**row, "description": described} if described else row


def _edge_head(detail: EdgeDetail, *, brief: bool) -> dict[str, object]:
    row: dict[str, object] = {"edge": " | ".join(detail.edge.labels)}
    if detail.edge.description and not (brief and detail.evidence):
        row["description"] = detail.edge.description
    return row


def _edge_row(
    detail: EdgeDetail, identity: str, shown: dict[Hashable, str], *, brief: bool
) -> dict[str, object]:
    """Return an edge row including quotes; quotes already shown are replaced by the earlier
    edge's id."""
    row = _edge_head(detail, brief=brief)
    quotes, same = [], []
    for place, quote in _quotes_by_place(detail, brief=brief).items():
        if place in shown:
            same.append(shown[place])
        else:
            quotes.append(quote)
            shown[place] = identity
    if quotes:
        row["quotes"] = quotes
    if same:
        row["quoted_at"] = same
    return row


def _quotes_by_place(detail: EdgeDetail, *, brief: bool) -> dict[Hashable, str]:
    """Return quotes by place.

    Evidence without a span is a chunk: the start of the chunk is shown only where nothing else
    expresses the edge's meaning."""
    quote_by_place: dict[Hashable, str] = {}
    for evidence in detail.evidence[:1] if brief else detail.evidence:
        if len(evidence.quote) > LONGEST_QUOTE and detail.edge.description:
            continue
        place = (evidence.document, evidence.page, evidence.start, evidence.end)
        quote_by_place[place] = shorten_text(" ".join(evidence.quote.split()), LONGEST_QUOTE)
    return quote_by_place


def shorten_text(text: str, most: int) -> str:
    """Return the text, cut before a word if longer than ``most`` characters."""
    if len(text) <= most:
        return text
    return f"{text[:most].rsplit(' ', 1)[0]} …"


def _report_row(sub: SubReport, identity: str) -> dict[str, object]:
    row = _report_head(sub)
    if sub.whole:
        row["findings"] = [
            {"id": f"{identity}.{n}", **finding}
            for n, finding in enumerate(_finding_rows(sub.report), 1)
        ]
    return row


def _report_head(sub: SubReport) -> dict[str, object]:
    report = sub.report
    return {"title": report.title, "summary": report.summary, "rating": report.rating}


def _finding_rows(report: CommunityReport) -> list[dict[str, object]]:
    return [
        {"summary": finding.summary, "explanation": finding.explanation}
        for finding in report.findings
    ]


def entity_parts(entity: EntityDetail, *, brief: bool = False) -> Parts:
    return {entity.iri: as_json(_entity_row(entity, brief=brief))}


def edge_parts(detail: EdgeDetail, *, brief: bool = False) -> Parts:
    head: dict[Hashable, str] = {detail.iri: as_json(_edge_head(detail, brief=brief))}
    quotes = _quotes_by_place(detail, brief=brief).items()
    return {**head, **{place: as_json([quote]) for place, quote in quotes}}


def claim_parts(claim: ClaimDetail) -> Parts:
    return {claim.iri: as_json({"claim": claim.text})}


def report_parts(sub: SubReport) -> Parts:
    parts: dict[Hashable, str] = {sub.report.iri: as_json(_report_head(sub))}
    if sub.whole:
        pairs = zip(sub.report.findings, _finding_rows(sub.report), strict=True)
        parts |= {finding.iri: as_json(row) for finding, row in pairs}
    return parts
