"""The terms that set groups of sentences apart, by class-based TF-IDF (Grootendorst 2022).

A term is a noun phrase that anybody found in the group: a name, or the end of one, which is its
noun. It weighs as much as it is frequent in its group, in several documents more than in one, and
rare in all groups together; more where a title or heading has it, for these say what a text is
about. What stands in one sentence alone, and in no heading, is chance.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from tgraph.retrieve.text.lexical import STOP_WORDS, stem

WordSequence = tuple[str, ...]
"""The stems of a term's words, without what only joins them."""
SourcedTerm = tuple[str, str]
"""A document, and a sentence of it."""
GroupT = TypeVar("GroupT", bound=Hashable)

FEWEST_LETTERS = 3
LONGEST = 3
"""Words of a term, at most."""
LEAST = 2
"""Sentences of a group that a term must stand in, where the group has more than that."""
HEADED = 2.0
"""By how much a term weighs more that a title or heading has."""
PART = 0.5
"""The share of its sentences from which on a term is part of a longer one, and gives way to it."""
SMALL = 0.25
"""The share of its places from which on a term that is written in small letters is no name."""

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_ADDRESS = re.compile(r"\]\([^)\s]*\)?|\b\w+://\S+|\b\w+(?:[./@]\w+)+\b|`[^`]*`?")
"""Where a link leads to, and what else is no prose within it."""
_JOINED = re.compile(r"\b(?:and|or)\b", re.IGNORECASE)
_OF = re.compile(r"(?<!\s)\s+of(?:\s+the)?\s+", re.IGNORECASE)


@dataclass(slots=True)
class _Counted:
    """Term counts of a sentence group: sentences and documents containing each term."""

    sentences: Counter[WordSequence] = field(default_factory=Counter)
    documents: Counter[WordSequence] = field(default_factory=Counter)


def distinctive_terms(
    groups: Mapping[GroupT, Sequence[SourcedTerm]],
    most: int,
    names: Mapping[GroupT, Sequence[str]],
    headings: Collection[str] = (),
) -> dict[GroupT, list[str]]:
    """Return each sentence group's distinctive terms in usual spelling, most distinctive first,
    at most ``most``.

    Terms of a group share no word. Each term is one of the group's ``names``, or the end of a
    name, and belongs only to the group where the term weighs most. ``headings`` are the
    headings of all documents, including titles."""
    forms: defaultdict[WordSequence, Counter[str]] = defaultdict(Counter)
    counted = {group: _count_terms(sentences, forms) for group, sentences in groups.items()}
    everywhere: Counter[WordSequence] = Counter()
    for group_counts in counted.values():
        everywhere.update(group_counts.sentences)
    size = everywhere.total() / len(groups) if groups else 0.0
    headed = {term for heading in headings for term, _ in _find_terms(heading)}

    def weight(group: GroupT, term: WordSequence) -> float:
        of = counted[group]
        count = math.sqrt(of.sentences[term] * of.documents[term])
        count *= HEADED if term in headed else 1.0
        return count * math.sqrt(len(term)) * math.log1p(size / everywhere[term])

    weights: dict[GroupT, dict[WordSequence, float]] = {}
    for group, of in counted.items():
        least = LEAST if len(groups[group]) > LEAST else 1
        nouns = {noun for name in names[group] for noun in _name_nouns(name)}
        frequent_terms = [t for t, n in of.sentences.items() if n >= least or t in headed]
        noun_terms = [term for term in frequent_terms if term in nouns]
        weights[group] = {t: weight(group, t) for t in _whole_ones(noun_terms, of.sentences)}
    heaviest = _maximum_weights(weights.values())
    chosen: dict[GroupT, list[str]] = {}
    for group, of_group in weights.items():
        heaviest_terms = [term for term, weighs in of_group.items() if weighs >= heaviest[term]]
        ranked = sorted(heaviest_terms, key=lambda term: (-of_group[term], term))
        chosen[group] = [_frequent_form(forms[term]) for term in _select_disjoint(ranked, most)]
    return chosen


