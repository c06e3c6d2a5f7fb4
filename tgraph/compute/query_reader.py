"""The one door for queries that the grammar didn't make: SPARQL, written by a person or a model,
becomes a query of the algebra, or is refused with the reason and a remedy.

What it means is what the algebra can say, so that evaluation, bounds, witnesses, sentences and
record are those of every computed answer, and nothing of the text is evaluated itself."""

from __future__ import annotations

from collections.abc import Sequence

from pyoxigraph import NamedNode, Variable

from tgraph.compute.algebra import (
    Aggregate,
    CompareTwo,
    Count,
    Difference,
    Exists,
    Extreme,
    GroupRows,
    ListRows,
    Path,
    Query,
    Rows,
    Total,
)
from tgraph.compute.query_syntax import (
    Expression,
    Operation,
    PatternBlock,
    WrittenQuery,
    parse_query,
    refusal,
)
from tgraph.compute.written_pattern import WrittenPattern, iterate_operations
from tgraph.index.catalogue import Catalogue

_TOTALS: dict[str, Total] = {"SUM": "sum", "AVG": "average"}
_AGGREGATES = frozenset(
    ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT", "GROUPCONCAT")
)
_ORDERED = ("number", "year", "date")


def read_query(sparql: str, catalogue: Catalogue) -> Query:
    """Return the query of the algebra that a text says.

    Raises ``QueryError`` for a text that is no query, or one that the algebra can't say."""
    written = parse_query(sparql)
    if written.limit is not None and written.limit < 1:
        raise refusal("LIMIT 0 asks for nothing.", "Leave LIMIT out, or ask for more.")
    if written.is_ask:
        if comparison := _read_comparison(written, catalogue):
            return comparison
        pattern = WrittenPattern(written.block, catalogue)
        return Exists(pattern.find_rows())
    return _SelectReader(written, catalogue).read()


def _read_comparison(written: WrittenQuery, catalogue: Catalogue) -> CompareTwo | None:
    """Return the comparison of two named rows: ASK { <a> p ?x . <b> p ?y FILTER(?x > ?y) }."""
    block = written.block
    if len(block.triples) != 2 or len(block.filters) != 1:
        return None
    left, right = block.triples
    compared = block.filters[0]
    if not (
        isinstance(left.subject, NamedNode)
        and isinstance(right.subject, NamedNode)
        and left.subject != right.subject
        and left.predicates == right.predicates
        and isinstance(compared, Operation)
        and compared.name in ("<", ">")
        and set(compared.operands) == {left.object, right.object}
        and block == PatternBlock(triples=block.triples, filters=block.filters)
    ):
        return None
    if compared.operands[0] == right.object:
        left, right = right, left
    pattern = WrittenPattern(PatternBlock(triples=(left,)), catalogue)
    path = pattern.take_measure(left.object, _ORDERED)
    assert isinstance(left.subject, NamedNode)
    assert isinstance(right.subject, NamedNode)
    return CompareTwo(Rows(None, (), (left.subject, right.subject)), path, compared.name == ">")


