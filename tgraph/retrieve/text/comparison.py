"""Comparison questions: two sides, each turned into a separate question.

"Which film was released first, Alba or Nora?" asks for two release dates. Comparing words
(``data/comparisons.toml``) determine the question for each side, and which of the two values
decides."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from tgraph.resources import load_tables, word_set
from tgraph.retrieve.text.answer_type import TIMES, kind_of_phrase
from tgraph.retrieve.text.decomposition import LONGEST, QuestionStep
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

ComparedKind = Literal["time", "count", "measure", "name"]
"""What is compared: times, numbers of something, amounts with a unit, or names."""

ComparisonKind = Literal["which", "whether", "same", "different"]
"""Which of the two it is, whether it is so of the first, or whether both are the same."""

_EARLIER = word_set("comparisons", "earlier")
_LATER = word_set("comparisons", "later")
_AGES = word_set("comparisons", "ages")
_MORE = word_set("comparisons", "more")
_LESS = word_set("comparisons", "less")
_BEGINNINGS: Mapping[str, str] = load_tables("comparisons")["beginnings"]
_GREATER: Mapping[str, str] = load_tables("comparisons")["greater"]
_SMALLER: Mapping[str, str] = load_tables("comparisons")["smaller"]
_TOLD_BY: Mapping[str, str] = load_tables("comparisons")["told_by"]
_GRADED: Mapping[str, str] = load_tables("comparisons")["graded"]

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
    """A comparison between two sides, split into question steps.

    ``steps`` are the questions for each of the ``sides``, in words of ``phrase``. ``least``
    means that the lesser or earlier value wins; ``focus`` holds stems near which a text states
    the value, ``noun`` the counted or shared noun, ``units`` possible units of a measure."""

    sides: tuple[str, str]
    steps: tuple[QuestionStep, QuestionStep]
    asked: ComparisonKind
    kind: ComparedKind
    focus: frozenset[str]
    least: bool = False
    noun: str = ""
    units: tuple[str, ...] = ()

    @property
    def is_birth(self) -> bool | None:
        """Whether the comparison concerns birth (True) or death (False); None for neither."""
        stems = {stem("born"): True, stem("died"): False}
        return next((stems[focus_stem] for focus_stem in self.focus if focus_stem in stems), None)


@dataclass(frozen=True, slots=True)
class _SideFrame:
    """A question frame around one side: auxiliary and rest; ``said`` is the statement form.

    With a ``subject``, the side is the object and stands at the end."""

    aux: str
    rest: str
    said: str
    subject: str = ""

    def step(self, lead: str, side: str) -> QuestionStep:
        """Return one side's question step, with question text and phrase."""
        if self.subject:
            question_parts = (self.subject, self.rest, side)
            phrase = _join_parts((_lower_first(lead), self.subject, self.aux, *question_parts[1:]))
            return QuestionStep(_form_question((lead, self.aux, *question_parts)), phrase=phrase)
        phrase = _join_parts((_lower_first(lead), side, self.said))
        return QuestionStep(_form_question((lead, self.aux, side, self.rest)), phrase=phrase)


@dataclass(frozen=True, slots=True)
class _Comparator:
    """Comparing words with token positions, and the question lead asking for the compared
    value."""

    start: int
    end: int
    lead: str
    kind: ComparedKind
    least: bool
    noun: str = ""
    units: tuple[str, ...] = ()
    is_age: bool = False


def _lower_first(lead: str) -> str:
    return lead[:1].lower() + lead[1:]


def _join_parts(parts: Sequence[str]) -> str:
    return " ".join(" ".join(parts).split())


def _form_question(parts: Sequence[str]) -> str:
    return f"{_join_parts(parts)}?"


@lru_cache(maxsize=256)
def comparison_of(question: str) -> QuestionComparison | None:
    """Return a question's comparison of two sides.

    Return None if the question compares nothing, or compares by a value no text can give.
    Questions showing no comparison at a glance are not parsed."""
    text = " ".join(question.split()).rstrip(" ?.!")
    if not _GLANCE.search(text) or len(text.split()) > LONGEST:
        return None
    for pattern in (_FIRST, _LAST):
        if match := pattern.match(text):
            return _compare_by_head(match["head"], match["one"], match["other"])
    if match := _WITHIN.match(text):
        return _compare_by_head(f"{match['who']} {match['said']}", match["one"], match["other"])
    return _parse_comparison(text)


