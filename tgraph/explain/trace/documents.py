"""Graph documents: listing documents, finding documents, and reading extractions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError, nearest_names
from tgraph.explain.as_of.names import NamesAsOf
from tgraph.explain.as_of.ontology import OntologyAsOf
from tgraph.explain.integrity.erasures import Erasure, erasure_of_document
from tgraph.index.authority import FULL, read_authorities
from tgraph.index.evidence import recorded_origin, recorded_place
from tgraph.index.sources import Texts, derived_items, is_mark, range_of_chunk, text_value
from tgraph.librarian import Librarian
from tgraph.model import ReadingLoss, ReadingReport, SegmentKind, UnitCount
from tgraph.rendering import brief_repr, one_line
from tgraph.store.base import Store, select_rows, text_of

_SHORTEST = 4
_SHOWN = 5
_COLUMNS = ("document", "title", "path", "type", "taken")


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """A document listed under a single path.

    ``standing`` is False after supersession at the path or retraction; ``authority`` is the
    document's assigned weight, 1 by default. ``losses`` counts what of the file isn't in the
    stored text, ``warnings`` the warnings of its reading report. ``date`` is the document's date
    as stated, ``calendar_date`` the ISO date that was understood, and ``date_note`` tells what is
    doubtful or not understood."""

    document: str
    title: str
    path: str
    media_type: str
    taken: str
    standing: bool
    authority: float = FULL
    losses: int = 0
    warnings: int = 0
    date: str = ""
    calendar_date: str = ""
    date_note: str = ""


def list_documents(store: Store) -> list[DocumentSummary]:
    """Return every document under every ingested path, standing documents first."""
    authorities = read_authorities(store)
    losses, warnings = _count_by_document(store)
    summaries = [
        DocumentSummary(
            document,
            title,
            path,
            media_type,
            ingest_time,
            row["ended"] is None,
            authorities.weigh_path(path),
            losses[document],
            warnings[document],
            *(text_of(row[name]) for name in ("date", "calendar", "note")),
        )
        for row in select_rows(store, "trace/documents")
        for document, title, path, media_type, ingest_time in [[text_of(row[n]) for n in _COLUMNS]]
    ]
    return sorted(summaries, key=lambda d: (not d.standing, d.path, d.taken, d.document))


def _count_by_document(store: Store) -> tuple[Counter[str], Counter[str]]:
    """Return the numbers of losses and of warnings of each document's reading report."""
    losses: Counter[str] = Counter()
    for quad in store.match(None, v.tg("lossCount"), None, v.SOURCE_GRAPH):
        digest = text_of(quad.subject).split(":")[-2]
        losses[v.document_iri(digest)] += int(text_of(quad.object))
    warnings = store.match(None, v.tg("readingWarning"), None, v.SOURCE_GRAPH)
    return losses, Counter(text_of(quad.subject) for quad in warnings)


def find_document(store: Store, name: str) -> DocumentSummary:
    """Return a document by IRI, content hash, path, title, or an unambiguous beginning or end.

    Standing documents precede superseded documents. Raise ``UsageError`` if none or several
    match."""
    return find_accessions(store, name)[0]


def find_accessions(store: Store, name: str) -> list[DocumentSummary]:
    """Return the accessions of one document that a name means: one for a path, all for an IRI, a
    content hash or a title. Order and errors are as in ``find_document``.

    Of a path where several contents stood, and none stands, the newest is meant."""
    documents = list_documents(store)
    for matches in _document_matchers(name):
        for is_standing in (True, False):
            accessions = [d for d in documents if d.standing is is_standing and matches(d)]
            if not is_standing and len({d.path for d in accessions}) == 1:
                accessions = [max(accessions, key=lambda d: v.in_time(d.taken))]
            candidates = _distinct_documents(accessions)
            if len(candidates) == 1:
                return accessions
            if candidates:
                raise UsageError(
                    f"{name!r} could be any of {len(candidates)} documents"
                    f" ({name_some([d.path for d in candidates])}).",
                    "Give a longer part of the path.",
                )
    raise _unknown_document_error(store, name, documents)


def name_some(paths: Sequence[str]) -> str:
    """Return the first paths of a list as text."""
    return ", ".join(paths[:_SHOWN]) + (", ..." if len(paths) > _SHOWN else "")


def _unknown_document_error(
    store: Store, name: str, documents: list[DocumentSummary]
) -> UsageError:
    """Return an error for unknown document names; an erasure may have removed document text."""
    erasure = _erasure_of_file(store, name)
    if erasure is not None:
        return UsageError(f"{name!r} {_erasure_text(erasure)}.", f"It is {erasure.document}.")
    paths = list(dict.fromkeys(d.path for d in documents if not is_mark(d.path)))
    ends = [path.rpartition("/")[2] for path in paths]
    names = [
        path if "/" in name or ends.count(end) > 1 else end
        for path, end in zip(paths, ends, strict=True)
    ]
    remedies = [nearest_names(name, names, most=_SHOWN)]
    for document in dict.fromkeys(d.document for d in documents if is_mark(d.path)):
        if (erasure := erasure_of_document(store, document)) is not None:
            remedies.append(f"{document} {_erasure_text(erasure)}, with its name.")
    remedy = " ".join(filter(None, remedies[: 1 + _SHOWN]))
    return UnknownNameError(
        f"There is no document {name!r}.", remedy or "Nothing has been indexed yet."
    )


