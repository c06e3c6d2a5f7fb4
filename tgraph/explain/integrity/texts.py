"""Source verification: recorded pages, chunks, quotes, offsets and hashes are recomputed from
stored texts.

This also finds wrong statements made by changes that the chain accounts for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import accumulate, chain

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, EvidenceError, StoreError
from tgraph.explain.integrity.entries import Problem, term_text
from tgraph.explain.integrity.erasures import erasures_since
from tgraph.explain.integrity.quads import DigestFile, compare_digests, digest_of
from tgraph.index.evidence import recorded_place
from tgraph.index.sources import (
    Texts,
    derived_items,
    document_of_chunk,
    is_mark,
    page_of_chunk,
    parts_of_page,
    range_of_chunk,
)
from tgraph.librarian import Librarian
from tgraph.store.base import Store, match_record

_EXACT, _QUOTE = v.oa("exact"), ":quote"
_EVIDENCE, _BUNDLE = f"{v.URN}evidence:", v.bundle_iri("")
_KINDS = ("Document", "Page", "Chunk", "Evidence", "Accession")
_PREFIXES = {f"{v.URN}{kind.casefold()}:": kind for kind in _KINDS}
_MARKS = tuple(
    map(
        v.tg, ("contentHash", "textHash", "charOffset", "charLength", "quote", "pageNumber", "path")
    )
)
"""By what a thing is found that has lost its class."""

PropertyValues = Mapping[NamedNode, Sequence[str]]


class SourceCheck:
    """The documents, pages, chunks, evidence and citations of a store, against the texts."""

    def __init__(self, store: Store, librarian: Librarian) -> None:
        self._store = store
        self._texts = Texts(store, librarian)
        self._starts: dict[str, Mapping[int, int]] = {}
        self._readable: dict[tuple[str, int | None], bool] = {}
        self._erasures = erasures_since(store, "")
        self._checks: Mapping[str, Callable[[str, PropertyValues], Iterator[str]]] = {
            "Document": self._check_document,
            "Page": self._check_page,
            "Chunk": self._check_chunk,
            "Evidence": self._check_evidence,
            "Accession": self._check_accession,
        }

    def problems(self) -> Iterator[Problem]:
        """Yield problems for recorded statements that differ from stored texts."""
        for kind, subject in self._checked_subjects():
            for detail in self._find_errors(kind, subject):
                yield Problem("altered", kind.casefold(), subject, detail)
        for quad in match_record(self._store, None, _EXACT):
            if term_text(quad.graph_name).startswith(_BUNDLE):
                try:
                    check_citation(self._store, self._texts, quad)
                except EvidenceError as error:
                    citation = term_text(quad.subject).removesuffix(_QUOTE)
                    yield Problem("altered", "citation", citation, error.message)

    def _checked_subjects(self) -> Iterator[tuple[str, str]]:
        unclassed_subjects: list[str] = []
        with closing(DigestFile()) as classed, closing(DigestFile()) as marked:
            for kind in _KINDS:
                for quad in self._store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH):
                    subject = term_text(quad.subject)
                    if _kind_of(subject) == kind:
                        classed.add([subject.encode()])
                        yield kind, subject
                    elif _kind_of(subject):
                        unclassed_subjects.append(subject)
            for subject in chain(unclassed_subjects, self._marked_subjects()):
                marked.add([subject.encode()])
            lacking, _ = compare_digests(marked, classed)
        for subject in chain(unclassed_subjects, self._marked_subjects()) if lacking else ():
            digest = digest_of(subject.encode())
            if digest in lacking:
                lacking.discard(digest)
                yield _kind_of(subject), subject

    def _marked_subjects(self) -> Iterator[str]:
        """Yield subjects with a property and a name typical for checked resources, usually
        several times."""
        marks = (self._store.match(None, mark, None, v.SOURCE_GRAPH) for mark in _MARKS)
        for quad in chain.from_iterable(marks):
            subject = term_text(quad.subject)
            if _kind_of(subject):
                yield subject

    def _find_errors(self, kind: str, subject: str) -> Iterator[str]:
        values: dict[NamedNode, list[str]] = {}
        for quad in self._store.match(NamedNode(subject), None, None, v.SOURCE_GRAPH):
            values.setdefault(quad.predicate, []).append(term_text(quad.object))
        if v.tg(kind).value not in values.get(v.RDF_TYPE, ()):
            yield f"It has lost its class tg:{kind}."
        try:
            yield from self._checks[kind](subject, values)
        except ValueError:
            yield "The name does not have a form that tgraph uses."
        except ErasedTextError:
            return
        except EvidenceError as error:
            yield error.message

    # --- each kind; a name says what the thing must be ---

    def _page_text(self, document: str, page: int | None) -> str:
        """Return page text. Raise ``ErasedTextError`` if an erasure mark replaced the text."""
        text = self._texts.of_page(document, page)
        if self._erasures and is_mark(text):
            raise ErasedTextError(f"The text of {self._texts.place(document, page)} was erased.")
        return text

    def _check_document(self, subject: str, said: PropertyValues) -> Iterator[str]:
        digest = subject.removeprefix(v.document_iri(""))
        pages = self._page_numbers(subject)
        numbers: Sequence[int | None] = pages or [None]
        if pages:
            yield from _compare_values(said, "textHash", [])
        elif len(_property_values(said, "textHash")) != 1:
            yield "The number of textHash values has to be one."
        yield from _compare_values(said, "pageCount", [str(len(pages))] if pages else [])
        length = sum(len(self._page_text(subject, number)) for number in numbers)
        contents, versions = (_property_values(said, n) for n in ("contentHash", "readingVersion"))
        reread = [v.reread_digest(content, int(n)) for content in contents for n in versions]
        if digest not in reread:
            yield from _compare_values(said, "contentHash", [digest])
        yield from _compare_values(said, "charLength", [str(length)])

    def _check_page(self, subject: str, said: PropertyValues) -> Iterator[str]:
        document, number = parts_of_page(subject)
        assert number is not None
        yield from _compare_values(said, "pageNumber", [str(number)])
        yield from _compare_values(said, "wasDerivedFrom", [document])
        if len(_property_values(said, "textHash")) != 1:
            yield "The number of textHash values has to be one."
        length = len(self._page_text(document, number))
        yield from _compare_values(said, "charLength", [str(length)])
        yield from _compare_values(
            said, "charOffset", [str(self._page_offsets(document).get(number))]
        )

    def _page_numbers(self, document: str) -> list[int]:
        """Return sorted page numbers, taken from page IRIs."""
        pages = derived_items(self._store, document, "Page")
        return sorted(int(page.rpartition(":")[2]) for page in pages)

    def _page_offsets(self, document: str) -> Mapping[int, int]:
        """Return start offsets of pages within the concatenated document text, by page number."""
        if document not in self._starts:
            numbers = self._page_numbers(document)
            lengths = [len(self._page_text(document, number)) for number in numbers]
            starts = accumulate(lengths, initial=0)
            self._starts[document] = dict(zip(numbers, starts, strict=False))
        return self._starts[document]

    def _is_readable(self, document: str, page: int | None) -> bool:
        """Tell whether page text is available; an unavailable page is reported by itself."""
        if (document, page) not in self._readable:
            try:
                self._page_text(document, page)
            except StoreError:
                self._readable[document, page] = False
            else:
                self._readable[document, page] = True
        return self._readable[document, page]

    def _has_statement(
        self, subject: str, predicate: NamedNode, term: NamedNode | None = None
    ) -> bool:
        quads = self._store.match(NamedNode(subject), predicate, term, v.SOURCE_GRAPH)
        return next(quads, None) is not None

    def _check_chunk(self, subject: str, said: PropertyValues) -> Iterator[str]:
        document, page = document_of_chunk(subject), page_of_chunk(subject)
        start, end = range_of_chunk(subject)
        yield from _compare_values(said, "wasDerivedFrom", [v.page_of(document, page)])
        yield from _compare_values(said, "charOffset", [str(start)])
        yield from _compare_values(said, "charLength", [str(end - start)])
        if not self._has_statement(v.page_of(document, page), v.tg("textHash")):
            yield "The page of the item is not on record."
        elif not self._is_readable(document, page):
            return
        elif not 0 <= start < end <= len(self._texts.of_page(document, page)):
            yield f"It is no stretch of {self._texts.place(document, page)}."

    def _check_evidence(self, subject: str, said: PropertyValues) -> Iterator[str]:
        for name in ("wasDerivedFrom", "charOffset", "charLength"):
            if len(_property_values(said, name)) != 1:
                yield f"It must have one {name}."
        if len(_property_values(said, "quote")) > 1:
            yield "The citation has several quotes."
        statements = [
            term for name in ("edge", "entity", "claim") for term in _property_values(said, name)
        ]
        if len(statements) != 1:
            yield "The evidence has to belong to one edge, entity or claim."
        place = recorded_place(self._store, subject)
        if not self._has_statement(place.chunk, v.RDF_TYPE, v.tg("Chunk")):
            yield "The chunk of the evidence is not on record."
        elif is_mark(place.quote or "") and not self._erasures:
            yield "The quote is marked as erased, but the record has no erasure."
        elif self._is_readable(document_of_chunk(place.chunk), page_of_chunk(place.chunk)):
            self._texts.quote(*place)

    def _check_accession(self, subject: str, said: PropertyValues) -> Iterator[str]:
        paths = _property_values(said, "path")
        if any(map(is_mark, paths)):
            return
        documents, before = (
            _property_values(said, "specializationOf"),
            _property_values(said, "wasRevisionOf"),
        )
        digests = [document.removeprefix(v.document_iri("")) for document in documents]
        earlier: Sequence[str | None] = before or [None]
        expected_names = [v.accession_iri(p, d, b) for p in paths for d in digests for b in earlier]
        if expected_names != [subject]:
            yield "Path, document or predecessor differ from the name of the item."


def _kind_of(subject: str) -> str:
    """Return a subject's kind according to its IRI prefix; empty for other prefixes."""
    return _PREFIXES.get(subject[: subject.find(":", len(v.URN)) + 1], "")


