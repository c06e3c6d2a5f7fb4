"""Which entries of a chain a key has signed, and whether its signatures hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tgraph import vocabulary as v
from tgraph.explain.chained import Entry, Problem, broken_links, stated
from tgraph.record.chain import Head
from tgraph.record.signing import KIND, PublicKey, statement_of


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


def check_signatures(entries: Sequence[Entry], catalogue: str, key: PublicKey) -> Signatures:
    """Verify each signature of the key against the chain as it is. A signature that does not hold,
    or that there is none at all, is a problem: the chain was computed again, or another key signed.
    A signature covers what stands before it only as far as no link of the chain is broken.
    """
    made = [entry for entry in entries if entry.kind == KIND]
    own = [
        entry for entry in made if stated(entry.quads).get(v.prov("wasAttributedTo")) == key.agent
    ]
    whole = _whole(entries)
    valid = [e for e in own if e.sequence <= whole and _holds(e, catalogue, key)]
    problems = tuple(_wrong(own, valid, entries, key))
    covered = max((entry.sequence - 1 for entry in valid), default=0)
    last = max((entry.sequence for entry in entries), default=0)
    stretches = tuple(_stretches(valid, last))
    return Signatures(key.id, covered, len(valid), len(made) - len(own), stretches, problems)


def _whole(entries: Sequence[Entry]) -> int:
    """How many entries there are before the first that was changed, or does not follow."""
    broken = next(broken_links(entries), None)
    if broken is None:
        return len(entries)
    return next(n for n, entry in enumerate(entries) if entry.subject == broken.subject)


def _holds(entry: Entry, catalogue: str, key: PublicKey) -> bool:
    head = Head(entry.sequence - 1, entry.previous)
    return key.signed(statement_of(catalogue, head), stated(entry.quads).get(v.tg("signature"), ""))


def _wrong(
    own: Sequence[Entry], valid: Sequence[Entry], entries: Sequence[Entry], key: PublicKey
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


def _stretches(valid: Sequence[Entry], last: int) -> Iterator[Stretch]:
    """What each signature was the first to cover, and the rest; a signature is covered by the next
    one."""
    first = 1
    for entry in valid:
        yield Stretch(first, entry.sequence - 1, entry.subject, entry.time)
        first = entry.sequence
    if first <= last:
        yield Stretch(first, last, "", "")
