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

Pair = tuple[str, str]
_CURATES, _NO_ALIAS = "curates", "notAlias"
_EXISTENCE = frozenset({"entity", "edge"})
_VALUES = ("name", "entityType", "description", "keyword", "strength")
_NAMING = ("name", "entityType")
_ENTITY = v.entity_iri("")


@dataclass(frozen=True, slots=True)
class Decisions:
    """Those that stand. ``splits`` and ``joins`` are pairs of entities of the texts, ``denied``
    edges of them, ``denied_entities`` what is not to be an entity, ``stated`` since when the
    document that each note is stands."""

    splits: tuple[Pair, ...] = ()
    joins: tuple[Pair, ...] = ()
    denied: tuple[Triple, ...] = ()
    denied_entities: frozenset[str] = frozenset()
    stated: Mapping[str, str] = field(default_factory=dict)

    def drops(self, entity: object) -> bool:
        """Whether what an IRI or a node names is denied, by it or by the same name otherwise
        written."""
        name = entity.value if isinstance(entity, NamedNode) else entity
        if not self.denied_entities or not isinstance(name, str):
            return False
        return name in self.denied_entities or identity(name) in self.denied_entities

    def partners(self, entity: str) -> Iterator[str]:
        """What was joined with the entity."""
        for pair in self.joins:
            if entity in pair:
                yield from pair

    def prevailing(self, evidence: Sequence[Properties]) -> list[Properties]:
        """The evidence of one entity or edge as it counts: what people stated of it by hand in
        place of what the texts say. What only amends does not count where nothing else stands."""
        notes = [item for item in evidence if _CURATES in item]
        if not notes:
            return list(evidence)
        if all(map(amends, evidence)):
            return []
        notes.sort(key=lambda item: (self._time(item), item["evidence"][0].value))
        owners = {name: item for item in notes for name in _curated(item)}
        stated = {name for item in evidence if _CURATES not in item for name in item}
        aliases = _decided_aliases(notes)
        return [_as_it_counts(item, owners, stated, aliases) for item in evidence]

    def _time(self, note: Properties) -> str:
        document = document_of_chunk(note["wasDerivedFrom"][0].value)
        return v.in_time(self.stated.get(document, ""))


NO_DECISIONS = Decisions()


def identity(entity: str) -> str:
    """What is the same of all ways to write a name; of an IRI that is not made of a name itself."""
    if not entity.startswith(_ENTITY):
        return entity
    return _ENTITY + name_key(unquote(entity.removeprefix(_ENTITY)).replace("-", " "))


def amends(item: Properties) -> bool:
    """Whether an evidence states values of something, and not that there is such a thing."""
    return _CURATES in item and not _EXISTENCE & _curated(item)


def _curated(item: Properties) -> set[str]:
    return {term.value.removeprefix(v.TG) for term in item[_CURATES]}


def _decided_aliases(notes: Iterable[Properties]) -> dict[str, bool]:
    """Whether the name of a key is an alias, as the last note that says so has it."""
    found: dict[str, bool] = {}
    for item in notes:
        found.update({term.value: True for term in item.get("aliasKey", ())})
        found.update({name_key(term.value): False for term in item.get(_NO_ALIAS, ())})
    return found


def _as_it_counts(
    item: Properties,
    owners: Mapping[str, Properties],
    stated: Collection[str],
    aliases: Mapping[str, bool],
) -> Properties:
    """``stated`` are the properties that texts have values of."""
    kept = dict(item)
    for name in _VALUES:
        owner = owners.get(name)
        if item is not owner and (owner is not None or _is_beside(item, name, stated)):
            kept.pop(name, None)
    if "name" in item and "name" not in kept and _CURATES not in item:
        kept["alias"] = [*item.get("alias", ()), *item["name"]]  # a name that the texts have
    for name in ("alias", "aliasKey"):
        terms = [term for term in kept.get(name, ()) if aliases.get(name_key(term.value), True)]
        kept[name] = terms
    return kept


def _is_beside(item: Properties, name: str, stated: Collection[str]) -> bool:
    """Whether a note has the property only to be complete."""
    return _CURATES in item and (amends(item) or (name in _NAMING and name in stated))
