"""Graph publication to a foreign triple store: knowledge, sources and record.

Chain entries are applied in order by repeatable updates, and a cursor in the store itself marks
progress. An interrupted publication therefore continues, a repeated publication changes
nothing, and two concurrent publications do no harm to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import CountProgress, OnProgress, count_progress, ignore_progress
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.integrity.entries import ChainEntry
from tgraph.explain.integrity.sealed_entries import SealedEntries, catalogue_of
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.librarian import Librarian
from tgraph.record.bundle import ERASURE
from tgraph.store.base import Store, select_rows, text_of
from tgraph.store.sparql_endpoint import KNOWLEDGE, SparqlEndpoint, SparqlStore

CURSOR = NamedNode("urn:graph:publication")
"""The graph of the cursor."""

AT_ONCE = 400
"""Quads of one update: Virtuoso compiles each into one program, whose lines are limited."""

_NUMBER, _HEAD, _VIEW, _STATUS = map(v.tg, ("sequence", "chainHash", "kind", "status"))
_CLASSIC, _TERMS = "classic", "terms"


@dataclass(frozen=True, slots=True)
class Publication:
    """A publication result: chain entry counts ``before`` and ``after``, sent quads,
    ``classic`` view flag, and ``anew`` flag for complete republication."""

    endpoint: str
    before: int
    after: int
    quads: int
    classic: bool
    anew: bool


@dataclass(frozen=True, slots=True)
class Cursor:
    """A publication cursor: last published entry number, chain head after that entry, and view."""

    sequence: int
    head: str
    view: str = ""


def publish(
    store: Store,
    librarian: Librarian,
    endpoint: SparqlEndpoint,
    *,
    without_terms: bool | None = None,
    anew: bool = False,
    progress: CountProgress = lambda done, total: None,
) -> Publication:
    """Update the endpoint from the record.

    ``without_terms`` writes the classic view, without triple terms; None keeps the published
    view or, before any publication, asks the endpoint. If new entries include an erasure, or
    with ``anew``, all published content is deleted first and published again. Raise
    ``UsageError`` if the endpoint has different content under a cursor, or a different view;
    ``EndpointError`` also if it accepts updates without applying them."""
    sealed = SealedEntries(store, librarian)
    cursors = {name: read_cursor(endpoint, name) for name in sealed.catalogues}
    published_view = "" if anew else next((c.view for c in cursors.values() if c.view), "")
    if without_terms is None:
        plain = _is_classic(published_view) if published_view else not endpoint.knows_terms()
    else:
        plain = without_terms
    if not anew:
        for name, cursor in cursors.items():
            _check_cursor(endpoint, cursor, sealed.head_at(name, cursor.sequence))
        if published_view and _is_classic(published_view) != plain:
            raise UsageError(
                f"{endpoint.update_url} has the {published_view} view.",
                "Publish in that view, or anew, which deletes it first.",
            )
    published = sum(cursor.sequence for cursor in cursors.values())
    new = sealed.list_entries_after({name: cursor.sequence for name, cursor in cursors.items()})
    anew = anew or bool(published and any(entry.kind == ERASURE.name for entry in new))
    writer = _Publisher(sealed, endpoint, plain)
    if anew:
        writer.clear(sealed.catalogues)
        new, published = sealed.list_entries_after({}), 0
    total = sum(sealed.quad_count(entry) + len(entry.quads) for entry in new)
    for index, entry in enumerate(new):
        writer.write(entry, lambda sent: progress(sent, total))
        if index in (0, len(new) - 1):
            _check_arrived(endpoint, entry)
    progress(total, total)
    return Publication(
        endpoint.update_url, published, published + len(new), writer.sent, plain, anew
    )


def publish_collection(
    opened: OpenCollection,
    url: str = "",
    *,
    without_terms: bool | None = None,
    anew: bool = False,
    progress: OnProgress = ignore_progress,
) -> Publication:
    """Bring an endpoint up to date with an open collection, as
    ``tgraph.extensions.interchange.publish_graph``."""
    endpoint = SparqlEndpoint.from_settings(opened.settings.publish, url)
    opened.read()
    with closing(opened.snapshot()) as snapshot:
        return publish(
            snapshot.store,
            opened.librarian,
            endpoint,
            without_terms=without_terms,
            anew=anew,
            progress=count_progress(progress, "Publishing"),
        )


def _check_cursor(endpoint: SparqlEndpoint, cursor: Cursor, head: str | None) -> None:
    if head != cursor.head:
        raise UsageError(
            f"At {endpoint.update_url} something else was published up to entry {cursor.sequence}.",
            "Run `tgraph publish --anew`, which deletes it first.",
        )


def _is_classic(view: str) -> bool:
    return view == _CLASSIC


def _check_arrived(endpoint: SparqlEndpoint, entry: ChainEntry) -> None:
    """Raise ``EndpointError`` if an update is not visible to queries: update and query URLs may
    belong to different stores."""
    if read_cursor(endpoint, catalogue_of(entry)).head != entry.chain:
        raise EndpointError(
            f"What {endpoint.update_url} was sent can't be read at {endpoint.query_url}.",
            "Does the one take updates, and the other queries of the same store?",
        )


class _Publisher:
    """A publisher that applies chain entries at an endpoint."""

    def __init__(self, sealed: SealedEntries, endpoint: SparqlEndpoint, plain: bool) -> None:
        self._sealed = sealed
        self._endpoint = endpoint
        self._plain = plain
        self.sent = 0

    def write(self, entry: ChainEntry, sent: Callable[[int], None]) -> None:
        """Write an entry's sealed content, then entry quads together with the cursor; ``sent``
        receives the number of quads sent so far."""
        catalogue = catalogue_of(entry)
        if entry.kind == "batch":
            self._endpoint.update(_mark_unfinished(catalogue))
        self._send_quads("DELETE", self._sealed.read_removed_quads(entry), sent)
        self._send_quads("INSERT", self._sealed.read_added_quads(entry), sent)
        inserted = data_update("INSERT", self._endpoint_quads(entry.quads))
        cursor = _cursor_update(catalogue, entry, _CLASSIC if self._plain else _TERMS)
        self._endpoint.update(f"{inserted};\n{_delete_cursor(catalogue)};\n{cursor}")
        self.sent += len(entry.quads)

    def clear(self, catalogues: Iterable[str]) -> None:
        """Delete all published content, cursors first, so that no later run continues from
        them."""
        own_graphs = {KNOWLEDGE.value, v.SOURCE_GRAPH.value, *catalogues}
        for catalogue in catalogues:
            self._endpoint.update(f"{_delete_cursor(catalogue)};\n{_mark_unfinished(catalogue)}")
        for row in select_rows(SparqlStore(self._endpoint), "trace/filled-graphs"):
            graph = text_of(row["graph"])
            if graph in own_graphs or graph.startswith(v.bundle_iri("")):
                self._endpoint.update(f"CLEAR GRAPH <{graph}>")

    def _send_quads(self, what: str, quads: Iterable[Quad], sent: Callable[[int], None]) -> None:
        remaining = iter(quads)
        while block := list(islice(remaining, AT_ONCE)):
            sent(self.sent)
            self._endpoint.update(data_update(what, self._endpoint_quads(block)))
            self.sent += len(block)

    def _endpoint_quads(self, quads: Sequence[Quad]) -> Sequence[Quad]:
        """Return quads in the endpoint's view."""
        if not self._plain:
            return [move_to_graph(quad, quad.graph_name) for quad in quads]
        return [
            move_to_graph(view_quad, quad.graph_name)
            for quad in quads
            for view_quad in replace_triple_terms([quad])
        ]


