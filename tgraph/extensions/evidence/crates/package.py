"""An evidence package of a session, made."""

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
from tgraph.extensions.evidence.crates.container import manifest, pack
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
    trace_of,
    written,
)
from tgraph.extensions.evidence.crates.reads import NotingLibrarian, NotingStore
from tgraph.index.sources import Texts, document_of_chunk, page_of_chunk, text_value
from tgraph.librarian import Librarian
from tgraph.rendering import many
from tgraph.store.base import Store
from tgraph.version import __version__

if TYPE_CHECKING:
    from tgraph.engine.open_collection import OpenCollection
    from tgraph.explain.trace.sessions import SessionSummary
    from tgraph.extensions.evidence.crates.replay import WhatWasRead


@dataclass(frozen=True, slots=True)
class EvidencePackage:
    """A package that was made: its bytes, how many files it has, the SHA-256 of its manifest, why
    it does not replay from itself (empty where it does), and what a reader should know of it."""

    data: bytes
    files: int
    manifest: str
    no_replay: str
    notes: tuple[str, ...] = ()


def make_package(
    opened: OpenCollection, session: SessionSummary, *, texts: bool = True
) -> EvidencePackage:
    """The package of the session: the same session, the same bytes. Without ``texts`` it has the
    hashes of pages and calls only.

    ``EvidenceError`` where a quote in the record is not what the stored text says.
    """
    store, librarian = opened.read(), opened.librarian
    files, no_replay = _files(opened, session, store, librarian, texts=texts)
    about = About(session.explain_id, opened.catalogue, __version__, texts, no_replay)
    files = _whole(files, about)
    if not no_replay and (no_replay := _difference(files)):
        about = replace(about, no_replay=no_replay)
        files = _whole({name: data for name, data in files.items() if name != READS}, about)
    key = sha256(manifest(files)).hexdigest()
    return EvidencePackage(pack(files), len(files) + 1, key, no_replay, tuple(_notes(session)))


def write_package(sessions: SessionReader, session: str, *, texts: bool) -> WrittenSession:
    """Return the package of a session as a format of ``tgraph export``."""
    package = make_package(sessions.opened, sessions.find(session), texts=texts)
    notes = [f"SHA-256 of its manifest: {package.manifest}"]
    if package.no_replay:
        notes.append(f"Note: it can't be replayed from itself. {package.no_replay}")
    notes += (f"Note: {note}" for note in package.notes)
    summary = f"{many(package.files, 'file')}, {len(package.data) / 1000:,.0f} kB"
    return WrittenSession(package.data, summary, tuple(notes))


def _whole(files: Mapping[str, bytes], about: About) -> dict[str, bytes]:
    """The files with what is drawn from them."""
    told = {**files, ABOUT: about.to_json()}
    return {**told, **PackageContents(told).drawn()}


def _difference(files: Mapping[str, bytes]) -> str:
    """Why the package does not replay by itself; empty where it does."""
    from tgraph.extensions.evidence.crates.verify import replayed

    found = replayed(PackageContents(files))
    if found.same:
        return ""
    first = found.differences[0].subject if found.differences else ""
    return found.problem or f"A replay from the package alone differs at {first}."


def _notes(session: SessionSummary) -> Iterator[str]:
    if session.questioned:
        yield (
            f"This answer does not stand since {session.questioned}. The package is of the session"
            " alone, and does not say so."
        )


def _files(
    opened: OpenCollection,
    session: SessionSummary,
    store: Store,
    librarian: Librarian,
    *,
    texts: bool,
) -> tuple[dict[str, bytes], str]:
    """The files that are taken from the graph, and why they can't be replayed."""
    bundle = session.bundle
    record = session_quads(store, bundle)
    told = report_quads(store, bundle, session.explain_id)
    check_quotes(store, told, Texts(store, librarian))
    record += accessions_of(store, record)
    erased = erasure_bundles(store, bundle)
    for graph in erased:
        record += store.match(None, None, None, NamedNode(graph))
    record += chain_quads(store, opened.catalogue, bundle, erased)
    seen, contents = _seen(store, librarian, session, opened.catalogue)
    read, no_replay = _replay(opened, session)
    quads = {*seen, *label_quads(store, record)}
    files = _named(
        _contents(librarian, [*content_keys(record, bundle), *_prompt_keys(record)]), record
    )
    if texts:
        files |= _named({**contents, **_contents(librarian, _page_keys(store, told))}, record)
    else:
        files = {name: data for name, data in files.items() if not name.startswith("calls/")}
        no_replay = "It was made without texts, which a replay reads."
    if texts and read is not None:
        quads |= read.quads
        files |= _named(read.texts, [*record, *quads])
        files[READS] = read.reads.to_json()
    files[RECORD], files[KNOWLEDGE] = written(record), written(quads - set(record))
    return files, no_replay


def _replay(opened: OpenCollection, session: SessionSummary) -> tuple[WhatWasRead | None, str]:
    """What a replay of the session reads, or why there can't be any."""
    from tgraph.extensions.evidence.crates.replay import NotedReplay

    try:
        check_whole(opened.read(), session.bundle, session.explain_id)
        read = NotedReplay.of(opened, session).read()
    except TgraphError as error:
        return None, error.message
    if not read.replay.same:
        why = read.replay.problem or "A replay beside its graph comes to another record."
        return None, why
    return read, ""


def _seen(
    store: Store, librarian: Librarian, session: SessionSummary, catalogue: str
) -> tuple[set[Quad], Mapping[str, bytes]]:
    """The quads and texts that the report of the session is drawn from."""
    noted, texts = NotingStore(store), NotingLibrarian(librarian)
    about = About(session.explain_id, catalogue, __version__, texts=True)
    trace = trace_of(noted, texts, about, Texts(store, librarian))
    from tgraph.explain.trace.derivation import DisplayNames
    from tgraph.extensions.evidence.picture import picture

    drawn = report_quads(store, session.bundle, trace.explain_id)
    picture(drawn, DisplayNames(noted, texts.get_text).known)
    return noted.quads, texts.given


def _prompt_keys(record: Iterable[Quad]) -> Iterator[str]:
    for quad in record:
        about = term_text(quad.subject)
        if quad.predicate == v.tg("contentHash") and about.startswith(f"{v.URN}prompt:"):
            yield term_text(quad.object)


def _page_keys(store: Store, told: Iterable[Quad]) -> Iterator[str]:
    """The hashes of the pages that the answer's evidence and citations are in."""
    sources = {term_text(q.object) for q in told if q.predicate == v.oa("hasSource")}
    origins = {term_text(q.object) for q in told if q.predicate == v.prov("wasDerivedFrom")}
    chunks = [origin for origin in origins if origin.startswith(f"{v.URN}chunk:")]
    sources |= {v.page_of(document_of_chunk(each), page_of_chunk(each)) for each in chunks}
    for page in sorted(sources):
        if key := text_value(store, page, v.tg("textHash")):
            yield key


def _contents(librarian: Librarian, keys: Iterable[str]) -> dict[str, bytes]:
    """Those of the contents that are kept; what was erased is gone."""
    found: dict[str, bytes] = {}
    for key in keys:
        try:
            found[key] = librarian.get(key)
        except StoreError:
            continue
    return found


def _named(kept: Mapping[str, bytes], record: Iterable[Quad]) -> dict[str, bytes]:
    """The texts by their names in the package: what each is says the record."""
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
    found = (name for prefix, name in _NAMES.items() if subject.startswith(prefix))
    return next(found, _TEXT)
