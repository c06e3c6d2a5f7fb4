"""The record of contexts: what each is derived from, and who made it by which prompt.

That a chunk has a context now is knowledge; how it came about is source, and stays when another
takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.record.agents import associations
from tgraph.store.base import Store
from tgraph.store.statements import Statements, iri


@dataclass(frozen=True, slots=True)
class Situated:
    """A chunk's context. ``key`` stands for what it was made from and by whom; ``error`` tells why
    who was asked made none, where another had to stand in."""

    chunk: str
    document: str
    text: str
    key: str
    error: str = ""

    @property
    def iri(self) -> str:
        return f"{v.URN}context:{v.digest(self.chunk, self.key, self.text)}"


def context_link(chunk: str, context: str) -> Quad:
    """What knowledge says: the chunk has this context."""
    return Quad(NamedNode(chunk), v.tg("context"), NamedNode(context), v.KNOWLEDGE_GRAPH)


def is_recorded(store: Store, context: str) -> bool:
    quads = store.match(NamedNode(context), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH)
    return next(quads, None) is not None


def context_quads(
    made: Situated,
    run: str,
    agent: Agent,
    prompts: Sequence[Prompt],
    started: datetime,
    ended: datetime,
) -> list[Quad]:
    """The context and the activity that made it, as a part of the run."""
    out = Statements(v.SOURCE_GRAPH)
    activity = f"{v.URN}situating:{run.rpartition(':')[2]}:{v.digest(made.iri)}"
    out.add(
        activity,
        (v.RDF_TYPE, [v.prov("Activity"), v.tg("Situating")]),
        (v.RDFS_LABEL, "Context of a chunk"),
        (v.dcterms("isPartOf"), iri(run)),
        (v.prov("used"), iri(made.chunk)),
        (v.prov("startedAtTime"), started),
        (v.prov("endedAtTime"), ended),
        (v.tg("error"), made.error or None),
    )
    associations(out, activity, agent, prompts)
    out.add(
        made.iri,
        (v.RDF_TYPE, [v.prov("Entity"), v.tg("ChunkContext")]),
        (v.prov("wasGeneratedBy"), iri(activity)),
        (v.prov("wasDerivedFrom"), [iri(made.chunk), iri(made.document)]),
        (v.tg("text"), made.text),
        (v.tg("inputHash"), made.key),
    )
    return out.quads
