"""The stream of sealed entries, carried out on an empty store, gives the published graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workers import open_graph
from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.integrity.sealed_entries import SealedEntries, catalogue_of, quads_of_lines
from tgraph.store.oxigraph import OxigraphStore

TEXTS = {
    "a": "Robert Falcon Scott led Terra Nova Expedition.\n",
    "b": "Roald Amundsen reached South Pole.\n",
}


def test_the_stream_gives_the_published_graph_also_after_an_erasure(tmp_path: Path) -> None:
    with open_graph(tmp_path / "g") as graph:
        for name, text in TEXTS.items():
            (tmp_path / f"{name}.txt").write_text(text)
            graph.index([tmp_path / f"{name}.txt"])
        graph.ask("Who reached the South Pole?", history=())
        for erases in (False, True):
            if erases:
                graph.purge("a.txt", reason="asked for")
            store = graph.opened.read()
            sealed = SealedEntries(store, graph.opened.librarian)
            assert len(sealed.erasures) == erases
            copy = OxigraphStore.memory()
            for entry in sealed.list_entries_after({}):
                removed, added = (
                    list(sealed.read_removed_quads(entry)),
                    list(sealed.read_added_quads(entry)),
                )
                assert sealed.quad_count(entry) == len(removed) + len(added)
                copy.remove(removed)
                copy.extend([*added, *entry.quads])
            assert set(copy.match()) == set(store.match())


def test_the_stream_goes_on_behind_an_entry(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXTS["a"])
    with open_graph(tmp_path / "g") as graph:
        graph.index([tmp_path / "a.txt"])
        graph.ask("Who led Terra Nova Expedition?", history=())
        sealed = SealedEntries(graph.opened.read(), graph.opened.librarian)
        first, *others = sealed.list_entries_after({})
        name = catalogue_of(first)
        assert sealed.list_entries_after({name: 1}) == others
        assert sealed.head_at(name, 0) == ""
        assert sealed.head_at(name, 1) == first.chain
        assert sealed.head_at(name, 2 + len(others)) is None


def test_a_damaged_line_of_a_batch_is_an_error() -> None:
    with pytest.raises(StoreError, match="can't be read"):
        list(quads_of_lines([f"<urn:x:s> <{v.RDF_TYPE.value}> <".encode()]))
