"""SPARQL of the algebra. Terms are serialised by pyoxigraph, and nothing else of a question or a
document enters the text of a query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import count

from pyoxigraph import Literal, NamedNode, Variable

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Aggregate,
    CompareGroups,
    Compares,
    ComparesTo,
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
    Lacks,
    ListRows,
    OneOf,
    Path,
    Query,
    Rows,
    RowShare,
    Total,
    Within,
    measured_path,
    totalled_path,
)
from tgraph.index.catalogue import Catalogue, KnownClass

Node = NamedNode | Literal | Variable

ROW, VALUE, GROUP = Variable("row"), Variable("value"), Variable("group")
SHOWN, ANCHOR = Variable("shown"), Variable("anchor")

_TOTALS: dict[Total, str] = {"sum": "SUM", "average": "AVG", "minimum": "MIN", "maximum": "MAX"}


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A pattern of a triple, which a solution makes a statement of."""

    subject: Node
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
        case Count(distinct=path):
            distinct = f" (COUNT(DISTINCT {VALUE}) AS ?distinct)" if path else ""
            count = f"SELECT (COUNT(DISTINCT {ROW}) AS ?count){distinct}"
            return f"{count} WHERE {{\n{pattern}\n}}"
        case Aggregate(total=total):
            return f"SELECT ({_TOTALS[total]}({VALUE}) AS ?total) WHERE {{\n{_single(pattern)}\n}}"
        case Extreme(is_most=is_most, shown=shown):
            extra = (SHOWN,) if shown else ()
            columns = " ".join(map(str, (ROW, VALUE, *extra)))
            first = f"DESC({VALUE})" if is_most else f"{VALUE}"
            order = " ".join(map(str, (first, ROW, *extra)))
            return f"SELECT {columns} WHERE {{\n{_single(pattern, *extra)}\n}}\nORDER BY {order}"
        case GroupRows(place=place):
            key = _group_key(query)
            first = str(key) if place == "least" else f"DESC({key})"
            return f"{_print_groups(query, pattern)}\nORDER BY {first} {GROUP}"
        case CompareGroups():
            return f"{_print_groups(query, pattern)}\nORDER BY {GROUP}"
        case RowShare():
            return _print_share(query)
        case Difference() | CompareTwo():
            return f"SELECT {ROW} {VALUE} WHERE {{\n{_single(pattern)}\n}}"
        case ListRows(limit=limit, shown=shown):
            columns = f"{ROW} {VALUE}" if shown else f"{ROW}"
            end = f"\nLIMIT {limit}" if limit is not None else ""
            return f"SELECT DISTINCT {columns} WHERE {{\n{pattern}\n}}\nORDER BY {columns}{end}"


def name_columns(query: Query) -> dict[str, str]:
    """Return the variables of a query's result, in order, each with the head of its column."""
    known_class = query.rows.known_class
    row = (known_class.type_label or known_class.label) if known_class else "thing"
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
        case CompareGroups(by=by):
            return {GROUP.value: by.label, "count": f"number: {row}"}
        case RowShare():
            return {"count": f"number: {row}", "whole": "of"}
        case ListRows(shown=None):
            return {ROW.value: row}
    measured = measured_path(query)
    columns = {ROW.value: row, VALUE.value: measured.label if measured else "place"}
    target = query.shown if isinstance(query, Extreme) else None
    return columns | ({SHOWN.value: target.label} if target else {})


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
        case Extreme(path=Path() as path, is_most=is_most, places=places, shown=None):
            order = f"DESC({VALUE})" if is_most else VALUE
            head, tail = f"SELECT {ROW} {VALUE}", f"\nORDER BY {order}\nLIMIT {places}"
            pattern = rows + _path_pattern(path, VALUE, names)
        case GroupRows(by=by, total=total, path=Path() as path, place=None) if total is not None:
            head = f"SELECT {GROUP} ({_TOTALS[total]}({VALUE}) AS ?total)"
            pattern = rows + _path_pattern(by, GROUP, names) + _path_pattern(path, VALUE, names)
            tail = f"\nGROUP BY {GROUP}"
        case Difference(path=path):
            head, tail = f"SELECT (MAX({VALUE}) - MIN({VALUE}) AS ?difference)", ""
            pattern = rows + _path_pattern(path, VALUE, names)
        case CompareTwo(path=path, is_more=is_more, asks_which=asks_which):
            best = Extreme(query.rows, path, is_more)
            return write_query(best, catalogue) if asks_which else _write_comparison(query, names)
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
    keys = Counter(known_class.key for known_class in catalogue.classes)
    yield from (key for key, number in keys.items() if number == 1)


