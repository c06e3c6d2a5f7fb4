"""RDF store interface, implementable by any SPARQL 1.1 endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol, runtime_checkable

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolution,
    QueryTriples,
    Triple,
    Variable,
)

from tgraph import vocabulary as v
from tgraph.resources import read_text

Term = NamedNode | Literal | BlankNode | Triple
Subject = NamedNode | BlankNode | Triple
Graph = NamedNode | BlankNode | DefaultGraph
SolutionRow = Mapping[str, Term | None]


@runtime_checkable
class Solutions(Protocol):
    """SELECT result rows, readable once."""

    @property
    def variables(self) -> list[Variable]: ...
    def __iter__(self) -> Iterator[QuerySolution]: ...


Results = Solutions | QueryBoolean | QueryTriples


class Store(Protocol):
    """An RDF dataset reader; stores other than snapshots also accept changes."""

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        """Return quads matching a pattern, in arbitrary order; None matches anything."""

    def lines(self, graph: NamedNode) -> list[bytes]:
        """The quads of a named graph as lines of N-Quads, in no promised order: half the time of
        making quads first."""

    def query(self, text: str) -> Results:
        """The result of a SPARQL 1.2 query, whose default graph is knowledge."""

    def extend(self, quads: Iterable[Quad]) -> None:
        """Add quads atomically."""

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads; missing quads cause no error."""


def load_query(
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
    *,
    without: Sequence[NamedNode] = (),
) -> str:
    """Return the query in ``sparql/NAME.rq``, replacing each ``<param:NAME>`` with its terms.

    pyoxigraph serialises and escapes terms, so values cannot alter the query. No variable for a
    graph matches the graphs ``without``."""
    text = _leave_out(read_text("sparql", f"{name}.rq"), without)
    for key, terms in (parameters or {}).items():
        text = text.replace(f"<param:{key}>", " ".join(str(term) for term in terms))
    return text


_ANY_GRAPH = re.compile(r"GRAPH (\?\w+) \{")


def _leave_out(query: str, graphs: Sequence[NamedNode]) -> str:
    """Return the query with the graphs taken from what each ``GRAPH ?name { ... }`` matches."""
    names = " ".join(map(str, graphs))
    for block in reversed([*_ANY_GRAPH.finditer(query)] if graphs else []):
        depth, end = 1, block.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(query[end], 0)
            end += 1
        query = f"{query[:end]} MINUS {{ VALUES {block[1]} {{ {names} }} }}{query[end:]}"
    return query


def select_rows(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
) -> list[dict[str, Term | None]]:
    """Return query file results as dictionaries from variable name to term."""
    return list(iterate_rows(store, name, parameters))


def iterate_rows(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
) -> Iterator[dict[str, Term | None]]:
    """Yield query results like ``select_rows``, lazily, for large results."""
    results = store.query(load_query(name, parameters))
    if not isinstance(results, Solutions):
        raise TypeError(f"sparql/{name}.rq is not a SELECT query")
    columns = [variable.value for variable in results.variables]
    return (dict(zip(columns, row, strict=True)) for row in results)


def match_record(
    store: Store,
    subject: Subject | None = None,
    predicate: NamedNode | None = None,
    obj: Term | None = None,
) -> Iterator[Quad]:
    """Return the record's own quads that match: those of the source graph, bundles, catalogues.

    What knowledge or a user's graph says is not on record, whatever it says."""
    quads = store.match(subject, predicate, obj, None)
    return (quad for quad in quads if v.is_record_graph(quad.graph_name))


def read_literal(store: Store, subject: NamedNode, predicate: NamedNode) -> str:
    """Return a subject's literal: for reserved subjects from the record first, for others from
    knowledge first; "" without a literal."""
    recorded = match_record(store, subject, predicate)
    known = store.match(subject, predicate, None, v.KNOWLEDGE_GRAPH)
    order = (recorded, known) if v.is_reserved(subject.value) else (known, recorded)
    texts = (quad.object.value for quad in chain(*order) if isinstance(quad.object, Literal))
    return next(texts, "")


def text_of(term: object) -> str:
    """Return an IRI's or literal's text; return an empty string for other values."""
    return term.value if isinstance(term, NamedNode | Literal) else ""
