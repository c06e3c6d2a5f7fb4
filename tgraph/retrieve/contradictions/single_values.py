"""What a thing has one of: relations that are functional, and values of them that differ.

A relation is functional that the graph declares an ``owl:FunctionalProperty`` (OWL 2, section
9.2.7), that names a place of birth or death, a parent or a capital, or that gives a measure. Facts
count as different only where they can't both be true: a place inside another, a rounded number or
another unit is no disagreement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.standing_knowledge import StandingEvidence
from tgraph.resources import name_list
from tgraph.retrieve.labels import local_name
from tgraph.store.base import Store, select
from tgraph.store.read_ahead import ReadAhead

# --- amounts ---


_MEASURES = (
    "length height width breadth beam depth draught draft weight mass tonnage displacement area"
    " elevation altitude diameter radius circumference thickness wingspan"
)

MEASURES = frozenset(_MEASURES.split())
"""What a thing has one amount of. What changes with time (age, price, population) is not here."""

_ADJECTIVES = {"long": "length", "high": "height", "tall": "height", "wide": "width"} | {
    "broad": "width", "deep": "depth", "thick": "thickness", "heavy": "weight"
}  # fmt: skip
_HELPING = "have has had be is was were measure measures a an the of with its in"
_HELPS = frozenset(_HELPING.split())

_UNITS: Mapping[str, tuple[str, float]] = {
    name: (dimension, size)
    for dimension, sizes in {
        "length": {
            "mm millimetre millimetres millimeter millimeters": 0.001,
            "cm centimetre centimetres centimeter centimeters": 0.01,
            "m metre metres meter meters": 1.0,
            "km kilometre kilometres kilometer kilometers": 1000.0,
            "inch inches": 0.0254,
            "ft foot feet": 0.3048,
            "yard yards": 0.9144,
            "fathom fathoms": 1.8288,
            "mile miles": 1609.344,
        },
        "mass": {
            "g gram grams gramme grammes": 0.001,
            "kg kilogram kilograms kilogramme kilogrammes": 1.0,
            "tonne tonnes": 1000.0,
            "lb lbs pound pounds": 0.45359237,
        },
        "tons": {"ton tons": 1.0},  # long, short, metric, or of register
        "area": {
            "hectare hectares ha": 10_000.0,
            "acre acres": 4046.8564224,
        },
    }.items()
    for names, size in sizes.items()
    for name in names.split()
}
"""By name: what a unit measures, and its size in the basic unit of that."""

_SQUARE = re.compile(r"\b(?:square|sq\.?)\s+(\w+)|\b(\w+)(?:²|\^2)")
_VALUE = re.compile(r"(?:(about|around|nearly|almost|some|roughly|~|c\.|ca\.)\s*)?"
                    r"(\d[\d,]*(?:\.\d+)?)\s*([^\d]*)")  # fmt: skip
_NUMBERS = frozenset({"integer", "decimal", "double", "float", "nonNegativeInteger"})


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in the basic unit of its dimension (empty where it has no unit), and how much it may
    be off as it is said: half a unit of its last digit that counts, more where it is about so."""

    dimension: str
    value: float
    slack: float

    def differs(self, other: Amount) -> bool:
        """Whether it is another amount of the same sort, beyond rounding."""
        if self.dimension != other.dimension:
            return False
        return abs(self.value - other.value) > (self.slack + other.slack) * (1 + 1e-9)


@cache
def measured(predicate: NamedNode) -> tuple[str, str] | None:
    """What of a thing a relation gives the amount of, such as ``length``, and in which unit (empty
    where the value says that); None for a relation that does something else."""
    words = re.findall(r"[\w²^]+", local_name(predicate.value).replace("-", " ").lower())
    phrase, unit = _without_unit(words)
    kept = [_ADJECTIVES.get(word, word) for word in phrase if word not in _HELPS]
    if not kept or kept[-1] not in MEASURES or any(word[0].isdigit() for word in kept):
        return None
    return " ".join(kept), unit


