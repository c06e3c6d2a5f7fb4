"""Vector sets of new knowledge; vectors of unchanged texts are kept."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.engine.index.raptor_tree import grow_tree, wants_tree
from tgraph.engine.index.saved_tables import save_tables
from tgraph.errors import StoreError
from tgraph.index.summary_tree import standing_tree
from tgraph.index.vectors.base import VectorIndex
from tgraph.index.vectors.items import KINDS, PLURALS, items_of
from tgraph.models.base import Embedder
from tgraph.models.reply_cache import CachedEmbedder
from tgraph.store.snapshot import read_pointer

CACHE = "embeddings"


def wrap_with_cache(embedder: Embedder, cache: Path) -> Embedder:
    """Wrap a paid embedder with a cache, so that interrupted runs do not pay for texts twice."""
    return CachedEmbedder(embedder, cache / CACHE) if embedder.agent.kind == "model" else embedder


def embed_knowledge(context: IndexContext, *, tree: bool = False) -> bool:
    """Write vector sets beside the working copy; return False if published vectors still fit.

    The summary tree is made of chunk vectors, so the tree grows here where a tree is kept: by
    the settings, because a tree exists, or because ``tree`` asks for it."""
    tree = tree or wants_tree(context)
    grown = not tree or bool(standing_tree(context.copy.store))
    previous = {kind: load_previous_vectors(context, kind) for kind in KINDS}
    if (
        grown
        and not context.copy.changed
        and all(vector_set is not None for vector_set in previous.values())
    ):
        return False
    generation = context.ledger.generation(context.copy.store) + 1
    sets: dict[str, VectorIndex] = {}
    for kind in KINDS:
        if tree and kind == "summary":
            sets[kind] = grow_tree(context, sets["chunk"], previous[kind])
        else:
            sets[kind] = _embed_kind(context, kind, previous[kind])
        sets[kind].save(context.copy.vectors, generation)
        sets[kind] = context.parts.vector_store.open_vectors(
            context.copy.vectors, kind
        )  # mapped, so that memory is free
    context.record.write_calls(context.copy)
    save_tables(context, sets, generation)
    return True


def _embed_kind(context: IndexContext, kind: str, previous: VectorIndex | None) -> VectorIndex:
    """Return vectors of a kind, revising earlier vectors where changes are known."""
    store, read = context.copy.store, (context.librarian, context.evidence)

    def show_progress(done: int, total: int) -> None:
        context.record.write_calls(context.copy)  # which are as large as the vectors
        context.report_progress("Embedding", done, total, PLURALS[kind])

    callbacks = show_progress, context.record.call
    touched = _touched_keys(context, kind)
    if touched is not None and previous is not None:
        items = items_of(kind, store, *read, touched)
        revised = context.parts.vector_store.revise_vectors(
            previous, items, touched, context.embedder, *callbacks
        )
        if revised is not None:
            return revised
    items = items_of(kind, store, *read)
    return context.parts.vector_store.build_vectors(
        kind, items, context.embedder, previous, *callbacks
    )


def _touched_keys(context: IndexContext, kind: str) -> Collection[str] | None:
    """Return keys of a kind with possibly changed texts; None if unknown."""
    keys, quads = context.changes.keys, context.copy.changed_quads
    if keys is None or quads is None:
        return None
    if kind in ("entity", "edge"):
        return keys.resources if kind == "entity" else keys.edges
    prefix = _PREFIXES[kind]
    subjects = (q.subject.value for q in quads if isinstance(q.subject, NamedNode))
    touched_subjects = {subject for subject in subjects if subject.startswith(prefix)}
    return touched_subjects.union(keys.chunks) if kind in ("chunk", "context") else touched_subjects


_PREFIXES = {
    "chunk": f"{v.URN}chunk:",
    "context": f"{v.URN}chunk:",
    "report": f"{v.URN}report:",
    "summary": f"{v.URN}summary:",
}


def load_previous_vectors(context: IndexContext, kind: str) -> VectorIndex | None:
    """Return the previous generation's vectors, if complete and produced by the current
    embedder."""
    folder = context.ledger.folder
    pointer = read_pointer(folder)
    if pointer is None:
        return None
    try:
        return context.parts.vector_store.open_vectors(
            folder.vectors,
            kind,
            generation=pointer.generation,
            agent=context.embedder.agent,
        )
    except StoreError as error:
        if pointer.generation:
            context.message(f"The {kind} vectors are rebuilt: {error.message}")
        return None
