"""Who is told of a record what goes into it, as it does: by itself nobody.

A record tells its observer the values that it states, once they are stated. So what an observer
makes of them says what the record says, and the record is the same whoever observes.
"""

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
    """How an activity ended: ``when``, as the record says (None where that doesn't say), with which
    status, and what went wrong: a sentence, and the class of the error where that is known."""

    when: datetime | None
    status: str = "completed"
    error: str = ""
    error_class: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.error or self.error_class)

    @staticmethod
    def by(when: datetime | None, error: BaseException | None) -> Ending:
        """Ended by the error, or well."""
        if error is None:
            return Ending(when)
        status = "failed" if isinstance(error, Exception) else "interrupted"
        return Ending(when, status, str(error), type(error).__name__)


class Observer:
    """Who observes one record. This one ignores what it is told.

    Calls may be told from several threads. Whoever overrides this raises nothing and waits for
    nobody: the record is written meanwhile.
    """

    def began(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        """An activity has begun; ``said`` is what is stated of it beside."""

    def ended(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        """The activity of that IRI has ended."""

    def called(self, activity: Activity, call: Call, step: str = "") -> None:
        """A call was made, as that activity, within the step of that IRI."""

    def retrieved(self, step: str, retrieval: Retrieval) -> None:
        """The step found that."""

    def selected(self, step: str, selection: Selection) -> None:
        """The step selected that."""

    def answered(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        """The step wrote that."""

    def entered(self, phase: str) -> None:
        """The run has come to a phase, which is not on record by itself."""

    def left(self, record: str) -> None:
        """The record of that subject was closed, whether it says how that ended or not."""


class ObserverGroup(Observer):
    """Tells each of its members what it is told."""

    def __init__(self, members: Iterable[Observer]) -> None:
        self._members = tuple(members)

    def began(self, activity: Activity, said: Iterable[Pair] = ()) -> None:
        pairs = tuple(said)
        for member in self._members:
            member.began(activity, pairs)

    def ended(self, activity: str, ending: Ending, said: Iterable[Pair] = ()) -> None:
        pairs = tuple(said)
        for member in self._members:
            member.ended(activity, ending, pairs)

    def called(self, activity: Activity, call: Call, step: str = "") -> None:
        for member in self._members:
            member.called(activity, call, step)

    def retrieved(self, step: str, retrieval: Retrieval) -> None:
        for member in self._members:
            member.retrieved(step, retrieval)

    def selected(self, step: str, selection: Selection) -> None:
        for member in self._members:
            member.selected(step, selection)

    def answered(self, step: str, text: str, sentences: Sequence[Sentence]) -> None:
        for member in self._members:
            member.answered(step, text, sentences)

    def entered(self, phase: str) -> None:
        for member in self._members:
            member.entered(phase)

    def left(self, record: str) -> None:
        for member in self._members:
            member.left(record)


class RecordObservers(Protocol):
    """Who observes the records of an open collection, each record with an observer of its own."""

    def observer(self) -> Observer:
        """Return the observer of one record."""

    def end(self, message: Callable[[str], None]) -> None:
        """Send what has not been sent; the collection is closed."""
