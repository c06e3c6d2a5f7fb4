"""A question that compares two things: its two sides, each as a question of its own.

"Which film was released first, Alba or Nora?" asks when Alba was released and when Nora was. The
words that compare (``data/comparisons.toml``) tell what is asked of each side, and which of the
two values decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from tgraph.resources import tables, word_set
from tgraph.retrieve.text.answer_type import TIMES, kind_of_phrase
from tgraph.retrieve.text.decomposition import LONGEST, QuestionStep
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

ComparedKind = Literal["time", "count", "measure", "name"]
"""What is compared: times, numbers of something, amounts with a unit, or names."""

Asked = Literal["which", "whether", "same", "different"]
"""Which of the two it is, whether it is so of the first, or whether both are the same."""

_EARLIER = word_set("comparisons", "earlier")
_LATER = word_set("comparisons", "later")
_AGES = word_set("comparisons", "ages")
_MORE = word_set("comparisons", "more")
_LESS = word_set("comparisons", "less")
_BEGINNINGS: Mapping[str, str] = tables("comparisons")["beginnings"]
_GREATER: Mapping[str, str] = tables("comparisons")["greater"]
_SMALLER: Mapping[str, str] = tables("comparisons")["smaller"]
_TOLD_BY: Mapping[str, str] = tables("comparisons")["told_by"]
_GRADED: Mapping[str, str] = tables("comparisons")["graded"]

COUNTRIES = frozenset({"country", "nationality", "nation"})
"""What asks for a country."""
_BE = frozenset({"is", "was", "are", "were"})
_AUXILIARIES = _BE | {"did", "does", "do", "has", "have", "had"}
_DOING = frozenset({"did", "does", "do"})
_SINGULAR = {"are": "is", "were": "was", "do": "does", "have": "has"}
_HAVING = frozenset({"have", "share"})
_PREPOSITIONS = frozenset({"in", "from", "of", "at", "by", "on", "to", "for", "under", "with"})
_IN_PHRASE = frozenset(
    {"DT", "NNP", "NNPS", "NN", "NNS", "JJ", "CD", "POS", "HYPH", "``", "''", "PRP$"}
)

_GLANCE = re.compile(
    r"^\W*(?:which|what|who)\b.*\bor\b|^\W*(?:which|who) of .*\band\b"
    r"|^\W*(?:of|between|among|out of) .*\b(?:which|what|who)\b"
    r"|^\W*(?:is|was|are|were|did|do|does|has|have|had)\b.*\b(?:or|than|before|after|same|different)\b",
    re.IGNORECASE | re.DOTALL,
)
"""What a question has that compares two things."""
_LAST = re.compile(
    r"^(?P<head>(?:which|what|who)\b.+?)\s*[,:;–—]\s*(?P<one>[^,:;]+?),?\s+or\s+(?P<other>[^,:;]+)$",
    re.IGNORECASE,
)
_WITHIN = re.compile(
    r"^(?P<who>which|what|who)\b[^,:;]*?\s*,\s*(?P<one>[^,:;]+?)\s+or\s+(?P<other>[^,:;]+?)\s*,\s*"
    r"(?P<said>.+)$",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"^(?:out of|of|between|among)\s+(?P<one>[^,:;]+?)\s+(?:and|or)\s+(?P<other>[^,:;]+?)\s*,\s*"
    r"(?P<head>(?:which|what|who)\b.+)$",
    re.IGNORECASE,
)
_OF_TWO = re.compile(r"^(which|what|who)(?: one)? of (?:the|these|those|them)(?: two)?\b", re.I)
_POSSESSIVE = re.compile(r"['’]s?$")
_CAPITAL = re.compile(r"[^\W\d_a-z]|\d")


@dataclass(frozen=True, slots=True)
class QuestionComparison:
    """What two things are compared by.

    ``steps`` ask it of each of the ``sides``, with its words in ``phrase``. ``least`` says that the
    lesser or earlier is asked for; ``focus`` are the stems beside which a text has the value,
    ``noun`` what is counted or is to be the same, ``units`` what a measure may be measured in.
    """

    sides: tuple[str, str]
    steps: tuple[QuestionStep, QuestionStep]
    asked: Asked
    kind: ComparedKind
    focus: frozenset[str]
    least: bool = False
    noun: str = ""
    units: tuple[str, ...] = ()

    @property
    def is_birth(self) -> bool | None:
        """Whether it asks for the beginning of a life, or the end; None for neither."""
        stems = {stem("born"): True, stem("died"): False}
        return next((stems[each] for each in self.focus if each in stems), None)


@dataclass(frozen=True, slots=True)
class _SideFrame:
    """What is said of a side: its auxiliary and the rest; ``said`` as a statement has it.

    With a ``subject`` the side is the object, and stands at the end.
    """

    aux: str
    rest: str
    said: str
    subject: str = ""

    def step(self, lead: str, side: str) -> QuestionStep:
        """The question after it and its words."""
        if self.subject:
            told = (self.subject, self.rest, side)
            phrase = _flat((_lower(lead), self.subject, self.aux, *told[1:]))
            return QuestionStep(_sentence((lead, self.aux, *told)), phrase=phrase)
        phrase = _flat((_lower(lead), side, self.said))
        return QuestionStep(_sentence((lead, self.aux, side, self.rest)), phrase=phrase)


@dataclass(frozen=True, slots=True)
class _Comparator:
    """The words that compare, by their places in what is said, and what they ask for."""

    start: int
    end: int
    lead: str
    kind: ComparedKind
    least: bool
    noun: str = ""
    units: tuple[str, ...] = ()
    is_age: bool = False


def _lower(lead: str) -> str:
    return lead[:1].lower() + lead[1:]


def _flat(parts: Sequence[str]) -> str:
    return " ".join(" ".join(parts).split())


def _sentence(parts: Sequence[str]) -> str:
    return f"{_flat(parts)}?"


@lru_cache(maxsize=256)
def comparison_of(question: str) -> QuestionComparison | None:
    """How a question compares two things; None where it doesn't, or by nothing that can be read of
    a text. A question that can't, at a glance, is not parsed."""
    text = " ".join(question.split()).rstrip(" ?.!")
    if not _GLANCE.search(text) or len(text.split()) > LONGEST:
        return None
    for pattern in (_FIRST, _LAST):
        if found := pattern.match(text):
            return _which(found["head"], found["one"], found["other"])
    if found := _WITHIN.match(text):
        return _which(f"{found['who']} {found['said']}", found["one"], found["other"])
    return _parsed(text)


