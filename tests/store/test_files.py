"""Whole files or none, and locks that die with their process."""

from __future__ import annotations

import fcntl
import os
import time
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.support import workers
from tgraph.cli.main import cli
from tgraph.errors import NotAGraphError, StoreError, UsageError
from tgraph.librarian import Librarian
from tgraph.store.files import FileLock, hold_lock, read_json, sweep_files, write_atomic, write_json
from tgraph.store.folder import GraphFolder


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "er" / "file"
    write_atomic(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]


def test_sweep_lets_a_file_be_that_is_being_written(tmp_path: Path) -> None:
    stale, busy = tmp_path / ".a.1.1.tmp", tmp_path / ".b.2.2.tmp"
    stale.write_bytes(b"half")
    busy.write_bytes(b"half")
    lock = FileLock.try_acquire(busy)
    assert lock is not None
    assert sweep_files(tmp_path) == 1
    assert not stale.exists()
    assert busy.exists()
    lock.release()
    assert sweep_files(tmp_path) == 1


def test_a_temporary_file_that_was_swept_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock
    swept: list[int] = []

    def late(file: IO[bytes], mode: int) -> None:
        if not swept:
            swept.append(sweep_files(tmp_path))
        real(file, mode)

    monkeypatch.setattr(fcntl, "flock", late)
    monkeypatch.setattr(FileLock, "try_acquire", lambda path, **_: FileLock(os.dup(0)))
    write_atomic(tmp_path / "file", b"content")
    assert swept == [1]
    assert (tmp_path / "file").read_bytes() == b"content"


def test_json_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert read_json(path) is None
    write_json(path, {"a": 1})
    assert read_json(path) == {"a": 1}
    for damage in (b"", b"{", b"[1]", b"\xff\xfe", b"null"):
        path.write_bytes(damage)
        assert read_json(path) is None
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="can't be read"):
        read_json(path)


def test_a_lock_excludes_and_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    one = FileLock.try_acquire(path, exclusive=False)
    two = FileLock.try_acquire(path, exclusive=False)
    assert one is not None
    assert two is not None
    assert FileLock.try_acquire(path) is None
    one.release()
    one.release()
    two.release()
    lock = FileLock.try_acquire(path)
    assert lock is not None
    lock.release()


def hold(tell: workers.Tell, path: Path) -> None:
    with hold_lock(path, timeout=1):
        tell("held")
        time.sleep(60)


@pytest.mark.slow
def test_a_lock_dies_with_its_process_and_names_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    waited: list[bool] = []
    worker = workers.start(hold, path)
    worker.listen(lambda item: item == "held")
    with (
        pytest.raises(StoreError, match=f"Process {worker.process.pid} has been writing"),
        hold_lock(path, timeout=0.05, waiting=lambda: waited.append(True)),
    ):
        pass
    assert waited == [True]
    worker.kill()
    with hold_lock(path, timeout=5):
        pass


def test_a_lock_that_can_not_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError), hold_lock(tmp_path / "file" / "lock", timeout=0):
        pass


# --- graph folders --------------------------------------------------------------------------------


def test_a_graph_is_found_from_below(tmp_path: Path) -> None:
    made = GraphFolder.create(tmp_path / "g")
    below = tmp_path / "g" / "a" / "b"
    below.mkdir(parents=True)
    assert GraphFolder.find(below) == made == GraphFolder.create(tmp_path / "g")
    with pytest.raises(NotAGraphError, match="no tgraph graph"):
        GraphFolder.find(tmp_path)


@pytest.mark.parametrize("name", ["", "graph.json", "tgraph.toml"])
def test_a_graph_of_another_user_is_opened_where_it_is_named_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = GraphFolder.create(tmp_path / "tgraph-graph").path
    (folder / "tgraph.toml").touch()
    stat, others = Path.stat, folder / name

    def stat_as_others(path: Path, **options: bool) -> Any:
        status = stat(path, **options)
        if path != others:
            return status
        return os.stat_result((*status[:4], os.geteuid() + 7, *status[5:]))

    monkeypatch.setattr(Path, "stat", stat_as_others)
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(cli, ["sessions"])
    assert (found.exit_code, "belongs to another user" in found.output) == (2, True)
    named = CliRunner().invoke(cli, ["--root", str(folder), "collections", "list"])
    assert named.exit_code == 0
    with pytest.raises(UsageError, match="belongs to another user"):
        GraphFolder.find(folder)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 101, "a\nb"])
def test_collections_have_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        GraphFolder.create(tmp_path).collection(name, create=True)


