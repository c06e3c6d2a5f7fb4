"""What can be said to a conversation beside questions: ``/trace`` and its like."""

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
    console,
    is_terminal,
    many,
    one_line,
    place_text,
    safe,
    say,
    show,
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
    """One of them. Its help and what is wrong with a call are click's."""

    def words(self, rest: str) -> list[str]:
        """What comes after its name, as arguments; an apostrophe alone quotes nothing."""
        try:
            return shlex.split(rest)
        except ValueError:
            return rest.split()


class TextCommand(SlashCommand):
    """One whose argument is all that comes after its name, as it stands."""

    def words(self, rest: str) -> list[str]:
        text = (
            rest[1:-1] if rest[:1] in _QUOTES and rest[-1:] in _QUOTES and len(rest) > 1 else rest
        )
        return ["--", text] if text else []


COMMANDS: dict[str, SlashCommand] = {}


def run(line: str, conversation: Conversation) -> None:
    """Do what the line says. ``UsageError`` where there is no such command."""
    name, _, rest = line.removeprefix(SLASH).partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        known = [f"{SLASH}{each}" for each in COMMANDS]
        near = nearest_names(f"{SLASH}{name}", known, lead="Among others there are")
        raise UsageError(f"There is no command {SLASH}{name}.", f"{near} {SLASH}help lists all.")
    given = _context_object(conversation)
    with command.make_context(f"{SLASH}{name}", command.words(rest.strip()), obj=given) as context:
        command.invoke(context)


def _context_object(conversation: Conversation) -> dict[str, Any]:
    around = click.get_current_context(silent=True)
    common: Mapping[str, Any] = (around.obj if around is not None else None) or {}
    return {**common, OPEN_GRAPH: conversation.graph, _CONVERSATION: conversation}


def completed(line: str, conversation: Conversation) -> tuple[str, Sequence[CompletionItem]]:
    """What the line may go on with: what was begun, and what may stand in its place."""
    name, space, rest = line.removeprefix(SLASH).partition(" ")
    if not space:
        items = [
            CompletionItem(f"{SLASH}{each}", help=command.get_short_help_str(60))
            for each, command in COMMANDS.items()
            if each.startswith(name.lower())
        ]
        return line, items
    command = COMMANDS.get(name.lower())
    if command is None:
        return "", ()
    *before, begun = rest.split(" ")
    context = {"obj": _context_object(conversation)}
    asked = ShellComplete(command, context, f"{SLASH}{name}", "")
    return begun, _quoted(asked.get_completions([each for each in before if each], begun))


def _quoted(items: Sequence[CompletionItem]) -> Sequence[CompletionItem]:
    """Those that name something; what has spaces is quoted."""
    return [
        CompletionItem(shlex.quote(item.value), help=item.help)
        for item in items
        if item.type == "plain"
    ]


Does = Callable[..., None]


def _command(
    name: str, *parameters: Callable[[Does], Does], cls: type[SlashCommand] = SlashCommand
) -> Callable[[Does], Does]:
    """Enters a function, which is given the conversation and the command's values."""

    def enter(function: Does) -> Does:
        @wraps(function)
        def called(**values: Any) -> None:
            function(click.get_current_context().obj[_CONVERSATION], **values)

        made: Does = called
        for parameter in reversed(parameters):
            made = parameter(made)
        settings = {"help_option_names": ["-h", "--help"]}
        COMMANDS[name] = click.command(name, cls=cls, context_settings=settings)(made)
        return function

    return enter


_session = click.argument(
    "session", metavar="[ID]", required=False, shell_complete=completion.sessions
)
_limit = click.argument("limit", metavar="[N]", type=click.IntRange(min=1), default=10)


# --- the last answer ---


@_command("source", click.argument("number", metavar="[N]", type=click.IntRange(min=1), default=1))
def source(conversation: Conversation, number: int) -> None:
    """Show the quote of citation N in its page."""
    places = conversation.places()
    cited = [each for each in places if each[1]]
    if not cited:
        raise UsageError("The last answer cites nothing.")
    if number > len(places):
        raise UsageError(f"There is no citation {number}.", f"The last is {len(places)}.")
    said, quotations = places[number - 1]
    if not quotations:
        raise UsageError(f"Sentence {number} cites nothing: “{one_line(said.text)}”")
    seen: set[tuple[str, int | None, int, int]] = set()
    for place in quotations:
        if (where := (place.document, place.page, place.start, place.end)) not in seen:
            if seen:
                click.echo()
            seen.add(where)
            _show_place(conversation, place)