def _erasure_of_file(store: Store, name: str) -> Erasure | None:
    """Return the erasure record of an existing file's content."""
    try:
        with Path(name).open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return None
    return erasure_of_document(store, v.document_iri(digest))


def _erasure_text(erasure: Erasure) -> str:
    return f"was erased on {erasure.time[:10]} ({one_line(erasure.reason)})"


def _document_matchers(name: str) -> list[Callable[[DocumentSummary], bool]]:
    """Return predicates matching a name against documents, strictest first."""
    path = os.path.normpath(name)
    digest = name.removeprefix(v.document_iri("")).lower()
    folded = name.casefold()
    ways: list[Callable[[DocumentSummary], bool]] = [
        lambda d: d.document == name,
        lambda d: d.path == name or os.path.normpath(d.path) == path,
        lambda d: os.path.abspath(d.path) == os.path.abspath(name),  # noqa: PTH100
        lambda d: d.path.endswith(f"/{path}"),
        lambda d: d.title.casefold() == folded,
    ]
    if len(digest) >= _SHORTEST:
        ways.append(lambda d: d.document.removeprefix(v.document_iri("")).startswith(digest))
    if folded:
        ways.append(lambda d: d.path.rpartition("/")[2].casefold().startswith(folded))
        ways.append(lambda d: d.title.casefold().startswith(folded))
    return ways


def _distinct_documents(found: Iterable[DocumentSummary]) -> list[DocumentSummary]:
    by_content: dict[str, DocumentSummary] = {}
    for document in found:
        by_content.setdefault(document.document, document)
    return list(by_content.values())


@dataclass(frozen=True, slots=True)
class ExtractedEdge:
    """A statement in a chunk; ``quote`` is ``text[start:end]`` of the page.

    ``property`` is the label of the ontology property used in knowledge, ``outside`` the reason
    for fitting none. ``graph`` and ``sources`` are the origin stated by an imported graph."""

    edge: str
    subject: str
    subject_label: str
    predicate: str
    predicate_label: str
    object: str
    object_label: str
    evidence: str
    start: int
    end: int
    quote: str
    segment_kind: SegmentKind | None = None
    property: str = ""
    outside: str = ""
    graph: str = ""
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceClaim:
    """A claim that a chunk makes; ``quote`` is ``text[start:end]`` of the page.

    ``subject`` and ``object`` are the entities that the text names, before any merge; ``object`` is
    empty where the claim is about nobody else.
    """

    claim: str
    subject: str
    object: str
    type: str
    status: str
    description: str
    evidence: str
    start: int
    end: int
    quote: str
    segment_kind: SegmentKind | None = None