class _SelectReader:
    """A SELECT query, read into the form of the algebra that has its columns and groups."""

    def __init__(self, written: WrittenQuery, catalogue: Catalogue) -> None:
        self._written = written
        self._single = _find_single(written)
        block = self._single.block if self._single else written.block
        self._pattern = WrittenPattern(block, catalogue)
        if self._single:
            self._pattern.aliases |= _read_single_values(self._single, self._pattern)

    def read(self) -> Query:
        written = self._written
        if written.having:
            raise refusal("A query chooses groups (HAVING).", "Leave HAVING out.")
        if not written.shown:
            raise refusal("The columns of the result are not named (*).", "Name them after SELECT.")
        if written.groups:
            return self._read_groups()
        if any(map(_is_aggregated, (expression for _, expression in written.shown))):
            return self._read_totals()
        return self._read_list()

    # --- totals ---

    def _read_totals(self) -> Query:
        expressions = [expression for _, expression in self._written.shown]
        operations = [e for e in expressions if isinstance(e, Operation)]
        if len(operations) < len(expressions):
            raise refusal("A column stands beside a total.", "Group by it, or leave it out.")
        if all(operation.name == "COUNT" for operation in operations):
            return self._read_counts(operations)
        if len(operations) > 1:
            raise refusal("The result has several totals.", "Ask for one of them.")
        operation = operations[0]
        if operation.name == "-":
            return self._read_difference(operation)
        value = _read_operand(operation)
        if operation.name in ("MIN", "MAX"):
            path = self._pattern.take_measure(value, _ORDERED)
            return Extreme(self._pattern.find_rows(), path, operation.name == "MAX")
        path = self._pattern.take_measure(value, ("number",))
        return Aggregate(self._pattern.find_rows(), _read_total(operation), path)

    def _read_counts(self, operations: Sequence[Operation]) -> Count:
        distinct: Path | None = None
        for operation in operations:
            if not operation.operands or operation.operands[0] == self._pattern.row:
                continue
            if distinct is not None or not operation.is_distinct:
                raise refusal(
                    "COUNT counts solutions, not rows or different values.",
                    "Write COUNT(DISTINCT ?row), or COUNT(DISTINCT ?value) of one value.",
                )
            distinct = self._pattern.take_path(operation.operands[0])
        if distinct is None:
            distinct = self._pattern.take_leftover()
        return Count(self._pattern.find_rows(), distinct)

    def _read_difference(self, operation: Operation) -> Difference:
        match operation.operands:
            case (
                Operation("MAX", (greatest,)),
                Operation("MIN", (least,)),
            ) if greatest == least:
                path = self._pattern.take_measure(greatest, ("number",))
                return Difference(_require_two(self._pattern.find_rows(named=True)), path)
        raise refusal(
            "A column computes with totals.", "Write MAX(?value) - MIN(?value) of two rows."
        )

    # --- groups ---

    def _read_groups(self) -> GroupRows:
        written = self._written
        if written.limit is not None:
            raise refusal("LIMIT cuts groups off.", "Leave LIMIT out: all groups are told.")
        if len(written.groups) != 1 or not isinstance(written.groups[0], Variable):
            raise refusal(
                "The rows are grouped by several values, or a computed one.", "Name one value."
            )
        group = written.groups[0]
        totals = [(alias, e) for alias, e in written.shown if isinstance(e, Operation)]
        columns = [alias for alias, e in written.shown if not isinstance(e, Operation)]
        if len(totals) != 1 or any(
            alias != group and not self._pattern.names_row(alias) for alias in columns
        ):
            raise refusal(
                "A group has other columns than its value and a total.", "Ask for one total."
            )
        alias, operation = totals[0]
        self._check_group_order(group, alias, operation)
        by = self._pattern.take_path(group)
        if operation.name != "COUNT":
            path = self._pattern.take_measure(_read_operand(operation), ("number",))
            return GroupRows(self._pattern.find_rows(), by, _read_total(operation), path)
        if operation.operands and operation.operands[0] != self._pattern.row:
            raise refusal("The groups count other things than rows.", "Write COUNT(DISTINCT ?row).")
        return GroupRows(self._pattern.find_rows(), by)

    def _check_group_order(self, group: Variable, alias: Variable, total: Operation) -> None:
        for expression, descends in self._written.order:
            by_total = expression in (alias, total)
            if not (by_total and descends) and not (expression == group and not descends):
                raise refusal(
                    "The groups are put in another order.", "Groups come by DESC of the total."
                )

    # --- lists ---

    def _read_list(self) -> Query:
        pattern, written = self._pattern, self._written
        values = [
            variable
            for variable in (self._column(*column) for column in written.shown)
            if not pattern.names_row(variable)
        ]
        if len(values) > 1:
            raise refusal("The result has several values beside the row.", "Ask for one of them.")
        order = [term for term in written.order if not pattern.names_row(term[0])]
        begins_with_row = bool(written.order) and written.order[0] not in order
        if self._single:
            return self._read_single(values, order)
        if order and not begins_with_row and (extreme := self._read_extreme(values, order)):
            return extreme
        shown = pattern.take_path(values[0]) if values else pattern.take_leftover()
        if any(pattern.take_path(expression) != shown for expression, _ in order):
            raise refusal("The rows are put in the order of what is not shown.", "Show it.")
        return ListRows(pattern.find_rows(), shown, written.limit)

    def _column(self, variable: Variable, expression: Expression | None) -> Variable:
        if expression is None:
            return variable
        if not isinstance(expression, Variable):
            raise refusal(f"{variable} is computed.", "Show the value itself.")
        return expression

    def _read_extreme(
        self, values: Sequence[Variable], order: Sequence[tuple[Expression, bool]]
    ) -> Extreme | CompareTwo | None:
        """Return the first places of an order, or which of two rows has it; None where the order
        only arranges a list."""
        (expression, descends), *further = order
        variable, _ = self._pattern.resolve(expression)
        path = self._pattern.take_path(variable)
        if path.kind not in _ORDERED:
            if self._written.limit is not None or descends:
                raise refusal(
                    f"The rows are put in the order of “{path.label}”, which is no number or time.",
                    "Leave the order out.",
                )
            return None
        if self._written.limit is None:
            raise refusal(
                "The rows are put in an order without LIMIT.",
                "Say how many places are asked with LIMIT; equals share a place.",
            )
        path = self._pattern.take_measure(expression, _ORDERED)
        if further or any(self._pattern.resolve(value)[0] != variable for value in values):
            raise refusal("The result shows another value than the order.", "Ask for one of them.")
        rows = self._pattern.find_rows()
        if len(rows.only) == 2 and self._written.limit == 1:
            return CompareTwo(rows, path, descends, asks_which=True)
        return Extreme(rows, path, descends, self._written.limit)

    def _read_single(
        self, values: Sequence[Variable], order: Sequence[tuple[Expression, bool]]
    ) -> Query:
        """Return the query of rows with a single value each: in an order, or two of them."""
        if len(values) != 1 or len(order) > 1:
            raise refusal("The result doesn't show the row and its single value.", "Show both.")
        if not order:
            path = self._pattern.take_measure(values[0], ("number",))
            return Difference(_require_two(self._pattern.find_rows(named=True)), path)
        expression, descends = order[0]
        if expression != values[0]:
            raise refusal("The rows are put in the order of what is not shown.", "Show it.")
        path = self._pattern.take_measure(expression, _ORDERED)
        return Extreme(self._pattern.find_rows(), path, descends, self._written.limit or 1)


