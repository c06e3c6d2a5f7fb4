"""Reading: what a reader finds in the sentences that were ranked best, and what follows from it.

The best sentences are read in passages, with what stands around them. What the reader finds and how
the sentences were ranked give each a probability of answering the question, and all together the
confidence that the documents answer it at all. Whole texts are ranked by their passages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import NamedTuple

from tgraph.ingest.sentences import Span, sentences
from tgraph.model import Candidate, Evidence, Judgement, Retrieval
from tgraph.models.base import CallSink, no_sink
from tgraph.models.reader import Passage, PassageReading, Reader
from tgraph.resources import weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.text.lexicon import frequencies
from tgraph.retrieve.text.page_sentences import PageSentence, PageSentences, page_sentences
from tgraph.retrieve.text.page_sentences import reading as read_as
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

CONFIDENCE = weights("confidence")
"""The bias, then what each of ``JudgementFeatures`` counts."""

_SAMPLE = 5
"""Candidates by which their language is told."""

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
    neither the passage nor its headings have, ``rarest`` what the most telling of them tells;
    ``bridged`` is 1 where the passage is made of the places of a bridge.
    """

    ranked: float
    span: float
    relevance: float
    behind: float
    missing: float
    rarest: float
    bridged: float = 0.0

    @property
    def logit(self) -> float:
        return _logit(WEIGHTS, self)


class JudgementFeatures(NamedTuple):
    """What tells whether the documents answer at all.

    ``ranked`` is the highest score of the ranking; ``relevance`` and ``rarest`` are those of the
    sentence that answers best.
    """

    ranked: float
    relevance: float
    rarest: float

    @property
    def probability(self) -> float:
        return _probability(_logit(CONFIDENCE, self))


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence that was read: what tells whether it answers, the likeliest answer in it, and the
    terms of the question that its passage lacks; ``authority`` is that of its document."""

    evidence: Evidence
    features: Features
    answer: str
    lacking: tuple[str, ...]
    authority: float = 1.0

    @property
    def probability(self) -> float:
        """That it answers, as far as its document is to be believed."""
        return _probability(self.features.logit) * self.authority

    @property
    def likelihood(self) -> float:
        """What orders readings as ``probability`` does, without its bounds."""
        return self.features.logit + (math.log(self.authority) if self.authority else -math.inf)


def read(question: Question, retrieval: Retrieval, reader: Reader, context: Context) -> Retrieval:
    """The retrieval with its candidates in the order of how likely they answer, and a judgement.

    Each keeps its rank; of its evidence it keeps what was read, each place with the probability
    that it answers. Those of which nothing was read come last, with a score of 0 and no relevance.
    """
    inquiry = analyse(question.text, frequencies(context))
    ranked = _ranked(retrieval.candidates)
    bridges = _bridges(retrieval.candidates, context)
    readings = readings_of(inquiry, ranked, bridges, reader, context)
    judgement = _judgement(inquiry, list(readings.values()))
    candidates = sorted(
        (_read(candidate, readings) for candidate in retrieval.candidates),
        key=lambda each: (-each.score, each.rank),
    )
    return replace(retrieval, candidates=tuple(candidates), judgement=judgement)


def is_for(reader: Reader, question: Question, retrieval: Retrieval) -> bool:
    """Whether the question and the best of what was retrieved are in the reader's language, and
    the answer can stand in a passage; what a comparison comes to doesn't."""
    from tgraph.ingest.languages import language_of  # late: not every question needs them
    from tgraph.retrieve.text.comparison import comparison_of

    if comparison_of(question.text) is not None:
        return False
    quotes = (c.evidence[0].quote for c in retrieval.candidates[:_SAMPLE] if c.evidence)
    texts = (question.text, "\n".join(quotes))
    return not reader.language or all(language_of(text) == reader.language for text in texts)


def is_known_to(reader: Reader, question: Question, context: Context) -> bool:
    """Whether the reader knows the language that the question is read in."""
    return frequencies(context).languages.of_question(question.text).code == reader.language


