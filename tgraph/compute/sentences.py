"""Sentences that say the result of a query, each with the statements that it rests on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pyoxigraph import Literal, NamedNode

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
    Rows,
    RowShare,
    Within,
    measured_path,
)
from tgraph.compute.evaluation import Computed
from tgraph.compute.results import (
    Measure,
    Solution,
    bound_value,
    compared_value,
    decisive_solutions,
    order_groups,
    order_of,
    result_values,
    total_groups,
    winners,
    winning_groups,
)
from tgraph.compute.witnesses import Witness, find_witnesses
from tgraph.index.graph_source import Statement
from tgraph.model import Object, WitnessRole
from tgraph.resources import word_set

MOST_NAMED = 20
"""Rows that a sentence names; of more it says how many."""

MOST_ADDENDS = 8
"""Numbers that a sum is shown with."""

_ORDERS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least", "=": "exactly"}
_TIME_ORDERS = {"<": "before", "<=": "until", ">": "after", ">=": "from", "=": "in"}


@dataclass(frozen=True, slots=True)
class ComputedSentence:
    """A sentence of a computed answer and the statements that it rests on."""

    text: str
    statements: tuple[Statement, ...]


def write_sentences(
    computed: Computed, witnesses: Sequence[Witness], labels: Mapping[NamedNode, str]
) -> tuple[ComputedSentence, ...]:
    """Return the sentences that say a result: the answer first, then what it was compared with,
    what contradicts itself, and what was cut off."""
    return tuple(_Writer(computed, witnesses, labels).sentences())


def describe_condition(condition: Condition, labels: Mapping[NamedNode, str]) -> str:
    """Return a condition as a predicate: "has the maker Norden"."""
    query = ListRows(Rows(None, (condition,)))
    return _Writer(Computed(query, "", (), ()), (), labels).describe_conditions(query.rows)


def describe_value(value: Object, path: Path, labels: Mapping[NamedNode, str]) -> str:
    """Return the value at the end of a path in words, with its unit."""
    query = ListRows(Rows(None), path)
    return _Writer(Computed(query, "", (), ()), (), labels).describe_amount(value, path)


def list_names(names: Sequence[str], total: int | None = None) -> str:
    """Return names as a list in words; of more than ``MOST_NAMED`` the first, and how many more."""
    total = len(names) if total is None else total
    sample = list(names[:MOST_NAMED])
    if total > len(sample):
        return f"{', '.join(sample)} and {total - len(sample)} more"
    return sample[0] if len(sample) == 1 else f"{', '.join(sample[:-1])} and {sample[-1]}"


def write_number(value: Decimal) -> str:
    """Return a number without needless zeros, of endless fractions four digits."""
    rounded = value if -value.as_tuple().exponent <= 4 else round(value, 4)  # type: ignore[operator]
    text = format(rounded, ",f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class _Writer:
    """The sentences of one result."""

    def __init__(
        self, computed: Computed, witnesses: Sequence[Witness], labels: Mapping[NamedNode, str]
    ) -> None:
        self._computed = computed
        self._query = computed.query
        self._labels = labels
        self._by_role: defaultdict[WitnessRole, list[Statement]] = defaultdict(list)
        for witness in witnesses:
            self._by_role[witness.role].append(witness.statement)

    def sentences(self) -> Iterator[ComputedSentence]:
        yield self._sentence(self._answer(), "rests", "searched" if self._is_empty else None)
        yield from self._compared()
        yield from self._excluded()
        yield from self._contradicting()
        for inner in self._computed.inner:
            yield from _Writer(inner, find_witnesses(inner), self._labels).sentences()
        if self._computed.is_cut:
            read = len(self._computed.solutions)
            yield ComputedSentence(f"Only the first {read:,} solutions were read as witnesses.", ())

    @property
    def _is_empty(self) -> bool:
        return not self._computed.solutions

    def _sentence(self, text: str, *roles: WitnessRole | None) -> ComputedSentence:
        statements = [s for role in roles if role for s in self._by_role[role]]
        return ComputedSentence(text[:1].upper() + text[1:], tuple(dict.fromkeys(statements)))

    # --- the answer ---

    def _answer(self) -> str:
        query = self._query
        if self._is_empty:
            prefix = "No: " if isinstance(query, Exists) else ""
            return f"{prefix}{self._none()}."
        match query:
            case Count(distinct=path):
                return self._distinct(path) if path else self._counted()
            case Aggregate(total=total, path=path):
                return self._total(total, path)
            case Extreme():
                return self._extreme(query)
            case GroupRows():
                return self._first_groups(query) if query.place else self._groups(query)
            case Difference() | CompareTwo():
                return self._two(query)
            case ListRows(shown=path):
                return self._shown(path) if path else self._counted()
            case _:
                return self._judged(query)

    def _judged(self, query: CompareGroups | RowShare | Exists) -> str:
        match query:
            case CompareGroups():
                return self._two_groups(query)
            case RowShare():
                return self._share()
            case Exists():
                return f"yes: {self._counted()}"

    def _none(self) -> str:
        rows = self._query.rows
        known_class = rows.known_class
        path = measured_path(self._query)
        if path is not None and rows.only:
            return f"there is no single {path.last.name} of {list_names(self._terms(rows.only))}"
        predicate = self.describe_conditions(rows) or "is in the result"
        if path is not None and not rows.conditions:
            predicate = f"has {path.last.name}"
        if known_class is not None and known_class.is_closed:
            members = f"{known_class.members:,} {self._plural()} in “{known_class.label}”"
            return f"none of the {members} {predicate}"
        return f"the documents name no {self._noun()} that {predicate}"

    def _how_many(self, count: int) -> str:
        rows = self._query.rows
        known_class = rows.known_class
        predicate = self.describe_conditions(rows, plural=count != 1)
        if known_class is not None and known_class.is_closed:
            if not predicate:
                return f"there are {count:,} {self._plural()} in “{known_class.label}”"
            members = f"{known_class.members:,} {self._plural()} in “{known_class.label}”"
            return f"{count:,} of the {members} {predicate}"
        noun = self._plural() if count != 1 else self._noun()
        if known_class is not None and known_class.kind == "name":
            return f"there {'are' if count != 1 else 'is'} {count:,} {noun}{_that(predicate)}"
        return f"the documents name {count:,} {noun}{_that(predicate)}"

    def _counted(self) -> str:
        names = sorted(map(self._label, self._computed.rows))
        count = self._computed.row_count
        return f"{self._how_many(count)}: {list_names(names, count)}."

    def _distinct(self, path: Path) -> str:
        values = self._values_by_label(path)
        distinct = int(self._computed.bindings[0]["distinct"].value)
        text = (
            f"{self._how_many(self._computed.row_count)}; they name {distinct:,} different values"
        )
        text = f"{text} of {path.last.name}"
        names = [
            name if len(group) == 1 else f"{name} ({len(group)} times)"
            for name, group in values.items()
        ]
        return f"{text}: {list_names(names, distinct)}."

    def _values_by_label(self, path: Path) -> dict[str, list[Solution]]:
        values: defaultdict[str, list[Solution]] = defaultdict(list)
        for solution in self._computed.solutions:
            values[self._value(solution, path)].append(solution)
        return dict(sorted(values.items(), key=lambda pair: (-len(pair[1]), pair[0])))

    def _total(self, total: str, path: Path) -> str:
        values = self._measured()
        addends = [compared_value(value) for value in values.values()]
        numbers = [number for number in addends if isinstance(number, Decimal)]
        amount = Decimal(self._computed.bindings[0]["total"].value)
        count = self._computed.row_count
        noun = self._noun() if count == 1 else self._plural()
        predicate = self.describe_conditions(self._query.rows, plural=count != 1)
        of = f"the {count:,} {noun}{_that(predicate)}"
        name = "total" if total == "sum" else "average"
        text = f"the {name} {path.last.name} of {of} is {self._amount(amount, path)}"
        if total == "sum" and 1 < len(numbers) <= MOST_ADDENDS and not self._computed.is_cut:
            text += f": {' + '.join(map(write_number, numbers))}"
        return f"{text}.{self._missing(path)}"

    def _measured(self) -> dict[NamedNode, Object]:
        return {s.row: s.value for s in self._computed.solutions if s.value is not None}

    def _missing(self, path: Path) -> str:
        """Return the sentence on members without a value, where that is known."""
        rows, known_class = self._query.rows, self._query.rows.known_class
        if (
            known_class is None
            or rows.conditions
            or rows.only
            or not known_class.rows
            or self._computed.is_cut
        ):
            return ""
        missing = known_class.members - len(
            {*self._computed.rows, *(s.row for s in self._computed.conflicts)}
        )
        if not missing:
            return ""
        has = "has" if missing == 1 else "have"
        of = f"{missing:,} of the {known_class.members:,} {self._plural()}"
        return f" {of} {has} no value of {path.last.name}."

    def _extreme(self, query: Extreme) -> str:
        text = self._listed(query) if query.path is None else self._best(query, query.path)
        return text + self._beside_best(query)

    def _listed(self, query: Extreme) -> str:
        best = winners(query, self._computed.solutions)
        names = list_names(list(dict.fromkeys(self._label(solution.row) for solution in best)))
        count = len(self._computed.rows)
        among = f" of the {count:,} {self._plural()}" if count > 1 else ""
        predicate = self.describe_conditions(query.rows, plural=count > 1)
        is_listed = "is listed" if len(best) == 1 else "are listed"
        return f"{names} {is_listed} {self._adjective(query)}{among}{_that(predicate)}."

    def _beside_best(self, query: Extreme) -> str:
        """Return the sentences on the values shown beside the first places, if not the measure."""
        if query.shown is None or query.shown == query.path:
            return ""
        rows: defaultdict[NamedNode, list[str]] = defaultdict(list)
        for solution in winners(query, self._computed.solutions):
            assert solution.shown is not None
            rows[solution.row].append(self.describe_amount(solution.shown, query.shown))
        parts = (
            f" The {query.shown.last.name} of {self._label(row)} is"
            f" {list_names(list(dict.fromkeys(values)))}."
            for row, values in list(rows.items())[:MOST_NAMED]
        )
        return "".join(parts)

    def _best(self, query: Extreme, path: Path) -> str:
        best = winners(query, self._computed.solutions)
        adjective = self._adjective(query)
        predicate = self.describe_conditions(query.rows, plural=True)
        count = self._computed.row_count
        among = f" of the {count:,} {self._plural()}{_that(predicate)}" if count > 1 else ""
        if len(query.rows.only) == 1:
            name, value = self._label(best[0].row), self._value(best[0], path)
            return f"the {path.last.name} of {name} is {value}."
        if query.places == 1 and _is_participle(path.last.name):
            names = list_names([self._label(solution.row) for solution in best])
            was = "was" if len(best) == 1 else "were"
            predicate = f"{was} {path.last.name} {adjective}{among}: {self._value(best[0], path)}"
            return f"{names} {predicate}.{self._missing(path)}"
        if query.places == 1 and len(best) == 1:
            value = self._value(best[0], path)
            name = self._label(best[0].row)
            return (
                f"{name} has the {adjective} {path.last.name}{among}: {value}.{self._missing(path)}"
            )
        if query.places == 1:
            names = list_names([self._label(solution.row) for solution in best])
            value = self._value(best[0], path)
            share = f"{names} share the {adjective} {path.last.name}{among}: {value}."
            return share + self._missing(path)
        pairs = [f"{self._label(s.row)} ({self._value(s, path)})" for s in best]
        return (
            f"{list_names(pairs)} have the {adjective} {path.last.name}{among}."
            f"{self._missing(path)}"
        )

    def _adjective(self, query: Extreme) -> str:
        if query.path is None:
            return "last" if query.is_most else "first"
        if query.path.kind == "number":
            return "greatest" if query.is_most else "least"
        return "latest" if query.is_most else "earliest"

    def _groups(self, query: GroupRows) -> str:
        parts, rows = [], self._rows_of_extremes(query)
        for binding in self._computed.bindings:
            group = self._term(binding["group"])
            number = Decimal(binding["count" if query.path is None else "total"].value)
            unit = query.path.unit if query.path else ""
            named = (
                f" ({list_names(sorted(members))})" if (members := rows[binding["group"]]) else ""
            )
            parts.append(f"{group} {write_number(number)}{f' {unit}' if unit else ''}{named}")
        totals = (
            self._plural() if query.path is None else f"{query.total} of {query.path.last.name}"
        )
        predicate = self.describe_conditions(query.rows, plural=True)
        return f"{totals}{_that(predicate)} by {query.by.last.name}: {list_names(parts)}."

    def _rows_of_extremes(self, query: GroupRows) -> Mapping[Object, set[str]]:
        """Return for each group the names of the rows with its greatest or least value; empty for
        other totals."""
        names: defaultdict[Object, set[str]] = defaultdict(set)
        if query.total in ("minimum", "maximum"):
            for solution in decisive_solutions(query, self._computed.solutions):
                assert solution.group is not None
                names[solution.group].add(self._label(solution.row))
        return names

    def _first_groups(self, query: GroupRows) -> str:
        totals = total_groups(query, self._computed.solutions)
        groups = sorted(winning_groups(query, totals), key=self._term)
        names = list_names([self._term(group) for group in groups])
        amount, amounts = totals[groups[0]], self._totalled(query)
        predicate = self.describe_conditions(query.rows, plural=True)
        has = "has" if len(groups) == 1 else "share"
        place = {("greatest", True): "most", ("least", True): "fewest"}
        adjective = place.get((str(query.place), query.path is None), str(query.place))
        among = f" of the {len(totals):,} values of {query.by.last.name}"
        text = f"{names} {has} the {adjective} {amounts}{_that(predicate)}{among}"
        text = f"{text}: {self._measure(amount, query)}"
        if len(groups) == 1 and query.path is None:
            rows = {s.row for s in self._computed.solutions if s.group == groups[0]}
            text = f"{text}, {list_names(sorted(map(self._label, rows)))}"
        return f"{text}."

    def _totalled(self, query: GroupRows) -> str:
        if query.path is None:
            return self._plural()
        name = {"sum": "total", None: ""}.get(query.total, query.total)
        return f"{name} {query.path.last.name}"

    def _measure(self, measure: Measure, query: GroupRows) -> str:
        if isinstance(measure, str):
            return measure
        number = Decimal(measure.numerator) / Decimal(measure.denominator)
        return self._amount(number, query.path) if query.path else write_number(number)

    def _two_groups(self, query: CompareGroups) -> str:
        counts = []
        for values in query.groups:
            rows = {s.row for s in self._computed.solutions if s.group in values}
            named = list_names(self._terms(values))
            counts.append(
                (named, len(rows), list_names(sorted(map(self._label, rows)) or ["none"]))
            )
        (one, first, of_one), (other, second, of_other) = counts
        noun, predicate = self._plural(), self.describe_conditions(query.rows, plural=True)
        noun += _that(predicate)
        facts = f"{one} has {first:,} {noun} ({of_one}), {other} {second:,} ({of_other})"
        if query.asked == "difference":
            return f"the difference is {abs(first - second):,}: {facts}."
        if first == second:
            return f"they have equally many: {facts}."
        is_so = (first > second) == query.is_more
        if query.asked == "which":
            return f"{one if is_so else other}: {facts}."
        return f"{'yes' if is_so else 'no'}: {facts}."

    def _share(self) -> str:
        rows, every = self._computed.rows, {s.row for s in self._computed.whole}
        percent = write_number(round(Decimal(100 * len(rows)) / len(every), 2))
        predicate = self.describe_conditions(self._query.rows, plural=len(rows) != 1)
        names = list_names(sorted(map(self._label, rows)))
        noun = self._plural()
        return f"{len(rows):,} of {len(every):,} {noun} {predicate}, that is {percent} %: {names}."

    def _two(self, query: Difference | CompareTwo) -> str:
        path, measured = query.path, self._measured()
        members = query.rows.only or self._computed.rows
        order = [row for row in members if row in measured]
        lacking = [row for row in members if row not in measured]
        if len(order) != 2 and not lacking:
            return f"{self._how_many(len(order))}, and two are compared."
        if lacking:
            names = list_names([self._label(row) for row in lacking])
            return f"there is no single {path.last.name} of {names}."
        one, two = order[0], order[1]
        values = {row: compared_value(measured[row]) for row in order}
        amounts = [self.describe_amount(measured[row], path) for row in (one, two)]
        name, labels = path.last.name, (self._label(one), self._label(two))
        facts = (
            f"{labels[0]} was {name} {amounts[0]}, {labels[1]} {amounts[1]}"
            if _is_participle(name)
            else f"the {name} of {labels[0]} {_to_be(name)} {amounts[0]},"
            f" that of {labels[1]} {amounts[1]}"
        )
        first, second = values[one], values[two]
        if isinstance(query, Difference):
            assert isinstance(first, Decimal)
            assert isinstance(second, Decimal)
            return f"they differ by {self._amount(abs(first - second), path)}: {facts}."
        if first == second:
            return f"they are equal: {facts}."
        is_so = (first > second) == query.is_more  # type: ignore[operator]
        if query.asks_which:
            return f"{self._label(one if is_so else two)}: {facts}."
        return f"{'yes' if is_so else 'no'}: {facts}."

    def _shown(self, path: Path) -> str:
        solutions = self._computed.solutions
        if len(self._computed.rows) == 1:
            values = list(dict.fromkeys(self._value(solution, path) for solution in solutions))
            subject = self._label(solutions[0].row)
            verb = _to_be(path.last.name) if len(values) == 1 else "are"
            return f"the {path.last.name} of {subject} {verb} {list_names(values)}."
        values_by_label = self._values_by_label(path)
        parts = [
            f"{value} ({list_names([self._label(s.row) for s in group])})"
            for value, group in values_by_label.items()
        ]
        predicate = self.describe_conditions(self._query.rows, plural=True)
        of = f"{self._plural()}{_that(predicate)}"
        return f"{path.last.name} of {of}: {list_names(parts)}."

    # --- what stands beside it ---

    def _compared(self) -> Iterator[ComputedSentence]:
        query = self._query
        if isinstance(query, GroupRows) and query.place:
            yield from self._lesser_groups(query)
        if not isinstance(query, Extreme) or not self._by_role["compared"]:
            return
        winner_ids = {id(solution) for solution in winners(query, self._computed.solutions)}
        others = [s for s in self._computed.solutions if id(s) not in winner_ids]
        others.sort(key=lambda s: str(order_of(s.value)[1]))
        ordered = sorted(others, key=lambda s: order_of(s.value), reverse=query.is_most)
        path = query.path
        pairs = [
            f"{self._label(s.row)} {self._value(s, path)}" if path else self._label(s.row)
            for s in ordered
        ]
        text = f"It was compared with {list_names(list(dict.fromkeys(pairs)))}."
        yield self._sentence(text, "compared")

    def _lesser_groups(self, query: GroupRows) -> Iterator[ComputedSentence]:
        solutions = self._computed.solutions
        totals = total_groups(query, solutions)
        lesser = totals.keys() - set(winning_groups(query, totals))
        if not lesser:
            return
        ordered = order_groups(
            query, {group: totals[group] for group in sorted(lesser, key=self._term)}
        )
        pairs = [f"{self._term(group)} {self._measure(totals[group], query)}" for group in ordered]
        statements = [
            s for solution in solutions if solution.group in lesser for s in solution.statements
        ]
        text = f"It was compared with {list_names(pairs)}."
        yield ComputedSentence(text, tuple(dict.fromkeys(statements)))

    def _excluded(self) -> Iterator[ComputedSentence]:
        rows = dict.fromkeys(solution.row for solution in self._computed.excluded)
        denied = [c for c in self._query.rows.conditions if isinstance(c, Differs | Lacks)]
        if rows and denied:
            names = list_names(sorted(map(self._label, rows)))
            first = denied[0]
            if isinstance(first, Differs):
                against = Equals(first.path, first.values, first.label)
                text = f"{names} {self._condition(against, len(rows) > 1)}."
            else:
                has = "have" if len(rows) > 1 else "has"
                text = f"{names} {has} a value of {_name_path(first.path)}."
            statements = [s for solution in self._computed.excluded for s in solution.excluding]
            yield ComputedSentence(text, tuple(dict.fromkeys(statements)))

    def _contradicting(self) -> Iterator[ComputedSentence]:
        path = measured_path(self._query)
        if path is None:
            return
        by_row: defaultdict[NamedNode, list[Solution]] = defaultdict(list)
        for solution in self._computed.conflicts:
            by_row[solution.row].append(solution)
        for row, solutions in by_row.items():
            values = list(dict.fromkeys(self._value(s, path) for s in solutions))
            text = (
                f"{self._label(row)} has {len(values)} values of {path.last.name},"
                f" {list_names(values)}, and is left out."
            )
            statements = [statement for s in solutions for statement in s.statements]
            yield ComputedSentence(text, tuple(dict.fromkeys(statements)))

    # --- words ---

    def _noun(self) -> str:
        known_class = self._query.rows.known_class
        if known_class is None:
            return "thing"
        if known_class.kind == "table":
            return known_class.type_label or "row"
        return (
            known_class.label
            if known_class.label.isupper()
            else known_class.label[:1].lower() + known_class.label[1:]
        )

    def _plural(self) -> str:
        noun = self._noun()
        if noun.endswith("y") and noun[-2:-1] not in "aeiou":
            return f"{noun[:-1]}ies"
        return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"

    def describe_conditions(self, rows: Rows, *, plural: bool = False) -> str:
        """Return the conditions of rows as a predicate."""
        inner = iter(self._computed.inner)
        parts = [
            self._referring(condition, next(inner), plural)
            if isinstance(condition, Within | ComparesTo)
            else self._condition(condition, plural)
            for condition in rows.conditions
            if not _ends_period(condition, rows.conditions)
        ]
        has = "have " if plural else "has "
        for at in range(len(parts) - 1, 0, -1):
            if parts[at].startswith(has) and parts[at - 1].startswith(has):
                parts[at] = parts[at].removeprefix(has)
        clause = " and ".join(parts)
        return self._step(rows, clause, plural) if rows.step else clause

    def _step(self, rows: Rows, clause: str, plural: bool) -> str:
        """Return that members stand beside others: "stands after one that has the maker Berg"."""
        if rows.only:
            anchor = list_names([self._label(row) for row in rows.only])
        else:
            anchor = f"one that {clause}" if clause else "another"
        stands = "stand" if plural else "stands"
        return f"{stands} directly {'after' if rows.step > 0 else 'before'} {anchor}"

    def _referring(self, condition: Within | ComparesTo, inner: Computed, plural: bool) -> str:
        """Return a condition that refers to another query as a predicate, with the result of it."""
        query = condition.query
        if isinstance(condition, ComparesTo):
            bound = bound_value(condition.query, inner.solutions)
            if bound is None:
                has = "have" if plural else "has"
                return f"{has} a {condition.path.last.name} that can be compared"
            return self._condition(Compares(condition.path, condition.order, bound), plural)
        values = result_values(query, inner.solutions)
        if condition.path is not None:
            return self._condition(Equals(condition.path, values, ""), plural)
        return self._condition(OneOf(values), plural)

    def _condition(self, condition: Condition, plural: bool) -> str:
        """Return a condition as a predicate: "have the maker Norden", "were built at Dundee"."""
        has, was = ("have", "were") if plural else ("has", "was")
        if isinstance(condition, OneOf):
            names = list_names(self._terms(condition.values) or ["none"])
            return f"{'are' if plural else 'is'} {names}"
        assert condition.path is not None
        path = condition.path
        if isinstance(condition, Equals | Differs) and (clause := self._related(condition, plural)):
            return clause
        name = path.last.name if len(path.properties) == 1 else path.label
        is_verb = _is_participle(name)
        match condition:
            case Lacks():
                return f"{has} no value of {_name_path(path)}"
            case Equals(values=values):
                value = list_names(self._terms(values) or ["none"])
                return f"{was} {name} {value}" if is_verb else f"{has} the {name} {value}"
            case Differs(values=values):
                value = list_names(self._terms(values))
                if is_verb:
                    return f"{was} not {name} {value}"
                return f"{has} a {name} other than {value}"
            case Compares(order=order, bound=bound):
                if isinstance(bound, Literal) or path.kind in ("year", "date"):
                    time = self._time(condition)
                    return f"{was} {name} {time}" if is_verb else f"{has} a {name} {time}"
                return f"{has} a {name} of {_ORDERS[order]} {self._amount(bound, path)}"
            case Contains(text=text):
                return f"{has} “{text}” in {name}"
        raise AssertionError(condition)

    def _related(self, condition: Equals | Differs, plural: bool) -> str:
        """Return a condition on a relation that leads back, or that is called by a verb, as a
        predicate; empty for another."""
        path, names = condition.path, list_names(self._terms(condition.values) or ["none"])
        is_denied = isinstance(condition, Differs)
        if path.backward:
            negated = " not" if is_denied else ""
            return f"{'are' if plural else 'is'}{negated} {_name_path(path)} of {names}"
        name = path.last.name if len(path.properties) == 1 else path.label
        verb = _read_verb(name)
        if not verb:
            return ""
        negated = ("do not " if plural else "does not ") * is_denied
        return f"{negated}{verb if plural or is_denied else name} {names}"

    def _time(self, condition: Compares) -> str:
        """Return a bound on a time in words, with the end of a period that it begins."""
        when = _write_time(condition.bound)
        for end in self._query.rows.conditions:
            if isinstance(end, Compares) and _is_period(condition, end):
                until = _write_time(end.bound)
                return f"on {when}" if until == when else f"from {when} until {until}"
        return f"{_TIME_ORDERS[condition.order]} {when}"

    def _terms(self, terms: Iterable[Object]) -> list[str]:
        return [self._term(term) for term in terms]

    def _term(self, term: Object) -> str:
        return self._label(term) if isinstance(term, NamedNode) else term.value

    def _label(self, node: NamedNode) -> str:
        return self._labels.get(node) or node.value

    def _value(self, solution: Solution, path: Path) -> str:
        return self.describe_amount(solution.value, path) if solution.value is not None else ""

    def describe_amount(self, value: Object, path: Path) -> str:
        """Return a value with its unit, and an entity's name."""
        if isinstance(value, NamedNode):
            return self._label(value)
        number = compared_value(value)
        if isinstance(number, Decimal) and path.kind == "number":
            return self._amount(number, path)
        return value.value

    def _amount(self, number: Decimal, path: Path) -> str:
        return f"{write_number(number)} {path.unit}".strip()