def _parse_question(text: str) -> Doc:
    from tgraph.extract.english.parser import analyse_texts

    return analyse_texts([text])[0]


# --- which of two ---


def _compare_by_head(head: str, one: str, other: str) -> QuestionComparison | None:
    """Build a comparison from two sides plus question head, for example "which film was
    released first"."""
    doc = _parse_question(_OF_TWO.sub(r"\1", head))
    start = next((t.i for t in doc if t.i and _is_verb(t)), 0)
    if not start:
        return None
    kind = "person" if doc[0].lower_ == "who" else kind_of_phrase(doc[1:start].text)
    verb, after = doc[start], list(doc[start + 1 :])
    helps = verb.lower_ in _BE or verb.tag_ == "MD" or verb.lower_ in _DOING
    if helps or (verb.lower_ in _AUXILIARIES and after and after[0].tag_ == "VBN"):
        return _build_comparison(after, verb.lower_, (one, other), "which", kind)
    return _build_comparison([verb, *after], "", (one, other), "which", kind)


def _is_verb(token: Token) -> bool:
    return token.lower_ in _AUXILIARIES or token.tag_ in ("VBD", "VBZ", "VBP", "MD")


def _build_comparison(
    said: Sequence[Token],
    aux: str,
    sides: tuple[str, str],
    asked: ComparisonKind,
    kind: str,
    comparator: _Comparator | None = None,
) -> QuestionComparison | None:
    """Build a comparison from tokens shared by both sides after the auxiliary, for example
    "released first"."""
    first_side, second_side = (_POSSESSIVE.sub("", side.strip(' "“”')) for side in sides)
    chosen_comparator = comparator or (_find_comparator(said, aux) if said else None)
    if chosen_comparator is None or not (
        _CAPITAL.search(first_side) and _CAPITAL.search(second_side)
    ):
        return None
    remaining_tokens = [
        t for t in said if not chosen_comparator.start <= t.i < chosen_comparator.end
    ]
    frame = _build_frame(remaining_tokens, aux, chosen_comparator, kind)
    if frame is None:
        return None
    alike = (
        _TOLD_BY.get(chosen_comparator.lead.rpartition(" ")[2], "")
        if chosen_comparator.kind == "measure"
        else ""
    )
    focus_words = words(
        " ".join((frame.rest, chosen_comparator.lead, chosen_comparator.noun, alike))
    )
    return QuestionComparison(
        (first_side, second_side),
        (
            frame.step(chosen_comparator.lead, first_side),
            frame.step(chosen_comparator.lead, second_side),
        ),
        asked,
        chosen_comparator.kind,
        _content_stems(focus_words),
        chosen_comparator.least,
        chosen_comparator.noun,
        chosen_comparator.units,
    )


