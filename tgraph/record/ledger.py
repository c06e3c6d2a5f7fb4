"""The ledger: how finished journals and staged changes enter the store, sealed and chained.

Each entry of the catalogue has a sequence number, the hash of what it seals, the head of the chain
before it (``tg:previousHash``) and the head after it (``tg:chainHash``), a SHA-256 over all of
these. A bundle is sealed by the RDFC-1.0 hash of its quads, a batch by the hash of its text, which
the librarian keeps.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from pyoxigraph import (
    CanonicalizationAlgorithm,
    Dataset,
    Literal,
    NamedNode,
    Quad,
    RdfFormat,
    parse,
)

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.store.base import Store
from tgraph.store.folder import CollectionFolder
from tgraph.store.journal import Frame, is_free, read_frames
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import publish, read_pointer
from tgraph.store.statements import Statable, Statements, iri, nquads, to_bytes
from tgraph.store.writer import apply, committed, writing

GENESIS = "0" * 64
"""The head of an empty chain."""


def canonical_hash(quads: Iterable[Quad]) -> str:
    """SHA-256 of the RDFC-1.0 canonical N-Quads of the quads (W3C Recommendation, 2024)."""
    dataset = Dataset(quads)
    dataset.canonicalize(CanonicalizationAlgorithm.RDFC_1_0)
    lines = to_bytes(dataset).splitlines(keepends=True)
    return sha256(b"".join(sorted(lines))).hexdigest()


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a catalogue's chain: how many entries it has and the hash over them all."""

    sequence: int
    hash: str


def read_head(store: Store, catalogue: NamedNode) -> Head:
    """The head of the chain, found in a logarithmic number of look-ups."""
    known, beyond = 0, 1
    while _entry(store, catalogue, beyond) is not None:
        known, beyond = beyond, beyond * 2
    while beyond - known > 1:
        middle = (known + beyond) // 2
        if _entry(store, catalogue, middle) is None:
            beyond = middle
        else:
            known = middle
    entry = _entry(store, catalogue, known) if known else None
    if entry is None:
        return Head(0, GENESIS)
    chained = next(store.match(entry, v.tg("chainHash"), None, catalogue)).object
    assert isinstance(chained, Literal)
    return Head(known, chained.value)


def _entry(store: Store, catalogue: NamedNode, sequence: int) -> NamedNode | None:
    number = Literal(str(sequence), datatype=v.xsd("integer"))
    for quad in store.match(None, v.tg("sequence"), number, catalogue):
        assert isinstance(quad.subject, NamedNode)
        return quad.subject
    return None


def chain_hash(head: Head, kind: str, subject: str, content_hash: str) -> str:
    """The head of the chain once the entry has been added."""
    line = "\n".join([str(head.sequence + 1), kind, subject, content_hash, head.hash])
    return sha256(line.encode()).hexdigest()


class Chain:
    """Adds entries to the catalogue, in memory until they are written with what they seal."""

    def __init__(self, store: Store, catalogue: str, clock: Callable[[], datetime]) -> None:
        self.catalogue = NamedNode(catalogue)
        self.head = read_head(store, self.catalogue)
        self._store = store
        self._clock = clock
        self._new: set[str] = set()

    def has(self, subject: str) -> bool:
        if subject in self._new:
            return True
        found = self._store.match(NamedNode(subject), v.tg("sequence"), None, self.catalogue)
        return next(found, None) is not None

    def entry(
        self, subject: str, kind: str, content_hash: str, *pairs: tuple[NamedNode, Statable]
    ) -> list[Quad]:
        """The quads of the next entry, which seals ``subject`` by its hash."""
        after = chain_hash(self.head, kind, subject, content_hash)
        out = Statements(self.catalogue)
        classes = [v.prov("Entity"), v.prov("Bundle") if kind != "batch" else v.tg("Batch")]
        out.add(
            subject,
            (v.RDF_TYPE, classes),
            (v.tg("kind"), kind),
            (v.prov("generatedAtTime"), self._clock()),
            (v.tg("sequence"), self.head.sequence + 1),
            (v.tg("hash"), content_hash),
            (v.tg("previousHash"), self.head.hash),
            (v.tg("chainHash"), after),
            *pairs,
        )
        self.head = Head(self.head.sequence + 1, after)
        self._new.add(subject)
        return out.quads


@dataclass(frozen=True, slots=True)
class Folded:
    """What a fold did."""

    sessions: int
    aborted: int
    batches: int


