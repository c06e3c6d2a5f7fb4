"""Answering questions in steps with a language model: decomposing the question, then answering
each step from retrieved evidence.

Steps are taken exactly as asked for, or not at all. An answer counts only with a citation of a
shown item."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.rows import as_texts, read_citations
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Candidate, Selected
from tgraph.models.base import CallSink
from tgraph.models.json_parsing import Read, read_reply
from tgraph.models.structured_output import ask_structured
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Question
from tgraph.retrieve.text.decomposition import MOST, QuestionStep

LONGEST_STEP = 300
LONGEST_ANSWER = 200
"""Characters of a step, and of its answer, which is put into the next step."""

UNUSABLE_STEPS = "decomposition that can't be used: the question was asked as a whole"
UNUSABLE_ANSWER = "answer of a step that can't be used"
UNPROVEN_ANSWER = "answer of a step without a citation that holds"
UNKNOWN = "citation of an id that was not shown"

_REFERENCE = re.compile(r"#(\d+)")

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Question steps, empty for single-step questions; ``dropped`` counts failures."""

    steps: tuple[QuestionStep, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepReply:
    """A model's step answer, empty without knowledge, and the first cited candidate."""

    text: str = ""
    cited: Candidate | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)


class _StepsReply(BaseModel):
    steps: list[str]

    @field_validator("steps")
    @classmethod
    def _are_sound(cls, steps: list[str]) -> list[str]:
        step_texts = [collapse_whitespace(step) for step in steps]
        if len(step_texts) > MOST:
            raise ValueError(f"there are more than {MOST} steps")
        for number, step in enumerate(step_texts, 1):
            if not step or len(step) > LONGEST_STEP:
                raise ValueError(f"step {number} is empty, or longer than {LONGEST_STEP}")
            needed = {int(n) for n in _REFERENCE.findall(step)}
            if needed != set(QuestionStep(step).needs) or not needed <= set(range(1, number)):
                raise ValueError(f"step {number} refers to a step that is not before it")
        return step_texts


class ModelDecomposer(ModelStep):
    """Decomposes the question with a model; an unusable reply leaves the question whole."""

    name = "decompose_question"

    def decompose(self, question: Question, sink: CallSink) -> Decomposition:
        """Return steps, each referring only to earlier steps.

        Raises ``EndpointError`` if the model can't be reached."""
        request = self.request({**question_values(question), "most": str(MOST)})
        try:
            reply = ask_structured(self.model, request, _StepsReply, sink, read=_read_whole).value
        except EndpointError:
            raise
        except ModelError:
            return Decomposition(dropped={UNUSABLE_STEPS: 1})
        steps = tuple(map(QuestionStep, reply.steps))
        return Decomposition(steps if len(steps) > 1 else ())


def _read_whole(text: str, schema: type[T]) -> Read[T] | str:
    """Parse a reply as ``read_reply`` does, rejecting incomplete replies: a step may rest on
    any other step."""
    reply = read_reply(text, schema)
    if isinstance(reply, Read) and (reply.dropped or reply.truncated):
        return "a step of it is missing, or is no text."
    return reply


class _AnswerReply(BaseModel):
    answer: str
    citations: Annotated[list[str], BeforeValidator(as_texts)] = Field(default_factory=list)


class ModelStepAnswerer(ModelStep):
    """Answers a step with a model; without selections, no model is asked."""

    name = "answer_step"

    def answer(self, question: Question, selected: Sequence[Selected], sink: CallSink) -> StepReply:
        """Return a short answer from the selections alone.

        Raises ``EndpointError`` if the model can't be reached."""
        if not selected:
            return StepReply()
        values = {"question": question.text}
        evidence_rows = self._fit_items(selected, "evidence", values)
        reply = self.try_ask({**values, "evidence": evidence_rows.text}, _AnswerReply, sink)
        if isinstance(reply, ModelError):
            return StepReply(dropped={UNUSABLE_ANSWER: 1})
        text, cited, unknown = read_citations(reply.answer, reply.citations, evidence_rows.by_id)
        dropped = {UNKNOWN: unknown} if unknown else {}
        if not text:
            return StepReply(dropped=dropped)
        if len(text) > LONGEST_ANSWER:
            return StepReply(dropped={**dropped, UNUSABLE_ANSWER: 1})
        if not cited:
            return StepReply(dropped={**dropped, UNPROVEN_ANSWER: 1})
        return StepReply(text, evidence_rows.by_id[cited[0]].candidate, dropped)
