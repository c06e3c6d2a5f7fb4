"""The generations of knowledge: when each was published and what made it, and finding one by what a
person types: a time, a number, a session."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import NothingIndexedError, UnknownNameError, UsageError
from tgraph.explain.as_of.store import KnowledgeBatch, knowledge_batches
from tgraph.explain.trace.sessions import LAST, find_session
from tgraph.index.sources import text_value
from tgraph.store.base import Store, text_of

NOW = "now"
"""The newest generation."""

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(Z|[+-]\d\d:\d\d)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ].*")


@dataclass(frozen=True, slots=True)
class Generation:
    """One state of knowledge. ``published`` is since when there was it (xsd:dateTime); ``what``
    says what made it, as ``Index run`` or ``Retraction``, with the ``reason`` and the ``person``
    of a decision. ``taken`` are the paths of documents that were taken in then, ``ended`` of those
    that ceased to stand."""

    number: int
    published: str
    activity: str
    what: str
    reason: str
    person: str
    taken: tuple[str, ...]
    ended: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PointInTime:
    """A generation of knowledge, and as of what it was asked for: a time as it was given, the
    number, or a session's IRI."""

    generation: int
    published: str
    name: str


def list_generations(store: Store) -> list[Generation]:
    """The generations of knowledge, the newest first."""
    taken = _accessions(store, v.prov("wasGeneratedBy"))
    ended = _accessions(store, v.prov("wasInvalidatedBy"))
    batches = reversed(knowledge_batches(store))
    return [_generation(store, batch, taken, ended) for batch in batches]


def _generation(
    store: Store,
    batch: KnowledgeBatch,
    taken: Mapping[str, list[str]],
    ended: Mapping[str, list[str]],
) -> Generation:
    return Generation(
        batch.number,
        batch.time,
        batch.run,
        text_value(store, batch.run, v.RDFS_LABEL) or "Change",
        text_value(store, batch.run, v.tg("reason")),
        _person(store, batch.run),
        tuple(sorted(taken.get(batch.run, ()))),
        tuple(sorted(ended.get(batch.run, ()))),
    )


def _accessions(store: Store, by: NamedNode) -> dict[str, list[str]]:
    """The paths of the accessions by the activity that made or ended them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Accession"), v.SOURCE_GRAPH):
        accession = text_of(quad.subject)
        if activity := text_value(store, accession, by):
            found[activity].append(text_value(store, accession, v.tg("path")))
    return found


def _person(store: Store, activity: str) -> str:
    for quad in store.match(NamedNode(activity), v.prov("wasAssociatedWith"), None, v.SOURCE_GRAPH):
        about = v.RDF_TYPE, v.prov("Person"), v.SOURCE_GRAPH
        if isinstance(quad.object, NamedNode) and next(store.match(quad.object, *about), None):
            return text_value(store, quad.object.value, v.RDFS_LABEL)
    return ""


def find_point(
    store: Store, record: Callable[[], Store], catalogue: str, name: str, now: datetime
) -> PointInTime:
    """The generation that the name means: ``now``, a number (0 for before the first), an ISO
    8601 date (the end of that day) or date and time (UTC unless it says otherwise), or a session,
    named as for ``find_session`` (what it knew). ``record`` gives the store with all sessions.

    ``UsageError`` for a name that means none of these, for a time before the first generation or
    to come; ``StoreError`` where nothing has been indexed.
    """
    batches, wanted = knowledge_batches(store), name.strip()
    if not batches:
        raise NothingIndexedError(
            "Nothing has been indexed yet.", "Run `tgraph index PATH...` first."
        )
    if wanted == NOW:
        return _point(batches[-1], NOW)
    if wanted == "0":
        return PointInTime(0, "", wanted)
    for batch in batches:
        if wanted == str(batch.number):
            return _point(batch, wanted)
    if _DAY.fullmatch(wanted) or _MOMENT.fullmatch(wanted):
        return _point(_at(batches, wanted, now), wanted)
    return _of_session(record, catalogue, batches, wanted)


def _point(batch: KnowledgeBatch, name: str) -> PointInTime:
    return PointInTime(batch.number, batch.time, name)


def _of_session(
    record: Callable[[], Store], catalogue: str, batches: Iterable[KnowledgeBatch], name: str
) -> PointInTime:
    uuid = name.removeprefix(v.session_iri(""))
    if name != LAST and not re.fullmatch("[0-9a-fA-F-]+", uuid):
        raise _unknown(name)
    if name.isdecimal() and len(name) < 8:  # the beginning of a UUID has eight characters
        raise UnknownNameError(f"There is no generation {name}.", _LIST)
    store = record()
    found = find_session(store, catalogue, name)
    asked = store.match(
        NamedNode(found.explain_id), v.tg("generation"), None, NamedNode(found.bundle)
    )
    number = next((int(q.object.value) for q in asked if isinstance(q.object, Literal)), 0)
    for batch in batches:
        if batch.number == number:
            return _point(batch, found.explain_id)
    raise UsageError(f"The session {found.explain_id} was asked of no knowledge.", _LIST)


_LIST = "`tgraph history` lists the generations."


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"{name!r} is no point in time.",
        "Give a date (2026-03-01), a time (2026-03-01T12:00), a generation or a session; "
        "`tgraph history` and `tgraph sessions` list these.",
    )


def _at(batches: Iterable[KnowledgeBatch], text: str, now: datetime) -> KnowledgeBatch:
    """The batch that was the newest at a time."""
    first, last = _times(text)
    if first > now:
        raise UsageError(f"{text!r} is still to come.", "Leave it out to ask what is known now.")
    known = sorted((datetime.fromisoformat(b.time), b) for b in batches)
    before = [batch for published, batch in known if published <= last]
    if not before:
        began = known[0][1].time[:19].replace("T", " ")
        raise UsageError(f"Nothing was known at {text!r} yet.", f"Knowledge begins at {began} UTC.")
    return before[-1]


def _times(text: str) -> tuple[datetime, datetime]:
    """The first and the last moment that the text means."""
    try:
        if day := _DAY.fullmatch(text):
            offset = datetime.fromisoformat(f"{day[1]}T00:00:00{day[2] or 'Z'}").tzinfo
            date = datetime.fromisoformat(day[1]).date()
            begin, end = (datetime.combine(date, t, offset) for t in (time.min, time.max))
            return begin, end
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise _unknown(text) from error
    moment = found if found.tzinfo else found.replace(tzinfo=UTC)
    return moment, moment if "." in text else moment + timedelta(microseconds=999_999)
