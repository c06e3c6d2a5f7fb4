"""``tgraph ask``, also ``tg-invoke-graph-rag``, and ``tgraph suggest``."""

from __future__ import annotations

import json
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
from tgraph.cli.running import NO_EVIDENCE, command, opened, tell_failure, worst
from tgraph.cli.terminal import PIPED, one_text, piped_lines, print_json, safe, say, say_next
from tgraph.errors import TgraphError, UsageError

if TYPE_CHECKING:
    from tgraph.cli.answer_output import AnswerForm
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.model import Only, Turn


class Ask:
    """One call of ``ask``."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._mode: str = options.pop("mode")
        self._form = form_of(options)
        self._only = _only(options.pop("only_context"), options.pop("only_prompt"))
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
        with self._opened() as graph:
            code = self._ask(graph, question)
        click.get_current_context().exit(code)

    def run_all(self, questions: Iterable[str]) -> None:
        """The same for each. What fails doesn't stop those that come after it; the exit code tells
        of it, or else that one had no evidence."""
        codes: list[int] = []
        with self._opened() as graph:
            for question in questions:
                text = not (self._form.json or self._form.jsonl)
                say_next(question, apart=text and bool(codes))
                codes.append(self._ask(graph, question))
        click.get_current_context().exit(worst(codes))

    @contextmanager
    def _opened(self) -> Iterator[KnowledgeGraph]:
        from tgraph.cli.answer_output import note_idle

        with opened(self._settings) as graph:
            note_idle(graph, self._given, self._mode)
            yield graph

    def _ask(self, graph: KnowledgeGraph, question: str) -> int:
        from tgraph.cli.answer_output import AnswerOutput

        output = AnswerOutput(graph, self._form)
        try:
            if self._only:
                asked = graph.stream_context(question, self._mode, only=self._only, **self._asked)
                shown = output.context(asked, self._only)
                return 0 if shown.messages or shown.rows else self._found_nothing()
            stream = graph.stream(question, self._mode, **self._asked)
            answer = output.answer(stream, dated=self._asked["as_of"] is not None)
        except TgraphError as error:
            return tell_failure(error)
        return NO_EVIDENCE if answer.no_evidence else 0

    @staticmethod
    def _found_nothing() -> int:
        say("Nothing was found.")
        return NO_EVIDENCE


def form_of(options: dict[str, Any]) -> AnswerForm:
    """The flags that say how an answer is printed, which are taken out of them."""
    from tgraph.cli.answer_output import AnswerForm

    names = ("explainable", "as_json", "jsonl", "no_streaming", "show_usage")
    return AnswerForm(*(bool(options.pop(name, False)) for name in names))


def given_of(options: Mapping[str, Any]) -> Sequence[str]:
    """The names of the flags that were given."""
    return [name for name, value in options.items() if value not in (None, ())]


def _only(context: bool, prompt: bool) -> Only | None:
    """What is asked for in place of an answer."""
    if context and prompt:
        raise click.UsageError("Choose --only-context or --only-prompt.")
    return "context" if context else "prompt" if prompt else None


def check_entities(included: Sequence[str], excluded: Sequence[str]) -> None:
    """``UsageError`` for an entity that is to be started from and left out at once."""
    from tgraph.vocabulary import normalise_name

    left_out = {normalise_name(name) for name in excluded}
    for name in included:
        if normalise_name(name) in left_out:
            raise UsageError(
                f"{name!r} is both in --include-entity and in --exclude-entity.",
                "Give it in one of them.",
            )


def read_history(path: Path | None) -> Sequence[Turn]:
    """The turns in a file. ``UsageError`` for one that is neither form."""
    if path is None:
        return ()
    from tgraph.model import Turn

    text = path.read_text("utf-8-sig", errors="replace")
    problem = f"{path} is not a history."
    remedy = "It must be a JSON array, or JSON Lines, of objects with question and answer."
    try:
        whole = text.lstrip().startswith("[")
        items = (
            json.loads(text) if whole else [json.loads(x) for x in text.split("\n") if x.strip()]
        )
        turns = [Turn(item["question"], item["answer"]) for item in items]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(problem, remedy) from error
    if not all(isinstance(t.question, str) and isinstance(t.answer, str) for t in turns):
        raise UsageError(problem, remedy)
    return turns


@command("ask", ModeFlagsCommand)
@click.argument("words", metavar="[QUESTION]", nargs=-1)
@click.option("-q", "--question", help="The question, instead of the argument; - reads some.")
@mode_option("How to retrieve: {modes}, or auto, which chooses by the question.", "auto")
@click.option(
    "-x", "--explainable", is_flag=True, help="Show each step on stderr as it is recorded."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--jsonl", is_flag=True, help="Print one JSON event per line, as they happen.")
@click.option("--json-schema", is_flag=True, help="Print the JSON Schemas of these and exit.")
@click.option("--no-streaming", is_flag=True, help="Print the answer when it is complete.")
@click.option("--show-usage", is_flag=True, help="Say on stderr what it cost, by step and prompt.")
@click.option(
    "--only-context",
    is_flag=True,
    help="Retrieve and select; print what the writer would be shown, and write no answer.",
)
@click.option(
    "--only-prompt",
    is_flag=True,
    help="The same; print the whole prompt that the model would be sent for the answer.",
)
@click.option(
    "--history",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Earlier turns: a JSON array, or JSON Lines, of {question, answer}.",
)
@click.option(
    "--as-of",
    metavar="WHEN",
    shell_complete=completion.sessions,
    help="Answer from knowledge as it was: a date or time, a generation (`tgraph history`) or a"
    " session.",
)
@filter_options
@answer_options
@chat_options
@connection
@common
def ask(words: tuple[str, ...], question: str | None, **options: Any) -> None:
    """Answer a question from the documents, with proof.

    The answer goes to stdout; the evidence and the session's IRI go to stderr. A sentence that
    nothing proves is marked [no citation]. Without a question standard input has it; with - each
    of its lines is one, asked by itself. Exit code 3: the documents hold no answer.

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
        from tgraph.engine.schemas import schemas

        print_json(schemas())
        return
    given = " ".join(words) if words else None
    if PIPED in (given, question) and None in (given, question):
        Ask(options).run_all(piped_lines("question"))
    else:
        Ask(options).run(one_text("question", given, question))


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

    Without a history they start from the centres of the collection, with one from what it was
    about. Each question names what led to it; the session is recorded like any other.

    \b
    Examples:
      tgraph suggest
      tgraph suggest -n 3 --history conversation.json
    """
    turns = read_history(history)
    with opened(settings_of(options)) as graph:
        answer = graph.suggest(count, history=turns)
    if as_json:
        from tgraph.engine.json_answers import answer_json

        print_json(answer_json(answer))
    else:
        for sentence in answer.sentences:
            click.echo(safe(sentence.text))
    say(f"Session: {answer.session}")
    if answer.no_evidence:
        click.get_current_context().exit(NO_EVIDENCE)
