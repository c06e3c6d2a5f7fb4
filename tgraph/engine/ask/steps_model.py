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
from tgraph.engine.ask.question_run import count_selection
from tgraph.engine.ask.step_evidence import WHY_STEP, RetrieverWithPlaces
from tgraph.model import Evidence, Turn
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.decomposition import QuestionStep


@dataclass(slots=True)
class _AnsweredSteps:
    """Step answers so far, by step number: answers, evidence places, and record IRIs."""

    turns: list[Turn] = field(default_factory=list)
    answers: dict[int, str] = field(default_factory=dict)
    places: dict[int, Evidence] = field(default_factory=dict)
    said: dict[int, str] = field(default_factory=dict)
    dropped: list[Mapping[str, int]] = field(default_factory=list)

    def bridge_to(self, step: QuestionStep, place: Evidence) -> str:
        """Return bridge evidence from another document: evidence of the last answer needed by
        the step.

        Empty if that evidence is a chunk as a whole."""
        before = (self.places[number] for number in reversed(step.needs))
        iris = (e.iri for e in before if e.document != place.document and e.iri != e.chunk)
        return next(iris, "")


@dataclass(frozen=True, slots=True)
class StepwiseByModel(MethodAround):
    """A method whose model answers question steps before the question."""

    inner: TwoStages
    decomposer: ModelDecomposer
    answerer: ModelStepAnswerer

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        with record.step("QuestionDecomposing", self.decomposer.agent) as activity:
            decomposition = self.decomposer.decompose(question, record.call)
            texts = [step.text for step in decomposition.steps]
            plan = record.decomposition(activity, texts, decomposition.dropped)
        answered_steps, bridges = self._answer_steps(decomposition, plan, context, record)
        places = tuple(answered_steps.places.values())
        retriever = RetrieverWithPlaces(self.inner.retriever, places, WHY_STEP, bridges)
        inner = replace(self.inner, retriever=retriever) if places else self.inner
        question, selection = yield from inner.gather(question, context, record)
        question = replace(question, history=(*question.history, *answered_steps.turns))
        return question, count_selection(
            selection, [decomposition.dropped, *answered_steps.dropped]
        )

    def _answer_steps(
        self, found: Decomposition, plan: str, context: Context, record: SessionRecord
    ) -> tuple[_AnsweredSteps, dict[str, str]]:
        """Answer steps in sequence; return answers, and evidence leading to each step's chunk.

        A step is omitted if a needed step has no answer."""
        answered_steps = _AnsweredSteps()
        bridges: dict[str, str] = {}
        for number, step in enumerate(found.steps, 1):
            if not answered_steps.answers.keys() >= set(step.needs):
                continue
            before = [answered_steps.said[needed] for needed in step.needs]
            text = step.fill_question(answered_steps.answers)
            with record.step("StepAnswering", self.answerer.agent, [plan, *before]) as activity:
                reply, place = self._answer_step(text, context, record)
                iris = [place.iri] if place else []
                answered_steps.said[number] = record.step_answer(
                    activity, number, text, reply.text, iris, before, reply.dropped
                )
            answered_steps.dropped.append(reply.dropped)
            if place is None:
                continue
            answered_steps.answers[number], answered_steps.places[number] = reply.text, place
            answered_steps.turns.append(Turn(text, reply.text))
            if bridge := answered_steps.bridge_to(step, place):
                bridges[place.chunk] = bridge
        return answered_steps, bridges

    def _answer_step(
        self, text: str, context: Context, record: SessionRecord
    ) -> tuple[StepReply, Evidence | None]:
        """Return the model's answer from selected evidence, and the answer's place."""
        inner = self.inner
        step_question = inner.analyse_question(Question(text), context, record.call)
        retrieval = inner.retriever.retrieve(step_question, context)
        limit = context.limits.edge_limit
        selection = inner.selector.select(step_question, retrieval, limit, record.call)
        reply = self.answerer.answer(step_question, selection.selected, record.call)
        if reply.cited is None:
            return reply, None
        return reply, place_of_answer(reply.text, step_question, reply.cited, context)
