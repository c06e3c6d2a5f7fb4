"""Progress of expected content toward an answer, according to the session record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.explain.as_of.corpus import PlaceSpan, span_of, spans_overlap
from tgraph.explain.as_of.names import values_of
from tgraph.explain.trace.bundle_reader import kind_of
from tgraph.explain.trace.derivation import points_of
from tgraph.explain.trace.values import Trace, TraceItem, TraceQuotation, TraceSentence
from tgraph.explain.whynot.expected import Expected
from tgraph.index.reports.report import report_evidence as grounds_of
from tgraph.index.sources import text_value
from tgraph.ingest.sentences import sentences
from tgraph.retrieve.text.lexical import words
from tgraph.store.base import Store

_TOLD = ("report", "point", "summary", "finding")
"""What is told in words of its own: it carries a thing if it names it."""
_BEST = 5
_CHUNK = f"{v.URN}chunk:"


@dataclass(frozen=True, slots=True)
class PipelinePosition:
    """A recorded edge or item containing expected content.

    ``reason`` explains selection or rejection; ``rank`` is 0 if unranked."""

    iri: str
    kind: str
    item: str
    label: str
    rank: int
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class PipelinePositions:
    """Positions of expected content in a session: numbers (from 1) of sentences using it,
    selected carriers, and rejected carriers, best first."""

    sentences: tuple[int, ...]
    selected: tuple[PipelinePosition, ...]
    rejected: tuple[PipelinePosition, ...]


class PipelineSearch:
    """Search for one piece of expected content in one trace."""

    def __init__(self, store: Store, trace: Trace, expected: Expected) -> None:
        self._store = store
        self._trace = trace
        self._expected = expected
        self._names = tuple(tuple(map(_pad_words, group)) for group in expected.names)

    def find_positions(self) -> PipelinePositions:
        trace = self._trace
        return PipelinePositions(
            tuple(n for n, s in enumerate(trace.sentences, 1) if self._uses_expected(s)),
            tuple(_create_position(item) for item in trace.selected if self.carries(item)),
            tuple(sorted(self._rejected_positions(), key=lambda c: (c.rank or 1 << 30, c.iri))),
        )

    def _rejected_positions(self) -> Iterator[PipelinePosition]:
        trace = self._trace
        yield from (_create_position(item) for item in trace.rejected if self.carries(item))
        for batch in trace.batches:
            for point in batch.points:
                cited = self._expected.in_items.intersection(point.cites)
                if point.rejected and (cited or self.names(point.text)):
                    yield PipelinePosition(
                        point.iri, "point", point.iri, point.text, 0, point.score, point.rejected
                    )
        for rating in trace.ratings:
            if not rating.relevant and self.mentions_expected(rating.report):
                rating_text = "no rating" if rating.score is None else f"{rating.score * _BEST:.0f}"
                reason = f"rated {rating_text} of {_BEST}: {rating.reasoning}".rstrip(": ")
                yield PipelinePosition(
                    rating.report, "report", rating.report, rating.label, 0, 0.0, reason
                )

    # --- does it carry it? ---

    def carries(self, item: TraceItem) -> bool:
        """Tell whether an item matches, states, names or contains expected content."""
        expected = self._expected
        if item.item in expected.in_items or item.item in self._derived_points:
            return True
        if item.kind == "edge" and expected.kind == "entity":
            return bool(expected.entities & {item.subject, item.object})
        if item.kind in _TOLD and self.mentions_expected(item.item, item.label):
            return True
        cited = item.kind not in _TOLD or (item.kind == "summary" and expected.is_place)
        return cited and any(self._stands_at(place) for place in item.evidence)

    @cached_property
    def _derived_points(self) -> frozenset[str]:
        """IRIs of points drawn from the expected content."""
        expected_iris = self._expected.iris
        points = points_of(self._trace)
        return frozenset(point.iri for point in points if expected_iris.intersection(point.cites))

    def _stands_at(self, place: TraceQuotation) -> bool:
        """Tell whether a quotation overlaps a place stating the expected content."""
        expected = self._expected
        if expected.kind == "document":
            return place.document in expected.documents
        if expected.kind == "chunk":
            return place.chunk in expected.chunks
        spans = [p.span for p in expected.places]
        spans += self._evidence_spans if place.evidence.startswith(_CHUNK) else []
        here = place.document, place.page, place.start, place.end
        return place.evidence in expected.evidence or any(
            spans_overlap(here, span) for span in spans
        )

    @cached_property
    def _evidence_spans(self) -> list[PlaceSpan]:
        """Character spans of the extraction evidence, possible quotes of a chunk."""
        spans = (span_of(evidence, self._store) for evidence in self._expected.evidence)
        return [span for span in spans if span[2] < span[3]]

    def mentions_expected(self, iri: str, label: str = "") -> bool:
        """Tell whether a report or similar item mentions the expected content."""
        expected = self._expected
        if iri in expected.iris:
            return True
        if expected.is_place:
            return not expected.evidence.isdisjoint(grounds_of(self._store, iri))
        return self.names(f"{label}\n{self._read_report_text(iri)}")

    def names(self, text: str) -> bool:
        """Tell whether text contains names from every group."""
        parts = [text]
        if len(self._names) > 1:  # the ends of a fact: they must stand in one sentence
            parts = [text[start:end] for start, end in sentences(text)]
        return bool(self._names) and any(self._has_all(_pad_words(part)) for part in parts)

    def _has_all(self, flat: str) -> bool:
        return all(any(name.strip() and name in flat for name in group) for group in self._names)

    def _uses_expected(self, sentence: TraceSentence) -> bool:
        chosen = {item.iri: item for item in self._trace.selected}
        if self._expected.kind in ("entity", "text") and self.names(sentence.text):
            return True
        for place in sentence.citations:
            item = chosen.get(place.edge_selection)
            if item is None:
                continue
            if not self._expected.iris.isdisjoint(place.via):
                return True
            is_text_item = item.kind in ("chunk", *_TOLD)
            if (self._stands_at(place) if is_text_item else self.carries(item)) and (
                not is_text_item or self._expected.kind != "entity"
            ):
                return True
        return False

    # --- reports ---

    def _read_report_text(self, iri: str) -> str:
        """Return text stored in knowledge for a report or finding."""
        graph = v.KNOWLEDGE_GRAPH
        parts: list[str] = []
        for name in ("summaryText", "text", "finding"):
            for quad in self._store.match(NamedNode(iri), v.tg(name), None, graph):
                if isinstance(quad.object, Literal):
                    parts.append(quad.object.value)
                elif isinstance(quad.object, NamedNode):
                    parts.append(self._read_report_text(quad.object.value))
        if kind_of(iri) == "summary":
            parts.append(text_value(self._store, iri, v.tg("text")))
        return "\n".join([*parts, *values_of(self._store, iri, v.RDFS_LABEL, graph)])


def _create_position(item: TraceItem) -> PipelinePosition:
    return PipelinePosition(
        item.iri, item.kind, item.item, item.label, item.rank, item.score, item.reasoning
    )


def _pad_words(text: str) -> str:
    """Return text words separated by spaces, so that names match only complete words."""
    return f" {' '.join(words(text))} "
