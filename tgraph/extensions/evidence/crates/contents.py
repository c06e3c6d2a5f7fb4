"""What an evidence package of a session holds, and what is drawn from that.

The record, the texts and what a replay reads are taken from the graph. Answer, report and metadata
are drawn from these alone, by the same function when the package is made and when it is checked.
"""

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
from tgraph.extensions.evidence.crates.metadata import metadata, method, read_me
from tgraph.extensions.evidence.crates.reads import LibrarianInMemory
from tgraph.extensions.evidence.session_report import report_of
from tgraph.index.sources import Texts, text_value
from tgraph.librarian import Librarian
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import to_bytes

ABOUT, RECORD, KNOWLEDGE, READS = "crate.json", "record.nq", "knowledge.nq", "reads.json"
ANSWER, REPORT, README = "answer.txt", "report.html", "README.md"
METHOD, METADATA = "method.json", "ro-crate-metadata.json"

_LITERAL = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
_HASHED = re.compile(r"(pages|calls|prompts|texts)/([0-9a-f]{64})\.\w+")


class TextsOfPackage(Texts):
    """The texts of the pages that a package has. What is quoted is as recorded: whether it stands
    there, the check of the quotes says."""

    def has(self, document: str, page: int | None) -> bool:
        key = text_value(self._store, v.page_of(document, page), v.tg("textHash"))
        return bool(key) and self._librarian.has(key)

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
    """The files of a package, read."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """``ValueError``, ``KeyError`` or ``TypeError`` where they are odd."""
        self.files = files
        self.about = About.from_json(files[ABOUT])
        self.record = read_quads(files[RECORD])
        self.store: Store = OxigraphStore.memory(self.record)
        self.store.extend(read_quads(files.get(KNOWLEDGE, b"")))
        named = ((_HASHED.fullmatch(name), data) for name, data in files.items())
        kept = {found.group(2): data for found, data in named if found}
        if ANSWER in files:
            kept[self._answer_key] = files[ANSWER]
        self.librarian: Librarian = LibrarianInMemory(kept)
        self.texts = TextsOfPackage(self.store, self.librarian)

    @property
    def _answer_key(self) -> str:
        return self.said.one(v.answer_text_iri(self.about.uuid), "contentHash")

    @cached_property
    def entries(self) -> list[ChainEntry]:
        """Those of the chain that the package has, in their order."""
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
    def said(self) -> BundleReader:
        return BundleReader(self.store.match(None, None, None, NamedNode(self.about.bundle)))

    def drawn(self) -> dict[str, bytes]:
        """The files that are drawn from the others."""
        trace, about = self.trace, self.about
        drawn = {
            METHOD: method(trace),
            README: read_me(trace, about),
            REPORT: self._report(trace),
        }
        others = {name: data for name, data in self.files.items() if name not in _DRAWN}
        drawn[METADATA] = metadata(trace, about, {**others, **drawn})
        return drawn

    def _report(self, trace: Trace) -> bytes:
        about, read = self.about, self.librarian.get_text
        pages = partial(self._page, _quotes(trace))
        drawn = replace(trace, report=None)
        store, request = self.store, self._request
        html = report_of(store, drawn, about.bundle, about.catalogue, read, pages, request)
        return html.encode("utf-8", "surrogatepass")

    def _request(self, call: TraceCall) -> tuple[str, str]:
        if not self.about.texts:
            return "", "left out"
        return read_request(self.store, self.librarian.get_text, call)

    def _page(self, quotes: Quotes, document: str, page: int | None) -> str:
        """The page's text; of one that is not there what is quoted of it, at its place."""
        if self.texts.has(document, page):
            return self.texts.of_page(document, page)
        text = ""
        for start, quote in sorted(quotes[document, page]):
            text = text.ljust(start)[:start] + quote + text[start + len(quote) :]
        return text


Quotes = Mapping[tuple[str, int | None], set[tuple[int, str]]]
_DRAWN = (README, REPORT, METHOD, METADATA, MANIFEST)


def misnamed(files: Iterable[str], sums: Mapping[str, str]) -> Iterator[str]:
    """The files that are named by a SHA-256 which is not theirs."""
    for name in files:
        found = _HASHED.fullmatch(name)
        if found and found.group(2) != sums[name]:
            yield name


