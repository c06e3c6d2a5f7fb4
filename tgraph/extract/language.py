"""Which way of reading a text needs: by its script, and for Latin script by its stop words."""

from __future__ import annotations

import re
from typing import Literal as Choice

from tgraph.resources import word_set

Language = Choice["en", "zh", "other"]

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = word_set("languages", "english")
_OTHERS = word_set("languages", "others")
_ENOUGH = 12


def language_of(text: str) -> Language:
    """``en``, ``zh`` or ``other``. Latin text without a sign of another language is English."""
    sample = text[:20_000]
    letters = sum(map(str.isalpha, sample))
    if not letters:
        return "en"
    if len(_HAN.findall(sample)) > 0.3 * letters:
        return "other" if len(_KANA_OR_HANGUL.findall(sample)) > 0.05 * letters else "zh"
    ascii_letters = sum(c.isascii() and c.isalpha() for c in sample)
    if ascii_letters < 0.7 * letters:
        return "other"
    words = [word.lower() for word in _WORD.findall(sample)]
    english = sum(word in _ENGLISH for word in words)
    others = sum(word in _OTHERS - _ENGLISH for word in words)
    if len(words) < _ENOUGH:
        return "en" if english >= others else "other"
    return "en" if english > others and english >= 0.06 * len(words) else _by_share(others, words)


def _by_share(others: int, words: list[str]) -> Language:
    """Code, tables and lists have no stop words at all: they are read as English."""
    return "other" if others >= 0.06 * len(words) else "en"
