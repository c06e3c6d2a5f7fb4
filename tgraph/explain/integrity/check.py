"""Integrity verification of the sealed record (design, section 3.7).

RDFC-1.0 hashes of bundles, chain entries, the sum of all batches and librarian texts are
recomputed, and the record's statements about texts are compared with those texts. A truncated
chain is detected only by an earlier saved head, a completely recomputed chain by a saved head
or a signature."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from heapq import merge

from pyoxigraph import BlankNode, DefaultGraph, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError, UsageError
from tgraph.explain.integrity.entries import (
    ChainEntry,
    Problem,
    Signatures,
    broken_links,
    check_signatures,
    last_head,
    read_entries,
    term_text,
)
from tgraph.explain.integrity.erasures import Erasure, Rewritings
from tgraph.explain.integrity.quads import BatchReplay, StoredQuads, find_differences
from tgraph.explain.integrity.texts import SourceCheck
from tgraph.librarian import Librarian
from tgraph.record.chain import GENESIS, NO_GRAPH, GraphHash, Head, hash_of_bundle
from tgraph.record.signing import KIND, PublicKey
from tgraph.rendering import render_value
from tgraph.store.base import Graph, Store, match_record, select_rows
from tgraph.store.oxigraph import OxigraphStore

_HASH = re.compile(r"[0-9a-f]{64}")
_CATALOGUE, _BUNDLE = v.collection_iri(""), v.bundle_iri("")
_KEPT = (v.tg("contentHash"), v.tg("textHash"), v.tg("layoutHash"))


@dataclass(frozen=True, slots=True)
class Integrity:
    """An integrity check result.

    ``ok`` tells whether no problem was found; ``head`` and ``sequence`` are the chain end, to
    be saved elsewhere; ``saved_at`` is the entry number of a saved head. ``unreferenced`` lists
    intact texts needed by no record, left for example by an interrupted index run. ``erased``
    lists content rewritten by erasures and matching their seals. ``signatures`` belong to a
    given key."""

    ok: bool
    catalogue: str
    sequence: int
    head: str
    saved_at: int | None
    bundles: int
    batches: int
    quads: int
    texts: int
    problems: tuple[Problem, ...]
    unreferenced: tuple[str, ...]
    erased: tuple[Erasure, ...] = ()
    signatures: Signatures | None = None

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


def check_integrity(
    store: OxigraphStore,
    librarian: Librarian,
    catalogue: str,
    published: Head,
    saved: str | None = None,
    *,
    written: OxigraphStore | None = None,
    key: PublicKey | None = None,
) -> Integrity:
    """Recompute and verify the sealed record.

    ``published`` is the head named by the store pointer, ``saved`` an earlier noted head. With
    ``written``, the store before publication, each differing quad is a problem; with a ``key``,
    its signatures are verified. Raise ``UsageError`` for a saved head without exactly 64
    hexadecimal digits."""
    if saved is not None and not _HASH.fullmatch(saved):
        raise UsageError(
            f"{saved!r} is not the head of a chain.", "A head has 64 hexadecimal digits."
        )
    graphs = _named_graphs(store)
    catalogues = sorted({name for name in graphs if name.startswith(_CATALOGUE)} | {catalogue})
    chains = {name: read_entries(store, name) for name in catalogues}
    entries = [entry for name in catalogues for entry in chains[name]]
    problems = [problem for chain in chains.values() for problem in broken_links(chain)]
    if published not in map(last_head, chains.values()):
        detail = f"The published chain ended with this as entry {published.sequence}."
        problems.append(Problem("missing", "head", published.hash, detail))
    saved_at, lost = _find_head(chains[catalogue], saved)
    rewritings = Rewritings(store, entries)
    problems += rewritings.problems(entries)
    entries = [replace(e, hash=rewritings.hash_of(e.subject, e.hash)) for e in entries]
    kinds = {entry.subject: entry.kind for entry in entries}
    bundles = {
        name: hash_of_bundle(store, term, kinds.get(name, ""))
        for name, term in _bundle_graphs(graphs).items()
    }
    problems += [*lost, *wrong_bundles(entries, bundles)]
    with ExitStack() as stack:
        replayed = stack.enter_context(closing(_replay_batches(librarian, entries, rewritings)))
        stored = stack.enter_context(closing(StoredQuads(store, _unsealed_graphs(graphs))))
        problems += replayed.compare(stored)
        if written is not None:
            problems += _find_unpublished(store, graphs, stored, bundles, written)
    needed = _needed_texts(store, replayed, entries, rewritings)
    texts, damaged, strays = _check_texts(librarian, needed, replayed.read)
    signed = check_signatures(chains[catalogue], catalogue, key) if key else None
    problems += [*damaged, *(signed.problems if signed else ())]
    problems += SourceCheck(store, librarian).problems()
    head = last_head(chains[catalogue])
    batches = sum(entry.kind == "batch" for entry in entries)
    quads = len(stored) + sum(bundle_hash.quads for bundle_hash in bundles.values())
    return Integrity(
        not problems,
        catalogue,
        head.sequence,
        head.hash,
        saved_at,
        len(bundles),
        batches,
        quads,
        texts,
        tuple(problems),
        tuple(strays),
        rewritings.erasures,
        signed,
    )


def _named_graphs(store: Store) -> dict[str, NamedNode | BlankNode]:
    """The named graphs by their names; tgraph gives none a blank node, but somebody may."""
    terms = (row["graph"] for row in select_rows(store, "trace/graphs"))
    return {term_text(term): term for term in terms if isinstance(term, NamedNode | BlankNode)}


def _bundle_graphs(graphs: Mapping[str, NamedNode | BlankNode]) -> dict[str, NamedNode]:
    named_graphs = {
        name: term for name, term in sorted(graphs.items()) if isinstance(term, NamedNode)
    }
    return {name: term for name, term in named_graphs.items() if name.startswith(_BUNDLE)}


def _unsealed_graphs(graphs: Mapping[str, NamedNode | BlankNode]) -> list[Graph]:
    """Return graphs that are neither bundles nor catalogues."""
    names = sorted(name for name in graphs if not name.startswith((_CATALOGUE, _BUNDLE)))
    return [DefaultGraph(), *(graphs[name] for name in names)]


def _find_unpublished(
    store: OxigraphStore,
    graphs: Mapping[str, NamedNode | BlankNode],
    stored: StoredQuads,
    bundles: Mapping[str, GraphHash],
    written: OxigraphStore,
) -> Iterator[Problem]:
    """Yield problems for quads that differ between published store and written store.

    Bundles are small, and compared by hash first."""
    there = _named_graphs(written)
    with closing(StoredQuads(written, _unsealed_graphs(there))) as written_quads:
        yield from find_differences(stored, written_quads)
    either = {**graphs, **there}
    apart: list[Graph] = [either[name] for name in sorted(either) if name.startswith(_CATALOGUE)]
    for name, term in _bundle_graphs(either).items():
        if hash_of_bundle(written, term, "").hash != bundles.get(name, NO_GRAPH).hash:
            apart.append(term)
    with (
        closing(StoredQuads(store, apart)) as published_quads,
        closing(StoredQuads(written, apart)) as written_quads,
    ):
        yield from find_differences(published_quads, written_quads)


def _find_head(
    entries: Sequence[ChainEntry], saved: str | None
) -> tuple[int | None, tuple[Problem, ...]]:
    """Return the entry number of the saved head, or a problem if the chain lacks it."""
    if saved is None:
        return None, ()
    if saved == GENESIS:
        return 0, ()
    for entry in entries:
        if entry.chain == saved:
            return entry.sequence, ()
    detail = (
        "The chain does not contain the saved head: the end of the chain was cut off, or the "
        "chain was made again."
    )
    return None, (Problem("missing", "head", saved, detail),)


def wrong_bundles(
    entries: Sequence[ChainEntry], bundles: Mapping[str, GraphHash]
) -> Iterator[Problem]:
    """Yield problems for bundles that differ from their seals, or speak of what isn't theirs."""
    sealed = {e.subject: e.hash for e in entries if e.kind not in ("batch", KIND)}
    for bundle in sorted(bundles.keys() | sealed):
        bundle_hash, quads, foreign = bundles.get(bundle, NO_GRAPH)
        if bundle not in sealed:
            detail = f"The bundle is not in the chain and has {quads} quads."
            yield Problem("added", "bundle", bundle, detail)
        elif not quads:
            yield Problem("missing", "bundle", bundle, "The sealed item is missing.")
        elif bundle_hash != sealed[bundle]:
            detail = f"The quads were changed; the seal is {sealed[bundle]}."
            yield Problem("altered", "bundle", bundle, detail)
        for subject in foreign:
            detail = f"It speaks of {subject}, which is not its own."
            yield Problem("added", "bundle", bundle, detail)


