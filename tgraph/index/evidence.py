"""The standing evidence of many edges at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk
from tgraph.model import Evidence
from tgraph.store.base import Store, select


def evidence_of(
    store: Store, texts: Texts, edges: Sequence[str], limit: int
) -> dict[str, tuple[Evidence, ...]]:
    """For each edge its strongest evidence, at most ``limit``, a document at a time.

    Evidence of a document that no longer stands is left out; the same span counts once.
    """
    if not edges:
        return {}
    rows = select(store, "retrieve/evidence", {"edges": [NamedNode(edge) for edge in edges]})
    documents = documents_of(store, {document_of_chunk(_value(row["chunk"])) for row in rows})
    found: defaultdict[str, dict[tuple[object, ...], Evidence]] = defaultdict(dict)
    for row in rows:
        document = document_of_chunk(_value(row["chunk"]))
        if document in documents:
            evidence = read_evidence(row, documents[document], texts)
            span = (document, evidence.page, evidence.start, evidence.end)
            known = found[evidence.statement].get(span)
            if known is None or evidence.iri < known.iri:
                found[evidence.statement][span] = evidence
    return {edge: _spread(list(items.values()), limit) for edge, items in found.items()}


def documents_of(store: Store, documents: set[str]) -> dict[str, tuple[str, str]]:
    """Title and path of those of the documents that stand."""
    if not documents:
        return {}
    nodes = [NamedNode(document) for document in sorted(documents)]
    found: dict[str, tuple[str, str]] = {}
    for row in select(store, "retrieve/documents", {"documents": nodes}):
        found.setdefault(_value(row["document"]), (_value(row["title"]), _value(row["path"])))
    return found


def _spread(evidence: list[Evidence], limit: int) -> tuple[Evidence, ...]:
    """The strongest of each document first, then the second of each, and so on."""
    evidence.sort(key=lambda e: (-e.strength, e.path, e.page or 0, e.start, e.iri))
    turn: defaultdict[str, int] = defaultdict(int)
    ordered = []
    for item in evidence:
        ordered.append((turn[item.document], item))
        turn[item.document] += 1
    ordered.sort(key=lambda pair: pair[0])
    return tuple(item for _, item in ordered[:limit])


def read_evidence(row: Mapping[str, object], named: tuple[str, str], texts: Texts) -> Evidence:
    """The evidence of a row with the columns edge, evidence, chunk, start, length, quote and
    strength; ``named`` are the title and path of its document."""
    chunk = _value(row["chunk"])
    document = document_of_chunk(chunk)
    page = page_of_chunk(chunk)
    start = int(_value(row["start"]))
    end = start + int(_value(row["length"]))
    quote = row["quote"]
    return Evidence(
        iri=_value(row["evidence"]),
        statement=_value(row["edge"]),
        chunk=chunk,
        document=document,
        title=named[0],
        path=named[1],
        page=page,
        start=start,
        end=end,
        quote=quote.value
        if isinstance(quote, Literal)
        else texts.of_page(document, page)[start:end],
        strength=float(_value(row["strength"]) or 5.0),
    )


def _value(term: object) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else ""
