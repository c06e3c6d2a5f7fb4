"""Printing an answer, or the writer's prompt context, as it arrives."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from tgraph.cli.running import NO_EVIDENCE
from tgraph.cli.terminal import (
    build_table,
    escape_controls,
    format_count,
    is_terminal,
    json_text,
    one_line,
    place_text,
    print_json,
    print_message,
    print_renderable,
    stream_writer,
    text_of,
)
from tgraph.cli.waiting import WaitingLine
from tgraph.errors import TgraphError
from tgraph.rendering import describe_confidence, describe_short_confidence

if TYPE_CHECKING:
    from tgraph.engine.ask.question_run import ContextStream
    from tgraph.engine.graph import KnowledgeGraph
    from tgraph.model import Answer, GraphRagResponse, Only, Sentence, ShownContext

UNCITED = " [no citation]"


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Output format of an answer: text, printed at once if ``whole``, or JSON.

    Recorded steps are printed if ``explained``, costs if ``usage``."""

    explained: bool = False
    json: bool = False
    jsonl: bool = False
    whole: bool = False
    usage: bool = False


def is_laid_out(graph: KnowledgeGraph, form: AnswerForm) -> bool:
    """Return whether answers are laid out with quotes: at a terminal, model-free."""
    return not graph.settings.uses_model() and is_terminal() and not (form.json or form.jsonl)


def note_idle(graph: KnowledgeGraph, given: Collection[str], mode: str) -> None:
    """Report command-line flags that have no effect."""
    from tgraph.cli.options import without_effect

    rerank = graph.settings.rerank
    reranker = bool(rerank.provider or rerank.base_url)
    for note in without_effect(given, mode, model=graph.settings.uses_model(), reranker=reranker):
        print_message(note)


class AnswerOutput:
    """Prints one answer: text on stdout, proof on stderr."""

    def __init__(self, graph: KnowledgeGraph, form: AnswerForm) -> None:
        self._graph = graph
        self._form = form
        self._laid_out = is_laid_out(graph, form)
        self._write = stream_writer()
        self._begun = False
        self._last_stage = ""
        self._waiting = WaitingLine()

    def answer(
        self, stream: Generator[GraphRagResponse, None, Answer], *, dated: bool = False
    ) -> Answer:
        """Print the answer stream and return the answer; always close the stream.

        ``dated``: earlier knowledge was asked, so documents that don't stand any more are
        listed."""
        with self._waiting.running():
            answer = self._receive_answer(stream)
        written = (
            self._stage_lines(answer.session, self._last_stage) if self._form.explained else ()
        )
        self._print_answer(
            answer, (*written, *(_retracted_sources(self._graph, answer) if dated else ()))
        )
        print_message(f"Session: {answer.session}")
        return answer

    def choose_exit_code(self, answer: Answer) -> int:
        """Return the exit code of an answer, by the verdict; with ``--strict`` an uncertain answer
        has the code of no evidence."""
        strict = self._graph.settings.integrity.strict
        refusals = ("no_evidence", "uncertain") if strict else ("no_evidence",)
        return NO_EVIDENCE if answer.verdict in refusals else 0

    def context(self, stages: ContextStream, only: Only) -> ShownContext:
        """Print the context that an answer writer would receive, and return the context."""
        with self._waiting.running():
            shown_context = self._receive_context(stages)
        if self._form.json:
            from tgraph.engine.json_answers import context_json

            print_json(context_json(shown_context))
        elif only == "prompt":
            for message in shown_context.messages:
                click.echo(f"=== {message['role']}\n{escape_controls(message['content'])}")
        elif shown_context.rows:
            click.echo(escape_controls(shown_context.text))
        for reason, count in shown_context.dropped.items():
            print_message(f"Left out: {count:,} × {reason}")
        if self._form.usage:
            _tell_usage(shown_context)
        print_message(f"Session: {shown_context.session} (no answer was requested)")
        return shown_context

    def _print_answer(self, answer: Answer, written: Sequence[str]) -> None:
        laid_out = self._laid_out and bool(answer.sentences)
        if self._form.json:
            from tgraph.engine.json_answers import answer_json

            print_json(answer_json(answer))
        elif laid_out:
            _lay_out(answer)
        elif not self._form.jsonl:
            if self._laid_out:
                self._write(escape_controls(answer.text))
            click.echo()
            _print_evidence(answer)
        for line in written:
            print_message(line)
        if self._form.usage:
            _tell_usage(answer)
        if not laid_out:
            for note in answer.notes:
                print_message(f"Note: {one_line(note.text)}")

    def _receive_context(self, stages: ContextStream) -> ShownContext:
        """Return the context, printing its stages on request."""
        session = ""
        while True:
            try:
                message = next(stages)
            except StopIteration as end:
                shown_context: ShownContext = end.value
                return shown_context
            session = session or message.explain_id or ""
            self._waiting.clear()
            if self._form.explained and message.explain_id:
                for line in self._stage_lines(session, message.explain_id):
                    print_message(line)

    def _receive_answer(self, stream: Generator[GraphRagResponse, None, Answer]) -> Answer:
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
                self._print_message(session, message)
        except (TgraphError, KeyboardInterrupt):
            self._waiting.clear(hide=True)
            if self._begun:
                click.echo()
            if session:
                print_message(f"Session: {session}")
            raise
        finally:
            stream.close()
        if self._form.jsonl and last is not None:
            _print_event(last, answer=answer)
        elif self._form.whole and not (self._form.json or self._laid_out):
            self._write(_marked_text(answer))
        return answer

    def _print_message(self, session: str, message: GraphRagResponse) -> None:
        prints = message.message_type == "chunk" and not self._prints_at_once
        self._waiting.clear(hide=prints)
        if self._form.explained and message.message_type == "explain":
            assert message.explain_id is not None
            self._last_stage = message.explain_id
            for line in self._stage_lines(session, message.explain_id):
                print_message(line)
        if self._form.jsonl:
            if not message.end_of_session:
                _print_event(message)
        elif prints:
            self._write(escape_controls(message.response) + _citation_mark(message))
            self._begun = True

    def _stage_lines(self, session: str, stage: str) -> Sequence[str]:
        from tgraph.explain.render.wording import stage_lines

        return tuple(stage_lines(self._graph.sessions.trace_running(session), stage))

    @property
    def _prints_at_once(self) -> bool:
        """Return whether the answer is printed only once complete."""
        return self._form.json or self._form.whole or self._laid_out


