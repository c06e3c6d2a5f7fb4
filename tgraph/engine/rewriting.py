"""The rewriting of a collection without the text of a document: store, batches, texts, chain."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.chained import read_entries
from tgraph.explain.erased import Rewritings
from tgraph.librarian import Librarian
from tgraph.models.base import canonical_json
from tgraph.record.affected import Affected, find_affected
from tgraph.record.agents import agent_quads
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import Chain, canonical_hash
from tgraph.record.erasing import Erasing
from tgraph.record.erasure import Rewriting, erasing_agents, erasure_quads
from tgraph.record.ledger import batch_lines
from tgraph.record.rewriter import Marks, Rewriter
from tgraph.record.traces import Collected, strings
from tgraph.store.base import Graph, Store, select
from tgraph.store.files import disk_errors
from tgraph.store.statements import to_bytes

if TYPE_CHECKING:
    from tgraph.engine.purging import Purging

_AT_ONCE = 10_000
_CONTENT = v.tg("contentHash")
_CATALOGUE, _BUNDLE = v.collection_iri(""), v.bundle_iri("")


def rewrite(
    store: Store,
    librarian: Librarian,
    erasing: Erasing,
    document: str,
    reason: str,
    purging: Purging,
) -> None:
    """Prepare and commit the erasure of a document that was retracted; the holder of the write lock
    may do this."""
    started = purging.clock()
    affected = find_affected(store, document)
    found = Collected(
        store, librarian, affected, lambda done, total: purging.show("Reading", done, total)
    )
    rewriter = Rewriter(affected, found.traces, Marks(purging.key), found.said)
    work = _Work(store, librarian, erasing, rewriter, affected, found, purging)
    erasing.begin()
    work.run(document, reason, started)


class _Work:
    def __init__(
        self,
        store: Store,
        librarian: Librarian,
        erasing: Erasing,
        rewriter: Rewriter,
        affected: Affected,
        found: Collected,
        purging: Purging,
    ) -> None:
        self._store = store
        self._librarian = librarian
        self._erasing = erasing
        self._rewriter = rewriter
        self._affected = affected
        self._found = found
        self._purging = purging
        self._removed: set[str] = set()
        self._rewritings: list[Rewriting] = []
        self._strict = rewriter.strictly()
        self._owners: defaultdict[str, set[str]] = defaultdict(set)
        self._places: defaultdict[str, set[str]] = defaultdict(set)
        self._telling: set[str] = set()
        self._knowledge_changed = False
        graphs = [_text(row["graph"]) for row in select(store, "trace/graphs", union=False)]
        self._catalogues = sorted(g for g in graphs if g.startswith(_CATALOGUE))
        self._bundles = sorted(g for g in graphs if g.startswith(_BUNDLE))
        self._others = sorted(g for g in graphs if not g.startswith((_CATALOGUE, _BUNDLE)))
        entries = [e for name in self._catalogues for e in read_entries(store, name)]
        rewritings = Rewritings(store, entries)
        self._sealed = {e.subject: rewritings.hash_of(e.subject, e.hash) for e in entries}
        self._batches = [e for e in entries if e.kind == "batch"]

    def run(self, document: str, reason: str, started: datetime) -> None:
        purging = self._purging
        self._find_telling()
        self._rewrite_texts()
        self._rewrite_batches()
        chain = Chain(self._store, purging.catalogue, purging.clock)
        with disk_errors(), self._erasing.quads.open("wb") as file:
            self._rewrite_store(file)
            self._write(file, self._agents(chain))
            bundle = erasure_quads(
                purging.uuid,
                document,
                reason,
                purging.settings.person,
                purging.settings.collection,
                (started, purging.clock()),
                self._rewritings,
                self._removed,
            )
            self._write(file, bundle)
            self._write(file, self._entry(chain, bundle))
        self._erasing.build_store()
        self._erasing.commit(
            self._removed, chain.head.sequence, vectors=not self._knowledge_changed
        )

    def _entry(self, chain: Chain, bundle: list[Quad]) -> list[Quad]:
        uuid = self._purging.uuid
        return chain.entry(
            v.bundle_iri(uuid),
            ERASURE.name,
            canonical_hash(bundle),
            (ERASURE.subject_property, NamedNode(v.erasure_iri(uuid))),
            (v.tg("quadCount"), len(set(bundle))),
        )

    def _agents(self, chain: Chain) -> list[Quad]:
        """Who erases, where nobody was named so before: a small batch of its own."""
        agents = agent_quads(erasing_agents(self._purging.settings.person))
        new = [q for q in agents if next(self._store.match(*q), None) is None]
        if not new:
            return []
        lines = sorted(to_bytes(new).splitlines(keepends=True))
        key = self._erasing.librarian.put(b"".join(batch_lines(lines, [], [])))
        return [*new, *chain.entry(f"{v.URN}batch:{key}", "batch", key, (_CONTENT, key))]

    def _find_telling(self) -> None:
        """The bundles that say something from the document; the rest of them is read strictly."""
        for bundle in self._bundles:
            for quad in self._store.match(None, None, None, NamedNode(bundle)):
                said = quad.object
                if isinstance(said, Literal) and self._rewriter.quad(quad).object != said:
                    self._telling.add(bundle)
                    break

    # --- texts of the librarian ---

    def _rewrite_texts(self) -> None:
        for predicate in (_CONTENT, v.tg("textHash"), v.tg("occurrences")):
            for quad in self._store.match(None, predicate, None, None):
                self._owners[_text(quad.object)].add(_text(quad.subject))
                self._places[_text(quad.object)].add(_text(quad.graph_name))
        batches = {self._sealed[batch.subject] for batch in self._batches}
        keys = sorted(set(self._librarian.keys()) - batches - self._found.kept)
        for done, key in enumerate(keys):
            self._purging.show("Texts", done, len(keys))
            if not self._is_prompt(key):
                self._rewrite_text(key)
        self._purging.show("Texts", len(keys), len(keys))

    def _is_prompt(self, key: str) -> bool:
        return any(owner.startswith(f"{v.URN}prompt:") for owner in self._owners.get(key, ()))

    def _rewrite_text(self, key: str) -> None:
        owners = self._owners.get(key, set())
        own = {self._affected.document, *self._affected.pages, *self._affected.subgraphs}
        if key in self._found.own or owners & own:
            self._removed.add(key)
            if owners - own:  # an answer may say all of it
                self._replace(key, self._rewriter.mark(key))
            return
        try:
            text = self._librarian.get(key).decode("utf-8", "surrogatepass")
        except (StoreError, UnicodeDecodeError):
            return
        strict = bool(self._places.get(key, set()) & self._telling)
        new = self._without(text, owners, self._strict if strict else self._rewriter)
        if new == text:
            return
        self._removed.add(key)
        if new is not None and owners:
            self._replace(key, new)

    def _replace(self, key: str, text: str) -> None:
        data = text.encode("utf-8", "surrogatepass")
        self._rewriter.keys[key] = self._erasing.librarian.put(data, durable=False)

    def _without(self, text: str, owners: set[str], rewriter: Rewriter) -> str | None:
        """The text without what is erased; None where nothing of it stays."""
        answers = [o for o in owners if o.startswith(v.answer_text_iri(""))]
        if answers:
            return self._answer(text, answers, rewriter)
        value = _json(text)
        if value is None:
            return rewriter.text(text)
        if isinstance(value, dict) and "request" in value and "reply" in value:
            told = any(rewriter.tells(said) for said in strings(value))
            return None if told else text
        whole = any(o.startswith(f"{v.URN}report:") for o in owners & self._affected.resources)
        new = rewriter.value(value, whole=whole)
        return text if new == value else canonical_json(new)

    def _answer(self, text: str, names: Iterable[str], rewriter: Rewriter) -> str:
        """An answer, the sentences that are erased replaced by their marks."""
        left = text
        for name in names:
            answer = NamedNode(v.answer_iri(name.removeprefix(v.answer_text_iri(""))))
            for quad in self._store.match(answer, v.tg("sentence"), None, None):
                sentence = quad.object
                assert isinstance(sentence, NamedNode)
                for said in self._store.match(sentence, v.tg("text"), None, None):
                    new = _text(rewriter.quad(said).object)
                    old = _text(said.object)
                    if new != old and old not in left:
                        return rewriter.mark(text)
                    left = left.replace(old, new)
        return rewriter.mark(text) if rewriter.tells(left) else left

    # --- batches and store ---

    def _rewrite_batches(self) -> None:
        done: dict[str, str] = {}
        for number, batch in enumerate(self._batches):
            self._purging.show("Batches", number, len(self._batches))
            key = self._sealed[batch.subject]
            if key not in done:
                done[key] = self._rewrite_batch(key)
            if done[key] != key:
                self._removed.add(key)
                self._rewritings.append(Rewriting(batch.subject, key, done[key]))
        self._purging.show("Batches", len(self._batches), len(self._batches))

    def _rewrite_batch(self, key: str) -> str:
        new = self._erasing.librarian.put_parts(self._rewriter.lines(self._librarian.lines(key)))
        if new == key:
            self._erasing.librarian.remove(key)
        return new

    def _rewrite_store(self, file: BinaryIO) -> None:
        for catalogue in self._catalogues:
            self._write(file, self._store.match(None, None, None, NamedNode(catalogue)))
        for number, bundle in enumerate(self._bundles):
            self._purging.show("Sessions", number, len(self._bundles))
            old = list(self._store.match(None, None, None, NamedNode(bundle)))
            strict = bundle in self._telling
            new = list((self._strict if strict else self._rewriter).quads(old))
            if new != old:
                self._reseal(bundle, old, new)
            self._write(file, new)
        self._purging.show("Sessions", len(self._bundles), len(self._bundles))
        self._rewrite_graph(file, DefaultGraph())
        for other in self._others:
            self._rewrite_graph(file, NamedNode(other))

    def _reseal(self, bundle: str, old: list[Quad], new: list[Quad]) -> None:
        before = self._sealed.get(bundle, "")
        if canonical_hash(old) != before:
            raise StoreError(
                f"{bundle} is not as it was sealed; sealing it again would hide that.",
                "See `tgraph audit integrity`.",
            )
        self._rewritings.append(Rewriting(bundle, before, canonical_hash(new)))

    def _rewrite_graph(self, file: BinaryIO, graph: Graph) -> None:
        quads = self._store.match(None, None, None, graph)
        while block := list(islice(quads, _AT_ONCE)):
            new = list(self._rewriter.quads(block))
            if isinstance(graph, DefaultGraph) and new != block:
                self._knowledge_changed = True
            self._write(file, new)

    def _write(self, file: BinaryIO, quads: Iterable[Quad]) -> None:
        rest = iter(quads)
        while block := list(islice(rest, _AT_ONCE)):
            file.write(to_bytes(block))


def _json(text: str) -> object:
    if text[:1] not in ("{", "["):
        return None
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _text(term: object) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else str(term)
