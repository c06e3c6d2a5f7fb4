"""The numbers of headings and items in OpenDocument texts, which the file doesn't store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from lxml import etree

from tgraph.ingest.base import write_number
from tgraph.ingest.odf_xml import attribute_of, local_name

BULLET = "-"
_OUTLINE = "outline"
_LONGEST_CHAIN = 20
_MOST_LEVELS = 10
_STYLES = ("{*}list-style", "{*}outline-style")


@dataclass(frozen=True, slots=True)
class _OutlineLevel:
    """The number format of a list level; ``shown`` counts the levels whose numbers are written."""

    number_format: str
    prefix: str
    suffix: str
    start: int
    shown: int


class OdfNumbers:
    """Computes the labels of items and headings in the order in which they stand."""

    def __init__(self, roots: Iterable[etree._Element]) -> None:
        self._levels: dict[str, dict[int, _OutlineLevel]] = {}
        self._parents: dict[str, tuple[str, str | None]] = {}
        for root in roots:
            for style in root.iter(*_STYLES):
                is_outline = local_name(style) == "outline-style"
                name = _OUTLINE if is_outline else attribute_of(style, "name")
                self._levels.setdefault(name, dict(map(_read_level, style.iterfind("*"))))
            for style in root.iter("{*}style"):
                lists = [v for k, v in style.attrib.items() if str(k).endswith("}list-style-name")]
                own = str(lists[0]) if lists else None
                parent = attribute_of(style, "parent-style-name")
                self._parents.setdefault(attribute_of(style, "name"), (parent, own))
        self._counters: dict[str, Counter[int]] = {}

    def open_list(self, element: etree._Element) -> tuple[str, Counter[int]]:
        """Return style and counters of an outermost list: its own, or those of the list that it
        continues."""
        style = attribute_of(element, "style-name")
        key = attribute_of(element, "continue-list")
        if not key and attribute_of(element, "continue-numbering") == "true":
            key = style
        counters = self._counters.get(key) if key else None
        if counters is None:
            counters = Counter()
        for name in (style, attribute_of(element, "id")):
            self._counters[name] = counters
        return style, counters

    def number_item(self, style: str, counters: Counter[int], depth: int, start: str) -> str:
        """Return the label of the next item of a list; ``-`` for a bullet, and where the style
        has no numbers. ``start`` is the item's own number, where it has one."""
        level = depth + 1
        shape = self._levels.get(style, {}).get(level)
        if shape is None or not shape.number_format:
            return BULLET
        counters[level] = int(start) if start.isdigit() else self._next(style, counters, level)
        return self._write(style, counters, level)

    def number_heading(self, element: etree._Element, level: int) -> str:
        """Return the number of a heading that is in no list; empty for one without a number."""
        if attribute_of(element, "is-list-header") == "true":
            return ""
        style = self._find_list(attribute_of(element, "style-name"))
        style = _OUTLINE if style is None else style
        shape = self._levels.get(style, {}).get(level)
        if shape is None or not shape.number_format:
            return ""
        counters = self._counters.setdefault(f"headings {style}", Counter())
        counters[level] = self._next(style, counters, level)
        return self._write(style, counters, level)

    def _find_list(self, name: str) -> str | None:
        """Return the style of lists that a style of paragraphs names; None where none is named."""
        for _ in range(_LONGEST_CHAIN):
            name, own = self._parents.get(name, ("", None))
            if own is not None or not name:
                return own
        return None

    def _next(self, style: str, counters: Counter[int], level: int) -> int:
        start = self._levels[style][level].start
        return counters[level] + 1 if level in counters else start

    def _write(self, style: str, counters: Counter[int], level: int) -> str:
        for deeper in [at for at in counters if at > level]:
            del counters[deeper]
        levels = self._levels[style]
        shape = levels[level]
        numbers = [
            write_number(counters.get(at, levels[at].start), levels[at].number_format)
            for at in range(max(1, level - shape.shown + 1), level + 1)
            if at in levels and levels[at].number_format
        ]
        return f"{shape.prefix}{'.'.join(numbers)}{shape.suffix}".strip()


def _read_level(element: etree._Element) -> tuple[int, _OutlineLevel]:
    def number(name: str) -> int:
        text = attribute_of(element, name)
        return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1

    return min(number("level"), _MOST_LEVELS), _OutlineLevel(
        attribute_of(element, "num-format"),
        attribute_of(element, "num-prefix"),
        attribute_of(element, "num-suffix"),
        number("start-value"),
        number("display-levels"),
    )
