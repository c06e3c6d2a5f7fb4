"""``tgraph chat``: piped in, at a terminal, and at one that can do nothing; ``tgraph ask -``."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import sleep

import pytest

from tgraph.cli.conversation import Conversation
from tgraph.cli.slash_commands import complete_line
from tgraph.errors import EvidenceError
from tgraph.explain.render.page_quote import page_quote, page_quote_text
from tgraph.model import Quotation
from tgraph.testing import Fault, ScriptedServer

from .conftest import CURIE, QUESTION, Terminal

FOLLOW_UP = "And who worked with her?"
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def chat(terminal: Terminal, *lines: str, code: int | None = 0, flags: tuple[str, ...] = ()):
    call = ["chat", "-r", str(terminal.root), "--embedding-provider", "hashing", *flags]
    return terminal(*call, code=code, input="\n".join(lines) + "\n")


# --- piped in ---


def test_a_conversation_is_piped_in(terminal, server, tmp_path):
    written = tmp_path / "talk.json"
    lines = (QUESTION, "/source 1", "/trace", "/why-not Pierre's brother", FOLLOW_UP)
    result = chat(
        terminal,
        *(*lines, "/sessions 2", f"/export {written}", "/quit", "never asked"),
        flags=("-m", "graph", "--base-url", server.base_url),
    )
    assert "never asked" not in result.output
    for line in lines:
        assert f"> {line}\n" in result.stderr
    quote = result.stdout.split("⟦")[1].split("⟧")[0]
    assert quote in CURIE
    around = result.stdout.split(f"⟦{quote}⟧")
    assert CURIE.split(quote)[0].strip().startswith(around[0].rpartition("\n\n")[2].strip()[:10])
    assert "├── Session" in result.stdout
    assert "text: Pierre's brother\ncause: not in the corpus" in result.stdout
    answers = json.loads(written.read_text("utf-8"))
    assert [each["question"] for each in answers] == [QUESTION, FOLLOW_UP]
    assert any(answers[0]["answer"] in json.dumps(r.body) for r in server.requests[-8:])
    session = answers[-1]["explain_id"]
    assert [line for line in result.stdout.splitlines() if session[-36:] in line]
    terminal.ask("--history", str(written), QUESTION)
    went_on = chat(terminal, "/continue last", f"/continue {session[-36:]}", "/new")
    assert f"2 questions so far; the last: {FOLLOW_UP}" in went_on.stderr


def test_what_goes_wrong_is_told_and_the_conversation_goes_on(terminal):
    lines = ("/nope", "/mode nope", "/filter --nope", "zxcvb qwrtp?", "/source 7")
    result = chat(
        terminal, *lines, "/mode basic", "/filter --document curie.md --since 1900", code=2
    )
    errors = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 4
    assert "There is no command /nope" in errors[0]
    assert errors[-1] == "Error: The last answer has no citations."
    assert "Filters: document curie.md, since 1900\n" in result.stderr
    assert chat(terminal, "zxcvb qwrtp?", code=3).stdout


def test_the_lines_of_standard_input_are_questions_asked_each_by_itself(terminal):
    call = ["ask", "-", "-r", str(terminal.root), *terminal.model]
    lines = f"\ufeff{QUESTION}\n\nzxcvb qwrtp?\n{QUESTION}\n"
    result = terminal(*call, "--jsonl", code=3, input=lines)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    answers = [each["answer"] for each in events if "answer" in each]
    assert [each["question"] for each in answers] == [QUESTION, "zxcvb qwrtp?", QUESTION]
    assert answers[0]["answer"] == answers[2]["answer"]
    assert terminal(*call, input=f"{QUESTION}\n{QUESTION}\n").stdout.count("\n\n") == 1
    assert terminal(*call, code=2, input="\n").stdout == ""


# --- what is completed, and shown of a page ---


def test_commands_and_what_they_name_are_completed(terminal):
    settings = {"embedding.provider": "hashing"}
    with pytest.MonkeyPatch.context() as patch, closing(_begun(terminal, settings, patch)) as talk:
        found = {
            begun: [item.value for item in complete_line(begun, talk)[1]]
            for begun in ("/so", "/mode lightrag-h", "/filter --document cur", "/trace l", "/x ")
        }
        sessions = [item.value for item in complete_line("/continue ", talk)[1]]
        recorded = [each.explain_id[-36:] for each in talk.graph.sessions.summaries()]
    assert list(found.values()) == [["/source"], ["lightrag-hybrid"], ["curie.md"], ["last"], []]
    assert sessions == ["last", *recorded]


def _begun(terminal: Terminal, settings, patch: pytest.MonkeyPatch) -> Conversation:
    patch.setenv("TGRAPH_ROOT", str(terminal.root))
    return Conversation(settings)


def test_a_quote_is_shown_in_its_page_and_harmless():
    page = f"{'one two ' * 100}three \x1b[2Jfour five {'six seven ' * 100}"
    start = page.index("three")
    quotation = Quotation("e", "c", "d", "T", "t.txt", None, start, start + 14, page[start:][:14])
    shown = page_quote_text(page_quote(page, quotation, 12)).plain
    assert shown == "… one two ⟦three \\x1b[2Jfour⟧ five six …"
    whole = page_quote(page, quotation, 10_000)
    assert whole.before + whole.quote + whole.after == page
    with pytest.raises(EvidenceError, match="differs from the quote"):
        page_quote(page.replace("three", "seven"), quotation)


# --- at a terminal ---


class Screen:
    """A pseudo-terminal with ``tgraph`` running in it."""

    def __init__(self, leader: int, running: subprocess.Popen[bytes]) -> None:
        self._leader = leader
        self._unread = ""
        self.running = running

    def type(self, text: str) -> None:
        os.write(self._leader, text.encode())

    def until(self, expected: str) -> str:
        """What is shown up to this, colours left out."""
        while expected not in self._unread:
            assert select.select([self._leader], [], [], 60)[0], self._unread
            self._unread += self._read()
        shown, _, self._unread = self._unread.partition(expected)
        return shown

    def rest(self) -> str:
        with suppress(AssertionError):
            while select.select([self._leader], [], [], 60)[0]:
                self._unread += self._read()
        return self._unread

    def _read(self) -> str:
        try:
            piece = os.read(self._leader, 65536)
        except OSError:  # Linux says so when the other end is closed
            piece = b""
        assert piece, f"It has ended: {self._unread}"
        return _COLOURS.sub("", piece.decode("utf-8", "replace")).replace("\r\n", "\n")


@contextmanager
def at_a_terminal(*arguments: str, **environment: str) -> Iterator[Screen]:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (40, 60))
    kept = {name: value for name, value in os.environ.items() if "COLUMNS" not in name}
    takes = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"  # Ctrl-C then is heeded
    code = f"{takes}; from tgraph.cli.scripts import main; main()"
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        running = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**kept, "PROMPT_TOOLKIT_NO_CPR": "1", **environment},
            start_new_session=True,
        )
    finally:
        signal.signal(signal.SIGINT, before)
        os.close(follower)
    try:
        yield Screen(leader, running)
    finally:
        running.kill()
        running.wait()
        os.close(leader)


@pytest.mark.slow
def test_an_interruption_ends_the_question_and_not_the_conversation(terminal, tmp_path):
    with ScriptedServer(faults=[Fault.parse("hang:synthesise_answer:1")], delay=0) as server:
        call = ["chat", "-r", str(terminal.root), "--embedding-provider", "hashing", "-m", "graph"]
        data = {"XDG_DATA_HOME": str(tmp_path), "TERM": "xterm-256color"}
        with at_a_terminal(*call, "--base-url", server.base_url, **data) as screen:
            screen.until("leaves.")
            screen.until(">")
            screen.type("What did\x1b\rMarie Curie discover?\r")
            for _ in range(1200):
                if any(request.step == "synthesise_answer" for request in server.requests):
                    break
                sleep(0.05)
            screen.type("\x03")
            screen.until("Interrupted.")
            screen.type("/sess")
            screen.until("/sessions")
            screen.type("\t 1\r")
            assert "interrupted" in screen.until("What did Marie Curie")
            screen.type(f"{QUESTION}\r")
            screen.until("Evidence:")
            screen.until("Session:")
            screen.until(">")
            screen.type("\x04")
            screen.rest()
            assert screen.running.wait(60) == 0
    kept = tmp_path / "tgraph" / "chat-history"
    assert "+What did\n+Marie Curie discover?\n" in kept.read_text("utf-8")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(kept.parent).stat().st_mode) == 0o700


@pytest.mark.slow
def test_a_terminal_that_can_do_nothing_will_do(terminal, tmp_path):
    call = ["chat", "-r", str(terminal.root), "--embedding-provider", "hashing", "-m", "graph"]
    data = {"XDG_DATA_HOME": str(tmp_path), "TERM": "dumb"}
    with at_a_terminal(*call, **data) as screen:
        screen.until("\n> ")
        screen.type("Who shared the Nobel Prize \\\n")
        screen.until(". ")
        screen.type("with Marie Curie?\n")
        assert "\x1b" not in screen.until("Session: ")
        screen.until("\n> ")
        screen.type("/source 1\n")
        assert "Henri Becquerel" in screen.until("⟧")
        screen.until("\n> ")
        screen.type("\x04")
        screen.rest()
        assert screen.running.wait(60) == 0
    assert not list(tmp_path.iterdir())
