"""Readable sentences of stored pages, with headings and neighbouring sentences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TypeVar

from tgraph.errors import ErasedTextError
from tgraph.index.sources import document_of_chunk, page_of_chunk, range_of_chunk
from tgraph.ingest.page_reading import PageReading, reading_of
from tgraph.model import Citation, Evidence, SegmentKind, well_formed
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.graph_sentences import graph_segments

PlaceT = TypeVar("PlaceT", Evidence, Citation)

KEPT_PAGES = 1_000

BEFORE = 5
"""Sentences before a sentence that may say what it is about."""


@dataclass(frozen=True, slots=True)
class PageSentence:
    """A page sentence, quoted as one unit.

    ``text`` is the readable form of ``page[start:end]``, except for mark-up shared with the
    adjacent sentence; ``context`` holds the headings and introductory sentence above;
    ``segment`` is the page segment's number."""

    start: int
    end: int
    text: str
    kind: SegmentKind
    context: tuple[str, ...]
    segment: int


class PageSentences:
    """Page sentences in order, including headings and menus.

    Sentences are built on demand, because most pages need only a few."""

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

    def find_overlapping(self, start: int, end: int) -> range:
        """Return indexes of sentences overlapping a character range."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))


@dataclass(frozen=True, slots=True)
class QuoteSurroundings:
    """A quote's sentences and surroundings.

    ``before`` holds preceding sentences, nearest first; ``after`` the next sentence in the
    paragraph ("" at paragraph end); ``headings`` the headings above, highest first."""

    sentences: tuple[PageSentence, ...]
    before: tuple[str, ...]
    after: str
    headings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def context(self) -> tuple[str, ...]:
        return self.sentences[0].context if self.sentences else ()

    @property
    def kind(self) -> SegmentKind:
        return self.sentences[0].kind if self.sentences else "prose"

    @property
    def is_heading(self) -> bool:
        """Whether all quote sentences are headings."""
        return {sentence.kind for sentence in self.sentences} == {"heading"}


def page_sentences(evidence: Evidence | Citation, context: Context) -> PageSentences:
    """Return the page sentences for an evidence; for graph documents, the sentences of its
    chunk; empty if the page text was erased."""
    document, page = document_of_chunk(evidence.chunk), page_of_chunk(evidence.chunk)
    memory = context.open_cache("pages", KEPT_PAGES)
    if context.texts.is_graph(evidence.chunk):
        graph_sentences: PageSentences = memory.load_item(
            evidence.chunk,
            lambda: PageSentences(reading_of(graph_segments(evidence.chunk, context))),
        )
        return graph_sentences

    def read() -> PageSentences:
        try:
            return PageSentences(context.texts.reading(document, page))
        except ErasedTextError:
            return PageSentences()

    sentences: PageSentences = memory.load_item((document, page), read)
    return sentences


def with_whole_marks(place: PlaceT, context: Context) -> PlaceT:
    """Extend a shortened place to a well-formed quote: shared mark-up is completed within the
    chunk."""
    low, high = range_of_chunk(place.chunk)
    page = page_sentences(place, context)
    start, end = well_formed(page.segments, place.start, place.end, low, high)
    if (start, end) == (place.start, place.end):
        return place
    quote = context.texts.of_chunk(place.chunk)[start - low : end - low]
    return replace(place, start=start, end=end, quote=quote)


def read_place_text(place: Evidence | Citation, context: Context) -> str:
    """Return a place's readable text on one line, without mark-up; the raw quote if the page
    text is lost."""
    text_parts = []
    for segment in page_sentences(place, context).segments:
        if segment.start < place.end and place.start < segment.end:
            first = bisect_left(segment.offsets, place.start)
            last = bisect_left(segment.offsets, place.end)
            text_parts += segment.text[first:last].split()
    return " ".join(text_parts or place.quote.split())


def headings_above(place: Evidence | Citation, context: Context) -> tuple[str, ...]:
    """Return the headings above a place, highest first."""
    page = page_sentences(place, context)
    places = page.find_overlapping(place.start, place.end)
    return page.segments[page[places.start].segment].headings if places else ()


def read_surroundings(evidence: Evidence, context: Context) -> QuoteSurroundings:
    """Return an evidence's sentences together with surrounding text."""
    page = page_sentences(evidence, context)
    places = page.find_overlapping(evidence.start, evidence.end)
    if not places:
        return QuoteSurroundings((), (), "")
    before = [page[at] for at in range(places.start - 1, -1, -1)[:BEFORE]]
    after = page[places.stop] if places.stop < len(page) else None
    goes_on = after is not None and after.segment == page[places.stop - 1].segment
    return QuoteSurroundings(
        tuple(page[at] for at in places),
        tuple(sentence.text for sentence in before if sentence.kind != "heading"),
        after.text if after is not None and goes_on else "",
        page.segments[page[places.start].segment].headings,
    )
