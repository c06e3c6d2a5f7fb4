"""``tgraph ask``, also ``tg-invoke-graph-rag``, and ``tgraph suggest``."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
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
    without_effect,
)
from tgraph.cli.running import command, opened
from tgraph.cli.terminal import (
    is_terminal,
    json_text,
    many,
    one_line,
    one_text,
    place_text,
    print_json,
    safe,
    say,
    show,
    table,
    text_of,
)
from tgraph.errors import TgraphError, UsageError

if TYPE_CHECKING:
    from tgraph.engine.ask.question_run import ContextStream
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.model import Answer, GraphRagResponse, Only, Sentence, ShownContext, Turn

NO_EVIDENCE = 3
UNCITED = " [no citation]"


class Ask:
    """One call of ``ask``."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._mode: str = options.pop("mode")
        self._explain: bool = options.pop("explainable")
        self._json: bool = options.pop("as_json")
        self._jsonl: bool = options.pop("jsonl")
        self._whole: bool = options.pop("no_streaming")
        self._show_usage: bool = options.pop("show_usage")
        self._only = _only(options.pop("only_context"), options.pop("only_prompt"))
        self._history = read_history(options.pop("history"))
        self._given = [name for name, value in options.items() if value not in (None, ())]
        self._filters = filters_of(options)
        self._as_of: str | None = options.pop("as_of")
        self._settings = settings_of(options)
        self._begun = False
        self._last_stage = ""
        self._laid_out = False
        if self._json and self._jsonl:
            raise click.UsageError("Choose --json or --jsonl.")
        if self._only and self._jsonl:
            raise click.UsageError(f"--only-{self._only} is no stream: choose --json.")
        _check_entities(options["include_entity"], options["exclude_entity"])

    def run(self, question: str) -> None:
        """Ask, print, and end with exit code 3 where there is no evidence."""
        with opened(self._settings) as graph:
            self._note_idle(graph)
            asked: dict[str, Any] = {
                "history": self._history,
                "filters": self._filters,
                "as_of": self._as_of,
            }
            if self._only:
                stages = graph.stream_context(question, self._mode, only=self._only, **asked)
                shown = self._heard(graph, stages)
            else:
                answer = self._listen(graph, graph.stream(question, self._mode, **asked))
                gone = _gone(graph, answer) if self._as_of is not None else ()
                told = (*self._written(graph, answer), *gone)
        if self._only:
            self._print_context(shown)
        else:
            self._print(answer, told)

    def _note_idle(self, graph: KnowledgeGraph) -> None:
        """Say which flags are without an effect; an answer without a model is laid out."""
        model = graph.settings.uses_model()
        self._laid_out = not model and is_terminal() and not (self._json or self._jsonl)
        rerank = graph.settings.rerank
        reranker = bool(rerank.provider or rerank.base_url)
        for note in without_effect(self._given, self._mode, model=model, reranker=reranker):
            say(note)

    def _print(self, answer: Answer, written: Sequence[str]) -> None:
        if self._json:
            from tgraph.engine.schemas import ASK

            print_json(ASK.plain(answer))
        elif self._laid_out and answer.sentences:
            _lay_out(answer)
        elif not self._jsonl:
            if self._laid_out:
                click.echo(safe(answer.text), nl=False)
            click.echo()
            _evidence(answer)
        for line in written:
            say(line)
        if self._show_usage:
            _tell_usage(answer)
        if not (self._laid_out and answer.sentences):
            for told in answer.notes:
                say(f"Note: {one_line(told.text)}")
        _finish(answer)

    def _heard(self, graph: KnowledgeGraph, stages: ContextStream) -> ShownContext:
        """The context, its stages told on the way where that is wanted."""
        session = ""
        while True:
            try:
                message = next(stages)
            except StopIteration as end:
                shown: ShownContext = end.value
                return shown
            session = session or message.explain_id or ""
            if self._explain and message.explain_id:
                for line in self._stage(graph, session, message.explain_id):
                    say(line)

    def _print_context(self, shown: ShownContext) -> None:
        """What the writer would be shown; exit code 3 where that is nothing."""
        if self._json:
            from tgraph.engine.schemas import ASK_CONTEXT

            print_json(ASK_CONTEXT.plain(shown))
        elif self._only == "prompt":
            for message in shown.messages:
                click.echo(f"=== {message['role']}\n{safe(message['content'])}")
        elif shown.rows:
            click.echo(safe(shown.text))
        for reason, count in shown.dropped.items():
            say(f"Left out: {count:,} × {reason}")
        if self._show_usage:
            _tell_usage(shown)
        say(f"Session: {shown.session} (no answer was asked for)")
        if not (shown.messages or shown.rows):
            say("Nothing was found.")
            click.get_current_context().exit(NO_EVIDENCE)

    def _listen(
        self, graph: KnowledgeGraph, stream: Generator[GraphRagResponse, None, Answer]
    ) -> Answer:
        session = ""
        last: GraphRagResponse | None = None
        try:
            while True:
                try:
                    message = next(stream)
                except StopIteration as end:
                    answer: Answer = end.value
                    break
                session = session or message.explain_id or ""
                last = message
                self._message(graph, session, message)
        except (TgraphError, KeyboardInterrupt):
            if self._begun:
                click.echo()
            if session:
                say(f"Session: {session}")
            raise
        finally:
            stream.close()
        if self._jsonl and last is not None:
            self._event(last, answer=answer)
        elif self._whole and not (self._json or self._laid_out):
            click.echo(_marked(answer), nl=False)
        return answer

    def _message(self, graph: KnowledgeGraph, session: str, message: GraphRagResponse) -> None:
        if self._explain and message.message_type == "explain":
            assert message.explain_id is not None
            self._last_stage = message.explain_id
            for line in self._stage(graph, session, message.explain_id):
                say(line)
        if self._jsonl:
            if not message.end_of_session:
                self._event(message)
        elif message.message_type == "chunk" and not self._together:
            click.echo(safe(message.response) + _mark(message), nl=False)
            self._begun = True

    @staticmethod
    def _stage(graph: KnowledgeGraph, session: str, stage: str) -> Sequence[str]:
        from tgraph.explain.render.wording import stage_lines

        return tuple(stage_lines(graph.trace_so_far(session), stage))

    def _written(self, graph: KnowledgeGraph, answer: Answer) -> Sequence[str]:
        """The answer's stage once more, when all of it is on record."""
        return self._stage(graph, answer.session, self._last_stage) if self._explain else ()

    @property
    def _together(self) -> bool:
        """Whether an answer is printed when all of it is there."""
        return self._json or self._whole or self._laid_out

    def _event(self, message: GraphRagResponse, answer: Answer | None = None) -> None:
        from tgraph.engine.schemas import event_json

        sentence = _sentence_of(message)
        click.echo(json_text(event_json(message, sentence, answer), indent=None))


