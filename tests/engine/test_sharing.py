"""Many processes use one graph at the same time; a disk that fails is told in one sentence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from tests.support import workers
from tests.support.paths import REPOSITORY
from tests.support.workers import (
    EDGES,
    TEXT,
    ask,
    assert_chain,
    assert_tidy,
    collection,
    copy_graph,
    edges,
    fold,
    index,
    open_graph,
    snapshot,
    start,
)
from tgraph.errors import FormatError, NotAGraphError, StoreError
from tgraph.store.files import hold_lock
from tgraph.store.snapshot import Snapshot


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph of one document; tests work on copies."""
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "a.txt").write_text(TEXT)
    assert start(index, folder / "g", [folder / "a.txt"]).end() == 0
    return folder / "g"


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    return copy_graph(indexed, tmp_path / "g")


def said(worker: workers.Worker, kind: str) -> list[Any]:
    return [item for item in worker.told if item[0] == kind]


# --- at the same time -----------------------------------------------------------------------------


@pytest.mark.slow
def test_two_ask_while_one_indexes(root: Path, tmp_path: Path) -> None:
    sessions: set[str] = set()
    for number in range(3):
        document = tmp_path / f"{number}.txt"
        document.write_text(f"Scientist {number} studied radium.\n")
        team = [start(ask, root, 4), start(ask, root, 4), start(index, root, [document])]
        assert [worker.end() for worker in team] == [0, 0, 0]
        assert not any(said(worker, "error") for worker in team)
        assert said(team[2], "indexed") == [("indexed", number + 2, 1, 0)]
        sessions |= {
            item[2] for w in team[:2] for item in said(w, "event") if ":session:" in str(item[2])
        }
    assert start(fold, root).end() == 0
    assert len(sessions) == 24
    assert assert_chain(root) == dict.fromkeys(sessions, "completed")
    assert edges(root) == EDGES | {f"scientist-{n} studied radium" for n in range(3)}
    assert_tidy(root)


@pytest.mark.slow
def test_index_runs_queue_up(root: Path, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"Scientist {number} studied radium.\n")
    team = [start(index, root, [tmp_path / f"{number}.txt"]) for number in range(3)]
    assert [worker.end() for worker in team] == [0, 0, 0]
    assert sorted(said(worker, "indexed")[0][1] for worker in team) == [2, 3, 4]
    assert edges(root) == EDGES | {f"scientist-{n} studied radium" for n in range(3)}
    assert_chain(root)


def test_a_second_index_run_says_once_that_it_waits(root: Path, tmp_path: Path) -> None:
    document = tmp_path / "b.txt"
    document.write_text("Lise Meitner lived in Berlin.\n")
    with hold_lock(collection(root).index_lock, timeout=1):
        worker = start(index, root, [document])
        assert worker.listen(lambda item: item[0] == "message")
    assert worker.end() == 0
    assert len(said(worker, "message")) == 1
    assert said(worker, "indexed")


@pytest.mark.slow
def test_a_pinned_reader_reads_on_while_its_snapshot_is_superseded(
    root: Path, tmp_path: Path
) -> None:
    document = tmp_path / "a.txt"
    with snapshot(root) as before:
        for number in range(3):
            document.write_text(f"{TEXT}Scientist {number} studied radium.\n")
            assert start(index, root, [document]).end() == 0
        assert workers.knowledge(before.store)
        assert before.path.is_dir()
        assert before.vectors.is_dir()
        again = Snapshot(collection(root), before.pointer, before._pin)
        assert workers.knowledge(again.store) == workers.knowledge(before.store)
    assert start(ask, root).end() == 0
    assert not before.path.exists()
    assert_tidy(root)


