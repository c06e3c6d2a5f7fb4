"""What a question asks for: the terms that tell, the names in it, and the kind of answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal as Choice

from tgraph.retrieve.lexical import STOP_WORDS, Frequencies, listed, stem, words

Kind = Choice["person", "time", "place", "number", "reason", "name", ""]

_KINDS: dict[Kind, str] = {
    "time": r"\b(?:when|(?:what|which) (?:\w+ )?(?:year|date|day|month|century|decade))\b",
    "number": r"\bhow (?:many|much|far|long|old|deep|high|tall|fast|large|big|wide|heavy|often)\b"
    r"|\b(?:what|which) (?:\w+ )?(?:number|price|cost|sum|amount|latitude|longitude|depth|height"
    r"|distance|length|age|percentage|temperature|wage|salary|population|speed)\b",
    "person": r"\b(?:who|whom|whose)\b",
    "place": r"\bwhere\b|\b(?:what|which) (?:\w+ )?(?:city|country|town|place|state|county)\b",
    "reason": r"\b(?:why|for what reason|what (?:caused|led to))\b",
    "name": r"\b(?:which|(?:what|under what)\b.{0,40}\b(?:names?|called|named))\b",
}
_FOCUS = re.compile(
    r"\b(?:which|what|how many|how much)\s+((?:[^\W\d_]+\s+){0,3}?[^\W\d_]+)\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<![.?!]\s)(?<!^)\b[^\W\d_a-z]\w*(?:[-'’]\w+)*")
_FRAME = listed(
    """
    manage managed finally final eventually actually originally later earlier exactly usually
    really still ever member members person people thing things someone anyone get got
    name names named call called give given become became happen happened kind sort many
    much long far
    """
)
"""Words that shape a question rather than say what it is about."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question, read.

    ``weights`` says how much each term of the question tells (greater than 0), ``names`` which of
    the terms belong to names, ``focus`` the terms after "which", "what" or "how many".
    """

    text: str
    weights: Mapping[str, float]
    names: frozenset[str]
    kind: Kind
    focus: frozenset[str]

    @property
    def asked(self) -> str:
        """The question without its names."""
        return " ".join(_NAME.sub(" ", self.text).split())

    @property
    def asks_name(self) -> bool:
        """Whether the question is what something is called, rather than who or which it is."""
        return self.kind == "name" and bool(_ASKS_NAME.search(self.text))

    @property
    def total(self) -> float:
        return sum(self.weights.values())


def read_question(text: str, frequencies: Frequencies) -> Inquiry:
    """The question's terms weighted by how rare they are in the body of texts."""
    names = frozenset(stem(w) for m in _NAME.findall(text) for w in words(m) if w not in STOP_WORDS)
    focus = _FOCUS.search(text)
    focal = frozenset(_stems(focus.group(1))) if focus else frozenset()
    weights = {
        term: _weight(term, names, focal, frequencies) for term in dict.fromkeys(_stems(text))
    }
    return Inquiry(text, weights, names, _kind(text), focal - names)


_CLAUSE = re.compile(
    r"(?<=[\w?'’] )(?:(?:in|on|at|to|from|for|of|by|with|under|after|before|near|during|through) )?"
    r"(?:that|who|whom|whose|which|where)\b",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"(?<=[.!])\s+(?=\w)")


def split_question(text: str) -> tuple[str, str] | None:
    """What is asked, and the description of whom or what it is asked about; None without one.

    "Who designed the ship that carried the first party?" asks "Who designed the ship" about
    "the ship that carried the first party?".
    """
    sentences = _SENTENCES.split(text.strip())
    if len(sentences) > 1 and sentences[-1].endswith("?"):
        return sentences[-1], " ".join(sentences[:-1])
    for clause in _CLAUSE.finditer(text):
        main = text[: clause.start()].strip()
        head = " ".join(main.split()[-2:])
        rest = f"{head} {text[clause.start() :]}"
        if _stems_of(main) and len(_stems_of(text[clause.end() :])) > 1:
            return main, rest
    return None


def _stems_of(text: str) -> list[str]:
    return [w for w in words(text) if w not in STOP_WORDS and w not in _FRAME]


def _stems(text: str) -> list[str]:
    telling = [w for w in words(text) if w not in STOP_WORDS]
    return [stem(w) for w in telling if w not in _FRAME] or [stem(w) for w in telling]


def _weight(
    term: str, names: frozenset[str], focus: frozenset[str], frequencies: Frequencies
) -> float:
    weight = max(0.05, frequencies.idf(term))
    if term in names:
        return weight * 1.2
    return weight * 0.8 if term in focus else weight