def _print_share(query: RowShare) -> str:
    counted, whole = print_query(Count(query.rows)), pattern_of(whole_of(query))
    return (
        f"SELECT ?count ?whole WHERE {{\n{_subquery(counted)}\n"
        f"  {{ SELECT (COUNT(DISTINCT {ROW}) AS ?whole) WHERE {{\n{whole}\n}} }}\n}}"
    )


def whole_of(share: RowShare) -> ListRows:
    """Return the query for all members of the class that a share is of."""
    return ListRows(replace(share.rows, conditions=()))


def _group_key(query: GroupRows | CompareGroups) -> Variable:
    """Return the variable of what is counted or added up of a group."""
    return Variable("total" if isinstance(query, GroupRows) and query.path else "count")


def _print_groups(query: GroupRows | CompareGroups, pattern: Pattern) -> str:
    body, total = str(pattern), f"COUNT(DISTINCT {ROW})"
    if isinstance(query, GroupRows) and query.path is not None:
        assert query.total is not None
        body, total = _single(pattern, GROUP), f"{_TOTALS[query.total]}({VALUE})"
    key = _group_key(query)
    return f"SELECT {GROUP} ({total} AS {key}) WHERE {{\n{body}\n}}\nGROUP BY {GROUP}"


def _subquery(query: str) -> str:
    return f"  {{ {query.replace(chr(10), chr(10) + '  ')} }}"


def _print_result(query: ListRows | Extreme | GroupRows, end: Variable, names: _Names) -> str:
    """Return the subquery for the result of a query, as values of a variable: its members, or
    those in the first place, or such groups."""
    pattern = pattern_of(query, names)
    columns = str(ROW) if end == ROW else f"({ROW} AS {end})"
    if isinstance(query, ListRows):
        return _subquery(f"SELECT DISTINCT {columns} WHERE {{\n{pattern}\n}}")
    if isinstance(query, Extreme):
        return _subquery(f"SELECT DISTINCT {columns} WHERE {{\n{_print_first(query, pattern)}\n}}")
    groups, key = _subquery(_print_groups(query, pattern)), _group_key(query)
    best = "MIN" if query.place == "least" else "MAX"
    first = _subquery(f"SELECT ({best}({key}) AS ?best) WHERE {{\n{groups}\n}}")
    return _subquery(
        f"SELECT ({GROUP} AS {end}) WHERE {{\n{groups}\n{first}\n  FILTER({key} = ?best)\n}}"
    )


def _print_first(query: Extreme, pattern: Pattern) -> str:
    single = _single(pattern)
    best = _subquery(f"SELECT {_print_best(query)} WHERE {{\n{single}\n}}")
    return f"{single}\n{best}\n  FILTER({VALUE} = ?best)"


def _print_best(query: Extreme) -> str:
    return f"({'MAX' if query.is_most else 'MIN'}({VALUE}) AS ?best)"


def print_solutions(pattern: Pattern, limit: int) -> str:
    """Return the query for the solutions of a pattern with all their variables."""
    return f"SELECT * WHERE {{\n{pattern}\n}}\nLIMIT {limit}"


def restrict_rows(pattern: Pattern, rows: Sequence[NamedNode]) -> Pattern:
    """Return the pattern of those of the ``rows`` that meet a pattern."""
    return Pattern(filters=(_one_of(ROW, rows),)) + pattern


def print_row_count(query: Query) -> str:
    """Return the query for the number of rows that a query is computed from."""
    pattern = pattern_of(query)
    is_single = totalled_path(query) is not None or isinstance(query, Extreme)
    rows = _single(pattern) if is_single else str(pattern)
    return f"SELECT (COUNT(DISTINCT {ROW}) AS ?count) WHERE {{\n{rows}\n}}"