def _gone(graph: KnowledgeGraph, answer: Answer) -> Sequence[str]:
    """A line for each document that the answer cites and that doesn't stand any more."""
    standing = {found.document for found in graph.documents() if found.standing}
    gone = (source.path for source in answer.sources if source.document not in standing)
    return [f"{one_line(path)} doesn't stand any more." for path in gone]


def _sentence_of(message: GraphRagResponse) -> Sentence | None:
    from tgraph.engine.ask.question_run import SentenceMessage

    return message.sentence if isinstance(message, SentenceMessage) else None


def _only(context: bool, prompt: bool) -> Only | None:
    """What is asked for in place of an answer."""
    if context and prompt:
        raise click.UsageError("Choose --only-context or --only-prompt.")
    return "context" if context else "prompt" if prompt else None


def _tell_usage(answer: Answer | ShownContext) -> None:
    """What the answer cost, in all and by step and prompt."""
    usage = answer.usage
    thought = usage.reasoning_tokens
    thinking = f" ({thought:,} of them thinking)" if thought else ""
    say(
        f"Usage: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{thinking}, "
        f"{many(usage.calls, 'call')} ({answer.model})"
    )
    rows = (
        (
            u.step,
            u.purpose,
            *(f"{n:,}" for n in (u.asked, u.calls, u.input_tokens, u.output_tokens)),
        )
        for u in answer.usage_by_step
    )
    if answer.usage_by_step:
        columns = ("Step", "What for", "Asked", "Calls", "Tokens in", "Tokens out")
        say(text_of(table(columns, rows)).rstrip("\n"))


def _finish(answer: Answer) -> None:
    """Exit code 3 where there is no evidence."""
    say(f"Session: {answer.session}")
    if answer.no_evidence:
        click.get_current_context().exit(NO_EVIDENCE)


def _check_entities(included: Sequence[str], excluded: Sequence[str]) -> None:
    """``UsageError`` for an entity that is to be started from and left out at once."""
    from tgraph.vocabulary import normalise_name

    left_out = {normalise_name(name) for name in excluded}
    for name in included:
        if normalise_name(name) in left_out:
            raise UsageError(
                f"{name!r} is both in --include-entity and in --exclude-entity.",
                "Give it in one of them.",
            )


def _mark(message: GraphRagResponse) -> str:
    sentence = _sentence_of(message)
    return UNCITED if sentence is not None and not sentence.citations else ""


def _marked(answer: Answer) -> str:
    if answer.no_evidence:
        return safe(answer.text)
    marked = (
        (s.lead if at else "") + s.text + ("" if s.citations else UNCITED)
        for at, s in enumerate(answer.sentences)
    )
    return safe("".join(marked))


def _lay_out(answer: Answer) -> None:
    """The answer with its quotes, for somebody at a terminal."""
    from tgraph.explain.render.answer import answer_block

    for part in answer_block(answer):
        show(part)
    say("")


def _evidence(answer: Answer) -> None:
    """For each sentence the places that prove it, and how likely the documents answer."""
    if answer.no_evidence:
        return
    say("\nEvidence:")
    for number, sentence in enumerate(answer.sentences, 1):
        for place in _places(sentence):
            say(f"  [{number}] {place}")
        if not sentence.citations:
            say(f"  [{number}] no citation")
    if answer.confidence is not None:
        words = f" for “{one_line(answer.short)}”" if answer.short else ""
        say(f"Confidence: {answer.confidence:.2f}{words}")


def _places(sentence: Sentence) -> list[str]:
    places = (
        f"{place_text(c.title, c.page, c.start, c.end)}  {one_line(c.path)}"
        for c in sentence.citations
    )
    return list(dict.fromkeys(places))


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
@click.option("-q", "--question", help="The question, instead of the argument; - reads it.")
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
    nothing proves is marked [no citation]. Without a question, or with -, standard input has it.
    Exit code 3: the documents hold no answer.

    \b
    Examples:
      tgraph ask "When did the Endurance sink?"
      tgraph ask -x -q "Who designed the Fram?" --show-usage
      tgraph ask "Who designed the Fram?" --json | jq .sentences
      echo "Who designed the Fram?" | tgraph ask
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
    asked = one_text("question", " ".join(words) if words else None, question)
    Ask(options).run(asked)


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
        from tgraph.engine.schemas import ASK

        print_json(ASK.plain(answer))
    else:
        for sentence in answer.sentences:
            click.echo(safe(sentence.text))
    _finish(answer)