def _parse(text: str) -> Doc:
    from tgraph.extract.english.parser import analyse

    return analyse([text])[0]


# --- which of two ---


def _which(head: str, one: str, other: str) -> QuestionComparison | None:
    """Of a head such as "which film was released first"."""
    doc = _parse(_OF_TWO.sub(r"\1", head))
    start = next((t.i for t in doc if t.i and _is_verb(t)), 0)
    if not start:
        return None
    kind = "person" if doc[0].lower_ == "who" else kind_of_phrase(doc[1:start].text)
    verb, after = doc[start], list(doc[start + 1 :])
    helps = verb.lower_ in _BE or verb.tag_ == "MD" or verb.lower_ in _DOING
    if helps or (verb.lower_ in _AUXILIARIES and after and after[0].tag_ == "VBN"):
        return _compared(after, verb.lower_, (one, other), "which", kind)
    return _compared([verb, *after], "", (one, other), "which", kind)


def _is_verb(token: Token) -> bool:
    return token.lower_ in _AUXILIARIES or token.tag_ in ("VBD", "VBZ", "VBP", "MD")


def _compared(
    said: Sequence[Token],
    aux: str,
    sides: tuple[str, str],
    asked: Asked,
    kind: str,
    comparator: _Comparator | None = None,
) -> QuestionComparison | None:
    """By what is said of both after the auxiliary, such as "released first"."""
    one, other = (_POSSESSIVE.sub("", side.strip(' "“”')) for side in sides)
    found = comparator or (_comparator(said, aux) if said else None)
    if found is None or not (_CAPITAL.search(one) and _CAPITAL.search(other)):
        return None
    rest = [t for t in said if not found.start <= t.i < found.end]
    frame = _frame(rest, aux, found, kind)
    if frame is None:
        return None
    alike = _TOLD_BY.get(found.lead.rpartition(" ")[2], "") if found.kind == "measure" else ""
    told = words(" ".join((frame.rest, found.lead, found.noun, alike)))
    return QuestionComparison(
        (one, other),
        (frame.step(found.lead, one), frame.step(found.lead, other)),
        asked,
        found.kind,
        _stems(told),
        found.least,
        found.noun,
        found.units,
    )


