"""``tgraph ask``, also ``tg-invoke-graph-rag``, and ``tgraph suggest``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tgraph.cli import completion
from tgraph.cli.options import (
    ModeFlagsCommand,
    answer_options,
    chat_options,
    common,
    connection,
    filter_options,
    filters_of,
    mode_option,
    settings_of,
)
from tgraph.cli.running import NO_EVIDENCE, choose_exit_code, command, open_call_graph, tell_failure
from tgraph.cli.terminal import (
    PIPED,
    escape_controls,
    one_text,
    piped_lines,
    print_json,
    print_message,
    say_next,
)
from tgraph.errors import TgraphError, UsageError

if TYPE_CHECKING:
    from tgraph.cli.answer_output import AnswerForm
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.model import Only, Turn


class Ask:
    """One ``ask`` command call."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._mode: str = options.pop("mode")
        self._form = form_of(options)
        self._only = _choose_context(options.pop("only_context"), options.pop("only_prompt"))
        history = read_history(options.pop("history"))
        self._given = given_of(options)
        self._asked: dict[str, Any] = {
            "history": history,
            "filters": filters_of(options),
            "as_of": options.pop("as_of"),
        }
        self._settings = settings_of(options)
        if self._form.json and self._form.jsonl:
            raise click.UsageError("Choose --json or --jsonl.")
        if self._only and self._form.jsonl:
            raise click.UsageError(f"--only-{self._only} is no stream: choose --json.")
        check_entities(options["include_entity"], options["exclude_entity"])

    def run(self, question: str) -> None:
        """Ask, and print; the exit code tells how it went."""
        with self._open_graph() as graph:
            code = self._ask_question(graph, question)
        click.get_current_context().exit(code)

    def run_all(self, questions: Iterable[str]) -> None:
        """Ask every question; a failure doesn't stop later questions.

        The exit code reports a failure, or else an answer without evidence."""
        codes: list[int] = []
        with self._open_graph() as graph:
            for question in questions:
                text = not (self._form.json or self._form.jsonl)
                say_next(question, apart=text and bool(codes))
                codes.append(self._ask_question(graph, question))
        click.get_current_context().exit(choose_exit_code(codes))

    @contextmanager
    def _open_graph(self) -> Iterator[KnowledgeGraph]:
        from tgraph.cli.answer_output import note_idle

        with open_call_graph(self._settings) as graph:
            note_idle(graph, self._given, self._mode)
            yield graph

    def _ask_question(self, graph: KnowledgeGraph, question: str) -> int:
        from tgraph.cli.answer_output import AnswerOutput

        output = AnswerOutput(graph, self._form)
        try:
            if self._only:
                context_stream = graph.stream_context(
                    question, self._mode, only=self._only, **self._asked
                )
                shown_context = output.context(context_stream, self._only)
                return 0 if shown_context.messages or shown_context.rows else self._found_nothing()
            stream = graph.stream(question, self._mode, **self._asked)
            answer = output.answer(stream, dated=self._asked["as_of"] is not None)
        except TgraphError as error:
            return tell_failure(error)
        return output.choose_exit_code(answer)

    @staticmethod
    def _found_nothing() -> int:
        print_message("Nothing was found.")
        return NO_EVIDENCE


def form_of(options: dict[str, Any]) -> AnswerForm:
    """Take answer format flags out of the options."""
    from tgraph.cli.answer_output import AnswerForm

    names = ("explainable", "as_json", "jsonl", "no_streaming", "show_usage")
    return AnswerForm(*(bool(options.pop(name, False)) for name in names))


def given_of(options: Mapping[str, Any]) -> Sequence[str]:
    """Return names of the supplied flags."""
    return [name for name, value in options.items() if value not in (None, ())]


def _choose_context(context: bool, prompt: bool) -> Only | None:
    """Return the requested replacement for an answer: context, prompt or None."""
    if context and prompt:
        raise click.UsageError("Choose --only-context or --only-prompt.")
    return "context" if context else "prompt" if prompt else None


def check_entities(included: Sequence[str], excluded: Sequence[str]) -> None:
    """Raise ``UsageError`` for an entity both included and excluded."""
    from tgraph.vocabulary import normalise_name

    left_out = {normalise_name(name) for name in excluded}
    for name in included:
        if normalise_name(name) in left_out:
            raise UsageError(
                f"{name!r} is both in --include-entity and in --exclude-entity.",
                "Name the entity in only one of the options.",
            )


_LONGEST_HISTORY = 10_000_000


