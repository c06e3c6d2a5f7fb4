"""A backup is of one moment whatever others write meanwhile; it is whole or not there, and so is
what is restored of it."""

from __future__ import annotations

import io
import json
import tarfile
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.workers import (
    EDGES,
    QUESTION,
    Tell,
    ask,
    assert_chain,
    collection,
    copy_graph,
    edges,
    graph_with_a_session,
    index,
    killed_at,
    open_graph,
    seal_quads,
    snapshot,
    start,
)
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.saved_collections import PublishedCollection
from tgraph.engine.schemas import build_schemas
from tgraph.errors import FormatError, StoreError, TgraphError, UsageError, VerificationError
from tgraph.extensions.operations.backup import LIST, Backup, back_up, restore_backup
from tgraph.index.vectors.inverted_list_store import exact_index
from tgraph.settings import load_settings
from tgraph.vocabulary import URN


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph with a document and a session; tests that write work on copies."""
    return graph_with_a_session(tmp_path_factory.mktemp("indexed"))


@pytest.fixture(scope="module")
def saved(indexed: Path) -> Path:
    """A backup of it."""
    file = indexed.parent / "saved.tar"
    back_up(indexed, file)
    return file


def save(tell: Tell, root: Path, file: Path) -> None:
    done = back_up(root, file)
    tell((done.collections[0].sequence, done.collections[0].head))


def unpack(tell: Tell, file: Path, root: Path) -> None:
    restore_backup(file, root)


def changed(saved: Path, target: Path, name: str, data: bytes | None) -> Path:
    """The backup with another content of a member, or without it."""
    with tarfile.open(saved) as old, tarfile.open(target, "w") as new:
        for member in old:
            content = old.extractfile(member)
            assert content is not None
            kept = content.read() if member.name != name else data
            if kept is not None:
                member.size = len(kept)
                new.addfile(member, io.BytesIO(kept))
    return target


def members(saved: Path) -> list[str]:
    with tarfile.open(saved) as archive:
        return archive.getnames()


def test_what_is_restored_answers_and_goes_on(saved: Path, indexed: Path, tmp_path: Path) -> None:
    done = restore_backup(saved, tmp_path / "r")
    assert isinstance(done, Backup)
    with snapshot(indexed) as found:
        assert (done.collections[0].sequence, done.collections[0].head) == (
            found.pointer.sequence,
            found.pointer.head,
        )
    assert edges(tmp_path / "r") == EDGES
    with open_graph(tmp_path / "r", create=False) as kg, open_graph(indexed, create=False) as old:
        assert kg.sessions.summaries() == old.sessions.summaries()
        assert kg.replay("last").is_same
        answer = kg.ask(QUESTION, "graph")
        assert answer.text == old.trace("last").answer
        assert kg.integrity().ok
    assert saved.stat().st_mode & 0o777 == 0o600
    assert len(assert_chain(tmp_path / "r")) == 2


@pytest.mark.slow
def test_backups_while_others_index_and_ask(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed, tmp_path / "g")
    documents = [tmp_path / f"{number}.txt" for number in range(2)]
    for number, document in enumerate(documents):
        document.write_text(f"Scientist {number} studied radium.\n")
    for turn, document in enumerate(documents):
        team = [start(ask, root, 4), start(index, root, [document])]
        savers = [start(save, root, tmp_path / f"{turn}-{n}.tar") for n in range(2)]
        assert [worker.end() for worker in (*team, *savers)] == [0, 0, 0, 0]
        assert not any(told[0] == "error" for worker in team for told in worker.told)
        for number, saver in enumerate(savers):
            new = tmp_path / f"r{turn}-{number}"
            done = restore_backup(tmp_path / f"{turn}-{number}.tar", new)
            assert saver.told == [(done.collections[0].sequence, done.collections[0].head)]
            assert set(assert_chain(new).values()) == {"completed"}
            grown = {f"scientist-{n} studied radium" for n in range(turn + 1)}
            assert EDGES <= edges(new) <= EDGES | grown
    assert edges(root) == EDGES | {f"scientist-{n} studied radium" for n in range(2)}
    assert set(assert_chain(root).values()) == {"completed"}


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 2, 4])
def test_a_kill_leaves_no_half_file_and_no_half_folder(
    indexed: Path, saved: Path, tmp_path: Path, number: int
) -> None:
    for work, what in (
        ((save, indexed, tmp_path / "b.tar"), tmp_path / "b.tar"),
        ((unpack, saved, tmp_path / "r"), tmp_path / "r"),
    ):
        start(killed_at, number, *work).end()
        if what.exists():  # it was killed afterwards, or not at all
            continue
        assert start(*work).end() == 0
        assert what.exists()
    assert edges(tmp_path / "r") == EDGES
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_damaged_backup_makes_no_folder(saved: Path, tmp_path: Path) -> None:
    data = saved.read_bytes()
    for place in range(700, len(data) - 4096, len(data) // 12):
        spoilt = bytearray(data)
        spoilt[place] ^= 0xFF
        (tmp_path / "b.tar").write_bytes(spoilt)
        with suppress(StoreError):
            restore_backup(tmp_path / "b.tar", tmp_path / "r")
        if (tmp_path / "r").exists():  # what was changed is the filling between two members
            assert edges(tmp_path / "r") == EDGES
            (tmp_path / "r").rename(tmp_path / f"r{place}")
    for size in (0, 1000, len(data) // 2):
        (tmp_path / "b.tar").write_bytes(data[:size])
        with pytest.raises(StoreError, match="backup"):
            restore_backup(tmp_path / "b.tar", tmp_path / "r")
    assert not (tmp_path / "r").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_backup_without_one_of_its_files_or_with_another_is_refused(
    saved: Path, tmp_path: Path
) -> None:
    names = members(saved)
    text = next(name for name in names if "/librarian/" in name)
    for name, data in ((text, None), (text, b"forged"), (LIST, None), (LIST, b"{}")):
        with pytest.raises(StoreError, match="backup"):
            restore_backup(changed(saved, tmp_path / "b.tar", name, data), tmp_path / "r")
    with pytest.raises(FormatError):
        restore_backup(changed(saved, tmp_path / "b.tar", LIST, b'{"format": 99}'), tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "name", ["../out", "collections/../../out", "/out", "collections", "other/file"]
)
def test_a_backup_writes_nowhere_else(saved: Path, tmp_path: Path, name: str) -> None:
    with tarfile.open(tmp_path / "b.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = 4
        if name == "collections":
            member.type, member.linkname, member.size = tarfile.SYMTYPE, "/", 0
        archive.addfile(member, io.BytesIO(b"evil"))
    with pytest.raises(StoreError, match="not a whole backup"):
        restore_backup(tmp_path / "b.tar", tmp_path / "r")
    assert [path.name for path in tmp_path.iterdir()] == ["b.tar"]


def test_a_damaged_graph_gives_no_backup(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed, tmp_path / "g")
    text = next(path for path in collection(root).librarian.glob("??/*"))
    text.write_bytes(text.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match=text.name.removesuffix(".gz")):
        back_up(root, tmp_path / "b.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_an_erasure_meanwhile_ends_a_backup(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed, tmp_path / "g")
    last = max(collection(root).librarian.glob("??/*"))
    with pytest.raises(StoreError, match="erased"):
        back_up(root, tmp_path / "b.tar", progress=lambda step: last.unlink(missing_ok=True))
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


def test_nothing_is_written_over(saved: Path, indexed: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "mine").write_text("x")
    with pytest.raises(UsageError, match="there already"):
        restore_backup(saved, tmp_path / "r")
    with pytest.raises(UsageError, match="there already"):
        back_up(indexed, saved)
    open_graph(tmp_path / "empty").close()
    with pytest.raises(TgraphError, match="nothing yet"):
        back_up(tmp_path / "empty", tmp_path / "b.tar")


def test_the_commands(indexed: Path, tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.stderr

    file = str(tmp_path / "b.tar")
    made = json.loads(run("backup", file, "-r", str(indexed), "--json"))
    again = json.loads(run("restore", file, "-r", str(tmp_path / "r"), "--json"))
    for printed in (made, again):
        jsonschema.validate(printed, build_schemas()["backup"])
    assert made["collections"] == again["collections"]
    assert (made["files"], made["bytes"]) == (again["files"], again["bytes"])
    assert (made["root"], again["root"]) == (str(indexed), str(tmp_path / "r"))
    assert "there already" in run("backup", file, "-r", str(indexed), code=2)
    assert "all collections" in run("restore", file, "-C", "x", code=2)
    for command in ("backup", "restore"):
        assert "Example" in run(command, "--help")


def doctored(saved: Path, target: Path, contents: dict[str, bytes], **said: Any) -> Path:
    """The backup with other contents and another list, whose sums fit."""
    with tarfile.open(saved) as old:
        kept = {m.name: old.extractfile(m).read() for m in old}  # type: ignore[union-attr]
    listed = json.loads(kept.pop(LIST))
    kept |= contents
    listed["files"] = {n: [len(c), sha256(c).hexdigest()] for n, c in kept.items()}
    kept[LIST] = json.dumps({**listed, **said}).encode()
    with tarfile.open(target, "w") as new:
        for name, content in kept.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            new.addfile(member, io.BytesIO(content))
    return target


ONE = {"name": "default", "catalogue": f"{URN}collection:x", "generation": 1, "sequence": 3}


@pytest.mark.parametrize(
    "said",
    [
        {"files": None},
        {"files": ["a"]},
        {"files": {"a": ["1", 2]}},
        {"collections": None},
        {"collections": []},
        {"collections": [ONE]},
        {"collections": [{**ONE, "head": 1}]},
        {"collections": [{**ONE, "head": "0" * 64, "name": "../x"}]},
        {"collections": [{**ONE, "head": "0" * 64, "name": "other"}]},
        {"collections": [{**ONE, "head": "0" * 64, "catalogue": "no IRI"}]},
        {"collections": [{**ONE, "head": "0" * 64, "sequence": "many"}]},
        {"made": 10**400},
        {"made": "\ud800"},
        {"format": "1"},
    ],
)
def test_a_doctored_list_is_no_backup(saved: Path, tmp_path: Path, said: dict[str, Any]) -> None:
    file = doctored(saved, tmp_path / "b.tar", {}, **said)
    result = CliRunner().invoke(cli, ["restore", str(file), "-r", str(tmp_path / "r")])
    assert result.exit_code == 1
    assert "nexpected" not in result.output
    assert "backup" in result.output
    for data in (b"", b"[]", b"[" * 100_000, b"\xff", b'{"format": NaN}'):
        with pytest.raises(StoreError, match="not a whole backup"):
            restore_backup(changed(saved, tmp_path / "c.tar", LIST, data), tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "name",
    [
        "collections/other/store/CURRENT",
        "collections/default/current.json",
        "collections/default/replica.json",
        "collections/default/journals/0.journal",
        "collections/default/changes/1/commit.json",
    ],
)
def test_a_backup_brings_nothing_that_is_not_checked(
    saved: Path, tmp_path: Path, name: str
) -> None:
    file = doctored(saved, tmp_path / "b.tar", {name: b"{}"})
    with pytest.raises(StoreError, match="not a whole backup"):
        restore_backup(file, tmp_path / "r")


def test_a_bundle_that_speaks_of_another_session_is_not_restored(
    indexed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its seal and the chain fit, as in a backup by another program."""
    with open_graph(copy_graph(indexed, tmp_path / "g"), create=False) as kg:
        session = kg.sessions.summaries()[0].explain_id
        bundle = NamedNode(v.bundle_iri("5f0c1d8e-0000-4000-8000-000000000000"))
        forged = Quad(NamedNode(session), v.tg("status"), Literal("forged"), bundle)
        seal_quads(kg, [forged], "session", bundle.value)
    with pytest.raises(VerificationError, match="could not be restored"):
        back_up(tmp_path / "g", tmp_path / "b.tar")
    monkeypatch.setattr(PublishedCollection, "check", lambda published: None)
    back_up(tmp_path / "g", tmp_path / "b.tar")
    result = CliRunner().invoke(
        cli, ["restore", str(tmp_path / "b.tar"), "-r", str(tmp_path / "r")]
    )
    assert result.exit_code == 4
    assert "not intact (1 problems; the first: added bundle" in result.output
    assert not (tmp_path / "r").exists()


