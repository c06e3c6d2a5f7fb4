"""What people decided about knowledge, as derivation honours it: names told apart or made one,
facts and entities denied, and values stated by hand.

A function of the decisions that stand, of no order but the time at which they were made: splits go
before joins, joins before what names and aliases say; what is denied is out whoever states it,
people included; of two values that people gave the later counts, and both go before the texts'.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from pyoxigraph import NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.extract.resolution import name_key
from tgraph.index.sources import document_of_chunk
from tgraph.index.standing_knowledge import Properties

IriPair = tuple[str, str]
_CURATES, _NO_ALIAS = "curates", "notAlias"
_EXISTENCE = frozenset({"entity", "edge"})
_VALUES = ("name", "entityType", "description", "keyword", "strength")
_NAMING = ("name", "entityType")
_ENTITY = v.entity_iri("")


@dataclass(frozen=True, slots=True)
class Decisions:
    """Standing decisions made by people.

    ``splits`` and ``joins`` are pairs of entities from the texts, ``denied`` contains denied
    edges of the texts, ``denied_entities`` contains names denied as entities, and ``stated``
    maps each note's document to the time since when the document stands."""

    splits: tuple[IriPair, ...] = ()
    joins: tuple[IriPair, ...] = ()
    denied: tuple[Triple, ...] = ()
    denied_entities: frozenset[str] = frozenset()
    stated: Mapping[str, str] = field(default_factory=dict)

    def drops(self, entity: object) -> bool:
        """Return whether an IRI or node denotes a denied entity, ignoring spelling differences."""
        name = entity.value if isinstance(entity, NamedNode) else entity
        if not self.denied_entities or not isinstance(name, str):
            return False
        return name in self.denied_entities or normalise_entity(name) in self.denied_entities

    def partners(self, entity: str) -> Iterator[str]:
        """Yield the members of all pairs joined with the entity."""
        for pair in self.joins:
            if entity in pair:
                yield from pair

    def prevailing(self, evidence: Sequence[Properties]) -> list[Properties]:
        """Return counting evidence of an entity or edge, with handmade notes replacing text
        values.

        Notes that only amend values count for nothing where no other evidence stands."""
        notes = [item for item in evidence if _CURATES in item]
        if not notes:
            return list(evidence)
        if all(map(is_amendment, evidence)):
            return []
        notes.sort(key=lambda item: (self._note_time(item), item["evidence"][0].value))
        owners = {name: item for item in notes for name in _curated_properties(item)}
        text_properties = {name for item in evidence if _CURATES not in item for name in item}
        aliases = _decided_aliases(notes)
        return [_as_it_counts(item, owners, text_properties, aliases) for item in evidence]

    def _note_time(self, note: Properties) -> str:
        document = document_of_chunk(note["wasDerivedFrom"][0].value)
        return v.in_time(self.stated.get(document, ""))


NO_DECISIONS = Decisions()


def normalise_entity(entity: str) -> str:
    """Normalise an entity IRI across spellings of the entity name; return other IRIs unchanged."""
    if not entity.startswith(_ENTITY):
        return entity
    return _ENTITY + name_key(unquote(entity.removeprefix(_ENTITY)).replace("-", " "))


def is_amendment(item: Properties) -> bool:
    """Return whether evidence only states property values, without stating existence."""
    return _CURATES in item and not _EXISTENCE & _curated_properties(item)


def _curated_properties(item: Properties) -> set[str]:
    return {term.value.removeprefix(v.TG) for term in item[_CURATES]}


def _decided_aliases(notes: Iterable[Properties]) -> dict[str, bool]:
    """Return alias decisions by name key; the latest note about a key decides."""
    alias_decisions: dict[str, bool] = {}
    for item in notes:
        alias_decisions.update({term.value: True for term in item.get("aliasKey", ())})
        alias_decisions.update({name_key(term.value): False for term in item.get(_NO_ALIAS, ())})
    return alias_decisions


def _as_it_counts(
    item: Properties,
    owners: Mapping[str, Properties],
    stated: Collection[str],
    aliases: Mapping[str, bool],
) -> Properties:
    """Return an evidence's properties, minus values overruled by notes.

    ``stated`` contains properties with values from the texts."""
    properties = dict(item)
    for name in _VALUES:
        owner = owners.get(name)
        if item is not owner and (owner is not None or _is_beside(item, name, stated)):
            properties.pop(name, None)
    if "name" in item and "name" not in properties and _CURATES not in item:
        properties["alias"] = [*item.get("alias", ()), *item["name"]]  # a name that the texts have
    for name in ("alias", "aliasKey"):
        terms = [
            term for term in properties.get(name, ()) if aliases.get(name_key(term.value), True)
        ]
        properties[name] = terms
    return properties


def _is_beside(item: Properties, name: str, stated: Collection[str]) -> bool:
    """Return whether a note includes the property only for completeness."""
    return _CURATES in item and (is_amendment(item) or (name in _NAMING and name in stated))
