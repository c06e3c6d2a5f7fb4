"""Question analysis: terms, names, descriptions and breadth of a question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice

from tgraph.resources import word_set
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.answer_type import (
    ExpectedAnswerType,
    expected_answer_type,
    kind_of_phrase,
)
from tgraph.retrieve.text.answer_type_abroad import form_of
from tgraph.retrieve.text.lexical import STOP_WORDS, Frequencies, stem, terms, words
from tgraph.retrieve.text.lexicon import ENGLISH, CountedWords, Lexicon, count_frequencies

_NAME = re.compile(r"(?<![.?!]\s)(?<!^)\b[^\W\d_a-z]\w*(?:[-'’]\w+)*")
_FRAME = word_set("questions", "shaping")
"""Words that shape a question rather than say what it is about."""


@dataclass(frozen=True, slots=True)
class AnalysedQuestion:
    """A question, read.

    ``weights`` says how much each term of the question tells (greater than 0), ``names`` which of
    the terms belong to names, ``sought`` what kind of answer is asked for.
    """

    text: str
    weights: Mapping[str, float]
    names: frozenset[str]
    sought: ExpectedAnswerType
    lexicon: Lexicon = ENGLISH
    by_words: bool = False
    """Whether vectors tell nothing of it, so that words alone do."""

    @property
    def text_without_names(self) -> str:
        """The question text without names."""
        return " ".join(_NAME.sub(" ", self.text).split())

    @property
    def total(self) -> float:
        return sum(self.weights.values())


def analyse_question(text: str, frequencies: Frequencies) -> AnalysedQuestion:
    """Analyse a question: terms weighted by rarity in the text collection, read in the
    question's language."""
    if isinstance(frequencies, CountedWords):
        lexicon = frequencies.languages.of_question(text)
        if lexicon is not ENGLISH:
            return _analyse_in(lexicon, text, frequencies)
    names = frozenset(stem(w) for m in _NAME.findall(text) for w in words(m) if w not in STOP_WORDS)
    sought = expected_answer_type(text)
    focus = sought.focus - names
    telling = telling_words(text) or [word for word in words(text) if word not in STOP_WORDS]
    weights: dict[str, float] = {}
    for term in map(stem, telling):
        share = 1.2 if term in names else 0.8 if term in focus else 1.0
        weights[term] = max(0.05, frequencies.idf(term)) * share
    return AnalysedQuestion(text, weights, names, sought)


def _analyse_in(lexicon: Lexicon, text: str, counts: CountedWords) -> AnalysedQuestion:
    question_terms = dict.fromkeys(lexicon.extract_content_stems(text))
    weights = {term: max(0.05, counts.idf(term)) for term in question_terms}
    form = form_of(lexicon.code)
    names: frozenset[str] = frozenset()
    if form.names_are_capitalised:
        name_words = (w for m in _NAME.findall(text) for w in lexicon.words(m))
        names = frozenset(map(lexicon.stem, name_words)) & weights.keys()
    weights |= {name: 2 * weights[name] for name in names if not counts.has_term(name)}
    sought = form.expected_answer(text, lexicon)
    by_words = counts.searches_by_words(lexicon)
    return AnalysedQuestion(text, weights, names, sought, lexicon, by_words)


def telling_words(text: str) -> list[str]:
    """Return words saying what a question is about."""
    return [w for w in words(text) if w not in STOP_WORDS and w not in _FRAME]


@lru_cache(maxsize=65536)
def _word_root(term: str) -> str:
    """Return a longer word's first letters, shared with related words."""
    return term[:5] if len(term) > 5 else term


def rate_match(term: str, found: frozenset[str], roots: frozenset[str]) -> float:
    """Rate a term match: 1 for a found term, 0.7 for a related word, otherwise 0."""
    if term in found:
        return 1.0
    return 0.7 if len(term) >= 5 and term.isalpha() and _word_root(term) in roots else 0.0


def roots_of(found: frozenset[str]) -> frozenset[str]:
    return frozenset(_word_root(term) for term in found if len(term) >= 5)


# --- descriptions ---


MOST = 3
"""Descriptions that are followed."""