def _maximum_weights(weights: Iterable[Mapping[WordSequence, float]]) -> dict[WordSequence, float]:
    """Return each term's greatest weight over all groups; a term belongs to the group with
    greatest weight."""
    maxima: dict[WordSequence, float] = {}
    for of_group in weights:
        for term, weight in of_group.items():
            maxima[term] = max(maxima.get(term, 0.0), weight)
    return maxima


def _count_terms(
    sentences: Iterable[SourcedTerm], forms: defaultdict[WordSequence, Counter[str]]
) -> _Counted:
    counts = _Counted()
    terms_by_document: defaultdict[str, set[WordSequence]] = defaultdict(set)
    for document, sentence in sentences:
        terms = dict(_find_terms(sentence))
        counts.sentences.update(terms.keys())
        terms_by_document[document].update(terms)
        for term, form in terms.items():
            forms[term][form] += 1
    counts.documents = Counter(term for terms in terms_by_document.values() for term in terms)
    return counts


def _whole_ones(
    terms: Collection[WordSequence], counts: Mapping[WordSequence, int]
) -> list[WordSequence]:
    """Drop terms occurring mostly inside a longer term."""
    contained_terms: set[WordSequence] = set()
    for longer in terms:
        for size in range(1, len(longer)):
            for part in (longer[at : at + size] for at in range(len(longer) - size + 1)):
                if counts[longer] >= PART * counts[part]:
                    contained_terms.add(part)
    return [term for term in terms if term not in contained_terms]


def _select_disjoint(ranked: Iterable[WordSequence], most: int) -> Iterator[WordSequence]:
    """Yield the first ``most`` terms sharing no word."""
    used: set[str] = set()
    for term in ranked:
        if len(used) and not used.isdisjoint(term):
            continue
        used.update(term)
        yield term
        most -= 1
        if most == 0:
            return


def _name_nouns(name: str) -> Iterator[WordSequence]:
    """Yield noun endings of a name, including noun endings before "of"."""
    for piece in _JOINED.sub(",", name).split(","):
        for part in {piece, _OF.split(piece)[0]}:
            for run in _word_runs(part):
                stems = tuple(_stem_word(word) for word, _, _ in run[-LONGEST:])
                yield from (stems[at:] for at in range(len(stems)))


def _find_terms(sentence: str) -> Iterator[tuple[WordSequence, str]]:
    """Yield terms of a sentence, each with its written form."""
    text = _ADDRESS.sub(", ", sentence)
    for run in _word_runs(text):
        stems = [_stem_word(word) for word, _, _ in run]
        for at in range(len(run)):
            for end in range(at + 1, min(at + LONGEST, len(run)) + 1):
                if len(set(stems[at:end])) == end - at:
                    form = text[run[at][1] : run[end - 1][2]]
                    yield tuple(stems[at:end]), " ".join(form.split())


def _word_runs(text: str) -> Iterator[list[tuple[str, int, int]]]:
    """Yield runs of adjacent content words, possibly joined by "of"; each word has its place."""
    run: list[tuple[str, int, int]] = []
    for match in _WORD.finditer(text):
        word, start, end = match.group(), match.start(), match.end()
        if len(word) < FEWEST_LETTERS or word.lower() in STOP_WORDS:
            continue
        between = text[run[-1][2] : start] if run else ""
        if run and between.strip() and not _OF.fullmatch(between):
            yield run
            run = []
        run.append((word, start, end))
    if run:
        yield run


def _stem_word(word: str) -> str:
    return stem(re.sub(r"['’]s?$", "", word).lower())


def _frequent_form(forms: Counter[str]) -> str:
    """Return the most frequent form, preferring lower-case forms unless rare.

    Nouns begin sentences with a capital letter, but names never occur in lower case."""
    small = {form: count for form, count in forms.items() if form == form.lower()}
    is_small = sum(small.values()) >= SMALL * forms.total()
    best = max(small if is_small else forms, key=lambda form: (forms[form], form))
    return re.sub(r"['’]s?$", "", best)
