"""Session corpus: standing documents and evidence extracted before the session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError
from tgraph.index.evidence import recorded_place
from tgraph.index.sources import Texts, derived_items, document_of_chunk, page_of_chunk, text_value
from tgraph.ingest.sentences import sentences
from tgraph.store.base import Store, match_record, text_of

AccessionState = Choice["stood", "later", "superseded", "retracted"]
PlaceSpan = tuple[str, int | None, int, int]
"""Document, page, start and end."""

_EXTRACTION = f"{v.URN}extraction:"
_CURATION = f"{v.URN}curation:"
_LONGEST = 400
"""Characters of a sentence that is shown as the place of a find."""


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """A document position: ``quote`` equals ``text[start:end]`` of the page (or document)."""

    document: str
    title: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str

    @property
    def span(self) -> PlaceSpan:
        return self.document, self.page, self.start, self.end


@dataclass(frozen=True, slots=True)
class Accession:
    """A document accession under a path.

    ``state`` is its state for the session: standing, added later, superseded or retracted.
    ``ended`` is the end time (empty while standing), ``ending`` the kind of ending, and ``why``
    the retraction reason."""

    document: str
    title: str
    path: str
    taken: str
    state: AccessionState
    ended: str = ""
    ending: AccessionState = "stood"
    why: str = ""

    @property
    def was_available(self) -> bool:
        """Whether this document was available to the session."""
        return self.state == "stood"


class CorpusAsOf:
    """A corpus reader for a knowledge generation; ``started`` is the session start time."""

    def __init__(self, store: Store, texts: Texts, generation: int, started: str) -> None:
        self.store = store
        self.texts = texts
        self.generation = generation
        self.started = started

    @cached_property
    def runs(self) -> dict[str, int]:
        """Return generations by index run; runs without changes have no generation."""
        generations: dict[str, int] = {}
        for quad in match_record(self.store, None, v.tg("run")):
            for number in self.store.match(quad.subject, v.tg("generation"), None, quad.graph_name):
                if isinstance(number.object, Literal) and isinstance(quad.object, NamedNode):
                    run = quad.object.value
                    generations[run] = min(int(number.object.value), generations.get(run, 1 << 62))
        return generations

    @cached_property
    def current(self) -> int:
        """The newest generation."""
        return max(self.runs.values(), default=0)

    @cached_property
    def accessions(self) -> list[Accession]:
        """Return all document accessions under all paths, sorted with known accessions first."""
        quads = self.store.match(None, v.RDF_TYPE, v.tg("Accession"), v.SOURCE_GRAPH)
        accessions = (self._read_accession(text_of(quad.subject)) for quad in quads)
        return sorted(accessions, key=lambda a: (not a.was_available, a.path, a.taken, a.document))

    def _read_accession(self, iri: str) -> Accession:
        document = text_value(self.store, iri, v.prov("specializationOf"))
        ended = text_value(self.store, iri, v.prov("invalidatedAtTime"))
        by = text_value(self.store, iri, v.prov("wasInvalidatedBy"))
        ending: AccessionState = "retracted" if by.startswith(_CURATION) else "superseded"
        state: AccessionState = ending if ended and self._had_ended(by, ended) else "stood"
        if not self._by_then(text_value(self.store, iri, v.prov("wasGeneratedBy"))):
            state = "later"
        return Accession(
            document,
            text_value(self.store, document, v.dcterms("title")),
            text_value(self.store, iri, v.tg("path")),
            text_value(self.store, iri, v.prov("generatedAtTime")),
            state,
            ended,
            ending if ended else "stood",
            text_value(self.store, by, v.tg("reason")) if ended else "",
        )

    def _had_ended(self, by: str, ended: str) -> bool:
        """Tell whether an accession had ended before the session: run changes count from
        publication."""
        if by in self.runs:
            return self.runs[by] <= self.generation
        return v.in_time(ended) <= v.in_time(self.started)

    def _by_then(self, run: str) -> bool:
        return self.runs.get(run, 0) <= self.generation

    @cached_property
    def documents(self) -> dict[str, Accession]:
        """Standing documents by IRI."""
        return {a.document: a for a in reversed(self.accessions) if a.was_available}

    def knew(self, evidence: str) -> bool:
        """Tell whether evidence was extracted before the session, from a standing document."""
        extraction = text_value(self.store, evidence, v.prov("wasGeneratedBy"))
        run = extraction.removeprefix(_EXTRACTION).partition(":")[0]
        stood = self.document_of(evidence) in self.documents
        return stood and self._by_then(f"{v.URN}run:{run}")

    def document_of(self, evidence: str) -> str:
        """Return the source document of the evidence."""
        return document_of_chunk(text_value(self.store, evidence, v.prov("wasDerivedFrom")))

    # --- texts ---

    def pages(self, document: str) -> list[int | None]:
        """Return sorted page numbers of a document; ``[None]`` without pages."""
        numbers = sorted(
            int(text_value(self.store, page, v.tg("pageNumber")) or 0)
            for page in derived_items(self.store, document, "Page")
        )
        return list(numbers) or [None]

    def find(self, phrases: tuple[str, ...], *, known: bool = True) -> Iterator[DocumentPlace]:
        """The places where a document says one of the phrases, letter case, white space and
        punctuation aside; with ``known`` False in documents that the session could not know."""
        pattern = _compile_phrases(phrases)
        documents_seen = set(self.documents)
        for accession in self.accessions:
            if accession.was_available is known and (
                known or accession.document not in documents_seen
            ):
                documents_seen.add(accession.document)
                yield from self._find_matches(pattern, accession) if pattern else ()

    def _find_matches(
        self, pattern: re.Pattern[str], accession: Accession
    ) -> Iterator[DocumentPlace]:
        for page in self.pages(accession.document):
            try:
                text = self.texts.of_page(accession.document, page)
            except ErasedTextError:
                continue
            for match in pattern.finditer(text):
                document_fields = accession.document, accession.title, accession.path
                yield DocumentPlace(*document_fields, page, *match.span(), match[0])

    def widen_to_sentence(self, place: DocumentPlace) -> DocumentPlace:
        """Return the sentence surrounding a document position, for display."""
        text = self.texts.of_page(place.document, place.page)
        low = max(0, place.start - _LONGEST)
        part = text[low : place.end + _LONGEST]
        spans = [
            (low + a, low + b)
            for a, b in sentences(part)
            if low + a <= place.start and place.end <= low + b
        ]
        start, end = spans[0] if spans else (place.start, place.end)
        return replace(place, start=start, end=end, quote=text[start:end])


def span_of(evidence: str, store: Store) -> PlaceSpan:
    """Return the document position of the evidence."""
    chunk, start, end, _ = recorded_place(store, evidence)
    return document_of_chunk(chunk), page_of_chunk(chunk), start, end


def spans_overlap(one: PlaceSpan, other: PlaceSpan) -> bool:
    """Tell whether two spans share characters."""
    return one[:2] == other[:2] and one[2] < other[3] and other[2] < one[3]


_WORD = re.compile(r"\w+")


def _compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str] | None:
    ways = []
    for phrase in phrases:
        words = _WORD.findall(phrase)
        if words:
            before = r"(?<!\w)" if words[0][0].isascii() else ""
            after = r"(?!\w)" if words[-1][-1].isascii() else ""
            ways.append(before + r"[\W_]+".join(map(re.escape, words)) + after)
    return re.compile("|".join(ways), re.IGNORECASE) if ways else None