def in_order_read(retrieval: Retrieval, found: Retrieval) -> Retrieval:
    """The retrieval as it is, in the order in which ``read`` found its candidates and with what it
    judged; those that were read say so."""
    by_rank = {candidate.rank: candidate for candidate in retrieval.candidates}
    order = tuple(
        replace(by_rank[read_.rank], reasons=read_.reasons)
        if UNREAD not in read_.reasons
        else by_rank[read_.rank]
        for read_ in found.candidates
    )
    return replace(retrieval, candidates=order, judgement=found.judgement)


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


def _bridges(candidates: Sequence[Candidate], context: Context) -> list[list[Evidence]]:
    """The places that answer together, each after the one that leads to it."""
    ends = {place_of(c.evidence[0]): c for c in candidates if c.bridge and c.evidence}
    before = context.evidence.by_iri([c.bridge for c in ends.values()])
    chains = {place: [c.evidence[0]] for place, c in ends.items() if c.bridge in before}
    for chain in chains.values():
        while (end := ends.get(place_of(chain[0]))) and end.bridge in before:
            if before[end.bridge] in chain:
                break
            chain.insert(0, before[end.bridge])
    inner = {place_of(place) for chain in chains.values() for place in chain[:-1]}
    return [chain for place, chain in chains.items() if place not in inner]


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
    room = LONGEST - sum(len(page[at].text) for at in over)
    sides = {-1, 1}
    while sides:
        for side in sorted(sides):
            at = first - 1 if side < 0 else last + 1
            each = page[at] if 0 <= at < len(page) else None
            if each is None or each.kind == "heading" or len(each.text) > room:
                sides.discard(side)
                continue
            room -= len(each.text)
            first, last = min(first, at), max(last, at)
    text = _heading(title, page[first])
    starts, ends = [], []
    for at in range(first, last + 1):
        starts.append(len(text))
        text += page[at].text
        ends.append(len(text))
        same = at < last and page[at + 1].segment == page[at].segment
        text += " " if same else "\n"
    return _PagePassage(page, range(first, last + 1), text.rstrip(), tuple(starts), tuple(ends))


def _heading(title: str, sentence: PageSentence) -> str:
    return " › ".join(dict.fromkeys((title, *sentence.context))) + "\n"


def _joined(places: Sequence[Evidence], context: Context) -> Passage | None:
    """The places one after the other, each under its headings."""
    text, sentences = "", []
    for evidence in places:
        page = page_sentences(evidence, context)
        over = page.over(evidence.start, evidence.end)
        if not over:
            return None
        text += _heading(evidence.title, page[over[0]])
        start = len(text)
        text += " ".join(page[at].text for at in over)
        sentences.append((start, len(text)))
        text += "\n"
    return Passage(text.rstrip(), tuple(sentences))


def readings_of(
    inquiry: AnalysedQuestion,
    ranked: Sequence[tuple[Evidence, float]],
    bridges: Sequence[Sequence[Evidence]],
    reader: Reader,
    context: Context,
) -> dict[Place, SentenceReading]:
    """What is read in the passages around the best of the ranked sentences, by place.

    The places of a bridge are read as one passage too; where they answer better so, all of them
    have what was read there.
    """
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
    joined = [(chain, passage) for chain in bridges if (passage := _joined(chain, context))]
    scores = {place_of(evidence): score for evidence, score in ranked}
    together = [[(e, scores.get(place_of(e), 0.0)) for e in chain] for chain, _ in joined]
    read_ = reader.read(inquiry.text, [*passages, *(p for _, p in joined)], context.sink)
    found: dict[Place, SentenceReading] = {}
    for passage, own, reading in zip(passages, inside, read_, strict=False):
        rated = [(evidence, score) for evidence, score, _ in own]
        for one in _stating(_sentence_readings(inquiry, passage, rated, reading), context):
            found[place_of(one.evidence)] = one
    for (_, passage), chain, reading in zip(joined, together, read_[len(passages) :], strict=True):
        best = _likeliest(_sentence_readings(inquiry, passage, chain, reading, bridged=1.0))
        alone = _likeliest([found[p] for e, _ in chain if (p := place_of(e)) in found])
        if best and (alone is None or best.features.logit > alone.features.logit):
            found |= {place_of(e): replace(best, evidence=e) for e, _ in chain}
    return _believed(found, context) if context.authorities else found


