"""Sentences with exact offsets, by rules: the paragraph's shape first, then punctuation.

A text is cut into units that no sentence crosses (paragraphs, headings, list items, table rows,
``Key: value`` lines), and each unit at its full stops. A single line break inside a paragraph ends
nothing, so hard-wrapped prose keeps its sentences; one after a line that stops well short of the
paragraph's width does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from tgraph.resources import word_set

CharacterRange = tuple[int, int]

_LINE = re.compile(r"[^\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_BREAKS_PARAGRAPH = re.compile(
    r"(?>\r\n?|\n|\x85|\u2028)[^\S\r\n]*[\r\n\x85\u2028]|[\x0b\x0c\x1c-\x1e\u2029]"
)

# What a line is, judged by its first characters (and a short one by all of them).
_HEADING = re.compile(r"[ ]{0,3}#{1,6}(?:\s|$)|[ ]{0,3}(?:=+|-{3,}|\*{3,}|_{3,})\s*$")
_ITEM = re.compile(r"\s*(?:[-*+•‣◦▪–]|\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)])[ \t]+\S")
_ROW = re.compile(r"\s*\||.* \| ")
_LISTED = re.compile(r".*\S(?:\s{4,}|\.{4}\s?)\S{1,12}\s*$")  # an entry of a table of contents
_PAIR = re.compile(r"\s*[^\W\d_][^:：.!?;,|]{0,40}(?::[ \t]+|：)\S")
_PAIRS = re.compile(r"\s*[^\W\d_][^:.!?;|]{0,60}: [^;]*; [^:;]{1,60}: ")
_FIRST_WORD = re.compile(r"\s*(\S+)")
_GOES_ON = re.compile(
    r"(?:[,;:，、；：(\[–—-]|\b(?:a|an|the|of|and|or|to|in|for|by|with|at|on|from))$"
)

# Each alternative starts only at the first of its characters and never backtracks: linear time.
_CLOSERS = "\"'”’»›)\\]}*_`」』）】》〉"
_STOP = re.compile(
    rf"(?<![.!?…‼⁇⁈⁉])(?<!\.\s)(?>\.(?:\s?\.)++|[.!?…‼⁇⁈⁉]++)[{_CLOSERS}«“]*+(?:\[\d+\])*+"
    r"(?:[ \u00a0\u202f]»(?=\s|\Z))?+(?=\s)"
    rf"|[。！？｡．]++[…—]*+[{_CLOSERS}]*+"
    rf"|(?<![؟۔।॥።])[؟۔।॥።]++[{_CLOSERS}]*+(?=\s)"
)
_NEXT = re.compile(r"[\s\"'“”‘’«‹(\[{*_`¿¡「『（【《〈—–-]*+(\w{1,40})?(\.)?")
_LAST_WORD = re.compile(r"((?:[^\W_]+\.)*[^\W_]+)\.$")
_NUMBERED = re.compile(r"[\s*_(\[]*(?:\d{1,3}(?:\.[\dA-Z]{1,2})*|[A-Za-z]|[IVXLC]{1,6})\.$")
_DOTTED_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_HEAD = 240

# Never the end of a sentence: something named or counted follows. A word of these lists stands for
# any case of it, a capitalised one only for itself and its capitals ("She sat." is no Saturday).
_TITLES = word_set("sentences", "titles")
# Perhaps the end: only when the next word is one that sentences like to begin with.
_PERHAPS = word_set("sentences", "perhaps")
_ALSO_WORDS = word_set("sentences", "also_words")
_OPENERS = word_set("sentences", "openers")
_ABBREVIATIONS = {code: word_set("sentences", code) for code in ("de", "fr", "es")}
_FOREIGN = frozenset[str]().union(*_ABBREVIATIONS.values())
_GERMAN_OPENERS = word_set("sentences", "de_openers")
_TOLD = 4_000
"""Characters by which the language of a text is told."""
_ORDINAL = 2
"""Digits of an ordinal, such as that of a day or a century."""


def sentences(text: str) -> list[CharacterRange]:
    """The sentences of ``text`` as ``(start, end)`` code-point offsets, in order.

    They don't overlap, begin and end with a character that isn't white space, and every such
    character of the text is in exactly one. Linear in time.
    """
    return [
        span for start, end in _split_units(text) for span in _split_sentences(text, start, end)
    ]


def _split_units(text: str) -> Iterator[CharacterRange]:
    start = 0
    for match in _BREAKS_PARAGRAPH.finditer(text):
        yield from _split_paragraph(text, start, match.start())
        start = match.end()
    yield from _split_paragraph(text, start, len(text))


def _split_paragraph(text: str, start: int, end: int) -> Iterator[CharacterRange]:
    """Split a paragraph between lines where the line break is meaningful."""
    lines = [match.span() for match in _LINE.finditer(text, start, end)]
    if len(lines) < 2:
        yield from lines
        return
    width = max(stop - begin for begin, stop in lines)
    unit_start, last = lines[0]
    head = text[unit_start : min(last, unit_start + _HEAD)]
    for begin, stop in lines[1:]:
        line = text[begin : min(stop, begin + _HEAD)]
        unit_tail = text[max(begin - _HEAD, unit_start) : last].rstrip()
        if _separates_lines(head, line) or _stops_short(unit_tail, line, width):
            yield unit_start, begin
            unit_start = begin
        head, last = line, stop
    yield unit_start, end


def _separates_lines(before: str, line: str) -> bool:
    """Return whether a line break ends a sentence, regardless of line length."""
    if any(kind.match(before) or kind.match(line) for kind in (_HEADING, _ROW, _PAIRS)):
        return True
    if _ITEM.match(line) or _LISTED.match(before):
        return True
    return bool(_PAIR.match(before) and _PAIR.match(line))


def _stops_short(before: str, line: str, width: int) -> bool:
    """Return whether a short line was ended for a new start, as after a heading or in verse."""
    first = _FIRST_WORD.match(line)
    if first is None or first[1][0].islower():
        return False
    room = 0.75 * width - len(before)
    return room > 0 and len(first[1]) < room and not _GOES_ON.search(before)


def _split_sentences(text: str, start: int, end: int) -> Iterator[CharacterRange]:
    at = start
    for match in _STOP.finditer(text, start, end):
        if _ends_sentence(text, at, match, end):
            yield from trim_span(text, at, match.end())
            at = match.end()
    yield from trim_span(text, at, end)


def trim_span(text: str, start: int, end: int) -> Iterator[CharacterRange]:
    """Yield the span stripped of surrounding white space, unless nothing remains."""
    piece = text[start:end]
    indent = len(piece) - len(piece.lstrip())
    if indent < len(piece):
        yield start + indent, start + len(piece.rstrip())


def _ends_sentence(text: str, start: int, stop: re.Match[str], end: int) -> bool:
    """Return whether a stop ends the sentence beginning at ``start``, judged by surrounding
    words."""
    follow = _NEXT.match(text, stop.end(), end)
    word = follow[1] if follow else None
    if word is None:
        return True
    if word[0].islower():
        return False
    if not stop[0].startswith(".") or stop[0].startswith((". ", "..")):
        return True
    dotted = text[max(start, stop.start() - 40) : stop.start() + 1]
    if stop.start() - start < 8 and _NUMBERED.match(dotted):
        return False
    last = _LAST_WORD.search(dotted)
    if last is not None and _may_be_foreign(last[1]) and _goes_on_abroad(last[1], word, text):
        return False
    return last is None or _ends_after(last[1], word, follow is not None and follow[2] is not None)


def _may_be_foreign(last: str) -> bool:
    """Return whether an abbreviated word may continue a foreign-language sentence."""
    return last in _FOREIGN or (last.isdigit() and len(last) <= _ORDINAL)


def _goes_on_abroad(last: str, word: str, text: str) -> bool:
    """Return whether the word is an abbreviation in the text's language, or a German ordinal,
    continuing the sentence."""
    code = _detect_language(text[:_TOLD])
    if last.isdigit():
        return code == "de" and word not in _GERMAN_OPENERS
    return last in _ABBREVIATIONS.get(code, ())


@lru_cache(maxsize=64)
def _detect_language(text: str) -> str:
    from tgraph.ingest.languages import detect_language  # late: few texts need it

    return detect_language(text)


def _ends_after(last: str, word: str, word_is_dotted: bool) -> bool:
    """Return whether ``last.`` before ``word`` ends a sentence, unlike an abbreviation or
    initial."""
    opener = word in _OPENERS and not word_is_dotted
    if _contains_form(last, _TITLES):
        return opener and last.lower() in _ALSO_WORDS
    initials = last.isupper() and _DOTTED_INITIALS.fullmatch(last)
    return opener if initials or _contains_form(last, _PERHAPS) else True


def _contains_form(word: str, abbreviations: frozenset[str]) -> bool:
    forms = {word, word.lower(), word.capitalize() if word.isupper() else word}
    return not abbreviations.isdisjoint(forms)
