"""No output of any command has a character that could command a terminal, or turn round the order
in which text is read, whatever documents, models and people wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from tgraph.cli.main import cli
from tgraph.testing import ScriptedServer

from .conftest import Terminal

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
EVIL = "\x1b[31m\x07\x9b2J\u202e\u2066\u200f\u200e"
SHOWN = re.compile(r"\\u202e|&#(?:8238|x202e);", re.I)
"""How the formats write one of them."""
QUESTION = f"What did Marie Curie discover?{EVIL}"
SELECT, CONSTRUCT = "SELECT ?o { ?s rdfs:label ?o }", "CONSTRUCT WHERE { ?s rdfs:label ?o }"
REPLY = json.dumps({"sentence": f"She did.{EVIL}", "citations": ["ffffffff"]}) + "\n"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """A terminal beside a graph in which each name, title, text, question and answer is hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    text = f"Marie Curie discovered Polonium{EVIL} in Paris. Marie Curie met Ernest Rutherford."
    written = json.dumps({"title": f"Curie{EVIL}", "text": text})
    (folder / f"curie{EVIL}.json").write_text(written, "utf-8")
    (folder / "questions.json").write_text(json.dumps([{"question": QUESTION, "answer": EVIL}]))
    with ScriptedServer({"synthesise_answer": REPLY}) as server:
        made = Terminal(folder / "graph", server.base_url)
        place = ["-r", str(made.root)]
        made("index", str(folder / f"curie{EVIL}.json"), *place, *made.model)
        made("ask", QUESTION, *place, *made.model, code=None)
        made("ask", QUESTION, *place, "-m", "graph", "--embedding-provider", "hashing", code=None)
        yield made


FILES = ("csv", "graphml", "graphrag", "markdown", "crate")


def formats() -> Iterator[tuple[str, ...]]:
    """Each command in each format that it has."""
    subjects = {"source": ["Curie"], "trace": ["--all"]}
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        kinds = [p.type for p in command.params if "--format" in p.opts]
        for kind in (kind for kind in kinds if isinstance(kind, click.Choice)):
            for each in kind.choices:
                if name == "export" and each in FILES:
                    continue  # written to files, tested below, or binary
                query = CONSTRUCT if each in ("turtle", "ntriples") else SELECT
                said = {
                    "sparql": [query],
                    "audit": ["documents-of-answer", "last"],
                }.get(name)
                yield (name, *(said or subjects.get(name, [])), "--format", each)


FORMATS = list(formats())
OTHERS = [
    *(("ask", *flags, QUESTION) for flags in ((), ("-x",), ("--json",), ("--jsonl",))),
    ("ask", "--no-streaming", "-m", "basic", QUESTION),
    ("ask", "--document", EVIL, "Who?"),
    ("suggest",),
    ("index", f"/nowhere{EVIL}"),
    ("trace", EVIL),
    ("export", "--vocabulary", "trustgraph"),
    *(("impact", "Curie", *flags) for flags in ((), ("--json",))),
    *(("why-not", "last", f"Rutherford{EVIL}", *flags) for flags in ((), ("--json",))),
    *(("verify", *flags) for flags in ((), ("--json",))),
    *(("replay", *flags) for flags in ((), ("--json",))),
    ("diff", "last", "last"),
    *(("evaluate", "QUESTIONS", *flags) for flags in ((), ("--json",))),
    ("entities", "merges"),
    ("entities", "bearers"),
    ("entities", "part", EVIL, "--document", EVIL, "--as", EVIL, "--reason", EVIL),
    ("entities", "split", EVIL, "--reason", EVIL),
    ("audit", "integrity"),
    ("doctor",),
    ("config", "show"),
]


@pytest.mark.parametrize("kind", ["csv", "graphml", "markdown"])
def test_files_of_knowledge_have_none(hostile, kind: str, tmp_path: Path):
    place = tmp_path / "here" / "out"
    place.parent.mkdir()
    arguments = ("export", "--knowledge", "--format", kind, "-o", str(place))
    assert run(hostile, arguments).exit_code == 0
    files = [path for path in place.parent.rglob("*") if path.is_file()]
    texts = [path.read_bytes().decode() for path in files]
    assert texts
    assert not any(UNSAFE.search(text.replace("\r\n", "\n")) for text in texts)
    assert not any(UNSAFE.search(path.name) for path in files)


def run(hostile: Terminal, arguments: tuple[str, ...]) -> Result:
    asking = arguments[0] in ("ask", "suggest", "evaluate")
    flags = ["--embedding-provider", "hashing"] if asking else []
    questions = str(hostile.root.parent / "questions.json")
    given = [questions if each == "QUESTIONS" else each for each in arguments]
    return hostile(*given, "-r", str(hostile.root), *flags, code=None)


@pytest.mark.parametrize("arguments", FORMATS, ids=" ".join)
def test_every_format_writes_them_as_escapes(hostile, arguments):
    result = run(hostile, arguments)
    assert result.exit_code == 0, result.output
    assert not UNSAFE.search(result.output.replace("\r\n", "\n"))
    assert SHOWN.search(result.stdout)


@pytest.mark.parametrize("arguments", OTHERS, ids=lambda a: " ".join(a).encode("ascii", "replace"))
def test_every_command_writes_them_as_escapes(hostile, arguments):
    result = run(hostile, arguments)
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    assert not UNSAFE.search(result.output.replace("\r\n", "\n"))


def test_a_language_model_s_answer_is_no_exception(hostile):
    for flags in ((), ("--json",), ("--jsonl",), ("--no-streaming",), ("-x",)):
        call = ["ask", *flags, QUESTION, "-r", str(hostile.root), *hostile.model]
        result = hostile(*call, code=None)
        assert SHOWN.search(result.stdout)
        assert not UNSAFE.search(result.output)


def test_a_conversation_is_no_exception(hostile):
    about = ("/source", "/trace --all", "/verify", f"/why-not Rutherford{EVIL}", "/documents")
    others = (
        "/sessions",
        "/suggest",
        f"/mode {EVIL}",
        f"/as-of {EVIL}",
        f"/{EVIL}",
        f"/help {EVIL}",
    )
    flags = ["--embedding-provider", "hashing", "-r", str(hostile.root)]
    lines = "\n".join((QUESTION, *about, *others, f"/filter --document {EVIL}", "Who?"))
    result = hostile("chat", *flags, input=lines, code=None)
    assert SHOWN.search(result.stdout)
    assert not UNSAFE.search(result.output)


def test_a_file_that_is_named_so_is_written_to(hostile, tmp_path: Path):
    said = hostile("trace", "-o", str(tmp_path / "x" / EVIL), "-r", str(hostile.root), code=2)
    assert not UNSAFE.search(said.output)