def read_history(path: Path | None) -> Sequence[Turn]:
    """Read conversation turns from a file.

    Raises ``UsageError`` if the file is neither a JSON array nor JSON Lines."""
    if path is None:
        return ()
    from tgraph.foreign_bytes import OversizeError, check_file_size, parse_json
    from tgraph.model import Turn

    problem = f"{path} is not a history."
    remedy = "A history is a JSON array, or JSON Lines, of objects with question and answer."
    try:
        check_file_size(path, _LONGEST_HISTORY)
        text = path.read_text("utf-8-sig", errors="replace")
        is_array = text.lstrip().startswith("[")
        items = (
            parse_json(text) if is_array else [parse_json(x) for x in text.split("\n") if x.strip()]
        )
        turns = [Turn(item["question"], item["answer"]) for item in items]
    except OversizeError as error:
        raise UsageError(f"{path} can't be read. {error}.", "Shorten it.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(problem, remedy) from error
    if not all(isinstance(t.question, str) and isinstance(t.answer, str) for t in turns):
        raise UsageError(problem, remedy)
    return turns


@command("ask", ModeFlagsCommand)
@click.argument("words", metavar="[QUESTION]", nargs=-1)
@click.option(
    "-q",
    "--question",
    help="The question, in place of the argument; - reads questions from standard input.",
)
@mode_option("The retrieval mode: {modes}, or auto (a choice by the form of the question).", "auto")
@click.option(
    "-x",
    "--explainable",
    is_flag=True,
    help="Print each step on stderr when the step is recorded.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--jsonl", is_flag=True, help="Print one JSON event per line, as the events happen.")
@click.option(
    "--json-schema", is_flag=True, help="Print the JSON Schemas of both outputs and exit."
)
@click.option(
    "--no-streaming", is_flag=True, help="Print the answer only when the answer is complete."
)
@click.option(
    "--show-usage", is_flag=True, help="Print the tokens and calls on stderr, by step and prompt."
)
@click.option(
    "--only-context",
    is_flag=True,
    help="Retrieve and select only: print the context for the answer, and write no answer.",
)
@click.option(
    "--only-prompt",
    is_flag=True,
    help="Retrieve and select only: print the complete prompt for the answer, and write no answer.",
)
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Earlier turns: a JSON array, or JSON Lines, of {question, answer}.",
)
@click.option(
    "--as-of",
    metavar="WHEN",
    shell_complete=completion.complete_sessions,
    help=(
        "Answer from the knowledge at an earlier point: a date or time, a generation (`tgraph"
        " history`) or a session."
    ),
)
@filter_options
@answer_options
@chat_options
@connection
@common
def ask(words: tuple[str, ...], question: str | None, **options: Any) -> None:
    """Answer a question from the documents, with proof.

    The answer goes to stdout; the evidence and the session's IRI go to stderr. A sentence without a
    citation is marked [no citation]. Without QUESTION, the question is read from standard input;
    with -, each line of standard input is a question of its own. Exit code 3: the documents contain
    no answer. An uncertain answer begins "The documents may not say this" and has exit code 0, or 3
    with --strict.

    \b
    Examples:
      tgraph ask "When did the Endurance sink?"
      tgraph ask -x -q "Who designed the Fram?" --show-usage
      tgraph ask "Who designed the Fram?" --json | jq .sentences
      echo "Who designed the Fram?" | tgraph ask
      tgraph ask - --jsonl < questions.txt
      tgraph ask "Who designed the Fram?" --only-context | head -3
      tgraph ask "Who was in command?" --document "nimrod*" --type person
      tgraph ask "Who was in command?" --as-of 2026-03-01
      tgraph ask -m lightrag-mix "Whose ship was crushed by the ice?"
      tgraph ask -m lightrag-local "Who designed the ship?" --low-keyword Fram
      tgraph ask "What are the main themes?"
      tgraph ask -m global "What are the main themes?"
    """
    if options.pop("json_schema"):
        from tgraph.engine.schemas import build_schemas

        print_json(build_schemas())
        return
    word_text = " ".join(words) if words else None
    if PIPED in (word_text, question) and None in (word_text, question):
        Ask(options).run_all(piped_lines("question"))
    else:
        Ask(options).run(one_text("question", word_text, question))


@command("suggest")
@click.option(
    "-n", "--count", type=click.IntRange(1, 50), default=5, show_default=True, metavar="N"
)
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The conversation so far: a JSON array, or JSON Lines, of {question, answer}.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, as `ask` does.")
@chat_options
@connection
@common
def suggest(count: int, history: Path | None, as_json: bool, **options: Any) -> None:
    """Propose questions that the documents can answer.

    Without a history, the questions start from central entities of the collection; with a history,
    from the topic of the conversation. Each question names the items that led to the question; the
    session is recorded like any other.

    \b
    Examples:
      tgraph suggest
      tgraph suggest -n 3 --history conversation.json
    """
    turns = read_history(history)
    with open_call_graph(settings_of(options)) as graph:
        answer = graph.suggest(count, history=turns)
    if as_json:
        from tgraph.engine.json_answers import answer_json

        print_json(answer_json(answer))
    else:
        for sentence in answer.sentences:
            click.echo(escape_controls(sentence.text))
    print_message(f"Session: {answer.session}")
    if answer.no_evidence:
        click.get_current_context().exit(NO_EVIDENCE)
