"""Asking: from question to answer, recording every stage before reporting the stage.

The stages are the specification's two, edge selection and synthesis, between a retrieval and an
answer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tgraph import vocabulary as v
from tgraph.answer.base import Notes, PromptedSynthesiser, WriterPrompt
from tgraph.answer.citations import (
    cite_places,
    quoting_citations,
    set_apart,
    well_cited,
    with_grounds,
)
from tgraph.answer.computed import ComputedSelection, ComputedSynthesiser
from tgraph.answer.quotes import (
    find_answering_part,
    is_fragment,
    label_fragment,
    shorten_sentence,
)
from tgraph.answer.rows import shown_lines
from tgraph.engine.ask.bearer_note import OTHER_BEARER, NamedBearers
from tgraph.engine.ask.conflict_note import describe_conflicts
from tgraph.engine.ask.methods import Chosen, Method
from tgraph.engine.ask.verdict import (
    introduce_passages,
    is_uncertain,
    judge_answer,
    no_evidence,
)
from tgraph.errors import StoreError, TgraphError
from tgraph.model import (
    Answer,
    AnswerJudgement,
    ContextRow,
    Evidence,
    GraphRagResponse,
    Note,
    Selection,
    Sentence,
    ShownContext,
    join_sentences,
)
from tgraph.models.concurrency import RunCancelledError
from tgraph.record.bundle import BundleRecord
from tgraph.record.session import SessionDescription, SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.contradictions.disputes import notes_on
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.page_sentences import headings_above, read_place_text
from tgraph.retrieve.text.question_analysis import analyse_question

if TYPE_CHECKING:
    from tgraph.explain.trace.values import Trace


class AbandonedError(BaseException):
    """The asking client has gone: thrown into a stream, the error ends the question as
    ``aborted``."""


@contextmanager
def on_record(record: BundleRecord, what: str) -> Iterator[None]:
    """Record a running operation: failures and interruptions are recorded and raised again.

    The record is closed in any case."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        _record_end(record, "interrupted", f"The {what} was interrupted.")
        raise
    except AbandonedError:
        _record_end(record, "aborted", f"Whoever asked the {what} has gone.")
        raise
    except RunCancelledError:
        _record_end(record, "aborted", f"The {what} was told to stop.")
        raise
    except TgraphError as error:
        _record_end(record, "failed", str(error))
        raise
    except Exception as error:
        _record_end(record, "failed", f"{type(error).__name__}: {error}")
        raise
    finally:
        record.close()


def _record_end(record: BundleRecord, status: str, error: str) -> None:
    """Record the final status if the disk permits; a record without a status counts as aborted."""
    with suppress(StoreError):
        record.finish(status, error)


def answer_of(trace: Trace) -> str:
    """Return the IRI of a session's answer."""
    return v.answer_iri(trace.explain_id.removeprefix(v.session_iri("")))


def usage_of(record: BundleRecord) -> Mapping[str, int]:
    """Return usage totals of the run's calls."""
    return asdict(record.usage)


CONTEXT_ONLY = "context-only"
"""The status of a session in which the context, or the prompt, was asked for and no answer."""


AnswerStream = Generator[GraphRagResponse, None, Answer]
ContextStream = Generator[GraphRagResponse, None, ShownContext]


@dataclass(frozen=True, slots=True)
class SentenceMessage(GraphRagResponse):
    """An answer message containing a complete sentence with its citations."""

    sentence: Sentence | None = None


@dataclass(frozen=True, slots=True)
class CountedSelection(Selection):
    """A selection with counts of omissions from earlier steps, by reason."""

    dropped: Mapping[str, int] = field(default_factory=dict)


def count_selection(selection: Selection, counts: Iterable[Mapping[str, int]]) -> CountedSelection:
    """Return the selection with omission counts from preceding steps."""
    return CountedSelection(
        selection.selected,
        selection.rejected,
        selection.unknown_ids,
        selection.malformed,
        selection.judgement,
        selection.parts,
        _sum_counts(counts),
    )


