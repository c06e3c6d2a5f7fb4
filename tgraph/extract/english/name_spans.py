"""Spans of capitalised words, with inner and surrounding names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tgraph.extract.english.parser import find_lemma, text_of
from tgraph.extract.entity_types import denotes_person, kind_of_name, kind_of_noun
from tgraph.resources import name_list, word_set

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

NameSpan = tuple[int, int, str]

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
_AIMS = frozenset({"for", "on"})
_AIMED = ("organization", "law", "event")
_JOINTS = frozenset({"of", "at"})
_TITLE_JOINTS = frozenset({"of", "at", "in", "from", "for", "to", "between", "and", "on", "with"})
_OF_GROUPS = word_set("english", "of_groups")
_NOT_OUTER = word_set("english", "not_outer")
_BEFORE_DEFINITE = frozenset({"the", "of", "and", "in", "by"})
_OF_KIND = ("organization", "facility", "event")
_JOINED = re.compile(
    rf"\b(?:Republic of )?(?:{'|'.join(map(re.escape, name_list('regions', 'joined')))})\b"
)


def find_runs(doc: Doc, taken: bytearray) -> Iterator[tuple[int, int]]:
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
    """Return a run's end position; ``taken`` tokens stop the run."""
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
    """Return the end position of a name continuation, or None without continuation.

    Example: "of the Antarctic"."""
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
    if token.lower_ not in _INNER and not _names_its_aim(doc, position):
        return None
    step = position + (2 if after.lower_ in ("the", "la", "los", "las") else 1)
    if step < len(doc) and (_is_name_word(doc[step], True) or _is_law_year(doc, step)):
        return step + 1
    return None


def _names_its_aim(doc: Doc, position: int) -> bool:
    """Tell whether an institution's name continues with its purpose: "Center for the Visual
    Arts"."""
    return doc[position].lower_ in _AIMS and kind_of_noun(doc[position - 1].lower_) in _AIMED


def _is_owned(doc: Doc, start: int) -> bool:
    """Whether an institution or an award stands behind "'s": "Georgia Children's Book Award"."""
    end = start + 1
    while end < len(doc) and end < start + 5 and _is_name_word(doc[end], inside=True):
        end += 1
    return kind_of_noun(doc[end - 1].lower_) in (*_OWNED, "award")


def _is_law_year(doc: Doc, position: int) -> bool:
    return doc[position].is_digit and doc[position - 2].text in ("Act", "War", "Treaty", "Battle")


def _is_number_of(doc: Doc, position: int) -> bool:
    """Tell whether a number ends a name: "Route 104", "Apollo 11"."""
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
    # Where a word opens a quotation or a remark its capital says nothing.
    opens = not inside and (token.i == 0 or token.nbor(-1).text in _OPENERS)
    return not opens or token.ent_type_ in TYPES


def joined_places(doc: Doc) -> Iterator[NameSpan]:
    """Yield countries and regions with coordinated names, such as "Trinidad and Tobago"."""
    if " and " not in text_of(doc):
        return
    for match in _JOINED.finditer(text_of(doc)):
        span = doc.char_span(*match.span())
        if span is not None:
            yield span.start, span.end, "place"


def inner_names(doc: Doc, start: int, end: int, kind: str) -> Iterator[NameSpan]:
    """Yield names inside a longer name of type ``kind``, from ``start`` to ``end``: "Philbrook
    Museum" and "Tulsa" in "Philbrook Museum of Tulsa".

    Each name has token bounds and a recognised type, blank if unrecognised."""
    if kind != "person":
        yield from _recognised_names(doc, start, end)
        yield from _find_acronym(doc, start, end)
    joints = [token.i for token in doc[start:end] if token.lower_ in _JOINTS]
    if joints and kind != "work":
        yield joints[-1] + 1, end, _entity_type(doc, joints[-1] + 1, end)
        if joints[0] - start > 1:
            yield start, joints[0], _entity_type(doc, start, joints[0])