def _kind(text: str) -> Kind:
    """By the first question word that tells."""
    found = [
        (match.start(), kind)
        for kind, pattern in _KINDS.items()
        if (match := re.search(pattern, text, re.IGNORECASE))
    ]
    return min(found)[1] if found else ""


# --- does a text hold such an answer? -------------------------------------------------------------

_NUMBER_WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    "|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred"
    "|thousand|million|dozen|half|once|twice"
)
_NUMBER = re.compile(rf"\d|\b(?:{_NUMBER_WORDS})\b", re.IGNORECASE)
_COUNTED = rf"(?:\d[\d,.]*|(?:{_NUMBER_WORDS})(?:[- ](?:{_NUMBER_WORDS}))*)"
_TIME = re.compile(
    r"\b1\d{3}\b|\b20\d\d\b|\b(?:January|February|March|April|May|June|July|August|September"
    r"|October|November|December|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
    r"|century|o'clock|midnight|noon)\b|\b\d{1,2}(?:st|nd|rd|th)\b"
)
_REASON = re.compile(
    r"\b(?:because|since|so that|in order|due to|for want|for fear|as (?:he|she|it|they)|owing to"
    r"|therefore|reason|wanted|hoped|believed|wished|to \w+)\b",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"\b(?:re)?named?\b|\bcalled\b|\bchristened\b|\bknown as\b|\bnames\b|\bname:", re.IGNORECASE
)
_ASKS_NAME = re.compile(r"\b(?:names?|called|named|renamed)\b", re.IGNORECASE)
_PROPER = re.compile(r"[^\W\d_a-z]\w+(?:[-'’]\w+)*")


def answers(inquiry: Inquiry, quote: str) -> float:
    """0..1: whether the quote holds something of the kind asked for, beyond the question."""
    if inquiry.kind == "number":
        return _counts(inquiry, quote)
    if inquiry.kind == "time":
        return 1.0 if _TIME.search(_without(inquiry, quote)) else 0.0
    if inquiry.kind == "reason":
        return 1.0 if _REASON.search(quote) else 0.3
    if inquiry.kind in ("person", "place", "name"):
        return _names_one(inquiry, quote)
    return 0.5


def _names_one(inquiry: Inquiry, quote: str) -> float:
    """Any new name is something; one that is given, or of the sort asked for, is the answer."""
    if not new_names(inquiry, quote):
        return 0.0
    if inquiry.asks_name:
        return 1.0 if _NAMED.search(quote) else 0.3
    if inquiry.kind == "name" and inquiry.focus:
        found = frozenset(stem(w) for w in words(quote))
        return 1.0 if any(matched(t, found, roots_of(found)) for t in inquiry.focus) else 0.6
    return 1.0


def new_names(inquiry: Inquiry, quote: str) -> list[str]:
    """The capitalised words of the quote that the question doesn't have; not the first word alone
    where it is an ordinary one."""
    found = []
    for match in _PROPER.finditer(quote):
        lower = match.group().casefold()
        known = lower in STOP_WORDS or stem(lower) in inquiry.weights
        opening = match.start() <= 1 and not _PROPER.match(quote, match.end() + 1)
        if not known and not opening:
            found.append(match.group())
    return found


def _counts(inquiry: Inquiry, quote: str) -> float:
    """A number that belongs to the thing counted is worth more than any number."""
    if not _NUMBER.search(_without(inquiry, quote)):
        return 0.0
    for term in inquiry.focus:
        if re.search(rf"\b{_COUNTED}(?:\W+\w+){{0,2}}?\W+{re.escape(term[:5])}", quote, re.I):
            return 1.0
    return 0.7


def _without(inquiry: Inquiry, quote: str) -> str:
    """The quote less the numbers and dates that the question itself names."""
    return re.sub(r"\w+", lambda m: "" if _is_known(inquiry, m.group()) else m.group(), quote)


def _is_known(inquiry: Inquiry, word: str) -> bool:
    return stem(word.casefold()) in inquiry.weights


# --- how much of the question a text covers -------------------------------------------------------


@lru_cache(maxsize=65536)
def _root(term: str) -> str:
    """The first letters of a longer word, which it shares with its relatives."""
    return term[:5] if len(term) > 5 else term


def matched(term: str, found: frozenset[str], roots: frozenset[str]) -> float:
    """1 where the term is among those found, 0.7 where only a relative of it is."""
    if term in found:
        return 1.0
    return 0.7 if len(term) >= 5 and term.isalpha() and _root(term) in roots else 0.0


def roots_of(found: frozenset[str]) -> frozenset[str]:
    return frozenset(_root(term) for term in found if len(term) >= 5)
