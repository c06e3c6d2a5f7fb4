"""What units measure, and how they convert to one another."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import cache

from tgraph.ingest.table_values import is_currency, read_unit, split_scale
from tgraph.resources import load_tables


def unit_factor(unit: str, other: str) -> Decimal | None:
    """Return the factor that converts one unit to another; None for units of different
    dimensions."""
    (scale, unit), (other_scale, other) = scale_of(unit), scale_of(other)
    if unit == other:
        return scale / other_scale
    one, two = _measures().get(unit), _measures().get(other)
    if one is None or two is None or one[0] != two[0]:
        return None
    return scale * one[1] / (other_scale * two[1])


def measure_of(unit: str) -> str:
    """Return what a unit measures, such as mass; money for currencies, empty where unknown."""
    if unit and is_currency(unit):
        return "money"
    return _measures().get(scale_of(unit)[1], ("", Decimal(1)))[0]


def scale_of(unit: str) -> tuple[Decimal, str]:
    """Return the factor of a unit's scale, and the unit without it."""
    scale, rest = split_scale(unit)
    return Decimal(load_tables("comparisons")["numbers"][scale] if scale else 1), rest


@cache
def _measures() -> Mapping[str, tuple[str, Decimal]]:
    units: dict[str, tuple[str, Decimal]] = {}
    for measure, factors in load_tables("comparisons")["units"].items():
        for word, factor in factors.items():
            if (unit := read_unit(word)) and not measure.startswith("money"):
                units.setdefault(unit, (measure, Decimal(str(factor))))
    return units
