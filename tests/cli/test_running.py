"""How commands fail, what they look for, and the installed scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from time import sleep

import pytest
from click.testing import CliRunner

from tgraph import __version__
from tgraph.cli.main import cli
from tgraph.cli.running import Command
from tgraph.cli.terminal import format_count
from tgraph.engine.sessions import Sessions
from tgraph.errors import StoreError

from .conftest import QUESTION

SCRIPTS = Path(sys.executable).parent


def script(name: str, *arguments: str, **options) -> subprocess.CompletedProcess[str]:
    path = SCRIPTS / name
    if not path.exists():
        pytest.skip("the console scripts are not installed beside this Python")
    return subprocess.run([path, *arguments], capture_output=True, text=True, **options)


def test_version_and_help():
    assert script("tgraph", "--version").stdout == f"tgraph, version {__version__}\n"
    shown = script("tgraph", "--help").stdout
    for name in (
        "index",
        "ask",
        "sessions",
        "trace",
        "source",
        "audit",
        "sparql",
        "config",
        "doctor",
        "backup",
        "restore",
    ):
        assert f"\n  {name} " in shown
    assert 'eval "$(tgraph completion bash)"' in shown


@pytest.mark.parametrize(
    "name",
    [
        "tg-invoke-graph-rag",
        "tg-list-explain-traces",
        "tg-show-explain-trace",
        "tg-show-extraction-provenance",
        "tg-invoke-sparql-query",
    ],
)
def test_trustgraph_s_names_are_there(name):
    assert f"Usage: {name}" in script(name, "--help").stdout


@pytest.mark.slow
def test_the_scripts_do_what_the_commands_do(terminal):
    root = str(terminal.root)
    asked = script("tg-invoke-graph-rag", "-r", root, *terminal.model, "-q", QUESTION)
    assert asked.returncode == 0
    assert "Polonium" in asked.stdout
    listed = script("tg-list-explain-traces", "-r", root, "--format", "json")
    session = json.loads(listed.stdout)[0]["explain_id"]
    assert session in asked.stderr
    assert QUESTION in script("tg-show-explain-trace", session, "-r", root).stdout
    assert "Polonium" in script("tg-show-extraction-provenance", "curie.md", "-r", root).stdout
    shown = script("tg-invoke-sparql-query", "-r", root, "-q", "ASK {}")
    assert "true" in shown.stdout


LOADED = """
import atexit, gc, sys
frozen = lambda: print("frozen", bool(gc.get_freeze_count()), *sys.modules, file=sys.stderr)
atexit.register(frozen)
from tgraph.cli.scripts import main
main()
"""
INDEXING = {
    "asyncio.staggered",
    "dotenv",
    "igraph",
    "markdown_it",
    "spacy",
    "tgraph.engine.index",
    "tgraph.executors",
    "tgraph.isolation",
}


def loaded(*arguments: str) -> set[str]:
    """What a command has loaded when it ends, with ``frozen True`` where nothing is collected."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments], capture_output=True, text=True, check=True
    )
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.slow
def test_a_question_loads_nothing_that_only_indexing_needs(terminal):
    root = str(terminal.root)
    hashed = ("--embedding-provider", "hashing")
    embedded = loaded("ask", "-r", root, *hashed, "--mode", "graph", "-q", QUESTION)
    assert "tgraph.engine.ask.conversation" in embedded
    assert embedded & {*INDEXING, "asyncio", "openai", "ssl"} == set()
    by_model = loaded("ask", "-r", root, *terminal.model, "-q", QUESTION)
    assert "openai" in by_model
    assert by_model & (INDEXING - {"asyncio.staggered"}) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("sessions",), ("trace", "last"), ("sparql", "ASK {}"), ("audit", "--list")]
)
def test_what_asks_no_model_loads_none_and_no_numbers(terminal, command):
    found = loaded(*command, "-r", str(terminal.root))
    assert not found & {"asyncio", "numpy", "onnxruntime", "openai", "ssl", "tgraph.engine.ask"}
    if command[0] == "audit":
        assert not found & {"pydantic", "tgraph.settings"}


@pytest.mark.slow
def test_why_not_loads_no_parser_of_queries_where_none_was_written(terminal):
    found = loaded("why-not", "last", "Polonium", "-r", str(terminal.root))
    assert "tgraph.explain.whynot.computed" in found
    assert "rdflib" not in found


def test_nothing_is_collected_when_a_command_ends():
    assert "True" in loaded("--version")


