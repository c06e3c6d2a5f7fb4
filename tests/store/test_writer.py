"""Staged changes: nobody sees them before they are committed, and then nothing of them is lost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QueryBoolean, QueryTriples

from tgraph.store.files import FileLock
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import format_nquads
from tgraph.store.writer import (
    ADDED,
    COMMIT,
    REMOVED,
    LayeredStore,
    WorkingCopy,
    abandoned_changes,
    apply_change,
    committed_changes,
    discard_change,
    open_writable_store,
    remove_abandoned,
)

P = NamedNode("urn:p")
OLD, KEPT, NEW, BOTH = (
    Quad(NamedNode(f"urn:{name}"), P, Literal(name), DefaultGraph())
    for name in ("old", "kept", "new", "both")
)


@pytest.fixture
def folder(tmp_path: Path) -> CollectionFolder:
    return GraphFolder.create(tmp_path / "g").collection("default", create=True)


@pytest.fixture
def store(folder: CollectionFolder) -> Iterator[OxigraphStore]:
    with open_writable_store(folder) as opened:
        opened.extend([OLD, KEPT])
        yield opened


def lines(quads: Iterable[Quad]) -> bytes:
    return format_nquads(quads).encode()


def test_nothing_is_staged_where_nothing_was(folder):
    assert committed_changes(folder) == abandoned_changes(folder) == []


def test_a_change_is_applied_as_it_was_made(folder, store):
    copy = WorkingCopy(folder, "run", store)
    copy.add([KEPT, NEW])
    copy.remove([OLD, BOTH])  # one is not there
    assert copy.changed == 2
    added, removed = copy.changes()
    assert (b"".join(added), b"".join(removed)) == (lines([NEW]), lines([OLD]))
    assert set(store.match()) == {OLD, KEPT}, "nobody else sees it"
    copy.commit({"run": "run"})
    copy.close()
    [change] = committed_changes(folder)
    apply_change(store, change)
    apply_change(store, change)
    assert set(store.match()) == {KEPT, NEW}
    discard_change(change)
    assert committed_changes(folder) == abandoned_changes(folder) == []


def test_what_is_committed_is_on_disk_before_it_is_said_to_be(folder, store, synced, monkeypatch):
    copy = WorkingCopy(folder, "run", store)
    copy.add([NEW])
    copy.remove([OLD])
    synced.clear()

    def are_synced(*paths: Path) -> bool:
        return all((path.stat().st_dev, path.stat().st_ino) in synced for path in paths)

    replace = os.replace

    def saying_so(source: str, target: Path) -> None:
        assert target == copy.path / COMMIT
        assert are_synced(copy.path / ADDED, copy.path / REMOVED, copy.path)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", saying_so)
        copy.commit({"run": "run"})
    assert are_synced(copy.path / COMMIT, copy.path, folder.staging)
    assert (copy.path / ADDED).read_bytes() == lines([NEW])
    assert (copy.path / REMOVED).read_bytes() == lines([OLD])
    copy.close()


def test_what_was_not_committed_is_gone(folder, store):
    copy = WorkingCopy(folder, "run", store)
    copy.add([NEW])
    assert abandoned_changes(folder) == [copy.path]
    copy.close()
    assert not copy.path.exists()
    assert set(store.match()) == {OLD, KEPT}


def test_what_a_dead_run_left_is_removed_unless_another_is_at_work(folder, store):
    left, done = (WorkingCopy(folder, run, store) for run in ("left", "done"))
    done.commit({"run": "done"})
    lock = FileLock.try_acquire(folder.index_lock)
    assert lock is not None
    remove_abandoned(folder)
    assert abandoned_changes(folder) == [left.path]
    lock.release()
    remove_abandoned(folder)
    assert abandoned_changes(folder) == []
    assert committed_changes(folder) == [done.path]
    left.close()
    done.close()


def test_what_is_both_removed_and_added_stays(folder, store):
    copy = WorkingCopy(folder, "run", store)
    copy.remove([OLD])
    copy.add([OLD, BOTH])
    copy.commit({"run": "run"})
    copy.close()
    apply_change(store, copy.path)
    assert set(store.match()) == {OLD, KEPT, BOTH}


@pytest.mark.parametrize("room", [0, 1, 9])
def test_both_layers_are_one_store_whatever_the_memory_holds(tmp_path, room):
    with_old = OxigraphStore.open(tmp_path / "disk")
    with_old.extend([OLD])
    both = LayeredStore(with_old, room)
    assert both.add([OLD, NEW, NEW]) == [NEW]
    both.add_new([BOTH])
    assert set(both.match()) == {OLD, NEW, BOTH}
    assert [both.has_quad(quad) for quad in (OLD, NEW, BOTH, KEPT)] == [True, True, True, False]
    both.remove([OLD, NEW])
    assert list(both.match()) == [BOTH]
    found = both.query("SELECT ?s { ?s ?p ?o }")
    assert not isinstance(found, QueryBoolean | QueryTriples)
    assert [str(row["s"]) for row in found] == ["<urn:both>"]
    both.backup(tmp_path / "backup")
    both.close()
    assert list(OxigraphStore.snapshot(tmp_path / "backup").match()) == [BOTH]