def test_vectors_of_other_texts_are_made_anew(indexed: Path, tmp_path: Path) -> None:
    root = copy_graph(indexed, tmp_path / "g")
    (root / "tgraph.toml").write_text('[embedding]\nprovider = "hashing"\n')
    with open_graph(root, create=False) as kg:
        store, folder = kg.opened.parts.vector_store, kg.opened.folder.vectors
        honest = store.open_vectors(folder, "entity")
        everywhere = np.arange(len(honest))
        windows = honest.read_windows(everywhere)
        forged = exact_index(
            "entity", honest.agent, honest.keys, replace(windows, vectors=-windows.vectors)
        )
        with kg.opened.ledger.open() as (written, _):
            forged.save(folder, kg.opened.ledger.generation(written))
            kg.opened.ledger.publish(written)
    back_up(root, tmp_path / "b.tar")
    said: list[str] = []
    restore_backup(tmp_path / "b.tar", tmp_path / "r", message=said.append)
    assert said == ["The entity vectors that were received are not those of their texts."]
    with open_graph(tmp_path / "r", create=False) as kg:
        restored = store.open_vectors(kg.opened.folder.vectors, "entity")
        assert list(restored.keys) == list(honest.keys)
        assert np.array_equal(restored.read_windows(everywhere).vectors, windows.vectors)
        assert kg.ask(QUESTION, "graph").sentences
        assert kg.integrity().ok


