"""Claims: from standing evidence into knowledge, and from there to whoever asks about entities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.evidence import documents_of, evidence_of_row, row_of
from tgraph.index.sources import Texts, document_of_chunk
from tgraph.index.standing import Properties
from tgraph.model import Claim, ClaimStatus, Evidence
from tgraph.store.base import Store, Term, select, text_of
from tgraph.store.statements import Statements

_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}


def claim_quads(
    claim: str, evidence: Sequence[Properties], merges: Mapping[str, str]
) -> list[Quad]:
    """The claim in the knowledge graph, under the canonical names of whom it is about; nothing
    where no evidence stands. All evidence of a claim says the same: the IRI is a digest of it."""
    if not evidence:
        return []
    said = evidence[0]
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        claim,
        (v.RDF_TYPE, v.tg("Claim")),
        (v.tg("subject"), _canonical(said["subject"], merges)),
        (v.tg("object"), _canonical(said.get("object", ()), merges)),
        (v.tg("claimType"), said["claimType"]),
        (v.tg("claimStatus"), said["claimStatus"]),
        (v.tg("claimStart"), said.get("claimStart", ())),
        (v.tg("claimEnd"), said.get("claimEnd", ())),
        (v.tg("description"), said["description"]),
    )
    return out.quads


def _canonical(
    entities: Sequence[NamedNode | Literal], merges: Mapping[str, str]
) -> list[NamedNode]:
    return [NamedNode(merges.get(entity.value, entity.value)) for entity in entities]


def claims_of(store: Store, texts: Texts, entities: Sequence[str]) -> dict[str, tuple[Claim, ...]]:
    """For each entity the claims about it, as subject or object, with their standing evidence.

    ``entities`` are canonical IRIs, and keep their order; those without claims are left out. Claims
    about the entity itself come first, then by where they are first stated (document path, page,
    position). One query, however many entities.
    """
    if not entities:
        return {}
    rows = select(store, "retrieve/claims", {"entities": [NamedNode(e) for e in entities]})
    documents = documents_of(store, {document_of_chunk(text_of(row["chunk"])) for row in rows})
    places: defaultdict[str, dict[str, Evidence]] = defaultdict(dict)
    said: dict[str, Mapping[str, Term | None]] = {}
    about: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        named = documents.get(document_of_chunk(text_of(row["chunk"])))
        if named is not None:
            claim = text_of(row["claim"])
            said[claim] = row
            about[text_of(row["entity"])].add(claim)
            evidence = evidence_of_row(row_of(row, "claim"), named, texts)
            places[claim][evidence.iri] = evidence
    claims = {claim: _claim(row, list(places[claim].values())) for claim, row in said.items()}
    return {
        entity: tuple(sorted((claims[c] for c in about[entity]), key=lambda c: _order(c, entity)))
        for entity in entities
        if entity in about
    }


def _claim(row: Mapping[str, Term | None], evidence: list[Evidence]) -> Claim:
    started, ended = row["started"], row["ended"]
    return Claim(
        iri=text_of(row["claim"]),
        subject=text_of(row["subject"]),
        subject_label=text_of(row["subject_label"]),
        object=text_of(row["object"]),
        object_label=text_of(row["object_label"]),
        type=text_of(row["type"]),
        status=_STATUSES[text_of(row["status"])],
        description=text_of(row["description"]),
        started=started if isinstance(started, Literal) else None,
        ended=ended if isinstance(ended, Literal) else None,
        evidence=tuple(sorted(evidence, key=_place)),
    )


def _place(evidence: Evidence) -> tuple[str, int, int, str]:
    return evidence.path, evidence.page or 0, evidence.start, evidence.iri


def _order(claim: Claim, entity: str) -> tuple[object, ...]:
    return claim.subject != entity, *_place(claim.evidence[0]), claim.iri
