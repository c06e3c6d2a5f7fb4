"""A graph published to a triple store of others: what it knows, its sources and its record.

The chain is followed entry by entry, each carried out by updates that may be repeated, and a cursor
in the store itself says how far it is. So a publication that was interrupted goes on where it was,
one that is repeated changes nothing, and two of them do no harm to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnProgress, count_progress, silent
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.integrity.entries import ChainEntry
from tgraph.explain.integrity.sealed_entries import SealedEntries, catalogue_of
from tgraph.explain.trace.record_quads import classic
from tgraph.librarian import Librarian
from tgraph.record.bundle import ERASURE
from tgraph.store.base import Store, select, text_of
from tgraph.store.sparql_endpoint import KNOWLEDGE, SparqlEndpoint, SparqlStore

CURSOR = NamedNode("urn:graph:publication")
"""The graph of the cursor."""

AT_ONCE = 400
"""Quads of one update: Virtuoso compiles each into one program, whose lines are limited."""

_NUMBER, _HEAD, _VIEW, _STATUS = map(v.tg, ("sequence", "chainHash", "kind", "status"))
_CLASSIC, _TERMS = "classic", "terms"
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Publication:
    """What was published: how many entries of the chain were there ``before`` and are now, how many
    quads were sent, whether in the ``classic`` view, and whether all was published ``anew``."""

    endpoint: str
    before: int
    after: int
    quads: int
    classic: bool
    anew: bool


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a chain is published: the number of an entry, the head after it, and the view."""

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
    progress: Progress = lambda done, total: None,
) -> Publication:
    """Bring the endpoint up to date with the record.

    ``without_terms`` writes the classic view, without triple terms; None is the view that was
    published, and where nothing was, asks the endpoint. Where an erasure is among what is new, or
    ``anew`` says so, all that was published is deleted first and published again. ``UsageError``
    where the endpoint has something else under a cursor, or the other view; ``EndpointError`` also
    where it takes updates without carrying them out.
    """
    sealed = SealedEntries(store, librarian)
    cursors = {name: read_cursor(endpoint, name) for name in sealed.catalogues}
    published_view = "" if anew else next((c.view for c in cursors.values() if c.view), "")
    if without_terms is None:
        plain = _is_classic(published_view) if published_view else not endpoint.knows_terms()
    else:
        plain = without_terms
    if not anew:
        for name, cursor in cursors.items():
            _check(endpoint, cursor, sealed.head_at(name, cursor.sequence))
        if published_view and _is_classic(published_view) != plain:
            raise UsageError(
                f"{endpoint.update_url} has the {published_view} view.",
                "Publish in that view, or anew, which deletes it first.",
            )
    published = sum(cursor.sequence for cursor in cursors.values())
    new = sealed.after({name: cursor.sequence for name, cursor in cursors.items()})
    anew = anew or bool(published and any(entry.kind == ERASURE.name for entry in new))
    writer = _Publisher(sealed, endpoint, plain)
    if anew:
        writer.clear(sealed.catalogues)
        new, published = sealed.after({}), 0
    total = sum(sealed.quad_count(entry) + len(entry.quads) for entry in new)
    for done, entry in enumerate(new):
        writer.write(entry, lambda sent: progress(sent, total))
        if done in (0, len(new) - 1):
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
    progress: OnProgress = silent,
) -> Publication:
    """Bring an endpoint up to date with an open collection, as
    ``tgraph.extensions.interchange.publish_graph``."""
    endpoint = SparqlEndpoint.of(opened.settings.publish, url)
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


def _check(endpoint: SparqlEndpoint, cursor: Cursor, head: str | None) -> None:
    if head != cursor.head:
        raise UsageError(
            f"At {endpoint.update_url} something else was published up to entry {cursor.sequence}.",
            "Run `tgraph publish --anew`, which deletes it first.",
        )


def _is_classic(view: str) -> bool:
    return view == _CLASSIC


def _check_arrived(endpoint: SparqlEndpoint, entry: ChainEntry) -> None:
    """Whoever answers an update may be somebody else, or carry it out elsewhere."""
    if read_cursor(endpoint, catalogue_of(entry)).head != entry.chain:
        raise EndpointError(
            f"What {endpoint.update_url} was sent can't be read at {endpoint.query_url}.",
            "Does the one take updates, and the other queries of the same store?",
        )


