"""The terms that set groups of sentences apart, by class-based TF-IDF (Grootendorst 2022).

A term is a word that tells something, or two such words beside each other. It weighs as much as it
is frequent in its group, in several documents more than in one, and rare in all groups together;
what stands in one sentence alone is chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from tgraph.retrieve.text.lexical import STOP_WORDS, stem

Term = tuple[str, ...]
"""The stems of a term's words."""
Said = tuple[str, str]
"""A document, and a sentence of it."""
GroupT = TypeVar("GroupT", bound=Hashable)

FEWEST_LETTERS = 3
LEAST = 2
"""Sentences of a group that a term must stand in, where the group has more than that."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_BREAK = re.compile(r"[^\w\s'’-]|(?<![\w'’-])[\d_'’-][\w'’-]*")
"""What stands between two words that are no term together: a mark, or a number."""


def distinctive_terms(
    groups: Mapping[GroupT, Sequence[Said]], most: int, names: Mapping[GroupT, Sequence[str]]
) -> dict[GroupT, list[str]]:
    """For each group of sentences at most so many terms, the most distinctive first, as they are
    mostly written there. No two of a group share a word, and all their words are of the group's
    ``names``, which are the nouns that anybody found in it."""
    spread: dict[GroupT, Counter[Term]] = {}
    frequencies: dict[GroupT, Counter[Term]] = {}
    forms: defaultdict[Term, Counter[str]] = defaultdict(Counter)
    for group, sentences in groups.items():
        counts: Counter[Term] = Counter()
        told: defaultdict[str, set[Term]] = defaultdict(set)
        for document, sentence in sentences:
            found = dict(_terms(sentence))
            counts.update(found.keys())
            told[document].update(found)
            for term, form in found.items():
                forms[term][form] += 1
        frequencies[group] = counts
        spread[group] = Counter(term for terms in told.values() for term in terms)
    everywhere: Counter[Term] = Counter()
    for counts in frequencies.values():
        everywhere.update(counts)
    size = everywhere.total() / len(groups) if groups else 0.0

    def weight(group: GroupT, term: Term) -> float:
        count = math.sqrt(frequencies[group][term] * spread[group][term])
        return count * math.sqrt(len(term)) * math.log1p(size / everywhere[term])

    chosen: dict[GroupT, list[str]] = {}
    for group, counts in frequencies.items():
        least = LEAST if len(groups[group]) > LEAST else 1
        named = {_stem(word) for name in names[group] for word in _WORD.findall(name)}
        known = (t for t, count in counts.items() if count >= least and named.issuperset(t))
        ranked = sorted(known, key=lambda term: (-weight(group, term), term))
        chosen[group] = [_form(forms[term]) for term in _apart(ranked, most)]
    return chosen


def _apart(ranked: Iterable[Term], most: int) -> Iterator[Term]:
    """The first so many that share no word."""
    used: set[str] = set()
    for term in ranked:
        if len(used) and not used.isdisjoint(term):
            continue
        used.update(term)
        yield term
        most -= 1
        if most == 0:
            return


def _terms(sentence: str) -> Iterator[tuple[Term, str]]:
    """The terms of a sentence with how it writes them."""
    for piece in _BREAK.split(sentence):
        before = ""
        for word in _WORD.findall(piece):
            if len(word) < FEWEST_LETTERS or word.lower() in STOP_WORDS:
                before = ""
                continue
            yield (_stem(word),), word
            if before and _stem(before) != _stem(word):
                yield (_stem(before), _stem(word)), f"{before} {word}"
            before = word


def _stem(word: str) -> str:
    return stem(re.sub(r"['’]s?$", "", word).lower())


def _form(forms: Counter[str]) -> str:
    """The form that is most frequent; a word that also stands in small letters is in small ones."""
    small = {form: count for form, count in forms.items() if form == form.lower()}
    best = max(small or forms, key=lambda form: (forms[form], form))
    return re.sub(r"['’]s?$", "", best)
