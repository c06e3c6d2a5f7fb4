"""Running heads, running feet and page numbers of a PDF, recognised by place and repetition."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from tgraph.ingest.pdf_fragments import PageContent
from tgraph.ingest.pdf_layout import Line, group_baselines, make_line

_ZONE = 0.2
"""The share of a page's height at its top and at its bottom in which running lines stand."""
_MOST_LINES = 4
_NEAR = 4.0
"""Points by which the height of a running line may differ between pages."""
_REACH = 3
"""Pages from a running line to its repetition at most."""
_CLEAR = 1.55
"""The distance in font sizes of a running line's baseline from the text, at least."""
_NUMBER = re.compile(r"\d{1,5}")
_NUMBERED = re.compile(
    r"(?:(\d{1,5})\s+\D{0,80}|\D{0,80}?(\d{1,5})[^\w.]*|\D{0,20}(\d{1,5})\W+\w{0,8}\W*(\d{1,5})[^\w.]*)$"
)
_YEARS = range(1800, 2100)
"""Numbers that beside words are no page's."""
_ROMAN = re.compile(r"(?i)\W*[ivxlc]{1,7}\W*$")


@dataclass(slots=True)
class RunningLine:
    """A line that is repeated on several pages, or a page number; ``is_new`` if its words stand on
    no page before."""

    line: Line
    at_top: bool
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class _RunningLine:
    page: int
    at_top: bool
    line: Line
    place: float
    clear: bool
    numbers: tuple[int, ...]


def take_running_lines(pages: Sequence[PageContent]) -> list[list[RunningLine]]:
    """Remove running lines from pages, and return those of each page."""
    candidates = [list(_page_candidates(number, page)) for number, page in enumerate(pages)]
    size = median([f.size for page in pages for f in page.fragments] or [1.0])
    usual = [c for some in candidates for c in some if c.line.size <= 1.12 * size]
    running = _find_running(usual, len(pages), _find_copies(pages))
    outermost = [list(_outermost(some, running)) for some in candidates]
    shift = _page_shift(c for some in outermost for c in some)
    seen: set[str] = set()
    running_lines = []
    for page, kept in zip(pages, outermost, strict=True):
        held = {id(part) for candidate in kept for part in candidate.line.fragments}
        page.fragments = [part for part in page.fragments if id(part) not in held]
        lines = []
        for candidate in kept:
            words = _words_beside_number(candidate, shift)
            is_numbering = _numbers_alone(candidate, len(pages))
            is_new = words not in seen and len(words.split()) > 1 and not is_numbering
            seen.add(words)
            lines.append(RunningLine(candidate.line, candidate.at_top, is_new))
        running_lines.append(lines)
    return running_lines


def _page_shift(candidates: Iterable[_RunningLine]) -> int:
    """Return what the numbers on most pages are above the count of pages."""
    shifts = Counter(number - c.page for c in candidates for number in set(c.numbers))
    return shifts.most_common(1)[0][0] if shifts else 1


def _words_beside_number(candidate: _RunningLine, shift: int) -> str:
    page = str(candidate.page + shift)
    words = re.findall(r"\w+", candidate.line.text.casefold())
    return " ".join(word for word in words if word != page)


def _page_candidates(number: int, page: PageContent) -> Iterator[_RunningLine]:
    """Yield the outermost lines of a page, from the edge inwards: at the top, at the bottom."""
    lines = [make_line(group) for group in group_baselines(page.fragments)]
    for at_top in (True, False):
        ordered = lines if at_top else lines[::-1]
        for place, line in enumerate(ordered[:_MOST_LINES]):
            depth = line.bottom if at_top else page.height - line.top
            if depth > _ZONE * page.height:
                break
            inner = ordered[place + 1] if place + 1 < len(ordered) else None
            step = abs(inner.baseline - line.baseline) if inner else page.height
            yield _RunningLine(
                number,
                at_top,
                line,
                line.baseline if at_top else page.height - line.baseline,
                step > _CLEAR * max(line.size, inner.size if inner else 0.0),
                tuple(int(match[0]) for match in _NUMBER.finditer(line.text)),
            )


def _find_copies(pages: Sequence[PageContent]) -> set[tuple[int, int]]:
    """Return pairs of near pages most of whose text is the same: their text isn't running."""
    texts = [{part.text for part in page.fragments} for page in pages]
    copies = set()
    for step in range(1, _REACH + 1):
        for page, (one, other) in enumerate(zip(texts, texts[step:], strict=False)):
            fewer = min(len(one), len(other))
            if fewer > 2 and len(one & other) > 0.7 * fewer:
                copies.add((page, page + step))
    return copies


def _find_running(
    candidates: Sequence[_RunningLine], pages: int, copies: Set[tuple[int, int]]
) -> set[int]:
    """Return the identities of candidates that are repeated, or number the pages in order."""
    running = {id(c) for c in candidates if _numbers_alone(c, pages)}
    groups: defaultdict[tuple[bool, str], list[_RunningLine]] = defaultdict(list)
    for candidate in candidates:
        text = candidate.line.text
        if sum(map(str.isalpha, text)) > 2:
            groups[candidate.at_top, text.casefold()].append(candidate)
        if _NUMBERED.match(text):
            words = any(map(str.isalpha, text))
            for number in set(candidate.numbers).difference(_YEARS if words else ()):
                groups[candidate.at_top, f"{number - candidate.page}"].append(candidate)
        elif _ROMAN.match(text):
            groups[candidate.at_top, "roman"].append(candidate)
    for group in groups.values():
        running |= _repeated(group, copies, 2)
    alike: defaultdict[tuple[bool, str], list[_RunningLine]] = defaultdict(list)
    for candidate in candidates:
        key = _NUMBER.sub("#", candidate.line.text.casefold())
        if sum(map(str.isalpha, key)) > 2 and not key.endswith((".", "!", "?")):
            alike[candidate.at_top, key].append(candidate)
    for group in alike.values():
        running |= _repeated(group, copies, 3)
    return running


def _repeated(group: Sequence[_RunningLine], copies: Set[tuple[int, int]], least: int) -> set[int]:
    """Return the identities of candidates at the height of ``least`` on pages near each other."""
    running: set[int] = set()
    heights: defaultdict[int, list[_RunningLine]] = defaultdict(list)
    for candidate in sorted(group, key=lambda c: c.page):
        for bucket in (int(candidate.place / _NEAR), int(candidate.place / _NEAR + 0.5) + 100_000):
            heights[bucket].append(candidate)
    for some in heights.values():
        for near in zip(*(some[k:] for k in range(least)), strict=False):
            steps = [(one.page, other.page) for one, other in pairwise(near)]
            if all(0 < b - a <= _REACH and (a, b) not in copies for a, b in steps):
                running |= set(map(id, near))
    return running


def _numbers_alone(candidate: _RunningLine, pages: int) -> bool:
    """Return whether a line on its own tells the page's number: ``3``, ``Page 3 of 5``."""
    text, page = candidate.line.text, candidate.page + 1
    if text.strip("-–— .[]()|") == str(page) and not candidate.at_top:
        return True
    return candidate.numbers == (page, pages) and len(text.split()) <= 5


def _outermost(candidates: Sequence[_RunningLine], running: set[int]) -> Iterator[_RunningLine]:
    """Yield running lines of a page with no other line further out, clear of the text."""
    for at_top in (True, False):
        held: list[_RunningLine] = []
        for candidate in candidates:
            if candidate.at_top == at_top:
                if id(candidate) not in running:
                    break
                held.append(candidate)
        while held and not held[-1].clear:
            held.pop()
        yield from held
