"""DRIFT search's steps by a language model.

A statement that cites nothing it was shown is no point. A reply that can't be used costs the answer
that it was to be, and is not asked for again, so that a budget of calls holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from tgraph.answer.drift import DriftPoint, Response, with_way
from tgraph.answer.map_reduce import closest_places
from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.report_batches import format_rows, single_rows
from tgraph.answer.rows import format_items, read_citations
from tgraph.errors import ModelError
from tgraph.model import Agent, Candidate, CommunityReport, Evidence, Prompt, Selected
from tgraph.models.base import Call, CallSink, ChatModel
from tgraph.models.json_parsing import Read, read_reply
from tgraph.models.prompts import Prompts
from tgraph.models.structured_output import strict_schema
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.search.community_reports import NearReport, parts_of
from tgraph.retrieve.search.drift_actions import select_follow_ups
from tgraph.retrieve.text.lexical import terms

LONGEST_STATEMENT = 1_200
MOST_STATEMENTS = 12
"""Of one answer: what is longer or more is cut and counted."""

LONGEST_EXPANSION = 4_000
"""Characters of a hypothetical answer that are embedded."""

UNKNOWN_SCORE = 0.5
"""Of an answer whose model gave none that can be read."""


# --- what a model replies -----------------------------------------------------------------------


def _as_rows(value: Any) -> Any:
    """Convert a prose response to a single statement row."""
    if isinstance(value, str):
        return [{"statement": value, "citations": []}] if value.strip() else []
    if isinstance(value, list):
        return [{"statement": x, "citations": []} if isinstance(x, str) else x for x in value]
    return value


def _as_score(value: Any) -> Any:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return score if abs(score) < 1e9 else None


def _as_texts(value: Any) -> Any:
    if isinstance(value, str):
        return [value]
    return [x for x in value if isinstance(x, str)] if isinstance(value, list) else []


class _Row(BaseModel):
    statement: str
    citations: Annotated[list[str], BeforeValidator(_as_texts)] = Field(default_factory=list)


class _Reply(BaseModel):
    response: Annotated[list[_Row], BeforeValidator(_as_rows)]
    score: Annotated[float | None, BeforeValidator(_as_score)] = None
    follow_ups: Annotated[list[str], BeforeValidator(_as_texts)] = Field(default_factory=list)


def _normalise_score(score: float | None) -> float:
    """Return a score scaled to 0..1, converting scores on a 0..100 scale."""
    if score is None:
        return UNKNOWN_SCORE
    return round(min(1.0, max(0.0, score if score <= 1 else score / 100)), 6)


@dataclass(frozen=True, slots=True)
class _Citable:
    """The item behind an id: candidate plus relevant evidence."""

    candidate: Candidate
    evidence: tuple[Evidence, ...]


class _Hypothesis(ModelStep):
    """A model step that writes a hypothetical report answering the question."""

    name = "drift_hyde"

    def write(self, question: Question, template: CommunityReport, sink: CallSink) -> str:
        values = {**question_values(question), "template": template.text[:LONGEST_EXPANSION]}
        text = collapse_whitespace(self.model.complete(self.request(values), sink).text)[
            :LONGEST_EXPANSION
        ]
        if not text:
            raise ModelError(f"The reply of {self.agent.name} to the step {self.name} is empty.")
        return text


class _Responding(ModelStep):
    """A model step whose replies are ``Response`` objects."""

    def __init__(self, *args: Any, follow_ups: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._follow_ups = follow_ups

    def values(self, question: Question) -> dict[str, str]:
        return {**question_values(question), "follow_ups": str(self._follow_ups)}

    def read(
        self, values: Mapping[str, str], known: Mapping[str, _Citable], sink: CallSink
    ) -> Response:
        """Return the parsed and checked response.

        Raises ``ModelError`` for an unusable reply."""
        request = replace(self.request(values), schema=strict_schema(_Reply))
        calls: list[Call] = []
        read: Read[_Reply] | str = ""
        try:
            read = read_reply(self.model.complete(request, calls.append).text, _Reply)
        finally:
            mended = isinstance(read, Read) and read.repaired
            for call in calls:
                sink(replace(call, repaired=mended))
        if isinstance(read, str):
            raise ModelError(
                f"The reply of {self.agent.name} to the step {self.name} can't be used: {read}"
            )
        dropped = Counter({"malformed row": read.dropped})
        dropped["reply that was cut off"] += read.truncated
        points = _read_points(read.value.response, known, dropped)
        follow_ups, unused = select_follow_ups(read.value.follow_ups, self._follow_ups)
        dropped.update(unused)
        score = _normalise_score(read.value.score) if points else 0.0
        return Response(tuple(points), score, tuple(follow_ups), _positive_counts(dropped))


class _Primer(_Responding):
    """A model step that answers from some reports."""

    name = "drift_primer"

    def respond(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        lines, citables = self._format_reports(reports, context)
        return self.read({**self.values(question), "reports": lines}, citables, sink)

    def _format_reports(
        self, reports: Sequence[NearReport], context: Context
    ) -> tuple[str, dict[str, _Citable]]:
        """Return one line per report, plus candidate and evidence by id for reports and
        findings."""
        reports_with_counts = [
            (near_report.report, len(near_report.report.findings)) for near_report in reports
        ]
        report_rows = format_rows(reports_with_counts, single_rows(context))
        behind = {
            part: near_report.candidate
            for near_report in reports
            for part in parts_of(near_report.report)
        }
        citables = {
            identity: _Citable(
                behind[part], tuple(e for e in behind[part].evidence if part in e.via)
            )
            for identity, part in report_rows.by_id.items()
        }
        return report_rows.text, citables


class _Follower(_Responding):
    """The model answers a follow-up question from what a local search selected."""

    name = "drift_action"

    def respond(
        self, question: Question, query: str, selected: Sequence[Selected], sink: CallSink
    ) -> Response:
        values = self.values(question)
        values |= {"main_question": question.text, "question": query}
        fixed = self.render_without("evidence", values)
        evidence_rows = format_items(selected, fixed, self.budget, self.agent.name)
        citables = {
            i: _Citable(selected_row.candidate, selected_row.candidate.evidence)
            for i, selected_row in evidence_rows.by_id.items()
        }
        response = self.read({**values, "evidence": evidence_rows.text}, citables, sink)
        omitted_counts = Counter(
            {"evidence over the token budget of an action": len(evidence_rows.left_out)}
        )
        return replace(
            response, dropped=_positive_counts(omitted_counts + Counter(response.dropped))
        )


class ModelExplorer:
    """The language model's way, by three prompts."""

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        follow_ups: int,
        **options: Any,
    ) -> None:
        """Create the explorer's model steps; ``follow_ups`` limits follow-up questions per
        answer.

        The options are those of ``ModelStep``."""
        self._hypothesis = _Hypothesis(model, prompts, **options)
        self._primer = _Primer(model, prompts, follow_ups=follow_ups, **options)
        self._follower = _Follower(model, prompts, follow_ups=follow_ups, **options)

    @property
    def agent(self) -> Agent:
        return self._follower.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return self._hypothesis.prompt, self._primer.prompt, self._follower.prompt

    def expand(
        self, question: Question, template: CommunityReport, context: Context, sink: CallSink
    ) -> str:
        return self._hypothesis.write(question, template, sink)

    def prime(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        return self._primer.respond(question, reports, context, sink)

    def answer(
        self,
        question: Question,
        query: str,
        selected: Sequence[Selected],
        context: Context,
        sink: CallSink,
    ) -> Response:
        return self._follower.respond(question, query, selected, sink)

    def weigh(
        self, question: Question, responses: Sequence[Response], context: Context
    ) -> list[list[DriftPoint]]:
        """Score points with the answer's own score."""
        return [
            [replace(p, score=response.score) for p in response.points] for response in responses
        ]


def _read_points(
    rows: Sequence[_Row], known: Mapping[str, _Citable], dropped: Counter[str]
) -> list[DriftPoint]:
    dropped["statement over the limit of one answer"] += max(0, len(rows) - MOST_STATEMENTS)
    points: dict[str, DriftPoint] = {}
    for row in rows[:MOST_STATEMENTS]:
        text, cited, unknown = read_citations(row.statement, row.citations, known)
        dropped["citation of an id that was not shown"] += unknown
        if not text or not cited:
            reason = "statement without a citation that holds" if text else "malformed row"
            dropped[reason] += 1
            continue
        if len(text) > LONGEST_STATEMENT:
            dropped["statement cut because it is too long"] += 1
            text = f"{text[:LONGEST_STATEMENT].rsplit(' ', 1)[0]} …"
        points.setdefault(text, _build_point(text, [known[i] for i in cited]))
    return list(points.values())


def _build_point(text: str, cited: Sequence[_Citable]) -> DriftPoint:
    statement_terms = frozenset(terms(text))
    evidence: dict[tuple[object, ...], Evidence] = {}
    for citable in cited:
        for item in closest_places(statement_terms, citable.evidence):
            place = (item.document, item.page, item.start, item.end)
            evidence.setdefault(place, with_way(item))
    candidates = {citable.candidate.item.iri: citable.candidate for citable in cited}
    return DriftPoint(text, tuple(candidates.values()), tuple(evidence.values()))


def _positive_counts(dropped: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in dropped.items() if count}