def parts_of_title(doc: Doc, start: int, end: int) -> Iterator[NameSpan]:
    """Yield names inside a title that isn't a name itself, such as "Wind power in the United
    States"."""
    begin = start
    for place in [t.i for t in doc[start:end] if t.lower_ in _TITLE_JOINTS] + [end]:
        if start < begin or place < end:
            yield begin, place, _entity_type(doc, begin, place)
        begin = place + 1


def outer_names(doc: Doc, start: int, end: int, kind: str) -> Iterator[NameSpan]:
    """Yield longer names beginning with a shorter name from ``start`` to ``end``."""
    if end < len(doc) and kind != "person":
        yield from _with_noun(doc, start, end, kind)
        yield from _with_second(doc, start, end)


def _with_noun(doc: Doc, start: int, end: int, kind: str) -> Iterator[NameSpan]:
    """Yield a name joined with a noun it distinguishes: "the Baltic region", "the Greek
    drachma"."""
    noun = doc[end]
    following = doc[end + 1] if end + 1 < len(doc) else None
    if noun.tag_ not in ("NN", "NNS") or not noun.is_alpha or noun.text[0].isupper():
        return
    if following is not None and following.tag_ in ("NN", "NNS", "NNP", "POS", "HYPH"):
        return
    if noun.lower_ in _NOT_OUTER or not _tells_apart(doc, start, noun, kind):
        return
    of_noun = kind_of_noun(find_lemma(noun.lower_, "noun"))
    yield start, end + 1, of_noun if of_noun != "person" else ""


def _tells_apart(doc: Doc, start: int, noun: Token, kind: str) -> bool:
    base = find_lemma(noun.lower_, "noun")
    noun_kind = kind_of_noun(base)
    if kind == "group":
        if noun_kind and noun.lower_ not in _OF_GROUPS:
            return False
    elif not noun_kind and noun.tag_ == "NNS":
        return False
    definite = start > 0 and doc[start - 1].lower_ in _BEFORE_DEFINITE
    return (definite or noun_kind == "place") and not denotes_person(base)


def _with_second(doc: Doc, start: int, end: int) -> Iterator[NameSpan]:
    """Yield coordinated names sharing a final word: "Organization and Guidance Department"."""
    if doc[end].lower_ != "and" or end + 1 >= len(doc) or doc[end + 1].tag_ not in NAME_TAGS:
        return
    close = run_end(doc, end + 1, bytearray(len(doc)))
    ends = (doc[end - 1].lower_, doc[close - 1].lower_)
    first, last = (kind_of_noun(word) for word in ends)
    if last in _OF_KIND and (first != last or ends[0] == "club") and close - end > 2:
        yield start, close, last


def _recognised_names(doc: Doc, start: int, end: int) -> Iterator[NameSpan]:
    begin = start
    for place in range(start, end):
        token = doc[place]
        if token.ent_iob_ != "I":
            begin = place
        is_complete = token.ent_type_ and doc[begin].ent_iob_ == "B" and _ends_here(doc, place)
        if is_complete and token.ent_type_ in TYPES and place + 1 - begin < end - start:
            yield begin, place + 1, TYPES[token.ent_type_]


def _ends_here(doc: Doc, place: int) -> bool:
    return place + 1 == len(doc) or doc[place + 1].ent_iob_ != "I"


def _find_acronym(doc: Doc, start: int, end: int) -> Iterator[NameSpan]:
    first = doc[start]
    if end - start > 1 and 2 < len(first) < 7 and first.is_upper and first.is_alpha:
        yield start, start + 1, _entity_type(doc, start, start + 1)


def _entity_type(doc: Doc, start: int, end: int) -> str:
    """Return the recognised type of exactly these tokens; blank if different or absent."""
    if start >= end or doc[start].ent_iob_ != "B" or not _ends_here(doc, end - 1):
        return ""
    inside = all(doc[place].ent_iob_ == "I" for place in range(start + 1, end))
    return TYPES.get(doc[start].ent_type_, "") if inside else ""
