"""Claims of knowledge with their standing evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.errors import ErasedTextError, EvidenceError
from tgraph.index.evidence import OnDoubt, documents_of, evidence_of_row, raise_doubt, row_of
from tgraph.index.sources import Texts, document_of_chunk
from tgraph.model import Claim, ClaimStatus, Evidence
from tgraph.store.base import Store, Term, select_rows, text_of

_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}


def claims_of(
    store: Store, texts: Texts, entities: Sequence[str], doubt: OnDoubt = raise_doubt
) -> dict[str, tuple[Claim, ...]]:
    """Return claims about each entity, as subject or object, with standing evidence.

    ``entities`` contains canonical IRIs and determines the order; entities without claims are
    left out. Claims with the entity as subject come first, then claims are sorted by first
    statement (document path, page, position). A single query serves all entities. ``doubt`` is
    called for evidence that disagrees with the stored text; a claim stands without the
    disagreeing evidence if other evidence exists."""
    if not entities:
        return {}
    rows = select_rows(store, "retrieve/claims", {"entities": [NamedNode(e) for e in entities]})
    documents = documents_of(store, {document_of_chunk(text_of(row["chunk"])) for row in rows})
    places: defaultdict[str, dict[str, Evidence]] = defaultdict(dict)
    claim_rows: dict[str, Mapping[str, Term | None]] = {}
    claims_by_entity: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        document_name = documents.get(document_of_chunk(text_of(row["chunk"])))
        if document_name is None:
            continue
        try:
            evidence = evidence_of_row(row_of(row, "claim"), document_name, texts)
        except ErasedTextError:
            continue
        except EvidenceError as error:
            doubt(error)
            continue
        claim = text_of(row["claim"])
        claim_rows[claim] = row
        claims_by_entity[text_of(row["entity"])].add(claim)
        places[claim][evidence.iri] = evidence
    claims = {claim: _claim(row, list(places[claim].values())) for claim, row in claim_rows.items()}
    return {
        entity: tuple(
            sorted((claims[c] for c in claims_by_entity[entity]), key=lambda c: _order(c, entity))
        )
        for entity in entities
        if entity in claims_by_entity
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