def _replay_batches(
    librarian: Librarian, entries: Sequence[ChainEntry], rewritings: Rewritings
) -> BatchReplay:
    """Replay all batches: sorted by number within a catalogue, by time between catalogues."""
    replayed = BatchReplay(librarian, rewritings.is_gone)
    chains: dict[object, list[ChainEntry]] = {}
    for entry in entries:
        if entry.kind == "batch" and _HASH.fullmatch(entry.hash):
            chains.setdefault(entry.quads[0].graph_name, []).append(entry)
    for batch in merge(*chains.values(), key=lambda entry: v.in_time(entry.time)):
        replayed.play(batch)
    return replayed


def _needed_texts(
    store: Store, replayed: BatchReplay, entries: Sequence[ChainEntry], rewritings: Rewritings
) -> dict[str, str]:
    """Return hashes of required texts, each with a resource requiring it."""
    needed = dict(replayed.texts)
    for predicate in _KEPT:
        for quad in match_record(store, None, predicate):
            if not rewritings.was_removed(term_text(quad.object)):
                needed.setdefault(term_text(quad.object), term_text(quad.subject))
    needed.update((entry.hash, entry.subject) for entry in entries if entry.kind == "batch")
    return needed


def _check_texts(
    librarian: Librarian, needed: Mapping[str, str], intact: Collection[str]
) -> tuple[int, list[Problem], list[str]]:
    """Return text count, problems of damaged or missing texts, and unreferenced texts; texts
    known as ``intact`` are not read again."""
    text_keys = list(dict.fromkeys(librarian.keys()))
    problems = []
    for key in text_keys:
        if _HASH.fullmatch(key) is None:
            problems.append(Problem("added", "text", key, "The name of the file is not a hash."))
        elif key not in intact and not _is_intact(librarian, key):
            owner_text = f"It belongs to {needed[key]}." if key in needed else "Nothing needs it."
            problems.append(Problem("altered", "text", key, owner_text))
    for key in sorted(needed.keys() - set(text_keys)):
        problems.append(Problem("missing", "text", key, f"It belongs to {needed[key]}."))
    return (
        len(text_keys),
        problems,
        sorted(k for k in text_keys if k not in needed and _HASH.fullmatch(k)),
    )


def _is_intact(librarian: Librarian, key: str) -> bool:
    with suppress(StoreError):
        deque(librarian.lines(key), maxlen=0)
        return True
    return False
