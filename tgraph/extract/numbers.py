"""What a bare number counts or measures: "107 wind turbines", "a population of 750"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tgraph.extract.phrases import core_text, phrase_bounds
from tgraph.extract.pipeline import verb_lemma

if TYPE_CHECKING:
    from spacy.tokens import Token

_NOUNS = frozenset({"NN", "NNS"})
_LONGEST = 3


def measured(token: Token) -> str:
    """The predicate that leads to a number, such as ``number of wind turbines``.

    Empty where the sentence doesn't tell what the number is of.
    """
    head = token.head
    if token.dep_ in ("nummod", "compound", "quantmod") and head.tag_ == "NNS":
        return _number_of(token, head)
    if token.dep_ == "pobj" and head.head.tag_ in _NOUNS and head.lower_ in ("of", "at"):
        return f"have {core_text(head.head)}"
    if token.dep_ in ("attr", "pobj", "acomp") and verb_lemma(_verb(token)) == "be":
        subjects = [child for child in _verb(token).children if child.dep_ == "nsubj"]
        if subjects and subjects[0].tag_ in _NOUNS:
            return f"have {core_text(subjects[0])}"
    return ""


def _verb(token: Token) -> Token:
    return token.head.head if token.dep_ == "pobj" else token.head


def _number_of(number: Token, noun: Token) -> str:
    start = max(phrase_bounds(noun, whole=False)[0], number.i + 1, noun.i + 1 - _LONGEST)
    return f"number of {number.doc[start : noun.i + 1].text}" if start <= noun.i else ""
