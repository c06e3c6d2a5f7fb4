"""Reading: what a reader finds in the sentences that were ranked best, and what follows from it.

The best sentences are read in passages, with what stands around them. What the reader finds and how
the sentences were ranked give each a probability of answering the question, and all together the
confidence that the documents answer it at all. Whole texts are ranked by their passages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import NamedTuple

from tgraph.ingest.sentences import Span, sentences
from tgraph.model import Candidate, Evidence, Judgement, Retrieval
from tgraph.models.base import CallSink, no_sink
from tgraph.models.reader import Passage, Reader
from tgraph.resources import weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.bm25 import frequencies
from tgraph.retrieve.text.lexical import term_set
from tgraph.retrieve.text.page_sentences import PageSentences, page_sentences
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, analyse, matched, roots_of
from tgraph.retrieve.text.sentence_ranking import Place, place_of

MOST_READ = 10
"""Passages that are read for one question."""

MOST_RANKED = 40
"""Sentences from which they are made, those ranked best."""

LONGEST = 450
"""Characters of a passage, unless one sentence is longer."""

WEIGHTS = weights("reading")
"""The bias, then what each of ``Features`` counts."""

UNREAD = "not read: other sentences were ranked before it"


def windows(text: str) -> list[str]:
    """A text as passages of whole sentences, each beginning with the last one of the passage
    before, where there is room for it."""
    found: list[list[Span]] = []
    for sentence in sentences(text):
        if found and sentence[1] - found[-1][0][0] <= LONGEST:
            found[-1].append(sentence)
        else:
            before = [last[-1] for last in found[-1:] if sentence[1] - last[-1][0] <= LONGEST]
            found.append([*before, sentence])
    return [text[passage[0][0] : passage[-1][1]] for passage in found]


def rank_by_relevance(
    reader: Reader, question: str, texts: Sequence[str], sink: CallSink = no_sink
) -> list[tuple[int, float]]:
    """A ``Rank`` by a reader: each text counts as its most relevant passage (MaxP of Dai and Callan
    2019, arXiv:1905.09217), its score is the probability of that; one of no sentence is left out.
    """
    parts = [(place, part) for place, text in enumerate(texts) for part in windows(text)]
    readings = reader.read(question, [Passage(part, ()) for _, part in parts], sink)
    best: dict[int, float] = {}
    for (place, _), reading in zip(parts, readings, strict=True):
        best[place] = max(reading.relevance, best.get(place, reading.relevance))
    order = sorted(best, key=lambda place: (-best[place], place))
    return [(place, _probability(best[place])) for place in order]


@dataclass(frozen=True, slots=True)
class _PagePassage:
    """Sentences of a page, by their places on it, that are read as one passage.

    ``text`` begins with what they stand under; ``starts`` and ``ends`` are where each sentence of
    ``places`` stands in it.
    """

    page: PageSentences
    places: range
    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def place(self, evidence: Evidence, page: PageSentences) -> tuple[int, int] | None:
        """Where the evidence stands in the text; None where it is not in it as a whole."""
        over = page.over(evidence.start, evidence.end)
        if page is not self.page or not over or not set(over) <= set(self.places):
            return None
        first, last = over[0] - self.places.start, over[-1] - self.places.start
        return self.starts[first], self.ends[last]


class Features(NamedTuple):
    """What tells whether a sentence answers.

    ``ranked`` is the score of the ranking, ``span`` the logit of the likeliest answer within the
    sentence and ``relevance`` that of the passage, both bounded; ``behind`` is how much the best
    span of the passage is ahead, ``missing`` the share of what the question's words tell that
    neither the passage nor its headings have, ``rarest`` what the most telling of them tells.
    """

    ranked: float
    span: float
    relevance: float
    behind: float
    missing: float
    rarest: float

    @property
    def probability(self) -> float:
        bias, *weights_ = WEIGHTS
        return _probability(bias + sum(map(mul, weights_, self)))


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence that was read: what tells whether it answers, and the likeliest answer in it."""

    evidence: Evidence
    features: Features
    answer: str

    @property
    def probability(self) -> float:
        return self.features.probability


def read(question: Question, retrieval: Retrieval, reader: Reader, context: Context) -> Retrieval:
    """The retrieval with its candidates in the order of how likely they answer, and a judgement.

    Each keeps its rank; of its evidence it keeps what was read, each place with the probability
    that it answers. Those of which nothing was read come last, with a score of 0.
    """
    inquiry = analyse(question.text, frequencies(context))
    ranked = _ranked(retrieval.candidates)
    readings = readings_of(inquiry, ranked, reader, context)
    judgement = _judgement(list(readings.values()))
    candidates = sorted(
        (_read(candidate, readings) for candidate in retrieval.candidates),
        key=lambda each: (-each.score, each.rank),
    )
    return replace(retrieval, candidates=tuple(candidates), judgement=judgement)


def _ranked(candidates: Sequence[Candidate]) -> list[tuple[Evidence, float]]:
    """The distinct places that answer best of each candidate, with their scores, best first."""
    found: dict[Place, tuple[Evidence, float]] = {}
    for candidate in candidates:
        for evidence, score in _scored(candidate):
            place = place_of(evidence)
            if place not in found or found[place][1] < score:
                found[place] = evidence, score
    return sorted(found.values(), key=lambda pair: (-pair[1], str(place_of(pair[0]))))