def test_reading_goes_on_while_a_writer_holds_the_lock(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr("tgraph.engine.published_states.FOLD_PATIENCE", 0.05)
    with open_graph(root, create=False, message=messages.append) as kg:
        with hold_lock(collection(root).write_lock, timeout=1):
            answer = kg.ask(workers.QUESTION, "graph")
            assert kg.sessions.summaries() == []
        assert str(os.getpid()) in messages[0]
        assert [session.explain_id for session in kg.sessions.summaries()] == [answer.session]


def test_the_store_can_be_opened_again_whoever_still_holds_an_old_handle(root: Path) -> None:
    kg = open_graph(root, create=False)
    with kg.opened.ledger.open() as (store, _):
        kept = store
    with pytest.raises(ZeroDivisionError) as failure, kg.opened.ledger.open() as (store, _):
        raise ZeroDivisionError
    with kg.opened.ledger.open(timeout=1):
        pass
    assert failure.value is not None
    assert kept is not store
    assert start(fold, root).end() == 0


def test_collections_of_explanations_share_the_generation_of_the_knowledge(root: Path) -> None:
    """A session in another explainability collection must not make the vectors stale."""
    messages: list[str] = []
    settings = {"explain_collection": "other"}
    with open_graph(root, create=False, settings=settings, message=messages.append) as kg:
        kg.ask(workers.QUESTION, "graph")
    assert workers.generation(root) == 1
    with open_graph(root, create=False, settings=settings, message=messages.append) as kg:
        kg.ask(workers.QUESTION, "graph")
    assert messages == []
    assert len(assert_chain(root, "urn:trustgraph:collection:other")) == 2


# --- disks that fail ------------------------------------------------------------------------------


def _mounted(tmp_path: Path, script: str, function: str) -> None:
    """Run the script, and then the function of this module, in a mount namespace of its own."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small disk needs root and unshare")
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted here")
    (tmp_path / "run.py").write_text(
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        f"from tests.engine import test_sharing; test_sharing.{function}()"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", f"{script} {sys.executable} run.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
def test_a_full_disk(indexed: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    script = f"mount -t tmpfs -o size=24m none disk; cp -r {indexed} disk/g; "
    _mounted(tmp_path, script, "on_full_disk")


def on_full_disk() -> None:
    """Asking and indexing without room on the disk fails with one sentence; reading goes on."""
    root, document = Path("disk/g"), Path("b.txt")
    document.write_text("Lise Meitner lived in Berlin.\n")
    with open_graph(root, create=False) as kg:
        kept = [kg.ask(workers.QUESTION, "graph").session]
    _fill(Path("disk/ballast"))
    for spare in (0, 1, 2, 4, 16, 64, 256):
        _shrink(Path("disk/ballast"), spare * 4096)
        kept += _ask(root)
        _index(root, document)
        with open_graph(root, create=False) as kg:
            listed = [session.explain_id for session in kg.sessions.summaries()]
            assert kept[0] in listed
            assert kg.trace(kept[0]) is not None
    Path("disk/ballast").unlink()
    with open_graph(root) as kg:
        kg.index([document])
        kept.append(kg.ask("Where did Lise Meitner live?").session)
    statuses = assert_chain(root)
    assert set(kept) <= set(statuses), "a session that was acknowledged is lost"
    assert "lise-meitner lived-in berlin" in edges(root)
    assert_tidy(root)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 4096, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue


def _shrink(path: Path, freed: int) -> None:
    _fill(path.with_name("more"))
    path.with_name("more").replace(path.with_name(f"more{freed}"))
    os.truncate(path, max(0, path.stat().st_size - freed))


def _ask(root: Path) -> list[str]:
    """The sessions that were acknowledged."""
    told: list[str] = []
    with open_graph(root, create=False) as kg, _perhaps_full():
        for event in kg.stream(workers.QUESTION):
            if event.explain_id and ":session:" in event.explain_id:
                told.append(event.explain_id)
    return told


def _index(root: Path, document: Path) -> None:
    with open_graph(root) as kg, _perhaps_full():
        kg.index([document])


@contextmanager
def _perhaps_full() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        if "The disk is full" not in error.message and "No space left" not in error.message:
            raise


@pytest.mark.slow
def test_a_read_only_disk(indexed: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    script = f"mount --bind {indexed.parent} disk; mount -o remount,bind,ro disk; "
    _mounted(tmp_path, script, "on_read_only_disk")


def on_read_only_disk() -> None:
    _read_only(Path("disk/g"))


def as_nobody(tell: workers.Tell, root: Path) -> None:
    with open_graph(root, create=False) as kg:  # nobody may not be able to read this checkout
        kg.sessions.summaries()
        kg.integrity()
        list(kg.stream(workers.QUESTION))
        kg.index([])
    os.setgid(65534)
    os.setuid(65534)
    _read_only(root)
    tell(("well",))


@pytest.mark.slow
def test_a_folder_of_somebody_else(indexed: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("becoming somebody else needs root")
    root = copy_graph(indexed, tmp_path / "g")
    with open_graph(root, create=False) as kg:
        kg.ask(workers.QUESTION, "graph")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.is_relative_to(gettempdir()) and folder != Path(gettempdir()):
            folder.chmod(0o755)
    for path in (root, *root.rglob("*")):  # its owner lets others read it
        path.chmod(0o755 if path.is_dir() else 0o644)
    worker = start(as_nobody, root)
    worker.end()
    assert worker.told == [("well",)]


def _read_only(root: Path) -> None:
    """Everything can be read and checked; asking says that it can't be recorded, and gives no
    answer."""
    told: list[object] = []
    with open_graph(root, create=False) as kg:
        kg.sessions.summaries()
        assert workers.knowledge(kg.opened.read())
        assert kg.integrity().ok
        with pytest.raises(StoreError, match="can't be written"):
            told += kg.stream(workers.QUESTION)
        with pytest.raises(StoreError, match="can't be written"):
            kg.index([Path(__file__)])
    assert told == []


# --- folders that are not what they should be -----------------------------------------------------


def test_a_folder_that_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(NotAGraphError, match="is not a tgraph graph"):
        open_graph(tmp_path, create=False)
    with pytest.raises(NotAGraphError, match="does not exist"):
        open_graph(tmp_path / "missing", create=False)
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotAGraphError):
        open_graph(tmp_path / "file", create=False)
    with pytest.raises(NotAGraphError, match="is a file"):
        open_graph(tmp_path / "file")
    (tmp_path / "graph.json").write_text("{")
    with pytest.raises(NotAGraphError):
        open_graph(tmp_path)


def test_a_graph_of_a_newer_version(root: Path) -> None:
    marker = root / "graph.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "format": 999}))
    with pytest.raises(FormatError, match=r"newer tgraph \(format 999.*Upgrade"):
        open_graph(root)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"snapshot": "x"}', None])
def test_a_damaged_pointer_is_made_anew(root: Path, damage: str | None) -> None:
    pointer = collection(root).pointer
    if damage is None:
        pointer.unlink()
    else:
        pointer.write_text(damage)
    assert start(fold, root).end() == 0
    assert edges(root) == EDGES
    assert_tidy(root)


def test_a_vanished_snapshot_is_made_anew(root: Path) -> None:
    shutil.rmtree(collection(root).snapshots)
    with open_graph(root, create=False) as kg:
        assert kg.sessions.summaries() == []
        kg.ask(workers.QUESTION, "graph")
    assert edges(root) == EDGES


@pytest.mark.parametrize("damage", ["truncated", "deleted"])
def test_damaged_vectors_are_rebuilt_with_a_message(root: Path, damage: str) -> None:
    for path in (collection(root).path).glob("**/*.vectors.*"):
        os.truncate(path, 8) if damage == "truncated" else path.unlink()
    messages: list[str] = []
    with open_graph(root, create=False, message=messages.append) as kg:
        assert "polonium" in kg.ask(workers.QUESTION, "graph").text
    assert messages
    assert all("rebuilt" in message for message in messages)
    messages.clear()
    with open_graph(root, create=False, message=messages.append) as kg:
        kg.ask(workers.QUESTION, "graph")
    assert messages == []