def _print_event(message: GraphRagResponse, answer: Answer | None = None) -> None:
    from tgraph.engine.json_answers import event_json

    click.echo(json_text(event_json(message, _sentence_of(message), answer), indent=None))


def _retracted_sources(graph: KnowledgeGraph, answer: Answer) -> Sequence[str]:
    """Return a line for each cited document that was retracted or replaced."""
    standing = {document.document for document in graph.documents.summaries() if document.standing}
    gone = (source.path for source in answer.sources if source.document not in standing)
    return [f"{one_line(path)} was retracted or replaced." for path in gone]


def _sentence_of(message: GraphRagResponse) -> Sentence | None:
    from tgraph.engine.ask.question_run import SentenceMessage

    return message.sentence if isinstance(message, SentenceMessage) else None


def _tell_usage(answer: Answer | ShownContext) -> None:
    """Print answer costs: the total, and costs by step and prompt."""
    usage = answer.usage
    thought = usage.reasoning_tokens
    thinking = f" ({thought:,} of them for reasoning)" if thought else ""
    print_message(
        f"Usage: {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out{thinking}, "
        f"{format_count(usage.calls, 'call')} ({answer.model})"
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
        print_message(text_of(build_table(columns, rows)).rstrip("\n"))


def _citation_mark(message: GraphRagResponse) -> str:
    sentence = _sentence_of(message)
    return UNCITED if sentence is not None and not sentence.citations else ""


def _marked_text(answer: Answer) -> str:
    if answer.no_evidence:
        return escape_controls(answer.text)
    marked = (
        (s.lead if at else "") + s.label + s.text + ("" if s.citations else UNCITED)
        for at, s in enumerate(answer.sentences)
    )
    introduction = f"{answer.introduction}\n\n" if answer.introduction else ""
    return escape_controls(introduction + "".join(marked))


def _lay_out(answer: Answer) -> None:
    """Print the answer with its quotes, laid out for a terminal."""
    from tgraph.explain.render.answer import answer_block

    for part in answer_block(answer):
        print_renderable(part)
    print_message("")


def _print_evidence(answer: Answer) -> None:
    """Print proving places for each sentence, and the probability that the documents answer."""
    if answer.no_evidence:
        return
    print_message("\nEvidence:")
    for number, sentence in enumerate(answer.sentences, 1):
        for place in _format_places(sentence):
            print_message(f"  [{number}] {place}")
        if not sentence.citations:
            print_message(f"  [{number}] no citation")
    if answer.short:
        sure = describe_short_confidence(answer.short_confidence)
        print_message(f"Short answer: {one_line(answer.short)}" + (f" ({sure})" if sure else ""))
    if answer.confidence is not None:
        print_message(f"Confidence: {describe_confidence(answer.confidence)}")


_MOST_RANGES = 6
"""Ranges of characters that one line of evidence shows; `tgraph trace` shows all."""


def _format_places(sentence: Sentence) -> list[str]:
    """Return a line for each page that the sentence cites: the ranges in order, and the path."""
    ranges: dict[tuple[str, int | None, str], set[tuple[int, int]]] = {}
    for citation in sentence.citations:
        page = (citation.title, citation.page, citation.path)
        ranges.setdefault(page, set()).add((citation.start, citation.end))
    lines = []
    for (title, page_number, path), places in ranges.items():
        (start, end), *others = sorted(places)
        more = "".join(f", {begin}–{stop}" for begin, stop in others[: _MOST_RANGES - 1])
        if len(places) > _MOST_RANGES:
            more += f" and {format_count(len(places) - _MOST_RANGES, 'other place')}"
        lines.append(f"{place_text(title, page_number, start, end)}{more}  {one_line(path)}")
    return lines
