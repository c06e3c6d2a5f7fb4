"""A damaged folder: what can be made anew is, the rest is named by its file, and nothing hangs."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.workers import (
    QUESTION,
    Tell,
    Worker,
    collection,
    copy_graph,
    graph_with_a_session,
    open_graph,
    snapshot,
    start,
)
from tgraph.cli.main import cli
from tgraph.errors import DamagedStoreError, StoreError
from tgraph.extensions.operations import repair
from tgraph.store import patience
from tgraph.store.base import Solutions, text_of
from tgraph.store.files import hold_lock
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import must_be_mended, read_pointer

pytestmark = pytest.mark.slow


def xor(path: Path, at: float = 0.5, count: int = 3) -> None:
    """Turn the bits of some bytes, at that part of the file, in a file of its own."""
    data = bytearray(path.read_bytes())
    place = int(at * (len(data) - count))
    data[place : place + count] = bytes(byte ^ 0xFF for byte in data[place : place + count])
    path.unlink()
    path.write_bytes(data)


def xor_in_place(path: Path, at: float = 0.5, count: int = 3) -> None:
    """The same under all names that the file has."""
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.seek(int(at * (size - count)))
        data = file.read(count)
        file.seek(-len(data), 1)
        file.write(bytes(byte ^ 0xFF for byte in data))


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph with a document and a session; tests work on copies."""
    return graph_with_a_session(tmp_path_factory.mktemp("indexed"))


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    return copy_graph(indexed, tmp_path / "g")


def checkpoint(root: Path) -> Path:
    with snapshot(root) as found:
        return found.path / "store"


# --- snapshots ------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[Path], object]] = {
    "manifest": lambda store: xor(next(store.glob("MANIFEST-*")), count=40),
    "current": lambda store: xor(store / "CURRENT"),
    "table": lambda store: xor(max(store.glob("*.sst"))),
    "short": lambda store: max(store.glob("*.sst")).write_bytes(b"x"),
    "missing": lambda store: max(store.glob("*.sst")).unlink(),
    "pointer": lambda store: (store.parent.parent.parent / "current.json").write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_snapshot_is_made_anew_of_the_store(root: Path, damage: str) -> None:
    DAMAGE[damage](checkpoint(root))
    messages: list[str] = []
    with open_graph(root, create=False, message=messages.append) as kg:
        assert "polonium" in kg.ask(QUESTION, "graph").text
        assert len(kg.sessions.summaries()) == 2
    assert [message for message in messages if "is rebuilt" in message] == messages[:1] != []
    with open_graph(root, create=False, message=messages.append) as kg:
        assert kg.integrity().ok
    assert len(messages) == 1