def print_order(query: Extreme, limit: int) -> str:
    """Return the query for the first rows of an extreme, in the order of their values alone, where
    each row has one."""
    order = f"DESC({MEASURED})" if query.is_most else str(MEASURED)
    body = f"{{\n{pattern_of(query)}\n}}"
    return f"SELECT {ROW} {MEASURED} WHERE {body}\nORDER BY {order}\nLIMIT {limit}"


def print_measures(query: Query) -> str:
    """Return the query for the total of an aggregate, and the number of rows, where each row has
    one value."""
    total = (
        f" ({_TOTALS[query.total]}({MEASURED}) AS ?total)" if isinstance(query, Aggregate) else ""
    )
    return f"SELECT (COUNT(*) AS ?count){total} WHERE {{\n{pattern_of(query)}\n}}"


def is_single(query: Query) -> bool:
    """Return whether the catalogue says that each row of a query is one solution, with one value:
    then nothing contradicts itself, and no row is found twice."""
    rows = query.rows
    known_class, path = rows.known_class, totalled_path(query)
    is_type = known_class is not None and (known_class.kind == "type" or known_class.is_whole_type)
    if not is_type or rows.only or rows.step or path is None or not path.is_single:
        return False
    return all(map(_is_single_condition, rows.conditions))


def _is_single_condition(condition: Condition) -> bool:
    match condition:
        case Compares(path=path):
            return path.is_single
        case Equals(path=path, values=values):
            return len(path.properties) == len(values) == 1
        case _:
            return isinstance(condition, Lacks)


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
    pattern = _unnamed_pattern(query, names)
    return pattern if pattern.triples else pattern + _named(names)


def _unnamed_pattern(query: Query, names: _Names) -> Pattern:
    """Return the pattern of a query, without a triple where nothing is asked of a listed row."""
    pattern = rows_pattern(query.rows, names)
    match query:
        case GroupRows(by=by, path=path):
            pattern += _path_pattern(by, GROUP, names)
            if path is not None:
                pattern += _measure(path, names)
        case CompareGroups(by=by, groups=groups):
            pattern += Pattern(filters=(_one_of(GROUP, [v for group in groups for v in group]),))
            pattern += _path_pattern(by, GROUP, names)
        case Extreme(path=path, shown=shown):
            pattern += _measure(path, names) if path else _places_pattern(query.rows)
            pattern += _path_pattern(shown, SHOWN, names) if shown else Pattern()
        case Aggregate(path=path):
            pattern += _measure(path, names)
        case Difference(path=path) | CompareTwo(path=path):
            pattern += _measure(path, names)
        case ListRows(shown=path) | Count(distinct=path):
            if path is not None:
                pattern += _path_pattern(path, VALUE, names)
        case Exists() | RowShare():
            pass
    return pattern


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
        if isinstance(condition, Differs | Lacks):
            names = _Names()
            end = names.new("excluding")
            pattern = _path_pattern(condition.path, end, names, _start_of(query.rows))
            if isinstance(condition, Differs):
                pattern += Pattern(filters=(_one_of(end, condition.values),))
            pattern += _included_pattern(query, names)
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
            pattern += _path_pattern(condition.path, end, names, _start_of(query.rows))
            pattern += Pattern(filters=(f"FILTER({end} NOT IN ({denied}))",))
    return pattern + _included_pattern(query, names)


def _included_pattern(query: Query, names: _Names) -> Pattern:
    """Return the pattern of the rows that a query would have if nothing excluded them."""
    pattern = _unnamed_pattern(_without_negations(query), names)
    has_triples = _unnamed_pattern(query, _Names()).triples
    return pattern if has_triples else pattern + _named(names)


def _without_negations(query: Query) -> Query:
    conditions = tuple(c for c in query.rows.conditions if not isinstance(c, Differs | Lacks))
    return replace(query, rows=replace(query.rows, conditions=conditions))


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
    pattern, start = Pattern(), _start_of(rows)
    if rows.only:
        pattern += Pattern(filters=(_one_of(start, rows.only),))
    if rows.known_class is not None:
        known_class = rows.known_class
        pattern += (
            _steps_pattern(known_class, rows.step)
            if rows.step
            else _class_pattern(known_class, names)
        )
    for condition in rows.conditions:
        pattern += _condition_pattern(condition, names, start)
    return pattern


