"""Knowledge as it was at a generation, put together from what the record has of every change.

Each change of knowledge is a batch of the chain, kept as the lines it added and removed; the
newest changes are undone, one after the other, on a checkpoint that nobody else sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.erased import read_erasure
from tgraph.librarian import Librarian
from tgraph.store.base import Store
from tgraph.store.oxigraph import BULK, OxigraphStore


@contextmanager
def as_of(store: OxigraphStore, librarian: Librarian, generation: int) -> Iterator[OxigraphStore]:
    """The store with the knowledge and sources of a generation; sessions and agents stay as now.

    It costs what has changed since. ``StoreError`` where the text of a change can't be read.
    """
    changes = _later(store, generation)
    rewritten = _rewritten(store)
    with TemporaryDirectory(prefix="tgraph-past-") as folder:
        store.backup(Path(folder) / "store")
        past = OxigraphStore.open(Path(folder) / "store")
        try:
            for batch, key in changes:
                _undo(past, librarian, _followed(rewritten, batch, key))
            yield past
        finally:
            past.close()


def erased_since(store: Store, time: str) -> bool:
    """Whether text was erased after the time (an xsd:dateTime): what was known then can't be put
    together again."""
    then = datetime.fromisoformat(time)
    return any(
        datetime.fromisoformat(ended.object.value) > then
        for erasure in store.match(None, v.RDF_TYPE, v.tg("Erasure"), None)
        for ended in store.match(erasure.subject, v.prov("endedAtTime"), None, erasure.graph_name)
        if isinstance(ended.object, Literal)
    )


def _later(store: Store, generation: int) -> list[tuple[str, str]]:
    """The changes of knowledge after the generation, the newest first: batch and its hash."""
    found = []
    for batch in store.match(None, v.RDF_TYPE, v.tg("Batch"), None):
        subject, graph = batch.subject, batch.graph_name
        for number in store.match(subject, v.tg("generation"), None, graph):
            key = next(store.match(subject, v.tg("contentHash"), None, graph), None)
            made = int(number.object.value) if isinstance(number.object, Literal) else 0
            if made > generation and isinstance(subject, NamedNode) and key is not None:
                found.append((made, subject.value, getattr(key.object, "value", "")))
    return [(batch, key) for _, batch, key in sorted(found, reverse=True)]


def _rewritten(store: Store) -> list[dict[str, tuple[str, str]]]:
    """The hashes before and after of what each erasure rewrote, in the order of the erasures."""
    graphs = {quad.graph_name for quad in store.match(None, v.RDF_TYPE, v.tg("Erasure"), None)}
    done = [read_erasure(store, graph.value) for graph in graphs if isinstance(graph, NamedNode)]
    return [dict(each.hashes) for each in sorted(done, key=lambda each: v.in_time(each.what.time))]


def _followed(rewritten: list[dict[str, tuple[str, str]]], batch: str, key: str) -> str:
    """The hash under which the text of the batch is kept now."""
    for hashes in rewritten:
        old, new = hashes.get(batch, ("", ""))
        key = new if old == key else key
    return key


def _undo(store: OxigraphStore, librarian: Librarian, key: str) -> None:
    """Take back a batch. What it removed and added again was there before it."""
    removed = set(_lines(librarian, key, b"-"))
    added = (line for line in _lines(librarian, key, b"+") if line not in removed)
    store.remove(_quads(added))
    quads = _quads(iter(sorted(removed)))
    while some := list(islice(quads, BULK)):
        store.fill(some)


def _lines(librarian: Librarian, key: str, sign: bytes) -> Iterator[bytes]:
    return (line[1:] for line in librarian.lines(key) if line.startswith(sign))


def _quads(lines: Iterator[bytes]) -> Iterator[Quad]:
    while some := list(islice(lines, BULK)):
        try:
            yield from parse(b"".join(some), RdfFormat.N_QUADS)
        except SyntaxError as error:
            raise StoreError(
                f"What a change of knowledge added can't be read: {error}.",
                "Run `tgraph audit integrity`.",
            ) from error
