"""Catalogue entries: chain links and signatures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.record.chain import CHAIN_HASH, GENESIS, Head, chain_hash, entry_at
from tgraph.record.signing import KIND, PublicKey, statement_of
from tgraph.store.base import Store

ProblemKind = OneOf["altered", "added", "missing", "reordered"]


@dataclass(frozen=True, slots=True)
class Problem:
    """An integrity problem: kind of change, kind of object, IRI or hash, and a description."""

    kind: ProblemKind
    what: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """A catalogue entry; ``sequence`` is 0 without a number.

    ``previous`` and ``chain`` are heads before and after the entry, as stated by the entry
    itself."""

    subject: str
    sequence: int
    kind: str
    hash: str
    previous: str
    chain: str
    time: str
    generation: str
    quads: tuple[Quad, ...]


def read_entries(store: Store, catalogue: str) -> list[ChainEntry]:
    """Return all catalogue entries, sorted by sequence number."""
    quads: defaultdict[str, list[Quad]] = defaultdict(list)
    for quad in store.match(None, None, None, NamedNode(catalogue)):
        quads[term_text(quad.subject)].append(quad)
    entries = [entry_from_quads(subject, subject_quads) for subject, subject_quads in quads.items()]
    return sorted(entries, key=lambda entry: (entry.sequence, entry.subject))


def entries_after(store: Store, catalogue: str, sequence: int) -> list[ChainEntry]:
    """Return consecutive entries after a sequence number, without reading other entries."""
    graph, entries = NamedNode(catalogue), list[ChainEntry]()
    while subject := entry_at(store, graph, sequence + len(entries) + 1):
        entries.append(entry_of(store, subject, catalogue))
    return entries


def entry_of(store: Store, subject: NamedNode, catalogue: str) -> ChainEntry:
    """Return the catalogue entry of a subject."""
    return entry_from_quads(
        subject.value, list(store.match(subject, None, None, NamedNode(catalogue)))
    )


def entry_from_quads(subject: str, quads: Sequence[Quad]) -> ChainEntry:
    """Return the entry that the quads of a catalogue state of the subject."""
    properties = values_by_property(quads)
    number = properties.get(v.tg("sequence"), "")
    return ChainEntry(
        subject,
        int(number) if number.isdecimal() else 0,
        properties.get(v.tg("kind"), ""),
        properties.get(v.tg("hash"), ""),
        properties.get(v.tg("previousHash"), ""),
        properties.get(CHAIN_HASH, ""),
        properties.get(v.prov("generatedAtTime"), ""),
        properties.get(v.tg("generation"), ""),
        tuple(quads),
    )


def broken_links(entries: Sequence[ChainEntry]) -> Iterator[Problem]:
    """Yield chain problems: altered entries, missing entries, and entries at a different place
    than sealed."""
    head = Head(0, GENESIS)
    for entry in entries:
        if not entry.sequence:
            detail = "The catalogue contains an item without an entry in the chain."
            yield Problem("added", "entry", entry.subject, detail)
            continue
        if chain_hash(entry.quads) != entry.chain:
            yield Problem(
                "altered", "entry", entry.subject, _entry_prefix(entry) + "says something else."
            )
        yield from _find_gap(head, entry)
        head = Head(entry.sequence, entry.chain)


def _find_gap(head: Head, entry: ChainEntry) -> Iterator[Problem]:
    if entry.sequence > head.sequence + 1:
        first, last = head.sequence + 1, entry.sequence - 1
        entry_range = f"Entry {first}" if first == last else f"Entries {first} to {last}"
        detail = f"{entry_range} of the chain, before this one, can't be found."
        yield Problem("missing", "entry", entry.subject, detail)
    elif entry.sequence <= head.sequence:
        yield Problem(
            "added", "entry", entry.subject, _entry_prefix(entry) + "has its number twice."
        )
    elif entry.previous != head.hash:
        detail = _entry_prefix(entry) + "does not follow the entry before it."
        yield Problem("reordered", "entry", entry.subject, detail)


def last_head(entries: Iterable[ChainEntry]) -> Head:
    """Return the chain head from its last numbered entry."""
    numbered = [Head(entry.sequence, entry.chain) for entry in entries if entry.sequence]
    return numbered[-1] if numbered else Head(0, GENESIS)


def _entry_prefix(entry: ChainEntry) -> str:
    return f"Entry {entry.sequence} of the chain "


def values_by_property(quads: Iterable[Quad]) -> dict[NamedNode, str]:
    """Return quad objects as texts, by property, for a single subject."""
    return {quad.predicate: term_text(quad.object) for quad in quads}


def term_text(term: object) -> str:
    """A term's text or IRI; whatever else a tampered store holds as N-Triples."""
    return term.value if isinstance(term, Literal | NamedNode) else str(term)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of chain entries covered first by the same signature: ``signature`` is its IRI,
    ``time`` its creation time.

    Both are empty for entries without a signature."""

    first: int
    last: int
    signature: str
    time: str


@dataclass(frozen=True, slots=True)
class Signatures:
    """Signature coverage of a chain by a single key.

    ``covered`` is the number of entries, from the first on, covered by a valid signature,
    ``valid`` the number of valid signatures, ``others`` the number of signatures by other keys;
    ``stretches`` list covered ranges with times. ``key`` is the key ID."""

    key: str
    covered: int
    valid: int
    others: int
    stretches: tuple[Stretch, ...]
    problems: tuple[Problem, ...]


def check_signatures(entries: Sequence[ChainEntry], catalogue: str, key: PublicKey) -> Signatures:
    """Verify all signatures of a key against the current chain.

    An invalid signature, or the absence of any signature, is a problem: the chain was
    recomputed, or another key signed it. A signature covers preceding entries only up to the
    first broken chain link."""
    signature_entries = [entry for entry in entries if entry.kind == KIND]
    key_entries = [
        e
        for e in signature_entries
        if values_by_property(e.quads).get(v.prov("wasAttributedTo")) == key.agent
    ]
    intact_count = _count_intact(entries)
    valid = [
        e for e in key_entries if e.sequence <= intact_count and signature_holds(e, catalogue, key)
    ]
    problems = tuple(_find_wrong_signatures(key_entries, valid, entries, key))
    covered = max((entry.sequence - 1 for entry in valid), default=0)
    stretches = tuple(
        _signed_stretches(valid, max((entry.sequence for entry in entries), default=0))
    )
    return Signatures(
        key.id, covered, len(valid), len(signature_entries) - len(key_entries), stretches, problems
    )


def _count_intact(entries: Sequence[ChainEntry]) -> int:
    """Return the number of entries before the first broken chain link."""
    broken = next(broken_links(entries), None)
    if broken is None:
        return len(entries)
    return next(n for n, entry in enumerate(entries) if entry.subject == broken.subject)


def signature_holds(entry: ChainEntry, catalogue: str, key: PublicKey) -> bool:
    """Return whether the entry's signature signs the chain head before the entry."""
    head = Head(entry.sequence - 1, entry.previous)
    return key.verify_signature(
        statement_of(catalogue, head), values_by_property(entry.quads).get(v.tg("signature"), "")
    )


def _find_wrong_signatures(
    own: Sequence[ChainEntry],
    valid: Sequence[ChainEntry],
    entries: Sequence[ChainEntry],
    key: PublicKey,
) -> Iterator[Problem]:
    for entry in own:
        if entry not in valid:
            detail = (
                f"Entry {entry.sequence} is no signature by this key over the chain before it: that"
                " was changed or computed again, or the signature is of another chain."
            )
            yield Problem("altered", "signature", entry.subject, detail)
    if entries and not own:
        detail = "This key signed no entry of the chain."
        yield Problem("missing", "signature", key.agent, detail)


def _signed_stretches(valid: Sequence[ChainEntry], last: int) -> Iterator[Stretch]:
    """Yield entry ranges covered first by each signature, then the uncovered rest; a signature
    entry is covered by the next signature."""
    first = 1
    for entry in valid:
        yield Stretch(first, entry.sequence - 1, entry.subject, entry.time)
        first = entry.sequence
    if first <= last:
        yield Stretch(first, last, "", "")
