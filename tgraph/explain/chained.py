"""The entries of a catalogue, and whether each still follows the one before."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.record.chain import CHAIN_HASH, GENESIS, Head, chain_hash
from tgraph.store.base import Store

Kind = OneOf["altered", "added", "missing", "reordered"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was sealed: what happened to it, what sort of thing it is, its
    IRI or hash, and the rest in words."""

    kind: Kind
    what: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Entry:
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


def read_entries(store: Store, catalogue: str) -> list[Entry]:
    """All that the catalogue speaks of, in the order of the sequence numbers."""
    quads: defaultdict[str, list[Quad]] = defaultdict(list)
    for quad in store.match(None, None, None, NamedNode(catalogue)):
        quads[term_text(quad.subject)].append(quad)
    entries = [_entry(subject, stated) for subject, stated in quads.items()]
    return sorted(entries, key=lambda entry: (entry.sequence, entry.subject))


def _entry(subject: str, quads: Sequence[Quad]) -> Entry:
    said = stated(quads)
    number = said.get(v.tg("sequence"), "")
    return Entry(
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


def broken_links(entries: Sequence[Entry]) -> Iterator[Problem]:
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


def _gap(head: Head, entry: Entry) -> Iterator[Problem]:
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


def last_head(entries: Iterable[Entry]) -> Head:
    """The end of the chain, as its last entry has it."""
    head = Head(0, GENESIS)
    for entry in entries:
        if entry.sequence:
            head = Head(entry.sequence, entry.chain)
    return head


def _place(entry: Entry) -> str:
    return f"Entry {entry.sequence} of the chain "


def stated(quads: Iterable[Quad]) -> dict[NamedNode, str]:
    """What quads of one subject say, as texts by their properties."""
    return {quad.predicate: term_text(quad.object) for quad in quads}


def term_text(term: object) -> str:
    """A term's text or IRI; whatever else a tampered store holds as N-Triples."""
    return term.value if isinstance(term, Literal | NamedNode) else str(term)
