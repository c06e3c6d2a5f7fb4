"""Which way of reading a text needs: by its script, and for Latin script by its stop words."""

from __future__ import annotations

import re
from typing import Literal as Choice

from tgraph.extract.lexicon import words

Language = Choice["en", "zh", "other"]

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = words(
    """
    the of and to in a is was that for it with as his on be at by had he but from her they are
    which not she this have were an or their there been we you i him who its when will no more
    if out so said what up into them then than some could would about after other my
    """
)
_OTHERS = words(
    """
    der die das und ist nicht ein eine mit von zu den dem des auf für im sich le la les et est
    un une dans que qui pour sur pas au el los las y en es una por con se del lo il di che è per
    non gli della het een van dat niet zijn och att det som på är inte og ikke til av de do da
    em não uma os com para na ja że nie się jest w i že
    """
)
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
