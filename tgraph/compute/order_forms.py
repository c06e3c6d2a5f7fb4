"""Candidate queries by the order in which a table lists its rows: the row after or before another,
the first and the last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph.compute.algebra import Equals, Extreme, ListRows, Path, Rows
from tgraph.compute.doubts import is_time
from tgraph.compute.linking import (
    BY_PART,
    PropertyLink,
    QuestionLinks,
    Span,
    ValueLink,
    merge_links,
)
from tgraph.compute.lookup import KnowledgeLookup
from tgraph.compute.parts import ASSUMED_CLASS, ASSUMED_PROPERTY, CandidateQuery, QueryPart
from tgraph.index.catalogue import KnownClass
from tgraph.resources import word_set

_STEPS = (("following", 1), ("preceding", -1))


def make_order_candidates(
    links: QuestionLinks, lookup: KnowledgeLookup
) -> Iterator[CandidateQuery]:
    """Yield the queries by the order of rows that a question may mean."""
    if links.bounds or links.cues:
        return
    for known in lookup.catalogue.classes:
        if known.kind == "table" and not known.merged_rows:
            forms = _OrderForms(links, lookup, known)
            yield from forms.neighbours()
            yield from forms.ends()


@dataclass(frozen=True, slots=True)
class _OrderForms:
    """The forms over the rows of one table."""

    links: QuestionLinks
    lookup: KnowledgeLookup
    known: KnownClass

    def neighbours(self) -> Iterator[CandidateQuery]:
        """Yield the row after, or before, one that the question names."""
        for link in self.links.values:
            row = self._named_row(link)
            step, cue = self._step_before(link)
            score = self._order_score(cue)
            if row is None or not step or not score:
                continue
            base = row + QueryPart(cue, (score,), ("asks for the row beside",))
            rows = Rows(self.known, row.conditions, row.only, step)
            for part, shown in self._shown(link.span):
                yield _candidate(ListRows(rows, shown), base + part)

    def ends(self) -> Iterator[CandidateQuery]:
        """Yield the rows that the table lists first or last."""
        for link in self.links.extremes:
            words = {self.links.words[at].lower for at in link.span}
            score = self._order_score(frozenset((min(link.span),)))
            if words.isdisjoint(("first", "last")) or self._is_named(link.span) or not score:
                continue
            cue = QueryPart(link.span, (score,), ("asks as listed",))
            for part, shown in self._shown(link.span):
                query = Extreme(Rows(self.known), None, link.is_most, link.places, shown)
                yield _candidate(query, cue + part)

    def _named_row(self, link: ValueLink) -> QueryPart | None:
        """Return the condition that a row is the one that a link names."""
        rows = frozenset(self.known.rows)
        why = (f"“{self.links.text(link.span)}” is a row",)
        only = tuple(v for v in link.values if isinstance(v, NamedNode) and v in rows)
        if only:
            return QueryPart(link.span, (link.score,), why, only=only[:1])
        for path in self.lookup.find_paths(self.known, link.values):
            if len(path.properties) == 1 and not path.backward:
                condition = Equals(path, link.values, link.label)
                return QueryPart(link.span, (link.score,), why, (condition,))
        return None

    def _step_before(self, link: ValueLink) -> tuple[int, Span]:
        """Return the step from a named row to the row asked for (1 after, -1 before, 0 for no
        step), and the positions of the order words: the word before the name, and others of the
        same direction."""
        lowers = [word.lower for word in self.links.words]
        at = min(link.span) - 1
        while at >= 0 and lowers[at] in ("the", "to"):
            at -= 1
        for name, step in _STEPS:
            words = word_set("computing", name)
            if at >= 0 and lowers[at] in words:
                words |= word_set("computing", "as_listed")
                return step, frozenset(n for n, word in enumerate(lowers) if word in words)
        return 0, frozenset()

    def _order_score(self, cue: Span) -> float:
        """Return how surely words ask for the order of rows: less where none says that they are
        listed, and not where a column has an order that may be meant."""
        words = {self.links.words[at].lower for at in cue}
        asked = {word.lower for word in self.links.words} & word_set("computing", "as_listed")
        if asked or len(words) > 1:
            return 1.0
        own = [self.lookup.catalogue.property_of(column.property) for column in self.known.columns]
        is_measured = any(known.kind == "number" for known in own)
        if any(is_time(Path((known,))) for known in own) or (
            is_measured and not words.isdisjoint(("above", "below"))
        ):
            return 0.0
        return ASSUMED_PROPERTY

    def _is_named(self, cue: Span) -> bool:
        """Return whether words of an order are part of a name, or a word beside them names a time,
        which is asked for then."""
        times = (link for link in self.links.properties if link.known.kind in ("year", "date"))
        return any(not link.span.isdisjoint(cue) for link in self.links.values) or any(
            min(link.span) == max(cue) + 1 for link in times
        )

    def _shown(self, taken: Span) -> Iterator[tuple[QueryPart, Path | None]]:
        """Yield what may be shown: the rows, or a column that the question names."""
        names = [link.span for link in self.links.classes if link.known.key == self.known.key]
        score = 1.0 if names else ASSUMED_CLASS
        yield QueryPart(frozenset().union(*names), (score,), ("asks for the rows",)), None
        for link in self._columns(taken):
            part = QueryPart(link.span, (link.score,), (f"asks for {link.known.label}",))
            yield part, Path((link.known,))

    def _columns(self, taken: Span) -> list[PropertyLink]:
        iris = {column.property for column in self.known.columns}
        links = (link for link in self.links.properties if link.score > BY_PART)
        own = (link for link in links if link.known.iri in iris)
        return [link for link in merge_links(own).values() if link.span.isdisjoint(taken)]


def _candidate(query: ListRows | Extreme, part: QueryPart) -> CandidateQuery:
    return CandidateQuery(query, part.span, part.scores, part.reasons)
