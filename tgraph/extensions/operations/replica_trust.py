"""What a replica knows of the chain that it follows, and the comparison of a log with it.

A log is a claim of whoever can write to the storage, and so is its epoch. A log that begins anew
has to contain the chain that the replica knows, and the erasures that explain each content that
differs from its seal; where the known chain ended with a signature, it has to end with one by the
same key."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import EndpointError, VerificationError
from tgraph.explain.integrity.entries import (
    ChainEntry,
    entry_from_quads,
    entry_of,
    signature_holds,
    values_by_property,
)
from tgraph.explain.integrity.erasures import Rewritings
from tgraph.explain.integrity.sealed_entries import SealedEntries
from tgraph.extensions.operations.replica_log import LogEnd, Position, read_segments
from tgraph.extensions.operations.replica_storage import AGAIN, Storage
from tgraph.librarian import Librarian
from tgraph.record.bundle import ERASURE
from tgraph.record.chain import GENESIS, Head, canonical_hash, chain_hash, entry_at, read_head
from tgraph.record.signing import KIND, PublicKey
from tgraph.store.base import Store, text_of
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import read_nquads

_RENEWED = "If the writer changed the key, follow into a new folder. Else find out who shipped it."


@dataclass(frozen=True, slots=True)
class KnownChains:
    """Chain heads that a replica has verified, and the keys that signed them, by catalogue."""

    heads: Mapping[str, Head]
    keys: Mapping[str, PublicKey]

    @classmethod
    def from_store(cls, store: Store, librarian: Librarian) -> KnownChains:
        catalogues = SealedEntries(store, librarian).catalogues
        heads = {name: read_head(store, NamedNode(name)) for name in catalogues}
        keys = {name: key for name in heads if (key := _last_key(store, name, heads[name]))}
        return cls(heads, keys)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> KnownChains:
        keys = {name: PublicKey(base64.b64decode(text)) for name, text in state["keys"].items()}
        return cls({name: Head(*head) for name, head in state["heads"].items()}, keys)

    @property
    def state(self) -> dict[str, Any]:
        """The value that JSON keeps."""
        heads = {name: [head.sequence, head.hash] for name, head in self.heads.items()}
        return {"heads": heads, "keys": {name: key.text for name, key in self.keys.items()}}

    def advance(self, reached: KnownChains) -> KnownChains:
        """Return the chains after a verified round; a known key stays the key of its catalogue."""
        return KnownChains(reached.heads, {**reached.keys, **self.keys})


def _last_key(store: Store, catalogue: str, head: Head) -> PublicKey | None:
    """Return the key whose signature ends the chain."""
    subject = entry_at(store, NamedNode(catalogue), head.sequence)
    entry = entry_of(store, subject, catalogue) if subject else None
    if entry is None or entry.kind != KIND:
        return None
    agent = values_by_property(entry.quads).get(v.prov("wasAttributedTo"), "")
    for quad in store.match(NamedNode(agent), v.tg("publicKey"), None, v.SOURCE_GRAPH):
        key = PublicKey(base64.b64decode(text_of(quad.object)))
        if key.agent == agent and signature_holds(entry, catalogue, key):
            return key
    return None


def must_be_examined(known: KnownChains, reached: Position, end: LogEnd) -> bool:
    """Return whether more than the next entries has to be compared: the log begins anew, or the
    known chain is signed."""
    if reached.number == end.position.number and reached.epoch == end.position.epoch:
        return False
    begins = not reached.number or end.position.epoch > reached.epoch
    return bool(known.keys) or (begins and bool(known.heads or end.position.epoch))


def examine_log(storage: Storage, known: KnownChains, reached: Position, end: LogEnd) -> None:
    """Compare the log behind a position with the known chains, and change nothing.

    Raise ``VerificationError`` if the log is of another chain, does not explain a changed
    content, or lacks a signature by the known key; ``EndpointError`` if it is being shipped
    anew."""
    if known.heads and not end.position.number:
        raise EndpointError(
            f"The log at {storage.url} begins anew and is not shipped yet.",
            "The replica stays as it is. Repeat the command after the next `tgraph ship`.",
        )
    begins = not reached.number
    log = _ReadLog(storage, {} if begins else known.heads)
    for _, segment in read_segments(storage, reached, end.position):
        log.read_entries(segment.entries)
    if begins:
        log.check_known_heads(known.heads)
        log.check_erasures(end.position.epoch)
    log.check_signatures(known.keys)


class _ReadLog:
    """The chains of a log: their ends, their erasures, and the contents that differ from seals."""

    def __init__(self, storage: Storage, heads: Mapping[str, Head]) -> None:
        self._storage = storage
        self._heads = dict(heads)
        self._chain_hashes: dict[tuple[str, int], str] = {}
        self._ends: dict[str, ChainEntry] = {}
        self._erasures: list[ChainEntry] = []
        self._bundles = OxigraphStore.memory()
        self._changed: dict[str, tuple[str, str]] = {}

    def read_entries(self, lines: Iterable[Mapping[str, str]]) -> None:
        for told in lines:
            quads = read_nquads(told["quads"])
            entry = entry_from_quads(text_of(quads[0].subject), quads)
            catalogue = text_of(quads[0].graph_name)
            head = self._heads.get(catalogue, Head(0, GENESIS))
            if (entry.sequence, entry.previous) != (head.sequence + 1, head.hash):
                raise self._log_error(f"{entry.subject} does not follow the entry before it")
            if chain_hash(quads) != entry.chain:
                raise self._log_error(f"{entry.subject} says something else than was sealed")
            self._heads[catalogue] = Head(entry.sequence, entry.chain)
            self._chain_hashes[catalogue, entry.sequence] = entry.chain
            self._ends[catalogue] = entry
            if told["content"] != entry.hash:
                self._changed[entry.subject] = entry.hash, told["content"]
            if entry.kind == ERASURE.name:
                self._read_erasure(entry, told)

    def _read_erasure(self, entry: ChainEntry, told: Mapping[str, str]) -> None:
        bundle = read_nquads(told.get("bundle", ""))
        if canonical_hash(bundle) != told["content"]:
            raise self._log_error(f"{entry.subject} has other quads than were sealed")
        self._bundles.extend(bundle)
        self._erasures.append(entry)

    def check_known_heads(self, heads: Mapping[str, Head]) -> None:
        for catalogue, head in heads.items():
            if head.sequence and self._chain_hashes.get((catalogue, head.sequence)) != head.hash:
                raise self._log_error(
                    f"entry {head.sequence} of the chain, which the replica knows, is not in it;"
                    " it is the log of another graph, or was made anew by somebody else"
                )

    def check_erasures(self, epoch: int) -> None:
        if len(self._erasures) != epoch:
            raise self._log_error(
                f"its epoch is {epoch}, and its chain has {len(self._erasures)} erasures"
            )
        check_explained(self._changed, Rewritings(self._bundles, self._erasures), self._storage)

    def check_signatures(self, keys: Mapping[str, PublicKey]) -> None:
        for catalogue, entry in self._ends.items():
            key = keys.get(catalogue)
            if key and not (entry.kind == KIND and signature_holds(entry, catalogue, key)):
                raise VerificationError(
                    f"The log at {self._storage.url} does not end with a signature by the key"
                    f" {key.id[:16]}, which signed the known chain.",
                    _RENEWED,
                )

    def _log_error(self, what: str) -> VerificationError:
        return VerificationError(f"The log at {self._storage.url} is not believed: {what}.", AGAIN)


def check_explained(
    changed: Mapping[str, tuple[str, str]], rewritings: Rewritings, storage: Storage
) -> None:
    """Raise ``VerificationError`` for a changed hash that no erasure explains; ``changed`` has
    sealed hash and shipped hash by subject."""
    for subject, (sealed, shipped) in changed.items():
        if rewritings.hash_of(subject, sealed) != shipped:
            raise VerificationError(
                f"{subject} in the log at {storage.url} is another than was sealed, and no erasure"
                " explains it.",
                AGAIN,
            )
