"""Whether the record is as it was sealed (design, section 3.7).

Every bundle's RDFC-1.0 hash is computed again, every entry of the chain, what all batches add up
to, and every text of the librarian. A chain that was cut at its end can only be told by a head that
was saved before, one that was computed again as a whole by that or by a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge

from pyoxigraph import DefaultGraph, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError, UsageError
from tgraph.explain.chained import Entry, Problem, broken_links, last_head, read_entries, term_text
from tgraph.explain.erased import Erasure, Rewritings
from tgraph.explain.replayed import Replayed
from tgraph.explain.signed import Signatures, check_signatures
from tgraph.librarian import Librarian
from tgraph.record.chain import GENESIS, NO_GRAPH, GraphHash, Head, hash_of_graph
from tgraph.record.signing import KIND, PublicKey
from tgraph.rendering import render
from tgraph.store.base import Store, select

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
    problems += _ends(chains, published)
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


def _ends(chains: Mapping[str, Sequence[Entry]], published: Head) -> Iterator[Problem]:
    heads = [last_head(entries) for entries in chains.values()]
    if published not in heads:
        detail = f"The published chain ended with this as entry {published.sequence}."
        yield Problem("missing", "head", published.hash, detail)


def _find_head(
    entries: Sequence[Entry], saved: str | None
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
    entries: Sequence[Entry],
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


def _replay(librarian: Librarian, entries: Sequence[Entry], rewritings: Rewritings) -> Replayed:
    """All batches, played; those of several catalogues in the order of their times."""
    replayed = Replayed(librarian, rewritings.is_gone)
    batches = [entry for entry in entries if entry.kind == "batch" and _HASH.fullmatch(entry.hash)]
    for batch in _in_order(batches):
        replayed.play(batch)
    return replayed


def _in_order(batches: Sequence[Entry]) -> list[Entry]:
    """By number within a catalogue, by time between them."""
    chains: dict[object, list[Entry]] = {}
    for batch in batches:
        chains.setdefault(batch.quads[0].graph_name, []).append(batch)
    return list(merge(*chains.values(), key=lambda entry: v.in_time(entry.time)))


def _needed(
    store: Store, replayed: Replayed, entries: Sequence[Entry], rewritings: Rewritings
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
    try:
        for _ in librarian.lines(key):
            pass
    except StoreError:
        return False
    return True
