"""Candidate queries of questions that compare groups: the maker with the most pumps, the average of
each maker, whether one maker has more than another, and the share that one has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal as Choice

from tgraph.compute.algebra import (
    Asked,
    CompareGroups,
    Equals,
    GroupRows,
    Path,
    Place,
    Rows,
    RowShare,
    Total,
)
from tgraph.compute.grammar import Conditions, is_amount
from tgraph.compute.linking import ExtremeLink, PropertyLink, Span
from tgraph.compute.parts import ASSUMED_PROPERTY, CandidateQuery, QueryPart
from tgraph.index.catalogue import KnownClass

Sum = Choice["sum", "average"]

_GROUPED = ("entity", "text", "year")


class GroupForms(Conditions):
    """The forms of groups over the links of one question."""

    @property
    def _asks_whole(self) -> bool:
        return True

    def _forms(self, known: KnownClass, base: QueryPart) -> Iterator[CandidateQuery]:
        rows = Rows(known, base.conditions)
        if base.only:
            return
        yield from self._compared_groups(known, base)
        if self._links.cue("share") and base.conditions:
            part = base + QueryPart(self._links.cue("share"))
            yield self._candidate(RowShare(rows), part, "asks for a share")
        if self._links.cue("whether"):
            return
        for by in self._groups(known, base):
            part = base + QueryPart(by.span, (by.score,), (f"by {by.known.label}",))
            if self._links.cue("group"):
                yield from self._each_group(known, rows, by, part)
            else:
                yield from self._first_groups(known, rows, by, part)

    def _groups(self, known: KnownClass, base: QueryPart) -> list[PropertyLink]:
        """Return the properties by which the question groups."""
        return [
            link
            for link in self._links_to(known)
            if link.known.kind in _GROUPED and link.span.isdisjoint(base.span)
        ]

    # --- the group in the first place ---

    def _first_groups(
        self, known: KnownClass, rows: Rows, by: PropertyLink, part: QueryPart
    ) -> Iterator[CandidateQuery]:
        for link in self._links.extremes:
            if link.is_comparative or link.places != 1:
                continue
            place: Place = "greatest" if link.is_most else "least"
            path = Path((by.known,))
            if counted := self._counted_span(known, link) or self.common_span(link):
                query = GroupRows(rows, path, place=place)
                yield self._candidate(query, part + QueryPart(counted), "asks for the most")
            yield from self._most_in_all(known, rows, by, part, link)
            for total in self._totals():
                cue = QueryPart(self._links.cue(total))
                for field, measured in self._extreme_paths(known, link):
                    if field.kind == "number" and field.iri != by.known.iri:
                        query = GroupRows(rows, path, total, Path((field,)), place)
                        reason = f"asks for the {place} {total}"
                        yield self._candidate(query, part + measured + cue, reason)

    def _most_in_all(
        self, known: KnownClass, rows: Rows, by: PropertyLink, part: QueryPart, extreme: ExtremeLink
    ) -> Iterator[CandidateQuery]:
        """Yield the group whose rows have the most of an amount together: the team with the most
        points, where a team has several rows."""
        is_most = self._links.words[max(extreme.span)].lower in ("most", "fewest", "least")
        if not is_most or by.known.distinct == by.known.statements or known.kind != "table":
            return
        place: Place = "greatest" if extreme.is_most else "least"
        for field, measured in self._extreme_paths(known, extreme):
            if is_amount(field) and max(extreme.span) + 1 in measured.span:
                query = GroupRows(rows, Path((by.known,)), "sum", Path((field,)), place)
                reason = f"asks for the {place} {field.label} in all rows of a {by.known.label}"
                assumed = QueryPart(measured.span, (*measured.scores, ASSUMED_PROPERTY))
                yield self._candidate(query, part + assumed, reason)

    def _counted_span(self, known: KnownClass, link: ExtremeLink) -> Span:
        """Return the words that ask for the most members of a class: "most pumps", "the greatest
        number of pumps"; empty where a superlative is of something else."""
        after = max(link.span) + 1
        number = self._links.cue("count")
        heads = [
            class_link.span
            for class_link in self._links.classes
            if class_link.known.key == known.key
        ]
        word = self._links.words[after - 1].lower
        if min(number, default=-1) == after:
            after = max(number) + 1
        elif word not in ("most", "fewest", "least"):
            return frozenset()
        near = [span for span in heads if min(span) == after]
        return link.span | number if near else frozenset()

    def _totals(self) -> list[Sum]:
        totals: tuple[Sum, ...] = ("sum", "average")
        return [total for total in totals if self._links.cue(total)]

    # --- each group ---

    def _each_group(
        self, known: KnownClass, rows: Rows, by: PropertyLink, part: QueryPart
    ) -> Iterator[CandidateQuery]:
        path, cue = Path((by.known,)), QueryPart(self._links.cue("group"))
        if not self._follows_group(by):
            return
        for total in self._totals():
            span = self._links.cue(total)
            for field in self._properties(known).values():
                words, score, why = self._measure(field, span, (), frozenset())
                if field.kind == "number" and field.iri != by.known.iri and score is not None:
                    measured = QueryPart(words, (score,), (f"{field.label}: {why}",))
                    query = GroupRows(rows, path, total, Path((field,)))
                    yield self._candidate(query, part + measured + cue, f"asks for each {total}")
        for link in self._links.extremes if not self._totals() else ():
            extreme: Total = "maximum" if link.is_most else "minimum"
            for field, measured in self._extreme_paths(known, link):
                if field.kind == "number" and field.iri != by.known.iri and not link.is_comparative:
                    query = GroupRows(rows, path, extreme, Path((field,)))
                    yield self._candidate(query, part + measured + cue, f"asks for each {extreme}")

    def _follows_group(self, by: PropertyLink) -> bool:
        ends = {max(span) + 1 for span in self._links.cues.get("group", ())}
        return not ends.isdisjoint(by.span)

    # --- two groups ---

    def _compared_groups(self, known: KnownClass, base: QueryPart) -> Iterator[CandidateQuery]:
        """Yield the comparison of the numbers of members in two groups that the question names."""
        span = self._compared_span(known)
        equal = [condition for condition in base.conditions if isinstance(condition, Equals)]
        if not span or len(equal) != 2 or equal[0].path != equal[1].path:
            return
        conditions = tuple(condition for condition in base.conditions if condition not in equal)
        comparison: Asked = "which"
        if self._links.cue("count"):
            comparison = "difference"
        elif self._links.cue("whether"):
            comparison = "whether"
        cues = self._links.cue("count") | self._links.cue("whether")
        query = CompareGroups(
            Rows(known, conditions),
            equal[0].path,
            (equal[0].values, equal[1].values),
            self._links.words[min(span)].lower == "more",
            comparison,
        )
        part = replace(base, conditions=conditions) + QueryPart(span | cues)
        yield self._candidate(query, part, "compares two groups")

    def _compared_span(self, known: KnownClass) -> Span:
        """Return the words that compare numbers of members: "more … than"; empty where none do."""
        words = [word.lower for word in self._links.words]
        starts = {min(link.span) for link in self._links.classes if link.known.key == known.key}
        for at, word in enumerate(words):
            if word in ("more", "fewer", "less") and at + 1 in starts:
                return frozenset((at, *(n for n, other in enumerate(words) if other == "than")))
        return frozenset()
