"""Solutions of a query, and which of them its result says: of a greatest the winners alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from pyoxigraph import Literal, NamedNode

from tgraph.compute.algebra import Count, Difference, Extreme, GroupRows, ListRows, Query
from tgraph.index.graph_source import Statement
from tgraph.model import Object

Measure = Fraction | str


@dataclass(frozen=True, slots=True)
class Solution:
    """A solution of a query's pattern: the member, its values, and the statements it rests on.

    Of a row that a negation excludes ``excluding`` are the statements that do."""

    row: NamedNode
    statements: tuple[Statement, ...]
    value: Object | None = None
    group: Object | None = None
    shown: Object | None = None
    excluding: tuple[Statement, ...] = ()


def compared_value(value: Object) -> Decimal | str:
    """Return what a value is compared by: its number, or its text."""
    try:
        number = Decimal(value.value)
    except InvalidOperation:
        return value.value
    return number if number.is_finite() else value.value


def order_of(value: Object | None) -> tuple[int, Decimal | str]:
    """Return the key that puts values in order: numbers before texts."""
    assert value is not None
    key = compared_value(value)
    return (1, key) if isinstance(key, str) else (0, key)


def winners(query: Extreme, solutions: Iterable[Solution]) -> list[Solution]:
    """Return the solutions of an extreme that have its places, equals together, best first."""
    ordered = sorted(solutions, key=lambda s: order_of(s.value), reverse=query.is_most)
    values = list(dict.fromkeys(order_of(solution.value) for solution in ordered))
    best = set(values[: query.places])
    return [solution for solution in ordered if order_of(solution.value) in best]


def total_values(query: GroupRows, values: Sequence[Object | None]) -> Measure:
    """Return the count or total of the values of a group's members."""
    if query.path is None:
        return Fraction(len(values))
    if query.total in ("minimum", "maximum"):
        choose = min if query.total == "minimum" else max
        chosen = choose(map(order_of, values))[1]
        return chosen if isinstance(chosen, str) else Fraction(chosen)
    compared = [compared_value(value) for value in values if value is not None]
    numbers = [Fraction(number) for number in compared if isinstance(number, Decimal)]
    total = sum(numbers, Fraction())
    return total / len(numbers) if query.total == "average" and numbers else total


def total_groups(query: GroupRows, solutions: Iterable[Solution]) -> dict[Object, Measure]:
    """Return the count or total of each group; a member counts once, however it is found."""
    groups: defaultdict[Object, dict[NamedNode, Object | None]] = defaultdict(dict)
    for solution in solutions:
        assert solution.group is not None
        groups[solution.group][solution.row] = solution.value
    return {group: total_values(query, list(rows.values())) for group, rows in groups.items()}


def winning_groups(query: GroupRows, totals: Mapping[Object, Measure]) -> list[Object]:
    """Return the groups in the place that is asked, equals together; all where none is."""
    if query.place is None or not totals:
        return list(totals)
    best = (min if query.place == "least" else max)(totals.values(), key=_measure_order)
    return [group for group, total in totals.items() if total == best]


def order_groups(query: GroupRows, totals: Mapping[Object, Measure]) -> list[Object]:
    """Return groups in order, those that are nearest to the place that is asked first."""
    is_descending = query.place != "least"
    return sorted(totals, key=lambda group: _measure_order(totals[group]), reverse=is_descending)


def _measure_order(measure: Measure) -> tuple[int, Measure]:
    return (1, measure) if isinstance(measure, str) else (0, measure)


def decisive_solutions(query: Query, solutions: Sequence[Solution]) -> list[Solution]:
    """Return the solutions that decide a result: of an extreme and of groups the first places."""
    if isinstance(query, Extreme):
        return winners(query, solutions)
    if not isinstance(query, GroupRows):
        return list(solutions)
    totals = total_groups(query, solutions)
    groups = set(winning_groups(query, totals))
    decisive = [solution for solution in solutions if solution.group in groups]
    if query.total not in ("minimum", "maximum"):
        return decisive
    return [s for s in decisive if total_values(query, [s.value]) == totals[_group(s)]]


