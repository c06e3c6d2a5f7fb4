"""Evidence packaging of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.session_reader import SessionReader, WrittenSession
from tgraph.errors import StoreError, TgraphError
from tgraph.explain.integrity.entries import term_text
from tgraph.explain.integrity.erasures import check_whole
from tgraph.explain.integrity.texts import check_quotes
from tgraph.explain.trace.record_quads import report_quads, session_quads
from tgraph.extensions.evidence.crates.about import About
from tgraph.extensions.evidence.crates.container import format_manifest, pack_files
from tgraph.extensions.evidence.crates.contents import (
    ABOUT,
    ANSWER,
    KNOWLEDGE,
    READS,
    RECORD,
    PackageContents,
    accessions_of,
    chain_quads,
    content_keys,
    erasure_bundles,
    label_quads,
    serialise_quads,
    trace_of,
)
from tgraph.extensions.evidence.crates.reads import NotingLibrarian, NotingStore
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, text_value
from tgraph.librarian import Librarian
from tgraph.rendering import format_count
from tgraph.store.base import Store
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.sessions import SessionSummary
    from tgraph.extensions.evidence.crates.replay import WhatWasRead


@dataclass(frozen=True, slots=True)
class EvidencePackage:
    """A finished package: its bytes, file count, manifest SHA-256, reason against
    self-contained replay (empty if replayable), and reader notes."""

    data: bytes
    files: int
    manifest: str
    no_replay: str
    notes: tuple[str, ...] = ()


def make_package(
    opened: OpenCollection, session: SessionSummary, *, texts: bool = True
) -> EvidencePackage:
    """Return a session's evidence package; identical sessions yield identical bytes.

    Without ``texts``, pages and calls are included only as hashes. Raise ``EvidenceError`` if a
    recorded quote differs from its stored text."""
    store, librarian = opened.read(), opened.librarian
    files, no_replay = _collect_files(opened, session, store, librarian, texts=texts)
    description = About(session.explain_id, opened.catalogue, __version__, texts, no_replay)
    files = _add_derived_files(files, description)
    if not no_replay and (no_replay := _replay_problem(files)):
        description = replace(description, no_replay=no_replay)
        files = _add_derived_files(
            {name: data for name, data in files.items() if name != READS}, description
        )
    key = sha256(format_manifest(files)).hexdigest()
    return EvidencePackage(
        pack_files(files), len(files) + 1, key, no_replay, tuple(_session_notes(session))
    )


def write_package(sessions: SessionReader, session: str, *, texts: bool) -> WrittenSession:
    """Return the package of a session as a format of ``tgraph export``."""
    package = make_package(sessions.opened, sessions.find(session), texts=texts)
    notes = [f"SHA-256 of its manifest: {package.manifest}"]
    if package.no_replay:
        notes.append(f"Note: it can't be replayed from itself. {package.no_replay}")
    notes += (f"Note: {note}" for note in package.notes)
    summary = f"{format_count(package.files, 'file')}, {len(package.data) / 1000:,.0f} kB"
    return WrittenSession(package.data, summary, tuple(notes))


def _add_derived_files(files: Mapping[str, bytes], about: About) -> dict[str, bytes]:
    """Return package files plus derived files."""
    source_files = {**files, ABOUT: about.to_json()}
    return {**source_files, **PackageContents(source_files).derive_files()}


def _replay_problem(files: Mapping[str, bytes]) -> str:
    """Return a reason why package replay fails; empty if replay succeeds."""
    from tgraph.extensions.evidence.crates.verify import replay_package

    comparison = replay_package(PackageContents(files))
    if comparison.is_same:
        return ""
    first = comparison.differences[0].subject if comparison.differences else ""
    return comparison.problem or f"A replay from the package alone differs at {first}."


def _session_notes(session: SessionSummary) -> Iterator[str]:
    if session.questioned:
        yield (
            f"This answer does not stand since {session.questioned}. The package is of the session"
            " alone, and does not say so."
        )


def _collect_files(
    opened: OpenCollection,
    session: SessionSummary,
    store: Store,
    librarian: Librarian,
    *,
    texts: bool,
) -> tuple[dict[str, bytes], str]:
    """Return package files taken from the graph, and a reason against replay."""
    bundle = session.bundle
    record = session_quads(store, bundle)
    report_statements = report_quads(store, bundle, session.explain_id)
    check_quotes(store, report_statements, Texts(store, librarian))
    record += accessions_of(store, record)
    erased = erasure_bundles(store, bundle)
    for graph in erased:
        record += store.match(None, None, None, NamedNode(graph))
    record += chain_quads(store, opened.catalogue, bundle, erased)
    source_quads, contents = _read_for_report(store, librarian, session, opened.catalogue)
    read, no_replay = _record_replay(opened, session)
    quads = {*source_quads, *label_quads(store, record)}
    files = _name_texts(
        _available_contents(librarian, [*content_keys(record, bundle), *_prompt_keys(record)]),
        record,
    )
    if texts:
        files |= _name_texts(
            {**contents, **_available_contents(librarian, _page_keys(store, report_statements))},
            record,
        )
    else:
        files = {name: data for name, data in files.items() if not name.startswith("calls/")}
        no_replay = "The package was made without texts, which a replay needs."
    if texts and read is not None:
        quads |= read.quads
        files |= _name_texts(read.texts, [*record, *quads])
        files[READS] = read.reads.to_json()
    files[RECORD], files[KNOWLEDGE] = serialise_quads(record), serialise_quads(quads - set(record))
    return files, no_replay


def _record_replay(
    opened: OpenCollection, session: SessionSummary
) -> tuple[WhatWasRead | None, str]:
    """Return data read by a session replay, or a reason against replay."""
    from tgraph.extensions.evidence.crates.replay import NotedReplay

    try:
        check_whole(opened.read(), session.bundle, session.explain_id)
        read = NotedReplay.from_summary(opened, session).read()
    except TgraphError as error:
        return None, error.message
    if not read.replay.is_same:
        why = read.replay.problem or "A replay with the graph gives a different record."
        return None, why
    return read, ""


def _read_for_report(
    store: Store, librarian: Librarian, session: SessionSummary, catalogue: str
) -> tuple[set[Quad], Mapping[str, bytes]]:
    """Return quads and texts read during session report rendering."""
    noted, texts = NotingStore(store), NotingLibrarian(librarian)
    description = About(session.explain_id, catalogue, __version__, texts=True)
    trace = trace_of(noted, texts, description, Texts(store, librarian))
    from tgraph.explain.trace.derivation import DisplayNames
    from tgraph.extensions.evidence.picture import build_picture

    drawn = report_quads(store, session.bundle, trace.explain_id)
    build_picture(drawn, DisplayNames(noted, texts.get_text).find_label)
    return noted.quads, texts.given


def _prompt_keys(record: Iterable[Quad]) -> Iterator[str]:
    for quad in record:
        subject = term_text(quad.subject)
        if quad.predicate == v.tg("contentHash") and subject.startswith(f"{v.URN}prompt:"):
            yield term_text(quad.object)


def _page_keys(store: Store, told: Iterable[Quad]) -> Iterator[str]:
    """Yield hashes of pages containing answer evidence and citations."""
    sources = {term_text(q.object) for q in told if q.predicate == v.oa("hasSource")}
    origins = {term_text(q.object) for q in told if q.predicate == v.prov("wasDerivedFrom")}
    chunks = [origin for origin in origins if origin.startswith(f"{v.URN}chunk:")]
    sources |= {v.page_of(document_of_chunk(chunk), page_of_chunk(chunk)) for chunk in chunks}
    for page in sorted(sources):
        for kept in ("textHash", "layoutHash"):
            if key := text_value(store, page, v.tg(kept)):
                yield key


def _available_contents(librarian: Librarian, keys: Iterable[str]) -> dict[str, bytes]:
    """Return available contents by key; erased contents are missing."""
    contents: dict[str, bytes] = {}
    for key in keys:
        try:
            contents[key] = librarian.read_content(key)
        except StoreError:
            continue
    return contents


def _name_texts(kept: Mapping[str, bytes], record: Iterable[Quad]) -> dict[str, bytes]:
    """Return texts by package file name, according to the record."""
    names: dict[str, str] = {}
    for quad in record:
        if quad.predicate == v.tg("textHash"):
            names[term_text(quad.object)] = "pages/{}.txt"
        elif quad.predicate == v.tg("contentHash"):
            names.setdefault(term_text(quad.object), _name_of(term_text(quad.subject)))
    return {names.get(key, _TEXT).format(key): data for key, data in kept.items()}


_TEXT = "texts/{}.txt"
_NAMES = {
    v.session_part_iri("call", ""): "calls/{}.json",
    f"{v.URN}prompt:": "prompts/{}.md",
    v.answer_text_iri(""): ANSWER,
}


def _name_of(subject: str) -> str:
    patterns = (name for prefix, name in _NAMES.items() if subject.startswith(prefix))
    return next(patterns, _TEXT)
