"""Document ingestion: loading and recording new or changed files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from pyoxigraph import Triple

from tgraph import vocabulary as v
from tgraph.engine.index.indexed_paths import IndexedPath, IndexedPaths, Renaming
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.stale_readings import StaleReading, find_stale_readings
from tgraph.errors import IngestError, StoreError
from tgraph.explain.integrity.erasures import erasure_of_document
from tgraph.index.authority import read_authorities
from tgraph.index.sources import (
    document_of_accession,
    documents_of_bytes,
    evidence_of_document,
    has_bytes,
    is_retracted,
    last_accession,
    latest_accession,
    source_value,
    text_value,
    was_accession_retracted,
)
from tgraph.index.touched import Touched
from tgraph.ingest.base import FileLimits
from tgraph.ingest.blocks import pack_layout
from tgraph.ingest.document_dates import read_document_date
from tgraph.ingest.files import FoundFile, SourceFile, Unread, load, reading_version
from tgraph.ingest.parser_process import closing_parser
from tgraph.librarian import Librarian
from tgraph.model import Document
from tgraph.record.sources import accession_quads, document_quads
from tgraph.settings import Settings
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """Content that is new under its path.

    ``document`` is None where the content is known, under another path or from before;
    ``supersedes`` tells whether ``previous`` still stood. ``reread`` is the document of an earlier
    reading of the same bytes."""

    path: str
    iri: str
    document: Document | None
    content: bytes
    previous: str | None
    supersedes: bool
    accession: str
    reread: str | None = None


@dataclass(slots=True)
class IngestedFiles:
    """Ingestion results by path, and the knowledge to be derived again."""

    taken: list[IngestedFile] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    renamed: list[Renaming] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    failed: list[IngestError] = field(default_factory=list)
    touched: Touched = field(default_factory=Touched)


_GRAPHS = (".ttl", ".turtle", ".trig", ".nt", ".nq", ".rdf", ".owl", ".jsonld")


def ingest_files(
    context: IndexContext,
    files: Sequence[FoundFile],
    indexed_paths: IndexedPaths,
    *,
    reinstate: bool = False,
) -> IngestedFiles:
    """Load new or changed files; report unreadable files without failing.

    Retracted documents stay out unless ``reinstate`` is true, erased documents in any case."""
    intakes = IngestedFiles()
    with closing_parser():
        for index, file in enumerate(files):
            context.report_progress("Reading", index, len(files), file.name)
            if not isinstance(file, Unread):
                _take_file(context, intakes, file, indexed_paths, reinstate)
            elif file.skipped:
                context.message(f"Skipped {file.name}: {file.reason}")
            else:
                intakes.failed.append(IngestError(file.name, file.reason))
    context.report_progress("Reading", len(files), len(files))
    graphs = [file.name for file in files if file.name.lower().endswith(_GRAPHS)]
    if graphs:
        further = f" and {len(graphs) - 1:,} more" if len(graphs) > 1 else ""
        context.message(
            f"Read as text, though RDF by name: {graphs[0]}{further}."
            f" `tgraph import {graphs[0]}` reads the statements of a graph."
        )
    return intakes


def file_limits(settings: Settings) -> FileLimits:
    """Return document limits with values from the settings."""
    allowed = settings.ingest
    return FileLimits(
        memory=allowed.memory_mb << 20,
        seconds=allowed.seconds,
        output_bytes=allowed.output_mb * 1_000_000,
        recognise_text=allowed.ocr,
    )


def _take_file(
    context: IndexContext,
    intakes: IngestedFiles,
    file: SourceFile,
    indexed_paths: IndexedPaths,
    reinstate: bool,
) -> None:
    limits = file_limits(context.settings)
    try:
        content = file.read(limits)
    except IngestError as error:
        intakes.failed.append(error)
        return
    path = file.name if file.path is None else indexed_paths.find_recorded_path(file.name)
    is_excluded = not reinstate and _is_path_retracted(context.copy.store, path, content)
    before = None if is_excluded else indexed_paths.take_renamed(path, content)
    if before is not None:
        _record_renaming(context, before, path)
        intakes.renamed.append(Renaming(before.path, path))
        return
    try:
        read = partial(load, content, file.name, limits)
        take_content(context, intakes, path, content, read, reinstate=reinstate)
    except IngestError as error:
        intakes.failed.append(error)


def _record_renaming(context: IndexContext, before: IndexedPath, path: str) -> None:
    """Record that the content of an absent path has another path now; nothing is derived anew.

    An authority belongs to a path, so that a message names one that the new path does not have."""
    digest = before.document.removeprefix(v.document_iri(""))
    authorities = read_authorities(context.copy.store)
    authority = authorities.weigh_path(before.path)
    if authority != authorities.weigh_path(path):
        context.message(
            f"{path} has not the authority of {authority:g} that {before.path} had; "
            "`tgraph documents weigh` sets an authority."
        )
    context.copy.add(
        accession_quads(
            v.accession_iri(path, digest, before.accession),
            before.document,
            path,
            context.run,
            context.clock(),
            before.accession,
        )
    )


def take_content(
    context: IndexContext,
    intakes: IngestedFiles,
    name: str,
    content: bytes,
    read: Callable[[], Document],
    *,
    reinstate: bool = False,
) -> IngestedFile | None:
    """Record content under a path; return None if already standing or to stay out.

    New content is loaded with ``read``, which may raise ``IngestError``."""
    intake = _create_intake(context.copy.store, name, content, read)
    if intake is None:
        intakes.unchanged.append(name)
    elif erasure_of_document(context.copy.store, intake.iri) is not None:
        intakes.erased.append(name)
        context.message(
            f"{name} was erased and is never indexed again; a changed file would be indexed."
        )
    elif not reinstate and (
        is_retracted(context.copy.store, intake.iri)
        or _is_path_retracted(context.copy.store, name, content)
    ):
        intakes.retracted.append(name)
        context.message(
            f"{name} was retracted and is skipped; `tgraph index --reinstate` includes the"
            " document again."
        )
    else:
        _record_intake(context, intake, intakes.touched)
        intakes.taken.append(intake)
        return intake
    return None


def reread_documents(context: IndexContext, paths: Sequence[str]) -> IngestedFiles:
    """Read standing documents anew that an earlier version read otherwise: all, or those at or
    below the paths, with their copies at other paths.

    The kept bytes are read. The new text belongs to a document of its own, which supersedes the
    earlier one under its path: what was answered from the earlier text stays exact."""
    store, intakes = context.copy.store, IngestedFiles()
    limits = file_limits(context.settings)
    stale = choose_stale_readings(store, paths)
    with closing_parser():
        for number, reading in enumerate(stale):
            context.report_progress("Reading", number, len(stale), reading.path)
            try:
                intake = _reread_document(context, reading, limits)
            except (IngestError, StoreError) as error:
                intakes.failed.append(IngestError(reading.path, error.message, error.remedy))
            else:
                _record_intake(context, intake, intakes.touched)
                intakes.taken.append(intake)
    context.report_progress("Reading", len(stale), len(stale))
    return intakes


def choose_stale_readings(store: Store, paths: Sequence[str]) -> list[StaleReading]:
    """Return what ``reread_documents`` reads anew."""
    stale = find_stale_readings(store)
    chosen = {s.document for s in stale if not paths or _is_below(s.path, paths)}
    return [reading for reading in stale if reading.document in chosen]


def load_anew(
    store: Store, librarian: Librarian, reading: StaleReading, limits: FileLimits
) -> tuple[Document, bytes]:
    """Return the document that the kept bytes give today, with these."""
    key = text_value(store, reading.document, v.tg("contentHash"))
    content = librarian.read_content(key)
    document = load(content, reading.path, limits)
    digest = v.reread_digest(key, reading_version(document.media_type))
    return replace(document, sha256=digest), content


def _is_below(path: str, places: Sequence[str]) -> bool:
    here = Path(path).resolve()
    return any(here.is_relative_to(Path(place).resolve()) for place in places)


def _reread_document(
    context: IndexContext, reading: StaleReading, limits: FileLimits
) -> IngestedFile:
    store = context.copy.store
    document, content = load_anew(store, context.librarian, reading, limits)
    accession = v.accession_iri(reading.path, document.sha256, reading.accession)
    is_known = source_value(store, document.iri, v.tg("contentHash")) is not None  # of a copy
    return IngestedFile(
        reading.path,
        document.iri,
        None if is_known else document,
        content,
        reading.accession,
        supersedes=True,
        accession=accession,
        reread=reading.document,
    )


def _create_intake(
    store: Store, name: str, content: bytes, read: Callable[[], Document]
) -> IngestedFile | None:
    digest = sha256(content).hexdigest()
    iri = _latest_reading(store, digest)
    standing = latest_accession(store, name)
    if standing is not None and has_bytes(store, standing[1], digest):
        return None
    is_known = source_value(store, iri, v.tg("contentHash")) is not None
    document = None if is_known else read()
    previous = standing[0] if standing else last_accession(store, name)
    accession = v.accession_iri(name, iri.removeprefix(v.document_iri("")), previous)
    return IngestedFile(name, iri, document, content, previous, standing is not None, accession)


def _latest_reading(store: Store, digest: str) -> str:
    """Return the document of the latest reading of the bytes with a hash, or the document that the
    bytes will be."""
    return max(
        documents_of_bytes(store, digest),
        key=lambda document: int(text_value(store, document, v.tg("readingVersion")) or 0),
        default=v.document_iri(digest),
    )


def _is_path_retracted(store: Store, path: str, content: bytes) -> bool:
    """Return whether this content was retracted at the path, where it was the newest."""
    last = last_accession(store, path)
    return (
        last is not None
        and has_bytes(store, document_of_accession(store, last), sha256(content).hexdigest())
        and was_accession_retracted(store, last)
    )


def _record_intake(context: IndexContext, intake: IngestedFile, touched: Touched) -> None:
    store = context.copy.store
    if intake.previous:
        touch_document(store, document_of_accession(store, intake.previous), touched)
    if intake.document is not None:
        bytes_hash = context.record.keep_content(intake.content)
        keep = context.record.keep_content
        pages = intake.document.pages
        texts = [keep(page.text) for page in pages]
        layouts = [keep(layout) if layout else "" for layout in map(pack_layout, pages)]
        dated = read_document_date(intake.document, context.settings.ingest.date_order)
        context.copy.add(
            document_quads(intake.document, bytes_hash, texts, layouts, dated, intake.reread)
        )
        if dated and dated.note:
            context.message(f"{intake.path}: {dated.note}")
    context.copy.add(
        accession_quads(
            intake.accession,
            intake.iri,
            intake.path,
            context.run,
            context.clock(),
            intake.previous,
            supersedes=intake.supersedes,
        )
    )
    touch_document(store, intake.iri, touched)


def touch_document(store: Store, document: str, touched: Touched) -> None:
    """Mark everything supported by the document's evidence for new derivation."""
    for evidence in evidence_of_document(store, document):
        if entity := text_value(store, evidence, v.tg("entity")):
            touched.entities.add(entity)
        if edge := text_value(store, evidence, v.tg("edge")):
            triple = source_value(store, edge, v.RDF_REIFIES)
            assert isinstance(triple, Triple)
            touched.edges[edge] = triple
        if claim := text_value(store, evidence, v.tg("claim")):
            touched.claims.add(claim)
