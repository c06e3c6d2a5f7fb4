"""Purging documents: a retracted document's text is erased from all stored data.

A new store and new texts are prepared beside the old data, under the locks of index runs and
writers, and replace the old data at once; ``tgraph.record.erasure.commit`` handles leftovers of
a crash. Design, section 3.7."""

from __future__ import annotations

import json
import secrets
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import BinaryIO

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.change.entity_curation import check_paths, check_reason, impact_of, take_back
from tgraph.engine.change.tuned_prompts import FOLDER, remove_tuned, tuned_from
from tgraph.engine.index.run import BUSY, PATIENCE
from tgraph.engine.index.saved_tables import consolidate_tables
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.progress import OnMessage, OnProgress, Progress, RunSetup
from tgraph.errors import StoreError, UsageError
from tgraph.explain.audit.impact import Impact
from tgraph.explain.integrity.entries import read_entries
from tgraph.explain.integrity.erasures import Rewritings, erasure_of_document, last_erasure
from tgraph.explain.trace.documents import find_document, list_documents
from tgraph.index.sources import list_standing_paths, readings_of, text_value
from tgraph.librarian import Librarian
from tgraph.models.base import canonical_json
from tgraph.record.activities import agent_quads, responsible_agents
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import Chain, canonical_hash
from tgraph.record.erasure.commit import PreparedErasure, Rewriting, erasure_quads
from tgraph.record.erasure.document_texts import DocumentTexts, extract_strings
from tgraph.record.erasure.rewriter import Marks, Rewriter
from tgraph.record.erasure.scope import find_scope
from tgraph.record.ledger import batch_lines
from tgraph.store.base import Graph, Store, match_record, select_rows
from tgraph.store.files import disk_errors, hold_lock
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import list_pinned_snapshots, read_pointer, remove_unpinned
from tgraph.store.statements import to_bytes
from tgraph.store.writer import abandoned_changes

_PAUSE = 0.05


def find_purged_name(store: Store, name: str, *, unfinished: bool) -> str:
    """Return a name under which the document to be erased is on record.

    After an ``unfinished`` erasure the name may be gone with the text: an unknown name then
    means the last erased document. Raises ``UsageError`` if no document matches."""
    try:
        find_document(store, name)
    except UsageError:
        last = last_erasure(store) if unfinished else None
        if last is None:
            raise
        return last.document
    return name


def say_what_stays(
    store: Store, folder: CollectionFolder, document: str, message: OnMessage
) -> None:
    """Report other places that may hold the same text and are not erased with the document."""
    entries = list_documents(store)
    readings = set(readings_of(store, document))
    paths = {entry.path for entry in entries if entry.document in readings}
    for other_document in {entry.document for entry in entries if entry.path in paths} - readings:
        if erasure_of_document(store, other_document) is None:
            message(
                f"Another document of the same path stays until that document is erased too:"
                f" {other_document}"
            )
    digest = text_value(store, document, v.tg("contentHash"))
    for place in sorted(folder.path.parent.iterdir()):
        if place != folder.path and Librarian(place / "librarian").has_content(digest):
            message(f"The collection {place.name} has the same document, which stays there.")


@dataclass(frozen=True, slots=True)
class Purge:
    """Purge results.

    ``impact`` lists facts and answers that rested on the document before; ``questioned`` are
    sessions whose answers were called into question now. ``bundles`` and ``batches`` count
    rewritten items, ``texts`` removed librarian contents. ``already`` says whether the purge
    had been done before. ``erasure`` is empty if the document was only retracted, because the
    same content stands at other paths (``impact.copies``)."""

    impact: Impact
    questioned: tuple[str, ...]
    erasure: str
    bundles: int
    batches: int
    texts: int
    already: bool = False


