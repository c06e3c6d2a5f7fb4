"""Styles and numbers of paragraphs in Word documents."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from lxml import etree

from tgraph.ingest.base import write_number
from tgraph.ingest.word_package import W

_MOST_LEVELS = 9
_LONGEST_CHAIN = 20
_HEADING_NAME = re.compile(r"heading ([1-9])$")
_PLACEHOLDER = re.compile(r"%([1-9])")
_FORMATS = {
    "lowerLetter": "a",
    "upperLetter": "A",
    "lowerRoman": "i",
    "upperRoman": "I",
}
BULLET = "-"


def read_value(parent: etree._Element | None, path: str) -> str | None:
    """Return the value of a property below an element, by a path of names such as
    ``pPr/outlineLvl``; None where there is no such property."""
    if parent is None:
        return None
    element = parent.find("/".join(W + name for name in path.split("/")))
    return None if element is None else element.get(f"{W}val", "")


def read_switch(parent: etree._Element | None, path: str) -> bool | None:
    """Return whether a property is on; None where nothing says so."""
    value = read_value(parent, path)
    return None if value is None else value not in ("0", "false", "off", "none")


def read_level(properties: etree._Element | None, default: int | None) -> int | None:
    """Return the level of headings that properties of a paragraph state; None for body text."""
    outline = read_value(properties, "outlineLvl")
    if outline is None or not (outline.isascii() and outline.isdigit()):
        return default
    return int(outline) + 1 if int(outline) < _MOST_LEVELS else None


@dataclass(frozen=True, slots=True)
class WordStyle:
    """What a style says, with what it inherits; None where nothing is said."""

    level: int | None = None
    list_number: str | None = None
    list_level: int | None = None
    is_hidden: bool | None = None
    is_struck: bool | None = None
    script: str | None = None
    is_contents: bool = False

    def with_style(self, other: WordStyle) -> WordStyle:
        """Return the style with what a style of characters says of runs on top."""
        return replace(
            self,
            is_hidden=self.is_hidden if other.is_hidden is None else other.is_hidden,
            is_struck=self.is_struck if other.is_struck is None else other.is_struck,
            script=other.script or self.script,
        )

    def with_direct(self, run_properties: etree._Element | None) -> WordStyle:
        """Return the style with properties of a run on top."""
        if run_properties is None:
            return self
        hidden = read_switch(run_properties, "vanish")
        struck = [read_switch(run_properties, name) for name in ("strike", "dstrike")]
        script = read_value(run_properties, "vertAlign")
        return replace(
            self,
            is_hidden=self.is_hidden if hidden is None else hidden,
            is_struck=any(struck) if struck != [None, None] else self.is_struck,
            script=self.script if script is None else script,
        )


class StyleSheet:
    """The styles of a document."""

    def __init__(self, root: etree._Element | None) -> None:
        styles = [] if root is None else list(root.iterchildren(f"{W}style"))
        self._elements = {style.get(f"{W}styleId", ""): style for style in styles}
        self._read: dict[str, WordStyle] = {}
        defaults = (s for s in styles if s.get(f"{W}default") in ("1", "true", "on"))
        self._default = next(
            (s.get(f"{W}styleId", "") for s in defaults if s.get(f"{W}type") == "paragraph"), ""
        )

    def find_style(self, name: str | None) -> WordStyle:
        """Return a style by its identifier; None names the default style of paragraphs."""
        identifier = self._default if name is None else name
        if identifier not in self._read:
            chain: list[etree._Element] = []
            at: str | None = identifier
            while at in self._elements and len(chain) < _LONGEST_CHAIN:
                chain.append(self._elements[at])
                at = read_value(chain[-1], "basedOn")
            style = WordStyle()
            for element in reversed(chain):
                style = _add_style(style, element)
            self._read[identifier] = style
        return self._read[identifier]

    def list_number_of(self, name: str) -> str | None:
        """Return the number of the list that a style of lists stands for."""
        return self.find_style(name).list_number


def _add_style(style: WordStyle, element: etree._Element) -> WordStyle:
    """Return a style with the properties of a style element on top."""
    style = style.with_direct(element.find(f"{W}rPr"))
    name = (read_value(element, "name") or "").lower()
    heading = _HEADING_NAME.match(name)
    level = read_level(element.find(f"{W}pPr"), style.level)
    if heading or name == "title":
        level = int(heading[1]) if heading else 1
    number = read_value(element, "pPr/numPr/numId")
    depth = read_value(element, "pPr/numPr/ilvl")
    return replace(
        style,
        level=level,
        list_number=style.list_number if number is None else number,
        list_level=int(depth) if depth and depth.isdigit() else style.list_level,
        is_contents=style.is_contents or name.startswith(("toc ", "table of figures")),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """How a level of a list is numbered: ``text`` is a pattern such as ``%1.%2``."""

    start: int
    number_format: str
    text: str
    style: str | None


class ListNumbers:
    """Computes the numbers of paragraphs in lists, which Word doesn't store."""

    def __init__(self, root: etree._Element | None, styles: StyleSheet) -> None:
        self._abstract = (
            {}
            if root is None
            else {
                element.get(f"{W}abstractNumId", ""): element
                for element in root.iterchildren(f"{W}abstractNum")
            }
        )
        self._lists = (
            {}
            if root is None
            else {element.get(f"{W}numId", ""): element for element in root.iterchildren(f"{W}num")}
        )
        self._styles = styles
        self._levels: dict[str, dict[int, _Level]] = {}
        self._counters: dict[str, Counter[int]] = {}
        self._used: set[tuple[str, int]] = set()

    def number_paragraph(
        self, number: str, level: int | None, style: str | None
    ) -> tuple[str, int]:
        """Return the label of the next paragraph of a list and its level.

        The label is ``-`` for bullets and empty where the list isn't known. ``level`` None is the
        level that the list gives to the paragraph's style."""
        source = self._find_source(number)
        levels = self._read_levels(number, source)
        if level is None:
            level = next((at for at, known in levels.items() if style and known.style == style), 0)
        shape = levels.get(level)
        if shape is None:
            return "", level
        counters = self._counters.setdefault(source, Counter())
        override = self._read_override(number, level)
        if override is not None and (number, level) not in self._used:
            self._used.add((number, level))
            counters[level] = override
        else:
            counters[level] = counters[level] + 1 if level in counters else shape.start
        for deeper in [at for at in counters if at > level]:
            del counters[deeper]
        if shape.number_format == "bullet":
            return BULLET, level
        return _PLACEHOLDER.sub(
            lambda m: _write(levels, counters, int(m[1]) - 1), shape.text
        ), level

    def _find_source(self, number: str) -> str:
        """Return the identifier of the abstract list of a list."""
        for _ in range(_LONGEST_CHAIN):
            source = read_value(self._lists.get(number), "abstractNumId") or ""
            link = read_value(self._abstract.get(source), "numStyleLink")
            other = self._styles.list_number_of(link) if link else None
            if other is None or other == number:
                return source
            number = other
        return ""

    def _read_levels(self, number: str, source: str) -> dict[int, _Level]:
        if number not in self._levels:
            elements = {}
            for parent in (self._abstract.get(source), *self._overrides(number)):
                for element in () if parent is None else parent.iterchildren(f"{W}lvl"):
                    elements[_integer(element.get(f"{W}ilvl"), 0)] = element
            self._levels[number] = {
                at: _Level(
                    _integer(read_value(element, "start"), 1),
                    read_value(element, "numFmt") or "decimal",
                    read_value(element, "lvlText") or "",
                    read_value(element, "pStyle"),
                )
                for at, element in elements.items()
            }
        return self._levels[number]

    def _overrides(self, number: str) -> list[etree._Element]:
        element = self._lists.get(number)
        return [] if element is None else list(element.iterchildren(f"{W}lvlOverride"))

    def _read_override(self, number: str, level: int) -> int | None:
        for element in self._overrides(number):
            start = read_value(element, "startOverride")
            if start is not None and _integer(element.get(f"{W}ilvl"), 0) == level:
                return _integer(start, 1)
        return None


def _write(levels: dict[int, _Level], counters: Counter[int], level: int) -> str:
    shape = levels.get(level)
    if shape is None or shape.number_format in ("none", "bullet"):
        return ""
    number = counters.get(level, shape.start)
    if shape.number_format == "decimalZero":
        return f"{number:02}"
    return write_number(number, _FORMATS.get(shape.number_format, "1"))


def _integer(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 7 else default