@dataclass(frozen=True, slots=True)
class SourceChunk:
    """A chunk and its extracted content."""

    chunk: str
    label: str
    start: int
    end: int
    tokens: int
    heading: str
    text: str
    entities: tuple[str, ...]
    edges: tuple[ExtractedEdge, ...]
    claims: tuple[SourceClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A document page; ``number`` is None for unpaged text."""

    page: str
    number: int | None
    characters: int
    chunks: tuple[SourceChunk, ...]


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A document with extracted contents."""

    document: DocumentSummary
    characters: int
    pages: tuple[SourcePage, ...]

    __repr__ = brief_repr


def read_source(store: Store, librarian: Librarian, name: str) -> SourceTree:
    """Return the source tree of a named document; raise the same errors as ``find_document``."""
    document = find_document(store, name)
    texts, names = Texts(store, librarian), NamesAsOf(store)
    pages = [
        SourcePage(
            page=page,
            number=number,
            characters=_read_number(store, page, "charLength"),
            chunks=tuple(
                _read_chunk(store, texts, names, document.document, number, chunk)
                for chunk in sorted(derived_items(store, page, "Chunk"), key=range_of_chunk)
            ),
        )
        for number, page in _list_pages(store, document.document)
    ]
    length = _read_number(store, document.document, "charLength")
    return SourceTree(document, length, tuple(pages))


def read_report(store: Store, document: str) -> ReadingReport | None:
    """Return the reading report of a document (an IRI); None if the document's reader made no
    report, as readers of earlier versions."""
    version = _read_number(store, document, "readingVersion")
    warnings = store.match(NamedNode(document), v.tg("readingWarning"), None, v.SOURCE_GRAPH)
    report = ReadingReport(
        text_value(store, document, v.tg("reader")),
        tuple(
            UnitCount(
                text_value(store, count, v.tg("countedUnit")),
                *(_read_number(store, count, f"units{part}") for part in _COUNTED),
            )
            for count in _derived_in_order(store, document, "UnitCount")
        ),
        tuple(
            ReadingLoss(
                text_value(store, loss, v.tg("lossKind")),
                _read_number(store, loss, "lossCount"),
                text_value(store, loss, v.tg("lossPlace")),
                text_value(store, loss, v.tg("lossReason")),
                text_value(store, loss, v.tg("isMarked")) == "true",
            )
            for loss in _derived_in_order(store, document, "ReadingLoss")
        ),
        tuple(sorted(text_of(quad.object) for quad in warnings)),
        version,
    )
    return report if report != ReadingReport(version=version) else None


_COUNTED = ("InFile", "InText", "LeftOut")


def _derived_in_order(store: Store, document: str, kind: str) -> list[str]:
    items = derived_items(store, document, kind)
    return sorted(items, key=lambda item: int(item.rpartition(":")[2]))


def source_text(store: Store, librarian: Librarian, name: str, page: int | None = None) -> str:
    """Return the stored text of a page, or of the whole document (pages joined without
    separator).

    Raise ``UsageError`` if the page does not exist."""
    document = find_document(store, name).document
    texts = Texts(store, librarian)
    numbers = [number for number, _ in _list_pages(store, document)]
    if page is None:
        return "".join(texts.of_page(document, number) for number in numbers)
    if page not in numbers:
        has = f"pages 1 to {len(numbers)}" if numbers != [None] else "no pages"
        raise UnknownNameError(f"The document has {has}, so there is no page {page}.")
    return texts.of_page(document, page)


def _list_pages(store: Store, document: str) -> list[tuple[int | None, str]]:
    page_iris = derived_items(store, document, "Page")
    pages = sorted((_read_number(store, page, "pageNumber"), page) for page in page_iris)
    return [*pages] or [(None, document)]


def _read_chunk(
    store: Store, texts: Texts, names: NamesAsOf, document: str, page: int | None, chunk: str
) -> SourceChunk:
    start, end = range_of_chunk(chunk)
    text = texts.of_page(document, page)
    evidence = [
        properties
        for item in derived_items(store, chunk, "Evidence")
        if "restates" not in (properties := _evidence_properties(store, item))
    ]
    edges = names.edges(sorted(item["edge"] for item in evidence if "edge" in item))
    quoted = partial(_read_quote, texts, store, chunk)
    ontology = OntologyAsOf(store)
    extracted_edges = [
        ExtractedEdge(
            edge=item["edge"],
            property=ontology.meaning(item["edge"]),
            outside=ontology.outside(item["edge"]),
            **recorded_origin(store, item["evidence"])._asdict(),
            **quoted(item) | edges[item["edge"]].named_terms,
        )
        for item in evidence
        if item.get("edge") in edges
    ]
    return SourceChunk(
        chunk=chunk,
        label=text_value(store, chunk, v.RDFS_LABEL),
        start=start,
        end=end,
        tokens=_read_number(store, chunk, "tokenCount"),
        heading=text_value(store, chunk, v.tg("heading")),
        text=text[start:end],
        entities=tuple(sorted({item["name"] for item in evidence if "entity" in item})),
        edges=tuple(sorted(extracted_edges, key=lambda e: (e.start, e.end, e.edge))),
        claims=tuple(
            sorted(
                (_create_claim(item, quoted(item)) for item in evidence if "claim" in item),
                key=lambda c: (c.start, c.end, c.claim),
            )
        ),
    )


def _create_claim(item: Mapping[str, str], quoted: Mapping[str, Any]) -> SourceClaim:
    return SourceClaim(
        claim=item["claim"],
        subject=item["subject"],
        object=item.get("object", ""),
        type=item["claimType"],
        status=item["claimStatus"],
        description=item["description"],
        **quoted,
    )


def _read_quote(texts: Texts, store: Store, chunk: str, item: Mapping[str, str]) -> dict[str, Any]:
    """Return evidence with its quote, position and segment kind."""
    _, start, end, recorded_quote = recorded_place(store, item["evidence"])
    return {
        "evidence": item["evidence"],
        "start": start,
        "end": end,
        "quote": texts.quote(chunk, start, end, recorded_quote),
        "segment_kind": texts.segment_kind(chunk, start, end),
    }


def _evidence_properties(store: Store, evidence: str) -> dict[str, str]:
    properties = {"evidence": evidence}
    for quad in store.match(NamedNode(evidence), None, None, v.SOURCE_GRAPH):
        if isinstance(quad.object, Literal | NamedNode):
            properties.setdefault(quad.predicate.value.removeprefix(v.TG), quad.object.value)
    return properties


def _read_number(store: Store, subject: str, name: str) -> int:
    return int(text_value(store, subject, v.tg(name)) or 0)
