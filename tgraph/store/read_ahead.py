"""Read-ahead store: two bulk queries replace thousands of single look-ups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.store.base import Graph, Results, Store, Subject, Term, select_rows

_SAID = tuple(map(v.tg, ("description", "level", "summary", "summaryText", "finding")))
_PREDICATES = (v.RDF_TYPE, v.RDFS_LABEL, *_SAID)


class ReadAhead:
    """A ``Store`` answering from memory for read-ahead subjects, forwarding other requests.

    Use requires an unchanging state."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._recorded: dict[str, list[Quad]] = {}
        self._known: dict[str, list[Quad]] = {}

    def read(self, subjects: Iterable[str]) -> None:
        """Read source graph quads of subjects, plus knowledge labels and properties, excluding
        numerous statements."""
        new = sorted({s for s in subjects if v.is_iri(s)} - self._recorded.keys())
        items = [NamedNode(subject) for subject in new]
        for quads_by_subject, query, graph in (
            (self._recorded, "retrieve/about", v.SOURCE_GRAPH),
            (self._known, "retrieve/known", v.KNOWLEDGE_GRAPH),
        ):
            quads_by_subject.update((subject, []) for subject in new)
            for quad in self._select_quads(query, {"items": items}, graph) if items else ():
                quads_by_subject[quad.subject.value].append(quad)  # type: ignore[union-attr]

    def _select_quads(
        self, query: str, parameters: Mapping[str, Sequence[Term]], graph: Graph
    ) -> Iterator[Quad]:
        for row in select_rows(self._store, query, parameters):
            item, predicate, value = row["item"], row["predicate"], row["value"]
            assert isinstance(item, NamedNode)
            assert isinstance(predicate, NamedNode)
            assert value is not None
            yield Quad(item, predicate, value, graph)

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        quads_by_subject: Mapping[str, list[Quad]] = {}
        if graph == v.SOURCE_GRAPH:
            quads_by_subject = self._recorded
        elif graph == v.KNOWLEDGE_GRAPH and predicate in _PREDICATES:
            quads_by_subject = self._known
        quads = quads_by_subject.get(subject.value) if isinstance(subject, NamedNode) else None
        if quads is None:
            return self._store.match(subject, predicate, obj, graph)
        return (
            quad
            for quad in quads
            if predicate in (None, quad.predicate) and (obj is None or quad.object == obj)
        )

    def lines(self, graph: NamedNode) -> list[bytes]:
        return self._store.lines(graph)

    def query(self, text: str) -> Results:
        return self._store.query(text)

    def extend(self, quads: Iterable[Quad]) -> None:
        raise TypeError("data read ahead can't be changed")

    def remove(self, quads: Iterable[Quad]) -> None:
        raise TypeError("data read ahead can't be changed")
