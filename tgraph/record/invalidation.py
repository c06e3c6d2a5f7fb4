"""The record that answers do not stand any more: a later statement, in a bundle of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.model import Agent
from tgraph.record.activities import state_entity, state_invalidation
from tgraph.record.agents import SOFTWARE
from tgraph.record.bundle import INVALIDATION, BundleRecord, Clock
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Questioned:
    """Since when an answer does not stand (an xsd:dateTime text), and why."""

    time: str
    reason: str


class InvalidationRecord(BundleRecord):
    """One invalidation of answers that rest on a document which was retracted.

    An answer is still read after it has been called into question, so it is its standing that is
    invalidated (design, section 3.3).
    """

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(journals, INVALIDATION, uuid, clock)

    def write(
        self,
        document: str,
        reason: str,
        sessions: Iterable[str],
        person: str | None,
        collection: str,
        explain_collection: str,
    ) -> None:
        """The answers of the sessions (UUIDs) are called into question; the record is finished."""
        self._begin(
            "Answers called into question",
            explain_collection,
            (v.tg("reason"), reason),
            (v.tg("collection"), collection),
            agents=(SOFTWARE, *([Agent("person", person)] if person else [])),
            used=(document,),
        )
        ended = self._clock()
        for uuid in sessions:
            standing = v.standing_iri(uuid)
            state_entity(self._out, standing, "Standing", origins=(v.answer_iri(uuid),))
            state_invalidation(self._out, standing, self.subject, ended)
        self.finish("completed")


def questioned(store: Store) -> dict[str, Questioned]:
    """The sessions (IRIs) whose answers do not stand any more, with the first reason."""
    found: dict[str, Questioned] = {}
    for quad in store.match(None, v.prov("wasInvalidatedBy"), None, None):
        subject, activity = quad.subject, quad.object
        if not isinstance(subject, NamedNode) or not isinstance(activity, NamedNode):
            continue
        if not subject.value.startswith(v.standing_iri("")):
            continue
        time = _said(store, subject, v.prov("invalidatedAtTime"))
        said = Questioned(time, _said(store, activity, v.tg("reason")))
        session = v.session_iri(subject.value.removeprefix(v.standing_iri("")))
        if session not in found or v.in_time(said.time) < v.in_time(found[session].time):
            found[session] = said
    return found


def _said(store: Store, subject: NamedNode, predicate: NamedNode) -> str:
    for quad in store.match(subject, predicate, None, None):
        if isinstance(quad.object, Literal):
            return quad.object.value
    return ""
