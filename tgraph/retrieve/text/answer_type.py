"""Expected answer type of a question, and matching answers in sentences."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tgraph.extract.entity_types import kind_of_noun
from tgraph.resources import word_list
from tgraph.retrieve.text.lexical import FORMS, STOP_WORDS, stem, words

_QUESTION_WORD = re.compile(r"\b(who|whom|whose|when|where|why|how|what|which)\b", re.IGNORECASE)
_BY_WORD = {
    "who": "person",
    "whom": "person",
    "whose": "person",
    "when": "time",
    "where": "place",
    "why": "reason",
}
TIMES = frozenset({"year", "date", "day", "month", "century", "decade", "season"})
_COUNTED = re.compile(r"how (?:many|much|often)\b|\bnumber of\b", re.IGNORECASE)
_FATE_ASKED = re.compile(
    r"\bbec[oa]mes? of\b|\bhappen(?:s|ed)? to\b|\bfate\b|\bend(?:ed)? up\b", re.IGNORECASE
)
_WHY = re.compile(r"\b(?:for what reason|what (?:caused|led to))\b", re.IGNORECASE)
_ASKS_NAME = re.compile(r"\b(?:names?|called|named|renamed)\b", re.IGNORECASE)
_OF_A_SORT = re.compile(
    r"\b(?:kind|sort|type|name)s? (?:of|for|(?:was )?given to)\b", re.IGNORECASE
)

_LENGTHS = r"\b(?:kilomet|met(?:er|re)|mile|feet|foot|fathom|inch|yard|league)|\b(?:km|cm|mm|m)\b"
_MEASURES = {
    "money": (
        r"how much\b.{0,40}?\b(?:money|cost|pa(?:y|id)|earn|spen[dt]|worth|charge|owe)"
        r"|\b(?:cost|price|salary|wages?|sum|debt|income|fee|fortune|budget)\b",
        r"[£$€¥]\s?\d|\b(?:pounds?|dollars?|shillings?|pence|francs?|marks?|krone[rn]?|crowns"
        r"|euros?|guineas?|rubles?|yen)\b",
    ),
    "angle": (r"\b(?:latitude|longitude)\b", r"°|\bdegrees?\b"),
    "heat": (r"\btemperature\b|how (?:hot|cold|warm)\b", r"°|\bdegrees?\b"),
    "length": (
        r"how (?:far|tall|high|deep|wide)\b"
        r"|\b(?:depth|height|distance|length|width|altitude)\b",
        _LENGTHS,
    ),
    "duration": (
        r"how long\b",
        r"\b(?:second|minute|hour|day|week|fortnight|month|year|decade|centur|winter|summer|night)"
        rf"|{_LENGTHS}",
    ),
    "age": (
        r"how old\b|\bwhat age\b",
        r"\b(?:aged?|years?|old)\b|(?:twent|thirt|fort|fift|sixt|sevent|eight|ninet)(?:y|ies)",
    ),
    "share": (r"\bpercent", r"%|\bper ?cent|\bpercentage"),
}
MEASURES = frozenset(_MEASURES)
_MEASURED = {
    kind: (re.compile(asked, re.IGNORECASE), re.compile(held, re.IGNORECASE))
    for kind, (asked, held) in _MEASURES.items()
}
"""By measure: how it is asked for, and the unit that an answer has."""

_NUMBER_WORDS = word_list("questions", "numbers")
_ANY_NUMBER = "|".join(_NUMBER_WORDS)
_NUMBER = re.compile(rf"\d|\b(?:{_ANY_NUMBER})\b", re.IGNORECASE)
_COUNT = rf"(?:\d[\d,.]*+|(?:{_ANY_NUMBER})(?:[- ](?:{_ANY_NUMBER}))*)"
_HOUR = re.compile(rf"(?:[1-9]|1\d|2[0-4]|one|{'|'.join(_NUMBER_WORDS[:11])})", re.IGNORECASE)
_COUNTED_NOUN = re.compile(
    rf"(?<![\d,.]){_COUNT}\s+(?!(?:{_ANY_NUMBER}|{'|'.join(STOP_WORDS)})\b)[a-z]{{3,}}",
    re.IGNORECASE,
)
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
_FATE = re.compile(
    r"\b(?:die[sd]?|death|dead|killed|lost|drown\w*|s[au]nk|wreck\w*|disappear\w*|vanish\w*|trace"
    r"|perish\w*|missing|murder\w*|execut\w*|abandon\w*|fate|broke up|burn\w* out|scrapped|sold"
    r"|never (?:returned|seen|arrived|found|came|again))\b",
    re.IGNORECASE,
)
_GIVEN_NAME = re.compile(
    r"\b(?:re)?named?\b|\bcalled\b|\bchristened\b|\bknown as\b|\bnames\b|\bname:", re.IGNORECASE
)
_ASKING_CLAUSE = re.compile(r"\W*(?:who|whom|whose|why|how|what|which|whether)\b", re.IGNORECASE)
_ASKS_VALUE = re.compile(r"\b(?:what|which)\s+(?:is|are|was|were)\b", re.IGNORECASE)
_ROLE = re.compile(
    r"^\W*who(?:\s+(?:is|was|are|were)|['’]s)\s+the\s+(?:[\w-]+\s+){0,2}?([\w-]+)\s*"
    r"(?:\?|$|\b(?:of|at|in|for|to|on|with)\b)",
    re.IGNORECASE,
)
_PROPER = re.compile(r"[^\W\d_a-z]\w+(?:[-'’]\w+)*")

VALUES = frozenset({"number", "time", "person", "place", "name", *MEASURES})
"""Kinds of answers that are a name, a number or a time."""
_VAGUE = frozenset({"", "thing", "topic", "concept"})
_LIVING_OR_LAND = frozenset({"person", "place"})
_IN_PART = {"number": 0.7, "measure": 0.35, "reason": 0.3, "fate": 0.3}


@dataclass(frozen=True, slots=True)
class NamedAnswer:
    """An entity mentioned in a sentence, by name or pronoun: entity terms and entity kind."""

    iri: str
    label: str
    terms: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class ExpectedAnswerType:
    """Expected answer type: answer kind, focus noun, answer count, and whether a name is
    expected.

    ``kind`` is a measure ("money", "length"), ``number``, ``time``, ``reason``, ``fate``, an
    entity kind ("person", "ship"), ``name`` for any entity kind, or empty if unknown. ``role`` is
    the term of the office whose holder is asked for ("Who is the treasurer?"), ``units`` the
    measures of the noun that is counted ("How many rubles"), ``is_value`` whether the question asks
    what something is."""

    kind: str
    focus: frozenset[str]
    count: int
    is_name: bool
    role: str = ""
    units: frozenset[str] = frozenset()
    is_value: bool = False

    def held_by(self, quote: str, named: Sequence[NamedAnswer], known: Collection[str]) -> float:
        """Rate from 0 to 1 whether a sentence holds an answer of this type, ignoring ``known``
        terms."""
        if self.kind in _MEASURED:
            if not _NUMBER.search(_remove_known(known, quote)):
                return 0.0
            return 1.0 if _MEASURED[self.kind][1].search(quote) else _IN_PART["measure"]
        if self.kind == "number":
            return self._rate_count(quote, known)
        if self.kind == "time":
            return 1.0 if _TIME.search(_remove_known(known, quote)) else 0.0
        if self.kind == "reason":
            return 1.0 if _REASON.search(quote) else _IN_PART["reason"]
        if self.kind == "fate":
            return 1.0 if _FATE.search(quote) else _IN_PART["fate"]
        return self._rate_names(quote, named, known) if self.kind else 0.5

    def fits_answer(self, answer: str, known: Collection[str], quote: str = "") -> bool:
        """Return whether a short answer in a ``quote`` says something new that is of this type: a
        number, a time or a name, where that is asked for; ``known`` terms tell nothing new."""
        fresh = [w for w in words(answer) if w not in STOP_WORDS and stem(w) not in known]
        if not fresh or self.excludes(answer, quote):
            return False
        told = _remove_known(known, answer)
        if self.kind == "number" or self.kind in _MEASURED:
            return bool(_NUMBER.search(told))
        if self.kind == "time":
            return bool(_TIME.search(told) or _NUMBER.search(told))
        if self.is_name or self.kind == "person":
            return any(word in fresh for name in _PROPER.findall(answer) for word in words(name))
        return True

    def excludes(self, answer: str, quote: str) -> bool:
        """Return whether words of a quote can't be an answer of this type.

        A clause that itself asks ("how much it costs") is no value, and another unit, or an hour
        ("at seven"), no number of things."""
        if (self.is_value or self.kind in VALUES) and _ASKING_CLAUSE.match(answer):
            return True
        return self.kind == "number" and (self._counts_other(answer) or _is_hour(answer, quote))

    def _counts_other(self, answer: str) -> bool:
        """Return whether an answer counts in another unit than the question, where either counts in
        a unit of measure: money for things, things for years."""
        units = _units_of(answer)
        if self.units:
            return units.isdisjoint(self.units) and bool(_COUNTED_NOUN.search(answer))
        return bool(units and self.focus) and self.focus.isdisjoint(map(stem, words(answer)))

    def _rate_count(self, quote: str, known: Collection[str]) -> float:
        """Rate numbers in a quote: a number beside the counted noun scores more than other
        numbers."""
        if not _NUMBER.search(_remove_known(known, quote)):
            return 0.0
        for term in self.focus:
            if re.search(rf"\b{_COUNT}(?:\W+\w+){{0,2}}?\W+{re.escape(term[:5])}", quote, re.I):
                return 1.0
        return _IN_PART["number"]

    def _rate_names(
        self, quote: str, named: Sequence[NamedAnswer], known: Collection[str]
    ) -> float:
        fresh = {
            item.label: _kind_fit(self.kind, item.kind) for item in named if item.terms - set(known)
        }
        best = max(fresh.values(), default=0.0)
        if best < 0.5 and new_names(quote, known):
            best = 0.5
        if self.is_name:
            return max(0.8 * best, 1.0 if best and _GIVEN_NAME.search(quote) else 0.0)
        if self.count > 1:
            return best if sum(fit > 0.5 for fit in fresh.values()) >= self.count else 0.4 * best
        return best


def _kind_fit(asked: str, kind: str) -> float:
    """Rate how likely an entity of one kind answers a question expecting another kind."""
    if kind == asked or (asked == "person" and kind == "group"):
        return 1.0
    if asked == "name" or kind in _VAGUE:
        return 0.75
    if asked in _LIVING_OR_LAND:
        return 0.35 if kind in _LIVING_OR_LAND else 0.6
    return 0.3 if kind in _LIVING_OR_LAND else 0.8


def rate_kind_fit(noun: str, kind: str) -> float:
    """Rate an entity kind from 0 to 1 by fit with a description's noun ("the ship that ...")."""
    expected_kind = kind_of_phrase(noun)
    return _kind_fit(expected_kind, kind) if expected_kind else 0.75


