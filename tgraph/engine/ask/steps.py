"""Questions in steps: each step is retrieved, answered and recorded separately.

A description in a question is asked first, then the question with the described name. A
comparison asks for the value of each side and decides between them; a question that asks
several things is asked in parts. The places of all steps are selected together: those of a
description where they answer better than the evidence for the question as a whole, the others
in any case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tgraph.answer.compared_values import Decision, decide_comparison
from tgraph.answer.document_mentions import find_mentions
from tgraph.answer.embedded import EmbeddedSynthesiser
from tgraph.answer.part_answers import PartReading, SideAnswer, part_reading, side_answer
from tgraph.answer.step_answers import StepAnswer, answers_in, best_sentences
from tgraph.engine.ask.authority import WeighedRetriever, WeighedSelector
from tgraph.engine.ask.methods import Gathering, MethodAround, TwoStages
from tgraph.engine.ask.step_evidence import (
    WHY_PART,
    WHY_STEP,
    AnsweredParts,
    BridgedRetriever,
    EverySelector,
    GivenRetriever,
    PartSelector,
    RetrieverWithPlaces,
    StepBridge,
)
from tgraph.model import Agent, Evidence, Judgement, QuestionPart
from tgraph.record.session import SessionRecord
from tgraph.rendering import one_line
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_all
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.text.comparison import QuestionComparison, comparison_of
from tgraph.retrieve.text.coordination import split_apart, split_question
from tgraph.retrieve.text.decomposition import QuestionStep, decompose_question, without_article
from tgraph.retrieve.text.document_questions import subject_for_documents
from tgraph.version import __version__

TRIED = 2
"""Answers of the last step before the end that are tried."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """Question steps of one sort: comparison, parts, chain, or a subject that each document is
    asked about; false without steps.

    ``is_split_apart`` marks parts that ask in several sentences or of two names, ``joint`` is the
    two names together."""

    subject: str = ""
    comparison: QuestionComparison | None = None
    parts: tuple[QuestionStep, ...] = ()
    chain: tuple[QuestionStep, ...] = ()
    joint: str = ""
    is_split_apart: bool = False

    def __bool__(self) -> bool:
        return bool(self.subject or self.comparison or self.parts or self.chain)


def plan_of(question: str, chained: bool) -> StepPlan:
    """Return question steps; ``chained`` asks for descriptions first."""
    if subject := subject_for_documents(question):
        return StepPlan(subject)
    plan = _plan_of_earlier(question, chained)
    if not plan.comparison and not plan.parts and (split := split_apart(question)).parts:
        return StepPlan(parts=split.parts, joint=split.joint, is_split_apart=True)
    return plan


def _plan_of_earlier(question: str, chained: bool) -> StepPlan:
    """Return question steps as before the third wording: no document is asked by itself, and two
    names are asked about together."""
    if comparison := comparison_of(question):
        return StepPlan(comparison=comparison)
    if parts := split_question(question):
        return StepPlan(parts=parts)
    return StepPlan(chain=decompose_question(question) if chained else ())


@dataclass(frozen=True, slots=True)
class Stepwise(MethodAround):
    """A method answering question steps before the question."""

    inner: TwoStages
    plan: StepPlan

    agent = Agent("method", "embedded-steps", __version__)

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        plan = self.plan
        new = plan.subject or plan.is_split_apart
        one = plan.joint and _is_name(plan.joint, context)
        if (new and record.wording < THIRD_WORDING) or one:
            chained = MODES[self.inner.mode].stepwise
            plan = _plan_of_earlier(question.text, chained)
            earlier = replace(self, plan=plan) if plan else self.inner
            return (yield from earlier.gather(question, context, record))
        inner: TwoStages
        if plan.subject:
            inner = self._ask_documents(plan.subject, context, record)
        elif self.plan.chain:
            inner = self._bridge_method(context, record)
        elif self.plan.comparison is not None:
            inner = self._in_parts(
                self._answer_comparison(self.plan.comparison, question, context, record)
            )
        else:
            inner = self._in_parts(self._answer_parts(question, context, record))
        return (yield from inner.gather(question, context, record))

    # --- documents ---

    def _ask_documents(self, subject: str, context: Context, record: SessionRecord) -> TwoStages:
        """Return the method that tells what each document says on a subject."""
        mentions = find_mentions(subject, context)
        for number, place in enumerate(mentions.places, 1):
            text = f"What does “{one_line(place.title)}” say about {subject}?"
            with record.step("StepAnswering", self.agent) as activity:
                record.step_answer(activity, number, text, "", [place.iri], ())
        return replace(
            self.inner,
            retriever=WeighedRetriever(GivenRetriever(mentions.retrieval)),
            selector=WeighedSelector(EverySelector(mentions.parts)),
            concepts=None,
            keywords=None,
            sharpens=False,
            reads=False,
        )

    # --- parts ---

    def _in_parts(self, answered: AnsweredParts) -> TwoStages:
        """Return the method extended by evidence answering the parts; evidence already read is
        not read again."""
        inner = self.inner
        return replace(
            inner,
            retriever=RetrieverWithPlaces(inner.retriever, answered.places, WHY_PART),
            selector=PartSelector(inner.selector, answered),
            reads=False,
        )

    def _answer_parts(
        self, question: Question, context: Context, record: SessionRecord
    ) -> AnsweredParts:
        """Answer each part; return parts with answering sentences."""
        least, share = _score_bounds(context)
        parts: list[QuestionPart] = []
        answers: list[Judgement] = []
        for number, step in enumerate(self.plan.parts, 1):
            with record.step("StepAnswering", self.agent) as activity:
                reading = self._read_step(step, question, context, record)
                places = reading.close(least, share)
                short = reading.short(places[0]) if places else ""
                record.step_answer(
                    activity, number, step.text, short, [e.iri for e in places[:1]], ()
                )
            if places:
                parts.append(QuestionPart(places))
                judged = reading.judgement if short else None
                answers.append(
                    Judgement(
                        reading.confidence,
                        short,
                        places[0],
                        short_confidence=judged.short_confidence if judged else None,
                        rivals=judged.rivals if judged else (),
                    )
                )
            else:
                parts.append(QuestionPart((), step.phrase, reading.sentences[:1]))
        return AnsweredParts(tuple(parts), _combine_judgements(answers) if context.reader else None)

    def _read_step(
        self, step: QuestionStep, question: Question, context: Context, record: SessionRecord
    ) -> PartReading:
        step_question = self.inner.analyse_question(
            replace(question, text=step.text), context, record.call
        )
        return part_reading(
            step_question, self.inner.retriever.retrieve(step_question, context), context
        )

    # --- comparisons ---

    def _answer_comparison(
        self,
        comparison: QuestionComparison,
        question: Question,
        context: Context,
        record: SessionRecord,
    ) -> AnsweredParts:
        """Answer both sides of a comparison; return sides with value sentences, winner first."""
        sides: list[SideAnswer | None] = []
        nearest: list[tuple[Evidence, ...]] = []
        step_iris: list[str] = []
        for at, step in enumerate(comparison.steps):
            with record.step("StepAnswering", self.agent) as activity:
                side, reading = self._answer_side(comparison, at, question, context, record)
                value, places = (side.value.text, side.places) if side else ("", ())
                iris = [e.iri for e in places[:1]]
                step_iris.append(record.step_answer(activity, at + 1, step.text, value, iris, ()))
            sides.append(side)
            nearest.append(places or reading.sentences[:1])
        first_side, second_side = sides
        if first_side is None or second_side is None:
            missing = (
                "" if s else step.phrase for s, step in zip(sides, comparison.steps, strict=True)
            )
            parts = (QuestionPart((), m, n) for m, n in zip(missing, nearest, strict=True))
            return AnsweredParts(tuple(parts))
        with record.step("StepAnswering", self.agent, step_iris) as activity:
            decision = decide_comparison(comparison, first_side.value, second_side.value)
            text = decision.text if decision else ""
            record.step_answer(activity, 3, question.text, text, (), step_iris)
        return _order_sides(decision, (first_side, second_side))

    def _answer_side(
        self,
        comparison: QuestionComparison,
        at: int,
        question: Question,
        context: Context,
        record: SessionRecord,
    ) -> tuple[SideAnswer | None, PartReading]:
        least, _ = _score_bounds(context)
        reading = self._read_step(comparison.steps[at], question, context, record)
        return side_answer(comparison, at, reading, least, context), reading

    # --- descriptions ---

    def _bridge_method(self, context: Context, record: SessionRecord) -> TwoStages:
        """Return the method extended by step places, if all steps have an answer."""
        inner = self.inner
        bridge = self._build_bridge(self.plan.chain, context, record)
        if bridge is None:
            return inner
        placed_retriever = RetrieverWithPlaces(inner.retriever, bridge.places, WHY_STEP)
        retriever = BridgedRetriever(placed_retriever, bridge, inner.sharpens)
        return replace(inner, retriever=retriever, sharpens=False)

    def _build_bridge(
        self, steps: Sequence[QuestionStep], context: Context, record: SessionRecord
    ) -> StepBridge | None:
        """Answer steps in sequence; return None if a step has no answer."""
        answers: dict[int, str] = {}
        step_answers: list[StepAnswer] = []
        step_iris: list[str] = []
        for number, step in enumerate(steps[:-1], 1):
            name, text = step.fill_description(answers), step.fill_question(answers)
            if _is_name(name, context):
                answers[number] = name
                continue
            with record.step("StepAnswering", self.agent, step_iris) as activity:
                options = answers_in(text, step.noun, self._rank_sentences(text, context), context)
                best: StepAnswer | None
                if number == len(steps) - 1 and options:
                    best = self._choose_best(options, number, steps[-1], answers, context)
                else:
                    best = options[0] if options else None
                step_iris.append(_record_answer(record, activity, number, text, best, step_iris))
            if best is None:
                return None
            answers[number] = best.text
            step_answers.append(best)
        if not step_answers:
            return None
        text = steps[-1].fill_question(answers)
        with record.step("StepAnswering", self.agent, step_iris) as activity:
            last = self._answer_last(text, step_answers[-1], context)
            _record_answer(record, activity, len(steps), text, last, step_iris)
        if last is None:
            return None
        score = (
            0.5 * (min(answer.relevance for answer in step_answers) + last.relevance)
            + step_answers[-1].fit
        )
        return StepBridge((*(answer.place for answer in step_answers), last.place), score)

    def _choose_best(
        self,
        options: Sequence[StepAnswer],
        number: int,
        last: QuestionStep,
        answers: dict[int, str],
        context: Context,
    ) -> StepAnswer:
        """Return the option giving the best sentence for the final step."""
        worth: dict[int, float] = {}
        for place, option in enumerate(options[:TRIED]):
            end = self._answer_last(
                last.fill_question({**answers, number: option.text}), option, context
            )
            worth[place] = option.score + (end.relevance if end else 0.0)
        return options[max(worth, key=lambda place: (worth[place], -place))]

    def _answer_last(self, text: str, before: StepAnswer, context: Context) -> StepAnswer | None:
        """Return the best sentence on the preceding answer, from another document."""
        for sentence in self._rank_sentences(text, context):
            if sentence.document != before.place.document and before.is_meant_in(sentence, context):
                return StepAnswer("", sentence, sentence.relevance or 0.0, 0.0, frozenset())
        return None

    def _rank_sentences(self, text: str, context: Context) -> list[Evidence]:
        question = Question(text)
        return best_sentences(question, self.inner.retriever.retrieve(question, context), context)


def _score_bounds(context: Context) -> tuple[float, float]:
    """Return the minimum score for a part's best sentence, and the minimum share for other
    sentences."""
    if context.reader is not None:
        return context.settings.answer.least_confidence, EmbeddedSynthesiser.CLOSE_READ
    return EmbeddedSynthesiser.LEAST_SCORE, EmbeddedSynthesiser.CLOSE


def _combine_judgements(answers: Sequence[Judgement]) -> Judgement:
    """Combine judgements of several parts into a single judgement, correct if all parts are
    correct."""
    if not answers:
        return Judgement(0.0)
    confidence = _of_all([judgement.confidence for judgement in answers])
    short = "; ".join(judgement.answer for judgement in answers)
    return Judgement(
        confidence,
        short if all(answer.answer for answer in answers) else "",
        answers[0].place,
        short_confidence=_of_all([answer.short_confidence for answer in answers]),
        rivals=tuple(pair for answer in answers for pair in answer.rivals),
    )


def _order_sides(decision: Decision | None, sides: tuple[SideAnswer, SideAnswer]) -> AnsweredParts:
    """Return both sides as parts, winner first, with the decision as short answer."""
    first = decision.first if decision else 0
    ordered = (sides[first], sides[1 - first])
    confidence = _of_all([side.confidence for side in sides])
    text = decision.text if decision else ""
    judgement = Judgement(confidence, text, ordered[0].places[0], short_confidence=confidence)
    return AnsweredParts(tuple(QuestionPart(side.places) for side in ordered), judgement)


def _of_all(confidences: Sequence[float | None]) -> float | None:
    """Return the probability that all parts are answered; None if a part was not read."""
    known_confidences = [confidence for confidence in confidences if confidence is not None]
    return round(prod(known_confidences), 6) if len(known_confidences) == len(confidences) else None


def _is_name(phrase: str, context: Context) -> bool:
    """Return whether an apparent description is a name ("the Gulf of Mexico")."""
    called = match_all([phrase, without_article(phrase)], context.graph)
    return any(called.values())


def _record_answer(
    record: SessionRecord,
    activity: str,
    number: int,
    question: str,
    answer: StepAnswer | None,
    before: Sequence[str],
) -> str:
    places = [answer.place.iri] if answer else []
    return record.step_answer(
        activity, number, question, answer.text if answer else "", places, before
    )
