"""Numbers of a text are read whole or not at all, with the unit that they are written with."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.extract.literals import find_literals

_AMOUNTS = st.sampled_from(["5", "12", "1.5", "0.04", "1,200"])
_EXPONENTS = st.one_of(
    st.builds("^{}{}".format, st.sampled_from(["", "-", "−"]), st.integers(1, 12)),
    st.sampled_from(["⁶", "⁻³", "**4", "^{6}", "^{-3}", "^(6)"]),
)
_TIMES = st.sampled_from([" x ", " × ", "×", "·", " * "])
_POWERS = st.one_of(
    st.builds("10{}".format, _EXPONENTS),
    st.builds("{}{}10{}".format, _AMOUNTS, _TIMES, _EXPONENTS),
    st.builds("{}e{}".format, st.sampled_from(["5", "1.5"]), st.sampled_from(["6", "-3", "+3"])),
)
_FRACTIONS = st.sampled_from(["½", "2½", "1/2", "3 1/2", "7/8"])
_SIGNED = st.builds("{}{}".format, st.sampled_from("-−+±~"), st.one_of(_AMOUNTS, _POWERS))
_SINGLE = st.one_of(_POWERS, _FRACTIONS, _SIGNED)
_RANGES = st.builds(
    "{}{}{}".format,
    st.one_of(_AMOUNTS, _POWERS),
    st.sampled_from(["–", "-", " – ", " to ", " ± ", "±", " x ", "×"]),
    st.one_of(_AMOUNTS, _POWERS),
)
_GROUPS = st.sampled_from(["1'200", "1\u00a0200", "12\u202f000.5", "12,5"])
_ODD = st.sampled_from(["2^n", "n^2", "x^{12}", "10^{n+6}", "10^6^2", "3×10^n", "12:30", "5(2)"])
_UNITS = st.sampled_from(
    [" m", " cubic metres", " kg", "%", " million", " km/h", " m^3", " m³", "", " crates"]
)


@given(st.one_of(_SINGLE, _RANGES, _GROUPS), _UNITS)
@example("10^6", " cubic metres")
@example("1.5 x 10^-3", " m")
@settings(max_examples=examples(300))
def test_a_number_is_read_whole_or_not_at_all(number: str, unit: str) -> None:
    assume(" to " not in number or unit.strip() not in ("", "crates"))  # from 5 to 12: two numbers
    lead = "The tank holds "
    text = f"{lead}{number}{unit} of oil."
    wholes = {(len(lead), len(lead + number)), (len(lead), len(lead + number + unit))}
    assert {(found.start, found.end) for found in find_literals(text)} <= wholes
    if unit.strip() not in ("", "crates"):
        value = find_literals(text)[0].value.value
        assert value == number + unit


@given(_ODD, _UNITS)
def test_no_part_of_what_is_no_number_is_one(number: str, unit: str) -> None:
    assert find_literals(f"The tank holds {number}{unit} of oil.") == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("10^6", "1000000"), ("1.5×10⁻³", "0.0015"), ("2.5e+3", "2500"), ("-5", "-5"),
     ("−0.5", "-0.5"), ("2½", "2.5"), ("12\u202f000", "12000"), ("10^-2", "0.01")],
)  # fmt: skip
def test_a_number_without_a_unit_has_its_value(text: str, value: str) -> None:
    (literal,) = find_literals(f"It has {text} parts.")
    assert Decimal(literal.value.value) == Decimal(value)


def test_a_number_of_any_length_is_no_error() -> None:
    (literal,) = find_literals(f"It has {'7' * 9000} parts.")
    assert literal.value.value == "7" * 9000
    assert find_literals(f"It has 10^{'7' * 9000} and -{'7' * 9000} parts.") == []


@pytest.mark.parametrize(
    "text", ["5 km²", "5 km^2", "30 m/s", "2 kg/m^3", "$5–10 million", "−40 °C", "1990", "12 km"]
)
def test_units_and_plain_amounts_stay_whole(text: str) -> None:
    (literal,) = find_literals(f"In {text} of it.")
    assert f"In {text} of it."[literal.start : literal.end] == text
