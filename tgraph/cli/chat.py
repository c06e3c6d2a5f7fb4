"""``tgraph chat``: a conversation in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import completion
from tgraph.cli.options import (
    ModeFlagsCommand,
    answer_options,
    chat_options,
    common,
    filter_options,
    filters_of,
    mode_option,
    settings_of,
)
from tgraph.cli.running import choose_exit_code, command, tell_failure
from tgraph.cli.terminal import one_line, print_message, say_next

if TYPE_CHECKING:
    from tgraph.cli.conversation import Conversation


@command("chat", ModeFlagsCommand)
@mode_option("The retrieval mode: {modes}, or auto (a choice by the form of the question).", "auto")
@click.option(
    "-x", "--explainable", is_flag=True, help="Print each step when the step is recorded."
)
@click.option(
    "--show-usage",
    is_flag=True,
    help="Print the tokens and calls of each answer, by step and prompt.",
)
@click.option(
    "--continue",
    "session",
    metavar="ID",
    shell_complete=completion.complete_sessions,
    help="Continue the conversation of a recorded session.",
)
@click.option("--no-history", is_flag=True, help="Do not save typed lines.")
@click.option(
    "--as-of",
    metavar="WHEN",
    shell_complete=completion.complete_sessions,
    help=(
        "Ask the knowledge at an earlier point: a date or time, a generation (`tgraph "
        "history`) or a session."
    ),
)
@filter_options
@answer_options
@chat_options
@common
def chat(session: str | None, no_history: bool, **options: Any) -> None:
    """Ask questions in a conversation; a question may refer to earlier ones.

    A line that begins with / is a command: /source 2 shows the quote of citation 2 within the page,
    /why-not TEXT explains why TEXT is not in the answer, /help lists all commands. Ctrl-C ends a
    question, Ctrl-D the conversation. Typed lines are saved in your data folder, readable only by
    you.

    With piped input, each line is a question or a command. The exit code is then the code of the
    first failure, else 3 if a question had no answer.

    \b
    Examples:
      tgraph chat
      tgraph chat -m local --document "nimrod*"
      tgraph chat --continue last
      tgraph chat < questions.txt
    """
    from tgraph.cli.line_input import is_interactive, read_inputs

    conversation = _begin_conversation(options)
    with closing(conversation):
        if session is not None:
            conversation.go_on_from(session)
        if is_interactive():
            print_message(_greeting_text(conversation))
        lines = read_inputs(
            None if no_history else _history_file(),
            lambda begun: _complete_input(begun, conversation),
            lambda: _status_text(conversation),
        )
        codes = list(_answer_lines(conversation, lines))
    if not is_interactive() and (code := choose_exit_code(codes)):
        click.get_current_context().exit(code)


def _begin_conversation(options: dict[str, Any]) -> Conversation:
    from tgraph.cli.ask import check_entities, form_of, given_of
    from tgraph.cli.conversation import Conversation

    mode, form, given_flags = options.pop("mode"), form_of(options), given_of(options)
    filters, as_of = filters_of(options), options.pop("as_of")
    check_entities(options["include_entity"], options["exclude_entity"])
    settings = settings_of(options)
    return Conversation(
        settings, mode=mode, filters=filters, as_of=as_of, form=form, given=given_flags
    )


def _answer_lines(conversation: Conversation, lines: Iterator[str]) -> Iterator[int]:
    """Yield exit codes while each line is answered."""
    from tgraph.cli.line_input import is_interactive

    for line in lines:
        codes: list[int] = []
        with _survive_failures(codes):
            codes.append(_run_line(line, conversation))
        yield from codes
        if conversation.is_over:
            return
        if is_interactive():
            print_message("")


def _run_line(line: str, conversation: Conversation) -> int:
    """Run a command or ask a question; return the exit code."""
    from tgraph.cli.line_input import is_interactive
    from tgraph.cli.slash_commands import SLASH, run_line

    is_command = line.startswith(SLASH)
    if not is_interactive():
        say_next(line, apart=bool(conversation.turns) and not is_command)
    if is_command:
        run_line(line.strip(), conversation)
        return 0
    return conversation.ask(line.strip())


@contextmanager
def _survive_failures(codes: list[int]) -> Iterator[None]:
    """Report failures inside the block, append exit codes to ``codes``, and continue the
    conversation.

    An interrupt at a terminal continues the conversation too."""
    from tgraph.cli.interruption import MESSAGE, interruptible
    from tgraph.cli.line_input import is_interactive

    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        if not is_interactive():
            raise
        print_message(MESSAGE)
    except click.exceptions.Exit:
        pass
    except click.ClickException as error:
        print_message(f"Error: {error.format_message()}")
        codes.append(error.exit_code)
    except BrokenPipeError:
        raise
    except Exception as error:
        codes.append(tell_failure(error))


def _complete_input(begun: str, conversation: Conversation) -> Any:
    from tgraph.cli.slash_commands import SLASH, complete_line

    return complete_line(begun, conversation) if begun.startswith(SLASH) else ("", ())


def _greeting_text(conversation: Conversation) -> str:
    number = sum(document.standing for document in conversation.graph.documents.summaries())
    where = one_line(str(conversation.graph.root))
    of = "1 document" if number == 1 else f"{number:,} documents"
    return f"{of} in {where}. Ask, or type /help; Ctrl-D leaves.\n"


def _status_text(conversation: Conversation) -> str:
    from tgraph.cli.conversation import EMBEDDED
    from tgraph.cli.slash_commands import filters_text

    parts = [
        conversation.mode,
        "no model" if conversation.model == EMBEDDED else conversation.model,
    ]
    if conversation.turns:
        parts.append(f"question {len(conversation.turns) + 1}")
    if conversation.as_of:
        parts.append(f"as of {one_line(conversation.as_of, 19)}")
    if conversation.filters:
        parts.append(filters_text(conversation))
    return " · ".join(parts)


def _history_file() -> Path:
    from tgraph.store.files import user_data

    return user_data() / "chat-history"
