"""What an answer was made from, as texts: what was shown, and all that was retrieved, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tgraph import vocabulary as v
from tgraph.explain.evaluation import ContextText
from tgraph.explain.traced import Trace, TracedItem
from tgraph.index.evidence import documents_of, stored_evidence
from tgraph.index.sources import Texts, document_of_chunk
from tgraph.model import Answer, Edge
from tgraph.store.base import Store

_EVIDENCE = 3


def shown_context(answer: Answer) -> tuple[ContextText, ...]:
    """What the answer was written from: of edges the quotes shown for them, those of a chunk in
    their order; of other items their texts. A chunk that was shown whole stands for its quotes."""
    quotes: dict[str, list[tuple[int, str]]] = {}
    whole: dict[str, str] = {}
    for selected in answer.selection:
        item = selected.item
        if not isinstance(item, Edge):
            whole[item.iri] = item.text
            quotes.setdefault(item.iri, [])
            continue
        for evidence in selected.candidate.evidence:
            quotes.setdefault(evidence.chunk, []).append((evidence.start, evidence.quote))
        if not selected.candidate.evidence:
            quotes.setdefault(item.iri, []).append((0, item.text))
    return tuple(
        ContextText(iri, whole.get(iri) or "\n".join(text for _, text in sorted(set(places))))
        for iri, places in quotes.items()
    )


def ranking_of(trace: Trace, store: Store, texts: Texts) -> tuple[ContextText, ...]:
    """The chunks that were retrieved, best first, each with the names of its document.

    Where a mode retrieves no chunks they are those that hold the evidence of what it does; those
    that points were drawn from come first.
    """
    items = sorted((*trace.selected, *trace.rejected), key=lambda item: item.rank)
    chunks = [item.item for item in items if item.kind == "chunk"]
    drawn = [e.chunk for item in items if item.kind == "point" for e in item.evidence]
    found = dict.fromkeys([*drawn, *(chunks or _chunks_of_evidence(items, store, texts))])
    documents = documents_of(store, {document_of_chunk(chunk) for chunk in found})
    return tuple(
        ContextText(chunk, texts.of_chunk(chunk), _names(chunk, documents)) for chunk in found
    )


def _chunks_of_evidence(items: Iterable[TracedItem], store: Store, texts: Texts) -> Iterator[str]:
    known = list(items)
    edges = [item.item for item in known if item.kind == "edge"]
    of_edges = stored_evidence(store, texts).of_edges(edges, _EVIDENCE)
    for item in known:
        yield from (e.chunk for e in of_edges.get(item.item, ()))
        yield from (e.chunk for e in item.evidence)


def _names(chunk: str, documents: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """What a document may be called by: IRI, content hash, title, path, name of the file."""
    document = document_of_chunk(chunk)
    title, path = documents.get(document, ("", ""))
    names = (document, document.removeprefix(v.document_iri("")), title, path)
    return tuple(name for name in (*names, path.rpartition("/")[2]) if name)
