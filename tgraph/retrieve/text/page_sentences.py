"""The sentences of stored pages as they read, with what they stand under and beside."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TypeVar

from tgraph.errors import ErasedTextError
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk
from tgraph.ingest.page_reading import PageReading, reading_of
from tgraph.model import Citation, Evidence, SegmentKind, well_formed
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.graph_sentences import graph_segments, is_graph

PlaceT = TypeVar("PlaceT", Evidence, Citation)

KEPT_PAGES = 1_000

BEFORE = 5
"""Sentences before a sentence that may say what it is about."""


@dataclass(frozen=True, slots=True)
class PageSentence:
    """What is quoted as one: ``text`` is how ``page[start:end]`` reads, but for mark-up that it
    shares with the sentence beside it, ``context`` the headings and the sentence that it stands
    under; ``segment`` counts the page's segments."""

    start: int
    end: int
    text: str
    kind: SegmentKind
    context: tuple[str, ...]
    segment: int


class PageSentences:
    """The sentences of a page in order, headings and menus included. One is made when it is asked
    for: of most pages a few are."""

    def __init__(self, reading: PageReading | None = None) -> None:
        reading = reading or PageReading()
        self.segments = reading.segments
        self._spans = [(at, *span) for at, spans in enumerate(reading.sentences) for span in spans]
        located = [self.segments[at].locate(first, last) for at, first, last in self._spans]
        self._starts = [start for start, _ in located]
        self._ends = [end for _, end in located]

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, place: int) -> PageSentence:
        at, first, last = self._spans[place]
        segment = self.segments[at]
        where, text = (self._starts[place], self._ends[place]), segment.text[first:last]
        return PageSentence(*where, text, segment.kind, segment.context, at)

    def over(self, start: int, end: int) -> range:
        """The places of the sentences that share characters with a stretch of the page."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))


@dataclass(frozen=True, slots=True)
class QuoteSurroundings:
    """A place as it reads: its sentences, those before it, nearest first, the one after it in its
    paragraph ("" where that ends), and the headings that it stands under, the highest first."""

    sentences: tuple[PageSentence, ...]
    before: tuple[str, ...]
    after: str
    headings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(each.text for each in self.sentences)

    @property
    def context(self) -> tuple[str, ...]:
        return self.sentences[0].context if self.sentences else ()

    @property
    def kind(self) -> SegmentKind:
        return self.sentences[0].kind if self.sentences else "prose"

    @property
    def is_heading(self) -> bool:
        """Whether headings are all that stands there."""
        return {each.kind for each in self.sentences} == {"heading"}


def page_sentences(evidence: Evidence | Citation, context: Context) -> PageSentences:
    """Those of the page that the evidence is of, of a graph those of its chunk; none where its text
    was erased."""
    document, page = document_of_chunk(evidence.chunk), page_of_chunk(evidence.chunk)
    memory = context.remembered("pages", KEPT_PAGES)
    if is_graph(evidence.chunk, context):
        stated: PageSentences = memory.get(
            evidence.chunk,
            lambda: PageSentences(reading_of(graph_segments(evidence.chunk, context))),
        )
        return stated

    def read() -> PageSentences:
        try:
            return PageSentences(context.texts.reading(document, page))
        except ErasedTextError:
            return PageSentences()

    found: PageSentences = memory.get((document, page), read)
    return found


def with_whole_marks(place: PlaceT, context: Context) -> PlaceT:
    """A place that was cut out of a longer one, so that its quote is well-formed: with the mark-up
    whole that it shares, as far as its chunk goes."""
    low, high = range_of_chunk(place.chunk)
    page = page_sentences(place, context)
    start, end = well_formed(page.segments, place.start, place.end, low, high)
    if (start, end) == (place.start, place.end):
        return place
    quote = context.texts.of_chunk(place.chunk)[start - low : end - low]
    return replace(place, start=start, end=end, quote=quote)


def reading(place: Evidence | Citation, context: Context) -> str:
    """What a place reads as, on one line: its characters without mark-up; the quote itself where
    the text of its page was lost."""
    found = []
    for segment in page_sentences(place, context).segments:
        if segment.start < place.end and place.start < segment.end:
            first = bisect_left(segment.offsets, place.start)
            last = bisect_left(segment.offsets, place.end)
            found += segment.text[first:last].split()
    return " ".join(found or place.quote.split())


def surroundings(evidence: Evidence, context: Context) -> QuoteSurroundings:
    """What the evidence reads as, and what stands around it."""
    page = page_sentences(evidence, context)
    places = page.over(evidence.start, evidence.end)
    if not places:
        return QuoteSurroundings((), (), "")
    before = [page[at] for at in range(places.start - 1, -1, -1)[:BEFORE]]
    after = page[places.stop] if places.stop < len(page) else None
    goes_on = after is not None and after.segment == page[places.stop - 1].segment
    return QuoteSurroundings(
        tuple(page[at] for at in places),
        tuple(each.text for each in before if each.kind != "heading"),
        after.text if after is not None and goes_on else "",
        page.segments[page[places.start].segment].headings,
    )
