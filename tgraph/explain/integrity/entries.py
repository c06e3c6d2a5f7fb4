"""The entries of a catalogue: whether each follows the one before, and which were signed."""

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
    """Something that is not as it was sealed: what happened to it, what sort of thing it is, its
    IRI or hash, and the rest in words."""

    kind: ProblemKind
    what: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class ChainEntry:
    """One entry of a catalogue; ``sequence`` is 0 where it has no number. ``previous`` and
    ``chain`` are the heads before and after it, as it says itself."""

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
    """All that the catalogue speaks of, in the order of the sequence numbers."""
    quads: defaultdict[str, list[Quad]] = defaultdict(list)
    for quad in store.match(None, None, None, NamedNode(catalogue)):
        quads[term_text(quad.subject)].append(quad)
    entries = [entry_from_quads(subject, stated) for subject, stated in quads.items()]
    return sorted(entries, key=lambda entry: (entry.sequence, entry.subject))


def entries_after(store: Store, catalogue: str, sequence: int) -> list[ChainEntry]:
    """The entries that follow that number one after the other; the others are not read."""
    graph, found = NamedNode(catalogue), list[ChainEntry]()
    while subject := entry_at(store, graph, sequence + len(found) + 1):
        found.append(entry_of(store, subject, catalogue))
    return found


def entry_of(store: Store, subject: NamedNode, catalogue: str) -> ChainEntry:
    """The entry of the catalogue for the subject."""
    return entry_from_quads(
        subject.value, list(store.match(subject, None, None, NamedNode(catalogue)))
    )


def entry_from_quads(subject: str, quads: Sequence[Quad]) -> ChainEntry:
    """Return the entry that the quads of a catalogue state of the subject."""
    said = stated(quads)
    number = said.get(v.tg("sequence"), "")
    return ChainEntry(
        subject,
        int(number) if number.isdecimal() else 0,
        said.get(v.tg("kind"), ""),
        said.get(v.tg("hash"), ""),
        said.get(v.tg("previousHash"), ""),
        said.get(CHAIN_HASH, ""),
        said.get(v.prov("generatedAtTime"), ""),
        said.get(v.tg("generation"), ""),
        tuple(quads),
    )


def broken_links(entries: Sequence[ChainEntry]) -> Iterator[Problem]:
    """What is wrong with the chain itself: entries that were changed, that are missing between
    others, or that stand in another place than they were sealed for."""
    head = Head(0, GENESIS)
    for entry in entries:
        if not entry.sequence:
            detail = "The catalogue speaks of something that has no place in the chain."
            yield Problem("added", "entry", entry.subject, detail)
            continue
        if chain_hash(entry.quads) != entry.chain:
            yield Problem("altered", "entry", entry.subject, _place(entry) + "says something else.")
        yield from _gap(head, entry)
        head = Head(entry.sequence, entry.chain)


def _gap(head: Head, entry: ChainEntry) -> Iterator[Problem]:
    if entry.sequence > head.sequence + 1:
        first, last = head.sequence + 1, entry.sequence - 1
        which = f"Entry {first}" if first == last else f"Entries {first} to {last}"
        detail = f"{which} of the chain, before this one, can't be found."
        yield Problem("missing", "entry", entry.subject, detail)
    elif entry.sequence <= head.sequence:
        yield Problem("added", "entry", entry.subject, _place(entry) + "has its number twice.")
    elif entry.previous != head.hash:
        detail = _place(entry) + "does not follow the entry before it."
        yield Problem("reordered", "entry", entry.subject, detail)


def last_head(entries: Iterable[ChainEntry]) -> Head:
    """The end of the chain, as its last entry has it."""
    numbered = [Head(entry.sequence, entry.chain) for entry in entries if entry.sequence]
    return numbered[-1] if numbered else Head(0, GENESIS)


def _place(entry: ChainEntry) -> str:
    return f"Entry {entry.sequence} of the chain "


def stated(quads: Iterable[Quad]) -> dict[NamedNode, str]:
    """What quads of one subject say, as texts by their properties."""
    return {quad.predicate: term_text(quad.object) for quad in quads}


def term_text(term: object) -> str:
    """A term's text or IRI; whatever else a tampered store holds as N-Triples."""
    return term.value if isinstance(term, Literal | NamedNode) else str(term)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries of the chain, by number, that one signature was the first to cover; ``signature`` is
    its IRI and ``time`` when it was made. Both are empty where none covers them."""

    first: int
    last: int
    signature: str
    time: str


@dataclass(frozen=True, slots=True)
class Signatures:
    """What a key has signed of a chain: ``covered`` is the number of entries that a valid signature
    covers, from the first on, ``valid`` how many there are, ``others`` those of other keys, and
    ``stretches`` tell who was covered when. ``key`` is the key's id."""

    key: str
    covered: int
    valid: int
    others: int
    stretches: tuple[Stretch, ...]
    problems: tuple[Problem, ...]


def check_signatures(entries: Sequence[ChainEntry], catalogue: str, key: PublicKey) -> Signatures:
    """Verify each signature of the key against the chain as it is. A signature that does not hold,
    or that there is none at all, is a problem: the chain was computed again, or another key signed.
    A signature covers what stands before it only as far as no link of the chain is broken.
    """
    made = [entry for entry in entries if entry.kind == KIND]
    own = [e for e in made if stated(e.quads).get(v.prov("wasAttributedTo")) == key.agent]
    whole = _whole(entries)
    valid = [e for e in own if e.sequence <= whole and _holds(e, catalogue, key)]
    problems = tuple(_wrong(own, valid, entries, key))
    covered = max((entry.sequence - 1 for entry in valid), default=0)
    stretches = tuple(_stretches(valid, max((entry.sequence for entry in entries), default=0)))
    return Signatures(key.id, covered, len(valid), len(made) - len(own), stretches, problems)


def _whole(entries: Sequence[ChainEntry]) -> int:
    """How many entries there are before the first that was changed, or does not follow."""
    broken = next(broken_links(entries), None)
    if broken is None:
        return len(entries)
    return next(n for n, entry in enumerate(entries) if entry.subject == broken.subject)


def _holds(entry: ChainEntry, catalogue: str, key: PublicKey) -> bool:
    head = Head(entry.sequence - 1, entry.previous)
    return key.signed(statement_of(catalogue, head), stated(entry.quads).get(v.tg("signature"), ""))


def _wrong(
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
        detail = "No entry of the chain was signed with this key."
        yield Problem("missing", "signature", key.agent, detail)


def _stretches(valid: Sequence[ChainEntry], last: int) -> Iterator[Stretch]:
    """What each signature was the first to cover, and the rest; a signature is covered by the next
    one."""
    first = 1
    for entry in valid:
        yield Stretch(first, entry.sequence - 1, entry.subject, entry.time)
        first = entry.sequence
    if first <= last:
        yield Stretch(first, last, "", "")
