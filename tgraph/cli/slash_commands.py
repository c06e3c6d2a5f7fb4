"""Slash commands within a conversation: ``/trace`` and similar commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, ShellComplete

from tgraph.cli import completion
from tgraph.cli.completion import OPEN_GRAPH
from tgraph.cli.conversation import EMBEDDED, Conversation
from tgraph.cli.options import filter_options, filters_of
from tgraph.cli.terminal import (
    create_console,
    escape_controls,
    format_count,
    is_terminal,
    one_line,
    place_text,
    print_message,
    print_renderable,
)
from tgraph.errors import UsageError, nearest_names
from tgraph.retrieve.filters import NO_FILTERS

if TYPE_CHECKING:
    from tgraph.model import Quotation

SLASH = "/"
_CONVERSATION = "conversation"
_NARROW, _WIDEST = 60, 80
"""Columns of a terminal up to which a help stands below what it is of, and columns of a help."""
_QUOTES = "\"'“”"


class SlashCommand(click.Command):
    """A slash command; click provides help and error messages."""

    def words(self, rest: str) -> list[str]:
        """Split the text after the command name into arguments; a lone apostrophe quotes
        nothing."""
        try:
            return shlex.split(rest)
        except ValueError:
            return rest.split()


class TextCommand(SlashCommand):
    """A slash command whose argument is the verbatim text after its name."""

    def words(self, rest: str) -> list[str]:
        text = (
            rest[1:-1] if rest[:1] in _QUOTES and rest[-1:] in _QUOTES and len(rest) > 1 else rest
        )
        return ["--", text] if text else []


COMMANDS: dict[str, SlashCommand] = {}


def run_line(line: str, conversation: Conversation) -> None:
    """Run the slash command in a line.

    Raises ``UsageError`` for an unknown command."""
    name, _, argument_text = line.removeprefix(SLASH).partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        command_names = [f"{SLASH}{command_name}" for command_name in COMMANDS]
        near = nearest_names(f"{SLASH}{name}", command_names, lead="Among others there are")
        raise UsageError(f"There is no command {SLASH}{name}.", f"{near} {SLASH}help lists all.")
    context_object = _context_object(conversation)
    with command.make_context(
        f"{SLASH}{name}", command.words(argument_text.strip()), obj=context_object
    ) as context:
        command.invoke(context)


def _context_object(conversation: Conversation) -> dict[str, Any]:
    outer_context = click.get_current_context(silent=True)
    common: Mapping[str, Any] = (outer_context.obj if outer_context is not None else None) or {}
    return {**common, OPEN_GRAPH: conversation.graph, _CONVERSATION: conversation}


def complete_line(line: str, conversation: Conversation) -> tuple[str, Sequence[CompletionItem]]:
    """Return possible completions of a line: the typed beginning, and replacement items."""
    name, space, argument_text = line.removeprefix(SLASH).partition(" ")
    if not space:
        items = [
            CompletionItem(f"{SLASH}{word}", help=command.get_short_help_str(60))
            for word, command in COMMANDS.items()
            if word.startswith(name.lower())
        ]
        return line, items
    command = COMMANDS.get(name.lower())
    if command is None:
        return "", ()
    *before, begun = argument_text.split(" ")
    context = {"obj": _context_object(conversation)}
    completer = ShellComplete(command, context, f"{SLASH}{name}", "")
    return begun, _quote_items(completer.get_completions([word for word in before if word], begun))


def _quote_items(items: Sequence[CompletionItem]) -> Sequence[CompletionItem]:
    """Return plain completion items; values with spaces are quoted."""
    return [
        CompletionItem(shlex.quote(item.value), help=item.help)
        for item in items
        if item.type == "plain"
    ]


Does = Callable[..., None]


def _register_command(
    name: str, *parameters: Callable[[Does], Does], cls: type[SlashCommand] = SlashCommand
) -> Callable[[Does], Does]:
    """Return a decorator registering a function, which receives the conversation and command
    values."""

    def enter(function: Does) -> Does:
        @wraps(function)
        def call_command(**values: Any) -> None:
            function(click.get_current_context().obj[_CONVERSATION], **values)

        callback: Does = call_command
        for parameter in reversed(parameters):
            callback = parameter(callback)
        settings = {"help_option_names": ["-h", "--help"]}
        COMMANDS[name] = click.command(name, cls=cls, context_settings=settings)(callback)
        return function

    return enter


_session = click.argument(
    "session", metavar="[ID]", required=False, shell_complete=completion.complete_sessions
)
_limit = click.argument("limit", metavar="[N]", type=click.IntRange(min=1), default=10)


# --- the last answer ---


@_register_command(
    "source", click.argument("number", metavar="[N]", type=click.IntRange(min=1), default=1)
)
def source(conversation: Conversation, number: int) -> None:
    """Show the quote of citation N in its page."""
    places = conversation.places()
    cited = [entry for entry in places if entry[1]]
    if not cited:
        raise UsageError("The last answer has no citations.")
    if number > len(places):
        raise UsageError(f"There is no citation {number}.", f"The last citation is {len(places)}.")
    sentence_text, quotations = places[number - 1]
    if not quotations:
        raise UsageError(f"Sentence {number} has no citation: “{one_line(sentence_text.text)}”")
    cited_places: set[tuple[str, int | None, int, int]] = set()
    for place in quotations:
        if (where := (place.document, place.page, place.start, place.end)) not in cited_places:
            if cited_places:
                click.echo()
            cited_places.add(where)
            _show_place(conversation, place)


def _show_place(conversation: Conversation, place: Quotation) -> None:
    from rich.text import Text

    from tgraph.explain.render.page_quote import page_quote, page_quote_text

    text = conversation.graph.documents.read_text(place.document, place.page)
    quote = page_quote(text, place)
    print_renderable(Text(f"{one_line(place.title)}", "cyan"))
    print_renderable(Text(place_text(place.path, place.page, place.start, place.end), "dim"))
    print_renderable(Text())
    print_renderable(page_quote_text(quote))


@_register_command("why-not", click.argument("text", metavar="TEXT"), cls=TextCommand)
def why_not(conversation: Conversation, text: str) -> None:
    """Say why TEXT is not in the last answer.

    TEXT is an entity, a fact (subject — predicate — object), a document or words of one.
    """
    from tgraph.cli.explain import print_why_not

    print_why_not(conversation.graph.why_not(conversation.session, text), as_json=False)


@_register_command(
    "trace",
    _session,
    click.option("--all", "everything", is_flag=True, help="Also the rejected candidates."),
)
def trace(conversation: Conversation, session: str | None, everything: bool) -> None:
    """Show how an answer came about."""
    from tgraph.explain.render.text_trees import trace_tree

    session_trace = conversation.graph.trace(session or conversation.session)
    print_renderable(trace_tree(session_trace, everything=everything))


@_register_command(
    "verify",
    _session,
    click.option("--lexical", is_flag=True, help="Judge by words, without model or reader."),
)
def verify(conversation: Conversation, session: str | None, lexical: bool) -> None:
    """Check the last answer against what it cites."""
    from tgraph.cli.explain import print_verification

    verification = conversation.graph.verify(session or conversation.session, lexical=lexical)
    print_verification(verification, as_json=False)


# --- how it is asked ---


@_register_command(
    "mode",
    click.argument(
        "name", metavar="[NAME]", required=False, shell_complete=completion.complete_modes
    ),
)
def mode(conversation: Conversation, name: str | None) -> None:
    """Say in which mode is asked, or choose another."""
    from tgraph.retrieve.modes.registry import AUTO, MODES

    names = (*MODES, AUTO)
    if name is None:
        print_message(f"Mode: {conversation.mode}. There are: {', '.join(names)}.")
        return
    if name not in names:
        raise UsageError(f"There is no mode {name}.", nearest_names(name, names, most=len(names)))
    conversation.mode = name
    print_message(f"Mode: {name}")


@_register_command(
    "filter",
    filter_options,
    click.option("--clear", is_flag=True, help="Ask of all documents again."),
)
def filter_(conversation: Conversation, clear: bool, **flags: Any) -> None:
    """Say what is answered from, or choose it."""
    filters = filters_of(flags)
    if clear or filters:
        conversation.filters = NO_FILTERS if clear else filters
    print_message(f"Filters: {filters_text(conversation) or 'none'}")


def filters_text(conversation: Conversation) -> str:
    """Describe conversation filters in words."""
    chosen = conversation.filters
    filter_values = {
        "document": chosen.documents,
        "since": (chosen.since,),
        "until": (chosen.until,),
        "type": chosen.types,
        "language": chosen.languages,
        "valid at": (chosen.valid_at,),
    }
    phrases = ((name, " or ".join(filter(None, values))) for name, values in filter_values.items())
    return one_line(", ".join(f"{name} {value}" for name, value in phrases if value))


@_register_command(
    "as-of",
    click.argument(
        "when", metavar="[WHEN]", required=False, shell_complete=completion.complete_sessions
    ),
)
def as_of(conversation: Conversation, when: str | None) -> None:
    """Ask of knowledge as it was then.

    WHEN is a date or time, a generation (`tgraph history`) or a session; now is the newest."""
    if when is not None:
        conversation.as_of = None if when == "now" else when
    print_message(f"As of: {one_line(conversation.as_of or 'now')}")


@_register_command("model", click.argument("name", metavar="[NAME]", required=False))
def model(conversation: Conversation, name: str | None) -> None:
    """Say which model answers, or choose another.

    NAME is one of the endpoint's, or embedded for none."""
    if name is not None:
        conversation.use_model(name)
    chat = conversation.graph.settings.chat
    at = f" at {one_line(chat.base_url)}" if chat.base_url else ""
    model_text = (
        "no model, the embedded default" if conversation.model == EMBEDDED else conversation.model
    )
    print_message(f"Model: {model_text}{'' if conversation.model == EMBEDDED else at}")