def _quotes(trace: Trace) -> Quotes:
    found: defaultdict[tuple[str, int | None], set[tuple[int, str]]] = defaultdict(set)
    for cited in (c for sentence in trace.sentences for c in sentence.citations):
        found[cited.document, cited.page].add((cited.start, cited.quote))
    return found


def trace_of(store: Store, librarian: Librarian, about: About, texts: Texts) -> Trace:
    """The session as its own bundle tells it: nothing that was said of it later."""
    quads = sorted(store.match(None, None, None, NamedNode(about.bundle)), key=str)
    collection = about.catalogue.removeprefix(v.collection_iri(""))
    return TraceReader(store, librarian.get_text, about.session, quads, collection, texts).read()


def written(quads: Iterable[Quad]) -> bytes:
    """The quads as N-Quads in one order: the same quads, the same bytes."""
    return b"".join(sorted(set(to_bytes(list(quads)).splitlines(keepends=True))))


def read_quads(data: bytes) -> list[Quad]:
    """What ``written`` wrote. ``ValueError`` where it is anything else.

    A triple term within a triple term, which tgraph never writes, is refused before it is parsed:
    a thousand of them in each other are too deep for a parser.
    """
    if any(_LITERAL.sub(b"", line).count(b"<<") > 1 for line in data.split(b"\n")):
        raise ValueError("triple terms in triple terms")
    try:
        quads = list(parse(data, RdfFormat.N_QUADS))
    except SyntaxError as error:
        raise ValueError(f"no N-Quads: {error}") from error
    if written(quads) != data:
        raise ValueError("quads that are not written in their order")
    return quads


# --- what a session refers to ---


def content_keys(quads: Iterable[Quad], bundle: str) -> Iterator[str]:
    """The hashes of the texts that a session's own bundle refers to."""
    for quad in quads:
        if quad.graph_name == NamedNode(bundle) and quad.predicate == v.tg("contentHash"):
            yield term_text(quad.object)


def accessions_of(store: Store, quads: Iterable[Quad]) -> Iterator[Quad]:
    """Under which paths the documents among the quads were taken in."""
    documents = {
        quad.subject
        for quad in quads
        if quad.predicate == v.RDF_TYPE and quad.object == v.tg("Document")
    }
    for document in documents:
        found = store.match(None, v.prov("specializationOf"), document, v.SOURCE_GRAPH)
        for accession in [quad.subject for quad in found]:
            yield from store.match(accession, None, None, v.SOURCE_GRAPH)


def label_quads(store: Store, quads: Iterable[Quad]) -> Iterator[Quad]:
    """What knowledge calls the things that the quads name."""
    terms: set[object] = set()
    for quad in quads:
        terms |= {quad.subject, quad.object}
        if isinstance(quad.object, Triple):
            terms |= {*quad.object}
    for term in terms:
        if isinstance(term, NamedNode):
            yield from store.match(term, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)


def chain_quads(store: Store, catalogue: str, bundle: str, erased: Iterable[str]) -> list[Quad]:
    """The entry of the bundle, and those after it up to those of the erasures that changed it, and
    on to the first signature that covers them all."""
    entries = read_entries(store, catalogue)
    wanted = {bundle, *erased}
    held = [entry.sequence for entry in entries if entry.subject in wanted]
    signed = [entry.sequence for entry in entries if entry.kind == "signature"]
    last = next((number for number in signed if number > max(held)), max(held))
    own = next(entry.sequence for entry in entries if entry.subject == bundle)
    return [quad for entry in entries if own <= entry.sequence <= last for quad in entry.quads]


def erasure_bundles(store: Store, bundle: str) -> list[str]:
    """The bundles of the erasures that rewrote the bundle or removed a text that it refers to."""
    done = list(store.match(None, v.tg("rewrote"), NamedNode(bundle), None))
    for quad in store.match(None, v.tg("contentHash"), None, NamedNode(bundle)):
        assert isinstance(quad.object, Literal)
        done += store.match(None, v.tg("removedText"), quad.object, None)
    return sorted({term_text(quad.graph_name) for quad in done})
