"""How an answer, or what its writer would be shown, is printed as it comes."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tgraph.cli.terminal import (
    flowing,
    is_terminal,
    json_text,
    many,
    one_line,
    place_text,
    print_json,
    safe,
    say,
    show,
    table,
    text_of,
)
from tgraph.errors import TgraphError

if TYPE_CHECKING:
    from tgraph.engine.ask.question_run import ContextStream
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.model import Answer, GraphRagResponse, Only, Sentence, ShownContext

UNCITED = " [no citation]"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """How an answer is printed: as text, at once if ``whole``, or as JSON; with each step as it is
    recorded if ``explained``, and with what it cost if ``usage``."""

    explained: bool = False
    json: bool = False
    jsonl: bool = False
    whole: bool = False
    usage: bool = False


def is_laid_out(graph: KnowledgeGraph, form: AnswerForm) -> bool:
    """Whether answers are laid out with their quotes: without a model, at a terminal."""
    return not graph.settings.uses_model() and is_terminal() and not (form.json or form.jsonl)


def note_idle(graph: KnowledgeGraph, given: Collection[str], mode: str) -> None:
    """Say which of the flags that were given are without an effect."""
    from tgraph.cli.options import without_effect

    rerank = graph.settings.rerank
    reranker = bool(rerank.provider or rerank.base_url)
    for note in without_effect(given, mode, model=graph.settings.uses_model(), reranker=reranker):
        say(note)


class AnswerOutput:
    """Prints one answer: what it says on stdout, what proves it on stderr."""

    def __init__(self, graph: KnowledgeGraph, form: AnswerForm) -> None:
        self._graph = graph
        self._form = form
        self._laid_out = is_laid_out(graph, form)
        self._write = flowing()
        self._begun = False
        self._last_stage = ""

    def answer(
        self, stream: Generator[GraphRagResponse, None, Answer], *, dated: bool = False
    ) -> Answer:
        """Print what the stream brings, and return its answer; it is closed in any case. ``dated``:
        earlier knowledge was asked, so it is said which documents don't stand any more."""
        answer = self._listen(stream)
        written = self._stage(answer.session, self._last_stage) if self._form.explained else ()
        self._print(answer, (*written, *(_gone(self._graph, answer) if dated else ())))
        say(f"Session: {answer.session}")
        return answer

    def context(self, stages: ContextStream, only: Only) -> ShownContext:
        """The same for what the writer of an answer would be shown."""
        shown = self._heard(stages)
        if self._form.json:
            from tgraph.engine.json_answers import context_json

            print_json(context_json(shown))
        elif only == "prompt":
            for message in shown.messages:
                click.echo(f"=== {message['role']}\n{safe(message['content'])}")
        elif shown.rows:
            click.echo(safe(shown.text))
        for reason, count in shown.dropped.items():
            say(f"Left out: {count:,} × {reason}")
        if self._form.usage:
            _tell_usage(shown)
        say(f"Session: {shown.session} (no answer was asked for)")
        return shown

    def _print(self, answer: Answer, written: Sequence[str]) -> None:
        laid_out = self._laid_out and bool(answer.sentences)
        if self._form.json:
            from tgraph.engine.json_answers import answer_json

            print_json(answer_json(answer))
        elif laid_out:
            _lay_out(answer)
        elif not self._form.jsonl:
            if self._laid_out:
                self._write(safe(answer.text))
            click.echo()
            _evidence(answer)
        for line in written:
            say(line)
        if self._form.usage:
            _tell_usage(answer)
        if not laid_out:
            for told in answer.notes:
                say(f"Note: {one_line(told.text)}")

    def _heard(self, stages: ContextStream) -> ShownContext:
        """The context, its stages told on the way where that is wanted."""
        session = ""
        while True:
            try:
                message = next(stages)
            except StopIteration as end:
                shown: ShownContext = end.value
                return shown
            session = session or message.explain_id or ""
            if self._form.explained and message.explain_id:
                for line in self._stage(session, message.explain_id):
                    say(line)

    def _listen(self, stream: Generator[GraphRagResponse, None, Answer]) -> Answer:
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
                self._message(session, message)
        except (TgraphError, KeyboardInterrupt):
            if self._begun:
                click.echo()
            if session:
                say(f"Session: {session}")
            raise
        finally:
            stream.close()
        if self._form.jsonl and last is not None:
            _event(last, answer=answer)
        elif self._form.whole and not (self._form.json or self._laid_out):
            self._write(_marked(answer))
        return answer

    def _message(self, session: str, message: GraphRagResponse) -> None:
        if self._form.explained and message.message_type == "explain":
            assert message.explain_id is not None
            self._last_stage = message.explain_id
            for line in self._stage(session, message.explain_id):
                say(line)
        if self._form.jsonl:
            if not message.end_of_session:
                _event(message)
        elif message.message_type == "chunk" and not self._together:
            self._write(safe(message.response) + _mark(message))
            self._begun = True

    def _stage(self, session: str, stage: str) -> Sequence[str]:
        from tgraph.explain.render.wording import stage_lines

        return tuple(stage_lines(self._graph.trace_so_far(session), stage))

    @property
    def _together(self) -> bool:
        """Whether an answer is printed when all of it is there."""
        return self._form.json or self._form.whole or self._laid_out


def _event(message: GraphRagResponse, answer: Answer | None = None) -> None:
    from tgraph.engine.json_answers import event_json

    click.echo(json_text(event_json(message, _sentence_of(message), answer), indent=None))


def _gone(graph: KnowledgeGraph, answer: Answer) -> Sequence[str]:
    """A line for each document that the answer cites and that doesn't stand any more."""
    standing = {found.document for found in graph.documents() if found.standing}
    gone = (source.path for source in answer.sources if source.document not in standing)
    return [f"{one_line(path)} doesn't stand any more." for path in gone]


def _sentence_of(message: GraphRagResponse) -> Sentence | None:
    from tgraph.engine.ask.question_run import SentenceMessage

    return message.sentence if isinstance(message, SentenceMessage) else None


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
