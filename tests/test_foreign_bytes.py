"""Hostile files through the library and the commands: each costs a sentence, and little memory."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import hostile_files as hostile
from tests.support.memory import peak_memory, run_measured
from tgraph import foreign_bytes
from tgraph.engine.graph import open_graph
from tgraph.errors import TgraphError, UsageError, VerificationError
from tgraph.extensions.interchange import import_graph
from tgraph.extensions.lab.evaluation.files import read_items
from tgraph.extensions.operations.backup import restore_backup
from tgraph.extensions.operations.replica_log import Position, read_segment, segment_name
from tgraph.extensions.operations.replica_storage import LOG, Storage

PEAK = 700 << 20
"""Bytes that a command may take with the process that parses, whose own limit is 512 MB."""
GRAPHS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "parquet": (hostile.write_parquet_bomb, "ran out of memory; it may use 512 MB"),
    "parquet of nulls": (
        hostile.write_parquet_of_nulls,
        "has 10,000,000 rows, and a table of its size at most 100,000",
    ),
    "deep.jsonld": (hostile.write_deep_jsonld, "more than 100 deep in each other, the limit"),
    "deep.trig": (hostile.write_deep_turtle, "More than 100 brackets are in each other"),
    "alike.nt.gz": (hostile.write_packed_triples, "bytes, the limit"),
    "custom.json": (hostile.write_lightrag_json, "It has 10,000,002 lists and objects"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    settings = {"embedding.provider": "hashing"}
    with open_graph(tmp_path / "graph", create=True, settings=settings):
        return tmp_path / "graph"


def test_a_deep_graph_and_a_packed_one_are_refused_with_limit_and_remedy(
    root: Path, tmp_path: Path
) -> None:
    names = ("deep.jsonld", "alike.nt.gz")
    files = [GRAPHS[name][0](tmp_path / name) for name in names]
    with open_graph(root) as graph:
        failures = import_graph(graph, files).failed
    for failure, name in zip(failures, names, strict=True):
        assert failure.path.endswith(name)
        assert GRAPHS[name][1] in failure.message
        assert failure.remedy


@pytest.mark.parametrize("suffix", [".jsonld", ".ttl"])
def test_a_deep_ontology_is_refused(root: Path, tmp_path: Path, suffix: str) -> None:
    write = hostile.write_deep_jsonld if suffix == ".jsonld" else hostile.write_deep_turtle
    file = write(tmp_path / f"deep{suffix}")
    with open_graph(root) as graph, pytest.raises(TgraphError, match=rf"deep\{suffix} can't be"):
        graph.ontologies.add(file)


def test_a_sparse_file_in_a_backup_is_refused(tmp_path: Path) -> None:
    file = hostile.write_sparse_backup(tmp_path / "sparse.tar")
    with pytest.raises(TgraphError, match="would take 20,000,000,000 bytes") as caught:
        restore_backup(file, tmp_path / "restored")
    assert str(file) in caught.value.message
    assert caught.value.remedy
    assert not (tmp_path / "restored").exists()


def test_what_a_replica_follows_unpacks_to_little(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(foreign_bytes, "SMALL_STORED", 1_000_000)
    storage = Storage(str(tmp_path))
    entries = gzip.compress(b"{}\n" + b" " * 10_000_000, mtime=0)
    storage.write(LOG, segment_name(1), entries)
    limit = rf"Segment 1 .* {len(entries):,} to more than {200 * len(entries):,} bytes, the limit"
    with pytest.raises(VerificationError, match=limit):
        read_segment(storage, Position(str(tmp_path)))
    with pytest.raises(VerificationError, match="bytes, the limit"):
        storage.read_packed(LOG, segment_name(1), "The content a")
    storage.write(LOG, segment_name(1), gzip.compress(b'{"a":' * 20_000))
    with pytest.raises(VerificationError, match="more than 4 deep in each other"):
        read_segment(storage, Position(str(tmp_path)))


def test_an_evaluation_of_nothing_but_brackets_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "questions.json"
    file.write_bytes(b"[" + b"[]," * 5_000_000 + b"[]]")
    with pytest.raises(UsageError, match=r"5,000,002 lists and objects, and 4,194,304 fit"):
        read_items(file)


@pytest.mark.slow
def test_a_large_table_streams(tmp_path: Path) -> None:
    file = hostile.write_large_table(tmp_path / "entities.parquet")
    assert file.stat().st_size > 50_000_000
    assert peak_memory(hostile.read_whole_table, file) < PEAK


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAPHS)
def test_the_import_of_a_hostile_graph_takes_little_memory(
    name: str, root: Path, tmp_path: Path
) -> None:
    write, reason = GRAPHS[name]
    file = write(tmp_path / name)
    code, said, peak = run_measured("--root", str(root), "import", str(file))
    assert reason in " ".join(said.split())
    assert "Traceback" not in said
    assert (code, peak < PEAK) == (1, True)


@pytest.mark.slow
def test_a_hostile_book_and_backup_take_little_memory(root: Path, tmp_path: Path) -> None:
    book = hostile.write_epub_bomb(tmp_path / "book.epub")
    assert book.stat().st_size < 60_000
    code, said, peak = run_measured("--root", str(root), "index", str(book))
    assert "more than 200 times its size" in " ".join(said.split())
    assert (code, peak < PEAK) == (1, True)
    backup = hostile.write_sparse_backup(tmp_path / "sparse.tar")
    code, said, peak = run_measured("--root", str(tmp_path / "new"), "restore", str(backup))
    assert "a backup holds at most its own" in " ".join(said.split())
    assert (code, peak < PEAK) == (1, True)
