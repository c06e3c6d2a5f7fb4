"""The record of an erasure: a bundle of its own, with the hashes of what was rewritten."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent
from tgraph.record.activities import Activity, state_entity
from tgraph.record.agents import SOFTWARE
from tgraph.store.statements import Statements, iri


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What was rewritten (a bundle or a batch), with its hash before and after."""

    subject: str
    before: str
    after: str


def erasing_agents(person: str | None) -> list[Agent]:
    """Who erases: tgraph, and the person who decided if one is named."""
    return [SOFTWARE, *([Agent("person", person)] if person else [])]


def erasure_quads(
    uuid: str,
    document: str,
    reason: str,
    person: str | None,
    collection: str,
    times: tuple[datetime, datetime],
    rewritings: Iterable[Rewriting],
    removed: Iterable[str],
) -> list[Quad]:
    """The bundle of an erasure: the hashes of what it rewrote, and those of the texts it removed
    from the librarian (design, section 3.7)."""
    out = Statements(NamedNode(v.bundle_iri(uuid)))
    subject = v.erasure_iri(uuid)
    activity = Activity(
        subject,
        ("Erasure",),
        "Erasure of a document",
        *times,
        erasing_agents(person),
        used=(document,),
    )
    activity.state(
        out,
        (v.tg("reason"), reason),
        (v.tg("collection"), collection),
        (v.tg("removedText"), sorted(removed)),
    )
    for number, each in enumerate(rewritings):
        state_entity(
            out,
            v.session_part_iri("rewriting", uuid, number),
            "Rewriting",
            (v.tg("rewrote"), iri(each.subject)),
            (v.tg("previousHash"), each.before),
            (v.tg("hash"), each.after),
            by=subject,
        )
    return out.quads
