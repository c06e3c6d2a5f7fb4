"""A SPARQL update as a change like any other: prepared aside, recorded, chained, published.

The update runs in the process for foreign SPARQL, on a copy of its own; what it changed is found by
comparing, and enters the store as one batch. Design, sections 3.6 and 6.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from pyoxigraph import BlankNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.index.community_reports import cluster_entities, write_reports
from tgraph.engine.index.embeddings import embed_knowledge
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.run import BUSY, Run
from tgraph.errors import QueryError
from tgraph.explain.query.sparql import Bounds, run_update
from tgraph.record.activities import Activity, agent_quads, responsible_agents
from tgraph.record.boundary import is_reserved_statement
from tgraph.rendering import one_line
from tgraph.store.base import Graph
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.query_guard import check_query
from tgraph.store.statements import Statements, to_bytes
from tgraph.store.writer import LayeredStore, WorkingCopy

_MOST_SHOWN = 300
_ALLOWED = (
    "It may change knowledge (what the default graph says of entities, relations and types) and"
    " graphs of your own; documents come and go by `tgraph index`, `remove` and"
    " `purge`, names by `tgraph entities`."
)


class UpdateRun(Run):
    """A SPARQL update run, sharing copy, vectors and commit with index runs."""

    kind = "update"
    busy = BUSY

    def update(self, text: str, bounds: Bounds) -> tuple[int, int]:
        """Run the update; return the numbers of added and removed quads.

        Raises ``QueryError``; then nothing changed."""
        check_query(text, update=True)
        with self._workshop() as context:
            started = context.clock()
            counts = _apply_update(context.copy, text, bounds)
            if context.copy.changed:
                cluster_entities(context)
                write_reports(context)
                embed_knowledge(context)
                based = f"BASE <{bounds.base}>\n{text}" if bounds.base else text
                _describe_update(context, based, started)
                self._commit(context)
            self._publish(context)
        return counts


def _apply_update(copy: WorkingCopy, text: str, bounds: Bounds) -> tuple[int, int]:
    copy.store.backup(copy.path / "changed")
    run_update(copy.path / "changed", text, bounds)
    changed = OxigraphStore.snapshot(copy.path / "changed")
    added, removed = compare_stores(copy.store, changed)
    del changed
    _check_allowed(added, removed)
    copy.remove(removed)
    copy.add(added)
    return len(added), len(removed)


def _describe_update(context: IndexContext, text: str, started: datetime) -> None:
    out = Statements(v.SOURCE_GRAPH)
    ended, agents = context.clock(), responsible_agents(context.settings.person)
    activity = Activity(context.run, ("Update",), "SPARQL update", started, ended, agents)
    activity.state(out, (v.tg("contentHash"), context.record.keep_content(text)))
    context.copy.add([*out.quads, *agent_quads(agents)])


def compare_stores(
    before: LayeredStore | OxigraphStore, after: OxigraphStore, graph: Graph | None = None
) -> tuple[list[Quad], list[Quad]]:
    """Return quads added and removed between two stores, in all graphs or a single graph.

    Both stores are walked side by side; since their orders agree but for differing quads, only
    differing quads are looked up. The result doesn't depend on the order."""
    added: list[Quad] = []
    removed: list[Quad] = []
    old, new = iter(before.match(graph=graph)), iter(after.match(graph=graph))
    left_quad, right = next(old, None), next(new, None)
    while left_quad is not None or right is not None:
        if left_quad == right:
            left_quad, right = next(old, None), next(new, None)
        elif left_quad is not None and not after.has_quad(left_quad):
            removed.append(left_quad)
            left_quad = next(old, None)
        elif right is not None and not before.has_quad(right):
            added.append(right)
            right = next(new, None)
        else:
            left_quad, right = next(old, None), next(new, None)
    return added, removed


def _format_quad(quad: Quad) -> str:
    return one_line(to_bytes([quad]).decode(), _MOST_SHOWN)


def _is_in_own_graph(quad: Quad) -> bool:
    return quad.graph_name != v.KNOWLEDGE_GRAPH and not v.is_record_graph(quad.graph_name)


def _check_allowed(added: Iterable[Quad], removed: Iterable[Quad]) -> None:
    for quad in (*added, *(quad for quad in removed if not _is_in_own_graph(quad))):
        if v.is_sealed_graph(quad.graph_name):
            raise QueryError(
                "An update can't change the sealed record of sessions.",
                f"Name the graphs that it is about. {_ALLOWED}",
            )
        if quad.graph_name == v.SOURCE_GRAPH or is_reserved_statement(quad):
            raise QueryError(
                "An update can't change what answers rest on (documents, pages, chunks, evidence,"
                " accessions, how they were read, claims, communities and reports), nor speak in"
                f" the terms that say it, and this would: {_format_quad(quad)}",
                _ALLOWED,
            )
    for quad in added:
        if isinstance(quad.subject, BlankNode) or isinstance(quad.object, BlankNode):
            raise QueryError("An update can't create blank nodes.", "Give every node an IRI.")
        if isinstance(quad.object, Triple) and quad.graph_name == v.KNOWLEDGE_GRAPH:
            raise QueryError(
                "Knowledge relates entities and values, and this would relate a triple: "
                f"{_format_quad(quad)}",
                "Speak of triples in a graph of your own (GRAPH <...> { ... }).",
            )
