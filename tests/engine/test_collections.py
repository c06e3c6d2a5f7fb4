"""A collection that is copied is whole and apart from the other; one that is renamed or deleted
goes in one step, and not while somebody is at work in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tgraph
from tests.support.workers import (
    QUESTION,
    Tell,
    collection,
    copy_graph,
    edges,
    graph_with_a_session,
    index,
    killed_at,
    start,
)
from tgraph.cli.main import cli
from tgraph.errors import StoreError, UsageError
from tgraph.store.files import hold_lock
from tgraph.store.folder import GraphFolder
from tgraph.store.snapshot import Snapshot


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_with_a_session(tmp_path_factory.mktemp("indexed"))


@pytest.fixture
def root(indexed: Path, tmp_path: Path) -> Path:
    return copy_graph(indexed, tmp_path / "g")


def names(root: Path) -> list[str]:
    return [each.name for each in tgraph.list_collections(root)]


def hidden(root: Path) -> list[str]:
    return [path.name for path in (root / "collections").iterdir() if path.name.startswith(".")]


def in_collection(root: Path, name: str) -> tgraph.KnowledgeGraph:
    values = {"embedding.provider": "hashing"}
    return tgraph.open(root, collection=name, settings=values)


def copied(tell: Tell, root: Path, name: str) -> None:
    tell(tgraph.copy_collection(root, "default", name).head)


@pytest.mark.slow
def test_a_copy_holds_the_same_and_goes_its_own_way(root: Path) -> None:
    done = tgraph.copy_collection(root, "default", "trial")
    assert names(root) == ["default", "trial"]
    before, after = tgraph.list_collections(root)
    assert (before.documents, before.entries) == (after.documents, after.entries) == (1, 3)
    with in_collection(root, "trial") as trial, in_collection(root, "default") as default:
        assert trial.sessions.summaries() == default.sessions.summaries()
        assert trial.integrity(done.head).ok
        assert trial.replay("last").is_same
        trial.retract("a.txt", reason="a trial")
        assert not [each for each in trial.documents.summaries() if each.standing]
        assert len([each for each in default.documents.summaries() if each.standing]) == 1
    assert edges(root)
    folders = [root / "collections" / name for name in names(root)]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_copy_holds_a_session_that_is_not_folded_in_yet(root: Path) -> None:
    with in_collection(root, "default") as graph:
        asked = graph.ask("Who worked in Paris?", "graph").session
        tgraph.copy_collection(root, "default", "trial")
    with in_collection(root, "trial") as trial:
        assert trial.trace(asked).question == "Who worked in Paris?"


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_kill_leaves_no_half_collection(root: Path, number: int) -> None:
    start(killed_at, number, copied, root, "trial").end()
    if names(root) == ["default"]:
        assert start(copied, root, "trial").end() == 0
    assert names(root) == ["default", "trial"]
    assert not hidden(root)
    with in_collection(root, "trial") as trial:
        assert trial.integrity().ok


def test_a_damaged_collection_is_not_copied(root: Path) -> None:
    text = next(path for path in collection(root).librarian.glob("??/*"))
    text.write_bytes(text.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match=text.name.removesuffix(".gz")):
        tgraph.copy_collection(root, "default", "trial")
    assert names(root) == ["default"]
    assert not hidden(root)


def test_a_renamed_collection_answers_under_its_new_name(root: Path) -> None:
    with in_collection(root, "default") as graph:
        text = graph.trace("last").answer
    tgraph.rename_collection(root, "default", "statutes")
    assert names(root) == ["statutes"]
    with in_collection(root, "statutes") as graph:
        assert graph.trace("last").answer == text
        assert graph.ask(QUESTION, "graph").sentences
        assert graph.integrity().ok


def test_a_deleted_collection_leaves_nothing(root: Path) -> None:
    left = root / "collections" / ".other.deleted-0123"  # of a process that died
    (left / "librarian").mkdir(parents=True)
    tgraph.delete_collection(root, "default")
    assert names(root) == []
    assert not list((root / "collections").iterdir())
    with pytest.raises(StoreError, match="no collection 'default'"):
        tgraph.delete_collection(root, "default")


def reading(root: Path) -> Snapshot:
    found = Snapshot.open(GraphFolder.open(root).collection("default"))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("act", ["rename", "delete"])
def test_nothing_is_renamed_or_deleted_while_somebody_is_at_work(root: Path, act: str) -> None:
    def change() -> None:
        if act == "rename":
            tgraph.rename_collection(root, "default", "other")
        else:
            tgraph.delete_collection(root, "default")

    snapshot = reading(root)
    with pytest.raises(StoreError, match="in use"):
        change()
    snapshot.close()
    with (
        hold_lock(collection(root).index_lock, timeout=None),
        pytest.raises(StoreError, match="writing to the graph"),
    ):
        change()
    assert names(root) == ["default"]
    change()
    assert "default" not in names(root)


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "x" * 101, "a\nb"])
def test_a_bad_name_is_refused(root: Path, name: str) -> None:
    for act in (tgraph.copy_collection, tgraph.rename_collection):
        with pytest.raises(UsageError, match="can't be the name"):
            act(root, "default", name)
    with pytest.raises(UsageError, match="can't be the name"):
        tgraph.create_collection(root, name)
    assert names(root) == ["default"]


def test_a_name_that_is_taken_is_refused(root: Path) -> None:
    tgraph.create_collection(root, "taken")
    for act in (tgraph.copy_collection, tgraph.rename_collection):
        with pytest.raises(UsageError, match="already"):
            act(root, "default", "taken")
    with pytest.raises(UsageError, match="already"):
        tgraph.create_collection(root, "taken")
    with pytest.raises(UsageError, match="is empty"):
        tgraph.copy_collection(root, "taken", "new")
    assert names(root) == ["default", "taken"]


def test_the_commands(root: Path) -> None:
    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(cli, ["--root", str(root), "collections", *arguments])
        return done.exit_code, done.stdout, done.stderr

    assert run("copy", "default", "trial", "--quiet")[0] == 0
    assert run("rename", "trial", "second")[0] == 0
    assert run("create", "third")[0] == 0
    listed = json.loads(run("list", "--json")[1])
    assert [(each["name"], each["documents"]) for each in listed] == [
        ("default", 1),
        ("second", 1),
        ("third", 0),
    ]
    assert "second" in run("list")[1]
    code, _, error = run("delete", "second")
    assert (code, "--yes" in error) == (2, True)
    assert run("delete", "second", "--yes")[0] == 0
    assert names(root) == ["default", "third"]
    code, _, error = run("delete", "nowhere", "--yes")
    assert (code, "no collection 'nowhere'" in error) == (1, True)


def test_a_copy_while_others_index(root: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("Irene Curie studied radium.\n")
    team = [start(index, root, [tmp_path / "b.txt"]), start(copied, root, "trial")]
    assert [worker.end() for worker in team] == [0, 0]
    with in_collection(root, "trial") as trial:
        assert trial.integrity(team[1].told[0]).ok
