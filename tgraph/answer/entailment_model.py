"""A language model takes answers apart and checks what they state, each by a prompt of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from tgraph.answer.entailment import (
    LABELS,
    NEUTRAL,
    CheckedStatements,
    ExtractedStatements,
    Statement,
    spoken,
)
from tgraph.answer.model import ModelStep
from tgraph.answer.rows import clean
from tgraph.models.base import CallSink

TOGETHER = 10
"""Statements that are checked by one call."""

NO_VERDICT = "statement without a verdict, taken as neutral"
_LABEL = {label.lower(): label for label in LABELS}


def _text(value: object) -> object:
    return "" if value is None else value


class _VerdictBase(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class StatementRow(_VerdictBase):
    subject: Annotated[str, BeforeValidator(_text)]
    predicate: Annotated[str, BeforeValidator(_text)]
    object: Annotated[str, BeforeValidator(_text)] = ""


class StatementsReply(BaseModel):
    """What a text states."""

    statements: list[StatementRow]


class VerdictRow(_VerdictBase):
    id: str
    label: str


class VerdictsReply(BaseModel):
    """Whether a reference entails each statement."""

    verdicts: list[VerdictRow]


class ModelStatements(ModelStep):
    """A ``StatementExtractor`` that asks a language model by the prompt ``extract_statements``."""

    name = "extract_statements"

    def statements(self, question: str, text: str, sink: CallSink) -> ExtractedStatements:
        """As ``StatementExtractor.statements``; the same statement counts once."""
        reply = self.ask({"question": question, "text": text}, StatementsReply, sink)
        rows = [
            (clean(r.subject), clean(r.predicate), clean(r.object)) for r in reply.value.statements
        ]
        found = dict.fromkeys(row for row in rows if row[0] and (row[1] or row[2]))
        dropped = {
            "malformed statement": reply.dropped + sum(not (r[0] and (r[1] or r[2])) for r in rows),
            "statements cut off": int(reply.truncated),
        }
        return ExtractedStatements(tuple(found), _counted(dropped))


class ModelEntailment(ModelStep):
    """An ``EntailmentChecker`` that asks a language model by the prompt ``check_entailment``, ten
    statements at a time. What a reply passes over is asked once more, then taken as neutral and
    counted."""

    name = "check_entailment"

    def check(
        self, question: str, reference: str, statements: Sequence[Statement], sink: CallSink
    ) -> CheckedStatements:
        """As ``EntailmentChecker.check``."""
        dropped: Counter[str] = Counter()
        labels: list[str] = []
        for start in range(0, len(statements), TOGETHER):
            some = statements[start : start + TOGETHER]
            found = self._verdicts(question, reference, dict(enumerate(some, 1)), sink, dropped)
            missing = {n: s for n, s in enumerate(some, 1) if n not in found}
            if missing:
                found |= self._verdicts(question, reference, missing, sink, dropped)
            dropped[NO_VERDICT] += sum(n not in found for n in missing)
            labels += [found.get(n, NEUTRAL) for n in range(1, len(some) + 1)]
        return CheckedStatements(tuple(labels), _counted(dropped))

    def _verdicts(
        self,
        question: str,
        reference: str,
        statements: Mapping[int, Statement],
        sink: CallSink,
        dropped: Counter[str],
    ) -> dict[int, str]:
        """The labels that the reply gives, by the numbers of the statements."""
        lines = (
            json.dumps({"id": str(number), "statement": spoken(statement)}, ensure_ascii=False)
            for number, statement in statements.items()
        )
        values = {"question": question, "reference": reference, "statements": "\n".join(lines)}
        reply = self.ask(values, VerdictsReply, sink)
        known = {str(number): number for number in statements}
        found: dict[int, str] = {}
        for row in reply.value.verdicts:
            label = _LABEL.get(row.label.strip().lower())
            if row.id.strip() not in known:
                dropped["verdict on a statement that was not shown"] += 1
            elif label is None:
                dropped["verdict with an unknown label"] += 1
            else:
                found.setdefault(known[row.id.strip()], label)
        return found


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}