@pytest.mark.parametrize("damage", DAMAGE)
def test_where_it_can_t_be_made_anew_the_store_itself_is_read(
    root: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tgraph.engine.published_states.FOLD_PATIENCE", 0.01)
    DAMAGE[damage](checkpoint(root))
    messages: list[str] = []
    with open_graph(root, create=False, message=messages.append) as kg:
        with hold_lock(collection(root).write_lock, timeout=1):
            assert "polonium" in kg.ask(QUESTION, "graph").text
            assert len(kg.sessions.summaries()) == 1
            assert bool(kg.sparql("ASK { ?s ?p ?o }"))
            note = next(message for message in messages if "itself is read" in message)
            assert "tgraph doctor --repair" in note
        assert len(kg.sessions.summaries()) == 2
    assert not must_be_mended(collection(root))


# --- queries --------------------------------------------------------------------------------------


SORTED = "SELECT * { { SELECT ?s ?p { ?s ?p ?o } } ?s rdfs:label ?l } ORDER BY ?l"


def listing(tell: Tell, root: Path, checkpoint: Path, at: float) -> None:
    """Damage each table that the store and the snapshot share, in turn, list sessions and read
    everything; tells what becomes of it."""
    patience.SUSPICIOUS = 0.3
    for table in sorted(path for path in checkpoint.glob("*.sst") if path.stat().st_nlink > 1):
        xor_in_place(table, at)
        for name, read in (
            ("query", lambda kg: kg.sessions.summaries()),
            ("sparql", lambda kg: list(kg.sparql(SORTED, memory=400 << 20))),
            ("match", lambda kg: list(kg.opened.read().match())),
        ):
            try:
                with open_graph(root, create=False) as kg:
                    tell((name, table.name, len(read(kg))))
            except DamagedStoreError as error:
                tell((name, table.name, Path(error.path).name))
        xor_in_place(table, at)


def test_no_damaged_block_makes_a_query_go_on_for_ever(indexed: Path, tmp_path: Path) -> None:
    root = tmp_path / "g"
    subprocess.run(["cp", "-a", indexed, root], check=True)  # with its hard links
    with open_graph(root, create=False) as kg:
        whole = {
            "query": len(kg.sessions.summaries()),
            "sparql": len(list(kg.sparql(SORTED))),  # type: ignore[arg-type]
            "match": len(list(kg.opened.read().match())),
        }
    worker: Worker = start(listing, root, checkpoint(root), 0.3)
    assert worker.end() == 0
    assert {told[0] for told in worker.told} == set(whole), worker.told
    for kind, table, found in worker.told:
        assert found in (whole[kind], table)
    assert {kind for kind, table, found in worker.told if found == table} == set(whole)


def test_a_query_that_finds_nothing_for_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SUSPICIOUS", 0.01)
    monkeypatch.setattr(patience, "LIMIT", 0.02)
    looked: list[bool] = []
    for_ever = threading.Event()
    with pytest.raises(StoreError, match="given up"):
        patience.evaluate_query(lambda: for_ever.wait() and None, lambda: looked.append(True))  # type: ignore[arg-type,return-value]
    for_ever.set()
    assert looked == [True]


def test_rows_come_as_they_are_wanted_and_their_thread_ends_with_them(tmp_path: Path) -> None:
    store = OxigraphStore.open(tmp_path / "store")
    store.update(f"INSERT DATA {{ {' '.join(f'<urn:{n}> <urn:p> {n} .' for n in range(5000))} }}")
    before = set(threading.enumerate())
    rows, others = (store.query("SELECT ?n { ?s <urn:p> ?n }") for _ in range(2))
    assert isinstance(rows, Solutions)
    assert isinstance(others, Solutions)
    assert [variable.value for variable in rows.variables] == ["n"]
    assert next(iter(rows))["n"] is not None
    del rows
    assert sorted(int(text_of(row["n"])) for row in others) == [*range(5000)]
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
    store.close()


# --- what stays behind ----------------------------------------------------------------------------


def test_writers_leave_no_logs_behind(root: Path) -> None:
    for _ in range(3):
        with open_graph(root, create=False) as kg:
            kg.ask(QUESTION, "graph")
    (collection(root).store / "LOG.old.1").write_bytes(b"of a writer that was killed")
    with open_graph(root, create=False) as kg:
        kg.ask(QUESTION, "graph")
    assert not list(collection(root).path.rglob("LOG*"))
    assert read_pointer(collection(root))


# --- repair ---------------------------------------------------------------------------------------


def mended(root: Path) -> dict[str, tuple[str, str]]:
    """What ``doctor --repair`` finds, by subject."""
    with open_graph(root, create=False) as kg:
        return {f.subject: (f.status, f"{f.detail}. {f.remedy}") for f in repair(kg)}


def repaired(root: Path) -> set[str]:
    """What it mended; afterwards everything is in order, and all is as it was."""
    before = mended(root)
    assert {status for status, _ in before.values()} <= {"ok", "mended"}, before
    assert {status for status, _ in mended(root).values()} == {"ok"}
    with open_graph(root, create=False, message=pytest.fail) as kg:
        assert "polonium" in kg.ask(QUESTION, "graph").text
        assert kg.integrity().ok
        assert len(kg.sessions.summaries()) == 2
    return {subject for subject, (status, _) in before.items() if status == "mended"}


def test_what_is_whole_is_left_as_it_is(root: Path) -> None:
    before = read_pointer(collection(root))
    assert repaired(root) == set()
    assert before is not None
    assert before.snapshot == 3


@pytest.mark.parametrize("damage", DAMAGE)
def test_repair_publishes_the_store_again(root: Path, damage: str) -> None:
    DAMAGE[damage](checkpoint(root))
    assert repaired(root) == {"snapshot"}


@pytest.mark.parametrize("damage", ["manifest", "current", "table", "missing", "gone"])
def test_repair_makes_the_store_of_its_snapshot(root: Path, damage: str) -> None:
    store = collection(root).store
    if damage == "gone":
        shutil.rmtree(store)
    elif damage == "missing":
        (store / "CURRENT").unlink()
    elif damage == "table":  # all of them: which one an index run reads depends on what was merged
        for path in store.glob("*.sst"):
            xor(path)
    else:
        DAMAGE[damage](store)
    with pytest.raises(StoreError, match="repair"), open_graph(root, create=False) as kg:
        kg.index([root / "graph.json"])
    assert repaired(root) == {"store"}


def test_repair_makes_what_questions_read_anew(root: Path) -> None:
    folder = collection(root)
    for name in ("entity.json", "lookups.json", "communities.json"):
        xor(folder.vectors / name, count=20)
        (checkpoint(root).parent / "vectors" / name).unlink()
    entry = folder.cache / "extractions" / "00" / "0.json.gz"
    entry.parent.mkdir(parents=True)
    entry.write_bytes(b"no gzip")
    assert repaired(root) == {"entity vectors", "look-ups", "reports at hand", "caches"}
    assert not entry.exists()


def test_repair_names_what_is_truth_and_damaged(root: Path) -> None:
    content = next(path for path in collection(root).librarian.glob("??/*"))
    content.write_bytes(b"something else")
    kept = collection(root).journals / "x.damaged"
    kept.write_bytes(b"a part")
    found = mended(root)
    (bad,) = [detail for status, detail in found.values() if status == "bad"]
    assert str(content) in bad
    assert "backup" in bad
    assert str(kept) in found["journal"][1]


def test_repair_of_what_only_a_backup_has(indexed: Path, tmp_path: Path) -> None:
    root = tmp_path / "g"
    subprocess.run(["cp", "-a", indexed, root], check=True)
    table = next(path for path in checkpoint(root).glob("*.sst") if path.stat().st_nlink > 1)
    xor_in_place(table)
    status, detail = mended(root)["store"]
    assert status == "bad"
    assert table.name in detail
    assert "tgraph restore" in detail
    result = CliRunner().invoke(cli, ["doctor", "-r", str(root), "--repair"])
    assert result.exit_code == 1
    assert table.name in result.output
