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

from tgraph.answer.drift import DriftPoint, Response, Told, with_way
from tgraph.answer.map_reduce import closest
from tgraph.answer.model import ModelStep, asked
from tgraph.answer.report_batches import rows, single_rows
from tgraph.answer.rows import clean, read_citations, show
from tgraph.errors import ModelError
from tgraph.model import Agent, Candidate, CommunityReport, Evidence, Prompt, Selected
from tgraph.models.base import Call, CallSink, ChatModel
from tgraph.models.json_parsing import Read, read_reply
from tgraph.models.prompts import Prompts
from tgraph.models.structured_output import strict_schema
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.search.community_reports import NearReport, parts_of
from tgraph.retrieve.search.drift_actions import usable
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
    """A response in prose is one statement."""
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


def _share(score: float | None) -> float:
    """A score from 0 to 100, or one that a model brought to 0..1 itself."""
    if score is None:
        return UNKNOWN_SCORE
    return round(min(1.0, max(0.0, score if score <= 1 else score / 100)), 6)


@dataclass(frozen=True, slots=True)
class _Citable:
    """What stands behind an id: a candidate, and the part of its evidence that is meant."""

    candidate: Candidate
    evidence: tuple[Evidence, ...]


class _Hypothesis(ModelStep):
    """The model writes what a report would say that answers the question."""

    name = "drift_hyde"

    def write(self, question: Question, template: CommunityReport, sink: CallSink) -> str:
        values = {**asked(question), "template": template.text[:LONGEST_EXPANSION]}
        text = clean(self.model.complete(self.request(values), sink).text)[:LONGEST_EXPANSION]
        if not text:
            raise ModelError(f"The reply of {self.agent.name} to the step {self.name} is empty.")
        return text


class _Responding(ModelStep):
    """A step whose reply is a ``Response``."""

    def __init__(self, *args: Any, follow_ups: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self._follow_ups = follow_ups

    def values(self, question: Question) -> dict[str, str]:
        return {**asked(question), "follow_ups": str(self._follow_ups)}

    def read(
        self, values: Mapping[str, str], known: Mapping[str, _Citable], sink: CallSink
    ) -> Response:
        """The response, read and checked. ``ModelError`` for a reply that can't be used."""
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
        points = _points(read.value.response, known, dropped)
        follow_ups, unused = usable(read.value.follow_ups, self._follow_ups)
        dropped.update(unused)
        score = _share(read.value.score) if points else 0.0
        return Response(tuple(points), score, tuple(follow_ups), _counts(dropped))


class _Primer(_Responding):
    """The model answers from some reports."""

    name = "drift_primer"

    def respond(
        self, question: Question, reports: Sequence[NearReport], context: Context, sink: CallSink
    ) -> Response:
        lines, known = self._shown(reports, context)
        return self.read({**self.values(question), "reports": lines}, known, sink)

    def _shown(
        self, reports: Sequence[NearReport], context: Context
    ) -> tuple[str, dict[str, _Citable]]:
        """A line for each report, and what its id and those of its findings stand for."""
        whole = [(each.report, len(each.report.findings)) for each in reports]
        shown = rows(whole, single_rows(context))
        behind = {part: each.candidate for each in reports for part in parts_of(each.report)}
        known = {
            identity: _Citable(
                behind[part], tuple(e for e in behind[part].evidence if part in e.via)
            )
            for identity, part in shown.by_id.items()
        }
        return shown.text, known


class _Follower(_Responding):
    """The model answers a follow-up question from what a local search selected."""

    name = "drift_action"

    def respond(
        self, question: Question, query: str, selected: Sequence[Selected], sink: CallSink
    ) -> Response:
        values = self.values(question)
        values |= {"main_question": question.text, "question": query}
        fixed = self.fixed("evidence", values)
        shown = show(selected, fixed, self.budget, self.agent.name)
        known = {
            i: _Citable(each.candidate, each.candidate.evidence) for i, each in shown.by_id.items()
        }
        response = self.read({**values, "evidence": shown.text}, known, sink)
        left = Counter({"evidence over the token budget of an action": len(shown.left_out)})
        return replace(response, dropped=_counts(left + Counter(response.dropped)))


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
        """``follow_ups`` is how many of them one answer may propose; the options are those of
        ``ModelStep``."""
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
        self, question: Question, told: Sequence[Told], context: Context
    ) -> list[list[DriftPoint]]:
        """A point is worth what the answer that it is of says of itself."""
        return [[replace(p, score=t.response.score) for p in t.response.points] for t in told]


def _points(
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
        points.setdefault(text, _point(text, [known[i] for i in cited]))
    return list(points.values())


def _point(text: str, cited: Sequence[_Citable]) -> DriftPoint:
    said = frozenset(terms(text))
    evidence: dict[tuple[object, ...], Evidence] = {}
    for each in cited:
        for item in closest(said, each.evidence):
            place = (item.document, item.page, item.start, item.end)
            evidence.setdefault(place, with_way(item))
    candidates = {each.candidate.item.iri: each.candidate for each in cited}
    return DriftPoint(text, tuple(candidates.values()), tuple(evidence.values()))


def _counts(dropped: Counter[str]) -> dict[str, int]:
    return {reason: count for reason, count in dropped.items() if count}
