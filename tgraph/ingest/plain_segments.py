"""The segments of text without a grammar: plain text, and what is stored of HTML, DOCX, PDF and
tables, where paragraphs are parted by blank lines, headings begin with ``#``, items with a bullet
or a number, and a row is a line ``Column: value; Column: value``.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import replace

from tgraph.ingest.apparatus import capitals_of
from tgraph.ingest.reading_text import ReadingText
from tgraph.ingest.sentences import sentences
from tgraph.model import Segment, SegmentKind, TextSpan

_BLANK = re.compile(r"\n[^\S\n]*\n\s*|(?<=\S)[^\S\n]{3,}(?=\S)")
_FIELD = re.compile(r"[A-Z][\w]*(?: [\w]+){0,2}: \S(?:.{0,118}[^.!?,;:\s])?")
_FIELD_LINE = re.compile(r"\s*[A-Z]\w*(?: \w+){0,2}:\s+\S")
_MARKER = re.compile(r"\s*(?:(?P<item>[-*•‣–]\s+|\d{1,3}[.)]\s+)|(?P<heading>#{1,6})\s+|>\s+)")
_UNREAD = r"\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
# Words that read as they stand, but for line ends between them.
_WORDS = re.compile(rf"[^{_UNREAD}]++(?:[ \n][^{_UNREAD}]++)*+")
# Written by hand, a text may have marks of emphasis and bars.
_MARKS = rf"{_UNREAD}_*`|"
_MARKED_WORD = rf"[^{_MARKS}]++(?:_++[^{_MARKS}]++)*+"
_MARKED_WORDS = re.compile(rf"{_MARKED_WORD}(?:[ \n]{_MARKED_WORD})*+")
_PAIR = re.compile(
    r"([^\s:;](?:[^:;\n]{0,58}[^\s:;])?)\s*+:\s+((?:[^;\n]*[^\s;])?)[^\S\n]*(?:;|$)", re.MULTILINE
)
_HEADING = re.compile(r"\s*#{1,6}\s+\S")
_RULED = re.compile(r"\S(?: {4,}|\t+)\S|^\s*\||={3,}|-{4,}")
_GAP = re.compile(r"[\s|]")
_FENCED = re.compile(r"^```[^`\r\n]{0,80}$((?:(?!^```).*+(?:\r\n?|\n))*+)^```[ \t]*$", re.MULTILINE)
_LED = frozenset(("item", "row", "code"))
_CODE: SegmentKind = "code"
_LONGEST = 20_000
Pairs = tuple[tuple[TextSpan, TextSpan], ...]
NO_PAIRS: Pairs = ()


def plain_segments(text: str, marked: bool = False) -> Iterator[Segment]:
    """Yield segments of a text without grammar, in order, leaving out lines without letters.

    ``marked`` means that a person wrote the text with marks such as ``*`` and ``_``, which are
    not read."""
    above: list[tuple[int, str]] = []
    before = ""
    for start, end, is_code in _split_parts(text):
        marker = None if is_code else _MARKER.match(text, start, end)
        if is_code:
            segment: Segment | None = _code_segment(text, start, end)
        else:
            segment = _read_words(text, marker.end() if marker else start, end, marked).segment(
                "prose"
            )
        if segment is None or not any(map(str.isalnum, segment.text)):
            continue
        kind, pairs = (_CODE, NO_PAIRS) if is_code else _classify_segment(segment.text, marker)
        level = len(marker["heading"] or "") if marker else 0
        if level:
            above = [open_heading for open_heading in above if open_heading[0] < level]
        headings = tuple(heading for _, heading in above)
        lead = _last_sentence(before) if before and kind in _LED else ""
        led = (lead,) if lead else ()
        yield replace(segment, kind=kind, headings=headings, lead=led, pairs=pairs)
        if level:
            above.append((level, segment.text))
        if kind not in _LED:
            before = segment.text if kind == "prose" else ""


def _split_parts(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield stretches of a text, each flagged as fenced code or text."""
    start = 0
    for match in _FENCED.finditer(text):
        if text[match.start(1) : match.end(1)].strip():
            yield from ((*part, False) for part in _split_stretches(text, start, match.start()))
            yield match.start(1), match.end(1), True
            start = match.end()
    yield from ((*part, False) for part in _split_stretches(text, start, len(text)))


def _code_segment(text: str, start: int, end: int) -> Segment:
    raw = text[start:end]
    start += len(raw) - len(raw.lstrip("\r\n"))
    end = start + len(text[start:end].rstrip())
    return Segment("code", start, end, text[start:end], array("q", range(start, end)))


def _split_stretches(text: str, begin: int, stop: int) -> Iterator[tuple[int, int]]:
    start = begin
    for gap in _BLANK.finditer(text, begin, stop):
        yield from _split_paragraph(text, start, gap.start())
        start = gap.end()
    yield from _split_paragraph(text, start, stop)


def _split_paragraph(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a whole paragraph, or single lines if the lines are items, rows or headings."""
    begin = position = start
    previous = ""
    for line in text[start:end].splitlines(keepends=True):
        if position > begin and (_starts_block(line, previous) or position - begin > _LONGEST):
            yield begin, position
            begin = position
        previous = line
        position += len(line)
    for cut_at in range(begin, end, _LONGEST):
        yield cut_at, min(cut_at + _LONGEST, end)


def _starts_block(line: str, previous: str) -> bool:
    if _MARKER.match(line) or _FIELD_LINE.match(line) or _HEADING.match(previous):
        return True
    return any(_RULED.search(part) or _is_row(part) for part in (line, previous))


def _is_row(text: str) -> bool:
    if ";" not in text or text.count(": ") < 2:
        return False
    pairs = _PAIR.findall(text)
    if len(pairs) < 2:
        return False
    covered = sum(len(key) + len(value) + 2 for key, value in pairs)
    return covered > 0.8 * len(text.strip()) and all(
        len(key.split()) <= 6 and key.count("(") == key.count(")") for key, _ in pairs
    )


def _read_words(text: str, start: int, end: int, marked: bool) -> ReadingText:
    reading = ReadingText()
    position = start
    for match in (_MARKED_WORDS if marked else _WORDS).finditer(text, start, end):
        if len(reading) and _GAP.search(text, position, match.start()):
            reading.add_at(" ", position)
        reading.add_words(match.group().replace("\n", " "), match.start())
        position = match.end()
    return reading


def _classify_segment(text: str, marker: re.Match[str] | None) -> tuple[SegmentKind, Pairs]:
    if marker and marker["heading"]:
        return "heading", NO_PAIRS
    is_item = marker is not None and marker["item"] is not None
    if _is_row(text) or (not is_item and _FIELD.fullmatch(text)):
        return "row", tuple((match.span(1), match.span(2)) for match in _PAIR.finditer(text))
    if is_item:
        return "item", NO_PAIRS
    return ("display" if _is_display(text) else "prose"), NO_PAIRS


def _last_sentence(text: str) -> str:
    spans = sentences(text)
    return text[slice(*spans[-1])] if spans else ""


def _is_display(text: str) -> bool:
    """Return whether a line stands apart from prose: in capitals, or a few capitalised words
    lacking end punctuation."""
    if capitals_of(text) > 0.7:
        return True
    words = text.split()
    if len(words) > 9 or text[-1] in ".,;:!?\"'”’)" or not text[0].isalpha():
        return False
    return all(word[0].isupper() or len(word) <= 3 for word in words)