class QuestionRun:
    """One question. ``stream`` yields messages and returns the answer."""

    def __init__(
        self,
        method: Method,
        question: Question,
        context: Context,
        record: SessionRecord,
        description: SessionDescription,
    ) -> None:
        self._method = method
        self._question = question
        self._context = context.for_question(record.call)
        self._record = record
        self._description = description
        self._others_answer: list[Sentence] = []

    def stream(self) -> AnswerStream:
        """Messages in the specification's order; each stage is durable before its message. The
        answer's comes before its first sentence, when it is on record that it is being written;
        what it says is on record before the last message.

        A failure is recorded with its error and raised; so is an interruption.
        """
        with on_record(self._record, "question"):
            self._record.start(self._description)
            yield self._explain_message(self._record.session)
            question, selection = yield from self._gather_evidence()
            sentences, notes, step = yield from self._stream_sentences(question, selection)
            answer = self._build_answer(question, selection, sentences, notes, step)
        yield GraphRagResponse(message_type="chunk", end_of_stream=True, end_of_session=True)
        return answer

    def context(self) -> ContextStream:
        """Stream stages up to the selection, and return the context that an answer writer would
        receive.

        No answer is written, and the record says so."""
        with on_record(self._record, "question"):
            self._record.start(self._description)
            yield self._explain_message(self._record.session)
            question, selection = yield from self._gather_evidence()
            shown_context = self._build_context(question, selection)
            self._record.finish(CONTEXT_ONLY)
        return shown_context

    def _build_context(self, question: Question, selection: Selection) -> ShownContext:
        record, notes = self._record, Notes()
        prompt = _prompt_of(self._method, question, selection, notes)
        record.record_dropped(record.selection_iri, notes.dropped)
        lines = (json.loads(line) for line in prompt.text.split("\n") if line)
        return ShownContext(
            question=question.text,
            mode=self._method.mode,
            rows=tuple(
                ContextRow(identity, row, selected)
                for (identity, selected), row in zip(prompt.by_id.items(), lines, strict=True)
            ),
            text=prompt.text,
            messages=tuple(prompt.request.messages) if prompt.request else (),
            session=record.session,
            explain_collection=self._description.explain_collection,
            usage=record.usage,
            model=self._method.synthesiser.agent.name,
            dropped=self._left_out(question, selection, notes),
            usage_by_step=record.usage_by_step,
        )

    def _gather_evidence(self) -> Generator[GraphRagResponse, None, tuple[Question, Selection]]:
        """Yield a message for each recorded stage; return question and selection for the
        answer."""
        gathering = self._method.gather(self._question, self._context, self._record)
        while True:
            try:
                stage = next(gathering)
            except StopIteration as end:
                gathered: tuple[Question, Selection] = end.value
                return gathered
            yield self._explain_message(stage)

    def _stream_sentences(
        self, question: Question, selection: Selection
    ) -> Generator[GraphRagResponse, None, tuple[list[Sentence], Notes, str]]:
        record, synthesiser = self._record, self._method.synthesiser
        notes = Notes()
        sentences: list[Sentence] = []
        with record.step("Synthesising", synthesiser.agent, [record.selection_iri]) as step:
            for draft in synthesiser.synthesise(question, selection, notes, record.call):
                sentence = cite_places(with_grounds(draft, self._context), record.uuid)
                if self._is_quoting and self._bearers.is_about_others(sentence):
                    notes.drop(OTHER_BEARER)
                    if not sentences:  # the best answer is another's: the rest is none
                        self._others_answer.append(sentence)
                        break
                    continue
                sentence = well_cited(sentence, self._context)
                if self._judges_quotes:
                    sentence = self._shorten_quote(question, selection, sentence)
                    sentence = self._label_quote(sentence, sentences)
                sentence = set_apart(sentence, sentences)
                if not sentences:
                    yield self._explain_message(record.answer_begun(step))
                    if introduction := self._introduction(question, selection):
                        yield GraphRagResponse(message_type="chunk", response=introduction)
                sentences.append(sentence)
                lead = sentence.lead if len(sentences) > 1 else ""
                yield SentenceMessage(
                    message_type="chunk",
                    response=lead + sentence.label + sentence.text,
                    sentence=sentence,
                )
        if not sentences:
            yield self._explain_message(record.answer_begun(step))
            reply_text = no_evidence(question.text, self._context.settings.answer.language)
            yield GraphRagResponse(message_type="chunk", response=reply_text)
        return sentences, notes, step

    def _build_answer(
        self,
        question: Question,
        selection: Selection,
        sentences: list[Sentence],
        notes: Notes,
        step: str,
    ) -> Answer:
        record, language = self._record, self._context.settings.answer.language
        if sentences:
            text = self._introduction(question, selection) + join_sentences(sentences)
        else:
            text = no_evidence(question.text, language)
        missing = (Note(f"Nothing found on: {words}.", (), ()) for words in notes.missing)
        least = self._context.settings.answer.least_confidence
        doubts = tuple(_disagreement_notes(selection, sentences, least, self._context))
        conflicts = self._describe_conflicts(selection, sentences)
        answer_notes = (
            *conflicts,
            *self._question_notes(question, sentences),
            *notes_on(self._context, sentences),
            *missing,
            *(Note(text, (), ()) for text in notes.remarks),
            *(Note(text, (), ()) for text in (*self._context.notes, *self._context.doubts.said)),
            *(_nearest_note(place, question, self._context) for place in notes.nearest),
            *doubts,
        )
        judged = self._judge_answer(selection, sentences, disputed=bool(doubts or conflicts))
        record.answer(step, text, sentences, notes.dropped, answer_notes, judged)
        record.finish("completed" if sentences else "no-evidence")
        return Answer(
            question=question.text,
            mode=self._method.mode,
            text=text,
            verdict=judged.verdict,
            sentences=tuple(sentences),
            selection=selection.selected,
            session=record.session,
            explain_collection=self._description.explain_collection,
            usage=record.usage,
            model=self._method.synthesiser.agent.name,
            dropped=self._left_out(question, selection, notes),
            notes=answer_notes,
            short=judged.short,
            confidence=judged.confidence,
            usage_by_step=record.usage_by_step,
            short_confidence=judged.short_confidence,
            computed=selection.result if isinstance(selection, ComputedSelection) else None,
        )

    def _shorten_quote(
        self, question: Question, selection: Selection, sentence: Sentence
    ) -> Sentence:
        answer = selection.judgement.answer if selection.judgement else ""
        longest = self._context.settings.answer.longest_quote
        if len(sentence.text) <= longest:
            return sentence
        analysed = analyse_question(question.text, count_frequencies(self._context))
        return shorten_sentence(sentence, answer, analysed, longest)

    def _label_quote(self, sentence: Sentence, before: Sequence[Sentence]) -> Sentence:
        """Return a quote of a few words below its heading, in a paragraph of its own."""
        fragment = is_fragment(sentence)
        if fragment:
            place = quoting_citations(sentence)[0]
            sentence = label_fragment(sentence, headings_above(place, self._context))
        if (fragment or (before and is_fragment(before[-1]))) and "\n" not in sentence.lead:
            sentence = replace(sentence, lead="\n\n")
        return sentence

    def _describe_conflicts(
        self, selection: Selection, sentences: Sequence[Sentence]
    ) -> tuple[Note, ...]:
        """Return notes where two documents answer differently; a model tells that itself."""
        if not sentences or not self._judges_quotes:
            return ()
        return tuple(describe_conflicts(selection.judgement, self._context))

    @property
    def _is_quoting(self) -> bool:
        """Whether answers are quotes: a model writes in words of its own, and a computed answer
        states a result."""
        synthesiser = self._method.synthesiser
        return synthesiser.agent.kind != "model" and not isinstance(
            synthesiser, ComputedSynthesiser
        )

    @property
    def _judges_quotes(self) -> bool:
        """Whether quotes are cut, compared and given a verdict, as since the third wording."""
        return self._is_quoting and self._record.wording >= THIRD_WORDING

    def _is_uncertain(self, selection: Selection) -> bool:
        """Whether quoted sentences may not answer; a model judges that for itself."""
        return self._judges_quotes and is_uncertain(selection, self._context.settings.answer)

    def _introduction(self, question: Question, selection: Selection) -> str:
        """The words before the sentences of an answer."""
        if not self._is_uncertain(selection):
            return ""
        return introduce_passages(question.text, self._context.settings.answer.language) + "\n\n"

    def _judge_answer(
        self, selection: Selection, sentences: Sequence[Sentence], *, disputed: bool
    ) -> AnswerJudgement:
        judgement = None if self._others_answer else selection.judgement
        if judgement is not None and self._record.wording < THIRD_WORDING:
            judgement = replace(judgement, short_confidence=None)
        uncertain = self._is_uncertain(selection)
        return judge_answer(judgement, sentences, uncertain=uncertain, disputed=disputed)

    @cached_property
    def _bearers(self) -> NamedBearers:
        return NamedBearers.of_question(self._question.text, self._context)

    def _question_notes(self, question: Question, sentences: Sequence[Sentence]) -> Iterator[Note]:
        """Yield notes on several bearers of a name, and, if no model writes, on documents in
        another language; sessions of earlier releases, which have no such notes, replay without."""
        if self._record.wording < THIRD_WORDING:
            return
        from tgraph.engine.ask.language_note import describe_language_gap

        if sentences:
            yield from (Note(text, (), ()) for text in self._bearers.describe(sentences))
        elif self._others_answer:
            texts = self._bearers.describe(self._others_answer, "what comes nearest")
            yield from (Note(text, (), ()) for text in texts)
        elif self._is_quoting:
            text = describe_language_gap(question.text, self._context)
            yield from (Note(text, (), ()),) if text else ()

    def _left_out(self, question: Question, selection: Selection, notes: Notes) -> dict[str, int]:
        """Return recorded omissions from mode choice, question understanding, selection and
        writing."""
        method = self._method
        return _sum_counts(
            [
                method.about.dropped if isinstance(method, Chosen) else {},
                question.keywords.dropped,
                selection.dropped if isinstance(selection, CountedSelection) else {},
                {"unknown edge id": selection.unknown_ids, "malformed row": selection.malformed},
                notes.dropped,
            ]
        )

    def _explain_message(self, iri: str) -> GraphRagResponse:
        return GraphRagResponse(
            message_type="explain",
            explain_id=iri,
            explain_collection=self._description.explain_collection,
        )