def _start_of(rows: Rows) -> Variable:
    """Return the variable of what meets the conditions: the member, or one that stands beside."""
    return ANCHOR if rows.step else ROW


def _steps_pattern(known_class: KnownClass, step: int) -> Pattern:
    """Return the pattern of the members that stand some places after others."""
    pairs = [
        f"({known_class.rows[at]} {known_class.rows[at + step]})"
        for at in range(len(known_class.rows))
        if 0 <= at + step < len(known_class.rows)
    ]
    return Pattern(filters=(f"VALUES ({ANCHOR} {ROW}) {{ {' '.join(pairs)} }}",))


def _places_pattern(rows: Rows) -> Pattern:
    """Return the pattern of the places at which a table lists its members."""
    listed = rows.known_class.rows if rows.known_class else ()
    pairs = [
        f"({row} {Literal(str(place), datatype=v.xsd('integer'))})"
        for place, row in enumerate(listed, 1)
    ]
    return Pattern(filters=(f"VALUES ({ROW} {MEASURED}) {{ {' '.join(pairs)} }}",))


def _class_pattern(known_class: KnownClass, names: _Names | None = None) -> Pattern:
    """Return the pattern of a class: its type, where that is the whole class, or its members."""
    if known_class.kind == "type" or known_class.is_whole_type:
        return Pattern((TriplePattern(ROW, v.RDF_TYPE, NamedNode(known_class.type)),))
    if names is not None and known_class.key in names.keys:
        key = Literal(known_class.key) if known_class.kind == "name" else NamedNode(known_class.key)
        return Pattern((TriplePattern(ROW, v.RDF_TYPE, key),))
    return Pattern(filters=(_one_of(ROW, known_class.rows),))


def _named(names: _Names) -> Pattern:
    """Return the pattern of things with a name, for rows of which nothing else is asked."""
    return Pattern((TriplePattern(ROW, v.RDFS_LABEL, names.new("label")),))


_MOST_PATHS = 20


def print_connections(
    known_class: KnownClass,
    target: KnownClass | Sequence[NamedNode | Literal],
    properties: Sequence[NamedNode],
    backward: Sequence[bool],
) -> str:
    """Return the query for the paths from members of a class to values, or to members of another
    class, by certain properties, each followed forward or backward."""
    end = Variable("end")
    parts = [str(_class_pattern(known_class))]
    if isinstance(target, KnownClass):
        ends = str(_class_pattern(target))
        parts.append(ends.replace(str(ROW), str(end)))
    else:
        parts.insert(0, f"  {_one_of(end, target)}")
    at = ROW
    for number, is_backward in enumerate(backward, 1):
        to = end if number == len(backward) else Variable(f"step{number}")
        step = (to, at) if is_backward else (at, to)
        parts.append(f"  {_one_of(Variable(f'property{number}'), properties)}")
        parts.append(f"  {step[0]} ?property{number} {step[1]} .")
        at = to
    columns = " ".join(f"?property{number}" for number in range(1, len(backward) + 1))
    body = "\n".join(parts)
    return (
        f"SELECT DISTINCT {columns} WHERE {{\n{body}\n}}\nORDER BY {columns}\nLIMIT {_MOST_PATHS}"
    )


def print_members(known_class: KnownClass, values: Sequence[NamedNode]) -> str:
    """Return the query for those of the values that are members of a class."""
    pattern = Pattern(filters=(_one_of(ROW, values),)) + _class_pattern(known_class)
    return f"SELECT DISTINCT {ROW} WHERE {{\n{pattern}\n}}\nORDER BY {ROW}"


def print_classes(known_class: KnownClass, path: Path) -> str:
    """Return the query for the types of what a path leads to from members of a class."""
    names = _Names()
    pattern = _class_pattern(known_class) + _path_pattern(path, VALUE, names)
    pattern += Pattern((TriplePattern(VALUE, v.RDF_TYPE, Variable("type")),))
    return f"SELECT DISTINCT ?type WHERE {{\n{pattern}\n}}\nORDER BY ?type"


def _one_of(variable: Variable, terms: Sequence[NamedNode | Literal]) -> str:
    return f"VALUES {variable} {{ {' '.join(map(str, terms))} }}"