def _delete_cursor(catalogue: str) -> str:
    cursor = f"GRAPH {CURSOR} {{ <{catalogue}> ?p ?o }}"
    return f"DELETE {{ {cursor} }} WHERE {{ {cursor} }}"


def _mark_unfinished(catalogue: str) -> str:
    """Return an update marking a catalogue as unfinished, so that readers avoid half-changed
    content."""
    mark = Quad(NamedNode(catalogue), _STATUS, Literal("unfinished"), CURSOR)
    return data_update("INSERT", [mark])


def _cursor_update(catalogue: str, entry: ChainEntry, view: str) -> str:
    number = Literal(str(entry.sequence), datatype=v.xsd("integer"))
    properties = ((_NUMBER, number), (_HEAD, Literal(entry.chain)), (_VIEW, Literal(view)))
    return data_update("INSERT", [Quad(NamedNode(catalogue), *pair, CURSOR) for pair in properties])


def move_to_graph(quad: Quad, graph: object) -> Quad:
    target_graph = KNOWLEDGE if isinstance(graph, DefaultGraph) else graph
    return Quad(quad.subject, quad.predicate, quad.object, target_graph)  # type: ignore[arg-type]


def data_update(what: str, quads: Iterable[Quad]) -> str:
    """Return an update that inserts or deletes quads."""
    graphs: dict[str, list[str]] = {}
    for quad in quads:
        graphs.setdefault(str(quad.graph_name), []).append(f"{quad.triple} .")
    inside = "\n".join(f"GRAPH {name} {{\n" + "\n".join(t) + "\n}" for name, t in graphs.items())
    return f"{what} DATA {{\n{inside}\n}}"


def read_cursor(endpoint: SparqlEndpoint, catalogue: str) -> Cursor:
    """Return the catalogue's cursor; sequence 0 before any publication."""
    parameters = {"catalogue": [NamedNode(catalogue)]}
    rows = select_rows(SparqlStore(endpoint), "trace/cursor", parameters)
    cursors = [
        Cursor(int(text_of(row["sequence"])), text_of(row["head"]), text_of(row["view"]))
        for row in rows
    ]
    return max(cursors, key=lambda cursor: cursor.sequence, default=Cursor(0, ""))
