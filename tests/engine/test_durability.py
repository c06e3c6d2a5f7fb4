"""kill -9 at any moment loses nothing that was acknowledged and leaves nothing half-made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from tests.support import workers
from tests.support.workers import (
    ask,
    assert_chain,
    assert_tidy,
    collection,
    copy_graph,
    edges,
    fold,
    generation,
    index,
    killed_at,
    killed_before_sealing,
    mentioned,
    open_graph,
    snapshot,
    start,
)
from tgraph.testing import ScriptedServer

pytestmark = pytest.mark.slow

OLD = "Marie Curie discovered polonium.\nPierre Curie worked in Paris.\n"
NEW = OLD + "Marie Curie won Nobel Prize.\n"
OLD_EDGES = {"marie-curie discovered polonium", "pierre-curie worked-in paris"}
NEW_EDGES = OLD_EDGES | {"marie-curie won nobel-prize"}


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one document, ``a.txt``, and the graph of it; tests work on copies."""
    folder = tmp_path_factory.mktemp("indexed")
    (folder / "a.txt").write_text(OLD)
    assert start(index, folder / "g", [folder / "a.txt"]).end() == 0
    return folder


def acknowledged(worker: workers.Worker) -> list[str]:
    return [item[2] for item in worker.told if item[0] == "event" and item[1] == "explain"]


def at(stage: str, least: int = 0) -> Callable[[Any], bool]:
    """Whether an index run has come to the stage, and this far in it."""
    return lambda item: item[:2] == ("stage", stage) and item[2] >= least


def assert_recovered(root: Path, told: list[str]) -> dict[str, str]:
    """After the next command everything that was told is there, and the record is in order."""
    last = start(ask, root)
    assert last.end() == 0
    told = told + acknowledged(last)
    with snapshot(root) as found:
        for iri in told:
            assert mentioned(found.store, iri), iri
    statuses = assert_chain(root)
    assert_tidy(root)
    return statuses


