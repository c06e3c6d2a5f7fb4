"""Entity resolution: which names mean the same entity, decided from the names and aliases alone.

The decision is a function of the set of names and of who claims which alias, never of the order in
which documents came in (design, section 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from tgraph.resources import word_set
from tgraph.vocabulary import entity_iri, normalise_name

_PUNCTUATION = re.compile(r"[^\w\s]+", re.UNICODE)
_ARTICLES = ("the ", "a ", "an ")
_MINTED = entity_iri("")
_OPEN_TYPES = frozenset({"", "concept", "other", "unknown", "thing", "misc"})


def name_key(name: str) -> str:
    """The form in which names are the same: no case, no punctuation, no leading article."""
    key = normalise_name(_PUNCTUATION.sub(" ", normalise_name(name)))
    article = next((one for one in _ARTICLES if key.startswith(one)), "")
    return key[len(article) :] or key or normalise_name(name)


@dataclass(frozen=True, slots=True)
class Name:
    """An entity as resolution sees it: its IRI, its name, its type, the aliases it claims, and what
    a graph says it is the ``same`` as, by IRI."""

    iri: str
    name: str
    type: str = ""
    aliases: frozenset[str] = field(default_factory=frozenset)
    same: frozenset[str] = field(default_factory=frozenset)

    @property
    def identified(self) -> bool:
        """Whether a graph gave it an IRI, so that its name is not what it is known by."""
        return not self.iri.startswith(_MINTED)

    @property
    def key(self) -> str:
        return name_key(self.name)


def resolve(
    names: Iterable[Name],
    apart: Iterable[tuple[str, str]] = (),
    together: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """For each entity that another absorbs, the canonical one's IRI.

    Names with the same key are one entity. A name that is claimed as an alias joins its claimant,
    unless two claimants that can't be the same entity claim it. Canonical is the fullest name: most
    words, then longest, then first in the alphabet. The two of a pair in ``apart`` are never in one
    entity; what would bring them together is not done. The two of a pair ``together`` are in one
    whatever they are called, as far as those apart allow it, and before names are looked at.

    What a graph identifies by an IRI of its own is one with another such only where a graph says
    that they are the same; a name joins it where no other so identified bears that name. Then it is
    canonical.
    """
    entities = sorted(names, key=lambda item: item.iri)
    groups = _Groups(entities, apart)
    same_as = sorted((entity.iri, other) for entity in entities for other in entity.same)
    for pair in (*sorted(together), *same_as):
        groups.unite(*pair)
    by_key: dict[str, list[Name]] = {}
    claims: dict[str, list[Name]] = {}
    for entity in entities:
        by_key.setdefault(entity.key, []).append(entity)
        for alias in entity.aliases:
            if alias != entity.key:
                claims.setdefault(alias, []).append(entity)
    for same in by_key.values():
        for first, second in _bearers(same):
            groups.join(first.iri, second.iri)
    for alias, claimants in sorted(claims.items()):
        if claimant := _sole_claimant(claimants):
            bearers = (e for e in by_key.get(alias, ()) if _compatible(e.type, claimant.type))
            for entity in bearers:
                groups.join(claimant.iri, entity.iri)
    return groups.canonical({entity.iri: entity for entity in entities})


def _bearers(same: list[Name]) -> Iterator[tuple[Name, Name]]:
    """Which entities of one name are to be joined: each with the first, the names with the only one
    that is identified otherwise."""
    identified = [entity for entity in same if entity.identified]
    named = [entity for entity in same if not entity.identified]
    first = identified if len(identified) == 1 else named[:1]
    return ((first[0], other) for other in named if other is not first[0])


def _sole_claimant(claimants: list[Name]) -> Name | None:
    """The fullest claimant, if every other could be a shorter name of it; else None. Of several
    that graphs identify none is."""
    if sum(claimant.identified for claimant in claimants) > 1:
        return None
    best = max(claimants, key=_fullness)
    words = _words(best.name)
    return best if all(_words(other.name) <= words for other in claimants) else None


def _words(name: str) -> set[str]:
    return set(name_key(name).split()) - _honorifics()


@cache
def _honorifics() -> frozenset[str]:
    return word_set("english", "honorifics")  # read late: most commands resolve nothing


def _compatible(left: str, right: str) -> bool:
    return left == right or left in _OPEN_TYPES or right in _OPEN_TYPES


def _fullness(entity: Name) -> tuple[bool, int, int, tuple[int, ...]]:
    key, order = entity.key, tuple(-ord(character) for character in entity.iri)
    return entity.identified, len(key.split()), len(key), order


class _Groups:
    """Disjoint sets of IRIs, some of which must not meet."""

    def __init__(self, items: Collection[Name], apart: Iterable[tuple[str, str]]) -> None:
        self._parent = {item.iri: item.iri for item in items}
        self._apart = [pair for pair in apart if set(pair) <= self._parent.keys()]
        self._identified = {item.iri for item in items if item.identified}

    def find(self, item: str) -> str:
        root = item
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[item] != root:
            self._parent[item], item = root, self._parent[item]
        return root

    def unite(self, left: str, right: str) -> None:
        """Make them one because somebody or a graph says so, where both are known."""
        if {left, right} <= self._parent.keys():
            self._merge(self.find(left), self.find(right))

    def join(self, left: str, right: str) -> None:
        """Make them one because of their names, which is no reason where both are identified."""
        left, right = self.find(left), self.find(right)
        if not {left, right} <= self._identified:
            self._merge(left, right)

    def _merge(self, left: str, right: str) -> None:
        if not any({self.find(a), self.find(b)} == {left, right} for a, b in self._apart):
            self._parent[right] = left
            if right in self._identified:
                self._identified.add(left)

    def canonical(self, names: Mapping[str, Name]) -> dict[str, str]:
        members: dict[str, list[str]] = {}
        for item in self._parent:
            members.setdefault(self.find(item), []).append(item)
        best = {
            root: max(group, key=lambda i: _fullness(names[i])) for root, group in members.items()
        }
        return {i: best[root] for root, group in members.items() for i in group if i != best[root]}
