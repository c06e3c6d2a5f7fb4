"""The interface of the RDF store, small enough for any SPARQL 1.1 endpoint to implement."""

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
Row = Mapping[str, Term | None]


@runtime_checkable
class Solutions(Protocol):
    """The rows of a SELECT, which are read once."""

    @property
    def variables(self) -> list[Variable]: ...
    def __iter__(self) -> Iterator[QuerySolution]: ...


Results = Solutions | QueryBoolean | QueryTriples


class Store(Protocol):
    """Reads a dataset, and changes it where it is not a snapshot."""

    def match(
        self,
        subject: Subject | None = None,
        predicate: NamedNode | None = None,
        obj: Term | None = None,
        graph: Graph | None = None,
    ) -> Iterator[Quad]:
        """The quads of the pattern, in no promised order; None stands for anything."""

    def lines(self, graph: NamedNode) -> list[bytes]:
        """The quads of a named graph as lines of N-Quads, in no promised order: half the time of
        making quads first."""

    def query(self, text: str, *, union: bool = True) -> Results:
        """The result of a SPARQL 1.2 query; ``union`` reads all graphs as the default graph."""

    def extend(self, quads: Iterable[Quad]) -> None:
        """Add quads, all or none."""

    def remove(self, quads: Iterable[Quad]) -> None:
        """Remove quads; a quad that is not there is no error."""


def load_query(name: str, parameters: Mapping[str, Sequence[Term]] | None = None) -> str:
    """The query of ``sparql/NAME.rq`` with each ``<param:NAME>`` replaced by its terms.

    Terms are serialised by pyoxigraph, which escapes them, so no value can change the query.
    """
    text = read_text("sparql", f"{name}.rq")
    for key, terms in (parameters or {}).items():
        text = text.replace(f"<param:{key}>", " ".join(str(term) for term in terms))
    return text


def select(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
    *,
    union: bool = True,
) -> list[dict[str, Term | None]]:
    """The rows of a query file, as dictionaries from variable name to term."""
    return list(solutions(store, name, parameters, union=union))


def solutions(
    store: Store,
    name: str,
    parameters: Mapping[str, Sequence[Term]] | None = None,
    *,
    union: bool = True,
) -> Iterator[dict[str, Term | None]]:
    """As ``select``, one after the other: for very many."""
    results = store.query(load_query(name, parameters), union=union)
    if not isinstance(results, Solutions):
        raise TypeError(f"sparql/{name}.rq is not a SELECT query")
    columns = [variable.value for variable in results.variables]
    return (dict(zip(columns, row, strict=True)) for row in results)


def text_of(term: object) -> str:
    """The IRI or the text of a term; empty where there is none."""
    return term.value if isinstance(term, NamedNode | Literal) else ""