def test_ask_killed_at_each_change_of_the_disk(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    told: list[str] = []
    runs = 0
    for number in range(0, 10_000, 11):
        worker = start(killed_at, number, ask, root)
        worker.end()
        told += acknowledged(worker)
        runs += 1
        if ("whole",) in worker.told:
            break
        assert edges(root) == OLD_EDGES
    assert runs > 10
    statuses = assert_recovered(root, told)
    assert set(statuses.values()) == {"aborted", "completed"}
    assert {iri for iri in told if ":session:" in iri} <= set(statuses)


def test_ask_killed_after_each_event(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    told: list[str] = []
    for count in range(1, 11):
        worker = start(ask, root, 3)
        worker.listen(lambda item: len(worker.told) >= count * 2)  # noqa: B023
        worker.kill()
        told += acknowledged(worker)
    statuses = assert_recovered(root, told)
    assert {iri for iri in told if ":session:" in iri} <= set(statuses)


def test_sessions_killed_before_they_began_leave_nothing(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    worker = start(killed_at, 3, ask, root)
    worker.end()
    assert not acknowledged(worker)
    assert list(assert_recovered(root, []).values()) == ["completed"]


def test_fold_killed_at_each_change_of_the_disk(indexed: Path, tmp_path: Path) -> None:
    waiting = copy_graph(indexed / "g", tmp_path / "waiting")
    for _ in range(3):
        worker = start(ask, waiting)
        worker.listen(lambda item: item[2:] and ":answer:" in str(item[2]))
        worker.kill()
    journals = len(list(collection(waiting).journals.glob("*.journal")))
    assert journals
    root = copy_graph(waiting, tmp_path / "g")
    for number in range(0, 10_000, 5):
        worker = start(killed_at, number, fold, root)
        worker.end()
        if ("whole",) in worker.told:
            break
        assert edges(root) == OLD_EDGES
    assert number > 20
    assert len(assert_recovered(root, [])) >= journals


def test_a_long_session_killed_before_it_is_sealed_is_sealed_by_the_next(
    indexed: Path, tmp_path: Path
) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    worker = start(ask, root)
    worker.listen(lambda item: item[2:] and ":answer:" in str(item[2]))
    worker.kill()
    worker = start(killed_before_sealing, root)
    assert worker.end() == -SIGKILL
    assert Counter(assert_recovered(root, []).values()) == {"aborted": 1, "completed": 1}


def test_index_killed_at_each_change_of_the_disk(indexed: Path, tmp_path: Path) -> None:
    """Readers see the old or the new knowledge; the next run goes on from what there is."""
    document = tmp_path / "a.txt"
    root = tmp_path / "g"
    paths = [document]
    document.write_text(OLD)
    assert start(index, root, paths).end() == 0
    document.write_text(NEW)
    seen, runs = [], 0
    for number in range(0, 10_000, 17):
        worker = start(killed_at, number, index, root, paths)
        worker.end()
        runs += 1
        seen.append((generation(root), edges(root)))
        if ("whole",) in worker.told:
            break
    assert runs > 10
    assert all(state in [(1, OLD_EDGES), (2, NEW_EDGES)] for state in seen)
    assert seen[0] == (1, OLD_EDGES)
    assert seen[-1] == (2, NEW_EDGES)
    assert_recovered(root, [])


def test_split_killed_at_each_change_of_the_disk(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Marie Curie = Curie\nCurie discovered polonium.\n")
    root = tmp_path / "g"
    assert start(index, root, [tmp_path / "a.txt"]).end() == 0
    merged = (1, {"marie-curie discovered polonium"})
    seen = []
    for number in range(0, 10_000, 17):
        worker = start(killed_at, number, workers.split, root, "Curie")
        worker.end()
        seen.append((generation(root), edges(root)))
        if ("whole",) in worker.told or seen[-1] != merged:
            break
    assert len(seen) > 3
    assert seen == [merged] * (len(seen) - 1) + [(2, {"curie discovered polonium"})]
    assert_recovered(root, [])


def test_a_committed_change_is_rolled_forward_by_whoever_comes(tmp_path: Path) -> None:
    document = tmp_path / "a.txt"
    document.write_text(OLD)
    root = tmp_path / "g"
    start(index, root, [document], None, ("Publishing", 1)).end()
    assert list(collection(root).staging.glob("*/commit.json"))
    assert start(fold, root).end() == 0
    assert edges(root) == OLD_EDGES
    assert generation(root) == 1
    assert_recovered(root, [])


def test_no_call_is_paid_twice_however_often_index_is_killed(tmp_path: Path) -> None:
    """The replies had before are kept; only a call that was under way may be made again."""
    document = tmp_path / "a.txt"
    names = "Ada Bea Cleo Dora Eva Faye Gina Hedy Ida Jane Kate Lena".split()  # noqa: SIM905
    document.write_text(
        "\n\n".join(f"{name} Smith met {name} Jones in {name}ville." for name in names)
    )
    with ScriptedServer() as server:
        settings = {
            "chat.base_url": server.base_url,
            "chat.model": "scripted",
            "chat.concurrency": 1,
            "extract.gleanings": 0,
            "embedding.provider": "openai",
            "embedding.model": "scripted",
            "chunk.by": "sentences",
            "chunk.size": 20,
            "chunk.overlap": 0,
        }
        root = tmp_path / "g"
        for kill in range(0, 8, 2):
            worker = start(index, root, [document], settings)
            assert worker.listen(at("Extracting", kill))
            worker.kill()
        for _ in range(2):
            worker = start(index, root, [document], settings)
            assert worker.listen(at("Embedding"))
            worker.kill()
        worker = start(index, root, [document], settings)
        assert worker.end() == 0
        assert worker.told[-1][0] == "indexed", worker.told[-3:]
        asked = [str(r.body["messages"]) for r in server.requests if r.step == "extract_graph"]
        texts = [t for r in server.requests if r.step == "embeddings" for t in r.body["input"]]
    assert len(set(asked)) == 8
    assert len(asked) <= 8 + 4
    again = Counter(texts)
    del again[max(again, key=lambda text: again[text])]  # asked by each run for the dimension
    assert set(again.values()) == {1}
    assert_recovered(root, [])


def test_a_run_that_died_leaves_no_staging(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    document = tmp_path / "b.txt"
    document.write_text("Lise Meitner lived in Berlin.\n")
    for stage in ("Reading", "Extracting", "Resolving", "Embedding"):
        worker = start(index, root, [document])
        assert worker.listen(at(stage))
        worker.kill()
        assert edges(root) == OLD_EDGES
    assert list(collection(root).staging.iterdir())
    (collection(root).path / ".current.json.1.1.tmp").write_text("half")
    collection(root).journals.mkdir(exist_ok=True)
    (collection(root).journals / ".x.journal.tmp").write_text("")
    (collection(root).vectors / ".edge.rows.1.tmp").write_text("of a repair that died")
    assert start(ask, root).end() == 0
    assert_tidy(root)


def test_a_session_left_open_by_a_living_process_is_let_be(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed / "g", tmp_path / "g")
    with open_graph(root, create=False) as kg:
        stream = kg.stream(workers.QUESTION)
        session = str(next(stream).explain_id)
        assert start(ask, root).end() == 0
        assert session not in assert_chain(root)
        list(stream)
    assert assert_chain(root)[session] == "completed"
