"""Queries in the forms of tables: of any column, in the order of the rows, of a row beside another.

A question seldom names all that it means of a table. These forms assume columns that no word names,
and leave words without account; which of them a question means is for the ranking to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import combinations, product

from pyoxigraph import NamedNode

from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    ComparesTo,
    Condition,
    Contains,
    Count,
    Difference,
    Differs,
    Equals,
    Extreme,
    GroupRows,
    ListRows,
    Order,
    Path,
    Query,
    Rows,
    Within,
)
from tgraph.compute.linking import (
    BoundLink,
    ExtremeLink,
    PropertyLink,
    QuestionLinks,
    Span,
    ValueLink,
    bound_factor,
    merge_links,
    names_other_quantity,
)
from tgraph.compute.parts import ASSUMED_PROPERTY, CandidateQuery, QueryPart, sum_parts
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object
from tgraph.resources import word_set
from tgraph.retrieve.text.lexical import stem

MOST_BASES = 16
"""The combinations of conditions that are tried."""

MOST_SHOWN = 12
"""The columns that may be shown."""

MOST_WAYS = 3
"""The ways in which one link may be a condition."""

_READABLE = 0.7
"""The share of a column's values that begin with, or have, a number where numbers are read."""


class TableForms:
    """The forms over the rows of one table."""

    def __init__(self, links: QuestionLinks, catalogue: Catalogue, known: KnownClass) -> None:
        self._links = links
        self._known = known
        self._columns = {
            iri: catalogue.property_of(iri)
            for iri in dict.fromkeys(column.property for column in known.columns)
        }
        self._rows = frozenset(known.rows)
        self._lowers = [word.lower for word in links.words]

    def candidates(self) -> Iterator[CandidateQuery]:
        """Yield the candidates, those of the most conditions first."""
        for base in self._bases():
            for part, query in self._forms(base):
                is_computing = not isinstance(query, ListRows)
                yield CandidateQuery(
                    query, part.span, part.scores, part.reasons, is_computing, is_strict=False
                )

    # --- columns ---

    @cached_property
    def _named(self) -> dict[NamedNode, PropertyLink]:
        links = (link for link in self._links.properties if link.known.iri in self._columns)
        return merge_links(links)

    @cached_property
    def _class_span(self) -> Span:
        spans = (link.span for link in self._links.classes if link.known.key == self._known.key)
        return frozenset().union(*spans)

    def _column_part(self, own: KnownProperty, use: str) -> QueryPart:
        link = self._named.get(own.iri)
        if link is None:
            why = f"no word names {own.label}, which is assumed to be {use}"
            return QueryPart(frozenset(), (ASSUMED_PROPERTY,), (why,))
        text = self._links.text(link.span)
        return QueryPart(link.span, (link.score,), (f"“{text}” names {own.label}, {use}",))

    @cached_property
    def _shown(self) -> list[tuple[Path | None, QueryPart]]:
        """The columns that may be shown, those named first; and the rows themselves."""
        columns = sorted(self._columns.values(), key=lambda own: own.iri not in self._named)
        ways: list[tuple[Path | None, QueryPart]] = [
            (None, QueryPart(self._class_span, (1.0,), ("asks for the rows",)))
        ]
        ways += [
            (Path((column,)), self._column_part(column, "what is asked for"))
            for column in columns[:MOST_SHOWN]
        ]
        return ways

    def _measures(self, link: ExtremeLink | None = None) -> list[tuple[Path, QueryPart]]:
        """Return the columns that may be measured: those that the words name, else all."""
        ways = []
        for column in self._columns.values():
            path = _measurable(column)
            if path is None or (link is not None and link.is_time and not _is_time(column)):
                continue
            if link is not None and names_other_quantity(column.name, link.names):
                continue
            part = self._column_part(column, "what is measured")
            is_adjective = link is not None and bool(link.names)
            if is_adjective and path.reads_number and column.iri not in self._named:
                continue
            if link is not None and link.names & set(_stems(column.name)):
                part = QueryPart(link.span, (1.0,), (f"the adjective is of {column.label}",))
            ways.append((path, part))
        sure = [way for way in ways if way[1].span]
        return sure or ways

    # --- conditions ---

    def _bases(self) -> list[QueryPart]:
        """Return the combinations of conditions, those that account for the most words first."""
        values: dict[Span, list[tuple[ValueLink, QueryPart]]] = {}
        for link in (*self._links.values, *self._links.parts):
            if not link.span <= self._class_span:
                for part in self._value_ways(link):
                    values.setdefault(link.span, []).append((link, part))
        spans = self._ways_by_span(values)
        ordered = sorted(spans, key=min)
        bases: dict[tuple[object, ...], QueryPart] = {}
        for merged in (*self._alternatives(values), None):
            free_spans = [s for s in ordered if merged is None or s.isdisjoint(merged.span)]
            options = [[*spans[span], QueryPart()] for span in free_spans]
            for parts in product(*options[:5]):
                base_part = sum_parts((*([merged] if merged else []), *parts))
                if len(base_part.only) > 2:
                    continue
                key = (base_part.conditions, base_part.only)
                if key not in bases or len(bases[key].span) < len(base_part.span):
                    bases[key] = base_part
                if len(bases) > 20 * MOST_BASES:
                    break
        bases_found = sorted(bases.values(), key=lambda base: -len(base.span))
        empty = [base for base in bases_found if not base.conditions and not base.only]
        return [*[base for base in bases_found if base not in empty][:MOST_BASES], *empty]

    def _ways_by_span(
        self, values: Mapping[Span, Sequence[tuple[ValueLink, QueryPart]]]
    ) -> dict[Span, list[QueryPart]]:
        """Return the ways in which each link may be a condition."""
        spans = {span: [part for _, part in ways][:MOST_WAYS] for span, ways in values.items()}
        for bound in self._links.bounds:
            if ways_of_bound := list(self._bound_ways(bound))[:MOST_WAYS]:
                spans.setdefault(bound.span, []).extend(ways_of_bound)
        return spans

    def _value_ways(self, link: ValueLink) -> Iterator[QueryPart]:
        text = self._links.text(link.span)
        members = tuple(v for v in link.values if isinstance(v, NamedNode) and v in self._rows)
        if members:
            why = f"“{text}” is a row"
            yield QueryPart(link.span, (link.score,), (why,), only=members)
        ways = []
        for iri, column in self._columns.items():
            if iri not in (link.properties or self._having(link)):
                continue
            named = self._named.get(iri)
            span = link.span
            if named is not None and named.span.isdisjoint(link.span):
                span |= named.span
            is_whole = column.distinct <= len(column.values) or len(link.values) == 1
            condition = self._condition(Path((column,)), link, is_whole)
            if isinstance(condition, Differs):
                span |= self._links.cue("negation")
            why = f"“{text}” is a value of {column.label}"
            part = QueryPart(span, (link.score,), (why,), (condition,))
            ways.append((named is None, -column.statements, part))
        yield from (part for _, _, part in sorted(ways, key=lambda way: way[:2]))

    def _having(self, link: ValueLink) -> set[NamedNode]:
        """Return the columns that have one of a link's values, as far as the catalogue shows."""
        values = set(link.values)
        return {
            iri
            for iri, column in self._columns.items()
            if any(known.value in values for known in column.values)
        }

    def _condition(self, path: Path, link: ValueLink, is_whole: bool) -> Condition:
        """Return the condition that a value is met, or denied after a negation; where more values
        may have the words than the catalogue shows, that the words are in it."""
        negations = self._links.cues.get("negation", ())
        if any(max(cue) < min(link.span) for cue in negations):
            return Differs(path, link.values, link.label)
        return Equals(path, link.values, link.label) if is_whole else Contains(path, link.label)

    def _alternatives(
        self, values: dict[Span, list[tuple[ValueLink, QueryPart]]]
    ) -> Iterator[QueryPart]:
        """Yield two values of one column, or two rows, as one condition: "Norden or Berg"."""
        for one, other in combinations(sorted(values, key=min), 2):
            between = self._lowers[max(one) + 1 : min(other)]
            joining = word_set("computing", "joining")
            if not joining & set(between) and between:
                continue
            span = (
                one
                | other
                | {at for at in range(max(one) + 1, min(other)) if self._lowers[at] in joining}
            )
            for first, second in product(values[one], values[other]):
                if first[1].only and second[1].only and first[1].only != second[1].only:
                    only = tuple(dict.fromkeys(first[1].only + second[1].only))
                    yield QueryPart(span, (1.0,), ("two rows are named",), only=only)
                elif merged := _merge_equals(first[1].conditions, second[1].conditions):
                    yield QueryPart(span, (1.0,), ("two values are named",), (merged,))

    def _bound_ways(self, link: BoundLink) -> Iterator[QueryPart]:
        text = self._links.text(link.span)
        ways = []
        columns = () if link.days else self._columns.values()  # only a strict reading compares days
        for column in columns:
            path = _measurable(column)
            if path is None or (link.is_year and column.kind == "number"):
                continue
            if not link.is_year and column.kind in ("year", "date"):
                continue
            factor = bound_factor(link, column.unit) if column.unit else Decimal(1)
            if factor is None or names_other_quantity(column.name, link.names):
                continue
            named = self._named.get(column.iri)
            if named is None and not (link.is_year and _is_time(column)) and link.order == "=":
                continue
            conditions: list[Condition] = [Compares(path, link.order, link.number * factor)]
            if link.upper is not None:
                conditions.append(Compares(path, "<=", link.upper * factor))
            span = link.span | (named.span if named else frozenset())
            score = named.score if named else ASSUMED_PROPERTY
            why = f"“{text}” bounds {column.label}"
            ways.append((named is None, QueryPart(span, (score,), (why,), tuple(conditions))))
        yield from (part for _, part in sorted(ways, key=lambda way: way[0]))

    # --- forms ---

    def _forms(self, base: QueryPart) -> Iterator[tuple[QueryPart, Query]]:
        rows = Rows(self._known, base.conditions, base.only)
        has_conditions = bool(base.conditions or base.only)
        yield from self._ordered(base, rows)
        yield from self._beside(base, rows)
        yield from self._totals(base, rows)
        yield from self._common(base, rows)
        yield from self._apart(base, rows)
        yield from self._counts(base, rows)
        yield from self._relative(base, rows)
        if has_conditions:
            for shown_path, part in self._shown:
                yield base + part, ListRows(rows, shown_path)

    def _counts(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        cue = self._links.cue("count") | self._cue_words("totals")
        if not cue and not (base.conditions or base.only):
            return
        count_part = QueryPart(cue | self._class_span, (1.0,), ("asks how many",))
        yield base + count_part, Count(rows)
        for iri, link in self._named.items():
            if link.span.isdisjoint(base.span):
                column = self._columns[iri]
                part = count_part + self._column_part(column, "what is counted")
                yield base + part, Count(rows)
                yield base + part, Count(rows, Path((column,)))

    def _ordered(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        links = [*self._links.extremes, *self._listed_links()]
        bases_seen = set()
        for link in links:
            if link.is_comparative and not _names_two(rows):
                continue
            cue = QueryPart(link.span, (1.0,), ("asks for a first or last",))
            measures: list[tuple[Path | None, QueryPart]] = list(self._measures(link)[:5])
            if link.is_time or not (link.measures or link.names):
                measures.append((None, QueryPart(frozenset(), (ASSUMED_PROPERTY,), ("as listed",))))
            for measure, measured in measures:
                for shown_path, part in self._shown:
                    key = (measure, link.is_most, link.places, shown_path)
                    if key in bases_seen:
                        continue
                    bases_seen.add(key)
                    query = Extreme(rows, measure, link.is_most, link.places, shown_path)
                    yield base + cue + measured + part, query
                if measure is not None and measure not in (path for path, _ in self._shown):
                    query = Extreme(rows, measure, link.is_most, link.places, measure)
                    yield base + cue + measured, query

    def _listed_links(self) -> Iterator[ExtremeLink]:
        for name, is_most in (("listed_first", False), ("listed_last", True)):
            for at, lower in enumerate(self._lowers):
                if lower in word_set("computing", name):
                    yield ExtremeLink(frozenset((at,)), is_most, is_time=True)

    def _beside(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        if not (rows.conditions or rows.only):
            return
        for name, step in (("following", 1), ("preceding", -1)):
            words = self._cue_words(name)
            if not words:
                continue
            cue = QueryPart(words, (1.0,), ("asks for the row beside another",))
            for shown_path, part in self._shown:
                yield base + cue + part, ListRows(replace(rows, step=step), shown_path)

    def _totals(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        for total in ("sum", "average"):
            cue = self._links.cue(total)
            if not cue and not (total == "sum" and self._links.cue("count")):
                continue
            for path, part in self._measures():
                if path.kind == "number" and (part.span or cue):
                    query = Aggregate(rows, total, path)
                    yield base + QueryPart(cue | self._links.cue("count")) + part, query

    def _common(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        cue = self._cue_words("common")
        if not cue:
            return
        for column in self._columns.values():
            if column.distinct < column.statements:
                part = self._column_part(column, "what is counted")
                yield (
                    base + QueryPart(cue) + part,
                    GroupRows(rows, Path((column,)), place="greatest"),
                )

    def _relative(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        """Yield what compares all rows with one: those with a larger area than a row, and those
        with the same."""
        if not (rows.conditions or rows.only):
            return
        ways: list[tuple[Rows, QueryPart]] = []
        comparatives = [link for link in self._links.extremes if link.is_comparative]
        than = self._cue_words("than")
        for link in comparatives if than else ():
            order: Order = ">" if link.is_most else "<"
            for path, part in self._measures(link)[:3]:
                condition = ComparesTo(path, order, Extreme(rows, path, link.is_most))
                words = QueryPart(link.span | than, (1.0,), ("asks for more, or less, than a row",))
                ways.append((Rows(self._known, (condition,)), base + words + part))
        same = self._cue_words("same")
        for iri in self._named if same else ():
            path = Path((self._columns[iri],))
            alike = Within(path, GroupRows(rows, path))
            words = QueryPart(same, (1.0,), ("asks for the same",))
            part = self._column_part(self._columns[iri], "what is the same")
            ways.append((Rows(self._known, (alike,)), base + words + part))
        for others, part in ways:
            yield part, ListRows(others)
            yield part + QueryPart(self._links.cue("count")), Count(others)
            for shown_path, named in self._shown[1:]:
                yield part + named, ListRows(others, shown_path)

    def _apart(self, base: QueryPart, rows: Rows) -> Iterator[tuple[QueryPart, Query]]:
        cue = self._links.cue("difference") or self._cue_words("more")
        if cue and _names_two(rows):
            for path, part in self._measures():
                if path.kind in ("number", "year"):
                    words = QueryPart(cue | self._links.cue("count"))
                    yield base + words + part, Difference(rows, path)

    def _cue_words(self, name: str) -> Span:
        words = word_set("computing", name)
        return frozenset(at for at, lower in enumerate(self._lowers) if lower in words)


def _names_two(rows: Rows) -> bool:
    """Return whether two rows, or two values of a column, are named."""
    return len(rows.only) == 2 or any(
        isinstance(condition, Equals) and len(condition.values) == 2
        for condition in rows.conditions
    )


def _stems(name: str) -> list[str]:
    return [stem(word) for word in name.lower().replace("_", " ").split()]


def _is_time(own: KnownProperty) -> bool:
    has_time_head = not word_set("computing", "time_heads").isdisjoint(own.name.lower().split())
    return own.kind in ("year", "date") or has_time_head


def _measurable(own: KnownProperty) -> Path | None:
    """Return the path by which a column is measured: where most of its texts have a number, by
    that; None for a column that isn't measured."""
    if own.kind in ("number", "year", "date"):
        return Path((own,))
    if own.kind not in ("text", "entity") or not own.values:
        return None
    with_number = sum(any(map(str.isdigit, value.label)) for value in own.values)
    return Path((own,), reads_number=True) if with_number >= _READABLE * len(own.values) else None


def _merge_equals(one: Sequence[Condition], other: Sequence[Condition]) -> Equals | None:
    if len(one) != 1 or len(other) != 1:
        return None
    first, second = one[0], other[0]
    if not isinstance(first, Equals) or not isinstance(second, Equals):
        return None
    if first.path != second.path or set(first.values) & set(second.values):
        return None
    values: tuple[Object, ...] = first.values + second.values
    return Equals(first.path, values, f"{first.label} or {second.label}")
