"""Amounts that can be compared: numbers with their units, and how exactly each is said."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from pyoxigraph import Literal, NamedNode

from tgraph.retrieve.labels import local_name

_MEASURES = (
    "length height width breadth beam depth draught draft weight mass tonnage displacement area"
    " elevation altitude diameter radius circumference thickness wingspan"
)
_HELPING = "have has had be is was were measure measures a an the of with its in"

MEASURES = frozenset(_MEASURES.split())
"""What a thing has one amount of. What changes with time (age, price, population) is not here."""

_ADJECTIVES = {"long": "length", "high": "height", "tall": "height", "wide": "width"} | {
    "broad": "width", "deep": "depth", "thick": "thickness", "heavy": "weight"
}  # fmt: skip
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
        if _unit(unit):
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
    known = _unit(unit or said.strip().rstrip("."))
    if known is None:
        return None
    dimension, size = known
    slack = _last_digit(digits.replace(",", "")) / 2 * (2 if about else 1)
    return Amount(dimension, float(digits.replace(",", "")) * size, slack * size)


def _unit(name: str) -> tuple[str, float] | None:
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