def _condition_pattern(condition: Condition, names: _Names, start: Variable = ROW) -> Pattern:
    match condition:
        case Equals(path=path, values=values):
            if len(values) == 1:
                return _path_pattern(path, values[0], names, start)
            end = names.new("value")
            return Pattern(filters=(_one_of(end, values),)) + _path_pattern(path, end, names, start)
        case Differs(path=path, values=values):
            end, other = names.new("value"), names.new("other")
            against = _path_pattern(path, other, names, start)
            inner = " ".join((_one_of(other, values), *map(str, against.triples)))
            pattern = _path_pattern(path, end, names, start)
            return pattern + Pattern(filters=(f"FILTER NOT EXISTS {{ {inner} }}",))
        case Lacks(path=path):
            against = _path_pattern(path, names.new("other"), names, start)
            inner = " ".join(map(str, against.triples))
            return Pattern(filters=(f"FILTER NOT EXISTS {{ {inner} }}",))
        case OneOf(values=values):
            return Pattern(filters=(_one_of(start, values),))
        case Within() | ComparesTo():
            return _referring_pattern(condition, names, start)
        case Compares():
            return _ordered_pattern(condition, names, start)
        case Contains(path=path, text=text):
            end = names.new("value")
            pattern = _path_pattern(path, end, names, start)
            named: Node = end
            if path.kind == "entity":
                named = names.new("name")
                pattern += Pattern((TriplePattern(end, v.RDFS_LABEL, named),))
            sought = Literal(text.lower())
            return pattern + Pattern(filters=(f"FILTER(CONTAINS(LCASE(STR({named})), {sought}))",))


def _referring_pattern(condition: Within | ComparesTo, names: _Names, start: Variable) -> Pattern:
    match condition:
        case Within(path=None, query=query):
            return Pattern(filters=(_print_result(query, start, names),))
        case Within(path=path, query=query):
            assert path is not None
            end = names.new("value")
            pattern = Pattern(filters=(_print_result(query, end, names),))
            return pattern + _path_pattern(path, end, names, start)
        case ComparesTo(path=path, order=order, query=query):
            end, bound_name = names.new("value"), names.new("bound")
            single = _single(pattern_of(query))
            best = _print_best(query).replace("?best", str(bound_name))
            bound_query = _subquery(f"SELECT {best} WHERE {{\n{single}\n}}")
            left = _compared(end, path)
            order_filter = f"FILTER({left} {order} {bound_name})"
            return _path_pattern(path, end, names, start) + Pattern(
                filters=(bound_query, order_filter)
            )


def _ordered_pattern(condition: Compares, names: _Names, start: Variable) -> Pattern:
    path, order, bound = condition.path, condition.order, condition.bound
    end = names.new("value")
    is_day = isinstance(bound, Literal)
    left = f"{v.xsd('date')}({end})" if is_day else _comparable(end, path)
    if isinstance(bound, Decimal):
        bound = Literal(format(bound, "f"), datatype=v.xsd("decimal"))
    pattern = _path_pattern(path, end, names, start)
    return pattern + Pattern(filters=(f"FILTER({left} {order} {bound})",))


def _comparable(value: Variable, path: Path) -> str:
    """Return the expression by which a value is compared with a number or a year."""
    return f"YEAR({value})" if path.kind in ("year", "date") else str(value)


def _compared(value: Variable, path: Path) -> str:
    """Return the expression by which a value is put in order."""
    return _comparable(value, path) if path.kind == "year" else str(value)


def _measure(path: Path, names: _Names) -> Pattern:
    """Return the pattern of the values that are computed with: only those of the path's kind."""
    end = names.new("value")
    pattern = _path_pattern(path, end, names)
    binding = f"BIND({_compared(end, path)} AS {MEASURED})"
    is_number = (f"FILTER(isNumeric({end}))",) if path.kind == "number" else ()
    return pattern + Pattern(filters=(*is_number, binding))


def _path_pattern(path: Path, end: Node, names: _Names, start: Variable = ROW) -> Pattern:
    triples: list[TriplePattern] = []
    at: Node = start
    for number, known_class in enumerate(path.properties):
        to = names.new("step") if number + 1 < len(path.properties) else end
        ends = (to, at) if number in path.backward else (at, to)
        triples.append(TriplePattern(ends[0], known_class.iri, ends[1]))
        at = to
    return Pattern(tuple(triples))
