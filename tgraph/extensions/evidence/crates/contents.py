"""Evidence package contents of a session, and files derived from them.

Record, texts and replay inputs come from the graph. Answer, report and metadata are derived
from these alone, by the same function during packaging and verification."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, Triple, parse

from tgraph import vocabulary as v
from tgraph.errors import EvidenceError
from tgraph.explain.integrity.entries import ChainEntry, read_entries, term_text
from tgraph.explain.trace.bundle_reader import BundleReader
from tgraph.explain.trace.reader import Trace, TraceReader
from tgraph.explain.trace.recorded_session import read_request
from tgraph.explain.trace.sessions import SessionSummary, find_session
from tgraph.explain.trace.values import TraceCall
from tgraph.extensions.evidence.crates.about import About
from tgraph.extensions.evidence.crates.container import MANIFEST
from tgraph.extensions.evidence.crates.metadata import build_metadata, describe_method, read_me
from tgraph.extensions.evidence.crates.reads import LibrarianInMemory
from tgraph.extensions.evidence.session_report import report_of
from tgraph.index.sources import Texts, text_value
from tgraph.librarian import Librarian
from tgraph.store.base import Store, match_record
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import to_bytes

ABOUT, RECORD, KNOWLEDGE, READS = "crate.json", "record.nq", "knowledge.nq", "reads.json"
ANSWER, REPORT, README = "answer.txt", "report.html", "README.md"
METHOD, METADATA = "method.json", "ro-crate-metadata.json"

_LITERAL = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_HASHED = re.compile(r"(pages|calls|prompts|texts)/([0-9a-f]{64})\.\w+")


class TextsOfPackage(Texts):
    """Page texts in a package.

    Quotes appear as recorded; the quote check verifies their presence in the text."""

    def has_text(self, document: str, page: int | None) -> bool:
        key = text_value(self._store, v.page_of(document, page), v.tg("textHash"))
        return bool(key) and self._librarian.has_content(key)

    def check(
        self, document: str, page: int | None, start: int, end: int, recorded: str | None
    ) -> str:
        with suppress(EvidenceError):
            return super().check(document, page, start, end, recorded)
        return recorded or ""

    def quote(self, chunk: str, start: int, end: int, recorded: str | None) -> str:
        with suppress(EvidenceError):
            return super().quote(chunk, start, end, recorded)
        return recorded or ""


class PackageContents:
    """Parsed files of an evidence package."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Parse package files. Raise ``ValueError``, ``KeyError`` or ``TypeError`` if files are
        malformed."""
        self.files = files
        self.about = About.from_json(files[ABOUT])
        self.record = read_quads(files[RECORD])
        self.store: Store = OxigraphStore.memory(self.record)
        self.store.extend(read_quads(files.get(KNOWLEDGE, b"")))
        name_matches = ((_HASHED.fullmatch(name), data) for name, data in files.items())
        contents = {match.group(2): data for match, data in name_matches if match}
        if ANSWER in files:
            contents[self._answer_key] = files[ANSWER]
        self.librarian: Librarian = LibrarianInMemory(contents)
        self.texts = TextsOfPackage(self.store, self.librarian)

    @property
    def _answer_key(self) -> str:
        return self.bundle_reader.read_text(v.answer_text_iri(self.about.uuid), "contentHash")

    @cached_property
    def entries(self) -> list[ChainEntry]:
        """Return chain entries in the package, in chain order."""
        return read_entries(self.store, self.about.catalogue)

    @cached_property
    def summary(self) -> SessionSummary:
        return find_session(self.store, self.about.catalogue, self.about.session)

    @cached_property
    def collection(self) -> str:
        return self.about.catalogue.removeprefix(v.collection_iri(""))

    @cached_property
    def trace(self) -> Trace:
        return trace_of(self.store, self.librarian, self.about, self.texts)

    @cached_property
    def bundle_reader(self) -> BundleReader:
        return BundleReader(self.store.match(None, None, None, NamedNode(self.about.bundle)))

    def derive_files(self) -> dict[str, bytes]:
        """Return files derived from other package files."""
        trace, description = self.trace, self.about
        drawn = {
            METHOD: describe_method(trace),
            README: read_me(trace, description),
            REPORT: self._render_report(trace),
        }
        source_files = {name: data for name, data in self.files.items() if name not in _DRAWN}
        drawn[METADATA] = build_metadata(trace, description, {**source_files, **drawn})
        return drawn

    def _render_report(self, trace: Trace) -> bytes:
        description, read = self.about, self.librarian.get_text
        pages = partial(self._page_text, _collect_quotes(trace))
        drawn = replace(trace, report=None)
        store, request = self.store, self._read_call_request
        html = report_of(
            store, drawn, description.bundle, description.catalogue, read, pages, request
        )
        return html.encode("utf-8", "surrogatepass")

    def _read_call_request(self, call: TraceCall) -> tuple[str, str]:
        if not self.about.texts:
            return "", "left out"
        return read_request(self.store, self.librarian.get_text, call)

    def _page_text(self, quotes: Quotes, document: str, page: int | None) -> str:
        """Return page text, or quotes at their recorded positions if the package lacks the
        page."""
        if self.texts.has_text(document, page):
            return self.texts.of_page(document, page)
        text = ""
        for start, quote in sorted(quotes[document, page]):
            text = text.ljust(start)[:start] + quote + text[start + len(quote) :]
        return text


Quotes = Mapping[tuple[str, int | None], set[tuple[int, str]]]
_DRAWN = (README, REPORT, METHOD, METADATA, MANIFEST)


def find_misnamed_files(files: Iterable[str], sums: Mapping[str, str]) -> Iterator[str]:
    """Yield files whose names contain a wrong SHA-256."""
    for name in files:
        match = _HASHED.fullmatch(name)
        if match and match.group(2) != sums[name]:
            yield name


def _collect_quotes(trace: Trace) -> Quotes:
    quotes: defaultdict[tuple[str, int | None], set[tuple[int, str]]] = defaultdict(set)
    for cited in (c for sentence in trace.sentences for c in sentence.citations):
        quotes[cited.document, cited.page].add((cited.start, cited.quote))
    return quotes


def trace_of(store: Store, librarian: Librarian, about: About, texts: Texts) -> Trace:
    """Return the session trace from its own bundle alone, without later statements."""
    quads = sorted(store.match(None, None, None, NamedNode(about.bundle)), key=str)
    collection = about.catalogue.removeprefix(v.collection_iri(""))
    return TraceReader(store, librarian.get_text, about.session, quads, collection, texts).read()


def serialise_quads(quads: Iterable[Quad]) -> bytes:
    """Return quads as sorted N-Quads: identical quads yield identical bytes."""
    return b"".join(sorted(set(to_bytes(list(quads)).splitlines(keepends=True))))


def read_quads(data: bytes) -> list[Quad]:
    """Return quads serialised by ``serialise_quads``. Raise ``ValueError`` for any other input.

    A triple term inside a triple term, never written by tgraph, is refused before parsing: a
    thousand nested terms are too deep for a parser."""
    if any(_LITERAL.sub(b"", line).count(b"<<") > 1 for line in data.split(b"\n")):
        raise ValueError("triple terms in triple terms")
    try:
        quads = list(parse(data, RdfFormat.N_QUADS))
    except SyntaxError as error:
        raise ValueError(f"no N-Quads: {error}") from error
    if serialise_quads(quads) != data:
        raise ValueError("quads that are not written in their order")
    return quads


# --- what a session refers to ---


def content_keys(quads: Iterable[Quad], bundle: str) -> Iterator[str]:
    """Yield text hashes referenced by a session bundle."""
    for quad in quads:
        if quad.graph_name == NamedNode(bundle) and quad.predicate == v.tg("contentHash"):
            yield term_text(quad.object)


def accessions_of(store: Store, quads: Iterable[Quad]) -> Iterator[Quad]:
    """Yield accession quads (ingestion paths) for documents among the quads."""
    documents = {
        quad.subject
        for quad in quads
        if quad.predicate == v.RDF_TYPE and quad.object == v.tg("Document")
    }
    for document in documents:
        accession_quads = store.match(None, v.prov("specializationOf"), document, v.SOURCE_GRAPH)
        for accession in [quad.subject for quad in accession_quads]:
            yield from store.match(accession, None, None, v.SOURCE_GRAPH)


def label_quads(store: Store, quads: Iterable[Quad]) -> Iterator[Quad]:
    """Yield knowledge labels of terms in the quads."""
    terms: set[object] = set()
    for quad in quads:
        terms |= {quad.subject, quad.object}
        if isinstance(quad.object, Triple):
            terms |= {*quad.object}
    for term in terms:
        if isinstance(term, NamedNode):
            yield from store.match(term, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)


def chain_quads(store: Store, catalogue: str, bundle: str, erased: Iterable[str]) -> list[Quad]:
    """Return chain quads from the bundle entry through related erasure entries, up to the first
    signature covering all of them."""
    entries = read_entries(store, catalogue)
    subjects = {bundle, *erased}
    sequences = [entry.sequence for entry in entries if entry.subject in subjects]
    signed = [entry.sequence for entry in entries if entry.kind == "signature"]
    last = next((number for number in signed if number > max(sequences)), max(sequences))
    bundle_sequence = next(entry.sequence for entry in entries if entry.subject == bundle)
    return [
        quad
        for entry in entries
        if bundle_sequence <= entry.sequence <= last
        for quad in entry.quads
    ]


def erasure_bundles(store: Store, bundle: str) -> list[str]:
    """Return bundles of erasures that rewrote the bundle or removed a referenced text."""
    erasure_quads = list(match_record(store, None, v.tg("rewrote"), NamedNode(bundle)))
    for quad in store.match(None, v.tg("contentHash"), None, NamedNode(bundle)):
        assert isinstance(quad.object, Literal)
        erasure_quads += match_record(store, None, v.tg("removedText"), quad.object)
    return sorted({term_text(quad.graph_name) for quad in erasure_quads})
