"""Language-model judging: split answers into statements and check each statement, with separate
prompts."""

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
    StatementWords,
    statement_text,
)
from tgraph.answer.model import ModelStep
from tgraph.models.base import CallSink
from tgraph.rendering import collapse_whitespace

TOGETHER = 10
"""Statements that are checked by one call."""

NO_VERDICT = "statement without a verdict, taken as neutral"
_LABEL = {label.lower(): label for label in LABELS}


def _none_to_empty(value: object) -> object:
    return "" if value is None else value


class _VerdictBase(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)


class StatementRow(_VerdictBase):
    subject: Annotated[str, BeforeValidator(_none_to_empty)]
    predicate: Annotated[str, BeforeValidator(_none_to_empty)]
    object: Annotated[str, BeforeValidator(_none_to_empty)] = ""


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
        """Return statements as ``StatementExtractor.statements`` does; repeated statements
        count once."""
        reply = self.ask({"question": question, "text": text}, StatementsReply, sink)
        rows = [
            (
                collapse_whitespace(r.subject),
                collapse_whitespace(r.predicate),
                collapse_whitespace(r.object),
            )
            for r in reply.value.statements
        ]
        distinct_rows = dict.fromkeys(row for row in rows if row[0] and (row[1] or row[2]))
        dropped = {
            "malformed statement": reply.dropped + sum(not (r[0] and (r[1] or r[2])) for r in rows),
            "statements cut off": int(reply.truncated),
        }
        return ExtractedStatements(tuple(distinct_rows), _positive_counts(dropped))


class ModelEntailment(ModelStep):
    """An ``EntailmentChecker`` that asks a language model with the prompt ``check_entailment``,
    ten statements per call.

    Statements omitted from a reply are asked once more, then labelled neutral and counted."""

    name = "check_entailment"

    def check(
        self, question: str, reference: str, statements: Sequence[StatementWords], sink: CallSink
    ) -> CheckedStatements:
        """As ``EntailmentChecker.check``."""
        dropped: Counter[str] = Counter()
        labels: list[str] = []
        for start in range(0, len(statements), TOGETHER):
            statement_batch = statements[start : start + TOGETHER]
            labels_by_number = self._request_verdicts(
                question, reference, dict(enumerate(statement_batch, 1)), sink, dropped
            )
            missing = {n: s for n, s in enumerate(statement_batch, 1) if n not in labels_by_number}
            if missing:
                labels_by_number |= self._request_verdicts(
                    question, reference, missing, sink, dropped
                )
            dropped[NO_VERDICT] += sum(n not in labels_by_number for n in missing)
            labels += [labels_by_number.get(n, NEUTRAL) for n in range(1, len(statement_batch) + 1)]
        return CheckedStatements(tuple(labels), _positive_counts(dropped))

    def _request_verdicts(
        self,
        question: str,
        reference: str,
        statements: Mapping[int, StatementWords],
        sink: CallSink,
        dropped: Counter[str],
    ) -> dict[int, str]:
        """Return labels from the model's reply, by statement number."""
        lines = (
            json.dumps(
                {"id": str(number), "statement": statement_text(statement)}, ensure_ascii=False
            )
            for number, statement in statements.items()
        )
        values = {"question": question, "reference": reference, "statements": "\n".join(lines)}
        reply = self.ask(values, VerdictsReply, sink)
        numbers_by_id = {str(number): number for number in statements}
        labels_by_number: dict[int, str] = {}
        for row in reply.value.verdicts:
            label = _LABEL.get(row.label.strip().lower())
            if row.id.strip() not in numbers_by_id:
                dropped["verdict on a statement that was not shown"] += 1
            elif label is None:
                dropped["verdict with an unknown label"] += 1
            else:
                labels_by_number.setdefault(numbers_by_id[row.id.strip()], label)
        return labels_by_number


def _positive_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: count for reason, count in counts.items() if count}
