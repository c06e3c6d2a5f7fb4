"""Contexts of chunks: what each is derived from, and who made it by which prompt."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.record.activities import Authorship, state_entity
from tgraph.store.statements import Statements


@dataclass(frozen=True, slots=True)
class Situated:
    """A chunk's context. ``key`` stands for what it was made from and by whom.

    That the chunk has it now is knowledge; how it came about is source, and stays when another
    takes its place.
    """

    chunk: str
    document: str
    text: str
    key: str

    @property
    def iri(self) -> str:
        return f"{v.URN}context:{v.digest(self.chunk, self.key, self.text)}"


def context_link(chunk: str, context: str) -> Quad:
    """What knowledge says: the chunk has this context."""
    return Quad(NamedNode(chunk), v.tg("context"), NamedNode(context), v.KNOWLEDGE_GRAPH)


def context_quads(made: Situated, how: Authorship) -> list[Quad]:
    """The context and the activity that made it, as a part of the run."""
    out = Statements(v.SOURCE_GRAPH)
    activity = how.activity(
        "situating", ("Situating",), "Context of a chunk", made.iri, used=(made.chunk,)
    )
    activity.state(out)
    state_entity(
        out,
        made.iri,
        "ChunkContext",
        (v.tg("text"), made.text),
        (v.tg("inputHash"), made.key),
        by=activity.iri,
        origins=(made.chunk, made.document),
    )
    return out.quads