def _show_place(conversation: Conversation, place: Quotation) -> None:
    from rich.text import Text

    from tgraph.explain.render.page_quote import page_quote, page_quote_text

    text = conversation.graph.source_text(place.document, place.page)
    found = page_quote(text, place)
    show(Text(f"{one_line(place.title)}", "cyan"))
    show(Text(place_text(place.path, place.page, place.start, place.end), "dim"))
    show(Text())
    show(page_quote_text(found))


@_command("why-not", click.argument("text", metavar="TEXT"), cls=TextCommand)
def why_not(conversation: Conversation, text: str) -> None:
    """Say why TEXT is not in the last answer.

    TEXT is an entity, a fact (subject — predicate — object), a document or words of one.
    """
    from tgraph.cli.explain import print_why_not

    print_why_not(conversation.graph.why_not(conversation.session, text), as_json=False)


@_command(
    "trace",
    _session,
    click.option("--all", "everything", is_flag=True, help="Also the rejected candidates."),
)
def trace(conversation: Conversation, session: str | None, everything: bool) -> None:
    """Show how an answer came about."""
    from tgraph.explain.render.text_trees import trace_tree

    found = conversation.graph.trace(session or conversation.session)
    show(trace_tree(found, everything=everything))


@_command(
    "verify",
    _session,
    click.option("--lexical", is_flag=True, help="Judge by words, without model or reader."),
)
def verify(conversation: Conversation, session: str | None, lexical: bool) -> None:
    """Check the last answer against what it cites."""
    from tgraph.cli.explain import print_verification

    found = conversation.graph.verify(session or conversation.session, lexical=lexical)
    print_verification(found, as_json=False)


# --- how it is asked ---


@_command(
    "mode",
    click.argument("name", metavar="[NAME]", required=False, shell_complete=completion.modes),
)
def mode(conversation: Conversation, name: str | None) -> None:
    """Say in which mode is asked, or choose another."""
    from tgraph.retrieve.modes.registry import AUTO, MODES

    names = (*MODES, AUTO)
    if name is None:
        say(f"Mode: {conversation.mode}. There are: {', '.join(names)}.")
        return
    if name not in names:
        raise UsageError(f"There is no mode {name}.", nearest_names(name, names, most=len(names)))
    conversation.mode = name
    say(f"Mode: {name}")


@_command(
    "filter",
    filter_options,
    click.option("--clear", is_flag=True, help="Ask of all documents again."),
)
def filter_(conversation: Conversation, clear: bool, **flags: Any) -> None:
    """Say what is answered from, or choose it."""
    given = filters_of(flags)
    if clear or given:
        conversation.filters = NO_FILTERS if clear else given
    say(f"Filters: {filters_text(conversation) or 'none'}")


def filters_text(conversation: Conversation) -> str:
    """The filters in words."""
    chosen = conversation.filters
    told = {
        "document": chosen.documents,
        "since": (chosen.since,),
        "until": (chosen.until,),
        "type": chosen.types,
        "language": chosen.languages,
        "valid at": (chosen.valid_at,),
    }
    said = ((name, " or ".join(filter(None, values))) for name, values in told.items())
    return one_line(", ".join(f"{name} {value}" for name, value in said if value))


@_command(
    "as-of",
    click.argument("when", metavar="[WHEN]", required=False, shell_complete=completion.sessions),
)
def as_of(conversation: Conversation, when: str | None) -> None:
    """Ask of knowledge as it was then.

    WHEN is a date or time, a generation (`tgraph history`) or a session; now is the newest."""
    if when is not None:
        conversation.as_of = None if when == "now" else when
    say(f"As of: {one_line(conversation.as_of or 'now')}")


@_command("model", click.argument("name", metavar="[NAME]", required=False))
def model(conversation: Conversation, name: str | None) -> None:
    """Say which model answers, or choose another.

    NAME is one of the endpoint's, or embedded for none."""
    if name is not None:
        conversation.use_model(name)
    chat = conversation.graph.settings.chat
    at = f" at {one_line(chat.base_url)}" if chat.base_url else ""
    told = "none, the embedded default" if conversation.model == EMBEDDED else conversation.model
    say(f"Model: {told}{'' if conversation.model == EMBEDDED else at}")


