"""Entity resolution: which names mean the same entity, decided from the names and aliases alone.

The decision is a function of the set of names and of who claims which alias, never of the order in
which documents came in (design, section 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from tgraph.resources import word_set
from tgraph.vocabulary import normalise_name

_PUNCTUATION = re.compile(r"[^\w\s]+", re.UNICODE)
_ARTICLES = ("the ", "a ", "an ")
_OPEN_TYPES = frozenset({"", "concept", "other", "unknown", "thing", "misc"})


def name_key(name: str) -> str:
    """The form in which names are the same: no case, no punctuation, no leading article."""
    key = normalise_name(_PUNCTUATION.sub(" ", normalise_name(name)))
    article = next((one for one in _ARTICLES if key.startswith(one)), "")
    return key[len(article) :] or key or normalise_name(name)


@dataclass(frozen=True, slots=True)
class Name:
    """An entity as resolution sees it: its IRI, its name, its type and the aliases it claims."""

    iri: str
    name: str
    type: str = ""
    aliases: frozenset[str] = field(default_factory=frozenset)

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
    """
    entities = sorted(names, key=lambda item: item.iri)
    groups = _Groups((entity.iri for entity in entities), apart)
    for pair in sorted(together):
        groups.unite(*pair)
    by_key: dict[str, list[Name]] = {}
    claims: dict[str, list[Name]] = {}
    for entity in entities:
        by_key.setdefault(entity.key, []).append(entity)
        for alias in entity.aliases:
            if alias != entity.key:
                claims.setdefault(alias, []).append(entity)
    for same in by_key.values():
        for other in same[1:]:
            groups.join(same[0].iri, other.iri)
    for alias, claimants in sorted(claims.items()):
        claimant = _sole_claimant(claimants)
        for entity in by_key.get(alias, ()):
            if claimant and _compatible(entity.type, claimant.type):
                groups.join(claimant.iri, entity.iri)
    return groups.canonical({entity.iri: entity for entity in entities})


def _sole_claimant(claimants: list[Name]) -> Name | None:
    """The fullest claimant, if every other could be a shorter name of it; else None."""
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


def _fullness(entity: Name) -> tuple[int, int, tuple[int, ...]]:
    key = entity.key
    return len(key.split()), len(key), tuple(-ord(character) for character in entity.iri)


class _Groups:
    """Disjoint sets of IRIs, some of which must not meet."""

    def __init__(self, items: Iterable[str], apart: Iterable[tuple[str, str]]) -> None:
        self._parent = {item: item for item in items}
        self._apart = [pair for pair in apart if set(pair) <= self._parent.keys()]

    def find(self, item: str) -> str:
        root = item
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[item] != root:
            self._parent[item], item = root, self._parent[item]
        return root

    def unite(self, left: str, right: str) -> None:
        """Make them one because somebody says so, where both are known."""
        if {left, right} <= self._parent.keys():
            self.join(left, right)

    def join(self, left: str, right: str) -> None:
        left, right = self.find(left), self.find(right)
        if not any({self.find(a), self.find(b)} == {left, right} for a, b in self._apart):
            self._parent[right] = left

    def canonical(self, names: Mapping[str, Name]) -> dict[str, str]:
        members: dict[str, list[str]] = {}
        for item in self._parent:
            members.setdefault(self.find(item), []).append(item)
        best = {
            root: max(group, key=lambda i: _fullness(names[i])) for root, group in members.items()
        }
        return {i: best[root] for root, group in members.items() for i in group if i != best[root]}