def _without_unit(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """What stands before "in UNIT" at the end, and the unit."""
    if "in" in words:
        place = len(words) - 1 - list(reversed(words)).index("in")
        unit = " ".join(words[place + 1 :])
        if _unit_named(unit):
            return words[:place], unit
    return words, ""


def amount_of(value: Literal, unit: str = "") -> Amount | None:
    """The amount of a value of such a relation; None where it is none that can be compared (a
    bound, several numbers, a unit that is not known)."""
    found = _VALUE.fullmatch(value.value.strip().lower())
    if found is None:
        return None
    about, digits, said = found.groups()
    if said.strip() and (unit or value.datatype.value.rpartition("#")[2] in _NUMBERS):
        return None
    known = _unit_named(unit or said.strip().rstrip("."))
    if known is None:
        return None
    dimension, size = known
    slack = _last_digit(digits.replace(",", "")) / 2 * (2 if about else 1)
    return Amount(dimension, float(digits.replace(",", "")) * size, slack * size)


def _unit_named(name: str) -> tuple[str, float] | None:
    if not name:
        return "", 1.0
    if square := _SQUARE.fullmatch(name):
        found = _UNITS.get(square[1] or square[2])
        return ("area", found[1] ** 2) if found and found[0] == "length" else None
    return _UNITS.get(name)


def _last_digit(digits: str) -> float:
    """What one unit of the last digit that counts is worth; zeros at the end of a whole number may
    be there for its size alone."""
    whole, _, decimals = digits.partition(".")
    if decimals:
        return float(10.0 ** -len(decimals))
    stripped = whole.rstrip("0")
    return float(10.0 ** (len(whole) - len(stripped))) if stripped else 1.0


# --- places ---


_WIDE = re.compile(
    r"\b(?:africa|america|antarctic|antarctica|archipelago|asia|australasia|bay|canton|coast|"
    r"continent|county|department|district|empire|england|europe|glacier|gulf|highlands|island|"
    r"islands|isle|isles|kingdom|lake|land|mountain|mountains|oceania?|ocean|peninsula|prefecture|"
    r"province|region|republic|river|scandinavia|scotland|sea|shelf|shire|sound|state|states|strait|"
    r"territory|union|valley|wales|north|south|east|west|northern|southern|eastern|western|"
    r"mediterranean|arctic|atlantic|pacific|baltic)\b|shire\b"
)
"""Words of the names of regions and waters."""

_COUNTRIES = frozenset(name_list("regions", "names"))


def is_region(name: str) -> bool:
    """Whether a name, normalised, is of a country, a region or a water rather than of a town."""
    bare = name.removeprefix("the ")
    return bare in _COUNTRIES or _WIDE.search(bare) is not None


# --- single values ---


ContradictionKind = Choice["values", "amounts", "denial", "claims"]

FUNCTIONAL = NamedNode("http://www.w3.org/2002/07/owl#FunctionalProperty")

_TIME = re.compile(r"-?\d{4}(?:-\d\d){0,2}(?:T.*)?")
_PLACE_TYPES = frozenset({"place", "location", "gpe", "city", "town", "village", "settlement"})
_PERSON_TYPES = frozenset({"person"})

_SINGLE = {
    "born": "place of birth", "birth place": "place of birth", "birthplace": "place of birth",
    "place birth": "place of birth", "died": "place of death", "die": "place of death",
    "death place": "place of death", "place death": "place of death", "mother": "mother",
    "father": "father", "capital": "capital", "capital city": "capital",
}  # fmt: skip
"""Relations with one value, by their words without helping ones."""

_OF = "capital of"
_HELPING_SINGLE = "be is was were have has had a an the in at as of by its"
_HELPS_SINGLE = frozenset(_HELPING_SINGLE.split())


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two facts (edges, or claims) about a subject that can't both be true, all by IRI."""

    kind: ContradictionKind
    subject: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class _Said:
    """A fact as something that its thing has one of: ``what`` of it, and the value."""

    thing: str
    what: str
    value: NamedNode | Literal
    edge: str
    unit: str = ""


class SingleValues:
    """Reads one store."""

    def __init__(self, store: Store) -> None:
        self._store = ReadAhead(store)
        declared = store.match(None, v.RDF_TYPE, FUNCTIONAL, None)
        self._declared = {q.subject for q in declared if isinstance(q.subject, NamedNode)}

    def all(self) -> Iterator[Contradiction]:
        """Every pair of facts in knowledge that differ in what there is one of."""
        things: dict[tuple[str, str], list[_Said]] = {}
        for said in self._all_said():
            things.setdefault((said.thing, said.what), []).append(said)
        several = [facts for facts in things.values() if len(facts) > 1]
        self._store.read(s.value.value for f in several for s in f if type(s.value) is NamedNode)
        for facts in several:
            for one, other in combinations(sorted(facts, key=lambda s: s.edge), 2):
                yield from self._compared(one, other)

    def _all_said(self) -> Iterator[_Said]:
        rows = select(self._store, "retrieve/relations", union=False)
        relations = (row["predicate"] for row in rows)
        single = [r for r in relations if isinstance(r, NamedNode) and self._may_be(r)]
        for row in select(self._store, "retrieve/statements", {"predicates": single}, union=False):
            s, p, o = row["subject"], row["predicate"], row["object"]
            if (
                isinstance(s, NamedNode)
                and isinstance(p, NamedNode)
                and isinstance(o, NamedNode | Literal)
                and v.is_statement(p)
            ):
                yield from self._said(s, p, o)

    # --- which relations ---

    def _may_be(self, predicate: NamedNode) -> bool:
        return predicate in self._declared or bool(measured(predicate) or _single(predicate))

    def _said(
        self, subject: NamedNode, predicate: NamedNode, obj: NamedNode | Literal
    ) -> Iterator[_Said]:
        edge, what = v.edge_iri(subject, predicate, obj), _single(predicate)
        measure = measured(predicate) if isinstance(obj, Literal) else None
        if predicate in self._declared:
            yield _Said(subject.value, predicate.value, obj, edge)
        elif measure:
            yield _Said(subject.value, f"measure {measure[0]}", obj, edge, measure[1])
        elif what == _OF and isinstance(obj, NamedNode):
            yield _Said(obj.value, "capital", subject, edge)
        elif what and what != _OF and isinstance(obj, NamedNode):
            yield _Said(subject.value, what, obj, edge)

    # --- do they differ? ---

    def _compared(self, one: _Said, other: _Said) -> Iterator[Contradiction]:
        if one.value == other.value or one.edge == other.edge:
            return
        if one.what.startswith("measure "):
            if _amounts_differ(one, other):
                yield Contradiction("amounts", one.thing, one.edge, other.edge)
        elif one.what.startswith(v.URN):
            if _plainly_differ(one.value, other.value):
                yield Contradiction("values", one.thing, one.edge, other.edge)
        elif self._exclude(one, other):
            yield Contradiction("values", one.thing, one.edge, other.edge)

    def _exclude(self, one: _Said, other: _Said) -> bool:
        """Whether two entities can't be the same, nor one within the other."""
        assert isinstance(one.value, NamedNode)
        assert isinstance(other.value, NamedNode)
        are_people = one.what in ("mother", "father")
        wanted = _PERSON_TYPES if are_people else _PLACE_TYPES
        types = self._types(one.value), self._types(other.value)
        if not all(known & wanted for known in types) or types[0] != types[1]:
            return False
        names = [self._label(one.value), self._label(other.value)]
        if names[0] in names[1] or names[1] in names[0] or any(map(is_region, names)):
            return False
        return are_people or not self._are_tied(one.value, other.value)

    def _are_tied(self, one: NamedNode, other: NamedNode) -> bool:
        """Whether anything is said of the two together, as where one lies in the other."""
        for s, o in ((one, other), (other, one)):
            if next(self._store.match(s, None, o, v.KNOWLEDGE_GRAPH), None):
                return True
        evidence = StandingEvidence(self._store, lambda _: True)
        chunks = [
            {item["wasDerivedFrom"][0].value for item in evidence.of_entity(entity.value)}
            for entity in (one, other)
        ]
        return not chunks[0].isdisjoint(chunks[1])

    def _types(self, entity: NamedNode) -> frozenset[str]:
        found = self._store.match(entity, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        prefix = f"{v.URN}type:"
        types = (quad.object.value for quad in found if isinstance(quad.object, NamedNode))
        return frozenset(t.removeprefix(prefix) for t in types if t.startswith(prefix))

    def _label(self, entity: NamedNode) -> str:
        for quad in self._store.match(entity, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH):
            if isinstance(quad.object, Literal):
                return v.normalise_name(quad.object.value)
        return v.normalise_name(local_name(entity.value))


@cache
def _single(predicate: NamedNode) -> str:
    """What a relation says that its subject has one of, or of which its subject is the capital;
    empty for any other."""
    words = re.findall(r"\w+", local_name(predicate.value).replace("-", " ").lower())
    kept = " ".join(word for word in words if word not in _HELPS_SINGLE)
    if kept in ("capital", "capital city") and words[-1] == "of":
        return _OF
    return _SINGLE.get(kept, "")


def _amounts_differ(one: _Said, other: _Said) -> bool:
    first, second = (
        amount_of(said.value, said.unit) if isinstance(said.value, Literal) else None
        for said in (one, other)
    )
    return bool(first and second and first.differs(second))


def _plainly_differ(one: NamedNode | Literal, other: NamedNode | Literal) -> bool:
    """Of a relation that is declared to have one value: other entities, or values of one sort that
    are not the same value, said more exactly or in another unit."""
    if not isinstance(one, Literal) or not isinstance(other, Literal):
        return isinstance(one, NamedNode) and isinstance(other, NamedNode)
    first, second = amount_of(one), amount_of(other)
    if first and second and (first.dimension or second.dimension):
        return first.differs(second)
    if first and second and not (_time(one) and _time(other)):
        return first.value != second.value
    texts = [v.normalise_name(value.value) for value in (one, other)]
    if _time(one) and _time(other):
        return not texts[0].startswith(texts[1]) and not texts[1].startswith(texts[0])
    return texts[0] != texts[1]


def _time(value: Literal) -> bool:
    return _TIME.fullmatch(value.value) is not None
