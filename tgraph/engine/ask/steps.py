"""A question in steps, each of which is retrieved, answered and put on record by itself.

What a question describes is asked first, then the question with its name. A comparison asks for
the value of each of its sides and decides between them; a question that asks several things is
asked in parts. The places of all steps are selected together: those of a description where they
answer better than what was found for the question as a whole, the others in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tgraph.answer.compared_values import Decision, decided
from tgraph.answer.embedded import EmbeddedSynthesiser
from tgraph.answer.part_answers import PartReading, SideAnswer, part_reading, side_answer
from tgraph.answer.step_answers import StepAnswer, answers_in, best_sentences
from tgraph.engine.ask.methods import Gathering, MethodAround, TwoStages
from tgraph.engine.ask.step_evidence import (
    WHY_PART,
    WHY_STEP,
    AnsweredParts,
    BridgedRetriever,
    PartSelector,
    RetrieverWithPlaces,
    StepBridge,
)
from tgraph.model import Agent, Evidence, Judgement, QuestionPart
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_all
from tgraph.retrieve.text.comparison import QuestionComparison, comparison_of
from tgraph.retrieve.text.coordination import coordinated
from tgraph.retrieve.text.decomposition import QuestionStep, decomposed, without_article
from tgraph.version import __version__

TRIED = 2
"""Answers of the last step before the end that are tried."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """The steps that a question takes, of one of three sorts; false where it takes none."""

    comparison: QuestionComparison | None = None
    parts: tuple[QuestionStep, ...] = ()
    chain: tuple[QuestionStep, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.comparison or self.parts or self.chain)


def plan_of(question: str, chained: bool) -> StepPlan:
    """The steps of a question; ``chained`` where its descriptions are asked first."""
    if comparison := comparison_of(question):
        return StepPlan(comparison)
    if parts := coordinated(question):
        return StepPlan(parts=parts)
    return StepPlan(chain=decomposed(question) if chained else ())


@dataclass(frozen=True, slots=True)
class Stepwise(MethodAround):
    """A method that answers the steps of a question before the question."""

    inner: TwoStages
    plan: StepPlan

    agent = Agent("method", "embedded-steps", __version__)

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        if self.plan.chain:
            inner = self._bridged(context, record)
        elif self.plan.comparison is not None:
            inner = self._in_parts(self._compared(self.plan.comparison, question, context, record))
        else:
            inner = self._in_parts(self._parts(question, context, record))
        return (yield from inner.gather(question, context, record))

    # --- parts ---

    def _in_parts(self, answered: AnsweredParts) -> TwoStages:
        """The method with what answers the parts; what was read for them is not read again."""
        inner = self.inner
        return replace(
            inner,
            retriever=RetrieverWithPlaces(inner.retriever, answered.places, WHY_PART),
            selector=PartSelector(inner.selector, answered),
            reads=False,
        )

    def _parts(self, question: Question, context: Context, record: SessionRecord) -> AnsweredParts:
        """Each part with the sentences that answer it."""
        least, share = _bounds(context)
        parts: list[QuestionPart] = []
        answers: list[Judgement] = []
        for number, step in enumerate(self.plan.parts, 1):
            with record.step("StepAnswering", self.agent) as activity:
                reading = self._reading(step, question, context, record)
                places = reading.close(least, share)
                short = reading.short(places[0]) if places else ""
                record.step_answer(
                    activity, number, step.text, short, [e.iri for e in places[:1]], ()
                )
            if places:
                parts.append(QuestionPart(places))
                answers.append(Judgement(reading.confidence, short, places[0]))
            else:
                parts.append(QuestionPart((), step.phrase, reading.sentences[:1]))
        return AnsweredParts(tuple(parts), _together(answers) if context.reader else None)

    def _reading(
        self, step: QuestionStep, question: Question, context: Context, record: SessionRecord
    ) -> PartReading:
        asked = self.inner.understood(replace(question, text=step.text), context, record.call)
        return part_reading(asked, self.inner.retriever.retrieve(asked, context), context)

    # --- comparisons ---

    def _compared(
        self,
        comparison: QuestionComparison,
        question: Question,
        context: Context,
        record: SessionRecord,
    ) -> AnsweredParts:
        """Both sides with the sentence that has their value, the one that is decided for first."""
        sides: list[SideAnswer | None] = []
        nearest: list[tuple[Evidence, ...]] = []
        said: list[str] = []
        for at, step in enumerate(comparison.steps):
            with record.step("StepAnswering", self.agent) as activity:
                side, reading = self._side(comparison, at, question, context, record)
                value, places = (side.value.text, side.places) if side else ("", ())
                iris = [e.iri for e in places[:1]]
                said.append(record.step_answer(activity, at + 1, step.text, value, iris, ()))
            sides.append(side)
            nearest.append(places or reading.sentences[:1])
        one, other = sides
        if one is None or other is None:
            missing = (
                "" if s else step.phrase for s, step in zip(sides, comparison.steps, strict=True)
            )
            parts = (QuestionPart((), m, n) for m, n in zip(missing, nearest, strict=True))
            return AnsweredParts(tuple(parts))
        with record.step("StepAnswering", self.agent, said) as activity:
            decision = decided(comparison, one.value, other.value)
            text = decision.text if decision else ""
            record.step_answer(activity, 3, question.text, text, (), said)
        return _decided(decision, (one, other))

    def _side(
        self,
        comparison: QuestionComparison,
        at: int,
        question: Question,
        context: Context,
        record: SessionRecord,
    ) -> tuple[SideAnswer | None, PartReading]:
        least, _ = _bounds(context)
        reading = self._reading(comparison.steps[at], question, context, record)
        return side_answer(comparison, at, reading, least, context), reading

    # --- descriptions ---

    def _bridged(self, context: Context, record: SessionRecord) -> TwoStages:
        """The method with the places of the steps, where all have an answer."""
        inner = self.inner
        bridge = self._bridge(self.plan.chain, context, record)
        if bridge is None:
            return inner
        found = RetrieverWithPlaces(inner.retriever, bridge.places, WHY_STEP)
        retriever = BridgedRetriever(found, bridge, inner.sharpens)
        return replace(inner, retriever=retriever, sharpens=False)

    def _bridge(
        self, steps: Sequence[QuestionStep], context: Context, record: SessionRecord
    ) -> StepBridge | None:
        """The steps answered one after the other; None where one has no answer."""
        answers: dict[int, str] = {}
        found: list[StepAnswer] = []
        said: list[str] = []
        for number, step in enumerate(steps[:-1], 1):
            name, text = step.described(answers), step.asked(answers)
            if _is_name(name, context):
                answers[number] = name
                continue
            with record.step("StepAnswering", self.agent, said) as activity:
                options = answers_in(text, step.noun, self._sentences(text, context), context)
                best: StepAnswer | None
                if number == len(steps) - 1 and options:
                    best = self._best(options, number, steps[-1], answers, context)
                else:
                    best = options[0] if options else None
                said.append(_record(record, activity, number, text, best, said))
            if best is None:
                return None
            answers[number] = best.text
            found.append(best)
        if not found:
            return None
        text = steps[-1].asked(answers)
        with record.step("StepAnswering", self.agent, said) as activity:
            last = self._last(text, found[-1], context)
            _record(record, activity, len(steps), text, last, said)
        if last is None:
            return None
        score = 0.5 * (min(each.relevance for each in found) + last.relevance) + found[-1].fit
        return StepBridge((*(each.place for each in found), last.place), score)

    def _best(
        self,
        options: Sequence[StepAnswer],
        number: int,
        last: QuestionStep,
        answers: dict[int, str],
        context: Context,
    ) -> StepAnswer:
        """The answer of which what is asked in the end is said best."""
        worth: dict[int, float] = {}
        for place, option in enumerate(options[:TRIED]):
            end = self._last(last.asked({**answers, number: option.text}), option, context)
            worth[place] = option.score + (end.relevance if end else 0.0)
        return options[max(worth, key=lambda place: (worth[place], -place))]

    def _last(self, text: str, before: StepAnswer, context: Context) -> StepAnswer | None:
        """The best sentence about the answer of the step before, in another document."""
        for sentence in self._sentences(text, context):
            if sentence.document != before.place.document and before.is_meant_in(sentence, context):
                return StepAnswer("", sentence, sentence.relevance or 0.0, 0.0, frozenset())
        return None

    def _sentences(self, text: str, context: Context) -> list[Evidence]:
        question = Question(text)
        return best_sentences(question, self.inner.retriever.retrieve(question, context), context)


def _bounds(context: Context) -> tuple[float, float]:
    """What the best sentence of a part must be worth at least, and the others as a share of it."""
    if context.reader is not None:
        return context.settings.answer.least_confidence, EmbeddedSynthesiser.CLOSE_READ
    return EmbeddedSynthesiser.LEAST_SCORE, EmbeddedSynthesiser.CLOSE


def _together(answers: Sequence[Judgement]) -> Judgement:
    """What was read of several parts as one: right where all of them are."""
    if not answers:
        return Judgement(0.0)
    confidence = _of_all([each.confidence for each in answers])
    short = "; ".join(each.answer for each in answers)
    return Judgement(confidence, short if all(a.answer for a in answers) else "", answers[0].place)


def _decided(decision: Decision | None, sides: tuple[SideAnswer, SideAnswer]) -> AnsweredParts:
    """Both sides, with the decision as the answer in a few words."""
    first = decision.first if decision else 0
    ordered = (sides[first], sides[1 - first])
    confidence = _of_all([side.confidence for side in sides])
    text = decision.text if decision else ""
    judgement = Judgement(confidence, text, ordered[0].places[0])
    return AnsweredParts(tuple(QuestionPart(side.places) for side in ordered), judgement)


def _of_all(confidences: Sequence[float | None]) -> float | None:
    """The probability that all of them are answered; None where one was not read."""
    known = [each for each in confidences if each is not None]
    return round(prod(known), 6) if len(known) == len(confidences) else None


def _is_name(phrase: str, context: Context) -> bool:
    """Whether it names what it seems to describe ("the Gulf of Mexico")."""
    called = match_all([phrase, without_article(phrase)], context.graph)
    return any(called.values())


def _record(
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
