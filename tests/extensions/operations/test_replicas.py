"""Replicas follow the log: the same graph, whatever happens on the way; nothing altered gets in."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Quad

from tests.support.endpoints import s3_options, s3_server
from tests.support.workers import collection, copy_graph, open_graph
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import (
    EndpointError,
    TgraphError,
    UnknownNameError,
    UsageError,
    VerificationError,
)
from tgraph.extensions.operations import follow, replica_shipping, replicas, ship
from tgraph.extensions.operations.replica_storage import Storage
from tgraph.store.base import Store
from tgraph.store.journal import Journal, read_journal

pytest.importorskip("fsspec")

TEXTS = {
    "a": "Robert Falcon Scott led Terra Nova Expedition.\nScott reached South Pole.\n",
    "b": "Roald Amundsen reached South Pole.\n",
}
QUESTION = "Who reached the South Pole?"


def index(kg: KnowledgeGraph, folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    assert not kg.index([folder / f"{name}.txt" for name in texts]).failed


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "g") as kg:
        index(kg, tmp_path, **TEXTS)
        kg.ask(QUESTION)
        yield kg


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "shipped")


def quads(store: Store) -> set[Quad]:
    return set(store.match())


def caught_up(replica: Path, url: str) -> set[Quad]:
    with open_graph(replica) as kg:
        follow(kg, url)
        assert kg.integrity().ok
        return quads(kg.opened.read())


def derived_parts(root: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in collection(root).vectors.iterdir()}


def test_a_replica_has_everything_and_answers_the_same(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    shipped = ship(graph, url)
    assert shipped.entries == graph.integrity().sequence
    assert ship(graph, url).entries == 0
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    here = graph.ask(QUESTION, history=())
    with open_graph(tmp_path / "r") as kg:
        there = kg.ask(QUESTION, history=())
        assert there.text == here.text
        assert derived_parts(tmp_path / "r") == derived_parts(graph.root) - {"network"}


@pytest.mark.slow
def test_one_that_was_away_catches_up(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    for name in "cde":
        index(graph, tmp_path, **{name: f"Explorer {name.upper()}x led Party {name.upper()}y.\n"})
        graph.ask(QUESTION)
        ship(graph, url)
    graph.retract(str(tmp_path / "b.txt"), reason="withdrawn")
    ship(graph, url)
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    assert caught_up(tmp_path / "late", url) == quads(graph.opened.read())


def test_what_a_replica_records_comes_back_and_is_chained(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    with open_graph(tmp_path / "r") as kg:
        asked = kg.ask("Who led the Terra Nova Expedition?")
        with pytest.raises(UnknownNameError, match="has added the sessions to the chain"):
            kg.trace(asked.session)
        assert follow(kg, url).journals == 1
        assert follow(kg, url).journals == 0
    assert ship(graph, url).journals == 1
    assert graph.trace(asked.session).question == "Who led the Terra Nova Expedition?"
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    assert not list(collection(tmp_path / "r").journals.glob("*.journal"))
    with open_graph(tmp_path / "r") as kg:
        assert kg.trace(asked.session).answer == asked.text
    assert ship(graph, url).journals == 0


def test_texts_may_have_what_some_take_for_the_end_of_a_line(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    graph.ask("Who led the Terra\u2028Nova\u0085Expedition?\u2029", history=())
    ship(graph, url)
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())


def test_a_forged_journal_is_not_taken_in(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    with open_graph(tmp_path / "r") as kg:
        asked = kg.ask("Who led the Terra Nova Expedition?")
        follow(kg, url)
    [journal] = (Path(url) / "journals").iterdir()
    frames = read_journal(journal).frames
    forged = "<urn:x:a> <urn:x:b> <urn:x:c> .\n"
    other = graph.sessions.summaries()[0].explain_id.replace(":session:", ":standing:")
    standing = f"<{other}> <http://www.w3.org/ns/prov#wasInvalidatedBy> <urn:x:c> .\n"
    within = f"<{frames[0]['bundle']}> {{ {standing} }}\n"
    before = quads(graph.opened.read())
    changes = ({"quads": forged}, {"quads": within}, {"shared": forged}, {"bundle": "x"})
    for change in (*changes, {"catalogue": "urn:x"}):
        journal.unlink()
        with closing(Journal(journal)) as writer:
            for number, frame in enumerate(frames):
                writer.append(frame if number else {**frame, **change})
        assert ship(graph, url).journals == 0
        assert quads(graph.opened.read()) == before
    journal.write_bytes(b"nothing of the kind")
    assert ship(graph, url).journals == 0
    assert asked.session not in {each.explain_id for each in graph.sessions.summaries()}


@pytest.mark.slow
def test_an_erased_text_is_nowhere(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    graph.purge(str(tmp_path / "b.txt"), reason="a request")
    assert ship(graph, url).anew
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    assert caught_up(tmp_path / "new", url) == quads(graph.opened.read())
    for place in (Path(url), tmp_path / "r" / "collections"):
        for path in place.rglob("*"):
            if path.is_file() and "journals" not in path.parts:
                data = path.read_bytes()
                data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
                assert b"Amundsen" not in data, path


def test_a_replica_only_follows(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    with open_graph(tmp_path / "r") as kg:
        with pytest.raises(UsageError, match="replica"):
            index(kg, tmp_path, c="Nansen led Fram Expedition.\n")
        with pytest.raises(UsageError, match="replica"):
            ship(kg, url)
        with pytest.raises(UsageError, match="replica of"):
            follow(kg, str(tmp_path / "elsewhere"))
    with pytest.raises(UsageError, match="follows no other"):
        follow(graph, url)
    with open_graph(tmp_path / "other") as other:
        index(other, tmp_path, c="Nansen led Fram Expedition.\n")
        with pytest.raises(UsageError, match="another collection"):
            ship(other, url)


@pytest.mark.slow
def test_a_replica_does_without_what_was_not_built(url: str, tmp_path: Path) -> None:
    with open_graph(tmp_path / "g") as graph:
        index(graph, tmp_path, **TEXTS, **{f"n{n}": f"Nothing {n} happened.\n" for n in range(5)})
        ship(graph, url)
        said: list[str] = []
        with open_graph(tmp_path / "r", message=said.append) as kg:
            follow(kg, url)
            assert kg.ask(QUESTION).sentences
            assert any("no contexts of chunks (`contextual_search.enabled`)" in s for s in said)
            with pytest.raises(UsageError, match="no contexts of chunks"):
                kg.ask(QUESTION, "contextual")
            graph.ask(QUESTION, "contextual")
            ship(graph, url)
            follow(kg, url)
            assert kg.ask(QUESTION, "contextual").sentences


# --- what is not as it was shipped ---


def segments(url: str) -> list[Path]:
    return sorted((Path(url) / "log").glob("*.gz"))


def rewritten(path: Path, change: Any) -> None:
    """The segment with one line changed."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    told = [json.loads(line) for line in lines]
    change(told)
    path.write_bytes(gzip.compress("".join(json.dumps(t) + "\n" for t in told).encode()))