def _prompt_of(
    method: Method, question: Question, selection: Selection, notes: Notes
) -> WriterPrompt:
    """Return the prompt that the method's writer would receive; without a model, the prompt has
    no length limit."""
    writer = method.synthesiser
    if isinstance(writer, PromptedSynthesiser):
        return writer.build_prompt(question, selection, notes)
    lines = shown_lines(selection.selected)
    by_id = {
        identity: selected
        for (identity, _), selected in zip(lines, selection.selected, strict=True)
    }
    return WriterPrompt(by_id, "\n".join(line for _, line in lines))


def _nearest_note(evidence: Evidence, question: Question, context: Context) -> Note:
    """Return a note quoting the evidence nearest to an answer."""
    quote_text = read_place_text(evidence, context)
    if context.wording < THIRD_WORDING:
        return Note(f"This comes nearest, but does not answer: “{quote_text}”", (), (evidence,))
    longest = context.settings.answer.longest_quote
    analysed = analyse_question(question.text, count_frequencies(context))
    start, end = find_answering_part(quote_text, "", analysed, longest)
    return Note(f"The nearest passage: “{quote_text[start:end]}”", (), (evidence,))


def _disagreement_notes(
    selection: Selection, sentences: Sequence[Sentence], least: float, context: Context
) -> Iterator[Note]:
    """Yield notes where the reader's judgement contradicts the model's answer.

    Judgements on separate question parts are skipped: the parts were judged one by one."""
    judged = selection.judgement
    if judged is None or judged.place is None or judged.confidence is None or selection.parts:
        return
    sure = f"(confidence {judged.confidence:.2f})"
    if sentences and judged.confidence < least:
        missing = f"; no passage has: {', '.join(judged.missing)}" if judged.missing else ""
        yield Note(f"The reader finds no answer in the evidence {sure}{missing}.", (), ())
    elif not sentences and judged.answer and judged.confidence >= least:
        quote = read_place_text(judged.place, context)
        remark = f"The reader takes “{judged.answer}” for an answer {sure}: “{quote}”"
        yield Note(remark, (), (judged.place,))


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for reason_counts in counts:
        totals.update(reason_counts)
    return dict(+totals)
