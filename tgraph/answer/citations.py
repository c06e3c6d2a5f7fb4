"""Citations: from a drafted sentence to the exact characters that carry it."""

from __future__ import annotations

from tgraph import vocabulary as v
from tgraph.answer.base import Draft
from tgraph.model import Citation, EdgeSelection, Evidence, Sentence


def cite(draft: Draft, session_uuid: str) -> Sentence:
    """The sentence with a citation for each place that the selections it names rest on."""
    citations: dict[tuple[object, ...], Citation] = {}
    for selection in draft.selections:
        for evidence in selection.candidate.evidence:
            if not draft.evidence or evidence.iri in draft.evidence:
                place = (evidence.document, evidence.page, evidence.start, evidence.end)
                citations.setdefault(
                    (selection.index, *place), _citation(selection, evidence, session_uuid)
                )
    return Sentence(draft.text, tuple(citations.values()))


def _citation(selection: EdgeSelection, evidence: Evidence, session_uuid: str) -> Citation:
    return Citation(
        kind="edge",
        edge=selection.edge.iri,
        edge_selection=v.edge_selection_iri(session_uuid, selection.index),
        evidence=evidence.iri,
        chunk=evidence.chunk,
        document=evidence.document,
        title=evidence.title,
        path=evidence.path,
        page=evidence.page,
        start=evidence.start,
        end=evidence.end,
        quote=evidence.quote,
    )
