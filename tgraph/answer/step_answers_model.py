"""The language model's way through a question in steps: it takes the question apart, and answers
each step from what was retrieved for it.

Steps are taken as they were asked for or not at all. An answer counts with a citation of something
that was shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from tgraph.answer.model import ModelStep, asked
from tgraph.answer.rows import as_texts, clean, read_citations
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Candidate, Selected
from tgraph.models.base import CallSink
from tgraph.models.json_parsing import Read, read_reply
from tgraph.models.structured_output import ask
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
    """The steps of a question, none where it takes no more than one; ``dropped`` counts what went
    wrong."""

    steps: tuple[QuestionStep, ...] = ()
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepReply:
    """What a model answers to a step, empty where it knows nothing, and what it cites first."""

    text: str = ""
    cited: Candidate | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)


class _StepsReply(BaseModel):
    steps: list[str]

    @field_validator("steps")
    @classmethod
    def _are_sound(cls, steps: list[str]) -> list[str]:
        found = [clean(step) for step in steps]
        if len(found) > MOST:
            raise ValueError(f"there are more than {MOST} steps")
        for number, step in enumerate(found, 1):
            if not step or len(step) > LONGEST_STEP:
                raise ValueError(f"step {number} is empty, or longer than {LONGEST_STEP}")
            needed = {int(n) for n in _REFERENCE.findall(step)}
            if needed != set(QuestionStep(step).needs) or not needed <= set(range(1, number)):
                raise ValueError(f"step {number} refers to a step that is not before it")
        return found


class ModelDecomposer(ModelStep):
    """The model takes the question apart; a reply that can't be used leaves it whole."""

    name = "decompose_question"

    def decompose(self, question: Question, sink: CallSink) -> Decomposition:
        """The steps, each of which refers to none but earlier ones. ``EndpointError`` where the
        model can't be reached."""
        request = self.request({**asked(question), "most": str(MOST)})
        try:
            reply = ask(self.model, request, _StepsReply, sink, read=_read_whole).value
        except EndpointError:
            raise
        except ModelError:
            return Decomposition(dropped={UNUSABLE_STEPS: 1})
        steps = tuple(map(QuestionStep, reply.steps))
        return Decomposition(steps if len(steps) > 1 else ())


def _read_whole(text: str, schema: type[T]) -> Read[T] | str:
    """As ``read_reply``, of which nothing had to be left out: a step may rest on any other."""
    found = read_reply(text, schema)
    if isinstance(found, Read) and (found.dropped or found.truncated):
        return "a step of it is missing, or is no text."
    return found


class _AnswerReply(BaseModel):
    answer: str
    citations: Annotated[list[str], BeforeValidator(as_texts)] = Field(default_factory=list)


class ModelStepAnswerer(ModelStep):
    """The model answers a step; nothing is asked of it where nothing was selected."""

    name = "answer_step"

    def answer(self, question: Question, selected: Sequence[Selected], sink: CallSink) -> StepReply:
        """The answer in a few words, from what was selected alone. ``EndpointError`` where the
        model can't be reached."""
        if not selected:
            return StepReply()
        values = {"question": question.text}
        shown = self._show(selected, "evidence", values)
        reply = self.try_ask({**values, "evidence": shown.text}, _AnswerReply, sink)
        if isinstance(reply, ModelError):
            return StepReply(dropped={UNUSABLE_ANSWER: 1})
        text, cited, unknown = read_citations(reply.answer, reply.citations, shown.by_id)
        dropped = {UNKNOWN: unknown} if unknown else {}
        if not text:
            return StepReply(dropped=dropped)
        if len(text) > LONGEST_ANSWER:
            return StepReply(dropped={**dropped, UNUSABLE_ANSWER: 1})
        if not cited:
            return StepReply(dropped={**dropped, UNPROVEN_ANSWER: 1})
        return StepReply(text, shown.by_id[cited[0]].candidate, dropped)
