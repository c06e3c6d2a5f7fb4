"""RDF store interface, implementable by any SPARQL 1.1 endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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

    def query(self, text: str, *, union: bool = True) -> Results:
        """The result of a SPARQL 1.2 query; ``union`` reads all graphs as the default graph."""

    def extend(self, quads: Iterable[Quad]) -> None:
        """Add quads atomically."""

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads; missing quads cause no error."""


def load_query(name: str, parameters: Mapping[str, Sequence[Term]] | None = None) -> str:
    """Return the query in ``sparql/NAME.rq``, replacing each ``<param:NAME>`` with its terms.

    pyoxigraph serialises and escapes terms, so values cannot alter the query."""
    text = read_text("sparql", f"{name}.rq")
    for key, terms in (parameters or {}).items():
        text = text.replace(f"<param:{key}>", " ".join(str(term) for term in terms))
    return text


def select_rows(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
    *,
    union: bool = True,
) -> list[dict[str, Term | None]]:
    """Return query file results as dictionaries from variable name to term."""
    return list(iterate_rows(store, name, parameters, union=union))


def iterate_rows(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
    *,
    union: bool = True,
) -> Iterator[dict[str, Term | None]]:
    """Yield query results like ``select_rows``, lazily, for large results."""
    results = store.query(load_query(name, parameters), union=union)
    if not isinstance(results, Solutions):
        raise TypeError(f"sparql/{name}.rq is not a SELECT query")
    columns = [variable.value for variable in results.variables]
    return (dict(zip(columns, row, strict=True)) for row in results)


def text_of(term: object) -> str:
    """Return an IRI's or literal's text; return an empty string for other values."""
    return term.value if isinstance(term, NamedNode | Literal) else ""