def _property_values(said: PropertyValues, name: str) -> Sequence[str]:
    terms = (v.tg(name), v.prov(name))
    return [text for term in terms for text in said.get(term, ())]


def _compare_values(said: PropertyValues, name: str, wanted: Sequence[str]) -> Iterator[str]:
    recorded_values = _property_values(said, name)
    if list(recorded_values) != list(wanted):
        is_, must_be = ", ".join(recorded_values) or "missing", ", ".join(wanted) or "missing"
        yield f"{name} is {is_} and must be {must_be}."


def check_citation(store: Store, texts: Texts, exact: Quad) -> None:
    """Raise ``EvidenceError`` if a citation's quote, stated by ``exact``, differs from stored
    text at its position.

    Erased text can't be compared, which is no error."""
    citation = term_text(exact.subject).removesuffix(_QUOTE)
    try:
        properties = {
            quad.predicate: term_text(quad.object)
            for part in ("position", "target")
            for quad in store.match(NamedNode(f"{citation}:{part}"), None, None, exact.graph_name)
        }
        page = parts_of_page(NamedNode(properties[v.oa("hasSource")]).value)
        start, end = (int(properties[v.oa(name)]) for name in ("start", "end"))
    except (KeyError, ValueError) as error:
        raise EvidenceError(f"{citation} has no place in a page.") from error
    with suppress(ErasedTextError):
        texts.check(*page, start, end, term_text(exact.object))


def check_quotes(store: Store, quads: Iterable[Quad], texts: Texts) -> None:
    """Raise ``EvidenceError`` if evidence or a citation among the quads differs from stored
    text."""
    checked_subjects: set[str] = set()
    for quad in quads:
        subject = term_text(quad.subject)
        if quad.predicate == _EXACT:
            check_citation(store, texts, quad)
        elif subject.startswith(_EVIDENCE) and subject not in checked_subjects:
            checked_subjects.add(subject)
            with suppress(ErasedTextError):
                texts.quote(*recorded_place(store, subject))
