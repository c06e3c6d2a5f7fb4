"""Evaluation of the algebra over knowledge, bounded in time and in rows."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import Literal, NamedNode, QueryBoolean, Variable

from tgraph.compute.algebra import (
    CompareGroups,
    Compares,
    ComparesTo,
    Condition,
    Equals,
    Extreme,
    GroupRows,
    ListRows,
    OneOf,
    Query,
    Share,
    Within,
    totalled_path,
)
from tgraph.compute.printing import (
    GROUP,
    MEASURED,
    ROW,
    SHOWN,
    VALUE,
    Node,
    Pattern,
    exclusions_of,
    pattern_of,
    print_query,
    print_row_count,
    print_solutions,
    reopening_pattern,
    restrict_rows,
    whole_of,
)
from tgraph.compute.results import Solution, bound_value, compared_value, result_values
from tgraph.errors import QueryError
from tgraph.model import Object
from tgraph.store.base import Solutions, Store, Term

Bindings = Mapping[str, Object]


@dataclass(frozen=True, slots=True)
class EvaluationBounds:
    """The bounds of a query: the largest number of rows read, and the time limit in seconds."""

    rows: int = 10_000
    seconds: float = 20.0


BOUNDS = EvaluationBounds()

MOST_COMPARED = 100
"""Rows that the greatest or least of more than are read is compared with."""

MOST_RECORDED = 1_000
"""Rows of a result that the record has."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of a query: its bindings, the solutions that they are computed from, and those
    that negations exclude.

    ``conflicts`` are the solutions of rows with several values where one is computed with; such
    rows are in no total and no order. ``reopening`` are the solutions of
    excluded rows that would count if nothing excluded them, ``searched`` the values of all members
    where none is in the result, ``whole`` all members that a share is of. ``inner`` are the results
    of the queries that conditions refer to. ``is_cut`` says that there are more solutions than were
    read, and ``row_count`` how many rows they all have."""

    query: Query
    sparql: str
    bindings: tuple[Bindings, ...]
    solutions: tuple[Solution, ...]
    conflicts: tuple[Solution, ...] = ()
    excluded: tuple[Solution, ...] = ()
    reopening: tuple[Solution, ...] = ()
    searched: tuple[Solution, ...] = ()
    whole: tuple[Solution, ...] = ()
    inner: tuple[Computed, ...] = ()
    is_cut: bool = False
    row_count: int = 0

    @property
    def rows(self) -> tuple[NamedNode, ...]:
        """The members, in the order of the solutions."""
        return tuple(dict.fromkeys(solution.row for solution in self.solutions))


def evaluate_query(store: Store, query: Query, bounds: EvaluationBounds = BOUNDS) -> Computed:
    """Return the result of a query over knowledge.

    Raises ``QueryError`` for a query that takes longer than allowed."""
    return _evaluate(store, query, bounds, time.monotonic() + bounds.seconds)


def _evaluate(store: Store, asked: Query, bounds: EvaluationBounds, deadline: float) -> Computed:
    sparql = print_query(asked)
    query, inner = _resolve_conditions(store, asked, bounds, deadline)
    pattern = pattern_of(query)
    bindings = tuple(_read_bindings(store, sparql, bounds, deadline))
    solutions = list(_read_solutions(store, pattern, query, bounds, deadline))
    is_cut = len(solutions) > bounds.rows or len(bindings) > bounds.rows
    solutions = solutions[: bounds.rows]
    if is_cut and isinstance(query, Extreme):  # the first of all, not the first that were read
        first = restrict_rows(pattern, _first_rows(query, bindings[: bounds.rows]))
        solutions = list(_read_solutions(store, first, query, bounds, deadline))[: bounds.rows]
    elif is_cut and _needs_all_rows(query):
        raise QueryError(
            f"The query compares more than {bounds.rows:,} rows.",
            "Raise sparql_search.most_rows, or ask with `tgraph sparql`.",
        )
    conflicts = _find_conflicts(query, solutions)
    excluded = [
        replace(solution, excluding=solution.statements[: exclusion.length])
        for exclusion in exclusions_of(query)
        for solution in _read_solutions(store, exclusion.pattern, query, bounds, deadline)
    ]
    whole = (
        _read_solutions(store, pattern_of(whole_of(query)), query, bounds, deadline)
        if isinstance(query, Share)
        else ()
    )
    conflicting = {(solution.row, solution.group) for solution in conflicts}
    consistent = tuple(s for s in solutions if (s.row, s.group) not in conflicting)
    row_count = len({solution.row for solution in consistent})
    if is_cut:
        [counted] = _read_bindings(store, print_row_count(query), bounds, deadline)
        row_count = int(counted["count"].value)
    return Computed(
        asked,
        sparql,
        bindings[: bounds.rows],
        consistent,
        tuple(conflicts),
        tuple(excluded[: bounds.rows]),
        tuple(_read_reopening(store, query, excluded, bounds, deadline)),
        () if solutions else tuple(_read_searched(store, query, bounds, deadline)),
        tuple(whole),
        inner,
        is_cut,
        row_count,
    )


def _needs_all_rows(query: Query) -> bool:
    """Return whether the answer is worked out from the rows, and not by the query."""
    has_place = isinstance(query, GroupRows) and query.place is not None
    return has_place or isinstance(query, CompareGroups | Share)


def _first_rows(query: Extreme, bindings: Sequence[Bindings]) -> list[NamedNode]:
    """Return the rows that have the places of an extreme, and those that these are compared with
    first; of equal ones all."""
    values = [compared_value(binding[VALUE.value]) for binding in bindings]
    places = list(dict.fromkeys(values))[: query.places]
    last = max(MOST_COMPARED, len(values) - values[::-1].index(places[-1])) if places else 0
    return [_node(binding[ROW.value]) for binding in bindings[:last]]


def _resolve_conditions(
    store: Store, query: Query, bounds: EvaluationBounds, deadline: float
) -> tuple[Query, tuple[Computed, ...]]:
    """Return a query with the results of the queries that its conditions refer to in their place,
    and these results."""
    conditions: list[Condition] = []
    inner = []
    for condition in query.rows.conditions:
        if isinstance(condition, Within | ComparesTo):
            computed = _evaluate(store, condition.query, bounds, deadline)
            if computed.is_cut:
                raise QueryError(
                    f"A part of the query has more than {bounds.rows:,} rows.",
                    "Raise sparql_search.most_rows, or ask with `tgraph sparql`.",
                )
            inner.append(computed)
            condition = _resolve_condition(condition, computed)
        conditions.append(condition)
    if not inner:
        return query, ()
    rows = replace(query.rows, conditions=tuple(conditions))
    return replace(query, rows=rows), tuple(inner)


def _resolve_condition(condition: Within | ComparesTo, computed: Computed) -> Condition:
    if isinstance(condition, ComparesTo):
        bound = bound_value(condition.query, computed.solutions)
        none = OneOf(())
        return none if bound is None else Compares(condition.path, condition.order, bound)
    values = result_values(condition.query, computed.solutions)
    return Equals(condition.path, values, "") if condition.path else OneOf(values)


def _read_reopening(
    store: Store,
    query: Query,
    excluded: Sequence[Solution],
    bounds: EvaluationBounds,
    deadline: float,
) -> Iterator[Solution]:
    rows = {solution.row for solution in excluded}
    if rows:
        pattern = reopening_pattern(query)
        for solution in _read_solutions(store, pattern, query, bounds, deadline):
            if solution.row in rows:
                yield solution


def _read_searched(
    store: Store, query: Query, bounds: EvaluationBounds, deadline: float
) -> Iterator[Solution]:
    """Yield what the members have at the ends of the conditions' paths, where none meets them."""
    for condition in query.rows.conditions:
        if isinstance(condition, OneOf) or condition.path is None:
            continue
        members = ListRows(replace(query.rows, conditions=()), condition.path)
        yield from _read_solutions(store, pattern_of(members), members, bounds, deadline)