def _group(solution: Solution) -> Object:
    assert solution.group is not None
    return solution.group


def overturning_statements(query: Query, solutions: Sequence[Solution]) -> set[Statement]:
    """Return the statements of lesser groups without which such a group would have the place: the
    least addend of an average that would be the greatest."""
    if not isinstance(query, GroupRows) or query.place is None:
        return set()
    totals = total_groups(query, solutions)
    if len(groups := winning_groups(query, totals)) == len(totals):
        return set()
    best = _measure_order(totals[groups[0]])
    lesser: defaultdict[Object, defaultdict[NamedNode, list[Solution]]] = defaultdict(
        lambda: defaultdict(list)
    )
    touched: defaultdict[Statement, set[tuple[Object, NamedNode]]] = defaultdict(set)
    for solution in solutions:
        group = _group(solution)
        if group not in groups:
            lesser[group][solution.row].append(solution)
            for statement in solution.statements:
                touched[statement].add((group, solution.row))
    return {
        statement
        for statement, places in touched.items()
        if _overturns(query, statement, places, lesser, best)
    }


def _overturns(
    query: GroupRows,
    statement: Statement,
    places: Iterable[tuple[Object, NamedNode]],
    lesser: Mapping[Object, Mapping[NamedNode, Sequence[Solution]]],
    best: tuple[int, Measure],
) -> bool:
    lost: defaultdict[Object, set[NamedNode]] = defaultdict(set)
    for group, row in places:
        if all(statement in solution.statements for solution in lesser[group][row]):
            lost[group].add(row)
    for group, rows in lost.items():
        values = [entries[0].value for row, entries in lesser[group].items() if row not in rows]
        if values:
            total = _measure_order(total_values(query, values))
            if total <= best if query.place == "least" else total >= best:
                return True
    return False


def result_values(
    query: ListRows | Extreme | GroupRows, solutions: Sequence[Solution]
) -> tuple[Object, ...]:
    """Return the values that a query within another gives: its members, or its groups."""
    decisive = decisive_solutions(query, solutions)
    terms = [s.group if isinstance(query, GroupRows) else s.row for s in decisive]
    return tuple(dict.fromkeys(term for term in terms if term is not None))


def bound_value(query: Extreme, solutions: Sequence[Solution]) -> Decimal | Literal | None:
    """Return the value of an inner query as a bound; None for an inner query without a value."""
    best = winners(query, solutions)
    if not best or not isinstance(value := best[0].value, Literal):
        return None
    if query.path is not None and query.path.kind == "date":
        return value
    number = compared_value(value)
    return number if isinstance(number, Decimal) else None


def result_terms(query: Query, bindings: Sequence[Mapping[str, Object]]) -> list[Object]:
    """Return the terms that a result answers with, each once: members, values, or a number."""
    match query:
        case GroupRows() | Extreme():
            terms = _first_terms(query, bindings)
        case ListRows(shown=shown):
            terms = [row["value" if shown else "row"] for row in bindings]
        case Difference():
            numbers = [compared_value(row["value"]) for row in bindings]
            one, two = numbers if len(numbers) == 2 else ("", "")
            apart = isinstance(one, Decimal) and isinstance(two, Decimal)
            terms = [Literal(str(abs(one - two)))] if apart else []  # type: ignore[operator]
        case Count(distinct=distinct):
            terms = [bindings[0]["distinct" if distinct else "count"]]
        case _:
            terms = [next(iter(row.values())) for row in bindings[:1] if row]
    return list(dict.fromkeys(terms))


def _first_terms(
    query: GroupRows | Extreme, bindings: Sequence[Mapping[str, Object]]
) -> list[Object]:
    """Return the terms in the places that are asked; bindings stand in their order."""
    if isinstance(query, Extreme):
        name, key, places = "shown" if query.shown else "row", "value", query.places
    else:
        name, key, places = "group", "total" if query.path else "count", 1
        if query.place is None:
            return [row[name] for row in bindings]
    values = [compared_value(row[key]) for row in bindings]
    best = list(dict.fromkeys(values))[:places]
    return [row[name] for row, value in zip(bindings, values, strict=True) if value in best]
