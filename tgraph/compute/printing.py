"""SPARQL of the algebra. Terms are serialised by pyoxigraph, and nothing else of a question or a
document enters the text of a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pyoxigraph import Literal, NamedNode, Variable

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    CompareTwo,
    Condition,
    Contains,
    Count,
    Difference,
    Differs,
    Equals,
    Exists,
    Extreme,
    GroupRows,
    ListRows,
    Path,
    Query,
    Rows,
    Total,
    measured_path,
    totalled_path,
)
from tgraph.index.catalogue import Catalogue, KnownClass, ValueKind

Node = NamedNode | Literal | Variable

ROW, VALUE, GROUP = Variable("row"), Variable("value"), Variable("group")

_TOTALS: dict[Total, str] = {"sum": "SUM", "average": "AVG"}


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A pattern of a triple, which a solution makes a statement of."""

    subject: NamedNode | Variable
    predicate: NamedNode
    object: Node

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


@dataclass(frozen=True, slots=True)
class Pattern:
    """The patterns of rows, and what else a solution must meet."""

    triples: tuple[TriplePattern, ...] = ()
    filters: tuple[str, ...] = ()

    def __add__(self, other: Pattern) -> Pattern:
        return Pattern((*self.triples, *other.triples), (*self.filters, *other.filters))

    def __str__(self) -> str:
        return "\n".join(f"  {part}" for part in (*self.triples, *self.filters))


def print_query(query: Query, names: _Names | None = None) -> str:
    """Return the SPARQL query that answers a query of the algebra."""
    pattern = pattern_of(query, names)
    match query:
        case Exists():
            return f"ASK {{\n{pattern}\n}}"
        case Count(distinct=None):
            return f"SELECT (COUNT(DISTINCT {ROW}) AS ?count) WHERE {{\n{pattern}\n}}"
        case Count():
            return (
                f"SELECT (COUNT(DISTINCT {ROW}) AS ?count) (COUNT(DISTINCT {VALUE}) AS ?distinct)"
                f" WHERE {{\n{pattern}\n}}"
            )
        case Aggregate(total=total):
            return f"SELECT ({_TOTALS[total]}({VALUE}) AS ?total) WHERE {{\n{_single(pattern)}\n}}"
        case Extreme(is_most=is_most):
            order = f"DESC({VALUE})" if is_most else VALUE
            return f"SELECT {ROW} {VALUE} WHERE {{\n{_single(pattern)}\n}}\nORDER BY {order} {ROW}"
        case GroupRows(path=None):
            return (
                f"SELECT {GROUP} (COUNT(DISTINCT {ROW}) AS ?count) WHERE {{\n{pattern}\n}}"
                f"\nGROUP BY {GROUP}\nORDER BY DESC(?count) {GROUP}"
            )
        case GroupRows(total=total):
            assert total is not None
            return (
                f"SELECT {GROUP} ({_TOTALS[total]}({VALUE}) AS ?total)"
                f" WHERE {{\n{_single(pattern, GROUP)}\n}}\nGROUP BY {GROUP}"
                f"\nORDER BY DESC(?total) {GROUP}"
            )
        case Difference() | CompareTwo():
            return f"SELECT {ROW} {VALUE} WHERE {{\n{_single(pattern)}\n}}"
        case ListRows(limit=limit, shown=shown):
            columns = f"{ROW} {VALUE}" if shown else ROW
            end = f"\nLIMIT {limit}" if limit is not None else ""
            return f"SELECT DISTINCT {columns} WHERE {{\n{pattern}\n}}\nORDER BY {columns}{end}"


