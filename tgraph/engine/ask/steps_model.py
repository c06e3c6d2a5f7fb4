"""A question in steps by a language model: it takes the question apart and answers each step.

Each step is retrieved as the question itself would be, and answered from what is selected for it.
Then the question is asked as a whole, with the places of the answers in front. Who writes the
answer is told the steps as turns of the conversation: these say what the question refers to, and
prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tgraph.answer.step_answers import place_of_answer
from tgraph.answer.step_answers_model import (
    Decomposition,
    ModelDecomposer,
    ModelStepAnswerer,
    StepReply,
)
from tgraph.engine.ask.methods import Gathering, MethodAround, TwoStages
from tgraph.engine.ask.question_run import gathered
from tgraph.engine.ask.step_evidence import WHY_STEP, RetrieverWithPlaces
from tgraph.model import Evidence, Turn
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.decomposition import QuestionStep


@dataclass(slots=True)
class _AnsweredSteps:
    """What is known of the steps so far, by their numbers: the answers, the places that say so,
    and the IRIs of what is on record of each."""

    turns: list[Turn] = field(default_factory=list)
    answers: dict[int, str] = field(default_factory=dict)
    places: dict[int, Evidence] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    dropped: list[Mapping[str, int]] = field(default_factory=list)

    def bridge_to(self, step: QuestionStep, place: Evidence) -> str:
        """The evidence, in another document, of the last answer that the step needed; empty where
        that is a chunk as a whole."""
        before = (self.places[number] for number in reversed(step.needs))
        found = (e.iri for e in before if e.document != place.document and e.iri != e.chunk)
        return next(found, "")


@dataclass(frozen=True, slots=True)
class StepwiseByModel(MethodAround):
    """A method whose model answers the steps of a question before the question."""

    inner: TwoStages
    decomposer: ModelDecomposer
    answerer: ModelStepAnswerer

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        with record.step("QuestionDecomposing", self.decomposer.agent) as activity:
            found = self.decomposer.decompose(question, record.call)
            texts = [step.text for step in found.steps]
            plan = record.decomposition(activity, texts, found.dropped)
        known, bridges = self._answered(found, plan, context, record)
        places = tuple(known.places.values())
        retriever = RetrieverWithPlaces(self.inner.retriever, places, WHY_STEP, bridges)
        inner = replace(self.inner, retriever=retriever) if places else self.inner
        question, selection = yield from inner.gather(question, context, record)
        question = replace(question, history=(*question.history, *known.turns))
        return question, gathered(selection, [found.dropped, *known.dropped])

    def _answered(
        self, found: Decomposition, plan: str, context: Context, record: SessionRecord
    ) -> tuple[_AnsweredSteps, dict[str, str]]:
        """The steps answered one after the other, and what leads to the chunk of each; a step is
        left out where one that it needs has no answer."""
        known = _AnsweredSteps()
        bridges: dict[str, str] = {}
        for number, step in enumerate(found.steps, 1):
            if not known.answers.keys() >= set(step.needs):
                continue
            before = [known.said[needed] for needed in step.needs]
            text = step.asked(known.answers)
            with record.step("StepAnswering", self.answerer.agent, [plan, *before]) as activity:
                reply, place = self._reply(text, context, record)
                iris = [place.iri] if place else []
                known.said[number] = record.step_answer(
                    activity, number, text, reply.text, iris, before, reply.dropped
                )
            known.dropped.append(reply.dropped)
            if place is None:
                continue
            known.answers[number], known.places[number] = reply.text, place
            known.turns.append(Turn(text, reply.text))
            if bridge := known.bridge_to(step, place):
                bridges[place.chunk] = bridge
        return known, bridges

    def _reply(
        self, text: str, context: Context, record: SessionRecord
    ) -> tuple[StepReply, Evidence | None]:
        """What the model answers from what is selected for the step, and the place that says so."""
        inner = self.inner
        asked = inner.understood(Question(text), context, record.call)
        retrieval = inner.retriever.retrieve(asked, context)
        limit = context.limits.edge_limit
        selection = inner.selector.select(asked, retrieval, limit, record.call)
        reply = self.answerer.answer(asked, selection.selected, record.call)
        if reply.cited is None:
            return reply, None
        return reply, place_of_answer(reply.text, asked, reply.cited, context)
