"""Citations: from a drafted sentence to the exact characters that carry it."""

from __future__ import annotations

from collections.abc import Mapping

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.model import Citation, CitationKind, Edge, Evidence, Selected, Sentence

CITED_AS: Mapping[str, CitationKind] = {
    "edge": "edge",
    "chunk": "chunk",
    "report": "report",
    "point": "report",
    "summary": "summary",
    "entity": "summary",
    "claim": "summary",
}
"""A point is what reports say; descriptions of entities and claims sum up what texts say."""


def cite(draft: Draft, session_uuid: str) -> Sentence:
    """The sentence with a citation for each place that the selections it names rest on."""
    citations: dict[tuple[object, ...], Citation] = {}
    for selected in draft.selections:
        for evidence in selected.candidate.evidence:
            if not draft.evidence or evidence.iri in draft.evidence:
                place = (evidence.document, evidence.page, evidence.start, evidence.end)
                citations.setdefault(
                    (selected.index, *place), _citation(selected, evidence, session_uuid)
                )
    return Sentence(draft.text, tuple(citations.values()), draft.lead)


def _citation(selected: Selected, evidence: Evidence, session_uuid: str) -> Citation:
    item = selected.item
    return Citation(
        kind=CITED_AS[item.kind],
        edge=item.iri if isinstance(item, Edge) else None,
        item=item.iri,
        edge_selection=v.selected_iri(session_uuid, item.kind, selected.index),
        evidence=evidence.iri,
        chunk=evidence.chunk,
        document=evidence.document,
        title=evidence.title,
        path=evidence.path,
        page=evidence.page,
        start=evidence.start,
        end=evidence.end,
        quote=evidence.quote,
        via=evidence.via,
    )