@_register_command("steps")
def steps(conversation: Conversation) -> None:
    """Show the steps of each question, or hide them."""
    print_message(f"Steps: {'shown' if conversation.toggle_steps() else 'not shown'}")


# --- what there is ---


@_register_command("documents")
def documents(conversation: Conversation) -> None:
    """List the documents."""
    from tgraph.cli.documents import print_documents

    print_documents([entry for entry in conversation.graph.documents.summaries() if entry.standing])


@_register_command("sessions", _limit)
def sessions(conversation: Conversation, limit: int) -> None:
    """List the last N recorded sessions."""
    from tgraph.cli.trace import print_sessions

    print_sessions(conversation.graph.sessions.summaries(limit), as_json=False)


@_register_command(
    "suggest", click.argument("count", metavar="[N]", type=click.IntRange(1, 50), default=5)
)
def suggest(conversation: Conversation, count: int) -> None:
    """Propose questions that the documents can answer."""
    answer = conversation.graph.suggest(count, history=conversation.turns)
    for sentence in answer.sentences:
        click.echo(escape_controls(sentence.text))
    if answer.no_evidence:
        print_message(escape_controls(answer.text))


# --- the conversation ---


@_register_command("new")
def new(conversation: Conversation) -> None:
    """Begin anew: what was asked before is not meant."""
    conversation.begin_anew()
    print_message("A new conversation.")


