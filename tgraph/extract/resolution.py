"""Entity resolution: which names mean the same entity, decided from the names and aliases alone.

The decision is a function of the set of names and of who claims which alias, never of the order in
which documents came in (design, section 3.4).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from tgraph.resources import load_tables, word_set
from tgraph.vocabulary import entity_iri, is_row_iri, normalise_name

_PUNCTUATION = re.compile(r"[^\w\s]+", re.UNICODE)
_INITIALS = re.compile(r"\b[^\W\d_](?: [^\W\d_])+\b")
_ARTICLES = ("the ", "a ", "an ")
_MINTED = entity_iri("")
_LONGEST_FORM = 4
"""Words of an abbreviated legal form."""
_OPEN_TYPES = frozenset({"", "concept", "other", "unknown", "thing", "misc"})


def name_key(name: str) -> str:
    """Return a comparison key for names, ignoring case, punctuation and leading articles.

    Initials are one word with and without full stops (``U.S. Steel``, ``US Steel``), and a legal
    form at the end is the same in full and abbreviated (``Acme Corp.``, ``Acme Corporation``).
    An initialism that reads as a word (``US``, ``I.T.``) keeps its capitals, so that the key is
    not that of the word."""
    plain = _plain_words(name)
    key = _join_initials(plain)
    if key in _load_function_words() and (key != plain or name.split()[-1].isupper()):
        return key.upper()
    return _write_legal_form_out(key) or normalise_name(name)


def _plain_words(name: str) -> str:
    key = normalise_name(_PUNCTUATION.sub(" ", normalise_name(name)))
    article = next((candidate for candidate in _ARTICLES if key.startswith(candidate)), "")
    return key if _INITIALS.match(key) else key[len(article) :] or key


def _join_initials(key: str) -> str:
    """Return the key with neighbouring single letters as one word (``n a s a`` as ``nasa``)."""
    return _INITIALS.sub(lambda run: run[0].replace(" ", ""), key)


def _write_legal_form_out(key: str) -> str:
    """Return the key with an abbreviated legal form at its end written out; the name before must
    not be empty."""
    words, forms = key.split(), _load_legal_forms()
    for start in range(max(1, len(words) - _LONGEST_FORM), len(words)):
        if form := forms.get(" ".join(words[start:])):
            return " ".join((*words[:start], form))
    return key


def describe_same_name(first: str, second: str) -> str:
    """Return in words why two names with the same key are the same name."""
    plain = [_plain_words(name) for name in (first, second)]
    joined = [_join_initials(key) for key in plain]
    reasons = []
    if plain[0] != plain[1] and joined != plain:
        reasons.append("initials with and without full stops")
    if joined[0] != joined[1]:
        reasons.append("a legal form in full and abbreviated")
    grounds = f" ({', '.join(reasons)})" if reasons else ""
    return f"{first!r} and {second!r} are the same name{grounds}"


@dataclass(frozen=True, slots=True)
class Name:
    """An entity for resolution: IRI, name, type, claimed aliases, ``same`` IRIs stated by graphs,
    and the key on record, if any."""

    iri: str
    name: str
    type: str = ""
    aliases: frozenset[str] = field(default_factory=frozenset)
    same: frozenset[str] = field(default_factory=frozenset)
    recorded_key: str = ""

    @property
    def is_identified(self) -> bool:
        """Whether a graph supplied the entity's IRI, or a row its place: identity is independent of
        names."""
        return not self.iri.startswith(_MINTED) or is_row_iri(self.iri)

    @property
    def key(self) -> str:
        return self.recorded_key or name_key(self.name)


def resolve_entities(
    names: Iterable[Name],
    apart: Iterable[tuple[str, str]] = (),
    together: Iterable[tuple[str, str]] = (),
) -> dict[str, str]:
    """Return canonical IRIs by absorbed entity IRI.

    Names with the same key are one entity. A name claimed as an alias joins its claimant,
    unless two claimants that can't be the same entity claim it. Canonical is the fullest name:
    most words, then longest, then first in the alphabet. The two of a pair in ``apart`` are
    never in one entity; any union joining them is skipped. The two of a pair ``together`` are
    in one whatever their names, as far as pairs apart allow it, and before names are
    considered.

    Entities identified by graph IRIs are one only where a graph says that they are the same; a
    name joins such an entity if no other identified entity bears that name. Then the identified
    entity is canonical."""
    entities = sorted(names, key=lambda item: item.iri)
    groups = _Groups(entities, apart)
    same_as = sorted((entity.iri, same_iri) for entity in entities for same_iri in entity.same)
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
        for first, second in _pair_bearers(same):
            groups.join(first.iri, second.iri)
    for alias, claimants in sorted(claims.items()):
        if claimant := _sole_claimant(claimants):
            bearers = (e for e in by_key.get(alias, ()) if _types_compatible(e.type, claimant.type))
            for entity in bearers:
                groups.join(claimant.iri, entity.iri)
    return groups.canonical({entity.iri: entity for entity in entities})


def _pair_bearers(same: list[Name]) -> Iterator[tuple[Name, Name]]:
    """Return pairs of equally named entities to join: names join the sole identified entity,
    otherwise the leading name."""
    identified = [entity for entity in same if entity.is_identified]
    unidentified = [entity for entity in same if not entity.is_identified]
    first = identified if len(identified) == 1 else unidentified[:1]
    return ((first[0], bearer) for bearer in unidentified if bearer is not first[0])


def _sole_claimant(claimants: list[Name]) -> Name | None:
    """Return the fullest claimant, provided other claimants could be shorter names.

    Return None otherwise, and for several claimants identified by graphs."""
    if sum(claimant.is_identified for claimant in claimants) > 1:
        return None
    best = max(claimants, key=_fullness_key)
    words = _name_words(best.name)
    return (
        best
        if all(_name_words(shorter_claimant.name) <= words for shorter_claimant in claimants)
        else None
    )


def _name_words(name: str) -> set[str]:
    return set(name_key(name).split()) - _load_honorifics()


@cache
def _load_honorifics() -> frozenset[str]:
    return word_set("english", "honorifics")  # read late: most commands resolve nothing


@cache
def _load_function_words() -> frozenset[str]:
    return word_set("words", "stop_words")


@cache
def _load_legal_forms() -> Mapping[str, str]:
    """Return forms written out, by abbreviation, as they stand in keys."""
    forms: dict[str, str] = {}
    for entries in load_tables("legal_forms").values():
        for entry in entries.split(";"):
            full, _, abbreviations = entry.partition("=")
            for abbreviation in filter(None, (full, *abbreviations.split(","))):
                forms[normalise_name(abbreviation)] = normalise_name(full)
    return forms


def _types_compatible(left: str, right: str) -> bool:
    return left == right or left in _OPEN_TYPES or right in _OPEN_TYPES


def _fullness_key(entity: Name) -> tuple[bool, int, int, int, tuple[int, ...]]:
    key, order = entity.key, tuple(-ord(character) for character in entity.iri)
    written = len(_join_initials(_plain_words(entity.name)))
    return entity.is_identified, len(key.split()), len(key), written, order


class _Groups:
    """Disjoint sets of IRIs, with pairs kept apart."""

    def __init__(self, items: Collection[Name], apart: Iterable[tuple[str, str]]) -> None:
        self._parent = {item.iri: item.iri for item in items}
        self._apart = [pair for pair in apart if set(pair) <= self._parent.keys()]
        self._identified = {item.iri for item in items if item.is_identified}

    def find(self, item: str) -> str:
        root = item
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[item] != root:
            self._parent[item], item = root, self._parent[item]
        return root

    def unite(self, left: str, right: str) -> None:
        """Unite entities declared equal by a person or graph, if both are known."""
        if {left, right} <= self._parent.keys():
            self._merge_sets(self.find(left), self.find(right))

    def join(self, left: str, right: str) -> None:
        """Join entities because of equal names, unless both are identified."""
        left, right = self.find(left), self.find(right)
        if not {left, right} <= self._identified:
            self._merge_sets(left, right)

    def _merge_sets(self, left: str, right: str) -> None:
        if not any({self.find(a), self.find(b)} == {left, right} for a, b in self._apart):
            self._parent[right] = left
            if right in self._identified:
                self._identified.add(left)

    def canonical(self, names: Mapping[str, Name]) -> dict[str, str]:
        members: dict[str, list[str]] = {}
        for item in self._parent:
            members.setdefault(self.find(item), []).append(item)
        best = {
            root: max(group, key=lambda i: _fullness_key(names[i]))
            for root, group in members.items()
        }
        return {i: best[root] for root, group in members.items() for i in group if i != best[root]}
