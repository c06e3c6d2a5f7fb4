"""Numbers of lines in the margin of a page, as bills, pleadings and manuscripts have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tgraph.ingest.pdf_fragments import Fragment, PageContent
from tgraph.ingest.pdf_layout import group_baselines

_NUMBER = re.compile(r"(\d{1,4})(?:\s+|$)")
_GOES_ON = re.compile(r"[^\w(]*[^\W\d_]")
_FEWEST = 5
_LEAST_GOING_ON = 0.3
"""The share of numbered lines that go on with a small letter; items and rows rarely do."""
_MOST_PARTS = 2


@dataclass(frozen=True, slots=True)
class _NumberedLine:
    number: int
    parts: Sequence[Fragment]
    text: str


def take_line_numbers(content: PageContent) -> int:
    """Remove the numbers of lines from a page, and return how many characters were removed."""
    taken = {
        id(line.parts[0]): str(line.number)
        for run in _find_runs(group_baselines(content.fragments))
        if _are_line_numbers(run)
        for line in run
    }
    content.fragments = list(_cut_numbers(content.fragments, taken))
    return sum(map(len, taken.values()))


def _find_runs(lines: Iterable[Sequence[Fragment]]) -> Iterator[list[_NumberedLine]]:
    """Yield runs of lines that begin with rising numbers; other lines may stand between."""
    run: list[_NumberedLine] = []
    for fragments in lines:
        parts = sorted(fragments, key=lambda part: part.left)
        match = _NUMBER.match(parts[0].text)
        if match is None:
            continue
        text = " ".join((parts[0].text[match.end() :], *(part.text for part in parts[1:]))).strip()
        line = _NumberedLine(int(match[1]), parts, text)
        if run and line.number != run[-1].number + 1:
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _are_line_numbers(run: Sequence[_NumberedLine]) -> bool:
    if len(run) < _FEWEST:
        return False
    lefts = [line.parts[0].left for line in run]
    rights = [line.parts[0].right for line in run if line.parts[0].text.isdecimal()]
    if max(lefts) - min(lefts) > 1.5 * max(line.parts[0].size for line in run):
        return False
    if any(part.left < max(rights, default=0.0) for line in run for part in line.parts[1:]):
        return False
    starts = [match[0][-1] for line in run if (match := _GOES_ON.match(line.text)) is not None]
    going_on = sum(map(str.islower, starts))
    rows = sum(len(line.parts) > _MOST_PARTS for line in run)
    return going_on >= _LEAST_GOING_ON * len(run) and 2 * rows < len(run)


def _cut_numbers(fragments: Iterable[Fragment], taken: dict[int, str]) -> Iterator[Fragment]:
    """Yield fragments without the numbers that begin them."""
    for part in fragments:
        number = taken.get(id(part))
        rest = part.text[len(number) :].lstrip() if number is not None else part.text
        if number is None:
            yield part
        elif rest:
            width = (part.right - part.left) / len(part.text)
            left = part.left + width * (len(part.text) - len(rest))
            characters = part.characters[len(number) :]
            yield replace(part, left=left, text=rest, characters=characters)