def kind_of_phrase(phrase: str) -> str:
    """Return the entity kind named by a noun phrase, judged by its last telling word; empty if
    none."""
    for word in reversed(words(phrase)):
        kind = kind_of_noun(FORMS.get(word, word)) or kind_of_noun(word.removesuffix("s"))
        if kind or word in _ORIGINS:
            return kind or "place"
    return ""


_ORIGINS = frozenset({"birthplace", "birth", "hometown", "origin"})


def expected_answer_type(text: str) -> ExpectedAnswerType:
    """Determine a question's expected answer type from question word and following noun."""
    match = _QUESTION_WORD.search(text)
    word = match.group().casefold() if match else ""
    remainder = text[match.end() :] if match else text
    sort = _OF_A_SORT.search(remainder) if word in ("what", "which") else None
    phrase = _noun_phrase_words(remainder[sort.end() :] if sort else remainder)
    telling = [w for w in phrase if kind_of_phrase(w)]
    focus = frozenset(map(stem, telling[-1:] or phrase[:1])) if word in _FOCUSED else frozenset()
    count = next((_NUMBER_WORDS.index(w) + 2 for w in phrase if w in _NUMBER_WORDS[:11]), 1)
    is_name = word in ("what", "which") and bool(_ASKS_NAME.search(text))
    kind = _classify_answer(text, word, phrase, is_name)
    role = _ROLE.match(text)
    return ExpectedAnswerType(
        kind,
        focus,
        count,
        is_name,
        role=stem(role.group(1).casefold()) if role else "",
        units=_units_of(" ".join(telling[-1:] or phrase[:1])),
        is_value=bool(_ASKS_VALUE.search(text)),
    )


