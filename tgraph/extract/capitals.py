"""Runs of capitalised words, joined over "of" and other particles: candidates for names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tgraph.extract.kinds import kind_of_name, kind_of_noun
from tgraph.resources import word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

TYPES = {
    "PERSON": "person",
    "NORP": "group",
    "FAC": "facility",
    "ORG": "organization",
    "GPE": "place",
    "LOC": "place",
    "PRODUCT": "product",
    "EVENT": "event",
    "WORK_OF_ART": "work",
    "LAW": "law",
    "LANGUAGE": "language",
}
NAME_TAGS = frozenset({"NNP", "NNPS"})
_NEVER = frozenset({"PRP", "PRP$", "WP", "WDT", "WRB", "MD", "UH", "EX", "CC", "DT", "IN", "TO"})
_INNER = word_set("english", "inner")
_OPENERS = frozenset({'"', "“", "''", "``", "‘", "'", ":", "(", "[", "--", "—"})
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
SUFFIXES = frozenset({"Inc.", "Inc", "Jr.", "Jr", "Sr.", "Ltd.", "Ltd", "LLC", "L.L.C.", "D.C."})
_NUMBERING = word_set("english", "numbered")
_OWNED = ("organization", "facility")
_NUMBERED = ("organization", "event", "place")


def runs(doc: Doc, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Maximal runs of capitalised words, joined over particles."""
    position = 0
    while position < len(doc):
        if taken[position] or not _starts_name(doc, position):
            position += 1
            continue
        end = run_end(doc, position, taken)
        yield position, end
        position = end


def _starts_name(doc: Doc, position: int) -> bool:
    if _is_name_word(doc[position]):
        return True
    token = doc[position]
    following = doc[position + 1] if position + 1 < len(doc) else None
    if following is None or not (token.tag_ == "CD" or _ORDINAL.fullmatch(token.text)):
        return False
    end = run_end(doc, position + 1, bytearray(len(doc))) if _is_name_word(following) else 0
    kind = kind_of_name(doc[position + 1 : end].text) if end else ""
    return kind == "event" or (bool(_ORDINAL.fullmatch(token.text)) and kind in _NUMBERED)


def run_end(doc: Doc, start: int, taken: bytearray) -> int:
    """The end of the run that starts at a token; it stops at tokens that are ``taken``."""
    end = start + 1
    while end < len(doc) and not taken[end]:
        if _is_name_word(doc[end], inside=True) or _is_number_of(doc, end):
            end += 1
            continue
        following = _over_particles(doc, end)
        if following is None or any(taken[end:following]):
            break
        end = following
    return end


def _over_particles(doc: Doc, position: int) -> int | None:
    """The end of a continuation such as "of the Antarctic", None where there is none."""
    token, after = doc[position], doc[position + 1] if position + 1 < len(doc) else None
    if after is None:
        return None
    if token.text == "," and after.text in SUFFIXES:
        return position + 2
    if token.text == "." and len(doc[position - 1]) == 1:
        return position + 2 if _is_name_word(after, True) else None
    if token.lower_ in ("'s", "’s"):
        joined = after.ent_iob_ == "I" or _is_owned(doc, position + 1)
        return position + 2 if after.text[0].isupper() and joined else None
    if token.text in ("-", "–"):
        tight = not token.whitespace_ and not doc[position - 1].whitespace_
        spaced = after.tag_ in NAME_TAGS and bool(doc[position - 1].whitespace_)
        return position + 2 if after.is_alpha and (tight or spaced) else None
    if token.lower_ not in _INNER:
        return None
    step = position + (2 if after.lower_ in ("the", "la", "los", "las") else 1)
    if step < len(doc) and (_is_name_word(doc[step], True) or _is_law_year(doc, step)):
        return step + 1
    return None


def _is_owned(doc: Doc, start: int) -> bool:
    """Whether an institution or an award stands behind "'s": "Georgia Children's Book Award"."""
    end = start + 1
    while end < len(doc) and end < start + 5 and _is_name_word(doc[end], inside=True):
        end += 1
    return kind_of_noun(doc[end - 1].lower_) in (*_OWNED, "award")


def _is_law_year(doc: Doc, position: int) -> bool:
    return doc[position].is_digit and doc[position - 2].text in ("Act", "War", "Treaty", "Battle")


def _is_number_of(doc: Doc, position: int) -> bool:
    """A number that ends a name: "Route 104", "Apollo 11"."""
    token = doc[position]
    if not token.is_digit or len(token) > 4:
        return False
    if doc[position - 1].lower_ in _NUMBERING:
        return True
    if len(token) > 3:
        return False
    following = doc[position + 1] if position + 1 < len(doc) else None
    return following is None or following.tag_ not in ("NN", "NNS", "NNP", "CD")


def _is_name_word(token: Token, inside: bool = False) -> bool:
    text = token.text
    if not text[0].isupper() or (text == "I" and not (inside and token.tag_ != "PRP")):
        return False
    if token.tag_ in NAME_TAGS:
        return True
    if token.tag_ in _NEVER or (token.is_sent_start and not inside):
        return token.ent_type_ in TYPES and token.tag_ not in _NEVER and bool(token.is_sent_start)
    if _after_quote(token) and not inside:
        return token.ent_type_ in TYPES
    return True


def _after_quote(token: Token) -> bool:
    """Whether the word opens a quotation or a remark, where a capital says nothing."""
    return token.i == 0 or token.nbor(-1).text in _OPENERS
