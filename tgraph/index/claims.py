"""Claims of knowledge with their standing evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.errors import ErasedTextError, EvidenceError
from tgraph.index.evidence import OnDoubt, documents_of, evidence_of_row, raise_doubt, row_of
from tgraph.index.sources import Texts, document_of_chunk
from tgraph.model import Claim, ClaimStatus, Evidence
from tgraph.store.base import Store, Term, select, text_of

_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}


def claims_of(
    store: Store, texts: Texts, entities: Sequence[str], doubt: OnDoubt = raise_doubt
) -> dict[str, tuple[Claim, ...]]:
    """For each entity the claims about it, as subject or object, with their standing evidence.

    ``entities`` are canonical IRIs, and keep their order; those without claims are left out. Claims
    about the entity itself come first, then by where they are first stated (document path, page,
    position). One query, however many entities. ``doubt`` is told of evidence that is not what the
    stored text says, without which a claim stands, if it has other.
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
        if named is None:
            continue
        try:
            evidence = evidence_of_row(row_of(row, "claim"), named, texts)
        except ErasedTextError:
            continue
        except EvidenceError as error:
            doubt(error)
            continue
        claim = text_of(row["claim"])
        said[claim] = row
        about[text_of(row["entity"])].add(claim)
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