@_register_command(
    "continue", click.argument("session", metavar="ID", shell_complete=completion.complete_sessions)
)
def continue_(conversation: Conversation, session: str) -> None:
    """Take up an earlier conversation at a session."""
    conversation.go_on_from(session)
    print_message(
        f"{format_count(len(conversation.turns), 'question')} so far; the last: "
        f"{one_line(conversation.turns[-1].question)}"
    )


@_register_command(
    "export", click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
)
def export(conversation: Conversation, file: Path) -> None:
    """Write the answers with their proof to a file.

    FILE is then a JSON list of what `tgraph ask --json` prints, and a history that `tgraph ask
    --history` reads. A file that is there already is not replaced.
    """
    from tgraph.cli.terminal import json_text, write_result
    from tgraph.engine.json_answers import answer_json

    if not conversation.answers:
        raise UsageError("There is no answer in this conversation yet.")
    if file.exists():
        raise UsageError(f"{one_line(str(file))} is there already.", "Choose another name.")
    written = json_text(list(map(answer_json, conversation.answers)))
    write_result(f"{written}\n".encode(), file)
    print_message(f"{format_count(len(conversation.answers), 'answer')} in {one_line(str(file))}")


@_register_command("help", click.argument("name", metavar="[COMMAND]", required=False))
def help_(_: Conversation, name: str | None) -> None:
    """List the commands, or explain one."""
    if name is None:
        click.echo(_overview_text())
        return
    bare = name.removeprefix(SLASH)
    if bare not in COMMANDS:
        raise UsageError(f"There is no command {SLASH}{bare}.", f"{SLASH}help lists them.")
    command = COMMANDS[bare]
    with click.Context(
        command, info_name=f"{SLASH}{bare}", terminal_width=_help_width()
    ) as context:
        click.echo(command.get_help(context))


def _overview_text() -> str:
    formatter = click.HelpFormatter(width=_help_width())
    formatter.write_dl(list(_usage_rows()), col_max=22 if _help_width() > _NARROW else 2)
    formatter.write_paragraph()
    formatter.write_text(
        "Any other line is a question. Alt-Enter, or a backslash at the end, continues the "
        "question in the next line. Ctrl-C ends a question, Ctrl-D the conversation."
    )
    return formatter.getvalue().rstrip("\n")


def _help_width() -> int:
    """Return the help text width in columns."""
    return min(create_console().width, _WIDEST) if is_terminal() else _WIDEST


def _usage_rows() -> Iterator[tuple[str, str]]:
    for name, command in COMMANDS.items():
        pieces = command.collect_usage_pieces(click.Context(command))
        arguments = " ".join(piece for piece in pieces if name == "filter" or piece != "[OPTIONS]")
        yield f"{SLASH}{name} {arguments}".rstrip(), command.get_short_help_str(80)


@_register_command("quit")
def quit_(conversation: Conversation) -> None:
    """Leave."""
    conversation.is_over = True
