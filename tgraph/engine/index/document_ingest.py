"""Document ingestion: loading and recording new or changed files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.errors import IngestError
from tgraph.explain.integrity.erasures import erasure_of_document
from tgraph.index.sources import (
    document_of_accession,
    evidence_of_document,
    is_retracted,
    latest_accession,
    source_value,
    text_value,
)
from tgraph.index.touched import Touched
from tgraph.ingest.base import FileLimits
from tgraph.ingest.blocks import pack_layout
from tgraph.ingest.files import FoundFile, SourceFile, Unread, load
from tgraph.ingest.parser_process import closing_parser
from tgraph.model import Document
from tgraph.record.sources import accession_quads, document_quads
from tgraph.settings import Settings
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """Content that is new under its path.

    ``document`` is None where the content is known, under another path or from before;
    ``supersedes`` tells whether ``previous`` still stood."""

    path: str
    iri: str
    document: Document | None
    content: bytes
    previous: str | None
    supersedes: bool
    accession: str


@dataclass(slots=True)
class IngestedFiles:
    """Ingestion results by path, and the knowledge to be derived again."""

    taken: list[IngestedFile] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    retracted: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    failed: list[IngestError] = field(default_factory=list)
    touched: Touched = field(default_factory=Touched)


def ingest_files(
    context: IndexContext, files: Iterable[FoundFile], *, reinstate: bool = False
) -> IngestedFiles:
    """Load new or changed files; report unreadable files without failing.

    Retracted documents stay out unless ``reinstate`` is true, erased documents in any case."""
    file_list = list(files)
    intakes = IngestedFiles()
    with closing_parser():
        for index, file in enumerate(file_list):
            context.report_progress("Reading", index, len(file_list), file.name)
            if not isinstance(file, Unread):
                _take_file(context, intakes, file, reinstate)
            elif file.skipped:
                context.message(f"Skipped {file.name}: {file.reason}")
            else:
                intakes.failed.append(IngestError(file.name, file.reason))
    context.report_progress("Reading", len(file_list), len(file_list))
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
    context: IndexContext, intakes: IngestedFiles, file: SourceFile, reinstate: bool
) -> None:
    limits = file_limits(context.settings)
    try:
        content = file.read(limits)
        read = partial(load, content, file.name, limits)
        take_content(context, intakes, file.name, content, read, reinstate=reinstate)
    except IngestError as error:
        intakes.failed.append(error)


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
    elif not reinstate and is_retracted(context.copy.store, intake.iri):
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


def _create_intake(
    store: Store, name: str, content: bytes, read: Callable[[], Document]
) -> IngestedFile | None:
    digest = sha256(content).hexdigest()
    iri = v.document_iri(digest)
    standing = latest_accession(store, name)
    if standing is not None and standing[1] == iri:
        return None
    is_known = source_value(store, iri, v.tg("contentHash")) is not None
    document = None if is_known else read()
    previous = standing[0] if standing else _withdrawn_accession(store, name)
    accession = v.accession_iri(name, digest, previous)
    return IngestedFile(name, iri, document, content, previous, standing is not None, accession)


def _withdrawn_accession(store: Store, path: str) -> str | None:
    """Return the last accession of a fully withdrawn path: the accession not revised by
    another."""
    quads = store.match(None, v.tg("path"), Literal(path), v.SOURCE_GRAPH)
    for quad in quads:
        revised = store.match(None, v.prov("wasRevisionOf"), quad.subject, v.SOURCE_GRAPH)
        if isinstance(quad.subject, NamedNode) and next(revised, None) is None:
            return quad.subject.value
    return None


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
        context.copy.add(document_quads(intake.document, bytes_hash, texts, layouts))
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