SETTINGS = """
collection = "default"
prompts = "/elsewhere"
[chat]
base_url = "http://somebody:pw@evil.example/v1?api_key=pw"
api_key = "pw"
temperature = 0.5
[rerank]
base_url = "http://evil.example"
[integrity]
signing_key = "/home/me/key"
[unknown]
thing = 1
"""


def test_a_backup_brings_no_address_and_no_key(
    saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    file = doctored(saved, tmp_path / "b.tar", {"tgraph.toml": SETTINGS.encode()})
    restored = CliRunner().invoke(cli, ["restore", str(file), "-r", str(tmp_path / "r")])
    assert restored.exit_code == 0, restored.output
    for name in ("chat.base_url", "rerank.base_url", "prompts", "integrity.signing_key", "thing"):
        assert name in restored.output
    assert "evil.example" in restored.output
    assert "--accept-settings" in restored.output
    assert "pw" not in restored.output
    settings = load_settings(tmp_path / "r")
    assert settings.chat.temperature == 0.5
    assert (settings.chat.base_url, settings.rerank.base_url) == (None, None)
    assert (settings.prompts, settings.integrity.signing_key) == (None, None)
    assert settings.chat.api_key is not None
    assert settings.chat.api_key.get_secret_value() == "sk-mine"
    own = SETTINGS.partition("[unknown]")[0]
    file = doctored(saved, tmp_path / "c.tar", {"tgraph.toml": own.encode()})
    accepted = ["restore", str(file), "-r", str(tmp_path / "a"), "--accept-settings", "-q"]
    assert CliRunner().invoke(cli, accepted).exit_code == 0
    assert (tmp_path / "a" / "tgraph.toml").read_text() == own