class Ledger:
    """The writer of one collection: folds what is waiting and publishes the result."""

    def __init__(
        self, folder: CollectionFolder, catalogue: str, clock: Callable[[], datetime]
    ) -> None:
        self.folder = folder
        self.librarian = Librarian(folder.librarian)
        self._catalogue = catalogue
        self._clock = clock

    def waiting(self) -> bool:
        """Whether there is something to fold."""
        return bool(committed(self.folder)) or any(map(is_free, self._journals()))

    def fold(
        self, *, timeout: float | None = None, waiting: Callable[[], None] = lambda: None
    ) -> Folded:
        """Bring staged changes and finished journals into the store and publish it."""
        with self.open(timeout=timeout, waiting=waiting) as (_, folded):
            return folded

    @contextmanager
    def open(
        self, *, timeout: float | None = None, waiting: Callable[[], None] = lambda: None
    ) -> Iterator[tuple[OxigraphStore, Folded]]:
        """The store for writing, everything that waited already folded in and published."""
        with writing(self.folder, timeout=timeout, waiting=waiting) as store:
            changes = committed(self.folder)
            for change in changes:
                self._apply(store, change)
            journals = [path for path in self._journals() if is_free(path)]
            folded = self._fold_journals(store, journals)
            if changes or journals or read_pointer(self.folder) is None:
                self.publish(store)
            for change in changes:
                shutil.rmtree(change, ignore_errors=True)
            for path in journals:
                path.unlink(missing_ok=True)
            yield store, Folded(folded.sessions, folded.aborted, len(changes))

    def generation(self, store: Store) -> int:
        """The knowledge generation: how many changes of knowledge there have been."""
        rows = store.match(None, v.tg("generation"), None, NamedNode(self._catalogue))
        return max((int(quad.object.value) for quad in rows), default=0)  # type: ignore[union-attr]

    def _journals(self) -> list[Path]:
        if not self.folder.journals.is_dir():
            return []
        found = [path for path in self.folder.journals.iterdir() if path.suffix == ".journal"]
        return sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))

    def publish(self, store: OxigraphStore) -> None:
        """Let readers see the store as it is now, with the vectors of the collection's folder."""
        store.flush()
        head = read_head(store, NamedNode(self._catalogue))
        publish(self.folder, store, self.generation(store), head.sequence, head.hash)

    # --- staged changes ---

    def _apply(self, store: OxigraphStore, change: Path) -> None:
        commit = json.loads((change / "commit.json").read_bytes())
        apply(store, change)
        chain = Chain(store, commit["catalogue"], self._clock)
        if not chain.has(commit["batch"]):
            store.extend(
                chain.entry(
                    commit["batch"],
                    "batch",
                    commit["hash"],
                    (v.tg("contentHash"), commit["hash"]),
                    (v.tg("generation"), self.generation(store) + 1),
                    (v.tg("run"), iri(commit["run"])),
                )
            )
        _swap_vectors(change / "vectors", self.folder.vectors)

    # --- journals ---

    def _fold_journals(self, store: OxigraphStore, journals: Iterable[Path]) -> Folded:
        chains: dict[str, Chain] = {}
        sessions = aborted = 0
        for path in journals:
            frames = list(read_frames(path))
            if not frames or frames[0].get("type") != "session":
                continue
            head = frames[0]
            chain = chains.get(head["catalogue"])
            if chain is None:
                chain = chains[head["catalogue"]] = Chain(store, head["catalogue"], self._clock)
            if not chain.has(head["bundle"]):
                finished = frames[-1]["type"] == "end"
                store.extend(self._seal(store, chain, frames, finished))
                sessions += 1
                aborted += not finished
        return Folded(sessions, aborted, 0)

    def _seal(self, store: Store, chain: Chain, frames: list[Frame], finished: bool) -> list[Quad]:
        head = frames[0]
        for frame in frames:
            for text in frame.get("texts", {}).values():
                self.librarian.put_text(text)
        bundle = [quad for frame in frames for quad in _quads(frame, "quads")]
        if not finished:
            bundle += _aborted(head, frames[-1])
        shared = [
            quad
            for frame in frames
            for quad in _quads(frame, "shared")
            if next(store.match(quad.subject, quad.predicate, quad.object, quad.graph_name), None)
            is None
        ]
        quads = bundle + shared
        if shared:
            quads += self._shared_batch(chain, shared)
        return quads + chain.entry(
            head["bundle"],
            "session",
            canonical_hash(bundle),
            (v.tg("session"), iri(head["session"])),
            (v.tg("sessionStarted"), datetime.fromisoformat(head["started"])),
            (v.tg("quadCount"), len(set(bundle))),
        )

    def _shared_batch(self, chain: Chain, shared: list[Quad]) -> list[Quad]:
        """Agents and prompts that a session was the first to name: a small batch of its own."""
        key = self.librarian.put_text(batch_text(sorted(set(nquads(shared).splitlines())), [], []))
        batch = f"{v.URN}batch:{key}"
        if chain.has(batch):
            return []
        return chain.entry(batch, "batch", key, (v.tg("contentHash"), key))


def batch_text(added: Iterable[str], removed: Iterable[str], content: Iterable[str]) -> str:
    """The text that seals a change: its N-Quads with ``+`` or ``-``, and the hashes it put in."""
    lines = [f"+{line}" for line in added]
    lines += [f"-{line}" for line in removed]
    lines += [f"={key}" for key in content]
    return "\n".join(lines) + "\n"


def _quads(frame: Mapping[str, str], part: str) -> list[Quad]:
    return list(parse(frame.get(part, ""), RdfFormat.N_QUADS))


def _aborted(head: Mapping[str, str], last: Mapping[str, str]) -> list[Quad]:
    """What is said of a session whose process died: it ended when it was last heard of."""
    out = Statements(NamedNode(head["bundle"]))
    out.add(
        head["session"],
        (v.prov("endedAtTime"), datetime.fromisoformat(last.get("time", head["started"]))),
        (v.tg("status"), "aborted"),
        (v.tg("error"), "The process ended before the session did."),
    )
    return out.quads


def _swap_vectors(new: Path, current: Path) -> None:
    """Put the new vector indexes in the place of the old; readers hold links to the old files."""
    if not new.is_dir():
        return
    if current.exists():
        shutil.rmtree(current)
    new.rename(current)
