"""Quotes of a bounded length: the clauses of a long sentence that answer, and those around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tgraph.answer.citations import quoting_citations
from tgraph.ingest.sentences import CharacterRange, sentences
from tgraph.model import Citation, Sentence
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.text.lexical import term_set
from tgraph.retrieve.text.question_analysis import AnalysedQuestion

_CLAUSE_END = re.compile(
    r"(?<=[;:])\s+|\n+|,\s+(?=(?:and|or|but|nor|yet|so|which|who|whose|where|while|provided|except"
    r"|unless|although|because)\b)|(?<!\s)\s+(?=\((?:[a-z]|[ivx]{1,4}|\d{1,2})\)\s)"
)
"""Where a long sentence may be cut: after semicolons, colons and lines, before conjunctions after a
comma, and before the marks of an enumeration, such as (a)."""

_LINK = re.compile(r"\[[^\[\]]*\](\((?:[^()\s]|\([^()\s]*\))*(?:\s+\"[^\"]*\")?\))")
"""A link in Markdown; its address counts nothing, and it is shown whole."""

_UNCUT = frozenset({"code", "row"})
_WORDED = frozenset({"prose", "item", "display"})
_ENDS = re.compile(r"[.!?…;:。！？؟]['\"”’»)\]]*$")
_MOST_WORDS, _LONGEST_LABEL = 16, 120


def shorten_sentence(
    sentence: Sentence, answer: str, question: AnalysedQuestion, longest: int
) -> Sentence:
    """Return a quoting sentence with at most ``longest`` characters around what answers, apart from
    addresses of links.

    Every citation that the sentence quotes is cut alike, so that offsets and quote are those of
    the shown words. Sentences that are no quote, code and rows of tables stay whole."""
    if len(_shown_places(sentence.text)) <= longest:
        return sentence
    quoting = quoting_citations(sentence)
    if not quoting or any(citation.segment_kind in _UNCUT for citation in quoting):
        return sentence
    cut = [_cut_citation(citation, answer, question, longest) for citation in quoting]
    text = collapse_whitespace(cut[0].quote)
    same = [citation for citation in cut if collapse_whitespace(citation.quote) == text]
    return replace(sentence, text=text, citations=tuple(same))


def label_fragment(sentence: Sentence, headings: Sequence[str]) -> Sentence:
    """Return a quote with its heading above it, where the quote is not a whole sentence.

    A price or an office on a page ("Price: $259", "Treasurer") says nothing alone."""
    if not headings or sentence.label or not is_fragment(sentence):
        return sentence
    heading = headings[-1]
    if len(heading) > _LONGEST_LABEL or term_set(heading) <= term_set(sentence.text):
        return sentence
    return replace(sentence, label=f"{heading.rstrip(':：')}: ")


def is_fragment(sentence: Sentence) -> bool:
    """Return whether a sentence quotes a few words that no full stop ends."""
    quoting = quoting_citations(sentence)
    return (
        bool(quoting)
        and all(citation.segment_kind in _WORDED for citation in quoting)
        and _ENDS.search(sentence.text) is None
        and len(sentence.text.split()) <= _MOST_WORDS
    )


def _cut_citation(
    citation: Citation, answer: str, question: AnalysedQuestion, longest: int
) -> Citation:
    quote = citation.quote
    places = _shown_places(quote)
    shown = "".join(quote[place] for place in places)
    first, last = find_answering_part(shown, answer, question, longest)
    start, end = places[first], places[last - 1] + 1
    for link in _LINK.finditer(quote):
        start = link.start() if link.start() < start < link.end() else start
        end = link.end() if link.start() < end < link.end() else end
    return replace(
        citation,
        start=citation.start + start,
        end=citation.start + end,
        quote=quote[start:end],
    )


def _shown_places(text: str) -> list[int]:
    """Return the places of a text's characters outside the addresses of links."""
    places: list[int] = []
    start = 0
    for link in _LINK.finditer(text):
        places += range(start, link.start(1))
        start = link.end(1)
    return [*places, *range(start, len(text))]


def find_answering_part(
    text: str, answer: str, question: AnalysedQuestion, longest: int
) -> CharacterRange:
    """Return start and end of the part of a text that answers, at most ``longest`` characters.

    The part begins with the clause that holds the answer (or else most names of the question, then
    the terms that weigh most) and grows by whole clauses: to the beginning of its sentence, then
    onwards, then backwards. A single clause that is longer is cut between words around the
    answer."""
    clauses = _split_clauses(text)
    core = max(
        range(len(clauses)),
        key=lambda at: (
            bool(answer) and answer in text[slice(*clauses[at])],
            *_weigh_terms(text[slice(*clauses[at])], question),
            -at,
        ),
    )
    start, end = clauses[core]
    if end - start > longest:
        return _cut_between_words(text, clauses[core], answer, longest)
    sentence_start = max((first for first, _ in sentences(text) if first <= start), default=start)
    first = last = core
    while first > 0 and sentence_start <= clauses[first - 1][0] >= end - longest:
        first -= 1
    while last + 1 < len(clauses) and clauses[last + 1][1] - clauses[first][0] <= longest:
        last += 1
    while first > 0 and clauses[last][1] - clauses[first - 1][0] <= longest:
        first -= 1
    return clauses[first][0], clauses[last][1]


def _weigh_terms(clause: str, question: AnalysedQuestion) -> tuple[int, float]:
    """Return how many names of a question a clause has, and the weight of all its terms there."""
    present = question.lexicon.term_set(clause)
    weight = sum(weight for term, weight in question.weights.items() if term in present)
    return len(question.names & present), weight


def _split_clauses(text: str) -> list[CharacterRange]:
    clauses: list[CharacterRange] = []
    for first, last in sentences(text):
        start = first
        for end in _CLAUSE_END.finditer(text, first, last):
            clauses.append((start, end.start() + (text[end.start()] == ",")))
            start = end.end()
        clauses.append((start, last))
    return [(start, end) for start, end in clauses if text[start:end].strip()]


def _cut_between_words(
    text: str, clause: CharacterRange, answer: str, longest: int
) -> CharacterRange:
    """Return the words around the answer, or else the first words of a clause."""
    start, end = clause
    at = text.find(answer, start, end) if answer else -1
    middle = start if at < 0 else at + len(answer) // 2
    first = max(start, min(middle - longest // 2, end - longest))
    last = min(end, first + longest)
    if first > start:
        first = next((m.end() for m in re.finditer(r"\s+", text[first:last])), 0) + first
    if last < end:
        last = max((m.start() for m in re.finditer(r"\s+", text[first:last])), default=longest)
        last += first
    return first, last