_CLAUSE = re.compile(
    r"(?<=[\w?'’] )(?:(?:in|on|at|to|from|for|of|by|with|under|after|before|near|during|through) )?"
    r"(?:that|who|whom|whose|which|where)\b",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(r"\b(?:who|whom|whose|what|which|when|where|why|how)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"\b(?:the|an?|that|those)\s+(?=[^\W\d_])", re.IGNORECASE)
_SENTENCES = re.compile(r"(?<=[.!])\s+(?=\w)")
_CAPITAL = r"\b[^\W\d_a-z][\w.’'-]{0,40}"
_DESCRIPTIONS_NAME = (
    rf"{_CAPITAL}(?:\s+(?:(?:of|the|and|in|with|for)\s+){{0,2}}[\"“]?{_CAPITAL}[\"”]?){{0,9}}"
)
_POSSESSED = re.compile(
    rf"((?:{_CAPITAL}\s+){{0,9}}?{_CAPITAL}?[^\W_])['’]s\s+((?:[a-z]+\s+){{0,2}}[a-z]+)"
)
_OF = re.compile(
    r"\bthe\s+((?:[a-z]+\s+){0,2}[a-z]+)\s+(?:of|for|in)\s+"
    rf"(?:(?:the|a)\s+)?(?:[a-z]+\s+){{0,2}}[\"“]?{_DESCRIPTIONS_NAME}"
)


@dataclass(frozen=True, slots=True)
class Description:
    """A description inside a question: question text ``before`` and ``after``, description
    text, and noun."""

    before: str
    after: str
    text: str
    noun: str

    def replace_description(self, name: str) -> str:
        """Return the question after replacing the description by a name."""
        return " ".join(f"{self.before} {name} {self.after}".split())


def find_descriptions(question: str) -> list[Description]:
    """Find a question's descriptions, longest first; at most three, none if the question names
    its subject.

    "Who designed the ship that carried the first party?" asks "Who designed ...?" about "the
    ship that carried the first party". Once the described thing is found, its name replaces the
    description."""
    sentences = _SENTENCES.split(question.strip())
    if len(sentences) > 1 and sentences[-1].endswith("?"):
        return [Description(sentences[-1], "", " ".join(sentences[:-1]), "")]
    clause_descriptions = [clause] if (clause := _by_clause(question)) else []
    return list(islice(chain(clause_descriptions, _by_name(question)), MOST))


def _by_clause(question: str) -> Description | None:
    """Return the noun phrase before a relative clause, described by the remaining question
    text."""
    for clause in _CLAUSE.finditer(question):
        main = question[: clause.start()].strip().rstrip(",")
        articles = list(_ARTICLE.finditer(main))
        if not articles or not _QUESTION_WORD.search(main):
            continue
        if len(telling_words(question[clause.end() :])) < 2:
            continue
        noun, after = _noun_phrase(main[articles[-1].end() :])
        text = f"{noun} {question[clause.start() :]}"
        return Description(main[: articles[-1].start()].strip(), after, text, noun)
    return None


def _noun_phrase(text: str, longest: int = 9) -> tuple[str, str]:
    """Split words after the last noun of known kind ("man", "born"); without known nouns, split
    after ``longest`` words."""
    phrase_words = text.split()
    noun_places = [place for place, word in enumerate(phrase_words) if kind_of_phrase(word)]
    end = noun_places[-1] + 1 if noun_places else longest
    return " ".join(phrase_words[:end]), " ".join(phrase_words[end:])


def _by_name(question: str) -> Iterator[Description]:
    """Yield descriptions with genitives: "The first mate of the Belgica", "Gisvi's birthplace"."""
    for match in _OF.finditer(question):
        if not _CLAUSE.search(match.group()) and not re.search("['’]s$", match.group()):
            description = _in_place_of(question, match.start(), match.end(), match.group(1))
            if _is_asked(description):
                yield description
    for match in _POSSESSED.finditer(question):
        noun, _ = _noun_phrase(match.group(2), longest=1)
        description = _in_place_of(question, match.start(), match.start(2) + len(noun), noun)
        if _is_asked(description):
            yield description


def _in_place_of(question: str, start: int, end: int, noun: str) -> Description:
    return Description(question[:start].strip(), question[end:].strip(), question[start:end], noun)


def _is_asked(description: Description) -> bool:
    """Return whether the text around a description still forms a question with informative
    words."""
    remainder = f"{description.before} {description.after}"
    return bool(_QUESTION_WORD.search(description.before) and telling_words(remainder))


# --- breadth ---


_WHOLE = frozenset(map(stem, word_set("questions", "whole") | word_set("questions", "documents")))
"""Stems of words that ask about documents rather than about what is in them."""

_BREADTH_FRAME = frozenset(map(stem, word_set("questions", "anything")))

_SAYS_ENOUGH = 2
"""Terms beside these that a question needs to be understood by itself."""


@dataclass(frozen=True, slots=True)
class WantedWords:
    """An analysed question: text and term weights.

    ``weights`` maps each term to its information content (greater than 0)."""

    text: str
    weights: Mapping[str, float]

    def share(self, found: Mapping[str, float]) -> float:
        """Return the weighted share of matched question terms, 0 to 1; return 1 for questions
        without terms."""
        total = sum(self.weights.values())
        if not total:
            return 1.0
        return sum(w * found.get(term, 0.0) for term, w in self.weights.items()) / total


def wanted_words(question: Question, context: Context) -> WantedWords:
    """Analyse a question; prepend the preceding question to nearly empty follow-ups."""
    text, telling = _informative_terms(question)
    counts = count_frequencies(context)
    return WantedWords(text, {term: max(0.05, counts.idf(term)) for term in telling})


def is_broad(question: Question) -> bool:
    """Return whether a question names nothing and so addresses the document collection overall."""
    return not _informative_terms(question)[1]


def _informative_terms(question: Question) -> tuple[str, list[str]]:
    text = question.text
    if question.needed_turns and len(set(terms(text)) - _WHOLE) < _SAYS_ENOUGH:
        text = f"{question.needed_turns[-1].question} {text}"
    stems = dict.fromkeys(terms(text))
    telling = [term for term in stems if term not in _WHOLE]
    framed = len(telling) < len(stems) and all(term in _BREADTH_FRAME for term in telling)
    return text, [] if framed else telling