def test_a_pipe_that_closes_early_is_no_failure(terminal):
    if not (SCRIPTS / "tgraph").exists():
        pytest.skip("the console scripts are not installed beside this Python")
    query = "SELECT * { ?a ?b ?c . ?d ?e ?f }"
    done = subprocess.run(
        f"{SCRIPTS}/tgraph sparql -r {terminal.root} --format csv '{query}' | head -2",
        shell=True,
        capture_output=True,
        text=True,
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["sessions", "audit costs --format csv"])
def test_a_stdout_that_is_closed_is_no_failure(terminal, command):
    if not (SCRIPTS / "tgraph").exists():
        pytest.skip("the console scripts are not installed beside this Python")
    line = f"{SCRIPTS}/tgraph {command} -r {terminal.root} >&-"
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_sentence(terminal):
    if not Path("/dev/full").is_char_device() or not (SCRIPTS / "tgraph").exists():
        pytest.skip("needs /dev/full, and the console scripts beside this Python")
    with Path("/dev/full").open("wb") as full:
        arguments = [str(SCRIPTS / "tgraph"), "trace", "-r", str(terminal.root)]
        done = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == (
        "Error: The disk is full; nothing that was acknowledged is lost. Free some space (or raise"
        " the quota, or the limit of `ulimit -f`) and run the command again.\n"
    )


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT is heeded by what is started, also where it is ignored by who started the tests: a
    shell's ``&`` has it so, and programs inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("interruptible")
def test_an_interruption_ends_with_130_and_says_what_is_kept(fresh, documents):
    from tgraph.testing import Fault, ScriptedServer

    if not (SCRIPTS / "tgraph").exists():
        pytest.skip("the console scripts are not installed beside this Python")
    with ScriptedServer(faults=[Fault.parse("hang")], delay=0) as server:
        terminal = fresh(server.base_url)
        arguments = [str(SCRIPTS / "tgraph"), "index", str(documents), "-r", str(terminal.root)]
        process = subprocess.Popen([*arguments, *terminal.model], stderr=subprocess.PIPE, text=True)
        while not server.requests:
            assert process.poll() is None
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "The same command continues" in errors
    assert "Traceback" not in errors


PAUSES = """
import atexit, sys
from time import sleep

def pause():
    print("now", flush=True)
    sleep(300)

class Pause:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            try:
                {then}
            except KeyboardInterrupt:
                raise {error}  # as some libraries do

sys.meta_path.insert(0, Pause())
from tgraph.cli.scripts import main
sys.argv[0] = "tgraph"
main()
"""


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(
    ("module", "then", "error"),
    [
        ("click", "pause()", ""),
        ("tgraph.cli.trace", "pause()", ""),
        ("tgraph.engine.graph", "pause()", ""),
        ("tgraph.engine.graph", "pause()", "RuntimeError"),
        ("click", "atexit.register(pause)", ""),
    ],
    ids=["loading the first", "loading a command", "in a command", "in a library", "after it"],
)
def test_an_interruption_is_heeded_whenever_it_comes(terminal, module, then, error):
    code = PAUSES.format(module=module, then=then, error=error)
    call = [sys.executable, "-c", code, "sessions", "--json", "-r", str(terminal.root)]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while process.stdout.readline() != "now\n":
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (130, "Interrupted.\n")


@pytest.mark.usefixtures("interruptible")
def test_an_interruption_of_an_interpreter_that_ends_changes_nothing(terminal):
    last = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT)"
    code = (
        f"{last}; import sys; sys.argv[0] = 'tgraph'; from tgraph.cli.scripts import main; main()"
    )
    call = [sys.executable, "-c", code, "sessions", "--json", "-r", str(terminal.root)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)


def test_an_unforeseen_failure_is_one_sentence_and_debug_shows_it_all(terminal, monkeypatch):
    def broken(self, limit=None):
        raise RuntimeError("the sky\nfell")

    monkeypatch.setattr(Sessions, "summaries", broken)
    root = str(terminal.root)
    result = terminal("sessions", "-r", root, code=1)
    assert result.stderr.splitlines() == [
        "Error: Unexpected error: RuntimeError: the sky fell. --debug shows the traceback."
    ]
    assert "Traceback" in terminal("sessions", "-r", root, "--debug", code=1).stderr
    assert "Traceback" in terminal("--debug", "sessions", "-r", root, code=1).stderr


def test_a_foreseen_failure_keeps_its_code_under_debug(terminal, monkeypatch):
    def broken(self, limit=None):
        raise StoreError("The disk is full.", "Free some space.")

    monkeypatch.setattr(Sessions, "summaries", broken)
    result = terminal("sessions", "-r", str(terminal.root), code=1)
    assert result.stderr == "Error: The disk is full. Free some space.\n"
    assert Command.interrupted


