"""Entities as a question sees them: what knowledge says of them, and where texts speak of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph.index.counts import degree_of
from tgraph.model import Evidence, Item
from tgraph.retrieve.base import Context
from tgraph.store.base import select, text_of


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity of the knowledge graph with its relationships counted.

    ``described`` are the places that its descriptions come from, ``named`` all that speak of it.
    """

    iri: str
    label: str
    type: str
    description: str
    links: int
    described: tuple[Evidence, ...]
    named: tuple[Evidence, ...]

    @property
    def item(self) -> Item:
        about = ". ".join(part for part in (self.type, self.description) if part)
        count = f"{self.links} relationship{'' if self.links == 1 else 's'}"
        return Item("entity", self.iri, self.label, f"{about} ({count})".strip())


def known_entities(context: Context, entities: Sequence[str]) -> dict[str, KnownEntity]:
    """Those of the entities that knowledge holds, in the order given."""
    memory = context.remembered("entities", 20_000)
    return memory.get_all(entities, lambda missing: _read(missing, context))


def _read(entities: list[str], context: Context) -> dict[str, KnownEntity]:
    nodes = [NamedNode(entity) for entity in entities]
    said: dict[str, dict[str, list[str]]] = {}
    for row in select(context.store, "retrieve/entities", {"entities": nodes}, union=False):
        known = said.setdefault(text_of(row["entity"]), {})
        for column in ("label", "type", "description"):
            values = known.setdefault(column, [])
            if (value := text_of(row[column])) and value not in values:
                values.append(value)
    places = context.evidence.of_entities(list(said))
    return {
        entity: KnownEntity(
            entity,
            about["label"][0],
            ", ".join(about["type"]),
            " ".join(about["description"]),
            degree(context, entity),
            tuple(e for e, text in places.get(entity, ()) if text),
            tuple(e for e, _ in places.get(entity, ())),
        )
        for entity, about in said.items()
    }


def degree(context: Context, entity: str) -> int:
    """As ``degree_of``."""

    def count() -> int:
        table = context.table()
        return degree_of(context.store, entity) if table is None else table.degree(entity)

    found: int = context.remembered("degrees", 100_000).get(entity, count)
    return found