def _swap(path: Path, other: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)


def _content(url: str) -> Path:
    return sorted((Path(url) / "contents").iterdir())[0]


TAMPERED: dict[str, Any] = {
    "a gap": lambda url: segments(url)[1].unlink(),
    "another order": lambda url: _swap(segments(url)[1], segments(url)[2]),
    "a cut": lambda url: segments(url)[1].write_bytes(segments(url)[1].read_bytes()[:-20]),
    "no segment": lambda url: segments(url)[1].write_bytes(b""),
    "an entry": lambda url: rewritten(
        segments(url)[0], lambda t: t[1].update(quads=t[1]["quads"].replace("20", "19", 1))
    ),
    "a bundle": lambda url: rewritten(
        segments(url)[0], lambda t: t[-1].update(bundle=t[-1]["bundle"].replace("South", "North"))
    ),
    "a missing entry": lambda url: rewritten(segments(url)[0], lambda t: t.pop(1)),
    "no content": lambda url: _content(url).unlink(),
    "no vector": lambda url: shutil.rmtree(Path(url) / "derived"),
    "the head": lambda url: (Path(url) / "log" / "head").write_text("{}"),
    "a content": lambda url: _content(url).write_bytes(gzip.compress(b"forged")),
    "a vector": lambda url: [
        path.write_bytes(gzip.compress(b"forged")) for path in (Path(url) / "derived").iterdir()
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("what", TAMPERED)
def test_what_is_not_as_it_was_sealed_does_not_get_in(
    graph: KnowledgeGraph, url: str, tmp_path: Path, what: str
) -> None:
    ship(graph, url)
    for name in "cd":
        index(graph, tmp_path, **{name: f"Explorer {name.upper()}x led Party {name.upper()}y.\n"})
        ship(graph, url)
    TAMPERED[what](url)
    with open_graph(tmp_path / "r") as kg:
        with pytest.raises(VerificationError):
            follow(kg, url)
        with pytest.raises(TgraphError):
            kg.ask(QUESTION)


def test_a_log_that_was_cut_off_is_noticed_by_who_knew_more(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    graph.ask(QUESTION)
    ship(graph, url)
    before = caught_up(tmp_path / "r", url)
    segments(url)[-1].unlink()
    with open_graph(tmp_path / "r") as kg:
        with pytest.raises(VerificationError, match="ends before"):
            follow(kg, url)
        assert quads(kg.opened.read()) == before
    with pytest.raises(VerificationError, match="ends before"):
        ship(graph, url)


# --- two writers ---


@pytest.mark.slow
def test_two_graphs_do_not_share_a_place(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    with open_graph(tmp_path / "r") as kg:
        kg.ask(QUESTION)
        follow(kg, url)
    graph.close()
    copy = copy_graph(graph.root, tmp_path / "copy")
    with open_graph(graph.root) as one, open_graph(copy) as two:
        index(one, tmp_path, c="Nansen led Fram Expedition.\n")
        index(two, tmp_path, d="Filchner led Deutschland Expedition.\n")
        assert ship(one, url).journals == 1
        two.purge(str(tmp_path / "b.txt"), reason="a request")  # which would clear the place
        shipped, known = everything(url), quads(two.opened.read())
        for _ in range(2):
            with pytest.raises(UsageError, match="went on by itself"):
                ship(two, url)
        assert everything(url) == shipped
        assert quads(two.opened.read()) == known
        assert caught_up(tmp_path / "r", url) == quads(one.opened.read())


@pytest.mark.slow
def test_of_two_that_ship_in_the_same_moment_one_is_refused(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    graph.close()
    head = (Path(url) / "log" / "head").read_bytes()
    with open_graph(copy_graph(graph.root, tmp_path / "copy")) as two:
        index(two, tmp_path, d="Filchner led Deutschland Expedition.\n")
        ship(two, url)
    (Path(url) / "log" / "head").write_bytes(head)  # its last segment is there, and not told yet
    with open_graph(graph.root) as one:
        index(one, tmp_path, c="Nansen led Fram Expedition.\n")
        shipped = everything(url)
        with pytest.raises(UsageError, match="went on by itself"):
            ship(one, url)
        assert shipped.items() <= everything(url).items()


def everything(url: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(url).rglob("*") if path.is_file()}


# --- interruptions ---


@pytest.mark.slow
def test_wherever_it_is_cut_off_it_goes_on(
    graph: KnowledgeGraph, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Breaking(Storage):
        left = 0

        def _count(self) -> None:
            if type(self).left == 0:
                raise EndpointError("cut off")
            type(self).left -= 1

        def find(self, folder: str, name: str) -> bytes | None:
            self._count()
            return super().find(folder, name)

        def create(self, folder: str, name: str, data: bytes) -> bool:
            self._count()
            return super().create(folder, name, data)

        def write(self, folder: str, name: str, data: bytes) -> None:
            self._count()
            super().write(folder, name, data)

        def delete(self, folder: str, names: Iterable[str]) -> None:
            for name in names:
                self._count()
                super().delete(folder, [name])

    for module in (replicas, replica_shipping):
        monkeypatch.setattr(module, "Storage", Breaking)

    def until_done(work: Any) -> int:
        for left in range(1, 200):
            Breaking.left = left
            try:
                work()
            except EndpointError:
                continue
            return left
        pytest.fail("it never came to its end")

    assert until_done(lambda: ship(graph, url)) > 2
    with open_graph(tmp_path / "r") as kg:
        assert until_done(lambda: follow(kg, url)) > 2
        assert quads(kg.opened.read()) == quads(graph.opened.read())
        assert kg.integrity().ok


@pytest.mark.slow
def test_a_round_asks_for_what_changed_and_lists_nothing_else(
    graph: KnowledgeGraph, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[tuple[str, ...]] = []

    class Counted(Storage):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name not in ("names", "has_file", "find", "create", "write", "delete"):
                return found

            def noted(folder: str, *rest: Any) -> Any:
                requests.append((name, folder))
                return found(folder, *rest)

            return noted

    def asked(work: Callable[[], object]) -> Counter[tuple[str, ...]]:
        requests.clear()
        work()
        return Counter(requests)

    for module in (replicas, replica_shipping):
        monkeypatch.setattr(module, "Storage", Counted)
    head = {("find", "log"): 1, ("has_file", "log"): 1}
    with open_graph(tmp_path / "r") as kg:
        for name in "cd":
            ship(graph, url)
            follow(kg, url)
            assert asked(lambda: ship(graph, url)) == {**head, ("names", "journals"): 1}
            assert asked(lambda: follow(kg, url)) == head
            graph.ask(QUESTION, history=())
            graph.opened.read()
            shipped, followed = asked(lambda: ship(graph, url)), asked(lambda: follow(kg, url))
            assert not {each for each in shipped + followed if "derived" in each}
            assert {each for each in shipped + followed if each[0] == "names"} == {
                ("names", "journals")
            }
            assert followed.total() < shipped.total() < 20
            index(graph, tmp_path, **{name: f"Explorer {name}x led Party {name}y.\n"})


@pytest.mark.slow
def test_a_log_may_be_moved(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    ship(graph, url)
    caught_up(tmp_path / "r", url)
    moved = str(Path(url).rename(tmp_path / "moved"))
    with open_graph(tmp_path / "r") as kg:
        kg.ask(QUESTION)
        assert follow(kg, moved).journals == 1
    assert ship(graph, moved).journals == 1
    assert caught_up(tmp_path / "r", moved) == quads(graph.opened.read())
    with open_graph(tmp_path / "other") as other:
        index(other, tmp_path, c="Nansen led Fram Expedition.\n")
        ship(other, url)
    with open_graph(tmp_path / "r") as kg, pytest.raises(UsageError, match="is another"):
        follow(kg, url)


def test_a_folder_is_the_same_however_it_is_named(
    graph: KnowledgeGraph, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ship(graph, "shipped")
    caught_up(tmp_path / "r", "shipped/")
    monkeypatch.chdir("/")
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    with open_graph(tmp_path / "r") as kg, pytest.raises(UsageError, match="is a replica of"):
        follow(kg, "shipped")


def test_a_folder_that_cant_be_written_is_one_that_cant_be_reached(
    graph: KnowledgeGraph, url: str
) -> None:
    lock = Path(url) / ".lock"
    lock.mkdir(parents=True)
    with pytest.raises(EndpointError, match="shipped can't be reached: Is a directory"):
        ship(graph, url)
    lock.rmdir()
    assert ship(graph, url).entries


def test_storage_may_be_anything_that_fsspec_knows(graph: KnowledgeGraph, tmp_path: Path) -> None:
    url = f"memory://{sha256(str(tmp_path).encode()).hexdigest()}"
    ship(graph, url)
    assert caught_up(tmp_path / "r", url) == quads(graph.opened.read())
    with pytest.raises(UsageError, match="can't be used"):
        ship(graph, "nothing://x")


@pytest.mark.slow
def test_over_s3(graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with s3_server(tmp_path) as server:
        config: Any = import_module("fsspec.config")
        monkeypatch.setitem(config.conf, "s3", s3_options(server))
        files: Any = import_module("fsspec").filesystem("s3")
        url = "s3://graphs/polar"
        with open_graph(tmp_path / "r") as kg:
            with pytest.raises(EndpointError, match="Nothing has been shipped"):
                follow(kg, url)
            files.mkdir("graphs")
            ship(graph, url)
            follow(kg, url)
            asked = kg.ask("Who led the Terra Nova Expedition?", history=())
            assert asked.text == graph.ask("Who led the Terra Nova Expedition?", history=()).text
            assert follow(kg, url).journals == 1
            assert ship(graph, url).journals == 1
            follow(kg, url)
            assert kg.integrity().ok
            assert quads(kg.opened.read()) == quads(graph.opened.read())
            assert graph.trace(asked.session).answer == asked.text
        content = files.ls("graphs/polar/contents", detail=False)[0]
        files.pipe_file(content, gzip.compress(b"forged"))
        with open_graph(tmp_path / "r2") as other:
            with pytest.raises(VerificationError, match="is another one"):
                follow(other, url)
            with pytest.raises(TgraphError):
                other.ask(QUESTION)
    with open_graph(tmp_path / "r") as kg:
        assert kg.ask(QUESTION).text


def test_the_commands_say_what_they_did(graph: KnowledgeGraph, url: str, tmp_path: Path) -> None:
    def run(*call: str) -> Any:
        return CliRunner().invoke(cli, [*call, "-q"])

    shipped = run("ship", url, "-r", str(graph.root))
    assert shipped.exit_code == 0, shipped.output
    assert "Shipped: " in shipped.output
    followed = run("follow", url, "-r", str(tmp_path / "r"), "--json")
    assert followed.exit_code == 0, followed.output
    assert json.loads(followed.stdout)["entries"] == graph.integrity().sequence
    segments(url)[0].write_bytes(b"")
    assert run("follow", url, "-r", str(tmp_path / "r2")).exit_code == 4
