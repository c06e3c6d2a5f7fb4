"""The standing evidence of many edges, or of many entities, at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk
from tgraph.model import Evidence
from tgraph.store.base import Store, select

Row = Mapping[str, object]


def evidence_of(
    store: Store, texts: Texts, edges: Sequence[str], limit: int
) -> dict[str, tuple[Evidence, ...]]:
    """For each edge its strongest evidence, at most ``limit``, a document at a time.

    Evidence of a document that no longer stands is left out; the same span counts once.
    """
    if not edges:
        return {}
    rows = select(store, "retrieve/evidence", {"edges": [NamedNode(edge) for edge in edges]})
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    for _, evidence in _standing(store, texts, rows, "edge"):
        found[evidence.statement].append(evidence)
    return {edge: _spread(_distinct(items), limit) for edge, items in found.items()}


def evidence_of_entities(
    store: Store, texts: Texts, entities: Sequence[str]
) -> dict[str, list[tuple[Evidence, str]]]:
    """For each entity the places that speak of it, with what each says of it (empty: only names
    it), in the order of their IRIs."""
    found: defaultdict[str, list[tuple[Evidence, str]]] = defaultdict(list)
    if entities:
        nodes = [NamedNode(entity) for entity in entities]
        rows = select(store, "retrieve/entity-evidence", {"entities": nodes})
        for row, evidence in _standing(store, texts, rows, "entity"):
            found[evidence.statement].append((evidence, _value(row["description"])))
    return found


def evidence_by_iri(store: Store, texts: Texts, iris: Sequence[str]) -> dict[str, Evidence]:
    """The evidence of these IRIs, as far as it stands."""
    if not iris:
        return {}
    rows = select(store, "retrieve/places", {"evidence": [NamedNode(iri) for iri in iris]})
    found: dict[str, Evidence] = {}
    for _, evidence in _standing(store, texts, rows, "statement"):
        found.setdefault(evidence.iri, evidence)
    return found


def _standing(
    store: Store, texts: Texts, rows: Iterable[Row], statement: str
) -> Iterator[tuple[Row, Evidence]]:
    """The rows whose documents stand, with the evidence that each tells of."""
    known = list(rows)
    documents = documents_of(store, {document_of_chunk(_value(row["chunk"])) for row in known})
    for row in known:
        document = document_of_chunk(_value(row["chunk"]))
        if document in documents:
            yield row, read_evidence(row, documents[document], texts, statement)


def _distinct(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The same span counts once."""
    found: dict[tuple[object, ...], Evidence] = {}
    for item in evidence:
        span = (item.document, item.page, item.start, item.end)
        if span not in found or item.iri < found[span].iri:
            found[span] = item
    return list(found.values())


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


def read_evidence(
    row: Row, named: tuple[str, str], texts: Texts, statement: str = "edge"
) -> Evidence:
    """The evidence of a row with the columns evidence, chunk, start, length, quote, strength and
    ``statement``; ``named`` are the title and path of its document."""
    chunk = _value(row["chunk"])
    document = document_of_chunk(chunk)
    page = page_of_chunk(chunk)
    start = int(_value(row["start"]))
    end = start + int(_value(row["length"]))
    quote = row["quote"]
    return Evidence(
        iri=_value(row["evidence"]),
        statement=_value(row[statement]),
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
