"""Descriptions: what a question doesn't name but says something about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

from tgraph.retrieve.inquiry import telling_words
from tgraph.retrieve.sought import kind_of_phrase

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
_NAME = rf"{_CAPITAL}(?:\s+(?:(?:of|the|and|in|with|for)\s+){{0,2}}[\"“]?{_CAPITAL}[\"”]?){{0,9}}"
_POSSESSED = re.compile(
    rf"((?:{_CAPITAL}\s+){{0,9}}?{_CAPITAL}?[^\W_])['’]s\s+((?:[a-z]+\s+){{0,2}}[a-z]+)"
)
_OF = re.compile(
    r"\bthe\s+((?:[a-z]+\s+){0,2}[a-z]+)\s+(?:of|for|in)\s+"
    rf"(?:(?:the|a)\s+)?(?:[a-z]+\s+){{0,2}}[\"“]?{_NAME}"
)


@dataclass(frozen=True, slots=True)
class Description:
    """What is asked (``before`` and ``after`` the described), the description, and its noun."""

    before: str
    after: str
    text: str
    noun: str

    def about(self, name: str) -> str:
        """The question with the name of what is described."""
        return " ".join(f"{self.before} {name} {self.after}".split())


def descriptions(question: str) -> list[Description]:
    """The descriptions in a question, the fullest first, at most three.

    None where it names what it is about. "Who designed the ship that carried the first party?" asks
    "Who designed ...?" about "the ship that carried the first party". Once the described is found,
    its name takes the place of the description.
    """
    sentences = _SENTENCES.split(question.strip())
    if len(sentences) > 1 and sentences[-1].endswith("?"):
        return [Description(sentences[-1], "", " ".join(sentences[:-1]), "")]
    found = [clause] if (clause := _by_clause(question)) else []
    return list(islice(chain(found, _by_name(question)), MOST))


def _by_clause(question: str) -> Description | None:
    """The noun phrase that a relative clause follows; the rest of the question is the clause."""
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
    """The words up to the last noun whose kind is known, and those after it ("man", "born")."""
    found = text.split()
    known = [place for place, word in enumerate(found) if kind_of_phrase(word)]
    end = known[-1] + 1 if known else longest
    return " ".join(found[:end]), " ".join(found[end:])


def _by_name(question: str) -> Iterator[Description]:
    """ "The first mate of the Belgica", "Gisvi's birthplace"."""
    for match in _OF.finditer(question):
        if not _CLAUSE.search(match.group()) and not re.search("['’]s$", match.group()):
            found = _in_place_of(question, match.start(), match.end(), match.group(1))
            if _is_asked(found):
                yield found
    for match in _POSSESSED.finditer(question):
        noun, _ = _noun_phrase(match.group(2), longest=1)
        found = _in_place_of(question, match.start(), match.start(2) + len(noun), noun)
        if _is_asked(found):
            yield found


def _in_place_of(question: str, start: int, end: int, noun: str) -> Description:
    return Description(question[:start].strip(), question[end:].strip(), question[start:end], noun)


def _is_asked(description: Description) -> bool:
    """Whether the rest is a question that says something."""
    rest = f"{description.before} {description.after}"
    return bool(_QUESTION_WORD.search(description.before) and telling_words(rest))
