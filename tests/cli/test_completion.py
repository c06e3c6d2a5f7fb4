"""Completion, by the protocol in which the shells ask."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from tgraph.cli.main import cli

from .conftest import Terminal

SHELLS = ("bash", "zsh", "fish")


def protocol(shell: str) -> str:
    """What tgraph tells a shell that asks by the environment."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, "tgraph", "_TGRAPH_COMPLETE").complete()


@pytest.fixture
def completed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a shell is told for the last of the words."""
    monkeypatch.setenv("TGRAPH_ROOT", str(terminal.root))

    def ask(words: str, shell: str = "bash") -> str:
        *before, begun = words.split(" ")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", begun if shell == "fish" else str(len(before)))
        return protocol(shell)

    return ask


@pytest.fixture(scope="module")
def session(terminal: Terminal) -> str:
    listed = json.loads(terminal("sessions", "--json", "-r", str(terminal.root)).stdout)
    return str(listed[-1]["explain_id"]).rpartition(":")[2]


@pytest.mark.parametrize("shell", SHELLS)
def test_sessions_documents_audits_and_modes_are_completed(completed, session, shell):
    assert "lightrag-mix" in completed("tgraph ask -m lightrag-", shell)
    assert "contextual" in completed("tgraph evaluate -m cont", shell)
    for words in (f"trace {session[:6]}", "why-not ", "diff last ", "export l", "verify "):
        expected = "last" if words.endswith(" l") else session
        assert expected in completed(f"tgraph {words}", shell)
    assert "unsupported" in completed("tgraph audit uns", shell)
    for words in ("source cur", "impact cur", "retract cur", "remove cur", "ask --document cur"):
        assert "curie.md" in completed(f"tgraph {words}", shell)


def test_a_document_is_completed_by_its_path_too(completed, documents):
    assert completed(f"tgraph source {documents}/cu") == f"plain,{documents}/curie.md"
    assert completed("tgraph source nothing") == ""


def test_the_graph_is_the_one_that_the_line_names(completed, terminal, session, monkeypatch):
    monkeypatch.setenv("TGRAPH_ROOT", "/nowhere")
    here = f"-r {terminal.root}"
    assert completed("tgraph trace ") == "plain,last"
    assert session in completed(f"tgraph {here} trace ")
    assert session in completed(f"tgraph trace {here} ")


def test_a_name_that_is_no_line_is_left_out(fresh, tmp_path, monkeypatch):
    terminal = fresh()
    for name in ("good.txt", "bad\n\x1b[2Jgood.txt"):
        (tmp_path / name).write_text(f"Marie Curie discovered Polonium. {len(name)}")
    terminal("index", str(tmp_path), "-r", str(terminal.root), *terminal.model)
    monkeypatch.setenv("TGRAPH_ROOT", str(terminal.root))
    monkeypatch.setenv("COMP_WORDS", "tgraph source ")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert protocol("bash") == f"plain,{tmp_path}/good.txt"


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_shell_is_to_read_is_printed(terminal, shell):
    assert f"_TGRAPH_COMPLETE={shell}_complete" in terminal("completion", shell).stdout


def test_bash_completes_with_it():
    scripts = Path(sys.executable).parent
    if not (scripts / "tgraph").exists() or not shutil.which("bash"):
        pytest.skip("needs bash, and the console scripts beside this Python")
    lines = """
        eval "$(tgraph completion bash)"
        COMP_WORDS=(tgraph ask -m lightrag-h) COMP_CWORD=3
        _tgraph_completion tgraph && echo "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", f"PATH={scripts}:$PATH; {lines}"], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("lightrag-hybrid\n", "")
