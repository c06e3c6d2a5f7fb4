"""What somebody says, line by line: typed at a terminal with history and completion, typed at one
that can do nothing, or piped in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli.terminal import one_line, piped_lines, safe, say

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

PROMPT, CONTINUED = "> ", ". "
_GO_ON = "\\"
Completes = Callable[[str], tuple[str, "Iterable[CompletionItem]"]]
"""For what stands before the cursor: what was begun of a word, and what may stand in its place."""


def is_interactive() -> bool:
    """Whether somebody types."""
    return sys.stdin.isatty()


def said(history: Path | None, completes: Completes, status: Callable[[], str]) -> Iterator[str]:
    """What is said, until there is no more: what is typed is kept in the file of the ``history``;
    ``status`` is shown below it."""
    if not is_interactive():
        return piped_lines("question")
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return _heeding_interruptions(_read_plainly)
    session = _prompting(history, completes, status)
    return _heeding_interruptions(session.prompt)


def _heeding_interruptions(read: Callable[[], str]) -> Iterator[str]:
    """What is read each time; an interruption gives up a line, the end of input ends it."""
    while True:
        try:
            text = read()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if text.strip():
            yield text


def _read_plainly() -> str:
    """One entry, of as many lines as end with a backslash."""
    lines = [_line(PROMPT)]
    while lines[-1].endswith(_GO_ON):
        lines[-1] = lines[-1].removesuffix(_GO_ON)
        lines.append(_line(CONTINUED))
    return "\n".join(lines)


def _line(prompt: str) -> str:
    """A line as the terminal itself has it edited; ``EOFError`` where there is none."""
    click.echo(prompt, nl=False, err=not sys.stdout.isatty())
    line = b""
    try:
        line = sys.stdin.buffer.readline()
    finally:
        if not line:
            say("")
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")


# --- with all that a terminal can do ---


def _prompting(
    history: Path | None, completes: Completes, status: Callable[[], str]
) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.styles import Style

    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        history=_history(history),
        completer=_completer(completes),
        complete_while_typing=Condition(lambda: _names_command(session.default_buffer.text)),
        key_bindings=_keys(),
        bottom_toolbar=lambda: safe(status()),
        style=Style.from_dict({"bottom-toolbar": "noreverse italic", "prompt": "bold"}),
        enable_suspend=True,
        enable_history_search=False,
        reserve_space_for_menu=6,
    )
    return session


def _names_command(text: str) -> bool:
    return text.startswith("/") and " " not in text


def _keys() -> KeyBindings:
    from prompt_toolkit.filters import completion_is_selected
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith(_GO_ON):
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            buffer.validate_and_handle()

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=False)

    return keys


def _completer(completes: Completes) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class SlashCompleter(Completer):
        def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
            begun, items = completes(document.text_before_cursor)
            for item in items:
                about = one_line(item.help or "")
                yield Completion(item.value, -len(begun), display_meta=about)

    return SlashCompleter()


def _history(file: Path | None) -> History:
    """What was typed before, from the file that only its owner may read; none where that can't be
    had."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if file is None:
        return InMemoryHistory()
    try:
        _make_private(file)
    except OSError as error:
        say(f"What you type is not kept: {file} can't be written ({error.strerror}).")
        return InMemoryHistory()
    return FileHistory(file)


def _make_private(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    file.chmod(0o600)
