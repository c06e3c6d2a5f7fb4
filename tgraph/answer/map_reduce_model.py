"""The language model's way to draw points from reports: one call a batch, checked.

What it cites is checked against what the batch showed: made-up ids are counted and dropped, and so
is a point that cites nothing that was shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tgraph.answer.map_reduce import Batch, Batches, Mapped, MappedPoint, ground_text
from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.report_batches import (
    ReportLines,
    build_batches,
    fits_of,
    format_rows,
    single_rows,
    whole_costs,
)
from tgraph.answer.rows import as_texts, read_citations
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.model import Candidate, CommunityReport, Evidence
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.concurrency import do_nothing, run_parallel
from tgraph.models.prompts import Prompts
from tgraph.models.structured_output import Structured
from tgraph.models.tokens import count_tokens, encoding_for
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reports import Reports, evidence_of_parts, reports_of

_FRAME = 16  # tokens that a chat template puts around the messages
_KEPT = 4  # ways of dividing the reports into batches


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class PointRow(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    description: str
    score: Annotated[float, BeforeValidator(_as_number)]
    citations: Annotated[list[str], BeforeValidator(as_texts)] = Field(default_factory=list)


class PointsReply(BaseModel):
    """What a batch says on the question."""

    points: list[PointRow]


class ModelMapper(ModelStep):
    """A ``Mapper`` that asks a language model by the prompt ``map_points``."""

    name = "map_points"

    def __init__(
        self,
        model: ChatModel,
        prompts: Prompts = None,
        *,
        max_words: int = 1_000,
        shuffle_seed: int = 86,
        concurrency: int = 4,
        cancel: Callable[[], None] = do_nothing,
        **options: Any,
    ) -> None:
        super().__init__(model, prompts, **options)
        self._words = max_words
        self._shuffle_seed = shuffle_seed
        self._concurrency = concurrency
        self._cancel = cancel

    def batches(
        self, question: Question, candidates: Sequence[Candidate], context: Context
    ) -> Batches:
        """Return batches as ``Mapper.batches`` does; questions of similar length get the same
        batches.

        Raises ``UsageError`` if the question leaves no room for reports."""
        reports = reports_of(context).by_iri
        encoding = encoding_for(self.agent.name)
        fixed = self.render_without("reports", self._prompt_values(question))
        room = _round_down(self.budget - _FRAME - count_tokens(fixed, encoding))
        key = (room, encoding, self._shuffle_seed, *(c.item.iri for c in candidates))
        cached_batches: Batches = context.open_cache("batches", _KEPT).load_item(
            key, lambda: self._build_batches(candidates, reports, room, encoding, context)
        )
        return cached_batches

    def _build_batches(
        self,
        candidates: Sequence[Candidate],
        reports: Mapping[str, CommunityReport],
        room: int,
        encoding: str,
        context: Context,
    ) -> Batches:
        read = [reports[c.item.iri] for c in candidates]
        fits = fits_of(read, room, encoding, whole_costs(encoding, context))
        if fits and not any(fits.values()):
            raise UsageError(
                f"The question and its history leave no room for a report in {self.budget:,}"
                " tokens.",
                "Raise global_search.map_context_tokens, or ask with less history.",
            )
        return build_batches(candidates, reports, fits, room, self._shuffle_seed)

    def map(
        self, question: Question, batches: Sequence[Batch], context: Context, sink: CallSink
    ) -> list[Mapped]:
        """Return points as ``Mapper.map`` does, reading as many batches as possible
        concurrently."""

        def ask(batch: Batch) -> _BatchReading | ModelError:
            try:
                return self._map_batch(question, batch, context, sink)
            except EndpointError:
                raise
            except ModelError as error:
                return error

        readings = run_parallel(batches, ask, self._concurrency, self._cancel)
        errors = [reading for reading in readings if isinstance(reading, ModelError)]
        if errors and len(errors) == len(readings):
            raise errors[0]
        read = [reading for reading in readings if isinstance(reading, _BatchReading)]
        evidence_of_parts(
            {cited for reading in read for cited in reading.cited_iris}, context
        )  # all at once
        return [
            _failed_batch(reading) if isinstance(reading, ModelError) else reading.read()
            for reading in readings
        ]

    def _map_batch(
        self, question: Question, batch: Batch, context: Context, sink: CallSink
    ) -> _BatchReading:
        reports = reports_of(context)
        pairs = zip(batch.candidates, batch.findings, strict=True)
        report_rows = format_rows(
            [(reports.by_iri[c.item.iri], count) for c, count in pairs], single_rows(context)
        )
        values = {**self._prompt_values(question), "reports": report_rows.text}
        reply = self.ask(values, PointsReply, sink)
        return _BatchReading(report_rows, reports, context, self._words, reply)

    def _prompt_values(self, question: Question) -> dict[str, str]:
        return {**question_values(question), "words": f"{self._words:,}"}


def _round_down(room: int) -> int:
    """Round room down by at most a 64th, giving most questions the same value."""
    return room >> max(0, room.bit_length() - 7) << max(0, room.bit_length() - 7)


def _failed_batch(error: ModelError) -> Mapped:
    return Mapped((), {"batch whose reply can't be used": 1}, error.message)


class _BatchReading:
    """Reads a reply to one batch; the reply cites items in ``cited``."""

    def __init__(
        self,
        shown: ReportLines,
        reports: Reports,
        context: Context,
        words: int,
        reply: Structured[PointsReply],
    ) -> None:
        self._shown = shown
        self._reports = reports
        self._context = context
        self._room = words
        self._dropped: Counter[str] = Counter()
        self._count_dropped("malformed row", reply.dropped)
        self._count_dropped("reply that was cut off", int(reply.truncated))
        self._told = [(row, *self._read_row(row)) for row in reply.value.points]

    @property
    def cited_iris(self) -> set[str]:
        return {iri for *_, cites in self._told for iri in cites}

    def read(self) -> Mapped:
        points: dict[str, MappedPoint] = {}
        grounds = evidence_of_parts(self.cited_iris, self._context)
        for row, text, cites in self._told:
            point = self._build_point(row, text, cites, grounds)
            if point is None:
                continue
            if point.text in points:
                self._count_dropped("point that was made before")
            elif len(point.text.split()) > self._room:
                self._count_dropped("point over the length of a reply")
            else:
                self._room -= len(point.text.split())
                points[point.text] = point
        return Mapped(tuple(points.values()), dict(+self._dropped))

    def _read_row(self, row: PointRow) -> tuple[str, tuple[str, ...]]:
        """Return the row's text, and the cited items that were shown."""
        text, cited, unknown = read_citations(row.description, row.citations, self._shown.by_id)
        self._count_dropped("citation of an id that was not shown", unknown)
        return text, self._drop_redundant_reports(
            [self._shown.by_id[identity] for identity in cited]
        )

    def _build_point(
        self,
        row: PointRow,
        text: str,
        cites: tuple[str, ...],
        grounds: Mapping[str, Sequence[Evidence]],
    ) -> MappedPoint | None:
        if not text or math.isnan(row.score):
            self._count_dropped("malformed row")
            return None
        evidence = ground_text(text, [grounds.get(iri, ()) for iri in cites], self._context)
        if not evidence:
            self._count_dropped("point without a citation that holds")
            return None
        return MappedPoint(text, min(100.0, max(0.0, row.score)) / 100, cites, evidence)

    def _drop_redundant_reports(self, cites: Sequence[str]) -> tuple[str, ...]:
        """Drop cited reports whose own findings are cited too."""
        owners = {cited: self._reports.owner(cited) for cited in cites}
        reports_of_findings = {
            owner.iri for cited, owner in owners.items() if owner and owner.iri != cited
        }
        return tuple(cited for cited in cites if cited not in reports_of_findings)

    def _count_dropped(self, reason: str, count: int = 1) -> None:
        self._dropped[reason] += count
