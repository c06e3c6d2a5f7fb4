"""Candidate queries of questions whose parts refer to one another: "the rivers of the states that
border Texas", "the maker with the most pumps", "heavier than P2".

A phrase is read from left to right: a class, what is asked of its members, and a phrase within it,
which reaches to the end. What connects two classes is looked up in knowledge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pyoxigraph import NamedNode

from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    ComparesTo,
    Condition,
    Count,
    Differs,
    Equals,
    Extreme,
    GroupRows,
    Lacks,
    ListRows,
    Path,
    Place,
    Query,
    Rows,
    Total,
    Within,
)
from tgraph.compute.doubts import is_time
from tgraph.compute.grammar import Conditions, describe_class
from tgraph.compute.linking import (
    BY_PART,
    BY_UNIT,
    EXACT,
    ClassLink,
    ExtremeLink,
    PropertyLink,
    QuestionLinks,
    Span,
    ValueLink,
    measures_other,
    merge_links,
    names_alike,
    names_other_quantity,
    quantities_of,
    stem,
)
from tgraph.compute.lookup import KnowledgeLookup
from tgraph.compute.parts import ASSUMED_VERB, CandidateQuery
from tgraph.index.catalogue import KnownClass
from tgraph.ingest.unit_conversion import measure_of
from tgraph.model import Object
from tgraph.resources import word_set

DEEPEST = 4
"""Phrases within one another that are read."""

UNNAMED, UNNAMED_NOUN, BACKWARD, LONGER, FURTHER = 0.95, 0.85, 0.97, 0.6, 0.8
"""How sure a connection is that no word names: a relation such as "located in", and one that is
called by a noun; one that is followed backward; each property beyond the first, and where a word
names one of them."""


@dataclass(frozen=True, slots=True)
class PhrasePart:
    """What words of a phrase mean: the words, how sure that is, why, and the conditions; with
    ``path`` what is measured."""

    span: Span = frozenset()
    scores: tuple[float, ...] = ()
    reasons: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    query: Extreme | GroupRows | None = None

    def __add__(self, other: PhrasePart) -> PhrasePart:
        return PhrasePart(
            self.span | other.span,
            self.scores + other.scores,
            self.reasons + other.reasons,
            self.conditions + other.conditions,
            self.query or other.query,
        )


@dataclass(frozen=True, slots=True)
class RowPhrase:
    """A phrase that names members of a class, and the query that gives them."""

    known: KnownClass
    query: ListRows | Extreme | GroupRows
    part: PhrasePart

    @property
    def rows(self) -> Rows:
        """The members of the phrase, as the rows of a further query."""
        if isinstance(self.query, ListRows):
            return self.query.rows
        return Rows(self.known, (Within(None, self.query),))

    @property
    def is_bare(self) -> bool:
        """Whether nothing but the class is named."""
        return self.query == ListRows(Rows(self.known))


def make_phrase_candidates(
    links: QuestionLinks, lookup: KnowledgeLookup, conditions: Conditions
) -> Iterator[CandidateQuery]:
    """Yield the queries that a question may mean as a phrase."""
    yield from _PhraseReader(links, lookup, conditions).candidates()


class _PhraseReader:
    """The reading of one question."""

    def __init__(
        self, links: QuestionLinks, lookup: KnowledgeLookup, conditions: Conditions
    ) -> None:
        self._links = links
        self._lookup = lookup
        self._conditions = conditions
        self._end = len(links.words)
        self._lowers = [word.lower for word in links.words]

    # --- questions ---

    def candidates(self) -> Iterator[CandidateQuery]:
        links = self._links
        is_total = links.cue("sum") or links.cue("average")
        if links.cue("group") or links.cue("difference") or links.cue("whether"):
            return
        if not is_total:
            yield from self._related()
        for start in self._starts():
            for phrase in self._phrases(start, self._end, 0):
                if is_total:
                    yield from self._totals(phrase)
                    continue
                if links.cue("count") and not self._numbers_extreme():
                    yield from self._counts(phrase)
                elif self._is_asked(phrase):
                    yield self._candidate(phrase.query, phrase.part, "asks which")
                yield from self._shown(phrase)

    # --- relations ---

    def _related(self) -> Iterator[CandidateQuery]:
        """Yield what a relation alone asks for, without a class: "who is a member of Pink Floyd",
        "how many children did Rose have", "who sings the most songs"."""
        columns = {
            column.property for one in self._lookup.catalogue.classes for column in one.columns
        }
        for link in self._links.properties:
            relation = link.known
            if not relation.is_structured or relation.iri in columns or link.score <= BY_PART:
                continue
            for value in self._links.values:
                if link.span.isdisjoint(value.span):
                    yield from self._related_to(link, value)
            for extreme in self._links.extremes:
                if self._lowers[max(extreme.span)] in ("most", "fewest"):
                    yield from self._related_most(link, extreme)
                if common := self._conditions.common_span(extreme):
                    query = GroupRows(Rows(None), Path((relation,)), place="greatest")
                    part = self._property_part(link) + PhrasePart(common)
                    yield self._candidate(query, part, "asks for the most common")

    def _related_to(self, link: PropertyLink, value: ValueLink) -> Iterator[CandidateQuery]:
        """Yield a query for the subjects of a relation whose object the question names, or for the
        number of objects of a named subject; no query for a thing that is subject and object."""
        path = Path((link.known,))
        cue = self._links.cue("count")
        part = PhrasePart(value.span, (value.score,)) + self._property_part(link) + PhrasePart(cue)
        subjects, objects = self._lookup.find_sides(link.known, value.values)
        if objects and not subjects:
            rows = Rows(None, (Equals(path, objects, value.label),))
        elif len(subjects) == 1 and not objects and cue and link.known.kind == "entity":
            rows = Rows(None, (Equals(Path((link.known,), (0,)), subjects, value.label),))
        else:
            return
        query = Count(rows) if cue else ListRows(rows)
        yield self._candidate(query, part, f"asks for {path.label}")

    def _related_most(self, link: PropertyLink, extreme: ExtremeLink) -> Iterator[CandidateQuery]:
        """Yield queries for the subject with the most members of a class as its objects: "who
        sings the most songs"."""
        place: Place = "greatest" if extreme.is_most else "least"
        for head in self._links.classes:
            is_next = min(head.span) == max(extreme.span) + 1
            if is_next and max(link.span) < min(extreme.span):
                for path in self._lookup.find_values_of(link.known, head.known):
                    query = GroupRows(Rows(head.known), path, place=place)
                    part = PhrasePart(head.span | extreme.span, (head.score,))
                    reason = f"asks for the {place} number"
                    yield self._candidate(query, part + self._property_part(link), reason)

    def _starts(self) -> list[int]:
        """Return where the phrase that is asked about may begin: at the first class, value or
        superlative, or at a later one, where the words before it name what is asked of it."""
        starts = {min(link.span) for link in self._links.classes}
        starts |= {min(link.span) for link in self._links.values}
        starts |= {min(link.span) for link in self._links.extremes}
        return sorted(starts)[:DEEPEST]

    def _candidate(self, query: Query, part: PhrasePart, reason: str) -> CandidateQuery:
        is_computing = not isinstance(query, ListRows) or bool(query.rows.conditions)
        return CandidateQuery(query, part.span, part.scores, (*part.reasons, reason), is_computing)

    def _numbers_extreme(self) -> bool:
        """Return whether a count is what a superlative is of: "the highest number of people"."""
        ends = {max(link.span) + 1 for link in self._links.extremes}
        return min(self._links.cue("count"), default=-1) in ends

    def _is_asked(self, phrase: RowPhrase) -> bool:
        """Return whether a phrase asks for more than what it names."""
        return not (isinstance(phrase.query, ListRows) and phrase.rows.only)

    def _counts(self, phrase: RowPhrase) -> Iterator[CandidateQuery]:
        part = phrase.part + PhrasePart(self._links.cue("count"))
        if isinstance(phrase.query, ListRows):
            yield self._candidate(Count(phrase.rows), part, "asks how many")

    def _totals(self, phrase: RowPhrase) -> Iterator[CandidateQuery]:
        total: Total = "sum" if self._links.cue("sum") else "average"
        cue = PhrasePart(self._links.cue("sum") or self._links.cue("average"))
        for path, part in self._shown_paths(phrase):
            if path.kind == "number":
                query = Aggregate(phrase.rows, total, path)
                yield self._candidate(query, phrase.part + part + cue, f"asks for the {total}")

    def _shown(self, phrase: RowPhrase) -> Iterator[CandidateQuery]:
        for path, part in self._shown_paths(phrase):
            query = ListRows(phrase.rows, path)
            yield self._candidate(query, phrase.part + part, f"asks for the {path.label}")

    def _shown_paths(self, phrase: RowPhrase) -> Iterator[tuple[Path, PhrasePart]]:
        """Yield what the words outside a phrase ask of its members: properties, the nearest to the
        phrase first, or how much of a measure they have."""
        outside = [
            link
            for link in self._links.properties
            if link.span.isdisjoint(phrase.part.span)
            and link.known.is_structured
            and (phrase.rows.only or max(link.span) < min(phrase.part.span))
        ]
        for link in self._own(phrase.known, outside):
            part = self._property_part(link)
            for path, shown in (
                (Path((link.known,)), part),
                *self._further(phrase.known, link, outside, part),
            ):
                if not self._fits_question_word(path):
                    continue
                if path.kind == "number":
                    yield path, shown + PhrasePart(self._links.cue("count"))
                elif not self._links.cue("count"):
                    yield path, shown
        yield from self._degrees(phrase.known, phrase.part.span)
        yield from self._whereabouts(phrase.known)

    def _fits_question_word(self, path: Path) -> bool:
        """Return whether a path's value fits "when" (a time) or "where" (no time), if asked so."""
        word = self._lowers[0]
        return word not in ("when", "where") or is_time(path) == (word == "when")

    def _further(
        self,
        known_class: KnownClass,
        link: PropertyLink,
        outside: Sequence[PropertyLink],
        part: PhrasePart,
    ) -> Iterator[tuple[Path, PhrasePart]]:
        """Yield the properties that are asked of a property's values: the population of the
        capital."""
        if link.known.kind != "entity":
            return
        for end in self._lookup.find_classes(known_class, Path((link.known,))):
            for other in self._own(end, outside):
                if max(other.span) < min(link.span):
                    path = Path((link.known, other.known))
                    yield path, part + self._property_part(other)
            for path, degree in self._degrees(end, link.span):
                yield Path((link.known, *path.properties)), part + degree

    def _degrees(self, known_class: KnownClass, taken: Span) -> Iterator[tuple[Path, PhrasePart]]:
        """Yield what "how long" and "how high" ask for."""
        for degree in self._links.degrees:
            if degree.span.isdisjoint(taken):
                yield from self._measures(known_class, degree, ())

    def _whereabouts(self, known_class: KnownClass) -> Iterator[tuple[Path, PhrasePart]]:
        if self._lowers[:1] == ["where"]:
            for field in self._conditions.properties_of(known_class).values():
                if field.kind in ("entity", "text") and names_alike("location", field.name):
                    why = f"“where” asks for {field.label}"
                    yield Path((field,)), PhrasePart(frozenset((0,)), (BY_UNIT,), (why,))

    # --- phrases ---

    def _phrases(self, start: int, end: int, depth: int) -> Iterator[RowPhrase]:
        """Yield the phrases that words may be: a class or a value with what follows it."""
        if depth > DEEPEST or start >= end:
            return
        heads = [
            link for link in self._links.classes if start <= min(link.span) and max(link.span) < end
        ]
        values = self._values_in(start, end)
        first_value = min((min(link.span) for link in values), default=end)
        first_head = min((min(link.span) for link in heads), default=end)
        for head in heads:
            is_closed = head.known.kind == "type" and self._has_table(head.known)
            if min(head.span) == first_head and not is_closed:
                yield from self._class_phrases(head, start, end, depth)
        for value in values:
            if min(value.span) == first_value and first_value < first_head + 3:
                yield from self._value_phrases(value, start, end, depth)

    def _class_phrases(
        self, head: ClassLink, start: int, end: int, depth: int
    ) -> Iterator[RowPhrase]:
        known_class, first, after = head.known, min(head.span), max(head.span) + 1
        why = f"“{self._links.text(head.span)}” is the class {describe_class(known_class)}"
        base = PhrasePart(head.span, (head.score,), (why,))
        before = [
            link
            for link in self._links.extremes
            if start <= min(link.span) and max(link.span) < first and not link.is_comparative
        ]
        lead = self._values_in(start, first)
        for modified in self._modifiers(known_class, after, end, depth):
            for leading in self._leading(known_class, lead):
                part = base + modified + leading
                if part.query is not None:
                    query = part.query
                    rows = replace(query.rows, conditions=query.rows.conditions + part.conditions)
                    if isinstance(query, Extreme):
                        query = replace(query, rows=rows)
                    yield RowPhrase(known_class, query, part)
                    continue
                rows = Rows(known_class, part.conditions)
                if not before:
                    yield RowPhrase(known_class, ListRows(rows), part)
                for link in before:
                    for path, measured in self._measures(known_class, link, range(after, end)):
                        extreme = Extreme(rows, path, link.is_most, link.places)
                        yield RowPhrase(known_class, extreme, part + measured)

    def _leading(
        self, known_class: KnownClass, values: Sequence[ValueLink]
    ) -> Iterator[PhrasePart]:
        """Yield the conditions of values that stand before a class: "Texas cities"."""
        if not values:
            yield PhrasePart()
        for value in values:
            yield from self._value_parts(known_class, value, frozenset(), 0)

    def _value_phrases(
        self, value: ValueLink, start: int, end: int, depth: int
    ) -> Iterator[RowPhrase]:
        """Yield the members that a value names, with a class beside it: "the Mississippi river"."""
        for known_class, members in self._bearing_classes(value):
            span = value.span | self._beside(value, known_class)
            why = f"“{self._links.text(value.span)}” is {describe_class(known_class)}"
            base = PhrasePart(span, (value.score,), (why,))
            for modified in self._modifiers(known_class, max(span) + 1, end, depth):
                if modified.query is None:
                    part = base + modified
                    yield RowPhrase(
                        known_class, ListRows(Rows(known_class, part.conditions, members)), part
                    )

    def _bearing_classes(
        self, value: ValueLink
    ) -> Iterator[tuple[KnownClass, tuple[NamedNode, ...]]]:
        """Yield the classes of what a value names, tables before the types of the same members."""
        paths_seen: set[tuple[NamedNode, ...]] = set()
        for known_class in sorted(
            self._lookup.catalogue.classes, key=lambda one: one.kind != "table"
        ):
            members = self._lookup.find_members(known_class, value.values)
            if members and (known_class.kind == "table" or members not in paths_seen):
                yield known_class, members
            if known_class.kind == "table":
                paths_seen.add(members)

    def _has_table(self, known_class: KnownClass) -> bool:
        return any(
            one.kind == "table"
            and known_class.type in (one.type if one.is_whole_type else "", one.main_type)
            for one in self._lookup.catalogue.classes
        )

    def _beside(self, value: ValueLink, known_class: KnownClass) -> Span:
        """Return the words of a class that stand beside a value of the class."""
        first, last = min(value.span), max(value.span)
        while first and self._lowers[first - 1] in ("of", "named", "called", "the"):
            first -= 1
        beside: Span = frozenset()
        for link in self._links.classes:
            is_next = min(link.span) == last + 1 or max(link.span) == first - 1
            if is_next and link.known.key == known_class.key:
                beside |= link.span
        return beside

    # --- modifiers ---

    def _modifiers(
        self, known_class: KnownClass, start: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        """Yield what the words after a class ask of its members."""
        at = self._first_element(start, end)
        yield from self._by_absence(known_class, start, end)
        if at is None:
            yield PhrasePart()
            return
        yield from self._by_values(known_class, start, at, end, depth)
        yield from self._by_phrases(known_class, start, at, end, depth)
        yield from self._by_extremes(known_class, start, at, end, depth)
        yield from self._by_comparisons(known_class, start, at, end, depth)
        yield from self._by_bounds(known_class, at, end, depth)

    def _first_element(self, start: int, end: int) -> int | None:
        links = self._links
        places = [
            min(link.span)
            for group in (
                links.classes,
                links.values,
                links.extremes,
                links.comparing,
                links.bounds,
            )
            for link in group
        ]
        return min((place for place in places if start <= place < end), default=None)

    def _by_values(
        self, known_class: KnownClass, start: int, at: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        for value in self._values_in(at, end):
            if min(value.span) > at + 3:
                continue
            if not self._only_classes(at, min(value.span)):
                continue
            after = max(value.span) + 1
            for tail in self._modifiers(known_class, after, end, depth):
                for part in self._value_parts(known_class, value, frozenset(range(start, end)), at):
                    if part.span.isdisjoint(tail.span - value.span):
                        yield part + tail

    def _only_classes(self, start: int, end: int) -> bool:
        """Return whether words but name a class or are free, as in "the state of Texas"."""
        content = self._links.content
        class_words: Span = frozenset().union(*(link.span for link in self._links.classes))
        return all(at in class_words or at not in content for at in range(start, end))

    def _value_parts(
        self, known_class: KnownClass, value: ValueLink, within: Span, before: int
    ) -> Iterator[PhrasePart]:
        links = self._links
        negations = [
            cue for cue in links.cues.get("negation", ()) if cue <= within and min(cue) < before
        ]
        beside = self._classes_beside(value)
        values = self._narrow(value, beside)
        paths = [
            path
            for path in self._lookup.find_connections(known_class, values)
            if not value.properties or path.last.iri in value.properties
        ]
        for path in paths:
            connection = self._name_connection(path, within - value.span)
            if links.verb <= within and self._conditions.may_hold(known_class, paths):
                connection += PhrasePart(links.verb, (ASSUMED_VERB,))
            span = value.span | connection.span | beside
            why = f"“{self._links.text(value.span)}” is a value of {path.label}"
            condition: Condition = Equals(path, values, value.label)
            if negations:
                span |= frozenset().union(*negations)
                condition = Differs(path, values, value.label)
            yield PhrasePart(span, (value.score, *connection.scores), (why,), (condition,))

    def _narrow(self, value: ValueLink, beside: Span) -> tuple[Object, ...]:
        """Return those of the values that are of the class that stands beside them."""
        for link in self._links.classes:
            members = self._lookup.find_members(link.known, value.values)
            if link.span <= beside and members:
                return members
        return value.values

    def _classes_beside(self, value: ValueLink) -> Span:
        beside: Span = frozenset()
        for link in self._links.classes:
            if self._lookup.find_members(link.known, value.values):
                beside |= self._beside(value, link.known)
        return beside

    def _name_connection(self, path: Path, within: Span) -> PhrasePart:
        """Return the words that name the properties of a connection, and how surely."""
        span: Span = frozenset()
        scores = []
        for number, known_class in enumerate(path.properties):
            links = [
                link
                for link in self._links.properties
                if link.known.iri == known_class.iri and link.span <= within
            ]
            span = span.union(*(link.span for link in links))
            is_relation = _ends_in_preposition(known_class.name)
            unnamed = UNNAMED if is_relation else UNNAMED_NOUN
            score = max((link.score for link in links), default=unnamed)
            preposition = known_class.name.split()[-1]
            near = [at for at in within if self._lowers[at] == preposition]
            if not links and is_relation and near:
                score = EXACT
            scores.append(score * (BACKWARD if number in path.backward else 1))
            if number:
                scores.append(FURTHER if span else LONGER)
        return PhrasePart(span, tuple(scores))

    def _by_phrases(
        self, known_class: KnownClass, start: int, at: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        """Yield the condition that a phrase within is connected with the members."""
        negated = [
            cue for cue in self._links.cues.get("negation", ()) if min(cue) in range(start, at + 1)
        ]
        for phrase in self._phrases(at, end, depth + 1):
            if negated and not phrase.is_bare:
                continue
            trailing = frozenset(range(start, end)) - phrase.part.span
            for path in self._lookup.find_connections(known_class, phrase.known):
                connection = self._name_connection(path, trailing)
                part = phrase.part + PhrasePart(
                    connection.span, connection.scores, (f"by {path.label}",)
                )
                if negated:
                    span = part.span.union(*negated)
                    yield PhrasePart(span, part.scores, part.reasons, (Lacks(path),))
                elif not isinstance(phrase.query, ListRows) or phrase.query.rows.only == ():
                    yield PhrasePart(
                        part.span, part.scores, part.reasons, (Within(path, phrase.query),)
                    )

    def _by_extremes(
        self, known_class: KnownClass, start: int, at: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        """Yield "with the largest population", "with the most rivers"."""
        for link in self._links.extremes:
            if min(link.span) != at or link.is_comparative:
                continue
            after = max(link.span) + 1
            for path, measured in self._measures(known_class, link, range(start, end)):
                if self._belongs_to_class(link, measured):
                    continue
                after_measure = max(measured.span) + 1
                for tail in self._modifiers(known_class, max(after_measure, after), end, depth):
                    if tail.query is None:
                        query = Extreme(Rows(known_class, tail.conditions), path, link.is_most)
                        yield replace(measured + tail, conditions=(), query=query)
            if self._lowers[after - 1] in ("most", "least", "fewest"):
                yield from self._by_numbers(known_class, link, start, end, depth)

    def _belongs_to_class(self, link: ExtremeLink, measured: PhrasePart) -> bool:
        """Return whether a superlative is of the class that follows, as in "the largest city"."""
        after = max(link.span) + 1
        follows = any(min(head.span) == after for head in self._links.classes)
        return follows and after not in measured.span

    def _by_numbers(
        self, known_class: KnownClass, link: ExtremeLink, start: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        """Yield the condition of those to whom the most, or fewest, members of a class belong."""
        after = max(link.span) + 1
        heads = [head for head in self._links.classes if min(head.span) == after]
        for head in heads:
            for inner in self._phrases(after, end, depth + 1):
                if not isinstance(inner.query, ListRows) or inner.known.key != head.known.key:
                    continue
                outside = frozenset(range(start, end)) - inner.part.span
                for path in self._lookup.find_connections(known_class, inner.known):
                    connection = self._name_connection(path, outside)
                    place: Place = "greatest" if link.is_most else "least"
                    query = GroupRows(inner.query.rows, turn_path(path), place=place)
                    part = (
                        inner.part + connection + PhrasePart(link.span, (), (f"by {path.label}",))
                    )
                    yield replace(part, conditions=(), query=query)

    def _by_comparisons(
        self, known_class: KnownClass, start: int, at: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        """Yield "heavier than P2", "longer than the longest river of Ohio", "more than P2"."""
        for link in (*self._links.extremes, *self._links.comparing):
            if min(link.span) != at or not link.is_comparative:
                continue
            for path, measured in self._measures(known_class, link, range(start, end)):
                phrases = list(self._phrases(max(link.span) + 1, end, depth + 1))
                alike = [phrase for phrase in phrases if phrase.known.key == known_class.key]
                for phrase in alike or phrases:
                    for other, _ in self._measures(phrase.known, link, range(start, end)):
                        is_one = isinstance(phrase.query, ListRows) and len(phrase.rows.only) == 1
                        if other.unit != path.unit or other.kind != path.kind:
                            continue
                        if is_one or isinstance(phrase.query, Extreme):
                            bound = Extreme(phrase.rows, other, link.is_most)
                            order = ">" if link.is_most else "<"
                            condition = ComparesTo(path, order, bound)  # type: ignore[arg-type]
                            part = measured + phrase.part
                            yield replace(part, conditions=(condition,), query=None)

    def _by_bounds(
        self, known_class: KnownClass, at: int, end: int, depth: int
    ) -> Iterator[PhrasePart]:
        for link in self._links.bounds:
            if min(link.span) == at:
                for bounded in self._conditions.bound_conditions(known_class, link):
                    part = PhrasePart(
                        bounded.span, bounded.scores, bounded.reasons, bounded.conditions
                    )
                    for tail in self._modifiers(known_class, max(link.span) + 1, end, depth):
                        yield part + tail

    def _by_absence(self, known_class: KnownClass, start: int, end: int) -> Iterator[PhrasePart]:
        """Yield the condition that a property has no value, or none but zero where its values have
        that: "without a capital"."""
        for cue in self._links.cues.get("negation", ()):
            for link in self._own(known_class, self._links.properties):
                if (
                    start <= min(cue)
                    and max(cue) < min(link.span) <= max(cue) + 2
                    and max(link.span) < end
                ):
                    part, path = self._property_part(link), Path((link.known,))
                    has_zero = any(value.label == "0" for value in link.known.values)
                    condition = Compares(path, "=", Decimal()) if has_zero else Lacks(path)
                    yield PhrasePart(part.span | cue, part.scores, part.reasons, (condition,))

    # --- measures ---

    def _measures(
        self, known_class: KnownClass, link: ExtremeLink, place: Sequence[int]
    ) -> Iterator[tuple[Path, PhrasePart]]:
        """Yield what a superlative may be of: a property that is named beside it or fits it, or one
        of the things that such a property leads to."""
        within = set(place) | link.span
        near = [one for one in self._links.properties if one.span <= within]
        named = self._own(known_class, near)
        kinds = ("year", "date") if link.is_time else ("number",)
        sure = [
            one
            for one in named
            if one.known.kind in kinds and not measures_other(one.known.name, link.names)
        ]
        for one in sure:
            count = self._links.cue("count") if self._numbers_extreme() else frozenset()
            yield Path((one.known,)), self._property_part(one) + PhrasePart(link.span | count)
        for one in named:
            if one.known.kind == "entity":
                for end in self._lookup.find_classes(known_class, Path((one.known,))):
                    for path, part in self._fitting(end, link):
                        yield Path((one.known, *path.properties)), self._property_part(one) + part
        if not sure:
            yield from self._fitting(known_class, link)

    def _fitting(
        self, known_class: KnownClass, link: ExtremeLink
    ) -> Iterator[tuple[Path, PhrasePart]]:
        """Yield the properties of a class that an adjective measures: those called after it, else
        by what it measures, the nearest first, else of the same unit."""
        owned = [
            field
            for field in self._conditions.properties_of(known_class).values()
            if field.kind == ("year" if link.is_time else "number")
        ]
        for place, name in enumerate(quantities_of(link.names)):
            fitting = [field for field in owned if name in map(stem, field.name.lower().split())]
            if fitting:
                for field in fitting:
                    extra = len(field.name.split()) - 1
                    score = EXACT * 0.999**place * 0.8**extra
                    yield Path((field,)), PhrasePart(link.span, (score,), (f"{field.label} fits",))
                return
        for field in owned:
            is_unit = bool(link.measures) and measure_of(field.unit) in link.measures
            if is_unit and not names_other_quantity(field.name, link.names):
                yield (
                    Path((field,)),
                    PhrasePart(link.span, (BY_UNIT,), (f"the unit of {field.label} fits",)),
                )

    # --- words ---

    def _own(self, known_class: KnownClass, links: Sequence[PropertyLink]) -> list[PropertyLink]:
        """Return the links to properties of a class: where several share words, those that name
        the most words."""
        fields = self._conditions.properties_of(known_class)
        joined = merge_links(link for link in links if link.known.iri in fields).values()
        return [link for link in joined if not any(_names_better(other, link) for other in joined)]

    def _property_part(self, link: PropertyLink) -> PhrasePart:
        why = f"“{self._links.text(link.span)}” names {link.known.label}"
        return PhrasePart(link.span, (link.score,), (why,))

    def _values_in(self, start: int, end: int) -> list[ValueLink]:
        return [
            link for link in self._links.values if start <= min(link.span) and max(link.span) < end
        ]


def _names_better(one: PropertyLink, other: PropertyLink) -> bool:
    """Return whether words name a property rather than another: more of them, or as many of a
    shorter name."""
    is_shorter = len(one.known.name.split()) < len(other.known.name.split())
    return other.span < one.span or (other.span == one.span and is_shorter)


def _ends_in_preposition(name: str) -> bool:
    last = name.lower().split()[-1]
    return last in word_set("computing", "prepositions")


def turn_path(path: Path) -> Path:
    """Return a path from its end to its start."""
    last = len(path.properties) - 1
    backward = tuple(last - at for at in range(last, -1, -1) if at not in path.backward)
    return Path(tuple(reversed(path.properties)), backward)
