"""Observers of a record, notified of recorded values during recording; by default, nobody
observes.

A record notifies its observer of stated values, after stating the values. So an observer's
output agrees with the record, and the record is the same for every observer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tgraph.model import Retrieval, Selection, Sentence
    from tgraph.models.base import Call
    from tgraph.record.activities import Activity
    from tgraph.store.statements import Pair


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of an activity: recorded time ``when`` (None if the record gives no time), status
    and error.

    The error consists of a sentence and, where known, the error class."""

    when: datetime | None
    status: str = "completed"
    error: str = ""
    error_class: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the activity ended without error."""
        return not (self.error or self.error_class)

    @staticmethod
    def from_error(when: datetime | None, error: BaseException | None) -> Ending:
        """Return an ending caused by the error, or a successful ending without error."""
        if error is None:
            return Ending(when)
        status = "failed" if isinstance(error, Exception) else "interrupted"
        return Ending(when, status, str(error), type(error).__name__)


class Observer:
    """An observer of a single record; the base class ignores all notifications.

    Notifications of calls may come from several threads. Overriding methods must raise nothing
    and wait for nobody: recording goes on meanwhile."""

    def handle_start(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        """Handle the start of an activity; ``said`` contains further statements about the
        activity."""

    def handle_end(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        """Handle the end of the activity with the given IRI."""

    def handle_call(self, activity: Activity, call: Call, step: str = "") -> None:
        """Handle a finished call, given as an activity; ``step`` is the enclosing step's IRI."""

    def handle_retrieval(self, step: str, retrieval: Retrieval) -> None:
        """Handle the step's retrieval."""

    def handle_selection(self, step: str, selection: Selection) -> None:
        """Handle the step's selection."""

    def handle_answer(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        """Handle the step's answer text and sentences."""

    def handle_phase(self, phase: str) -> None:
        """Handle a run entering a phase; the record itself contains no phases."""

    def handle_close(self, record: str) -> None:
        """Handle the record's closing, with or without a recorded end; ``record`` is the
        subject's IRI."""


class ObserverGroup(Observer):
    """An observer forwarding every event to its members."""

    def __init__(self, members: Iterable[Observer]) -> None:
        self._members = tuple(members)

    def handle_start(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        pairs = tuple(said)
        for member in self._members:
            member.handle_start(activity, pairs)

    def handle_end(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        pairs = tuple(said)
        for member in self._members:
            member.handle_end(activity, ending, pairs)

    def handle_call(self, activity: Activity, call: Call, step: str = "") -> None:
        for member in self._members:
            member.handle_call(activity, call, step)

    def handle_retrieval(self, step: str, retrieval: Retrieval) -> None:
        for member in self._members:
            member.handle_retrieval(step, retrieval)

    def handle_selection(self, step: str, selection: Selection) -> None:
        for member in self._members:
            member.handle_selection(step, selection)

    def handle_answer(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        for member in self._members:
            member.handle_answer(step, text, sentences)

    def handle_phase(self, phase: str) -> None:
        for member in self._members:
            member.handle_phase(phase)

    def handle_close(self, record: str) -> None:
        for member in self._members:
            member.handle_close(record)


class RecordObservers(Protocol):
    """Observers for records of an open collection, one observer per record."""

    def observer(self) -> Observer:
        """Return the observer of one record."""

    def end(self, message: Callable[[str], None]) -> None:
        """Send pending events; the collection is closed."""