def _name_path(path: Path) -> str:
    """Return a path as a quoted name: where it leads back, what the member is a value of."""
    return f"a value of “{path.last.name}”" if path.is_backward else f"“{path.label}”"


def _write_time(bound: Decimal | Literal) -> str:
    return bound.value if isinstance(bound, Literal) else format(bound, "f")


def _is_period(start: Compares, end: Compares) -> bool:
    return start.path == end.path and (start.order, end.order) == (">=", "<=")


def _ends_period(condition: Condition, conditions: Sequence[Condition]) -> bool:
    """Return whether a condition is the end of a period that another begins."""
    if not isinstance(condition, Compares) or condition.path.kind not in ("year", "date"):
        return False
    return any(isinstance(one, Compares) and _is_period(one, condition) for one in conditions)


def _that(what: str) -> str:
    """Return a predicate as a relative clause; empty for none."""
    return f" that {what}" if what else ""


def _read_verb(name: str) -> str:
    """Return a property's name as a plural predicate, such as "run through" for "runs through";
    empty for a name that is no predicate."""
    first, *end = name.split()
    is_verb = bool(end) and first.endswith("s") and not first.endswith("ss")
    is_verb = is_verb and end[-1] in word_set("computing", "prepositions")
    return " ".join((first[:-1], *end)) if is_verb else ""


def _is_participle(name: str) -> bool:
    """Return whether the name of a property is the rest of a predicate, as "launched" and "built
    at" are."""
    *before, last = name.split()
    if _read_verb(name):
        return False
    if before:
        return last in word_set("computing", "prepositions")
    return last.endswith("ed")


def _to_be(name: str) -> str:
    """Return the verb beside the name of a property: the servings are, the weight is."""
    last = name.split()[-1].lower()
    return "are" if last.endswith("s") and not last.endswith(("ss", "us", "is")) else "is"