def purge_document(
    opened: OpenCollection,
    document: str,
    reason: str,
    patience: float,
    progress: OnProgress,
    message: OnMessage | None,
    *,
    all_copies: bool = False,
) -> Purge:
    """As ``KnowledgeGraph.purge``."""
    check_reason(reason)
    if opened.is_asked:
        raise StoreError(
            "A question is still running in this process.",
            "Wait for the end of the question, or stop the question.",
        )
    setup = opened.setup(progress, message)
    purging = Purging(**vars(setup), key=secrets.token_bytes(32), patience=patience)
    unfinished = opened.ledger.is_erasing()
    name = find_purged_name(opened.read(), document, unfinished=unfinished)
    before = impact_of(opened, name, all_copies=all_copies)
    check_paths(before, document, all_copies=all_copies)
    if before.copies:
        take_back(opened, before, reason, progress)
        return Purge(before, (), "", 0, 0, 0)
    finished_erasure = erasure_of_document(opened.read(), before.document)
    questioned: tuple[str, ...] = ()
    if finished_erasure is None:
        purging.check(opened.read(), before.document, reason)
        say_what_stays(opened.read(), opened.folder, before.document, purging.message)
        opened.release()
        purging.wait_for_readers()
        _forget_prompts(opened, before.document, purging.message)
        _, questioned = take_back(opened, before, reason, progress)
        opened.release()
        purging.erase(before.document, reason)
        finished_erasure = erasure_of_document(opened.read(), before.document)
        assert finished_erasure is not None
        unfinished = True
    opened.turns.clear()
    opened.release()
    purging.clear()
    counts = (finished_erasure.bundles, finished_erasure.batches, finished_erasure.texts)
    return Purge(before, questioned, finished_erasure.erasure, *counts, already=not unfinished)


def _forget_prompts(opened: OpenCollection, document: str, message: OnMessage) -> None:
    """Delete the files of prompts that quote the document."""
    folder = opened.settings.prompts or opened.folder.path.parent.parent / FOLDER
    readings = readings_of(opened.read(), document)
    prompt_hashes = frozenset(h for r in readings for h in tuned_from(opened.read(), r))
    for path in remove_tuned(opened.read(), folder, prompt_hashes):
        message(f"Deleted {path}, which was made from the document; `tgraph tune` makes it anew.")


@dataclass(frozen=True)
class Purging(RunSetup):
    """A purge run; ``key`` is the secret for erasure marks, ``patience`` the seconds to wait
    for readers."""

    key: bytes
    patience: float

    def check(self, store: Store, document: str, reason: str) -> None:
        """Raise ``UsageError`` if the reason repeats document text, because reasons stay on
        record."""
        document_texts = DocumentTexts(store, self.ledger.librarian, find_scope(store, document))
        trace = document_texts.traces.find(reason)
        if trace is not None:
            raise UsageError(
                f"The reason contains {trace!r}, which only the document contains; reasons stay.",
                "Write the reason in other words.",
            )

    def wait_for_readers(self) -> None:
        """Wait until nobody reads the graph.

        Raises ``StoreError`` if readers remain; then nothing has been done."""
        self._wait_until_free(
            lambda: list_pinned_snapshots(self.ledger.folder),
            "Another process has the graph open; waiting until the graph is closed.",
            "Another process has the graph open, so the text can't be erased.",
        )

    def erase(self, document: str, reason: str) -> None:
        """Erase a retracted document.

        An erasure interrupted by a crash is finished by the next command, or had not begun."""
        folder = self.ledger.folder
        with hold_lock(folder.index_lock, timeout=None, waiting=partial(self.message, BUSY)):
            for leftover in abandoned_changes(folder):
                shutil.rmtree(leftover, ignore_errors=True)
            self._wait_for_sessions()
            with self.ledger.open(timeout=PATIENCE) as (store, _):
                if paths := list_standing_paths(store, document):
                    raise StoreError(
                        "The same content was indexed meanwhile, and was not erased: "
                        f"{', '.join(paths)}.",
                        "Run the same command again, for all copies (`--all-copies`).",
                    )
                started = self.clock()
                consolidate_tables(self.ledger, store, self.parts.vector_store)
                _CollectionRewriting(store, document, self).run(reason, started)
        self.ledger.fold(timeout=PATIENCE)

    def clear(self) -> None:
        """Wait until nobody reads earlier snapshots.

        Raises ``StoreError`` if readers remain."""
        folder = self.ledger.folder

        def list_other_snapshots() -> list[str]:
            remove_unpinned(folder)
            pointer = read_pointer(folder)
            return [
                n
                for n in list_pinned_snapshots(folder)
                if pointer is None or n != str(pointer.snapshot)
            ]

        self._wait_until_free(
            list_other_snapshots,
            "Another process reads an earlier published state; waiting until the state is closed.",
            "The text is erased, but another process still reads an earlier published state.",
        )

    def report_progress(self, stage: str, done: int, total: int) -> None:
        self.progress(Progress(stage, done, total))

    def _wait_for_sessions(self) -> None:
        """Wait for questions begun before the retraction, which may still write their findings."""
        journal_files = self.ledger.folder.journals.glob("*.journal")
        journals = [path for path in journal_files if not is_free(path)]
        self._wait_until_free(
            lambda: [path for path in journals if path.exists() and not is_free(path)],
            "A question is running; waiting for the end of the question.",
            "A question is still running; the document is retracted, but not erased.",
        )

    def _wait_until_free(
        self, left: Callable[[], Iterable[object]], waiting: str, failed: str
    ) -> None:
        deadline = time.monotonic() + self.patience
        if not left():
            return
        self.message(waiting)
        while left():
            if time.monotonic() > deadline:
                raise StoreError(
                    failed, "Close the graph in the other process, and run the same command again."
                )
            time.sleep(_PAUSE)