def test_a_folder_without_a_graph_is_said_so(terminal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "There is no tgraph graph" in terminal("sessions", code=1).stderr
    assert "tgraph index" in terminal("sessions", "-r", str(tmp_path), code=1).stderr


def test_the_root_comes_from_the_environment_too(terminal, monkeypatch):
    monkeypatch.setenv("TGRAPH_ROOT", str(terminal.root))
    assert json.loads(terminal("sessions", "--json").stdout)


def test_a_graph_that_is_too_new_is_refused(terminal, tmp_path):
    (tmp_path / "graph.json").write_text('{"format": 999}')
    result = terminal("sessions", "-r", str(tmp_path), code=1)
    assert "newer tgraph" in result.stderr


def test_config_shows_values_with_their_origins_and_no_secret(terminal, tmp_path, monkeypatch):
    root = tmp_path / "graph"
    root.mkdir()
    (root / "graph.json").write_text('{"format": 1}')
    (root / "tgraph.toml").write_text('[chat]\nmodel = "tiny"\n[graph]\nedge_limit = 3\n')
    monkeypatch.setenv("TGRAPH_GRAPH__EDGE_LIMIT", "4")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    shown = terminal("config", "show", "--json", "-r", str(root), "-C", "mine").stdout
    facts = {name: tuple(said.values()) for name, said in json.loads(shown).items()}
    assert facts["chat.model"] == ("tiny", str(root / "tgraph.toml"), True)
    assert facts["graph.edge_limit"] == (4, "TGRAPH_GRAPH__EDGE_LIMIT", True)
    assert facts["chat.api_key"] == ("********", "OPENAI_API_KEY", True)
    assert facts["collection"] == ("mine", "flag", True)
    assert facts["chunk.size"][1] == "default"
    assert "secret" not in shown + terminal("config", "show", "-r", str(root)).output


def test_config_names_no_model_that_does_not_run(terminal, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    shown = {line.split()[0]: line for line in terminal("config", "show").stdout.splitlines()[2:]}
    for name in ("chat.model", "chat.retries", "embedding.model", "rerank.pool"):
        assert "(not used)" in shown[name]
    assert "(not used)" not in shown["chat.provider"] + shown["embedding.threads"]
    monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "openai")
    facts = json.loads(terminal("config", "show", "--json").stdout)
    assert facts["chat.model"]["used"]
    assert facts["embedding.model"]["used"]


def test_the_signing_key_is_named_so_that_it_is_found_from_anywhere(
    terminal, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    said = terminal("config", "signing-key", "my record.key").stderr
    assert f"TGRAPH_INTEGRITY__SIGNING_KEY='{tmp_path}/my record.key'," in said


def test_one_of_a_thing_is_no_plural(fresh, tmp_path):
    assert [format_count(n, "batch", "batches") for n in (0, 1, 1200)] == [
        "0 batches",
        "1 batch",
        "1,200 batches",
    ]
    (tmp_path / "note.txt").write_text("Colin Archer built the Fram.")
    terminal = fresh()
    arguments = [str(tmp_path / "note.txt"), "-r", str(terminal.root), *terminal.model[2:]]
    assert ": 1 chunk, 2 entities, 1 relationship. " in terminal("index", *arguments).stderr


def test_an_unknown_setting_is_wrong_usage(terminal, tmp_path):
    (tmp_path / "graph.json").write_text('{"format": 1}')
    (tmp_path / "tgraph.toml").write_text("[chat]\nmodle = 1\n")
    assert "chat.modle" in terminal("config", "show", "-r", str(tmp_path), code=2).stderr


def findings(result) -> dict[str, str]:
    return {f["subject"]: f["status"] for f in json.loads(result.stdout)}


def test_doctor_finds_nothing_wrong_here(terminal, server, monkeypatch):
    monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", server.base_url)
    monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "hashing")
    result = terminal("doctor", "--json", "-r", str(terminal.root))
    found = findings(result)
    assert "bad" not in found.values()
    assert found["chat"] == found["snapshot"] == found["entity vectors"] == "ok"
    assert "entity vectors" in terminal("doctor", "-r", str(terminal.root)).stdout


@pytest.fixture
def refusing() -> Iterator[str]:
    """An endpoint that lets nobody in."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(401)

        def log_message(self, *_):
            """Says nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:9/v1", "can't be reached"),
        ("", "refuses the key"),
        ("nonsense", "not a web address"),
    ],
)
def test_doctor_says_what_is_wrong_with_an_endpoint(terminal, monkeypatch, refusing, url, expected):
    monkeypatch.setenv("TGRAPH_CHAT__BASE_URL", url or refusing)
    result = terminal("doctor", "-r", str(terminal.root), code=1)
    assert expected in result.stdout
    assert "chat" in result.stderr


def test_doctor_works_without_a_graph_and_with_a_broken_one(terminal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    terminal("doctor", code=None)
    (tmp_path / "graph.json").write_text("{}")
    result = terminal("doctor", "--json", "-r", str(tmp_path), code=1)
    assert findings(result)["graph"] == "bad"


def test_colours_stay_out_of_pipes(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    environment = {**os.environ, "FORCE_COLOR": "", "TERM": "xterm-256color"}
    done = script("tgraph", "trace", "-r", str(terminal.root), env=environment)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr


def test_a_lone_surrogate_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Otto Sverdrup led Fram.\n")
    flags = ["-r", str(tmp_path / "g"), "--embedding-provider", "hashing"]
    assert CliRunner().invoke(cli, ["index", str(tmp_path / "a.txt"), *flags]).exit_code == 0
    result = CliRunner().invoke(cli, ["ask", "Who led a\udcffb?", *flags])
    assert result.exit_code in (2, 3)
    assert "nexpected" not in result.output
