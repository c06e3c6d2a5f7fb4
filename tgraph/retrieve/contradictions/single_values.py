"""Single-valued relations of things, and differing values.

A relation is functional if the graph declares an ``owl:FunctionalProperty`` (OWL 2, section
9.2.7), if the relation names a place of birth or death, a parent or a capital, or if the
relation gives a measure. Facts count as different only if both can't be true: a place inside
another, a rounded number or another unit is no disagreement."""

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
from tgraph.store.base import Store, select_rows
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
    """An amount in its dimension's basic unit (empty dimension without unit), with possible
    deviation.

    The deviation is half a unit of the last significant digit, more for approximate amounts."""

    dimension: str
    value: float
    slack: float

    def differs(self, other: Amount) -> bool:
        """Return whether two amounts differ beyond rounding, given equal dimensions."""
        if self.dimension != other.dimension:
            return False
        return abs(self.value - other.value) > (self.slack + other.slack) * (1 + 1e-9)


@cache
def parse_measure(predicate: NamedNode) -> tuple[str, str] | None:
    """Return a relation's measure (such as ``length``) and unit; None for relations without
    measure.

    The unit is empty if the value states the unit."""
    words = re.findall(r"[\w²^]+", local_name(predicate.value).replace("-", " ").lower())
    phrase, unit = _without_unit(words)
    measure_words = [_ADJECTIVES.get(word, word) for word in phrase if word not in _HELPS]
    if (
        not measure_words
        or measure_words[-1] not in MEASURES
        or any(word[0].isdigit() for word in measure_words)
    ):
        return None
    return " ".join(measure_words), unit


def _without_unit(words: Sequence[str]) -> tuple[Sequence[str], str]:
    """Return the words before a final "in UNIT", plus the unit."""
    if "in" in words:
        place = len(words) - 1 - list(reversed(words)).index("in")
        unit = " ".join(words[place + 1 :])
        if _unit_named(unit):
            return words[:place], unit
    return words, ""


def amount_of(value: Literal, unit: str = "") -> Amount | None:
    """Return the amount given by a measure relation's value, or None for incomparable values: a
    bound, several numbers, an unknown unit."""
    match = _VALUE.fullmatch(value.value.strip().lower())
    if match is None:
        return None
    approximate, digits, unit_text = match.groups()
    if unit_text.strip() and (unit or value.datatype.value.rpartition("#")[2] in _NUMBERS):
        return None
    unit_entry = _unit_named(unit or unit_text.strip().rstrip("."))
    if unit_entry is None:
        return None
    dimension, size = unit_entry
    slack = _last_digit(digits.replace(",", "")) / 2 * (2 if approximate else 1)
    return Amount(dimension, float(digits.replace(",", "")) * size, slack * size)


def _unit_named(name: str) -> tuple[str, float] | None:
    if not name:
        return "", 1.0
    if square := _SQUARE.fullmatch(name):
        unit_entry = _UNITS.get(square[1] or square[2])
        return ("area", unit_entry[1] ** 2) if unit_entry and unit_entry[0] == "length" else None
    return _UNITS.get(name)


def _last_digit(digits: str) -> float:
    """Return the value of a unit in the last significant digit; final zeros of whole numbers
    may only express size."""
    integer_part, _, decimals = digits.partition(".")
    if decimals:
        return float(10.0 ** -len(decimals))
    stripped = integer_part.rstrip("0")
    return float(10.0 ** (len(integer_part) - len(stripped))) if stripped else 1.0


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
    """Return whether a normalised name denotes a country, region or water, as opposed to a
    town."""
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
    """Two facts about a subject, contradicting each other: edges or claims, given by IRI."""

    kind: ContradictionKind
    subject: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class _SingleValue:
    """A single-valued fact: thing, aspect (``what``) and value."""

    thing: str
    what: str
    value: NamedNode | Literal
    edge: str
    unit: str = ""


