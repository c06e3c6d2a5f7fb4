"""Spans of one record: tree, names and times follow record activities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import update_wrapper
from typing import Concatenate, ParamSpec

from openinference.semconv.trace import SpanAttributes
from opentelemetry import context, trace
from opentelemetry.trace import Span, Status, StatusCode, Tracer

from tgraph.extensions.operations.telemetry.attributes import (
    IRI,
    PHASE,
    RECORDED,
    STATUS,
    TYPE,
    WITHIN,
    Attributes,
    Kind,
    call_attributes,
    call_name,
    document_attributes,
    kind_of,
    of_kind,
    retrieval_attributes,
    statement_attributes,
)
from tgraph.model import Retrieval, Selection, Sentence
from tgraph.models.base import Call
from tgraph.record.activities import Activity
from tgraph.record.observer import Ending, Observer
from tgraph.store.statements import Pair

P = ParamSpec("P")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_nanoseconds(when: datetime) -> int:
    """The time as OpenTelemetry counts it, exactly."""
    return (when - _EPOCH) // _MICROSECOND * 1000


def _guard_observer(
    told: Callable[Concatenate[SpanObserver, P], None],
) -> Callable[Concatenate[SpanObserver, P], None]:
    """Wrap an observer method; errors are counted and cost the span, never the record."""

    def tell(self: SpanObserver, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            told(self, *args, **kwargs)
        except Exception:
            self.harmed()

    update_wrapper(tell, told)
    return tell


class SpanObserver(Observer):
    """An observer building spans of one record.

    Spans are children of the span current at creation; ``harmed`` is called for each failed
    span."""

    def __init__(self, tracer: Tracer, harmed: Callable[[], None], *, content: bool) -> None:
        self.harmed = harmed
        self._tracer = tracer
        self._content = content
        self._outside = context.get_current()
        self._spans: dict[str, Span] = {}
        self._root: Activity | None = None
        self._phase: tuple[str, Span] | None = None
        self._question: Attributes = {}
        self._error_class = ""

    @_guard_observer
    def handle_start(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        """Start an activity span, like ``Observer.handle_start``; the first activity is the
        session or run."""
        attributes = statement_attributes(said, content=self._content)
        if self._root is None:
            self._root = activity
            self._question = {
                k: v for k, v in attributes.items() if k == SpanAttributes.INPUT_VALUE
            }
        kind = activity.kinds[0]
        self._spans[activity.iri] = self._start_span(
            activity.label,
            activity.part_of,
            activity.started,
            {
                TYPE: kind,
                **of_kind(kind_of(kind)),
                **attributes,
                **self._record_attributes(activity.iri),
            },
        )

    @_guard_observer
    def handle_end(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        """End an activity span, like ``Observer.handle_end``; ending the first activity ends all
        spans."""
        self._error_class = ending.error_class or self._error_class
        attributes: Attributes = {
            STATUS: ending.status,
            **statement_attributes(said, content=self._content),
        }
        if activity == self._root_iri:
            self._end_phase(ending)
            attributes[RECORDED] = ending.when is not None
            if ending.error:
                ending = replace(ending, error_class=self._error_class)
        span = self._spans[activity]
        span.set_attributes(attributes)
        self._set_status(span, ending)
        span.end(to_nanoseconds(ending.when) if ending.when else None)

    @_guard_observer
    def handle_call(self, activity: Activity, call: Call, step: str = "") -> None:
        """As ``Observer.handle_call``."""
        attributes = call_attributes(call, content=self._content)
        span_attributes = {TYPE: "Call", **attributes, **self._record_attributes(activity.iri)}
        span = self._start_span(call_name(call), step, call.started, span_attributes, client=True)
        error = activity.error or ""
        self._set_status(span, Ending(call.ended, "failed" if error else "completed", error))
        span.end(to_nanoseconds(max(call.started, call.ended)))

    @_guard_observer
    def handle_retrieval(self, step: str, retrieval: Retrieval) -> None:
        """Record retrieval attributes, like ``Observer.handle_retrieval``; retrievals gathered over
        many steps go to the session span."""
        span = self._spans.get(step)
        attributes = retrieval_attributes(retrieval, content=self._content)
        if span is None or not span.is_recording():
            self._spans[self._root_iri].set_attributes(attributes)
        elif retrieval.candidates or retrieval.concepts or retrieval.total:
            span.set_attributes({**of_kind(Kind.RETRIEVER), **self._question, **attributes})
        else:
            span.set_attributes(attributes)

    @_guard_observer
    def handle_selection(self, step: str, selection: Selection) -> None:
        """As ``Observer.handle_selection``."""
        attributes: Attributes = {
            "tgraph.selection.selected": len(selection.selected),
            "tgraph.selection.rejected": len(selection.rejected),
        }
        if self._content:
            chosen = [item.candidate for item in selection.selected]
            attributes |= {**self._question, **document_attributes(chosen)}
        self._spans[step].set_attributes(attributes)

    @_guard_observer
    def handle_answer(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        """As ``Observer.handle_answer``."""
        attributes: Attributes = {
            "tgraph.answer.sentences": len(sentences),
            "tgraph.answer.citations": sum(len(sentence.citations) for sentence in sentences),
        }
        if self._content:
            attributes[SpanAttributes.OUTPUT_VALUE] = text
        self._spans[self._root_iri].set_attributes(attributes)

    @_guard_observer
    def handle_phase(self, phase: str) -> None:
        """Start a phase span, like ``Observer.handle_phase``; the span lasts until another phase
        starts."""
        if self._root is None or (self._phase and self._phase[0] == phase):
            return
        self._end_phase(Ending(None))
        attributes: Attributes = {PHASE: phase, WITHIN: self._root_iri, **of_kind(Kind.CHAIN)}
        self._phase = phase, self._start_span(phase, "", None, attributes)

    @_guard_observer
    def handle_close(self, record: str) -> None:
        """Abort a record without ending, like ``Observer.handle_close``."""
        span = self._spans.get(record)
        if span is not None and span.is_recording():
            self.handle_end(
                record, Ending(None, "aborted", "The record was closed before its end.")
            )

    @property
    def _root_iri(self) -> str:
        """The session or run IRI."""
        return self._root.iri if self._root else ""

    def _record_attributes(self, activity: str) -> Attributes:
        return {IRI: activity, WITHIN: self._root_iri or activity}

    def _start_span(
        self,
        name: str,
        part_of: str,
        started: datetime | None,
        said: Attributes,
        *,
        client: bool = False,
    ) -> Span:
        """Start a span below the ``part_of`` span, phase span, root span or caller span."""
        phase = self._phase[1] if self._phase else None
        parent = self._spans.get(part_of) or phase or self._spans.get(self._root_iri)
        parent_context = self._outside if parent is None else trace.set_span_in_context(parent)
        return self._tracer.start_span(
            name,
            parent_context,
            kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
            attributes=said,
            start_time=to_nanoseconds(started) if started else None,
        )

    def _end_phase(self, ending: Ending) -> None:
        if self._phase is not None:
            self._set_status(self._phase[1], ending)
            self._phase[1].end()
            self._phase = None

    def _set_status(self, span: Span, ending: Ending) -> None:
        """Set span status; error texts require ``content``, since server errors may quote their
        input."""
        if ending.is_good:
            span.set_status(Status(StatusCode.OK))
            return
        span.set_attribute("error.type", ending.error_class or "_OTHER")
        description = ending.error if self._content and ending.error else ending.status
        span.set_status(Status(StatusCode.ERROR, description))
