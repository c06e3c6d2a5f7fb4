"""Numbers that a text writes with more than digits: signs, powers of ten, fractions, ranges.

They are read whole or not at all: no part of ``1.5 × 10^-3`` is a number of its own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

AMOUNT = r"(?:\d{1,3}(?:,\d{2,3}){1,9}|\d+)(?:\.\d+)?"
"""Digits with commas between groups, and a decimal point."""
CURRENCY = r"(?:US|A|C)?[$£€¥]\s?"
_MINUS = r"\-−"
_NEGATIVE = ("-", "−")
_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_END = rf"\d){_RAISED}{_VULGAR}}}"
_SPACES = r"\u00a0\u2009\u202f"
BEFORE_NUMBER = (
    rf"(?<![\w.,^$£€¥{_VULGAR}{_MINUS}–+~≈±])(?<![\d,]['’])(?<!\d[:{_SPACES}])(?<!\^[({{])"
    rf"(?<!\d\()(?<![\w)][×·⋅*/])(?<!\w\*\*)(?<![\w)]\s[×·⋅*±]\s)(?<![{_END}]\s[x–—-]\s)"
)
"""What doesn't stand before a number that is read by itself."""
AFTER_NUMBER = (
    rf"(?!\^|\*\*\d|\(\d+\)|[{_RAISED}⁺⁻]|[eE][+{_MINUS}]?\d|[/:'’{_SPACES}]\d"
    rf"|\s?[{_VULGAR}]|\s?[×·⋅±*]\s?\d|\s?x\s?\d|\s\d{{1,3}}/\d|\s[–—-]\s\d)"
)
"""What doesn't stand behind a number that is read by itself."""
_SIGNED = rf"[+{_MINUS}]?\d+"
_EXPONENT = rf"(?:\^|\*\*)(?:{_SIGNED}|\{{{_SIGNED}\}}|\({_SIGNED}\))|[⁺⁻]?[{_RAISED}]+"
_GROUPED = rf"\d{{1,3}}(?:[ {_SPACES}'’]\d{{3}})+(?:[.,]\d+)?(?!\d)"
_DIGITS = rf"(?:{_GROUPED}|\d+,\d(?!\d)|{AMOUNT})"
_SINGLE = (
    rf"(?:(?:{_DIGITS}\s?[x×·⋅*]\s?)?10(?:{_EXPONENT})|{_DIGITS}[eE]{_SIGNED}"
    rf"|(?:\d+\s?)?[{_VULGAR}]|(?:\d+[ -])?\d{{1,3}}/\d{{1,3}}|{_DIGITS})"
)
_JOIN = r"(?:\s?±\s?|[–—-]|\s[–—-]\s|\sto\s|\s?[x×]\s?)"
_NUMERAL = re.compile(
    rf"(?<![\w.,^/'’])(?<![\w)][{_MINUS}–+×·⋅*])(?<![\w)]\s[×·⋅*]\s)"
    rf"(?P<sign>[+{_MINUS}]|[~≈±]\s?)?(?:{CURRENCY})?"
    rf"(?P<first>{_SINGLE})(?:(?P<join>{_JOIN})(?:{CURRENCY})?(?P<last>{_SINGLE}))?"
    rf"(?![\d^{_RAISED}⁺⁻{_VULGAR}]|[.,:/]\d|\*\*\d|\s?[×·⋅±*]\s?\d|\s?x\s?\d)"
)
_POWER = re.compile(rf"(?:(?P<factor>.+?)\s?[x×·⋅*]\s?)?10(?P<exponent>{_EXPONENT})")
_PLAIN = re.compile(AMOUNT)
_LARGEST_EXPONENT = 30
_MOST_DIGITS = 25


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number that is more than digits, from ``low`` to ``high`` (None where unknown).

    ``is_exact`` says that it is one value; ``needs_unit`` that it is a number only before a unit
    (``3–5`` may be anything, ``3–5 km`` is a length)."""

    start: int
    end: int
    low: Decimal | None
    high: Decimal | None
    is_exact: bool
    needs_unit: bool


def find_numerals(text: str) -> Iterator[Numeral]:
    """Yield the numbers of a text that are more than digits, in order."""
    for match in _NUMERAL.finditer(text):
        sign, first, join, last = match["sign"] or "", match["first"], match["join"], match["last"]
        if not sign and not join and _PLAIN.fullmatch(first):
            continue
        low, high = _read_value(first), _read_value(last or first)
        if sign in _NEGATIVE:
            low, high = (-low if low is not None else None), (high if join else _negate(high))
        if join and join.strip() == "±" and low is not None and high is not None:
            low, high = low - high, low + high
        is_size = join is not None and join.strip() in ("x", "×")
        if is_size or (low is not None and high is not None and low > high):
            low = high = None
        is_loose = "/" in first or re.search(r"\d \d{3}|^\d+,\d$", first) is not None
        is_exact = not join and sign.strip() in ("", *_NEGATIVE)
        yield Numeral(match.start(), match.end(), low, high, is_exact, bool(join) or is_loose)


def _negate(value: Decimal | None) -> Decimal | None:
    return None if value is None else -value


def _read_value(text: str) -> Decimal | None:
    """Return the value of a single number; None for one that is too large or has no value."""
    if power := _POWER.fullmatch(text):
        exponent = unicodedata.normalize("NFKC", power["exponent"]).strip("^*{()} ")
        factor = _read_digits(power["factor"] or "1")
        return _scale(factor, exponent)
    factor_text, mark, exponent = re.sub("E", "e", text).partition("e")
    if mark:
        return _scale(_read_digits(factor_text), exponent)
    if text[-1] in _VULGAR:
        whole = _read_digits(text[:-1].strip() or "0")
        part = Decimal(str(unicodedata.numeric(text[-1])))
        return None if whole is None else whole + part
    if "/" in text:
        number, _, fraction = re.sub("[ -]", " ", text).rpartition(" ")
        above, below = map(Decimal, fraction.split("/"))
        whole = _read_digits(number or "0")
        return None if whole is None or not below else whole + above / below
    return _read_digits(text)


def _scale(factor: Decimal | None, exponent: str) -> Decimal | None:
    power = _read_digits(exponent.lstrip("+-−"))
    if factor is None or power is None or power > _LARGEST_EXPONENT:
        return None
    return factor.scaleb(-int(power) if exponent.startswith(_NEGATIVE) else int(power))


def _read_digits(text: str) -> Decimal | None:
    """Return the value of digits in groups, with a decimal point or comma; None for very many."""
    digits = re.sub(rf"[ {_SPACES}'’]", "", text)
    if len(digits) > _MOST_DIGITS:
        return None
    if "," in digits and not _PLAIN.fullmatch(digits):
        return Decimal(digits.replace(",", "."))
    return Decimal(digits.replace(",", ""))
