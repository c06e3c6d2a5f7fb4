"""Line input: typed at a terminal with history and completion, typed at a dumb terminal, or
piped in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tgraph.cli.terminal import escape_controls, one_line, piped_lines, print_message

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


def read_inputs(
    history: Path | None, completes: Completes, status: Callable[[], str]
) -> Iterator[str]:
    """Yield input entries until input ends.

    Typed entries are stored in the ``history`` file; ``status`` is shown below the prompt."""
    if not is_interactive():
        return piped_lines("question")
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") in ("dumb", "unknown", ""):
        return _heeding_interruptions(_read_plainly)
    session = _create_prompt_session(history, completes, status)
    return _heeding_interruptions(session.prompt)


def _heeding_interruptions(read: Callable[[], str]) -> Iterator[str]:
    """Yield entries read by ``read``; an interruption discards a line, end of input stops
    reading."""
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
    """Read an entry; lines ending with a backslash continue the entry."""
    lines = [_read_line(PROMPT)]
    while lines[-1].endswith(_GO_ON):
        lines[-1] = lines[-1].removesuffix(_GO_ON)
        lines.append(_read_line(CONTINUED))
    return "\n".join(lines)


def _read_line(prompt: str) -> str:
    """Read a line edited by the terminal itself.

    Raises ``EOFError`` at end of input."""
    click.echo(prompt, nl=False, err=not sys.stdout.isatty())
    line = b""
    try:
        line = sys.stdin.buffer.readline()
    finally:
        if not line:
            print_message("")
    if not line:
        raise EOFError
    return line.decode("utf-8", "replace").rstrip("\r\n")


# --- with all that a terminal can do ---


def _create_prompt_session(
    history: Path | None, completes: Completes, status: Callable[[], str]
) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.styles import Style

    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        history=_open_history(history),
        completer=_create_completer(completes),
        complete_while_typing=Condition(lambda: _names_command(session.default_buffer.text)),
        key_bindings=_create_key_bindings(),
        bottom_toolbar=lambda: escape_controls(status()),
        style=Style.from_dict({"bottom-toolbar": "noreverse italic", "prompt": "bold"}),
        enable_suspend=True,
        enable_history_search=False,
        reserve_space_for_menu=6,
    )
    return session


def _names_command(text: str) -> bool:
    return text.startswith("/") and " " not in text


def _create_key_bindings() -> KeyBindings:
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


def _create_completer(completes: Completes) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class SlashCompleter(Completer):
        def get_completions(self, document: Document, _: CompleteEvent) -> Iterable[Completion]:
            begun, items = completes(document.text_before_cursor)
            for item in items:
                description = one_line(item.help or "")
                yield Completion(item.value, -len(begun), display_meta=description)

    return SlashCompleter()


def _open_history(file: Path | None) -> History:
    """Open the typed-input history, a file readable only by its owner.

    If the file can't be written, the history is not stored."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if file is None:
        return InMemoryHistory()
    try:
        _make_private(file)
    except OSError as error:
        print_message(f"Typed lines are not saved: {file} can't be written ({error.strerror}).")
        return InMemoryHistory()
    return FileHistory(file)


def _make_private(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    file.chmod(0o600)
