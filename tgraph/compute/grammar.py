"""Candidate queries of a question, made from its links by a grammar of forms.

Each candidate says which words it accounts for and what it assumes; ranking decides among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import islice, product

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    CompareTwo,
    Condition,
    Count,
    Difference,
    Differs,
    Equals,
    Exists,
    Extreme,
    GroupRows,
    ListRows,
    Order,
    Path,
    Query,
    Rows,
)
from tgraph.compute.linking import (
    BY_SYNONYM,
    BY_UNIT,
    EXACT,
    BoundLink,
    ExtremeLink,
    PropertyLink,
    QuestionLinks,
    Span,
    ValueLink,
    bound_factor,
    measures_other,
    merge_links,
    names_other_quantity,
    stem,
)
from tgraph.compute.lookup import KnowledgeLookup
from tgraph.compute.parts import (
    ASSUMED_CLASS,
    ASSUMED_PROPERTY,
    ASSUMED_VERB,
    CandidateQuery,
    QueryPart,
    sum_parts,
)
from tgraph.index.catalogue import KnownClass, KnownProperty
from tgraph.ingest.unit_conversion import measure_of
from tgraph.resources import word_set

MOST_CANDIDATES = 200
"""Candidates that a question may have; further ones are left out."""

_MEASURED = ("number", "year", "date")


def make_candidates(links: QuestionLinks, lookup: KnowledgeLookup) -> list[CandidateQuery]:
    """Return the queries that a question may mean, in no order of likelihood."""
    grammar = _Grammar(links, lookup)
    return list(islice(grammar.candidates(), MOST_CANDIDATES))


def is_amount(known: KnownProperty) -> bool:
    """Return whether the numbers of a property add up, by its name and unit: points, no rates."""
    words = {word.strip("()%.") for word in known.name.lower().split()}
    return (
        known.kind == "number"
        and known.unit != "%"
        and words.isdisjoint(word_set("computing", "no_amounts") | word_set("computing", "ranks"))
    )


class _Grammar:
    """The grammar over the links of one question."""

    def __init__(self, links: QuestionLinks, lookup: KnowledgeLookup) -> None:
        self._links = links
        self._lookup = lookup
        self._catalogue = lookup.catalogue

    def candidates(self) -> Iterator[CandidateQuery]:
        for known_class, base in self._classes():
            for conditions in self._conditions(known_class):
                yield from self._forms(known_class, base + conditions)

    # --- classes ---

    def _classes(self) -> Iterator[tuple[KnownClass, QueryPart]]:
        """Yield the classes that may be asked about: those named, else all that have what the
        question names."""
        by_words = sorted(self._links.classes, key=lambda link: len(link.span))
        class_links = {link.known.key: link for link in by_words}
        closed_types = {
            link.known.type if link.known.is_whole_type else link.known.main_type
            for link in class_links.values()
            if link.known.kind == "table"
        }
        for link in class_links.values():
            if link.known.kind == "type" and (
                link.known.key in closed_types or not self._asks_whole
            ):
                continue  # its table is asked instead, or phrases are read
            why = f"“{self._links.text(link.span)}” is the class {describe_class(link.known)}"
            yield link.known, QueryPart(link.span, (link.score,), (why,))
        for known_class in self._catalogue.classes:
            if known_class.key in class_links or known_class.kind == "type":
                continue
            reason = f"no word names the class; {describe_class(known_class)} has what is asked"
            yield known_class, QueryPart(frozenset(), (ASSUMED_CLASS,), (reason,))

    @property
    def _asks_whole(self) -> bool:
        """Whether a question is of a form that phrases don't have."""
        return not self._links.cues.keys().isdisjoint(("group", "whether", "difference"))

    def _properties(self, known_class: KnownClass) -> dict[NamedNode, KnownProperty]:
        """Return the properties that may be computed with: of a table its columns, of others what
        tables or imported graphs state."""
        properties = (self._catalogue.property_of(iri) for iri, _ in known_class.properties)
        return {field.iri: field for field in properties if field.is_structured}

    def _links_to(self, known_class: KnownClass) -> list[PropertyLink]:
        """Return a link for each property of a class that the question names, with all words that
        name it."""
        fields = self._properties(known_class)
        own_links = (link for link in self._links.properties if link.known.iri in fields)
        return list(merge_links(own_links).values())

    # --- conditions ---

    def _conditions(self, known_class: KnownClass) -> Iterator[QueryPart]:
        """Yield the ways in which the values and bounds of the question are conditions."""
        used: Span = frozenset().union(
            *(link.span for link in self._links.classes if link.known.key == known_class.key)
        )
        spans: dict[Span, list[QueryPart]] = {}
        for value in self._links.values:
            if value.span <= used:
                continue
            ways = spans.setdefault(value.span, [])
            ways += self._value_conditions(known_class, value)
        for bound in self._links.bounds:
            spans[bound.span] = list(self._bound_conditions(known_class, bound))
        ways_by_span = [spans[span] or [QueryPart()] for span in sorted(spans, key=min)]
        both = frozenset(at for at, word in enumerate(self._links.words) if word.lower == "both")
        for parts in product(*ways_by_span):
            part = sum_parts(parts)
            yield part + QueryPart(both) if len(part.conditions) > 1 else part

    def _value_conditions(self, known_class: KnownClass, link: ValueLink) -> Iterator[QueryPart]:
        rows = set(known_class.rows)
        members = tuple(value for value in link.values if value in rows)
        if members:
            why = f"“{self._links.text(link.span)}” is a row"
            yield QueryPart(
                link.span,
                (link.score,),
                (why,),
                only=tuple(m for m in members if isinstance(m, NamedNode)),
            )
        fields = self._properties(known_class)
        paths = [
            path
            for path in self._lookup.find_paths(known_class, link.values)
            if not link.properties or path.last.iri in link.properties
            if len(path.properties) > 1 or path.last.iri in fields
        ]
        may_hold = self.may_hold(known_class, paths)
        for path in paths:
            for part in self._value_condition(known_class, link, path):
                yield part
                if may_hold and not part.span & self._links.verb:
                    verb = QueryPart(self._links.verb, (ASSUMED_VERB,), (f"it has {path.label}",))
                    yield part + verb

    def may_hold(self, known_class: KnownClass, paths: Sequence[Path]) -> bool:
        """Return whether the question's verb can say that a row has a value that these paths lead
        to: where one column alone has it, which is not called after who does another thing."""
        if not self._links.verb or len(paths) != 1 or len(paths[0].properties) != 1:
            return False
        head = paths[0].last
        is_column = any(column.property == head.iri for column in known_class.columns)
        noun = head.name.lower().split()[-1]
        is_agent = noun.endswith(("er", "or")) and noun not in word_set("computing", "no_agents")
        return is_column and not is_agent

    def _value_condition(
        self, known_class: KnownClass, link: ValueLink, path: Path
    ) -> Iterator[QueryPart]:
        span, score, why = link.span, link.score, f"“{self._links.text(link.span)}” is a value of"
        naming = [
            property_link
            for property_link in self._links.properties
            if property_link.known.iri == path.properties[0].iri
            and property_link.span.isdisjoint(link.span)
        ]
        for property_link in naming:
            span |= property_link.span
        negations = [
            cue for cue in self._links.cues.get("negation", ()) if max(cue) < min(link.span)
        ]
        if len(path.properties) > 1:
            score *= 0.95 ** (len(path.properties) - 1)
        reason = f"{why} {path.label}"
        if negations:
            span |= frozenset().union(*negations)
            condition: Condition = Differs(path, link.values, link.label)
        else:
            condition = Equals(path, link.values, link.label)
        yield QueryPart(span, (score,), (reason,), (condition,))

    def _bound_conditions(self, known_class: KnownClass, link: BoundLink) -> Iterator[QueryPart]:
        for part, bound, upper in self._bounded_properties(known_class, link):
            assert part.path is not None
            if link.days is not None:
                compared = _compare_days(part.path, link.order, link.days)
                yield replace(part, path=None, conditions=compared)
                continue
            orders: list[Condition] = [Compares(part.path, link.order, bound)]
            if upper is not None:
                orders.append(Compares(part.path, "<=", upper))
            yield replace(part, path=None, conditions=tuple(orders))

    def _bounded_properties(
        self, known_class: KnownClass, link: BoundLink
    ) -> Iterator[tuple[QueryPart, Decimal, Decimal | None]]:
        for field in self._properties(known_class).values():
            if field.kind not in _MEASURED:
                continue
            is_time = field.kind in ("year", "date")
            if not _is_comparable(field, link):
                continue
            factor = bound_factor(link, field.unit)
            if factor is None or self._names_other(field, link):
                continue
            span, score, why = self._measure(field, link.span, link.measures, link.names)
            if score is None:
                if link.unit and not names_other_quantity(field.name, link.names):
                    score, why = BY_UNIT, f"{field.label} is in {field.unit}"
                elif is_time:
                    score, why = ASSUMED_PROPERTY, f"{field.label} is a time"
                else:
                    continue
            upper = link.upper * factor if link.upper is not None else None
            reason = f"“{self._links.text(link.span)}” bounds {field.label}: {why}"
            yield (
                QueryPart(span | link.span, (score,), (reason,), path=Path((field,))),
                link.number * factor,
                upper,
            )

    def _names_other(self, own: KnownProperty, link: BoundLink) -> bool:
        """Return whether the words beside a bound name properties, and not this one: a cost isn't
        less than 400 kg, and 5 stars aren't a price."""
        beside = {
            near.known.iri
            for near in self._links.properties
            if near.known.is_structured
            if max(near.span) + 1 == min(link.span)
            or (
                (min(near.span) == max(link.span) + 1 and near.known.kind == "number")
                and near.score > BY_SYNONYM
            )
        }
        return bool(beside) and own.iri not in beside

    def _measure(
        self,
        own: KnownProperty,
        asked: Span,
        measures: Sequence[str],
        names: frozenset[str],
    ) -> tuple[Span, float | None, str]:
        """Return the words that name a property, how surely, and why; no score where none does."""
        name_links = [link for link in self._links.properties if link.known.iri == own.iri]
        span: Span = frozenset().union(*(link.span for link in name_links))
        if name_links:
            best, why = max(name_links, key=lambda link: link.score), self._links.text(span)
            verb, score = self._links.verb_before(asked), best.score
            if verb and score > BY_SYNONYM:
                asked, score = asked | verb, score * ASSUMED_VERB  # "carry more than 3 lanes"
            return span | asked, score, f"“{why}” names it"
        if names & set(map(stem, own.name.lower().replace("_", " ").split())):
            return asked, EXACT, "the adjective is of it"
        fits = bool(measures) and measure_of(own.unit) in measures
        if fits and not names_other_quantity(own.name, names):
            return asked, BY_UNIT, "its unit fits the adjective"
        return asked, None, ""

    # --- forms ---

    def _forms(self, known_class: KnownClass, base: QueryPart) -> Iterator[CandidateQuery]:
        links = self._links
        rows = Rows(known_class, base.conditions, base.only)
        if links.cue("difference") and len(base.only) == 2:
            yield from self._measured(
                known_class, base, lambda path: Difference(rows, path), "difference"
            )
        extremes = links.extremes
        if len(base.only) == 2 and (extremes or links.comparing):
            yield from self._compared(known_class, base, rows)
            return
        if len(base.only) > 1 and not (links.cue("sum") or links.cue("average")):
            return
        if links.cue("sum"):
            yield from self._measured(
                known_class, base, lambda path: Aggregate(rows, "sum", path), "sum"
            )
        elif links.cue("average"):
            yield from self._measured(
                known_class, base, lambda path: Aggregate(rows, "average", path), "average"
            )
        elif extremes and self._asks_first:
            yield from self._extreme(known_class, base, rows)
        elif links.cue("count"):
            yield from self._counted(known_class, base, rows)
        elif links.cue("whether"):
            if base.conditions:
                yield self._candidate(
                    Exists(rows),
                    base + QueryPart(links.cue("whether")),
                    "asks whether there is one",
                )
        else:
            yield from self._listed(known_class, base, rows)

    @property
    def _asks_first(self) -> bool:
        """Whether a question asks for a greatest or least value, and not for a number of rows."""
        count = self._links.cue("count")
        return not count or min(count) > min(min(link.span) for link in self._links.extremes)

    def _candidate(
        self, query: Query, part: QueryPart, reason: str, *, is_computing: bool = True
    ) -> CandidateQuery:
        return CandidateQuery(query, part.span, part.scores, (*part.reasons, reason), is_computing)

    def _measured(
        self, known_class: KnownClass, base: QueryPart, make: Callable[[Path], Query], cue: str
    ) -> Iterator[CandidateQuery]:
        """Yield a total or difference of each property of numbers that the question names."""
        span = self._links.cue(cue)  # type: ignore[arg-type]
        for field in self._properties(known_class).values():
            if field.kind != "number":
                continue
            words, score, why = self._measure(field, span, (), frozenset())
            if score is not None:
                words |= self._links.counting(words - span)
                part = base + QueryPart(words, (score,), (f"{field.label}: {why}",))
                yield self._candidate(make(Path((field,))), part, f"asks for the {cue}")

    def _extreme_paths(
        self, known_class: KnownClass, link: ExtremeLink
    ) -> Iterator[tuple[KnownProperty, QueryPart]]:
        """Yield the properties that an extreme may be of."""
        ways = []
        for field in self._properties(known_class).values():
            if field.kind not in _MEASURED or (field.kind == "number" and link.is_time):
                continue
            if field.kind != "number" and not link.is_time:
                continue
            if link.names and measures_other(field.name, link.names):
                continue
            words, score, why = self._measure(field, link.span, link.measures, link.names)
            if score is not None:
                ways.append((field, QueryPart(words, (score,), (f"{field.label}: {why}",))))
            elif link.is_time:
                reason = f"{field.label} is a time"
                ways.append((field, QueryPart(words, (ASSUMED_PROPERTY,), (reason,))))
        sure = [way for way in ways if way[1].scores[0] > ASSUMED_PROPERTY]
        yield from sure or ways

    def _extreme(
        self, known_class: KnownClass, base: QueryPart, rows: Rows
    ) -> Iterator[CandidateQuery]:
        for link in self._links.extremes:
            if link.is_comparative:
                continue
            for field, part in self._extreme_paths(known_class, link):
                path = Path((field,))
                value = path if self._asks_measure(link, part) else None
                query = Extreme(rows, path, link.is_most, link.places, value)
                place = "greatest" if link.is_most else "least"
                reason = f"asks for the {place} {field.label}"
                yield self._candidate(query, base + part, reason)
                for second, words in self._asked_beside(known_class, base + part):
                    beside = replace(query, shown=second)
                    reasons = f"{reason}, and {second.label}"
                    yield self._candidate(beside, base + part + words, reasons)

    def _asks_measure(self, link: ExtremeLink, part: QueryPart) -> bool:
        """Return whether the greatest value is asked for, and not what has it: "what is the highest
        score"."""
        lowers = [word.lower for word in self._links.words[: min(link.span)]]
        is_first = lowers[:1] == ["what"] and self._links.content.isdisjoint(range(len(lowers)))
        return is_first and max(link.span) + 1 in part.span

    def _asked_beside(
        self, known_class: KnownClass, part: QueryPart
    ) -> Iterator[tuple[Path, QueryPart]]:
        """Yield what a second question asks of the first's result: "and how much does it cost"."""
        lowers = [word.lower for word in self._links.words]
        starts = [
            at + 1
            for at, word in enumerate(lowers[:-1])
            if word == "and" and lowers[at + 1] in word_set("computing", "asking")
        ]
        if not starts:
            return
        cues = self._links.cue("count") | frozenset(starts)
        for link in self._links_to(known_class):
            if min(link.span) > starts[-1] and link.span.isdisjoint(part.span):
                scores = () if link.score > BY_SYNONYM else (link.score,)
                yield Path((link.known,)), QueryPart(link.span | cues, scores)

    def _compared(
        self, known_class: KnownClass, base: QueryPart, rows: Rows
    ) -> Iterator[CandidateQuery]:
        """Yield the comparisons of two rows, which the question names in their order."""
        asks_which, count = not self._links.cue("whether"), self._links.cue("count")
        for link in (*self._links.extremes, *self._links.comparing):
            for field, part in self._extreme_paths(known_class, link):
                if count and max(count) + 1 == min(link.span):  # "how many more"
                    query: Query = Difference(rows, Path((field,)))
                    yield self._candidate(query, base + part + QueryPart(count), "difference")
                    continue
                query = CompareTwo(rows, Path((field,)), link.is_most, asks_which)
                span = QueryPart(self._links.cue("whether"))
                yield self._candidate(query, base + part + span, f"compares {field.label}")

    def _counted(
        self, known_class: KnownClass, base: QueryPart, rows: Rows
    ) -> Iterator[CandidateQuery]:
        count = QueryPart(self._links.cue("count") | self._row_names(known_class))
        yield self._candidate(Count(rows), base + count, "asks how many")
        yield from self._summed(known_class, base, rows)
        if groups := self._links.cue("group"):
            for link in self._links_to(known_class):
                part = base + count + QueryPart(groups | link.span, (link.score,))
                yield self._candidate(
                    GroupRows(rows, Path((link.known,))), part, f"asks for each {link.known.label}"
                )
        for link in self._links_to(known_class):
            if link.span.isdisjoint(base.span) and link.known.kind in ("entity", "text"):
                part = base + count + QueryPart(link.span, (link.score,))
                reason = f"asks how many different {link.known.label}"
                yield self._candidate(Count(rows, Path((link.known,))), part, reason)

    def _summed(
        self, known_class: KnownClass, base: QueryPart, rows: Rows
    ) -> Iterator[CandidateQuery]:
        """Yield the total of amounts in the rows of a table that have a value: the points that a
        driver has in all races, where the question asks how many."""
        count = self._links.cue("count")
        linked = [link for link in self._links_to(known_class) if is_amount(link.known)]
        for link in linked if base.conditions and known_class.kind == "table" else ():
            is_asked = min(link.span) == max(count) + 1 and link.span.isdisjoint(base.span)
            if is_asked and link.score > BY_SYNONYM:
                words = (other.span for other in linked if other.known.iri == link.known.iri)
                amounts = QueryPart(
                    count.union(*words),
                    (link.score, ASSUMED_VERB),
                    (f"{link.known.label} of several rows add up",),
                )
                query = Aggregate(rows, "sum", Path((link.known,)))
                yield self._candidate(query, base + amounts, "asks how many in all")

    def _row_names(self, known_class: KnownClass) -> Span:
        """Return the words after "how many" that name a column by which rows are told apart: the
        schools of a table with a row for each school."""
        after = max(self._links.cue("count")) + 1
        return frozenset().union(
            *(
                link.span
                for link in self._links_to(known_class)
                if after in link.span and link.known.kind in ("entity", "text")
                if known_class.kind == "table" and link.score > BY_SYNONYM
                if link.known.distinct == link.known.statements == known_class.members
            )
        )

    def _listed(
        self, known_class: KnownClass, base: QueryPart, rows: Rows
    ) -> Iterator[CandidateQuery]:
        if base.conditions:
            yield self._candidate(ListRows(rows), base, "asks which")
        for link in self._links_to(known_class):
            if link.span.isdisjoint(base.span) and (base.conditions or base.only):
                part = base + QueryPart(link.span, (link.score,))
                yield self._candidate(
                    ListRows(rows, Path((link.known,))),
                    part,
                    f"asks for the {link.known.label}",
                    is_computing=bool(base.conditions),
                )