def name_columns(query: Query) -> dict[str, str]:
    """Return the variables of a query's result, in order, each with the head of its column."""
    known = query.rows.known_class
    row = (known.type_label or known.label) if known else "thing"
    match query:
        case Exists():
            return {"is": "answer"}
        case Count(distinct=None):
            return {"count": f"number: {row}"}
        case Count(distinct=Path() as distinct):
            return {"count": f"number: {row}", "distinct": f"different: {distinct.label}"}
        case Aggregate(total=total, path=path):
            return {"total": f"{total}: {path.label}"}
        case GroupRows(by=by, total=None):
            return {GROUP.value: by.label, "count": f"number: {row}"}
        case GroupRows(by=by, total=total, path=Path() as path):
            return {GROUP.value: by.label, "total": f"{total}: {path.label}"}
        case ListRows(shown=None):
            return {ROW.value: row}
    measured = measured_path(query)
    return {ROW.value: row, VALUE.value: measured.label if measured else "value"}


def write_columns(query: Query) -> str:
    """Return the columns of a query's result as JSON, for the record."""
    return json.dumps(name_columns(query), ensure_ascii=False)


def write_query(query: Query, catalogue: Catalogue) -> str:
    """Return a query as a person writes it, and as ``read_query`` reads it: a class by its name,
    the places that are asked as LIMIT, and values without the query that makes them single."""
    names = _Names(frozenset(_named_classes(catalogue)))
    rows = rows_pattern(query.rows, names)
    match query:
        case Aggregate(total=total, path=path):
            head = f"SELECT ({_TOTALS[total]}({VALUE}) AS ?total)"
            pattern, tail = rows + _path_pattern(path, VALUE, names), ""
        case Extreme(path=path, is_most=is_most, places=places):
            order = f"DESC({VALUE})" if is_most else VALUE
            head, tail = f"SELECT {ROW} {VALUE}", f"\nORDER BY {order}\nLIMIT {places}"
            pattern = rows + _path_pattern(path, VALUE, names)
        case GroupRows(by=by, total=total, path=path) if path is not None and total is not None:
            head = f"SELECT {GROUP} ({_TOTALS[total]}({VALUE}) AS ?total)"
            pattern = rows + _path_pattern(by, GROUP, names) + _path_pattern(path, VALUE, names)
            tail = f"\nGROUP BY {GROUP}"
        case Difference(path=path):
            head, tail = f"SELECT (MAX({VALUE}) - MIN({VALUE}) AS ?difference)", ""
            pattern = rows + _path_pattern(path, VALUE, names)
        case CompareTwo(path=path, is_more=is_more, asks_which=asks_which):
            which = Extreme(query.rows, path, is_more)
            return write_query(which, catalogue) if asks_which else _write_comparison(query, names)
        case _:
            return print_query(query, names)
    return f"{head} WHERE {{\n{pattern}\n}}{tail}"


def _write_comparison(query: CompareTwo, names: _Names) -> str:
    """Return the question whether the first of two rows has the greater value, or the lesser."""
    pattern = Pattern()
    for row, value in zip(query.rows.only, ("?value", "?other"), strict=True):
        steps = _path_pattern(query.path, Variable(value[1:]), names)
        first, *others = steps.triples
        pattern += Pattern((replace(first, subject=row), *others))
    return f"ASK {{\n{pattern}\n  FILTER(?value {'>' if query.is_more else '<'} ?other)\n}}"


def _named_classes(catalogue: Catalogue) -> Iterator[str]:
    """Yield the keys of the classes that are known by their key alone."""
    keys = Counter(known.key for known in catalogue.classes)
    yield from (key for key, number in keys.items() if number == 1)


def print_solutions(pattern: Pattern, limit: int) -> str:
    """Return the query for the solutions of a pattern with all their variables."""
    return f"SELECT * WHERE {{\n{pattern}\n}}\nLIMIT {limit}"


def restrict_rows(pattern: Pattern, rows: Sequence[NamedNode]) -> Pattern:
    """Return the pattern of those of the ``rows`` that meet a pattern."""
    return Pattern(filters=(_one_of(ROW, rows),)) + pattern


def print_row_count(query: Query) -> str:
    """Return the query for the number of rows that a query is computed from."""
    pattern = pattern_of(query)
    rows = str(pattern) if totalled_path(query) is None else _single(pattern)
    return f"SELECT (COUNT(DISTINCT {ROW}) AS ?count) WHERE {{\n{rows}\n}}"