def _content_stems(told: Sequence[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in told if word not in STOP_WORDS | _HAVING)


def _build_frame(
    rest: Sequence[Token], aux: str, comparator: _Comparator, kind: str
) -> _SideFrame | None:
    """Build a side's question frame from remaining tokens; age comparisons ask for the
    beginning of existence."""
    from tgraph.extract.english.parser import verb_lemma

    aux, text = _SINGULAR.get(aux, aux), _token_text(rest)
    if comparator.is_age or (comparator.kind == "time" and _says_nothing(rest, aux)):
        beginning = _BEGINNINGS.get(kind, _BEGINNINGS["any"])
        return _SideFrame("was", beginning, f"was {beginning}")
    if comparator.lead.endswith(" of"):
        return _SideFrame("", "", "")
    if not aux:
        does = "did" if rest[0].tag_ in ("VBD", "VBN") else "does"
        return _SideFrame(does, _join_parts((verb_lemma(rest[0]), _token_text(rest[1:]))), text)
    subject = _phrase_end(rest, 0) if aux in _DOING else 0
    if subject:
        return _SideFrame(aux, _token_text(rest[subject:]), "", _token_text(rest[:subject]))
    return _SideFrame(aux, text, _join_parts((aux, text)))


def _says_nothing(rest: Sequence[Token], aux: str) -> bool:
    """Check whether tokens express mere existence or coming."""
    content_words = [t.lower_ for t in rest if t.lower_ not in ("the", "a", "an")]
    return not content_words if aux in _BE else content_words in (["came"], ["comes"], ["come"])


def _token_text(tokens: Sequence[Token]) -> str:
    return " ".join("".join(t.text_with_ws for t in tokens).split())


def _find_comparator(said: Sequence[Token], aux: str) -> _Comparator | None:
    """Find the first comparing words that allow a decision."""
    for token in said:
        comparator = (
            _time_comparator(token)
            or _measure_comparator(token, said, aux)
            or _count_comparator(token)
        )
        if comparator is not None:
            return comparator
    return None


def _time_comparator(token: Token) -> _Comparator | None:
    word, start = token.lower_, token.i
    if word not in _EARLIER | _LATER or (token.tag_ == "IN" and word in ("before", "after")):
        return None
    before = token.nbor(-1).lower_ if token.i else ""
    if before == "the" or (before in _MORE and word == "recently"):
        start -= 1
    if word == "recently" and before not in _MORE:
        return None
    return _Comparator(start, token.i + 1, "When", "time", word in _EARLIER, is_age=word in _AGES)


def _measure_comparator(token: Token, said: Sequence[Token], aux: str) -> _Comparator | None:
    """Read a comparative, or "more" plus adjective; before a noun, ask for the noun ("has a
    larger population")."""
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


def _count_comparator(token: Token) -> _Comparator | None:
    """Read "more" or "fewer" before a counted noun."""
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


def _parse_comparison(text: str) -> QuestionComparison | None:
    """Find a comparison through parsing, for questions matching no pattern."""
    doc = _parse_question(text)
    first = doc[0].lower_
    if first in ("which", "what", "who"):
        return _which_inside(doc)
    if first not in _AUXILIARIES:
        return None
    first_side = _find_side(doc, 1)
    if first_side is None or first_side.end >= len(doc):
        return None
    link = doc[first_side.end].lower_
    second_side = _find_side(doc, first_side.end + 1) if link in ("and", "or") else None
    if second_side is None:
        return _find_than_comparison(doc, first_side)
    if link == "or":
        tail_tokens = list(doc[second_side.end :])
        if not tail_tokens:
            return None
        return _build_comparison(
            tail_tokens, first, (first_side.text, second_side.text), "which", _kind_of(first_side)
        )
    return _find_same_comparison(doc, first_side, second_side)


def _find_side(doc: Doc, start: int) -> Span | None:
    """Return the noun phrase beginning at ``start``, skipping a leading "both" or "either"."""
    if start < len(doc) and doc[start].lower_ in ("both", "either"):
        start += 1
    end = _phrase_end(list(doc), start)
    return doc[start:end] if end > start else None


def _phrase_end(tokens: Sequence[Token], start: int) -> int:
    """Return the end of a noun phrase beginning at ``start``; a common noun before an adjective
    ends the phrase."""
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
    """Parse questions like "Which of Alba and Nora was released first", or two sides ending a
    question without comma."""
    if len(doc) > 3 and doc[1].lower_ == "of":
        first_side = _find_side(doc, 2)
        second_side = (
            _find_side(doc, first_side.end + 1)
            if first_side and first_side.end + 1 < len(doc)
            else None
        )
        if (
            first_side is None
            or second_side is None
            or doc[first_side.end].lower_ not in ("and", "or")
        ):
            return None
        return _compare_by_head(
            f"{doc[0].text} {doc[second_side.end :].text}", first_side.text, second_side.text
        )
    link = next((t.i for t in reversed(doc) if t.lower_ == "or"), 0)
    start = link
    while start > 1 and _is_of_name(doc[start - 1]):
        start -= 1
    if not link or start == link or link + 1 >= len(doc):
        return None
    return _compare_by_head(doc[:start].text, doc[start:link].text, doc[link + 1 :].text)


def _is_of_name(token: Token) -> bool:
    is_capitalised = _CAPITAL.match(token.text) is not None
    return is_capitalised or token.lower_ == "the" or token.tag_ in ("POS", "HYPH")


def _find_than_comparison(doc: Doc, one: Span) -> QuestionComparison | None:
    """ "Is Alba older than Nora", "Was Alba released before Nora"."""
    link = next((t for t in doc[one.end :] if t.lower_ in ("than", "before", "after")), None)
    second_side = _find_side(doc, link.i + 1) if link is not None else None
    if link is None or second_side is None:
        return None
    remaining_tokens = [t for t in doc[second_side.end :] if t.lower_ not in _AUXILIARIES]
    if remaining_tokens or any(map(_is_time, second_side)):
        return None
    statement_tokens = list(doc[one.end : link.i])
    comparator = None
    if link.lower_ != "than":
        is_least = link.lower_ == "before"
        comparator = _Comparator(link.i, link.i + 1, "When", "time", is_least)
    sides = (one.text, second_side.text)
    return _build_comparison(
        statement_tokens, doc[0].lower_, sides, "whether", _kind_of(one), comparator
    )


def _is_time(token: Token) -> bool:
    return token.ent_type_ in ("DATE", "TIME") or token.text.isdigit()


def _kind_of(side: Span) -> str:
    return "person" if any(t.ent_type_ == "PERSON" for t in side) else kind_of_phrase(side.text)


# --- the same ---


def _find_same_comparison(doc: Doc, one: Span, other: Span) -> QuestionComparison | None:
    """Read a sameness question: "Were Alba and Nora filmed in the same country"."""
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
    from tgraph.extract.english.parser import find_lemma

    nouns = doc[mark.i + 1 : end]
    noun = _join_parts((nouns[:-1].text, find_lemma(nouns[-1].text, "noun")))
    start = mark.i - 1 if doc[mark.i - 1].lower_ == "the" else mark.i
    middle = [t for t in doc[sides[1].end : start] if t.lower_ not in ("both", "each")]
    tail = doc[end:].text
    aux = _SINGULAR.get(doc[0].lower_, doc[0].lower_)
    side_names = (sides[0].text, sides[1].text)
    steps = [_same_step(noun, aux, side, middle, tail) for side in side_names]
    is_time = nouns[-1].lower_.rstrip("s") in TIMES or noun in TIMES
    focus_stems = _content_stems(words(f"{_token_text(middle)} {tail}"))
    if not focus_stems and not is_time and noun not in COUNTRIES:
        focus_stems = _content_stems(words(noun))
    return QuestionComparison(
        side_names,
        (steps[0], steps[1]),
        "same" if mark.lower_ == "same" else "different",
        "time" if is_time else "name",
        focus_stems,
        noun=noun,
    )


def _same_step(noun: str, aux: str, side: str, middle: Sequence[Token], tail: str) -> QuestionStep:
    """Return one side's question for the shared property: "From which country is Alba?"."""
    if any(t.lower_ in _HAVING for t in middle) or (not middle and aux in ("has", "had")):
        word = "Who" if kind_of_phrase(noun) == "person" else "What"
        verb = "was" if aux in ("did", "had") else "is"
        phrase = _join_parts(("the", noun, "of", side, tail))
        return QuestionStep(f"{word} {verb} {phrase}?", noun, phrase)
    leads = bool(middle) and middle[-1].lower_ in _PREPOSITIONS
    before = middle[-1].text if leads else ""
    middle_text = _token_text(middle[:-1] if leads else middle)
    lead = _join_parts((before, "which", noun))
    question_text = _join_parts((lead[:1].upper() + lead[1:], aux, side, middle_text, tail))
    return QuestionStep(
        f"{question_text}?", noun, _join_parts((lead, side, aux, middle_text, tail))
    )