class _Publisher:
    """Carries out entries of a chain at an endpoint."""

    def __init__(self, sealed: SealedEntries, endpoint: SparqlEndpoint, plain: bool) -> None:
        self._sealed = sealed
        self._endpoint = endpoint
        self._plain = plain
        self.sent = 0

    def write(self, entry: ChainEntry, sent: Callable[[int], None]) -> None:
        """What the entry seals, then the entry itself together with the cursor; ``sent`` is told
        how many quads were, of all entries."""
        catalogue = catalogue_of(entry)
        if entry.kind == "batch":
            self._endpoint.update(_unfinished(catalogue))
        self._send("DELETE", self._sealed.removed(entry), sent)
        self._send("INSERT", self._sealed.added(entry), sent)
        inserted = data_update("INSERT", self._seen(entry.quads))
        cursor = _cursor(catalogue, entry, _CLASSIC if self._plain else _TERMS)
        self._endpoint.update(f"{inserted};\n{_forget(catalogue)};\n{cursor}")
        self.sent += len(entry.quads)

    def clear(self, catalogues: Iterable[str]) -> None:
        """Delete all that was published; the cursors go first, so that nobody goes on from them."""
        own = {KNOWLEDGE.value, v.SOURCE_GRAPH.value, *catalogues}
        for catalogue in catalogues:
            self._endpoint.update(f"{_forget(catalogue)};\n{_unfinished(catalogue)}")
        for row in select(SparqlStore(self._endpoint), "trace/filled-graphs"):
            graph = text_of(row["graph"])
            if graph in own or graph.startswith(v.bundle_iri("")):
                self._endpoint.update(f"CLEAR GRAPH <{graph}>")

    def _send(self, what: str, quads: Iterable[Quad], sent: Callable[[int], None]) -> None:
        rest = iter(quads)
        while block := list(islice(rest, AT_ONCE)):
            sent(self.sent)
            self._endpoint.update(data_update(what, self._seen(block)))
            self.sent += len(block)

    def _seen(self, quads: Sequence[Quad]) -> Sequence[Quad]:
        """The quads as the endpoint gets them."""
        if not self._plain:
            return [placed(quad, quad.graph_name) for quad in quads]
        return [placed(told, quad.graph_name) for quad in quads for told in classic([quad])]


def _forget(catalogue: str) -> str:
    cursor = f"GRAPH {CURSOR} {{ <{catalogue}> ?p ?o }}"
    return f"DELETE {{ {cursor} }} WHERE {{ {cursor} }}"


def _unfinished(catalogue: str) -> str:
    """Says of a catalogue that what it seals is being changed, so that nobody asks it half-way."""
    mark = Quad(NamedNode(catalogue), _STATUS, Literal("unfinished"), CURSOR)
    return data_update("INSERT", [mark])


def _cursor(catalogue: str, entry: ChainEntry, view: str) -> str:
    number = Literal(str(entry.sequence), datatype=v.xsd("integer"))
    stated = ((_NUMBER, number), (_HEAD, Literal(entry.chain)), (_VIEW, Literal(view)))
    return data_update("INSERT", [Quad(NamedNode(catalogue), *pair, CURSOR) for pair in stated])


def placed(quad: Quad, graph: object) -> Quad:
    kept = KNOWLEDGE if isinstance(graph, DefaultGraph) else graph
    return Quad(quad.subject, quad.predicate, quad.object, kept)  # type: ignore[arg-type]


def data_update(what: str, quads: Iterable[Quad]) -> str:
    """An update that inserts or deletes the quads."""
    graphs: dict[str, list[str]] = {}
    for quad in quads:
        graphs.setdefault(str(quad.graph_name), []).append(f"{quad.triple} .")
    inside = "\n".join(f"GRAPH {name} {{\n" + "\n".join(t) + "\n}" for name, t in graphs.items())
    return f"{what} DATA {{\n{inside}\n}}"


def read_cursor(endpoint: SparqlEndpoint, catalogue: str) -> Cursor:
    """That of a catalogue; 0 where nothing is published."""
    rows = select(SparqlStore(endpoint), "trace/cursor", {"catalogue": [NamedNode(catalogue)]})
    known = [
        Cursor(int(text_of(row["sequence"])), text_of(row["head"]), text_of(row["view"]))
        for row in rows
    ]
    return max(known, key=lambda cursor: cursor.sequence, default=Cursor(0, ""))