def _find_single(written: WrittenQuery) -> WrittenQuery | None:
    """Return the inner query that gives each row its single value, where the pattern is one."""
    if not written.block.inner:
        return None
    if len(written.block.inner) > 1 or written.block != PatternBlock(inner=written.block.inner):
        raise refusal("A query stands within the pattern.", "Ask for its result by itself.")
    return written.block.inner[0]


def _read_single_values(inner: WrittenQuery, pattern: WrittenPattern) -> dict[Variable, Expression]:
    """Return the value of the rows in an inner query, by its name."""
    keys = [variable for variable, expression in inner.shown if expression is None]
    totals = {alias: e for alias, e in inner.shown if isinstance(e, Operation)}
    match list(totals.items()), inner.having:
        case [(alias, Operation("MIN", (value,)))], (Operation("=", (least, most)),) if (
            least == Operation("MIN", (value,))
            and most == Operation("MAX", (value,))
            and list(inner.groups) == keys
            and keys[:1] == [pattern.row]
            and not inner.order
            and inner.limit is None
        ):
            return {alias: value}
    raise refusal("A query stands within the pattern.", "Ask for its result by itself.")


def _is_aggregated(expression: Expression | None) -> bool:
    return expression is not None and any(
        operation.name in _AGGREGATES for operation in iterate_operations(expression)
    )


def _read_operand(operation: Operation) -> Expression:
    if operation.is_distinct or len(operation.operands) != 1:
        raise refusal(f"{operation.name} has DISTINCT, or no value.", "Write the value alone.")
    return operation.operands[0]


def _read_total(operation: Operation) -> Total:
    if operation.name not in _TOTALS:
        raise refusal(f"The result is a {operation.name}.", "Ask for COUNT, SUM, AVG, MIN or MAX.")
    return _TOTALS[operation.name]


def _require_two(rows: Rows) -> Rows:
    if len(rows.only) != 2:
        raise refusal("A difference is of two rows.", "Name the two in VALUES.")
    return rows
