"""Cell values of spreadsheets as the spreadsheet's program shows them (ECMA-376-1, 18.8.31)."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any, NamedTuple

_CURRENCY = re.compile(r"\[\$([^\]\[-]{0,40})(?:-[0-9A-Fa-f]+)?\]")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|_.|\*.')
_DIGITS = re.compile(r"([#0?](?:[#0?,]*[#0?])?)(?:\.([#0?]*))?(,*)")
_MOST_DECIMALS = 30
_KEPT = "\ue000"


class _FormatSection(NamedTuple):
    """How a number is shown: texts around the digits, how many digits stand at least before the
    point, at least and at most after the point, whether thousands are parted, and the power of ten
    that the number is multiplied by."""

    before: str
    after: str
    whole: int
    least: int
    most: int
    groups: bool
    power: int


def show_value(value: Any, number_format: str) -> str:
    """Return a cell's value as shown; dates and times in the form of ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return _show_moment(value, number_format)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, int | float):
        return _show_number(value, number_format)
    return str(value)


def _show_moment(moment: datetime, number_format: str) -> str:
    has_clock = "h" in _BRACKETS.sub("", number_format).lower()
    if moment.time() == time() and not has_clock:
        return moment.date().isoformat()
    return moment.replace(microsecond=0).isoformat(" ")


def _show_number(value: float, number_format: str) -> str:
    sections = number_format.split(";")
    is_negative = value < 0
    own = is_negative and len(sections) > 1
    section = _read_section(sections[1 if own else 0])
    if section is None or value != value or value in (float("inf"), float("-inf")):
        return _show_plain(value)
    amount = abs(Decimal(repr(value))).scaleb(section.power)
    if abs(amount.adjusted()) > _MOST_DECIMALS:
        return _show_plain(value)
    rounded = amount.quantize(Decimal(1).scaleb(-section.most), ROUND_HALF_UP)
    digits = format(rounded, ",f" if section.groups else "f")
    if section.most > section.least:
        kept = digits.rstrip("0")
        point = digits.index(".")
        digits = digits[: max(len(kept), point + 1 + section.least)].rstrip(".")
    if not section.groups:
        whole, point_mark, fraction = digits.partition(".")
        digits = f"{whole.zfill(section.whole)}{point_mark}{fraction}"
    sign = "-" if is_negative and not own and rounded else ""
    return f"{section.before}{sign}{digits}{section.after}".strip()


def _show_plain(value: float) -> str:
    return str(value) if isinstance(value, int) else format(value, ".15g")


@lru_cache(maxsize=1_000)
def _read_section(code: str) -> _FormatSection | None:
    """Return how a section of a format shows numbers; None for a section that shows them plainly
    (General, fractions, exponents)."""
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        literals.append(match[1] or (match[2] if match.lastindex == 2 else "") or "")
        return _KEPT

    code = _BRACKETS.sub("", _CURRENCY.sub(lambda m: f'"{m[1]}"', code))
    plain = _LITERAL.sub(keep, code)
    found = _DIGITS.search(plain)
    rest = plain[: found.start()] + plain[found.end() :] if found else plain
    if found is None or re.search(r"general|[eE][+-]|/|@|[hdmys]", rest, re.IGNORECASE):
        return None
    texts = iter(literals)
    before, after = (
        "".join(next(texts) if c == _KEPT else c for c in part)
        for part in (plain[: found.start()], plain[found.end() :])
    )
    decimals = (found[2] or "")[:_MOST_DECIMALS]
    power = (2 if "%" in before + after else 0) - 3 * len(found[3])
    return _FormatSection(
        before,
        after,
        found[1].count("0"),
        decimals.count("0"),
        len(decimals),
        "," in found[1],
        power,
    )