def test_a_missing_collection_names_those_there_are(tmp_path: Path) -> None:
    graph = GraphFolder.create(tmp_path)
    graph.collection("наука", create=True)
    assert list(graph.collections()) == ["наука"]
    with pytest.raises(StoreError, match="there are: наука"):
        graph.collection("other")


# --- the librarian --------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=()), max_size=2000))
def test_the_librarian_gives_back_any_text(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    librarian = Librarian(tmp_path_factory.getbasetemp() / "any-text")
    assert librarian.get_text(librarian.put_text(text)) == text


def test_the_librarian_keeps_content_once(tmp_path: Path) -> None:
    librarian = Librarian(tmp_path)
    key = librarian.store_content(b"x" * 5000)
    assert librarian.store_content(b"x" * 5000) == key
    assert librarian.has_content(key)
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in kept] == [f"{key}.gz"]
    assert kept[0].stat().st_size < 500


@pytest.mark.parametrize("content", [b"short", b"long " * 1000])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_copy_is_a_clear_error_and_healed_by_putting_it_again(
    tmp_path: Path, content: bytes, damage: str
) -> None:
    librarian = Librarian(tmp_path)
    key = librarian.store_content(content)
    path = next(path for path in tmp_path.rglob(f"{key}*") if path.is_file())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes({"flip": bytes(data), "truncate": bytes(data[:-3]), "empty": b""}[damage])
    with pytest.raises(StoreError, match=f"copy of {key} is damaged"):
        librarian.read_content(key)
    assert librarian.store_content(content) == key
    assert librarian.read_content(key) == content


def on_disk(librarian: Librarian, key: str, synced: set[tuple[int, int]]) -> bool:
    """Whether the content, and each name that leads to it, has been synced."""
    (file,) = librarian.folder.glob(f"{key[:2]}/*{key}*")
    ways = (file, file.parent, librarian.folder)
    return all((way.stat().st_dev, way.stat().st_ino) in synced for way in ways)


@pytest.mark.parametrize("content", [b"short", b"long " * 1000])
def test_what_is_put_to_be_durable_is_synced_whoever_put_it_before(
    tmp_path: Path, synced: set[tuple[int, int]], content: bytes
) -> None:
    indexing, asking = Librarian(tmp_path), Librarian(tmp_path)
    key = indexing.store_content(content, durable=False)
    assert indexing.store_content(content, durable=False) == key
    assert not on_disk(asking, key, synced)
    assert asking.read_content(key) == b"".join(asking.lines(key)) == content
    assert asking.store_content(content) == key
    assert on_disk(asking, key, synced)
    synced.clear()
    assert (asking.store_content(content), asking.put_parts([content])) == (key, key)
    indexing.sync([key])
    assert indexing.store_content(content, durable=False) == key
    assert not on_disk(asking, key, synced), "once is enough"
    assert list(asking.keys()) == [key]
    assert indexing.read_content(key) == content
    asking.remove(key)
    assert not indexing.has_content(key)


def test_contents_are_synced_together_before_what_refers_to_them(
    tmp_path: Path, synced: set[tuple[int, int]]
) -> None:
    librarian = Librarian(tmp_path)
    keys = [librarian.store_content(f"{n}".encode(), durable=False) for n in range(20)]
    librarian.sync(keys[:10])
    assert [on_disk(librarian, key, synced) for key in keys] == [True] * 10 + [False] * 10
    assert librarian.put_parts([b"15"]) == keys[15]
    assert on_disk(librarian, keys[15], synced)
    librarian.remove(keys[19])
    assert sorted(librarian.keys()) == sorted(keys[:19])


def test_what_the_librarian_lacks(tmp_path: Path) -> None:
    librarian = Librarian(tmp_path)
    assert not librarian.has_content("0" * 64)
    with pytest.raises(StoreError, match="does not hold"):
        librarian.read_content("0" * 64)
    for name in ("../../etc/passwd", "0" * 63, "G" * 64):
        with pytest.raises(StoreError, match="not a content hash"):
            librarian.read_content(name)


def test_a_folder_of_contents_that_are_not_durable_is_made_so_for_one_that_is(
    tmp_path: Path, synced: set[tuple[int, int]]
) -> None:
    """Or a power cut takes the folder, with the content that was acknowledged in it."""
    librarian = Librarian(tmp_path)
    librarian.store_content(b"0")
    alike = [b"%d" % n for n in range(1000) if sha256(b"%d" % n).hexdigest()[:2] == "aa"]
    librarian.store_content(alike[0], durable=False)
    synced.clear()
    assert on_disk(librarian, librarian.store_content(alike[1]), synced)
