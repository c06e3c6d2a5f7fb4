"""The check of integrity: of what readers see, and of the store that it was published from."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import Quad

from tgraph.engine.updating import difference
from tgraph.explain.chained import Problem
from tgraph.explain.integrity import Integrity, check_integrity
from tgraph.librarian import Librarian
from tgraph.record.chain import Head
from tgraph.record.signing import PublicKey
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import to_bytes


def check(
    store: OxigraphStore,
    snapshot: Snapshot,
    librarian: Librarian,
    catalogue: str,
    saved: str | None,
    key: PublicKey | None = None,
) -> Integrity:
    """The integrity of the snapshot, with each quad in which the store differs from it; with a
    ``key``, the signatures by it too."""
    added, removed = difference(snapshot.store, store)
    pointer = snapshot.pointer
    return check_integrity(
        snapshot.store,
        librarian,
        catalogue,
        Head(pointer.sequence, pointer.head),
        saved,
        [*_differing("added", added), *_differing("missing", removed)],
        key,
    )


def _differing(kind: str, quads: list[Quad]) -> Iterator[Problem]:
    where = "is in the store and not in" if kind == "added" else "is not in the store but in"
    for quad in quads:
        line = to_bytes([quad]).decode().strip()
        detail = f"It {where} the snapshot that readers see."
        yield Problem("added" if kind == "added" else "missing", "quad", line, detail)