def _is_comparable(own: KnownProperty, link: BoundLink) -> bool:
    """Return whether the values of a property can be told apart by a bound: times by a year, days
    by a date."""
    if link.days:
        return own.kind == "date"
    return link.is_year or own.kind not in ("year", "date")


def _compare_days(path: Path, order: Order, days: tuple[date, date]) -> tuple[Condition, ...]:
    """Return the conditions that a date stands in an order to the days of a day or a month."""
    first, last = (Literal(day.isoformat(), datatype=v.xsd("date")) for day in days)
    if order == "=":
        return Compares(path, ">=", first), Compares(path, "<=", last)
    return (Compares(path, order, first if order in ("<", ">=") else last),)


class Conditions(_Grammar):
    """What may be asked of the members of a class: their properties, and bounds on them."""

    def properties_of(self, known_class: KnownClass) -> dict[NamedNode, KnownProperty]:
        """Return the properties of a class that may be computed with."""
        return self._properties(known_class)

    def common_span(self, link: ExtremeLink) -> Span:
        """Return the words that ask for the value that most members have: "most common"; empty
        where none do."""
        after = frozenset((max(link.span) + 1,))
        words = {self._links.words[at].lower for at in after if at < len(self._links.words)}
        return link.span | after if words & word_set("computing", "commonest") else frozenset()

    def bound_conditions(self, known_class: KnownClass, link: BoundLink) -> Iterator[QueryPart]:
        """Yield the conditions that a bound of the question may be."""
        yield from self._bound_conditions(known_class, link)


def describe_class(known_class: KnownClass) -> str:
    """Return a class in words."""
    kinds = {
        "table": f"“{known_class.label}”, a table of {known_class.members} rows",
        "type": known_class.label,
    }
    return kinds.get(known_class.kind, f"of names that begin with “{known_class.label}”")