@_command("steps")
def steps(conversation: Conversation) -> None:
    """Show the steps of each question, or hide them."""
    say(f"Steps: {'shown' if conversation.toggle_steps() else 'not shown'}")


# --- what there is ---


@_command("documents")
def documents(conversation: Conversation) -> None:
    """List the documents."""
    from tgraph.cli.documents import print_documents

    print_documents([each for each in conversation.graph.documents() if each.standing])


@_command("sessions", _limit)
def sessions(conversation: Conversation, limit: int) -> None:
    """List the last N recorded sessions."""
    from tgraph.cli.trace import print_sessions

    print_sessions(conversation.graph.sessions(limit), as_json=False)


@_command("suggest", click.argument("count", metavar="[N]", type=click.IntRange(1, 50), default=5))
def suggest(conversation: Conversation, count: int) -> None:
    """Propose questions that the documents can answer."""
    answer = conversation.graph.suggest(count, history=conversation.turns)
    for sentence in answer.sentences:
        click.echo(safe(sentence.text))
    if answer.no_evidence:
        say(safe(answer.text))


# --- the conversation ---


@_command("new")
def new(conversation: Conversation) -> None:
    """Begin anew: what was asked before is not meant."""
    conversation.begin_anew()
    say("A new conversation.")


@_command("continue", click.argument("session", metavar="ID", shell_complete=completion.sessions))
def continue_(conversation: Conversation, session: str) -> None:
    """Take up an earlier conversation at a session."""
    conversation.go_on_from(session)
    say(
        f"{many(len(conversation.turns), 'question')} so far; the last: "
        f"{one_line(conversation.turns[-1].question)}"
    )


@_command("export", click.argument("file", metavar="FILE", type=click.Path(path_type=Path)))
def export(conversation: Conversation, file: Path) -> None:
    """Write the answers with their proof to a file.

    FILE is then a JSON list of what `tgraph ask --json` prints, and a history that `tgraph ask
    --history` reads. A file that is there already is not replaced.
    """
    from tgraph.cli.terminal import json_text, write_result
    from tgraph.engine.json_answers import answer_json

    if not conversation.answers:
        raise UsageError("Nothing has been answered in this conversation.")
    if file.exists():
        raise UsageError(f"{one_line(str(file))} is there already.", "Choose another name.")
    written = json_text(list(map(answer_json, conversation.answers)))
    write_result(f"{written}\n".encode(), file)
    say(f"{many(len(conversation.answers), 'answer')} in {one_line(str(file))}")


@_command("help", click.argument("name", metavar="[COMMAND]", required=False))
def help_(_: Conversation, name: str | None) -> None:
    """List the commands, or explain one."""
    if name is None:
        click.echo(_overview())
        return
    bare = name.removeprefix(SLASH)
    if bare not in COMMANDS:
        raise UsageError(f"There is no command {SLASH}{bare}.", f"{SLASH}help lists them.")
    command = COMMANDS[bare]
    with click.Context(command, info_name=f"{SLASH}{bare}", terminal_width=_width()) as context:
        click.echo(command.get_help(context))


def _overview() -> str:
    formatter = click.HelpFormatter(width=_width())
    formatter.write_dl(list(_usages()), col_max=22 if _width() > _NARROW else 2)
    formatter.write_paragraph()
    formatter.write_text(
        "Anything else is a question. Alt-Enter, or a backslash at the end, goes on in the next"
        " line. Ctrl-C ends a question, Ctrl-D the conversation."
    )
    return formatter.getvalue().rstrip("\n")


def _width() -> int:
    """Columns for a help."""
    return min(console().width, _WIDEST) if is_terminal() else _WIDEST


def _usages() -> Iterator[tuple[str, str]]:
    for name, command in COMMANDS.items():
        pieces = command.collect_usage_pieces(click.Context(command))
        told = " ".join(piece for piece in pieces if name == "filter" or piece != "[OPTIONS]")
        yield f"{SLASH}{name} {told}".rstrip(), command.get_short_help_str(80)


@_command("quit")
def quit_(conversation: Conversation) -> None:
    """Leave."""
    conversation.is_over = True
