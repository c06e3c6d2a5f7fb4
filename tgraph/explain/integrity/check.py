"""Whether the record is as it was sealed (design, section 3.7).

Every bundle's RDFC-1.0 hash is computed again, every entry of the chain, what all batches add up
to, every text of the librarian, and from the texts what the record says of them. A chain that was
cut at its end can only be told by a head that was saved before, one that was computed again as a
whole by that or by a signature.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from heapq import merge
from itertools import islice

from pyoxigraph import DefaultGraph, NamedNode, Quad

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
from tgraph.explain.integrity.texts import SourceCheck
from tgraph.librarian import Librarian
from tgraph.record.chain import GENESIS, NO_GRAPH, GraphHash, Head, hash_of_graph
from tgraph.record.signing import KIND, PublicKey
from tgraph.rendering import render
from tgraph.store.base import Graph, Store, select
from tgraph.store.statements import to_bytes

# Each batch is a text of N-Quads lines added and removed. Played one after the other they give
# every quad outside the bundles and catalogues.

_AT_ONCE = 10_000
_UNREADABLE = "Its text can't be read, so that the quads outside the bundles were not compared."


class BatchReplay:
    """The quads that batches have left, as 16-byte digests of their lines, and the hashes of the
    texts that came with them. ``is_gone`` tells of a text that was needed at a time whether it has
    been erased since."""

    def __init__(
        self,
        librarian: Librarian,
        is_gone: Callable[[str, str], bool] = lambda key, time: False,
    ) -> None:
        self._is_gone = is_gone
        self.texts: dict[str, str] = {}
        self.unreadable: list[str] = []
        self._librarian = librarian
        self._batches: list[ChainEntry] = []
        self._lines: set[bytes] = set()

    def play(self, batch: ChainEntry) -> None:
        """Apply the batch; one whose text is lost or damaged is noted as unreadable."""
        self._batches.append(batch)
        added, removed = set(), set()
        try:
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+"):
                    added.add(_digest(line[1:]))
                elif line.startswith(b"-"):
                    removed.add(_digest(line[1:]))
                else:
                    key = line[1:].decode("ascii", "replace").strip()
                    if not self._is_gone(key, batch.time):
                        self.texts.setdefault(key, batch.subject)
        except StoreError:
            self.unreadable.append(batch.subject)
        self._lines -= removed
        self._lines |= added

    def compare(self, store: Store, graphs: Sequence[Graph]) -> tuple[int, list[Problem]]:
        """How many quads the graphs hold, and each that is there or missing against the batches."""
        if self.unreadable:
            return sum(1 for graph in graphs for _ in store.match(None, None, None, graph)), [
                Problem("missing", "batch", subject, _UNREADABLE) for subject in self.unreadable
            ]
        found: set[bytes] = set()
        count, problems = 0, []
        for graph in graphs:
            for line in _lines(store.match(None, None, None, graph)):
                digest = _digest(line)
                count += 1
                found.add(digest)
                if digest not in self._lines:
                    problems.append(Problem("added", "quad", _shown(line), "No batch added it."))
        return count, [*problems, *self._missing(self._lines - found)]

    def _missing(self, digests: set[bytes]) -> Iterator[Problem]:
        """The lines of the digests, found again in the batches, the newest first."""
        for batch in reversed(self._batches):
            if not digests:
                return
            for line in self._librarian.lines(batch.hash):
                if line.startswith(b"+") and _digest(line[1:]) in digests:
                    digests.discard(_digest(line[1:]))
                    detail = f"{batch.subject} added it."
                    yield Problem("missing", "quad", _shown(line[1:]), detail)


def _lines(quads: Iterable[Quad]) -> Iterator[bytes]:
    rest = iter(quads)
    while block := list(islice(rest, _AT_ONCE)):
        yield from to_bytes(block).splitlines(keepends=True)


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


def _shown(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip()


_HASH = re.compile(r"[0-9a-f]{64}")
_CATALOGUE, _BUNDLE = v.collection_iri(""), v.bundle_iri("")
NO_HASHES: Mapping[NamedNode, GraphHash] = {}
_KEPT = (v.tg("contentHash"), v.tg("textHash"))


@dataclass(frozen=True, slots=True)
class Integrity:
    """What the check found. ``ok`` is whether nothing is wrong; ``head`` and ``sequence`` are the
    end of the chain, to be saved somewhere else; ``saved_at`` is the entry that a saved head is of.
    ``unreferenced`` are texts that are what they should be and that nothing on record needs, as
    an index run leaves them that was interrupted. ``erased`` lists what was rewritten by erasures,
    and is as it was sealed by them. ``signatures`` are those of a key, where one was given."""

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
        return render(self, "notebook")


def check_integrity(
    store: Store,
    librarian: Librarian,
    catalogue: str,
    published: Head,
    saved: str | None = None,
    beyond: Sequence[Problem] = (),
    key: PublicKey | None = None,
    hashes: Mapping[NamedNode, GraphHash] = NO_HASHES,
) -> Integrity:
    """Compute everything again. ``published`` is the head that the pointer to the store names,
    ``saved`` one that was noted earlier, ``beyond`` what is known to be wrong already. With a
    ``key`` its signatures are verified. ``hashes`` are those of bundles that were computed just
    now.

    ``UsageError`` for a saved head that is not 64 hexadecimal digits.
    """
    if saved is not None and not _HASH.fullmatch(saved):
        raise UsageError(f"{saved!r} is not the head of a chain.", "It has 64 hexadecimal digits.")
    graphs = {term_text(row["graph"]) for row in select(store, "trace/graphs", union=False)}
    catalogues = sorted({g for g in graphs if g.startswith(_CATALOGUE)} | {catalogue})
    chains = {name: read_entries(store, name) for name in catalogues}
    entries = [entry for name in catalogues for entry in chains[name]]
    problems = [*beyond, *(p for chain in chains.values() for p in broken_links(chain))]
    if published not in map(last_head, chains.values()):
        detail = f"The published chain ended with this as entry {published.sequence}."
        problems.append(Problem("missing", "head", published.hash, detail))
    saved_at, lost = _find_head(chains[catalogue], saved)
    rewritings = Rewritings(store, entries)
    problems += rewritings.problems(entries)
    entries = [replace(e, hash=rewritings.hash_of(e.subject, e.hash)) for e in entries]
    bundles, wrong = _check_bundles(store, entries, graphs, hashes)
    replayed = _replay(librarian, entries, rewritings)
    others = sorted(g for g in graphs if not g.startswith((_CATALOGUE, _BUNDLE)))
    quads, differing = replayed.compare(store, [DefaultGraph(), *map(NamedNode, others)])
    texts, damaged, strays = _check_texts(librarian, _needed(store, replayed, entries, rewritings))
    signed = check_signatures(chains[catalogue], catalogue, key) if key else None
    found = (*problems, *lost, *wrong, *differing, *damaged, *(signed.problems if signed else ()))
    found += tuple(SourceCheck(store, librarian).problems())
    head = last_head(chains[catalogue])
    batches = sum(entry.kind == "batch" for entry in entries)
    counts = (len(bundles), batches, quads + sum(bundles.values()), texts)
    return Integrity(
        not found,
        catalogue,
        head.sequence,
        head.hash,
        saved_at,
        *counts,
        found,
        tuple(strays),
        rewritings.erasures,
        signed,
    )


def _find_head(
    entries: Sequence[ChainEntry], saved: str | None
) -> tuple[int | None, tuple[Problem, ...]]:
    """The number of the entry that the saved head is of, or that there is none."""
    if saved is None:
        return None, ()
    if saved == GENESIS:
        return 0, ()
    for entry in entries:
        if entry.chain == saved:
            return entry.sequence, ()
    detail = "The chain does not contain the saved head: its end was cut off or it was made anew."
    return None, (Problem("missing", "head", saved, detail),)


def _check_bundles(
    store: Store,
    entries: Sequence[ChainEntry],
    graphs: Iterable[str],
    hashes: Mapping[NamedNode, GraphHash],
) -> tuple[dict[str, int], list[Problem]]:
    """The number of quads of each bundle there is, and which are not as they were sealed."""
    sealed = {e.subject: e.hash for e in entries if e.kind not in ("batch", KIND)}
    counts: dict[str, int] = {}
    problems = []
    for bundle in sorted({g for g in graphs if g.startswith(_BUNDLE)} | set(sealed)):
        found, quads = _hash_of(store, bundle, hashes)
        if quads:
            counts[bundle] = quads
        if bundle not in sealed and quads:
            detail = f"It is not in the chain and has {quads} quads."
            problems.append(Problem("added", "bundle", bundle, detail))
        elif bundle in sealed and not quads:
            problems.append(Problem("missing", "bundle", bundle, "It was sealed and is not there."))
        elif quads and found != sealed[bundle]:
            detail = f"Its quads were changed; it was sealed as {sealed[bundle]}."
            problems.append(Problem("altered", "bundle", bundle, detail))
    return counts, problems


def _hash_of(store: Store, graph: str, hashes: Mapping[NamedNode, GraphHash]) -> GraphHash:
    try:
        node = NamedNode(graph)
    except ValueError:
        return NO_GRAPH
    return hashes.get(node) or hash_of_graph(store, node)


def _replay(
    librarian: Librarian, entries: Sequence[ChainEntry], rewritings: Rewritings
) -> BatchReplay:
    """All batches, played by number within a catalogue, by time between them."""
    replayed = BatchReplay(librarian, rewritings.is_gone)
    chains: dict[object, list[ChainEntry]] = {}
    for entry in entries:
        if entry.kind == "batch" and _HASH.fullmatch(entry.hash):
            chains.setdefault(entry.quads[0].graph_name, []).append(entry)
    for batch in merge(*chains.values(), key=lambda entry: v.in_time(entry.time)):
        replayed.play(batch)
    return replayed


def _needed(
    store: Store, replayed: BatchReplay, entries: Sequence[ChainEntry], rewritings: Rewritings
) -> dict[str, str]:
    """The hashes of the texts that must be there, each with what needs it."""
    needed = dict(replayed.texts)
    for predicate in _KEPT:
        for quad in store.match(None, predicate, None, None):
            if not rewritings.was_removed(term_text(quad.object)):
                needed.setdefault(term_text(quad.object), term_text(quad.subject))
    needed.update((entry.hash, entry.subject) for entry in entries if entry.kind == "batch")
    return needed


def _check_texts(
    librarian: Librarian, needed: Mapping[str, str]
) -> tuple[int, list[Problem], list[str]]:
    """How many texts there are, which are damaged or missing, and which nobody needs."""
    kept = list(dict.fromkeys(librarian.keys()))
    problems = []
    for key in kept:
        if _HASH.fullmatch(key) is None:
            problems.append(Problem("added", "text", key, "Its name is not a hash."))
        elif not _is_intact(librarian, key):
            about = f"It belongs to {needed[key]}." if key in needed else "Nothing needs it."
            problems.append(Problem("altered", "text", key, about))
    for key in sorted(needed.keys() - set(kept)):
        problems.append(Problem("missing", "text", key, f"It belongs to {needed[key]}."))
    return len(kept), problems, sorted(k for k in kept if k not in needed and _HASH.fullmatch(k))


def _is_intact(librarian: Librarian, key: str) -> bool:
    with suppress(StoreError):
        deque(librarian.lines(key), maxlen=0)
        return True
    return False