def _scored(candidate: Candidate) -> list[tuple[Evidence, float]]:
    """Of an edge the first place, which it was ranked by; of other items all that were rated."""
    rated = [(e, e.relevance) for e in candidate.evidence if e.relevance is not None]
    return rated or [(evidence, candidate.score) for evidence in candidate.evidence[:1]]


def _page_passages(ranked: Sequence[Evidence], context: Context) -> list[_PagePassage]:
    """What is read, so that each of the best places stands in one passage."""
    found: list[_PagePassage] = []
    for evidence in ranked:
        if len(found) == MOST_READ:
            break
        page = page_sentences(evidence, context)
        over = page.over(evidence.start, evidence.end)
        if over and not any(each.place(evidence, page) for each in found):
            found.append(_page_passage(evidence.title, page, over))
    return found


def _page_passage(title: str, page: PageSentences, over: range) -> _PagePassage:
    """The sentences with those before and after them, as far as there is room under one heading."""
    first, last = over[0], over[-1]
    context = page.all[first].context
    room = LONGEST - sum(len(page.all[at].text) for at in over)
    sides = {-1, 1}
    while sides:
        for side in sorted(sides):
            at = first - 1 if side < 0 else last + 1
            each = page.all[at] if 0 <= at < len(page.all) else None
            if each is None or each.kind == "heading" or len(each.text) > room:
                sides.discard(side)
                continue
            room -= len(each.text)
            first, last = min(first, at), max(last, at)
    text = " › ".join(dict.fromkeys((title, *context))) + "\n"
    starts, ends = [], []
    for at in range(first, last + 1):
        starts.append(len(text))
        text += page.all[at].text
        ends.append(len(text))
        same = at < last and page.all[at + 1].segment == page.all[at].segment
        text += " " if same else "\n"
    return _PagePassage(page, range(first, last + 1), text.rstrip(), tuple(starts), tuple(ends))


def readings_of(
    inquiry: AnalysedQuestion,
    ranked: Sequence[tuple[Evidence, float]],
    reader: Reader,
    context: Context,
) -> dict[Place, SentenceReading]:
    """What is read in the passages around the best of the ranked sentences, by place."""
    found_on_pages = _page_passages([evidence for evidence, _ in ranked[:MOST_RANKED]], context)
    inside: list[list[tuple[Evidence, float, tuple[int, int]]]] = [[] for _ in found_on_pages]
    for evidence, score in ranked:
        page = page_sentences(evidence, context)
        for own, each in zip(inside, found_on_pages, strict=True):
            if where := each.place(evidence, page):
                own.append((evidence, score, where))
                break
    passages = [
        Passage(each.text, tuple(where for *_, where in own))
        for each, own in zip(found_on_pages, inside, strict=True)
    ]
    found = {}
    read_ = reader.read(inquiry.text, passages, context.sink)
    for passage, own, reading in zip(passages, inside, read_, strict=True):
        missing = _missing(inquiry, passage.text)
        best = max((span.score for span in reading.spans if span), default=0.0)
        for (evidence, score, _), span in zip(own, reading.spans, strict=True):
            if span is not None:
                relevance, behind = _bounded(reading.relevance), min(_BOUND, best - span.score)
                told = Features(score, _bounded(span.score), relevance, behind, *missing)
                answer = passage.text[span.start : span.end]
                found[place_of(evidence)] = SentenceReading(evidence, told, answer)
    return found


def _missing(inquiry: AnalysedQuestion, passage: str) -> tuple[float, float]:
    """The share of what the question's words tell that the passage lacks, and the most telling."""
    had = term_set(passage)
    roots = roots_of(had)
    lacking = [w for term, w in inquiry.weights.items() if not matched(term, had, roots)]
    return sum(lacking) / (inquiry.total or 1.0), max(lacking, default=0.0)


def _judgement(readings: Sequence[SentenceReading]) -> Judgement:
    """Whether what was read answers the question, by the sentence that answers best."""
    best = max(readings, key=lambda each: (each.probability, each.evidence.iri), default=None)
    if best is None:
        return Judgement(0.0)
    return Judgement(best.probability, best.answer, best.evidence.iri)


def _read(candidate: Candidate, readings: Mapping[Place, SentenceReading]) -> Candidate:
    """The candidate with what was read of its evidence, best first."""
    places = {place_of(evidence): evidence for evidence, _ in _scored(candidate)}
    found = [(readings[place], evidence) for place, evidence in places.items() if place in readings]
    if not found:
        return replace(candidate, score=0.0, reasons=(UNREAD,))
    found.sort(key=lambda pair: (-pair[0].probability, pair[1].iri))
    kept = tuple(replace(evidence, relevance=reading.probability) for reading, evidence in found)
    best = found[0][0]
    why = f"the reader gives its sentence {best.probability:.0%} to answer"
    if best.answer:
        why += f", by “{best.answer}”"
    return replace(
        candidate, score=best.probability, evidence=kept, reasons=(why, *candidate.reasons)
    )


def _probability(logit: float) -> float:
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, logit)))), 6)


_BOUND = 12.0


def _bounded(logit: float) -> float:
    return max(-_BOUND, min(_BOUND, logit))