def _believed(
    readings: Mapping[Place, SentenceReading], context: Context
) -> dict[Place, SentenceReading]:
    """The readings with the authority of their documents; without those that have none."""
    authorities = context.authorities
    found = {p: replace(r, authority=authorities.of(r.evidence.path)) for p, r in readings.items()}
    return {place: reading for place, reading in found.items() if reading.authority}


def _sentence_readings(
    inquiry: AnalysedQuestion,
    passage: Passage,
    ranked: Sequence[tuple[Evidence, float]],
    reading: PassageReading,
    bridged: float = 0.0,
) -> list[SentenceReading]:
    """What was read of each of the places, with their scores, that are the passage's sentences."""
    terms = inquiry.lexicon.term_set(passage.text)
    roots = roots_of(terms)
    lacking = tuple(term for term in inquiry.weights if not matched(term, terms, roots))
    weights = [inquiry.weights[term] for term in lacking]
    missing = sum(weights) / (inquiry.total or 1.0), max(weights, default=0.0)
    best = max((span.score for span in reading.spans if span), default=0.0)
    found = []
    for (evidence, score), span in zip(ranked, reading.spans, strict=True):
        if span is not None:
            relevance, behind = _bounded(reading.relevance), min(_BOUND, best - span.score)
            told = Features(score, _bounded(span.score), relevance, behind, *missing, bridged)
            answer = passage.text[span.start : span.end]
            found.append(SentenceReading(evidence, told, answer, lacking))
    return found


def _stating(readings: Sequence[SentenceReading], context: Context) -> Iterator[SentenceReading]:
    """Without the places that are a part of their sentence, such as a name in it, where the answer
    stands in another place and not in them."""
    holding = [one for one in readings if one.answer in read_as(one.evidence, context)]
    answers = {one.answer for one in holding if one.answer}
    return (one for one in readings if one in holding or one.answer not in answers)


def _likeliest(readings: Sequence[SentenceReading]) -> SentenceReading | None:
    return max(readings, key=lambda each: (each.likelihood, each.evidence.iri), default=None)


def _judgement(inquiry: AnalysedQuestion, readings: Sequence[SentenceReading]) -> Judgement:
    """Whether what was read answers the question, the answer of the likeliest sentence, and the
    words of the question that no passage has, in their order."""
    best = _likeliest(readings)
    if best is None:
        return Judgement(0.0)
    told = judgement_features([each.features for each in readings], best.features)
    nowhere = set(inquiry.weights).intersection(*(each.lacking for each in readings))
    lexicon = inquiry.lexicon
    missing = (word for word in lexicon.words(inquiry.text) if lexicon.stem(word) in nowhere)
    return Judgement(told.probability, best.answer, best.evidence, tuple(dict.fromkeys(missing)))


def judgement_features(told: Sequence[Features], best: Features) -> JudgementFeatures:
    """What tells of all the sentences that were read, of which one answers best."""
    return JudgementFeatures(max(each.ranked for each in told), best.relevance, best.rarest)


def _read(candidate: Candidate, readings: Mapping[Place, SentenceReading]) -> Candidate:
    """The candidate with what was read of its evidence, best first."""
    places = {place_of(evidence): evidence for evidence, _ in _scored(candidate)}
    found = [(readings[place], evidence) for place, evidence in places.items() if place in readings]
    if not found:
        unread = tuple(replace(evidence, relevance=None) for evidence in candidate.evidence)
        return replace(candidate, score=0.0, evidence=unread, reasons=(UNREAD,))
    found.sort(key=lambda pair: (-pair[0].probability, pair[1].iri))
    kept = tuple(replace(evidence, relevance=reading.probability) for reading, evidence in found)
    best = found[0][0]
    why = f"the reader gives its sentence {best.probability:.0%} to answer"
    if best.answer:
        why += f", by “{best.answer}”"
    return replace(
        candidate, score=best.probability, evidence=kept, reasons=(why, *candidate.reasons)
    )


def _logit(weights_: Sequence[float], features: Sequence[float]) -> float:
    """What the features come to: a bias, then what each of them counts."""
    bias, *counts = weights_
    return float(bias + sum(map(mul, counts, features)))


def _probability(logit: float) -> float:
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, logit)))), 6)


_BOUND = 12.0


def _bounded(logit: float) -> float:
    return max(-_BOUND, min(_BOUND, logit))