def _is_hour(answer: str, quote: str) -> bool:
    """Return whether a quote tells the time by a number, and counts nothing by it."""
    if not _HOUR.fullmatch(answer):
        return False
    counted = rf"\s+(?!(?:{'|'.join(STOP_WORDS)})\b)[a-z]{{3,}}"
    return bool(re.search(rf"\b(?:at|until|till|past)\s+{answer}\b(?!{counted})", quote, re.I))


def _units_of(text: str) -> frozenset[str]:
    """Return the measures of which a text has a unit; an age has those of a duration."""
    measured = ((kind, held) for kind, (_, held) in _MEASURED.items() if kind != "age")
    return frozenset(kind for kind, held in measured if held.search(text))


_FOCUSED = frozenset({"what", "which", "how"})


def _noun_phrase_words(rest: str) -> list[str]:
    """Return leading noun phrase words, at most five."""
    phrase_words: list[str] = []
    for word in words(rest):
        if word in STOP_WORDS and (phrase_words or word not in _LEADING):
            break
        if word not in STOP_WORDS:
            phrase_words.append(word)
    return phrase_words[:5]


_LEADING = frozenset({"the", "a", "an", "many", "much", "other"})


def _classify_answer(text: str, word: str, phrase: Sequence[str], is_name: bool) -> str:
    if word in ("what", "how", "which", ""):
        if _FATE_ASKED.search(text):
            return "fate"
        measure = next((k for k, (pattern, _) in _MEASURED.items() if pattern.search(text)), "")
        if measure or _COUNTED.search(text):
            return measure or "number"
    if _WHY.search(text):
        return "reason"
    if word in ("what", "which"):
        if TIMES & set(phrase):
            return "time"
        return kind_of_phrase(" ".join(phrase)) or ("name" if is_name or word == "which" else "")
    return _BY_WORD.get(word, "")


def new_names(quote: str, known: Collection[str]) -> list[str]:
    """Return capitalised words of a quote unknown so far; a lone capitalised opening word is
    skipped as ordinary."""
    names = []
    for match in _PROPER.finditer(quote):
        lower = match.group().casefold()
        opening = match.start() <= 1 and not _PROPER.match(quote, match.end() + 1)
        if lower not in STOP_WORDS and stem(lower) not in known and not opening:
            names.append(match.group())
    return names


def _remove_known(known: Collection[str], quote: str) -> str:
    """Remove known words, such as numbers and dates named in the question, from a quote."""
    return re.sub(r"\w+", lambda m: "" if stem(m.group().casefold()) in known else m.group(), quote)