_AT_ONCE = 10_000
_CONTENT = v.tg("contentHash")
_PROMPT = f"{v.URN}prompt:"
_OF_PEOPLE = _PROMPT, v.ontology_iri("")
"""What people wrote for the graph, and no document says: it stays as it is."""
_CATALOGUE, _BUNDLE = v.collection_iri(""), v.bundle_iri("")
_ORDERS = v.session_part_iri("orders", "")
"""What limits cut off in a session: no answer rests on it, so that it is removed as a whole."""


class _CollectionRewriting:
    """Rewrites a collection without a document's text: store, batches, texts, chain.

    Only the holder of the write lock may use the class."""

    def __init__(self, store: Store, document: str, purging: Purging) -> None:
        self._store = store
        self._purging = purging
        self._librarian = purging.ledger.librarian
        self._erasing = PreparedErasure(purging.ledger.folder)
        self._affected = find_scope(store, document)
        show = partial(purging.report_progress, "Reading")
        self._found = document_texts = DocumentTexts(store, self._librarian, self._affected, show)
        marks = Marks(purging.key)
        self._rewriter = Rewriter(self._affected, document_texts.traces, marks, document_texts.said)
        self._removed: set[str] = set()
        self._rewritings: list[Rewriting] = []
        self._strict = self._rewriter.strictly()
        self._owners: defaultdict[str, set[str]] = defaultdict(set)
        self._places: defaultdict[str, set[str]] = defaultdict(set)
        self._telling: set[str] = set()
        self._knowledge_changed = False
        graphs = [_term_text(row["graph"]) for row in select_rows(store, "trace/graphs")]
        self._catalogues = sorted(g for g in graphs if g.startswith(_CATALOGUE))
        self._bundles = sorted(g for g in graphs if g.startswith(_BUNDLE))
        self._others = sorted(g for g in graphs if not g.startswith((_CATALOGUE, _BUNDLE)))
        entries = [e for name in self._catalogues for e in read_entries(store, name)]
        rewritings = Rewritings(store, entries)
        self._sealed = {e.subject: rewritings.hash_of(e.subject, e.hash) for e in entries}
        self._batches = [e for e in entries if e.kind == "batch"]

    def run(self, reason: str, started: datetime) -> None:
        """Prepare and commit the erasure."""
        purging = self._purging
        self._erasing.begin()
        self._find_telling()
        self._rewrite_texts()
        self._rewrite_batches()
        chain = Chain(self._store, purging.catalogue, purging.clock)
        with disk_errors(), self._erasing.quads.open("wb") as file:
            self._rewrite_store(file)
            self._write_quads(file, self._state_agents(chain))
            bundle = erasure_quads(
                purging.uuid,
                sorted(self._affected.readings),
                reason,
                purging.settings.person,
                purging.settings.collection,
                (started, purging.clock()),
                self._rewritings,
                self._removed,
            )
            self._write_quads(file, bundle)
            self._write_quads(file, self._chain_entry(chain, bundle))
        self._erasing.build_store()
        self._erasing.commit(
            self._removed, chain.head.sequence, vectors=not self._knowledge_changed
        )

    def _chain_entry(self, chain: Chain, bundle: list[Quad]) -> list[Quad]:
        uuid = self._purging.uuid
        return chain.entry(
            v.bundle_iri(uuid),
            ERASURE.name,
            canonical_hash(bundle),
            (ERASURE.subject_property, NamedNode(v.erasure_iri(uuid))),
            (v.tg("quadCount"), len(set(bundle))),
        )

    def _state_agents(self, chain: Chain) -> list[Quad]:
        """Return a small batch naming the erasing agents, unless named already."""
        agents = agent_quads(responsible_agents(self._purging.settings.person))
        new = [q for q in agents if next(self._store.match(*q), None) is None]
        if not new:
            return []
        lines = sorted(to_bytes(new).splitlines(keepends=True))
        key = self._erasing.librarian.store_content(b"".join(batch_lines(lines, [], [])))
        return [*new, *chain.entry(f"{v.URN}batch:{key}", "batch", key, (_CONTENT, key))]

    def _find_telling(self) -> None:
        """Find bundles containing text from the document; other bundles are read strictly."""
        for bundle in self._bundles:
            for quad in self._store.match(None, None, None, NamedNode(bundle)):
                term = quad.object
                if isinstance(term, Literal) and self._rewriter.quad(quad).object != term:
                    self._telling.add(bundle)
                    break

    def _rewrite_texts(self) -> None:
        for predicate in (_CONTENT, v.tg("textHash"), v.tg("layoutHash"), v.tg("occurrences")):
            for quad in match_record(self._store, None, predicate):
                self._owners[_term_text(quad.object)].add(_term_text(quad.subject))
                self._places[_term_text(quad.object)].add(_term_text(quad.graph_name))
        batches = {self._sealed[batch.subject] for batch in self._batches}
        keys = sorted(set(self._librarian.keys()) - batches - self._found.kept)
        for index, key in enumerate(keys):
            self._purging.report_progress("Texts", index, len(keys))
            owners = self._owners.get(key, ())
            if self._affected.resources.intersection(o for o in owners if o.startswith(_PROMPT)):
                self._removed.add(key)  # made from the document, by `tgraph tune`
            elif not any(o.startswith(_OF_PEOPLE) for o in owners):
                self._rewrite_text(key)
        self._purging.report_progress("Texts", len(keys), len(keys))

    def _rewrite_text(self, key: str) -> None:
        owners = self._owners.get(key, set())
        own_resources = {*self._affected.readings, *self._affected.pages, *self._affected.subgraphs}
        if key in self._found.own or owners & own_resources:
            self._removed.add(key)
            if owners - own_resources:  # an answer may say all of it
                self._replace_text(key, self._rewriter.mark(key))
            return
        try:
            text = self._librarian.read_content(key).decode("utf-8", "surrogatepass")
        except (StoreError, UnicodeDecodeError):
            return
        strict = bool(self._places.get(key, set()) & self._telling)
        new = self._erase_text(text, owners, self._strict if strict else self._rewriter)
        if new == text:
            return
        self._removed.add(key)
        if new is not None and owners and not all(o.startswith(_ORDERS) for o in owners):
            self._replace_text(key, new)

    def _replace_text(self, key: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._rewriter.keys[key] = self._erasing.librarian.store_content(data, durable=False)

    def _erase_text(self, text: str, owners: set[str], rewriter: Rewriter) -> str | None:
        """Return the text without erased content; None if nothing remains."""
        answers = [o for o in owners if o.startswith(v.answer_text_iri(""))]
        if answers:
            return self._erase_answer(text, answers, rewriter)
        value = _parse_json(text)
        if value is None:
            return rewriter.text(text)
        if isinstance(value, dict) and "request" in value and "reply" in value:
            is_telling = any(rewriter.tells(string) for string in extract_strings(value))
            return None if is_telling else text
        is_report = any(o.startswith(f"{v.URN}report:") for o in owners & self._affected.resources)
        new = rewriter.value(value, whole=is_report)
        return text if new == value else canonical_json(new)

    def _erase_answer(self, text: str, names: Iterable[str], rewriter: Rewriter) -> str:
        """Return the answer with erased sentences replaced by marks."""
        remaining_text = text
        for name in names:
            answer = NamedNode(v.answer_iri(name.removeprefix(v.answer_text_iri(""))))
            for quad in match_record(self._store, answer, v.tg("sentence")):
                sentence = quad.object
                assert isinstance(sentence, NamedNode)
                for text_quad in match_record(self._store, sentence, v.tg("text")):
                    new = _term_text(rewriter.quad(text_quad).object)
                    old = _term_text(text_quad.object)
                    if new != old and old not in remaining_text:
                        return rewriter.mark(text)
                    remaining_text = remaining_text.replace(old, new)
        return rewriter.mark(text) if rewriter.tells(remaining_text) else remaining_text

    def _rewrite_batches(self) -> None:
        new_keys: dict[str, str] = {}
        for number, batch in enumerate(self._batches):
            self._purging.report_progress("Batches", number, len(self._batches))
            key = self._sealed[batch.subject]
            if key not in new_keys:
                new_keys[key] = self._rewrite_batch(key)
            if new_keys[key] != key:
                self._removed.add(key)
                self._rewritings.append(Rewriting(batch.subject, key, new_keys[key]))
        self._purging.report_progress("Batches", len(self._batches), len(self._batches))

    def _rewrite_batch(self, key: str) -> str:
        new = self._erasing.librarian.put_parts(self._rewriter.lines(self._librarian.lines(key)))
        if new == key:
            self._erasing.librarian.remove(key)
        return new

    def _rewrite_store(self, file: BinaryIO) -> None:
        for catalogue in self._catalogues:
            self._write_quads(file, self._store.match(None, None, None, NamedNode(catalogue)))
        for number, bundle in enumerate(self._bundles):
            self._purging.report_progress("Sessions", number, len(self._bundles))
            old = list(self._store.match(None, None, None, NamedNode(bundle)))
            strict = bundle in self._telling
            new = list((self._strict if strict else self._rewriter).quads(old))
            if new != old:
                self._reseal_bundle(bundle, old, new)
            self._write_quads(file, new)
        self._purging.report_progress("Sessions", len(self._bundles), len(self._bundles))
        self._rewrite_graph(file, DefaultGraph())
        for graph_iri in self._others:
            self._rewrite_graph(file, NamedNode(graph_iri))

    def _reseal_bundle(self, bundle: str, old: list[Quad], new: list[Quad]) -> None:
        before = self._sealed.get(bundle, "")
        if canonical_hash(old) != before:
            raise StoreError(
                f"{bundle} differs from the sealed record; a new seal would hide the difference.",
                "Run `tgraph audit integrity`.",
            )
        self._rewritings.append(Rewriting(bundle, before, canonical_hash(new)))

    def _rewrite_graph(self, file: BinaryIO, graph: Graph) -> None:
        quads = self._store.match(None, None, None, graph)
        while block := list(islice(quads, _AT_ONCE)):
            new = list(self._rewriter.quads(block))
            if isinstance(graph, DefaultGraph) and new != block:
                self._knowledge_changed = True
            self._write_quads(file, new)

    def _write_quads(self, file: BinaryIO, quads: Iterable[Quad]) -> None:
        remaining = iter(quads)
        while block := list(islice(remaining, _AT_ONCE)):
            file.write(to_bytes(block))


def _parse_json(text: str) -> object:
    if text[:1] not in ("{", "["):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _term_text(term: object) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else str(term)