def _single(pattern: Pattern, *kept: Variable) -> str:
    """Return a subquery for the rows with a single value: what contradicts itself isn't computed
    with."""
    columns = " ".join(map(str, (ROW, *kept)))
    inner = str(pattern).replace("\n", "\n  ")
    return (
        f"  {{ SELECT {columns} (MIN({MEASURED}) AS {VALUE}) WHERE {{\n"
        f"  {inner}\n  }}\n  GROUP BY {columns}\n"
        f"  HAVING (MIN({MEASURED}) = MAX({MEASURED})) }}"
    )


MEASURED = Variable("measured")
"""The values that are computed with, of which a row may have several."""


def pattern_of(query: Query, names: _Names | None = None) -> Pattern:
    """Return the pattern whose solutions a query is computed from; ``names`` gives variables that
    nothing beside it has."""
    names = names or _Names()
    pattern = rows_pattern(query.rows, names)
    match query:
        case GroupRows(by=by, path=path):
            pattern += _path_pattern(by, GROUP, names)
            if path is not None:
                pattern += _measure(path, names)
        case Aggregate(path=path) | Extreme(path=path):
            pattern += _measure(path, names)
        case Difference(path=path) | CompareTwo(path=path):
            pattern += _measure(path, names)
        case ListRows(shown=path) | Count(distinct=path):
            if path is not None:
                pattern += _path_pattern(path, VALUE, names)
        case Exists():
            pass
    return pattern if pattern.triples else pattern + _named(names)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The pattern of the rows that a negation excludes; its first triples, ``length`` of them, are
    what excludes."""

    pattern: Pattern
    length: int


def exclusions_of(query: Query) -> list[Exclusion]:
    """Return what each negation of a query excludes of the rows that meet its other conditions."""
    exclusions = []
    for condition in query.rows.conditions:
        if isinstance(condition, Differs):
            names = _Names()
            end = names.new("excluding")
            pattern = _path_pattern(condition.path, end, names)
            pattern += Pattern(filters=(_one_of(end, condition.values),))
            pattern += pattern_of(_without_negations(query), names)
            exclusions.append(Exclusion(pattern, len(condition.path.properties)))
    return exclusions


def reopening_pattern(query: Query) -> Pattern:
    """Return the pattern of the rows that would be in the result if nothing excluded them: beside
    what is denied they have other values."""
    names = _Names()
    pattern = Pattern()
    for condition in query.rows.conditions:
        if isinstance(condition, Differs):
            end = names.new("value")
            denied = ", ".join(map(str, condition.values))
            pattern += _path_pattern(condition.path, end, names)
            pattern += Pattern(filters=(f"FILTER({end} NOT IN ({denied}))",))
    return pattern + pattern_of(_without_negations(query), names)


def _without_negations(query: Query) -> Query:
    kept = tuple(c for c in query.rows.conditions if not isinstance(c, Differs))
    return replace(query, rows=replace(query.rows, conditions=kept))


class _Names:
    """A source of unused variable names for a pattern; classes with one of the ``keys`` are
    written by their key, where others are written by their members."""

    def __init__(self, keys: frozenset[str] = frozenset()) -> None:
        self._numbers = count(1)
        self.keys = keys

    def new(self, stem: str) -> Variable:
        return Variable(f"{stem}{next(self._numbers)}")


def rows_pattern(rows: Rows, names: _Names) -> Pattern:
    """Return the pattern of the rows that meet all conditions."""
    pattern = Pattern()
    if rows.only:
        pattern += Pattern(filters=(_one_of(ROW, rows.only),))
    if rows.known_class is not None:
        pattern += _class_pattern(rows.known_class, names)
    for condition in rows.conditions:
        pattern += _condition_pattern(condition, names)
    return pattern


def _class_pattern(known: KnownClass, names: _Names) -> Pattern:
    """Return the pattern of a class: its type, where that is the whole class, or its members."""
    if known.kind == "type" or known.is_whole_type:
        return Pattern((TriplePattern(ROW, v.RDF_TYPE, NamedNode(known.type)),))
    if known.key in names.keys:
        key = Literal(known.key) if known.kind == "name" else NamedNode(known.key)
        return Pattern((TriplePattern(ROW, v.RDF_TYPE, key),))
    return Pattern(filters=(_one_of(ROW, known.rows),))


def _named(names: _Names) -> Pattern:
    """Return the pattern of things with a name, for rows of which nothing else is asked."""
    return Pattern((TriplePattern(ROW, v.RDFS_LABEL, names.new("label")),))


def print_paths(known: KnownClass, values: Sequence[NamedNode | Literal], length: int) -> str:
    """Return the query for the paths of a length from members of a class to one of the values."""
    end, at = Variable("end"), ROW
    class_pattern = _class_pattern(known, _Names())
    steps = []
    for number in range(1, length + 1):
        to = end if number == length else Variable(f"step{number}")
        steps.append(f"  {at} ?property{number} {to} .")
        at = to
    columns = " ".join(f"?property{number}" for number in range(1, length + 1))
    body = "\n".join((f"  {_one_of(end, values)}", str(class_pattern), *steps))
    return (
        f"SELECT DISTINCT {columns} WHERE {{\n{body}\n}}\nORDER BY {columns}\nLIMIT {_MOST_PATHS}"
    )


_MOST_PATHS = 20


def _one_of(variable: Variable, terms: Sequence[NamedNode | Literal]) -> str:
    return f"VALUES {variable} {{ {' '.join(map(str, terms))} }}"


def _condition_pattern(condition: Condition, names: _Names) -> Pattern:
    match condition:
        case Equals(path=path, values=values):
            if len(values) == 1:
                return _path_pattern(path, values[0], names)
            end = names.new("value")
            return Pattern(filters=(_one_of(end, values),)) + _path_pattern(path, end, names)
        case Differs(path=path, values=values):
            end, other = names.new("value"), names.new("other")
            against = _path_pattern(path, other, names)
            inner = " ".join((_one_of(other, values), *map(str, against.triples)))
            pattern = _path_pattern(path, end, names)
            return pattern + Pattern(filters=(f"FILTER NOT EXISTS {{ {inner} }}",))
        case Compares(path=path, order=order, bound=bound):
            end = names.new("value")
            number = str(Literal(format(bound, "f"), datatype=v.xsd("decimal")))
            left = _comparable(end, path.kind)
            return _path_pattern(path, end, names) + Pattern(
                filters=(f"FILTER({left} {order} {number})",)
            )
        case Contains(path=path, text=text):
            end = names.new("value")
            pattern = _path_pattern(path, end, names)
            named: Node = end
            if path.kind == "entity":
                named = names.new("name")
                pattern += Pattern((TriplePattern(end, v.RDFS_LABEL, named),))
            sought = Literal(text.lower())
            return pattern + Pattern(filters=(f"FILTER(CONTAINS(LCASE(STR({named})), {sought}))",))


def _comparable(value: Variable, kind: ValueKind) -> str:
    """Return the expression by which a value is put in order."""
    return f"YEAR({value})" if kind in ("year", "date") else str(value)


def _measure(path: Path, names: _Names) -> Pattern:
    """Return the pattern of the values that are computed with: only those of the path's kind."""
    end = names.new("value")
    pattern = _path_pattern(path, end, names)
    measured = _comparable(end, path.kind) if path.kind == "year" else str(end)
    is_number = (f"FILTER(isNumeric({end}))",) if path.kind == "number" else ()
    return pattern + Pattern(filters=(*is_number, f"BIND({measured} AS {MEASURED})"))


def _path_pattern(path: Path, end: Node, names: _Names) -> Pattern:
    triples: list[TriplePattern] = []
    at = ROW
    for known in path.properties[:-1]:
        step = names.new("step")
        triples.append(TriplePattern(at, known.iri, step))
        at = step
    triples.append(TriplePattern(at, path.last.iri, end))
    return Pattern(tuple(triples))
