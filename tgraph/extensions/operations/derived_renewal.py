"""Vectors and tables that came in a package: never believed, made anew of the verified record.

Tables are made of the store. Of vectors only the numbers of a text are taken over, by the hash of
the text, once a random sample of them has been compared with what the embedder makes of the same
texts; keys, lists and everything else about them are made of the store."""

from __future__ import annotations

import random
from contextlib import closing

from tgraph.engine.index.saved_tables import count_reports, keep_catalogue, tables_of
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import TgraphError
from tgraph.index.evidence import EvidenceReader
from tgraph.index.reports.report_table import stored_reports
from tgraph.index.sources import Texts
from tgraph.index.tabulation import make_tables
from tgraph.index.vectors.base import VectorIndex, VectorStore
from tgraph.index.vectors.items import KINDS, items_of
from tgraph.models.base import Embedder
from tgraph.store.oxigraph import OxigraphStore

SAMPLE = 64
"""Things of a kind whose vectors are compared; where there are no more, all are."""

_TABLES = ("lookups", "communities", "catalogue", "network")
_LEAST_SIMILARITY = 0.98
"""Of the same text on other processors; of another text it is far below."""

Items = list[tuple[str, str]]


def renew_derived(opened: OpenCollection, store: OxigraphStore) -> None:
    """Make vectors and tables in the collection's folder anew; the caller publishes them."""
    folder, generation = opened.folder.vectors, opened.ledger.generation(store)
    if not generation or not folder.is_dir():
        return
    for name in _TABLES:
        for path in folder.glob(f"{name}.*"):
            path.unlink()
    sets = {kind: _renew_vectors(opened, store, kind, generation) for kind in KINDS}
    usable = {kind: vectors for kind, vectors in sets.items() if vectors is not None}
    vectors = usable if len(usable) == len(KINDS) else {}
    with closing(tables_of(store, opened.librarian, vectors)) as table:
        table.save(folder, generation)
    renew_reports(opened, store, generation)
    keep_catalogue(store, folder, generation)


def _renew_vectors(
    opened: OpenCollection, store: OxigraphStore, kind: str, generation: int
) -> VectorIndex | None:
    """Return a kind's vectors, renewed; None where they are left to whoever asks first."""
    folder, vector_store = opened.folder.vectors, opened.parts.vector_store
    try:
        embedder = opened.parts.embedder
        received = vector_store.open_vectors(
            folder, kind, generation=generation, agent=embedder.agent
        )
        items = list(items_of(kind, store, opened.librarian))
        previous: VectorIndex | None = received
        if not _is_like_sample(vector_store, received, items, embedder):
            opened.message(f"The {kind} vectors that were received are not those of their texts.")
            previous = None
        vector_store.build_vectors(kind, items, embedder, previous).save(folder, generation)
        return vector_store.open_vectors(folder, kind, generation=generation)
    except TgraphError as error:
        opened.message(f"The {kind} vectors that were received are left out: {error.message}")
        for path in folder.glob(f"{kind}.*"):
            path.unlink()
        return None


def _is_like_sample(
    vector_store: VectorStore, received: VectorIndex, items: Items, embedder: Embedder
) -> bool:
    """Return whether vectors of a random sample are what the embedder makes of the texts."""
    import numpy as np

    iris = sorted({iri for iri, _ in items})
    sample = set(random.SystemRandom().sample(iris, min(SAMPLE, len(iris))))
    sample_items = [(iri, text) for iri, text in items if iri in sample]
    fresh = vector_store.build_vectors(received.kind, sample_items, embedder)
    places = [received.keys.find(iri) for iri in fresh.keys]
    if None in places:
        return False
    told = received.read_windows(np.array(places, dtype=np.int64))
    made = fresh.read_windows(np.arange(len(fresh), dtype=np.int64))
    if not np.array_equal(told.hashes, made.hashes):
        return False
    likeness = np.einsum("ij,ij->i", told.vectors, made.vectors)
    return bool((likeness >= _LEAST_SIMILARITY).all())


def renew_reports(opened: OpenCollection, store: OxigraphStore, generation: int) -> None:
    with (
        closing(make_tables(store, opened.librarian)) as table,
        closing(stored_reports(store)) as reports,
    ):
        evidence = EvidenceReader(table.evidence, Texts(store, opened.librarian))
        count_reports(reports, evidence, opened.parts)
        reports.save(opened.folder.vectors, generation)
