"""Community reports by a language model: one structured reply a community, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from tgraph.errors import ModelError
from tgraph.index.reports.context import ReportContext
from tgraph.index.reports.report import DraftFinding, ReportDraft
from tgraph.models.base import CallSink, ChatModel, ChatRequest, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, load_prompt
from tgraph.models.structured_output import Forgetful, Structured
from tgraph.models.tokens import count_tokens, encoding_for
from tgraph.vocabulary import digest_parts

MIDDLING = 5.0

_FRAME = 16  # tokens that a chat template puts around the messages
_WORDS_PER_TOKEN = 0.6  # of JSON; English prose has 0.75
_BRACKETS = re.compile(r"\s*[\[(]([^\[\]()]{1,200})[\])]")
_ID = re.compile(r"[ERCS]\d+(?:\.\d+)?")
_BETWEEN = re.compile(r"[\s,;:|]+|\b(?:Data|Entities|Relationships|Claims|Reports|and)\b")


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _as_texts(value: Any) -> Any:
    return re.split(r"[\s,;]+", value.strip("[]")) if isinstance(value, str) else value or []


class FindingRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    summary: str
    explanation: str
    citations: Annotated[list[str], BeforeValidator(_as_texts)]


class ReportReply(BaseModel):
    """A report on a community."""

    title: str
    summary: str
    rating: Annotated[float, BeforeValidator(_as_number)] = MIDDLING
    rating_explanation: str = ""
    findings: list[FindingRow]


class ModelReportWriter(Prompted):
    """A ``ReportWriter`` that asks a language model by the prompt ``community_report``.

    A reply that can't be read, says nothing, is longer than ``max_tokens`` or cites nothing
    that was shown is a ``ModelError``. Of a reply that was cut off the whole findings count.
    """

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        max_tokens: int = 2_000,
        temperature: float = 0.0,
        seed: int | None = None,
    ) -> None:
        prompt = load_prompt("community_report", prompts)
        options: Options = {"max_tokens": max_tokens, "temperature": temperature, "seed": seed}
        super().__init__(model, prompt, (), **options)
        self._most = max_tokens

    @property
    def key(self) -> str:
        temperature, seed, token_limit = self._options
        return digest_parts(
            self.agent.iri, self._prompt.sha256, *map(str, (token_limit, temperature, seed))
        )

    @property
    def overhead(self) -> int:
        """Token count of a prompt with no community content."""
        request = self._report_request({"entities": "", "edges": "", "claims": "", "reports": ""})
        text = "\n".join(message["content"] for message in request.messages)
        return count_tokens(text, encoding_for(self.agent.name)) + _FRAME

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """As ``ReportWriter.write``."""
        rows = {name: "\n".join(lines) for name, lines in context.rows().items()}
        request = self._report_request(rows)
        draft = _parse_draft(self._ask(request, ReportReply, sink))
        problem = self._find_problem(draft, context.ids())
        if problem:
            if isinstance(self._model, Forgetful):
                self._model.forget(request)
            raise ModelError(
                f"The reply of {self.agent.name} to the step community_report can't be used:"
                f" {problem}.",
                "A larger model does better.",
            )
        return draft

    def _report_request(self, rows: dict[str, str]) -> ChatRequest:
        words = str(round(self._most * _WORDS_PER_TOKEN / 50) * 50)
        return self._request({**rows, "words": words}, ReportReply)

    def _find_problem(self, draft: ReportDraft, ids: Collection[str]) -> str:
        """Return the reason for a draft's uselessness; empty for useful drafts."""
        draft_texts = [draft.title, draft.summary, draft.rating_explanation]
        draft_texts += [text for f in draft.findings for text in (f.summary, f.explanation)]
        if not draft.title or not draft.summary:
            return "it has no title or no summary"
        if not any(i in ids for finding in draft.findings for i in finding.citations):
            return "none of its findings cites what was shown"
        if count_tokens("\n".join(draft_texts), encoding_for(self.agent.name)) > self._most:
            return f"it is longer than {self._most:,} tokens"
        return ""


def _parse_draft(reply: Structured[ReportReply]) -> ReportDraft:
    value = reply.value
    findings = [_parse_finding(row) for row in value.findings]
    complete_findings = tuple(f for f in findings if f.summary and f.explanation)
    dropped = {
        "malformed row": reply.dropped + len(findings) - len(complete_findings),
        "reply that was cut off": int(reply.truncated),
    }
    rating = MIDDLING if math.isnan(value.rating) else min(10.0, max(0.0, value.rating))
    return ReportDraft(
        _clean_line(_without_ids(value.title)[0]),
        _clean_line(_without_ids(value.summary)[0]),
        round(rating, 1),
        _clean_line(_without_ids(value.rating_explanation)[0]),
        complete_findings,
        {reason: count for reason, count in dropped.items() if count},
    )


def _parse_finding(row: FindingRow) -> DraftFinding:
    summary, first = _without_ids(row.summary)
    explanation, second = _without_ids(row.explanation)
    listed = [citation.strip(" []()\"'") for citation in row.citations]
    cited = dict.fromkeys([i for i in listed if i] + first + second)
    return DraftFinding(_clean_line(summary), _clean_line(explanation), tuple(cited))


def _without_ids(text: str) -> tuple[str, list[str]]:
    """Return the text with id-only brackets removed, plus the removed ids."""
    found_ids: list[str] = []

    def remove_ids(match: re.Match[str]) -> str:
        parts = [part for part in _BETWEEN.split(match[1]) if part]
        if not parts or not all(_ID.fullmatch(part) for part in parts):
            return match[0]
        found_ids.extend(parts)
        return ""

    return _BRACKETS.sub(remove_ids, text), found_ids


def _clean_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
