"""Text as it reads, built piece by piece, each character with its place in the source."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence

from tgraph.model import Segment, SegmentKind

# What is put between words and never read: soft hyphens, marks of width and direction.
_UNREAD = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff").union(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)
_UNREAD_MARK = re.compile(f"[{''.join(sorted(_UNREAD))}]")
# "[27]", "[^note]", "[edit]": marks of references and of a wiki's editors.
_MARK = re.compile(
    r"\[(?:\d{1,3}(?:[,–-] ?\d{1,3}){0,4}|\^[^\[\]\s]{1,40}|[a-z]|(?:note|n|nb) \d{1,3}|edit"
    r"|edit source|citation needed|clarification needed|better source needed|when\?|who\?"
    r"|according to whom\?| |X|![A-Z]{3,12})\]"
)


class ReadingText:
    """A text under construction: white space collapsed, what isn't read left out."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.offsets = array("q")
        self._gap: int | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        return "".join(self._parts)

    def add(self, text: str, places: Sequence[int]) -> None:
        """Append what reads as ``text``, whose character ``i`` stands at ``places[i]``."""
        if _UNREAD_MARK.search(text):
            kept = [i for i, character in enumerate(text) if character not in _UNREAD]
            text = "".join(text[i] for i in kept)
            places = [places[i] for i in kept]
        at = 0
        for word in text.split():
            begin = text.index(word, at)
            if begin > at or (at and begin == at):
                self._space(places[at])
            self._word(word, places[begin : begin + len(word)])
            at = begin + len(word)
        if at < len(text):
            self._space(places[at])

    def add_at(self, text: str, place: int) -> None:
        """Append what the reading adds to the source, said to stand at one place of it."""
        self.add(text, [place] * len(text))

    def _space(self, place: int) -> None:
        if self._gap is None:
            self._gap = place

    def _word(self, word: str, places: Sequence[int]) -> None:
        if self._gap is not None and self._length:
            self._parts.append(" ")
            self.offsets.append(self._gap)
            self._length += 1
        self._gap = None
        self._parts.append(word)
        self.offsets.extend(places)
        self._length += len(word)

    def segment(
        self, kind: SegmentKind, context: tuple[str, ...], start: int = -1, end: int = -1
    ) -> Segment | None:
        """The segment of what was read, None where nothing was; reference marks are left out.

        Without ``start`` and ``end`` it goes from its first to its last character.
        """
        text, offsets = without_marks(self.text, self.offsets)
        if not text:
            return None
        first = offsets[0] if start < 0 else start
        last = offsets[-1] + 1 if end < 0 else end
        return Segment(kind, first, last, text, offsets, context)


def without_marks(text: str, offsets: array[int]) -> tuple[str, array[int]]:
    """The text without marks such as ``[27]`` and ``[edit]``, and without the space that they
    leave before punctuation."""
    if "[" not in text or not _MARK.search(text):
        return text, offsets
    kept, places, at = [], array("q"), 0
    for match in _MARK.finditer(text):
        begin, end = match.span()
        if begin and text[begin - 1] == " " and (end == len(text) or not text[end].isalnum()):
            begin -= 1
        if begin < at:
            begin = at
        kept.append(text[at:begin])
        places.extend(offsets[at:begin])
        at = end
    kept.append(text[at:])
    places.extend(offsets[at:])
    joined = "".join(kept)
    lead = len(joined) - len(joined.lstrip())
    joined = joined.strip()
    return joined, places[lead : lead + len(joined)]


def joined_contexts(*parts: Iterable[str]) -> tuple[str, ...]:
    """The contexts one after the other, without what is empty or said twice in a row."""
    found: list[str] = []
    for part in parts:
        for text in part:
            if text and (not found or found[-1] != text):
                found.append(text)
    return tuple(found)
