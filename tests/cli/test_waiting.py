"""The line that names the model call a command waits for."""

from __future__ import annotations

import io
import sys
import threading
import time

import pytest

from tgraph.cli import waiting
from tgraph.cli.waiting import WaitingLine
from tgraph.model import Prompt
from tgraph.models.base import ChatRequest
from tgraph.models.endpoint import Endpoint
from tgraph.models.openai import OpenAIChat
from tgraph.testing import ScriptedServer

REQUEST = ChatRequest(
    Prompt("select_edges", "Say it.", "0" * 64), [{"role": "user", "content": "Step: select_edges"}]
)


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_the_step_of_a_long_call_is_named_on_a_terminal_only(
    terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(waiting, "_PATIENCE", 0.0)
    with (
        ScriptedServer({"select_edges": "{}"}, delay=1.3) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
        WaitingLine().running(),
    ):
        chat.complete(REQUEST)
    text = screen.getvalue()
    assert ("Waiting for the model: select edges, 1 s" in text) == terminal
    assert not text or text.endswith("\r\x1b[K")


def test_a_hidden_line_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(terminal=True)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(waiting, "_PATIENCE", 0.0)
    line = WaitingLine()
    with (
        ScriptedServer({"select_edges": "{}"}, delay=0.3) as server,
        OpenAIChat("m", Endpoint(server.base_url)) as chat,
    ):
        call = threading.Thread(target=chat.complete, args=(REQUEST,))
        call.start()
        time.sleep(0.1)
        line.draw()
        line.clear(hide=True)
        line.draw()
        call.join()
    assert screen.getvalue().count("Waiting") == 1