class SingleValues:
    """Reads one store."""

    def __init__(self, store: Store) -> None:
        self._store = ReadAhead(store)
        declared = store.match(None, v.RDF_TYPE, FUNCTIONAL, v.KNOWLEDGE_GRAPH)
        self._declared = {q.subject for q in declared if isinstance(q.subject, NamedNode)}

    def find_contradictions(self) -> Iterator[Contradiction]:
        """Yield all pairs of facts, across all knowledge, differing in a single-valued aspect."""
        facts_by_aspect: dict[tuple[str, str], list[_SingleValue]] = {}
        for fact in self._all_said():
            facts_by_aspect.setdefault((fact.thing, fact.what), []).append(fact)
        several = [facts for facts in facts_by_aspect.values() if len(facts) > 1]
        self._store.read(s.value.value for f in several for s in f if type(s.value) is NamedNode)
        for facts in several:
            for first_fact, second_fact in combinations(sorted(facts, key=lambda s: s.edge), 2):
                yield from self._compare_facts(first_fact, second_fact)

    def _all_said(self) -> Iterator[_SingleValue]:
        rows = select_rows(self._store, "retrieve/relations")
        relations = (row["predicate"] for row in rows)
        single = [r for r in relations if isinstance(r, NamedNode) and self._is_single_valued(r)]
        for row in select_rows(self._store, "retrieve/statements", {"predicates": single}):
            s, p, o = row["subject"], row["predicate"], row["object"]
            if (
                isinstance(s, NamedNode)
                and isinstance(p, NamedNode)
                and isinstance(o, NamedNode | Literal)
                and v.is_statement(p)
            ):
                yield from self._single_valued_facts(s, p, o)

    # --- which relations ---

    def _is_single_valued(self, predicate: NamedNode) -> bool:
        return predicate in self._declared or bool(
            parse_measure(predicate) or _single_valued_aspect(predicate)
        )

    def _single_valued_facts(
        self, subject: NamedNode, predicate: NamedNode, obj: NamedNode | Literal
    ) -> Iterator[_SingleValue]:
        edge, aspect = v.edge_iri(subject, predicate, obj), _single_valued_aspect(predicate)
        measure = parse_measure(predicate) if isinstance(obj, Literal) else None
        if predicate in self._declared:
            yield _SingleValue(subject.value, predicate.value, obj, edge)
        elif measure:
            yield _SingleValue(subject.value, f"measure {measure[0]}", obj, edge, measure[1])
        elif aspect == _OF and isinstance(obj, NamedNode):
            yield _SingleValue(obj.value, "capital", subject, edge)
        elif aspect and aspect != _OF and isinstance(obj, NamedNode):
            yield _SingleValue(subject.value, aspect, obj, edge)

    # --- do they differ? ---

    def _compare_facts(self, one: _SingleValue, other: _SingleValue) -> Iterator[Contradiction]:
        if one.value == other.value or one.edge == other.edge:
            return
        if one.what.startswith("measure "):
            if _amounts_differ(one, other):
                yield Contradiction("amounts", one.thing, one.edge, other.edge)
        elif one.what.startswith(v.URN):
            if _plainly_differ(one.value, other.value):
                yield Contradiction("values", one.thing, one.edge, other.edge)
        elif self._exclude_each_other(one, other):
            yield Contradiction("values", one.thing, one.edge, other.edge)

    def _exclude_each_other(self, one: _SingleValue, other: _SingleValue) -> bool:
        """Return whether entities exclude each other: neither identical nor nested."""
        assert isinstance(one.value, NamedNode)
        assert isinstance(other.value, NamedNode)
        are_people = one.what in ("mother", "father")
        required_types = _PERSON_TYPES if are_people else _PLACE_TYPES
        types = self._read_types(one.value), self._read_types(other.value)
        if not all(entity_types & required_types for entity_types in types) or types[0] != types[1]:
            return False
        names = [self._read_label(one.value), self._read_label(other.value)]
        if names[0] in names[1] or names[1] in names[0] or any(map(is_region, names)):
            return False
        return are_people or not self._are_tied(one.value, other.value)

    def _are_tied(self, one: NamedNode, other: NamedNode) -> bool:
        """Return whether any statement links two entities, for example a place lying in
        another."""
        for s, o in ((one, other), (other, one)):
            if next(self._store.match(s, None, o, v.KNOWLEDGE_GRAPH), None):
                return True
        evidence = StandingEvidence(self._store, lambda _: True)
        chunks = [
            {item["wasDerivedFrom"][0].value for item in evidence.of_entity(entity.value)}
            for entity in (one, other)
        ]
        return not chunks[0].isdisjoint(chunks[1])

    def _read_types(self, entity: NamedNode) -> frozenset[str]:
        type_quads = self._store.match(entity, v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        prefix = f"{v.URN}type:"
        types = (quad.object.value for quad in type_quads if isinstance(quad.object, NamedNode))
        return frozenset(t.removeprefix(prefix) for t in types if t.startswith(prefix))

    def _read_label(self, entity: NamedNode) -> str:
        for quad in self._store.match(entity, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH):
            if isinstance(quad.object, Literal):
                return v.normalise_name(quad.object.value)
        return v.normalise_name(local_name(entity.value))


@cache
def _single_valued_aspect(predicate: NamedNode) -> str:
    """Return the single-valued aspect named by a relation, or the capital marker; empty for
    other relations.

    The marker applies to relations whose subject is the capital of the object."""
    words = re.findall(r"\w+", local_name(predicate.value).replace("-", " ").lower())
    phrase = " ".join(word for word in words if word not in _HELPS_SINGLE)
    if phrase in ("capital", "capital city") and words[-1] == "of":
        return _OF
    return _SINGLE.get(phrase, "")


def _amounts_differ(one: _SingleValue, other: _SingleValue) -> bool:
    first, second = (
        amount_of(fact.value, fact.unit) if isinstance(fact.value, Literal) else None
        for fact in (one, other)
    )
    return bool(first and second and first.differs(second))


def _plainly_differ(one: NamedNode | Literal, other: NamedNode | Literal) -> bool:
    """Return whether two values of a relation declared single-valued differ: distinct entities,
    or distinct values of the same sort.

    A more exact value or a value in another unit does not differ."""
    if not isinstance(one, Literal) or not isinstance(other, Literal):
        return isinstance(one, NamedNode) and isinstance(other, NamedNode)
    first, second = amount_of(one), amount_of(other)
    if first and second and (first.dimension or second.dimension):
        return first.differs(second)
    if first and second and not (_is_time(one) and _is_time(other)):
        return first.value != second.value
    texts = [v.normalise_name(value.value) for value in (one, other)]
    if _is_time(one) and _is_time(other):
        return not texts[0].startswith(texts[1]) and not texts[1].startswith(texts[0])
    return texts[0] != texts[1]


def _is_time(value: Literal) -> bool:
    return _TIME.fullmatch(value.value) is not None
