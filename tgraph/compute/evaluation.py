"""Evaluation of the algebra over knowledge, bounded in time and in rows."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pyoxigraph import Literal, NamedNode, QueryBoolean, Variable

from tgraph.compute.algebra import (
    Aggregate,
    CompareGroups,
    Compares,
    ComparesTo,
    Condition,
    Count,
    Equals,
    Extreme,
    GroupRows,
    ListRows,
    OneOf,
    Query,
    RowShare,
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
    is_single,
    pattern_of,
    print_measures,
    print_order,
    print_query,
    print_row_count,
    print_solutions,
    reopening_pattern,
    restrict_rows,
    whole_of,
)
from tgraph.compute.results import Solution, bound_value, compared_value, order_of, result_values
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

MOST_LISTED = 500
"""Rows of many more members that a query lists. Oxigraph goes through all members for 1,000."""

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
    reading = _read_places(store, query, bounds, deadline) or _read_rows(
        store, query, sparql, bounds, deadline
    )
    solutions, is_cut = reading.solutions, reading.is_cut
    conflicts = _find_conflicts(query, solutions)
    excluded = [
        replace(solution, excluding=solution.statements[: exclusion.length])
        for exclusion in exclusions_of(query)
        for solution in _read_solutions(store, exclusion.pattern, query, bounds, deadline)
    ]
    whole = (
        _read_solutions(store, pattern_of(whole_of(query)), query, bounds, deadline)
        if isinstance(query, RowShare)
        else ()
    )
    conflicting = {(solution.row, solution.group) for solution in conflicts}
    consistent = tuple(s for s in solutions if (s.row, s.group) not in conflicting)
    row_count = reading.row_count
    if row_count is None:
        row_count = len({solution.row for solution in consistent})
    return Computed(
        asked,
        sparql,
        tuple(reading.bindings[: bounds.rows]),
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


@dataclass(frozen=True, slots=True)
class _RowReading:
    """Bindings and solutions of a query; ``row_count`` counts all rows where some were not read."""

    bindings: Sequence[Bindings]
    solutions: list[Solution]
    is_cut: bool = False
    row_count: int | None = None


def _read_rows(
    store: Store, query: Query, sparql: str, bounds: EvaluationBounds, deadline: float
) -> _RowReading:
    """Return the result of a query and its solutions, the first ``bounds.rows`` of them."""
    pattern = pattern_of(query)
    terms = _read_terms(store, pattern, bounds, deadline)
    is_cut = len(terms) > bounds.rows
    if is_cut and _needs_no_rows(query):
        solutions = list(_build_solutions(terms[: min(bounds.rows, MOST_RECORDED)], pattern, query))
        return _count_rows(store, query, sparql, solutions, bounds, deadline)
    solutions = list(_build_solutions(terms, pattern, query))
    if is_cut:
        bindings = list(_read_bindings(store, sparql, bounds, deadline))
    else:
        bindings = _read_few(store, query, sparql, solutions, bounds, deadline)
    is_cut = is_cut or len(bindings) > bounds.rows
    if not is_cut:
        return _RowReading(bindings, solutions)
    if _needs_all_rows(query):
        raise QueryError(
            f"The query compares more than {bounds.rows:,} rows.",
            "Raise sparql_search.most_rows, or ask with `tgraph sparql`.",
        )
    if isinstance(query, Extreme):  # the first of all, not the first that were read
        first = restrict_rows(pattern, _first_rows(query, bindings[: bounds.rows]))
        solutions = list(_read_solutions(store, first, query, bounds, deadline))
    [counted] = _read_bindings(store, print_row_count(query), bounds, deadline)
    return _RowReading(bindings, solutions[: bounds.rows], True, _read_count(counted))


def _needs_no_rows(query: Query) -> bool:
    """Return whether the query alone gives the answer, and no row of it contradicts itself."""
    is_total = isinstance(query, Aggregate) and is_single(query)
    return is_total or (isinstance(query, Count) and query.distinct is None)


def _count_rows(
    store: Store,
    query: Query,
    sparql: str,
    solutions: list[Solution],
    bounds: EvaluationBounds,
    deadline: float,
) -> _RowReading:
    text = print_measures(query) if isinstance(query, Aggregate) else sparql
    [counted] = _read_bindings(store, text, bounds, deadline)
    name = "total" if isinstance(query, Aggregate) else "count"
    return _RowReading([{name: counted[name]}], solutions, True, _read_count(counted))


def _read_few(
    store: Store,
    query: Query,
    sparql: str,
    solutions: Sequence[Solution],
    bounds: EvaluationBounds,
    deadline: float,
) -> list[Bindings]:
    """Return the result of a query whose solutions were all read.

    A query for few rows among many members is restricted to those rows."""
    rows, known_class = tuple(dict.fromkeys(s.row for s in solutions)), query.rows.known_class
    if isinstance(query, Count) and query.distinct is None:
        return [{"count": Literal(len(rows))}]
    is_few = known_class is not None and 0 < len(rows) <= MOST_LISTED <= known_class.members // 10
    if is_few and not query.rows.step and not isinstance(query, RowShare):
        sparql = print_query(replace(query, rows=replace(query.rows, only=rows)))
    return list(_read_bindings(store, sparql, bounds, deadline))


def _read_places(
    store: Store, query: Query, bounds: EvaluationBounds, deadline: float
) -> _RowReading | None:
    """Return the first places of an extreme over more rows than ``bounds.rows``, without sorting
    all rows; None where the first rows may not be all of the places."""
    known_class = query.rows.known_class
    if not isinstance(query, Extreme) or query.shown or not is_single(query):
        return None
    assert known_class is not None
    assert query.path is not None
    if known_class.members <= bounds.rows:
        return None
    ordered = list(_read_bindings(store, print_order(query, bounds.rows + 1), bounds, deadline))
    if len(ordered) <= bounds.rows:
        return None
    values = [compared_value(row[MEASURED.value]) for row in ordered]
    places = list(dict.fromkeys(values))[: query.places]
    recorded = values[min(MOST_RECORDED, bounds.rows) - 1]
    end = max(_end(values, recorded), _end(values, places[-1]))
    if end == len(ordered):  # equals of the last may not have been read
        return None
    first = sorted(ordered[:end], key=lambda row: row[ROW.value].value)
    first.sort(key=lambda row: order_of(row[MEASURED.value]), reverse=query.is_most)
    bindings = [{"row": row[ROW.value], "value": row[MEASURED.value]} for row in first]
    compared = restrict_rows(pattern_of(query), _first_rows(query, bindings))
    solutions = list(_read_solutions(store, compared, query, bounds, deadline))
    return _RowReading(bindings, solutions, True, _count_measured(store, query, bounds, deadline))


def _count_measured(store: Store, query: Extreme, bounds: EvaluationBounds, deadline: float) -> int:
    """Return the number of rows with a value, as the catalogue counts them where all are asked."""
    known_class, path = query.rows.known_class, query.path
    if known_class is not None and path is not None and not query.rows.conditions:
        return dict(known_class.properties)[path.last.iri]
    [counted] = _read_bindings(store, print_measures(query), bounds, deadline)
    return _read_count(counted)


def _read_count(binding: Bindings) -> int:
    return int(binding["count"].value)


def _needs_all_rows(query: Query) -> bool:
    """Return whether the answer is worked out from the rows, and not by the query."""
    has_place = isinstance(query, GroupRows) and query.place is not None
    return has_place or isinstance(query, CompareGroups | RowShare)


def _first_rows(query: Extreme, bindings: Sequence[Bindings]) -> list[NamedNode]:
    """Return the rows that have the places of an extreme, of equal ones all, and those that these
    are compared with first."""
    values = [compared_value(binding[VALUE.value]) for binding in bindings]
    places = list(dict.fromkeys(values))[: query.places]
    last = max(MOST_COMPARED, _end(values, places[-1])) if places else 0
    return [_node(binding[ROW.value]) for binding in bindings[:last]]


def _end(values: Sequence[Decimal | str], value: Decimal | str) -> int:
    """Return the position after the last value that is equal."""
    return len(values) - values[::-1].index(value)


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
    return _build_solutions(_read_terms(store, pattern, bounds, deadline), pattern, query)


def _read_terms(
    store: Store, pattern: Pattern, bounds: EvaluationBounds, deadline: float
) -> list[Mapping[str, Term | None]]:
    results = store.query(print_solutions(pattern, bounds.rows + 1))
    assert isinstance(results, Solutions)
    names = [variable.value for variable in results.variables]
    rows: list[Mapping[str, Term | None]] = []
    for row in results:
        _check_time(deadline)
        rows.append(dict(zip(names, row, strict=True)))
    return rows


def _build_solutions(
    rows: Sequence[Mapping[str, Term | None]], pattern: Pattern, query: Query
) -> Iterator[Solution]:
    is_measured = isinstance(query, Extreme) or totalled_path(query) is not None
    value = MEASURED if is_measured else VALUE
    solutions = [
        Solution(
            _node(terms[ROW.value]),
            tuple(
                (_bound(part.subject, terms), part.predicate, _bound(part.object, terms))  # type: ignore[misc]
                for part in pattern.triples
            ),
            _object(terms.get(value.value)),
            _object(terms.get(GROUP.value)),
            _object(terms.get(SHOWN.value)),
        )
        for terms in rows
    ]
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
