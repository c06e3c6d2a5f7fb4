"""Knowledge generations: publication time and cause, and lookup by time, number or session as
typed by a person."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.errors import EmptyCollectionError, UnknownNameError, UsageError
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
    """A state of knowledge.

    ``published`` is its start time (xsd:dateTime); ``what`` names its cause, such as ``Index
    run`` or ``Retraction``, with ``reason`` and ``person`` of a decision. ``taken`` lists paths
    of documents ingested in the generation, ``ended`` paths of documents that ceased to stand."""

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
    """A generation of knowledge, and the requested point: a time as given, a number, or a
    session IRI."""

    generation: int
    published: str
    name: str


def list_generations(store: Store) -> list[Generation]:
    """Return knowledge generations, newest first."""
    ingested = _accession_paths(store, v.prov("wasGeneratedBy"))
    ended = _accession_paths(store, v.prov("wasInvalidatedBy"))
    batches = reversed(knowledge_batches(store))
    return [_create_generation(store, batch, ingested, ended) for batch in batches]


def _create_generation(
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
        _find_person(store, batch.run),
        tuple(sorted(taken.get(batch.run, ()))),
        tuple(sorted(ended.get(batch.run, ()))),
    )


def _accession_paths(store: Store, by: NamedNode) -> dict[str, list[str]]:
    """Return accession paths by the activity that made or ended the accessions."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for quad in store.match(None, v.RDF_TYPE, v.tg("Accession"), v.SOURCE_GRAPH):
        accession = text_of(quad.subject)
        if activity := text_value(store, accession, by):
            paths[activity].append(text_value(store, accession, v.tg("path")))
    return paths


def _find_person(store: Store, activity: str) -> str:
    for quad in store.match(NamedNode(activity), v.prov("wasAssociatedWith"), None, v.SOURCE_GRAPH):
        pattern = v.RDF_TYPE, v.prov("Person"), v.SOURCE_GRAPH
        if isinstance(quad.object, NamedNode) and next(store.match(quad.object, *pattern), None):
            return text_value(store, quad.object.value, v.RDFS_LABEL)
    return ""


def names_session(point: str) -> bool:
    """Return whether a point in time is named by a session; see ``find_point``."""
    name = point.strip()
    is_time = _DAY.fullmatch(name) or _MOMENT.fullmatch(name)
    return not (name == NOW or is_time or (name.isdecimal() and len(name) < 8))


def find_point(
    store: Store, record: Callable[[], Store], catalogue: str, name: str, now: datetime
) -> PointInTime:
    """Return the generation meant by a point in time: ``now``, a number (0 precedes the first
    generation), an ISO 8601 date (end of day) or date and time (UTC by default), or a session
    named like ``find_session`` arguments (knowledge used by the session).

    ``record`` provides the store with all sessions. Raise ``UsageError`` for a name of no such
    kind, or for a time before the first generation or in the future; ``StoreError`` if nothing
    has been indexed."""
    batches, point_name = knowledge_batches(store), name.strip()
    if not batches:
        raise EmptyCollectionError(
            "Nothing has been indexed yet.", "Run `tgraph index PATH...` first."
        )
    if point_name == NOW:
        return _create_point(batches[-1], NOW)
    if point_name == "0":
        return PointInTime(0, "", point_name)
    for batch in batches:
        if point_name == str(batch.number):
            return _create_point(batch, point_name)
    if _DAY.fullmatch(point_name) or _MOMENT.fullmatch(point_name):
        return _create_point(_find_batch_at(batches, point_name, now), point_name)
    return _of_session(record, catalogue, batches, point_name)


def _create_point(batch: KnowledgeBatch, name: str) -> PointInTime:
    return PointInTime(batch.number, batch.time, name)


def _of_session(
    record: Callable[[], Store], catalogue: str, batches: Iterable[KnowledgeBatch], name: str
) -> PointInTime:
    uuid = name.removeprefix(v.session_iri(""))
    if name != LAST and not re.fullmatch("[0-9a-fA-F-]+", uuid):
        raise _unknown_point_error(name)
    if name.isdecimal() and len(name) < 8:  # the beginning of a UUID has eight characters
        raise UnknownNameError(f"There is no generation {name}.", _LIST)
    store = record()
    session = find_session(store, catalogue, name)
    generation_quads = store.match(
        NamedNode(session.explain_id), v.tg("generation"), None, NamedNode(session.bundle)
    )
    number = next(
        (int(q.object.value) for q in generation_quads if isinstance(q.object, Literal)), 0
    )
    for batch in batches:
        if batch.number == number:
            return _create_point(batch, session.explain_id)
    raise UsageError(f"The session {session.explain_id} was asked of no knowledge.", _LIST)


_LIST = "`tgraph history` lists the generations."


def _unknown_point_error(name: str) -> UsageError:
    return UsageError(
        f"{name!r} is no point in time.",
        "Give a date (2026-03-01), a time (2026-03-01T12:00), a generation or a session; "
        "`tgraph history` and `tgraph sessions` list these.",
    )


def _find_batch_at(batches: Iterable[KnowledgeBatch], text: str, now: datetime) -> KnowledgeBatch:
    """Return the newest batch at a given time."""
    first, last = _parse_time_range(text)
    if first > now:
        raise UsageError(
            f"{text!r} is still to come.", "Leave out the time to ask the current knowledge."
        )
    dated_batches = sorted((datetime.fromisoformat(b.time), b) for b in batches)
    before = [batch for published, batch in dated_batches if published <= last]
    if not before:
        began = dated_batches[0][1].time[:19].replace("T", " ")
        raise UsageError(f"Nothing was known at {text!r} yet.", f"Knowledge begins at {began} UTC.")
    return before[-1]


def _parse_time_range(text: str) -> tuple[datetime, datetime]:
    """Return the earliest and latest moment meant by a date or time text."""
    try:
        if day := _DAY.fullmatch(text):
            offset = datetime.fromisoformat(f"{day[1]}T00:00:00{day[2] or 'Z'}").tzinfo
            date = datetime.fromisoformat(day[1]).date()
            begin, end = (datetime.combine(date, t, offset) for t in (time.min, time.max))
            return begin, end
        parsed = datetime.fromisoformat(text)
    except ValueError as error:
        raise _unknown_point_error(text) from error
    moment = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return moment, moment if "." in text else moment + timedelta(microseconds=999_999)
