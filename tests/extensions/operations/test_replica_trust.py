"""A log is a claim: a replica believes a raised epoch by what it knows of the chain."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.workers import copy_graph, open_graph, seal_quads
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import EndpointError, TgraphError, VerificationError
from tgraph.extensions.operations import follow, replica_storage, ship
from tgraph.record.chain import GENESIS
from tgraph.record.signing import make_keys
from tgraph.store.statements import to_bytes

pytest.importorskip("fsspec")

QUESTION = "Who reached the South Pole?"


def index(kg: KnowledgeGraph, folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.txt").write_text(text)
    assert not kg.index([folder / f"{name}.txt"]).failed


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    with open_graph(tmp_path / "g") as kg:
        index(kg, tmp_path, "a", "Roald Amundsen reached South Pole.\n")
        kg.ask(QUESTION)
        yield kg


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "shipped")


def follow_quads(replica: Path, url: str) -> set[Quad]:
    with open_graph(replica) as kg:
        follow(kg, url)
        return set(kg.opened.read().match())


def rewrite_log(
    url: str, epoch: int, change: Callable[[dict[str, Any]], None], **said: Any
) -> None:
    """Write the log once more under an epoch, each line of an entry changed, in order."""
    log, previous = Path(url) / "log", GENESIS
    segments = sorted(log.glob("*.gz"))
    for path in segments:
        header, *entries = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
        for entry in entries:
            change(entry)
        header |= {"epoch": epoch, "previous": previous, **said}
        header["contents"] = [p.name for p in (Path(url) / "contents").iterdir()]
        lines = "".join(f"{json.dumps(line)}\n" for line in (header, *entries))
        path.write_bytes(gzip.compress(lines.encode()))
        previous = sha256(path.read_bytes()).hexdigest()
    head = json.loads((log / "head").read_text()) | {"epoch": epoch, "hash": previous}
    (log / "head").write_text(json.dumps(head))


def alter_batches(url: str) -> Callable[[dict[str, Any]], None]:
    def alter(entry: dict[str, Any]) -> None:
        if entry["kind"] == "batch":
            batch = gzip.decompress((Path(url) / "contents" / entry["content"]).read_bytes())
            forged = batch.replace(b"amundsen", b"somebody").replace(b"Amundsen", b"Somebody")
            entry["content"] = sha256(forged).hexdigest()
            (Path(url) / "contents" / entry["content"]).write_bytes(gzip.compress(forged))

    return alter


def refused(replica: Path, url: str, match: str) -> None:
    """Following fails, and the replica has and answers what it did."""
    with open_graph(replica) as kg:
        before, answer = set(kg.opened.read().match()), kg.ask(QUESTION, history=()).text
        for _ in range(2):
            with pytest.raises(VerificationError, match=match):
                follow(kg, url)
        assert set(kg.opened.read().match()) == before
        assert kg.ask(QUESTION, history=()).text == answer


@pytest.mark.parametrize(("epoch", "match"), [(0, "another one than was"), (1, "0 erasures")])
def test_an_altered_batch_is_refused_at_every_epoch(
    graph: KnowledgeGraph, url: str, tmp_path: Path, epoch: int, match: str
) -> None:
    ship(graph, url)
    follow_quads(tmp_path / "r", url)
    rewrite_log(url, epoch, alter_batches(url))
    with open_graph(tmp_path / "new") as kg:
        with pytest.raises(VerificationError, match=match):
            follow(kg, url)
        with pytest.raises(TgraphError):
            kg.ask(QUESTION)
    if epoch:
        refused(tmp_path / "r", url, match)


def test_the_password_of_the_storage_is_not_said(graph: KnowledgeGraph, tmp_path: Path) -> None:
    name = sha256(str(tmp_path).encode()).hexdigest()
    url = f"memory://somebody:hunter2@{name}"
    assert "hunter2" not in ship(graph, url).url
    for call in (["follow", url], ["follow", "memory://somebody:hunter2@nothing"]):
        result = CliRunner().invoke(cli, [*call, "-q", "-r", str(tmp_path / "r")])
        assert "hunter2" not in result.output + str(result.exception), result.output
    for wrong in ("ftp://somebody:hunter2@127.0.0.1:9/x", "nothing://somebody:hunter2@x"):
        result = CliRunner().invoke(cli, ["ship", wrong, "-r", str(graph.root)])
        assert result.exit_code in (2, 5), result.output
        assert "hunter2" not in result.output
        assert "nexpected" not in result.output


def test_a_session_without_its_bundle_is_refused(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    rewrite_log(url, 0, lambda entry: entry.update(bundle="") if "bundle" in entry else None)
    with open_graph(tmp_path / "r") as kg, pytest.raises(VerificationError, match="other quads"):
        follow(kg, url)


OTHER = "5f0c1d8e-0000-4000-8000-000000000000"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "match"),
    [
        ("session", "speaks of what is not its own"),
        ("batch", "changes the sealed record of sessions"),
        ("entry", "speaks of something else too"),
        ("bundle", "has quads of another graph"),
    ],
)
def test_what_is_sealed_and_speaks_of_another_session_does_not_get_in(
    graph: KnowledgeGraph, url: str, tmp_path: Path, kind: str, match: str
) -> None:
    ship(graph, url)
    follow_quads(tmp_path / "r", url)
    session = graph.sessions.summaries()[0]
    bundle = NamedNode(session.bundle if kind == "batch" else v.bundle_iri(OTHER))
    forged = Quad(NamedNode(session.explain_id), v.tg("status"), Literal("forged"), bundle)

    def alter(entry: dict[str, Any]) -> None:
        if entry["subject"] == v.bundle_iri(OTHER):
            name = "quads" if kind == "entry" else "bundle"
            place = NamedNode(session.bundle)
            strange = Quad(forged.subject, forged.predicate, forged.object, place)
            entry[name] += to_bytes([strange]).decode()

    if kind in ("session", "batch"):
        subject = f"{v.URN}batch:forged" if kind == "batch" else bundle.value
        seal_quads(graph, [forged], kind, subject)
    else:
        own = Quad(NamedNode(v.session_iri(OTHER)), v.tg("status"), Literal("completed"), bundle)
        seal_quads(graph, [own], "session", bundle.value)
    ship(graph, url)
    if kind in ("entry", "bundle"):
        rewrite_log(url, 0, alter)
    with open_graph(tmp_path / "new") as kg:
        with pytest.raises(VerificationError, match=match):
            follow(kg, url)
        with pytest.raises(TgraphError):
            kg.ask(QUESTION)
    if kind in ("session", "batch"):  # where the log goes on as the replica knows it
        refused(tmp_path / "r", url, match)


def test_a_log_that_is_cleared_and_not_shipped_anew_yet_leaves_the_replica(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    before = follow_quads(tmp_path / "r", url)
    head = Path(url) / "log" / "head"
    said = json.loads(head.read_text()) | {"number": 0, "hash": GENESIS, "epoch": 1}
    head.write_text(json.dumps(said))
    with open_graph(tmp_path / "r") as kg:
        with pytest.raises(EndpointError, match="begins anew and is not shipped yet"):
            follow(kg, url)
        assert set(kg.opened.read().match()) == before


@pytest.mark.slow
def test_the_log_of_another_graph_replaces_no_replica(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    follow_quads(tmp_path / "r", url)
    Path(url).rename(tmp_path / "gone")
    with open_graph(tmp_path / "other") as other:
        for name in "bcd":
            index(other, tmp_path, name, f"Explorer {name.upper()} reached North Pole.\n")
        other.purge(str(tmp_path / "b.txt"), reason="to raise the epoch")
        ship(other, url)
    refused(tmp_path / "r", url, "another graph")


@pytest.mark.parametrize("kind", ["large", "pipe", "folder"])
@pytest.mark.parametrize("name", ["log/head", "log/00000001.gz", "contents/*"])
def test_what_is_stored_has_a_size_and_is_a_file(
    graph: KnowledgeGraph,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
) -> None:
    ship(graph, url)
    path = min(Path(url).glob(name))
    path.unlink()
    if kind == "large":
        monkeypatch.setattr(
            replica_storage, "_MOST_BYTES", dict.fromkeys(replica_storage._MOST_BYTES, 1 << 20)
        )
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    problem = "has more than" if kind == "large" else "is no file"
    with open_graph(tmp_path / "r") as kg, pytest.raises(VerificationError, match=problem):
        follow(kg, url)


def test_vectors_and_tables_of_a_log_are_not_believed(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    ship(graph, url)
    follow_quads(tmp_path / "honest", url)
    with open_graph(tmp_path / "other") as other:  # whose derived files come with the record
        index(other, tmp_path, "a", "Otto Sverdrup led Fram.\n")
        ship(other, str(tmp_path / "wrong"))
    shutil.rmtree(Path(url) / "derived")
    (tmp_path / "wrong" / "derived").rename(Path(url) / "derived")
    header = json.loads(
        gzip.decompress(next((tmp_path / "wrong" / "log").glob("*.gz")).read_bytes()).splitlines()[
            0
        ]
    )
    rewrite_log(url, 0, lambda entry: None, derived=header["derived"])
    follow_quads(tmp_path / "deceived", url)
    with (
        open_graph(tmp_path / "honest") as honest,
        open_graph(tmp_path / "deceived") as deceived,
    ):
        answers = [kg.ask(QUESTION, "graph", history=()) for kg in (honest, deceived)]
        assert answers[0].text == answers[1].text
        assert "Amundsen" in answers[1].text
        for kind in ("chunk", "edge", "entity"):
            one, two = (
                kg.opened.parts.vector_store.open_vectors(kg.opened.folder.vectors, kind)
                for kg in (honest, deceived)
            )
            assert list(one.keys) == list(two.keys)


@pytest.mark.slow
def test_an_erasure_beside_an_altered_batch_explains_only_its_own(
    graph: KnowledgeGraph, url: str, tmp_path: Path
) -> None:
    index(graph, tmp_path, "b", "Otto Sverdrup led Fram.\n")
    ship(graph, url)
    follow_quads(tmp_path / "r", url)
    graph.purge(str(tmp_path / "b.txt"), reason="a request")
    ship(graph, url)
    kept = copy_graph(Path(url), tmp_path / "kept")
    rewrite_log(url, 1, alter_batches(url))
    refused(tmp_path / "r", url, "no erasure explains it")
    Path(url).rename(tmp_path / "forged")
    kept.rename(url)
    assert follow_quads(tmp_path / "r", url) == set(graph.opened.read().match())


@pytest.mark.slow
def test_a_signed_chain_is_followed_only_while_its_key_signs_it(url: str, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    make_keys(tmp_path / "key")
    signed = {"integrity.signing_key": str(tmp_path / "key")}
    with open_graph(tmp_path / "g", settings=signed) as kg:
        for name in "ab":
            index(kg, tmp_path, name, f"Roald Amundsen reached South Pole {name.upper()}.\n")
        ship(kg, url)
    follow_quads(tmp_path / "r", url)
    kept = copy_graph(Path(url), tmp_path / "kept")
    with open_graph(copy_graph(tmp_path / "g", tmp_path / "thief")) as thief:
        index(thief, tmp_path, "c", "Somebody reached South Pole.\n")
        ship(thief, url)
        refused(tmp_path / "r", url, "signature by the key")
        thief.purge(str(tmp_path / "b.txt"), reason="to raise the epoch")
        ship(thief, url)
        refused(tmp_path / "r", url, "signature by the key")
    Path(url).rename(tmp_path / "forged")
    kept.rename(url)
    with open_graph(tmp_path / "g", settings=signed) as kg:
        kg.purge(str(tmp_path / "b.txt"), reason="a request")
        ship(kg, url)
        assert follow_quads(tmp_path / "r", url) == set(kg.opened.read().match())
