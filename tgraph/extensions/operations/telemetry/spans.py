"""The spans of one record: their tree, names and times are those of its activities."""

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
    documents,
    kind_of,
    of_kind,
    retrieval_attributes,
    stated,
)
from tgraph.model import Retrieval, Selection, Sentence
from tgraph.models.base import Call
from tgraph.record.activities import Activity
from tgraph.record.observer import Ending, Observer
from tgraph.store.statements import Pair

P = ParamSpec("P")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def nanoseconds(when: datetime) -> int:
    """The time as OpenTelemetry counts it, exactly."""
    return (when - _EPOCH) // _MICROSECOND * 1000


def _harmless(
    told: Callable[Concatenate[SpanObserver, P], None],
) -> Callable[Concatenate[SpanObserver, P], None]:
    """What goes wrong in making a span is counted and costs the span, never the record."""

    def tell(self: SpanObserver, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            told(self, *args, **kwargs)
        except Exception:
            self.harmed()

    update_wrapper(tell, told)
    return tell


class SpanObserver(Observer):
    """Makes the spans of one record. They are children of the span that is current where the
    observer is made; ``harmed`` is called for each that can't be made."""

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

    @_harmless
    def began(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        """As ``Observer.began``; the first is the session or the run."""
        known = stated(said, content=self._content)
        if self._root is None:
            self._root = activity
            self._question = {k: v for k, v in known.items() if k == SpanAttributes.INPUT_VALUE}
        kind = activity.kinds[0]
        self._spans[activity.iri] = self._start(
            activity.label,
            activity.part_of,
            activity.started,
            {TYPE: kind, **of_kind(kind_of(kind)), **known, **self._named(activity.iri)},
        )

    @_harmless
    def ended(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        """As ``Observer.ended``; with the first ends all that has begun."""
        self._error_class = ending.error_class or self._error_class
        known: Attributes = {STATUS: ending.status, **stated(said, content=self._content)}
        if activity == self._whole:
            self._end_phase(ending)
            known[RECORDED] = ending.when is not None
            if ending.error:
                ending = replace(ending, error_class=self._error_class)
        span = self._spans[activity]
        span.set_attributes(known)
        self._set_status(span, ending)
        span.end(nanoseconds(ending.when) if ending.when else None)

    @_harmless
    def called(self, activity: Activity, call: Call, step: str = "") -> None:
        """As ``Observer.called``."""
        known = call_attributes(call, content=self._content)
        said = {TYPE: "Call", **known, **self._named(activity.iri)}
        span = self._start(call_name(call), step, call.started, said, client=True)
        error = activity.error or ""
        self._set_status(span, Ending(call.ended, "failed" if error else "completed", error))
        span.end(nanoseconds(max(call.started, call.ended)))

    @_harmless
    def retrieved(self, step: str, retrieval: Retrieval) -> None:
        """As ``Observer.retrieved``. What was gathered by many steps is said of the session."""
        span = self._spans.get(step)
        known = retrieval_attributes(retrieval, content=self._content)
        if span is None or not span.is_recording():
            self._spans[self._whole].set_attributes(known)
        elif retrieval.candidates or retrieval.concepts or retrieval.total:
            span.set_attributes({**of_kind(Kind.RETRIEVER), **self._question, **known})
        else:
            span.set_attributes(known)

    @_harmless
    def selected(self, step: str, selection: Selection) -> None:
        """As ``Observer.selected``."""
        known: Attributes = {
            "tgraph.selection.selected": len(selection.selected),
            "tgraph.selection.rejected": len(selection.rejected),
        }
        if self._content:
            chosen = [each.candidate for each in selection.selected]
            known |= {**self._question, **documents(chosen)}
        self._spans[step].set_attributes(known)

    @_harmless
    def answered(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        """As ``Observer.answered``."""
        known: Attributes = {
            "tgraph.answer.sentences": len(sentences),
            "tgraph.answer.citations": sum(len(sentence.citations) for sentence in sentences),
        }
        if self._content:
            known[SpanAttributes.OUTPUT_VALUE] = text
        self._spans[self._whole].set_attributes(known)

    @_harmless
    def entered(self, phase: str) -> None:
        """As ``Observer.entered``: a span for as long as nothing else is entered."""
        if self._root is None or (self._phase and self._phase[0] == phase):
            return
        self._end_phase(Ending(None))
        said: Attributes = {PHASE: phase, WITHIN: self._whole, **of_kind(Kind.CHAIN)}
        self._phase = phase, self._start(phase, "", None, said)

    @_harmless
    def left(self, record: str) -> None:
        """As ``Observer.left``: what does not say how it ended will be aborted."""
        span = self._spans.get(record)
        if span is not None and span.is_recording():
            self.ended(record, Ending(None, "aborted", "The record was closed before its end."))

    @property
    def _whole(self) -> str:
        """The IRI of the session or the run."""
        return self._root.iri if self._root else ""

    def _named(self, activity: str) -> Attributes:
        return {IRI: activity, WITHIN: self._whole or activity}

    def _start(
        self,
        name: str,
        part_of: str,
        started: datetime | None,
        said: Attributes,
        *,
        client: bool = False,
    ) -> Span:
        """A span within that of ``part_of``, of the phase, of the whole, or of who asks."""
        phase = self._phase[1] if self._phase else None
        parent = self._spans.get(part_of) or phase or self._spans.get(self._whole)
        within = self._outside if parent is None else trace.set_span_in_context(parent)
        return self._tracer.start_span(
            name,
            within,
            kind=trace.SpanKind.CLIENT if client else trace.SpanKind.INTERNAL,
            attributes=said,
            start_time=nanoseconds(started) if started else None,
        )

    def _end_phase(self, ending: Ending) -> None:
        if self._phase is not None:
            self._set_status(self._phase[1], ending)
            self._phase[1].end()
            self._phase = None

    def _set_status(self, span: Span, ending: Ending) -> None:
        """What went wrong is told in words only where content is wanted: a server's error may quote
        what it was sent."""
        if ending.is_good:
            span.set_status(Status(StatusCode.OK))
            return
        span.set_attribute("error.type", ending.error_class or "_OTHER")
        told = ending.error if self._content and ending.error else ending.status
        span.set_status(Status(StatusCode.ERROR, told))
