from __future__ import annotations

import io
import os
import socket
import sys
from pathlib import Path

import pytest

from tgraph.errors import IngestError
from tgraph.ingest.base import FileLimits
from tgraph.ingest.files import SourceFile, Unread, discover_files, load


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("docs/b.txt", "docs/a.md", "docs/sub/c.txt", "docs/.hidden", "docs/.git/d.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    return tmp_path


def names(*paths: str) -> list[str]:
    return [found.name for found in discover_files(paths) if isinstance(found, SourceFile)]


def problems(*paths: str) -> list[Unread]:
    return [found for found in discover_files(paths) if isinstance(found, Unread)]


def test_folders_are_walked_in_order_without_hidden_files():
    assert names("docs") == ["docs/a.md", "docs/b.txt", "docs/sub/c.txt"]
    assert names("docs/.hidden") == ["docs/.hidden"]


def test_files_come_once_and_in_the_order_of_the_call(folder):
    expected = ["docs/b.txt", "docs/a.md", "docs/sub/c.txt"]
    assert names("docs/b.txt", "docs", "./docs/a.md", str(folder / "docs")) == expected


def test_globs():
    assert names("docs/*.md") == ["docs/a.md"]
    assert names("**/*.txt") == ["docs/b.txt", "docs/sub/c.txt"]
    assert names("docs/**") == ["docs/a.md", "docs/b.txt", "docs/sub/c.txt"]
    assert [problem.name for problem in problems("*.nothing")] == ["*.nothing"]


def test_a_name_with_glob_characters_is_a_file(folder):
    (folder / "a[1].txt").write_text("text")
    assert names("a[1].txt") == ["a[1].txt"]


def test_link_loops_end_and_dangling_links_are_failures(folder):
    (folder / "docs" / "loop").symlink_to(folder / "docs")
    (folder / "docs" / "same.txt").symlink_to(folder / "docs" / "b.txt")
    (folder / "docs" / "gone.txt").symlink_to(folder / "nowhere")
    assert names("docs") == ["docs/a.md", "docs/b.txt", "docs/sub/c.txt"]
    (problem,) = problems("docs")
    assert (problem.name, problem.skipped) == ("docs/gone.txt", False)
    assert "link" in problem.reason


def test_a_missing_path_does_not_stop_the_others():
    found = list(discover_files(["missing.txt", "docs/a.md"]))
    assert found[0] == Unread("missing.txt", "There is no such file.")
    assert found[1].name == "docs/a.md"


def test_a_graph_folder_is_not_documents(folder):
    (folder / "docs" / "graph" / "collections").mkdir(parents=True)
    (folder / "docs" / "graph" / "graph.json").write_text("{}")
    assert "docs/graph/graph.json" not in names("docs")
    assert problems("docs") == []
    assert "tgraph graph" in problems("docs/graph")[0].reason


def test_other_formats_are_skipped_in_a_folder_and_fail_when_named(folder):
    image = folder / "docs" / "image.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (problem,) = problems("docs")
    assert problem.skipped
    assert "PNG" in problem.reason
    assert not problems("docs/image.png")[0].skipped


def test_a_wrong_suffix_and_binary_junk_are_left_to_the_loader(folder):
    (folder / "junk.bin").write_bytes(bytes(range(256)) * 8)
    (folder / "wrong.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    for name in ("junk.bin", "wrong.txt"):
        (found,) = discover_files([name])
        assert isinstance(found, SourceFile)
        with pytest.raises(IngestError):
            load(found.read(), found.name)


def test_an_empty_folder_says_so(folder):
    (folder / "empty").mkdir()
    assert "no documents" in problems("empty")[0].reason


def test_standard_input_comes_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe")))
    (found,) = discover_files(["-", "-"])
    assert isinstance(found, SourceFile)
    assert (found.name, found.path) == ("stdin", None)
    assert found.read() == b"from a pipe"


def test_reading_is_limited(folder):
    (found,) = discover_files(["docs/a.md"])
    assert isinstance(found, SourceFile)
    with pytest.raises(IngestError, match="larger than the limit"):
        found.read(FileLimits(file_bytes=3))


def test_a_socket_is_no_file(folder):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("docs/s")
        (problem,) = problems("docs")
    assert problem.name == "docs/s"


@pytest.mark.skipif(sys.platform != "linux", reason="file names are bytes only on Linux")
def test_a_name_that_is_not_utf8_can_be_written_anywhere(folder):
    Path(os.fsdecode(b"docs/caf\xe9.txt")).write_text("text")
    (name,) = [name for name in names("docs") if "caf" in name]
    assert name == "docs/caf\\xe9.txt"
    assert name.encode()