def _stems(told: Sequence[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in told if word not in STOP_WORDS | _HAVING)


def _frame(
    rest: Sequence[Token], aux: str, comparator: _Comparator, kind: str
) -> _SideFrame | None:
    """What is left to ask of a side; an age asks for its beginning."""
    from tgraph.extract.english.parser import verb_lemma

    aux, text = _SINGULAR.get(aux, aux), _text(rest)
    if comparator.is_age or (comparator.kind == "time" and _says_nothing(rest, aux)):
        beginning = _BEGINNINGS.get(kind, _BEGINNINGS["any"])
        return _SideFrame("was", beginning, f"was {beginning}")
    if comparator.lead.endswith(" of"):
        return _SideFrame("", "", "")
    if not aux:
        does = "did" if rest[0].tag_ in ("VBD", "VBN") else "does"
        return _SideFrame(does, _flat((verb_lemma(rest[0]), _text(rest[1:]))), text)
    subject = _phrase_end(rest, 0) if aux in _DOING else 0
    if subject:
        return _SideFrame(aux, _text(rest[subject:]), "", _text(rest[:subject]))
    return _SideFrame(aux, text, _flat((aux, text)))


def _says_nothing(rest: Sequence[Token], aux: str) -> bool:
    """Whether nothing is said but that it is, or comes."""
    told = [t.lower_ for t in rest if t.lower_ not in ("the", "a", "an")]
    return not told if aux in _BE else told in (["came"], ["comes"], ["come"])


def _text(tokens: Sequence[Token]) -> str:
    return " ".join("".join(t.text_with_ws for t in tokens).split())


def _comparator(said: Sequence[Token], aux: str) -> _Comparator | None:
    """The words that compare; of several the first that can be decided by."""
    for token in said:
        found = _time(token) or _measure(token, said, aux) or _count(token)
        if found is not None:
            return found
    return None


def _time(token: Token) -> _Comparator | None:
    word, start = token.lower_, token.i
    if word not in _EARLIER | _LATER or (token.tag_ == "IN" and word in ("before", "after")):
        return None
    before = token.nbor(-1).lower_ if token.i else ""
    if before == "the" or (before in _MORE and word == "recently"):
        start -= 1
    if word == "recently" and before not in _MORE:
        return None
    return _Comparator(start, token.i + 1, "When", "time", word in _EARLIER, is_age=word in _AGES)


def _measure(token: Token, said: Sequence[Token], aux: str) -> _Comparator | None:
    """A comparative, or "more" with an adjective; before a noun it asks for that ("has a larger
    population")."""
    word, start, end = token.lower_, token.i, token.i + 1
    least, last = word in _SMALLER, said[-1].i
    scale = _SMALLER.get(word) or _GREATER.get(word)
    if scale is None and word in _MORE | _LESS and end <= last:
        scale, least = _GRADED.get(token.doc[end].lower_), word in _LESS
        end += 1
    if scale is None:
        return None
    adjective, *units = scale.split()
    if token.i > said[0].i and token.nbor(-1).lower_ in ("the", "a"):
        start -= 1
    if end <= last and token.doc[end].tag_ == "NN" and said[0].lower_ in ("has", "have", "had"):
        noun, was = token.doc[end].text, "had" in (said[0].lower_, aux) or aux == "did"
        lead = f"What {'was' if was else 'is'} the {noun} of"
        return _Comparator(said[0].i, end + 1, lead, "count", least, noun)
    if units == ["count"]:
        return _Comparator(start, end, f"How {adjective}", "count", least, "population")
    return _Comparator(start, end, f"How {adjective}", "measure", least, units=tuple(units))


def _count(token: Token) -> _Comparator | None:
    """ "More" or "fewer" before what is counted."""
    if token.lower_ not in _MORE | _LESS:
        return None
    start, end, doc = token.i, token.i + 1, token.doc
    while end < len(doc) and doc[end].tag_ in ("JJ", "NN", "NNP"):
        end += 1
    if end >= len(doc) or doc[end].tag_ != "NNS":
        return None
    lead = f"How many {doc[start + 1 : end + 1].text}"
    start -= start > 0 and doc[start - 1].lower_ == "the"
    return _Comparator(start, end + 1, lead, "count", token.lower_ in _LESS, doc[end].text)


# --- whether it is so ---


def _parsed(text: str) -> QuestionComparison | None:
    """Of a question whose sides only the parse tells."""
    doc = _parse(text)
    first = doc[0].lower_
    if first in ("which", "what", "who"):
        return _which_inside(doc)
    if first not in _AUXILIARIES:
        return None
    one = _side(doc, 1)
    if one is None or one.end >= len(doc):
        return None
    link = doc[one.end].lower_
    other = _side(doc, one.end + 1) if link in ("and", "or") else None
    if other is None:
        return _than(doc, one)
    if link == "or":
        said = list(doc[other.end :])
        if not said:
            return None
        return _compared(said, first, (one.text, other.text), "which", _kind_of(one))
    return _same(doc, one, other)


def _side(doc: Doc, start: int) -> Span | None:
    """The noun phrase that starts there; "both" before it is left out."""
    if start < len(doc) and doc[start].lower_ in ("both", "either"):
        start += 1
    end = _phrase_end(list(doc), start)
    return doc[start:end] if end > start else None


def _phrase_end(tokens: Sequence[Token], start: int) -> int:
    """Where the noun phrase ends that starts there; a common noun ends it before an adjective."""
    at = start
    while at < len(tokens) and _goes_on(tokens, at, start):
        at += 1
    return at


def _goes_on(tokens: Sequence[Token], at: int, start: int) -> bool:
    token = tokens[at]
    if token.lower_ in ("of", "the") and at > start:
        after = at + 1 + (at + 1 < len(tokens) and tokens[at + 1].lower_ == "the")
        return after < len(tokens) and _CAPITAL.match(tokens[after].text) is not None
    if _CAPITAL.match(token.text):
        return True
    follows = at > start and token.tag_ == "JJ"
    return not follows and token.tag_ in _IN_PHRASE and token.lower_ not in ("both", "same")


def _which_inside(doc: Doc) -> QuestionComparison | None:
    """ "Which of Alba and Nora was released first", or sides at the end without a comma."""
    if len(doc) > 3 and doc[1].lower_ == "of":
        one = _side(doc, 2)
        other = _side(doc, one.end + 1) if one and one.end + 1 < len(doc) else None
        if one is None or other is None or doc[one.end].lower_ not in ("and", "or"):
            return None
        return _which(f"{doc[0].text} {doc[other.end :].text}", one.text, other.text)
    link = next((t.i for t in reversed(doc) if t.lower_ == "or"), 0)
    start = link
    while start > 1 and _is_of_name(doc[start - 1]):
        start -= 1
    if not link or start == link or link + 1 >= len(doc):
        return None
    return _which(doc[:start].text, doc[start:link].text, doc[link + 1 :].text)


def _is_of_name(token: Token) -> bool:
    named = _CAPITAL.match(token.text) is not None
    return named or token.lower_ == "the" or token.tag_ in ("POS", "HYPH")


def _than(doc: Doc, one: Span) -> QuestionComparison | None:
    """ "Is Alba older than Nora", "Was Alba released before Nora"."""
    link = next((t for t in doc[one.end :] if t.lower_ in ("than", "before", "after")), None)
    other = _side(doc, link.i + 1) if link is not None else None
    if link is None or other is None:
        return None
    left = [t for t in doc[other.end :] if t.lower_ not in _AUXILIARIES]
    if left or any(map(_is_time, other)):
        return None
    said = list(doc[one.end : link.i])
    comparator = None
    if link.lower_ != "than":
        is_least = link.lower_ == "before"
        comparator = _Comparator(link.i, link.i + 1, "When", "time", is_least)
    sides = (one.text, other.text)
    return _compared(said, doc[0].lower_, sides, "whether", _kind_of(one), comparator)


def _is_time(token: Token) -> bool:
    return token.ent_type_ in ("DATE", "TIME") or token.text.isdigit()


def _kind_of(side: Span) -> str:
    return "person" if any(t.ent_type_ == "PERSON" for t in side) else kind_of_phrase(side.text)


# --- the same ---


def _same(doc: Doc, one: Span, other: Span) -> QuestionComparison | None:
    """ "Were Alba and Nora filmed in the same country"."""
    mark = next((t for t in doc[other.end :] if t.lower_ in ("same", "different")), None)
    if mark is None or mark.i + 1 >= len(doc):
        return None
    end = mark.i + 1
    while end < len(doc) and doc[end].tag_ in ("NN", "NNS"):
        end += 1
    if end == mark.i + 1:
        return None
    return _of_same(doc, (one, other), mark, end)


def _of_same(
    doc: Doc, sides: tuple[Span, Span], mark: Token, end: int
) -> QuestionComparison | None:
    from tgraph.extract.english.parser import lemma

    nouns = doc[mark.i + 1 : end]
    noun = _flat((nouns[:-1].text, lemma(nouns[-1].text, "noun")))
    start = mark.i - 1 if doc[mark.i - 1].lower_ == "the" else mark.i
    middle = [t for t in doc[sides[1].end : start] if t.lower_ not in ("both", "each")]
    tail = doc[end:].text
    aux = _SINGULAR.get(doc[0].lower_, doc[0].lower_)
    named = (sides[0].text, sides[1].text)
    steps = [_same_step(noun, aux, side, middle, tail) for side in named]
    is_time = nouns[-1].lower_.rstrip("s") in TIMES or noun in TIMES
    told = _stems(words(f"{_text(middle)} {tail}"))
    if not told and not is_time and noun not in COUNTRIES:
        told = _stems(words(noun))
    return QuestionComparison(
        named,
        (steps[0], steps[1]),
        "same" if mark.lower_ == "same" else "different",
        "time" if is_time else "name",
        told,
        noun=noun,
    )


def _same_step(noun: str, aux: str, side: str, middle: Sequence[Token], tail: str) -> QuestionStep:
    """The question for what is to be the same: "From which country is Alba?"."""
    if any(t.lower_ in _HAVING for t in middle) or (not middle and aux in ("has", "had")):
        word = "Who" if kind_of_phrase(noun) == "person" else "What"
        verb = "was" if aux in ("did", "had") else "is"
        phrase = _flat(("the", noun, "of", side, tail))
        return QuestionStep(f"{word} {verb} {phrase}?", noun, phrase)
    leads = bool(middle) and middle[-1].lower_ in _PREPOSITIONS
    before = middle[-1].text if leads else ""
    said = _text(middle[:-1] if leads else middle)
    lead = _flat((before, "which", noun))
    asked = _flat((lead[:1].upper() + lead[1:], aux, side, said, tail))
    return QuestionStep(f"{asked}?", noun, _flat((lead, side, aux, said, tail)))