def _read_bindings(
    store: Store, sparql: str, bounds: EvaluationBounds, deadline: float
) -> Iterator[Bindings]:
    results = store.query(sparql)
    if isinstance(results, QueryBoolean):
        yield {"is": Literal(bool(results))}
        return
    assert isinstance(results, Solutions)
    names = [variable.value for variable in results.variables]
    for number, row in enumerate(results):
        if number > bounds.rows:
            return
        _check_time(deadline)
        yield {
            name: term
            for name, term in zip(names, row, strict=True)
            if isinstance(term, NamedNode | Literal)
        }


def _read_solutions(
    store: Store, pattern: Pattern, query: Query, bounds: EvaluationBounds, deadline: float
) -> Iterator[Solution]:
    results = store.query(print_solutions(pattern, bounds.rows + 1))
    assert isinstance(results, Solutions)
    is_measured = isinstance(query, Extreme) or totalled_path(query) is not None
    value = MEASURED if is_measured else VALUE
    solutions = []
    for row in results:
        _check_time(deadline)
        terms = {
            variable.value: term for variable, term in zip(results.variables, row, strict=True)
        }
        statements = tuple(
            (
                _bound(part.subject, terms),
                part.predicate,
                _bound(part.object, terms),
            )
            for part in pattern.triples
        )
        solutions.append(
            Solution(
                _node(terms[ROW.value]),
                statements,  # type: ignore[arg-type]
                _object(terms.get(value.value)),
                _object(terms.get(GROUP.value)),
                _object(terms.get(SHOWN.value)),
            )
        )
    yield from sorted(
        solutions, key=lambda s: (str(s.row), str(s.group), str(s.value), str(s.statements))
    )


def _check_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise QueryError("The query takes too long.", "Ask for less, or with `tgraph sparql`.")


def _bound(node: Node, terms: Mapping[str, Term | None]) -> Term | None:
    return terms[node.value] if isinstance(node, Variable) else node


def _node(term: Term | None) -> NamedNode:
    assert isinstance(term, NamedNode)
    return term


def _object(term: Term | None) -> Object | None:
    return term if isinstance(term, NamedNode | Literal) else None


def _find_conflicts(query: Query, solutions: list[Solution]) -> list[Solution]:
    """Return the solutions of rows that have several values where one is computed with."""
    if totalled_path(query) is None:
        return []
    values: defaultdict[tuple[NamedNode, Object | None], set[object]] = defaultdict(set)
    for solution in solutions:
        if solution.value is not None:
            values[solution.row, solution.group].add(compared_value(solution.value))
    return [s for s in solutions if len(values[s.row, s.group]) > 1]


def read_result(store: Store, sparql: str, bounds: EvaluationBounds = BOUNDS) -> list[Bindings]:
    """Return the bindings of a query that is on record, without making its algebra."""
    deadline = time.monotonic() + bounds.seconds
    return list(_read_bindings(store, sparql, bounds, deadline))[: bounds.rows]


def write_bindings(bindings: Sequence[Bindings]) -> str:
    """Return bindings as JSON, each term as N-Triples."""
    rows = [{name: str(term) for name, term in row.items()} for row in bindings[:MOST_RECORDED]]
    return json.dumps(rows, ensure_ascii=False)
