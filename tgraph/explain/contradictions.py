"""The audit of facts that disagree: each with the documents that say it."""

from __future__ import annotations

from collections.abc import Iterable

from tgraph.explain.names import Names
from tgraph.explain.said import kind_of
from tgraph.index.evidence import documents_of
from tgraph.index.sources import document_of_chunk
from tgraph.index.standing import StandingEvidence
from tgraph.retrieve.contradictions import denials
from tgraph.retrieve.single_values import Contradiction, SingleValues
from tgraph.store.base import Store, select, text_of

Row = tuple[str, str, str, str, str, str]


def find_contradictions(store: Store) -> list[Contradiction]:
    """Every contradiction in knowledge, by subject."""
    parts = ("kind", "subject", "first", "second")
    found = [
        Contradiction(*(text_of(row[part]) for part in parts))  # type: ignore[arg-type]
        for row in select(store, "audit/contradictions")
    ]
    found += [*denials(store), *SingleValues(store).all()]
    return sorted(set(found), key=lambda c: (c.subject, c.first, c.second))


def contradiction_rows(store: Store, about: str = "") -> tuple[Row, ...]:
    """Kind, subject, and for each of the two facts what it says and the paths of its documents."""
    sides = Sides(store)
    rows = (
        (c.kind, sides.subject(c.subject), *sides.of(c.first), *sides.of(c.second))
        for c in find_contradictions(store)
    )
    return tuple(row for row in rows if about.casefold() in row[1].casefold())


class Sides:
    """What facts say, and where."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._names = Names(store, lambda _: "")
        self._stated = StandingEvidence(store, lambda _: True)

    def subject(self, entity: str) -> str:
        """The entity's label."""
        return self._names.of_entity(entity) or entity

    def of(self, fact: str) -> tuple[str, str]:
        """The fact in words, and the paths of the standing documents that say it."""
        return self._names.of(fact), ", ".join(self.paths(fact))

    def paths(self, fact: str) -> list[str]:
        find = self._stated.of_claim if kind_of(fact) == "claim" else self._stated.of_edge
        items = [item for f in (fact, *self._stated.merged_into(fact)) for item in find(f)]
        return sorted(set(self._paths(document_of_chunk(_chunk(item)) for item in items)))

    def _paths(self, documents: Iterable[str]) -> Iterable[str]:
        return (path for _, path in documents_of(self._store, set(documents)).values())


def _chunk(item: object) -> str:
    assert isinstance(item, dict)
    return str(item["wasDerivedFrom"][0].value)
