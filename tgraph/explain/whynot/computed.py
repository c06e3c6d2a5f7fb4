"""Why a row is not in a computed result: which part of the query keeps it out, and by which
statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Condition,
    Extreme,
    ListRows,
    OneOf,
    Path,
    Query,
    Rows,
    measured_path,
)
from tgraph.compute.computation import catalogue_of
from tgraph.compute.evaluation import Computed, EvaluationBounds, evaluate_query
from tgraph.compute.results import Solution, winners
from tgraph.compute.sentences import describe_condition, describe_value, list_names
from tgraph.errors import QueryError
from tgraph.explain.trace.values import Trace
from tgraph.explain.whynot.expected import Expected
from tgraph.index.graph_source import Statement
from tgraph.model import ComputedResult, Object
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import labels_of

_MOST_BEARERS = 50
"""Rows looked at that have an expected text as a value."""


@dataclass(frozen=True, slots=True)
class RowAbsence:
    """Why a row is not in a result, in a sentence, with the statements that keep it out; without
    ``is_row`` there is no such row."""

    reason: str
    statements: tuple[Statement, ...] = ()
    is_row: bool = True


def describe_missing_query(computed: ComputedResult) -> str:
    """Return why a question became no query."""
    if not computed.unchosen:
        return "nothing was computed, since the question has no words for a query"
    best = computed.unchosen[0]
    return f"nothing was computed: the likeliest query was not chosen, because {best.rejection}"


def explain_row(trace: Trace, expected: Expected, context: Context) -> RowAbsence | None:
    """Return why the expected row is not in the result of a session's query; None where it is, or
    where no row is expected, or where the query can't be read."""
    from tgraph.compute.query_reader import read_query  # loads a parser

    settings = context.settings.sparql_search
    try:
        query = read_query(trace.computed.sparql if trace.computed else "", catalogue_of(context))
    except QueryError:
        return None
    bounds = EvaluationBounds(settings.most_rows, settings.seconds)
    search = _RowSearch(query, context, bounds)
    rows = list(search.find_rows(expected))
    if not rows:
        return search.explain_unknown(expected)
    return next(filter(None, map(search.explain, rows)), None)


class _RowSearch:
    """What a query makes of single rows."""

    def __init__(self, query: Query, context: Context, bounds: EvaluationBounds) -> None:
        self._query = query
        self._context = context
        self._bounds = bounds

    def find_rows(self, expected: Expected) -> Iterator[NamedNode]:
        """Yield the members of the query's class that are called, or have, what is expected."""
        nodes = [NamedNode(iri) for iri in sorted(expected.entities)]
        if expected.kind == "text":
            quads = self._context.store.match(
                None, None, Literal(expected.label), v.KNOWLEDGE_GRAPH
            )
            bearers = (quad.subject for quad in islice(quads, _MOST_BEARERS))
            nodes += [node for node in bearers if isinstance(node, NamedNode)]
        if nodes and expected.kind in ("entity", "text"):
            members = Rows(self._query.rows.known_class, only=tuple(dict.fromkeys(nodes)))
            yield from self._evaluate(ListRows(members)).rows

    def explain_unknown(self, expected: Expected) -> RowAbsence | None:
        """Return that a closed class has no row that is called as expected."""
        table = self._query.rows.known_class
        if table is None or not table.is_closed or expected.is_known or expected.kind != "text":
            return None
        count = f"{table.members:,} row{'' if table.members == 1 else 's'}"
        text = f"no row of the table “{table.label}” is “{expected.label}”; it has {count}"
        return RowAbsence(text, is_row=False)

    def explain(self, row: NamedNode) -> RowAbsence | None:
        """Return why a member is not in the result; None where it is."""
        rows = self._query.rows
        if rows.only and row not in rows.only:
            names = list_names([self._label(node) for node in rows.only])
            return RowAbsence(f"the question asks only of {names}")
        for condition in rows.conditions:
            if not self._evaluate(ListRows(self._alone(row, condition))).solutions:
                return self._explain_condition(row, condition)
        return self._explain_values(row)

    def _explain_condition(self, row: NamedNode, condition: Condition) -> RowAbsence:
        condition_text = describe_condition(
            condition, self._labels(getattr(condition, "values", ()))
        )
        if isinstance(condition, OneOf) or condition.path is None:
            return RowAbsence(
                f"the query asks what {condition_text}, and {self._label(row)} is not"
            )
        solutions = self._values(row, condition.path)
        own_value = self._describe(row, condition.path, solutions)
        text = f"the query asks what {condition_text}, and {own_value}"
        return RowAbsence(text, _statements_in(solutions))

    def _explain_values(self, row: NamedNode) -> RowAbsence | None:
        path = measured_path(self._query)
        if path is None:
            return None
        solutions = self._values(row, path)
        if not solutions:
            return RowAbsence(f"the query needs a value, and {self._describe(row, path, ())}")
        computed = self._evaluate(self._query)
        if any(solution.row == row for solution in computed.conflicts):
            text = (
                f"{self._describe(row, path, solutions)}: more than one, so none is computed with"
            )
            return RowAbsence(text, _statements_in(solutions))
        if isinstance(self._query, Extreme):
            return self._explain_place(row, self._query, path, computed, solutions)
        return None

    def _explain_place(
        self,
        row: NamedNode,
        query: Extreme,
        path: Path,
        computed: Computed,
        solutions: Sequence[Solution],
    ) -> RowAbsence | None:
        best = winners(query, computed.solutions)
        if any(solution.row == row for solution in best):
            return None
        degree = "greatest" if query.is_most else "least"
        values = list_names(list(dict.fromkeys(self._value(s, path) for s in best)))
        names = list_names(list(dict.fromkeys(self._label(s.row) for s in best)))
        text = f"{self._describe(row, path, solutions)}; the {degree} is {values} ({names})"
        return RowAbsence(text, _statements_in(solutions))

    def _describe(self, row: NamedNode, path: Path, solutions: Sequence[Solution]) -> str:
        name = path.last.name if len(path.properties) == 1 else path.label
        if not solutions:
            return f"{self._label(row)} has no value of {name}"
        values = list(dict.fromkeys(self._value(solution, path) for solution in solutions))
        return f"the {name} of {self._label(row)} is {list_names(values)}"

    def _alone(self, row: NamedNode, *conditions: Condition) -> Rows:
        return Rows(self._query.rows.known_class, conditions, (row,))

    def _values(self, row: NamedNode, path: Path) -> tuple[Solution, ...]:
        return self._evaluate(ListRows(self._alone(row), path)).solutions

    def _evaluate(self, query: Query) -> Computed:
        return evaluate_query(self._context.store, query, self._bounds)

    def _value(self, solution: Solution, path: Path) -> str:
        assert solution.value is not None
        return describe_value(solution.value, path, self._labels((solution.value,)))

    def _label(self, node: NamedNode) -> str:
        return self._labels((node,))[node]

    def _labels(self, terms: Sequence[Object]) -> dict[NamedNode, str]:
        return labels_of(self._context.graph, [t for t in terms if isinstance(t, NamedNode)])


def _statements_in(solutions: Sequence[Solution]) -> tuple[Statement, ...]:
    statements = (item for solution in solutions for item in solution.statements)
    return tuple(dict.fromkeys(item for item in statements if v.is_statement(item[1])))
