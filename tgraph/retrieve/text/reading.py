"""Sentence reading: reader results for top-ranked sentences, and conclusions.

The best sentences are read in passages with surrounding text. Reader results and sentence ranks
give each sentence an answer probability; all sentences together give the confidence that the
documents answer at all. Whole texts are ranked by their passages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tgraph.ingest.sentences import CharacterRange, sentences
from tgraph.model import Candidate, Evidence, Retrieval
from tgraph.models.base import CallSink, no_sink
from tgraph.models.reader import Passage, PassageReading, Reader
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.reasons import THIRD_WORDING, UNREAD, explain, is_unread
from tgraph.retrieve.text.judging import judge_readings
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.page_sentences import PageSentence, PageSentences, page_sentences
from tgraph.retrieve.text.page_sentences import read_place_text as read_as
from tgraph.retrieve.text.question_analysis import (
    AnalysedQuestion,
    analyse_question,
    rate_match,
    roots_of,
)
from tgraph.retrieve.text.row_answers import answer_of_row, lacks_asked
from tgraph.retrieve.text.sentence_ranking import SentencePlace, place_of
from tgraph.retrieve.text.sentence_readings import (
    Features,
    SentenceReading,
    bound_logit,
    find_likeliest,
    logit_probability,
)

MOST_READ = 10
"""Passages that are read for one question."""

MOST_RANKED = 40
"""Sentences from which they are made, those ranked best."""

LONGEST = 450
"""Characters of a passage, unless one sentence is longer."""

_SAMPLE = 5
"""Candidates by which their language is told."""


def split_passages(text: str) -> list[str]:
    """Split a text into passages of whole sentences.

    Each passage repeats the last sentence of the previous passage where space permits."""
    passages: list[list[CharacterRange]] = []
    for sentence in sentences(text):
        if passages and sentence[1] - passages[-1][0][0] <= LONGEST:
            passages[-1].append(sentence)
        else:
            before = [last[-1] for last in passages[-1:] if sentence[1] - last[-1][0] <= LONGEST]
            passages.append([*before, sentence])
    return [text[passage[0][0] : passage[-1][1]] for passage in passages]


def rank_by_relevance(
    reader: Reader, question: str, texts: Sequence[str], sink: CallSink = no_sink
) -> list[tuple[int, float]]:
    """Return texts ranked by a reader (a ``Rank``).

    Each text scores the relevance probability of its most relevant passage (MaxP, Dai and
    Callan 2019, arXiv:1905.09217). Texts without sentences are left out."""
    parts = [(place, part) for place, text in enumerate(texts) for part in split_passages(text)]
    readings = reader.read(question, [Passage(part, ()) for _, part in parts], sink)
    best: dict[int, float] = {}
    for (place, _), reading in zip(parts, readings, strict=True):
        best[place] = max(reading.relevance, best.get(place, reading.relevance))
    order = sorted(best, key=lambda place: (-best[place], place))
    return [(place, logit_probability(best[place])) for place in order]


@dataclass(frozen=True, slots=True)
class _PagePassage:
    """Page sentences, given by page position, read as one passage.

    ``text`` begins with the headings; ``starts`` and ``ends`` give the offsets of each sentence
    of ``places`` in ``text``."""

    page: PageSentences
    places: range
    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def place(self, evidence: Evidence, page: PageSentences) -> tuple[int, int] | None:
        """Return the evidence offsets in the passage text; return None where the passage lacks
        part of the evidence."""
        over = page.find_overlapping(evidence.start, evidence.end)
        if page is not self.page or not over or not set(over) <= set(self.places):
            return None
        first, last = over[0] - self.places.start, over[-1] - self.places.start
        return self.starts[first], self.ends[last]


def read_candidates(
    question: Question, retrieval: Retrieval, reader: Reader, context: Context
) -> Retrieval:
    """Return the retrieval with candidates sorted by answer probability, plus a judgement.

    Each candidate keeps its rank and its read evidence, each place with its answer probability.
    Unread candidates come last, with score 0 and no relevance."""
    inquiry = analyse_question(question.text, count_frequencies(context))
    ranked = _rank_places(retrieval.candidates)
    bridges = _build_bridge_chains(retrieval.candidates, context)
    readings = readings_of(inquiry, ranked, bridges, reader, context)
    judgement = judge_readings(inquiry, list(readings.values()), reader, context)
    candidates = sorted(
        (_apply_readings(candidate, readings) for candidate in retrieval.candidates),
        key=lambda each: (-each.score, each.rank),
    )
    return replace(retrieval, candidates=tuple(candidates), judgement=judgement)


def is_for(reader: Reader, question: Question, retrieval: Retrieval) -> bool:
    """Return whether a reader suits a question.

    Question and best retrieved quotes must be in the reader language, and a passage must be
    able to contain the answer; comparison results never stand in a passage."""
    from tgraph.ingest.languages import language_of  # late: not every question needs them
    from tgraph.retrieve.text.comparison import comparison_of

    if comparison_of(question.text) is not None:
        return False
    quotes = (c.evidence[0].quote for c in retrieval.candidates[:_SAMPLE] if c.evidence)
    texts = (question.text, "\n".join(quotes))
    return not reader.language or all(language_of(text) == reader.language for text in texts)


def is_known_to(reader: Reader, question: Question, context: Context) -> bool:
    """Return whether the reader supports the detected question language."""
    return count_frequencies(context).languages.of_question(question.text).code == reader.language


def in_order_read(retrieval: Retrieval, found: Retrieval) -> Retrieval:
    """Return the retrieval, reordered as ``read_candidates`` sorted its candidates, with the
    same judgement.

    Candidates with readings take over the reading reasons."""
    by_rank = {candidate.rank: candidate for candidate in retrieval.candidates}
    order = tuple(
        replace(by_rank[read_.rank], reasons=read_.reasons)
        if not is_unread(read_.reasons)
        else by_rank[read_.rank]
        for read_ in found.candidates
    )
    return replace(retrieval, candidates=order, judgement=found.judgement)


def _rank_places(candidates: Sequence[Candidate]) -> list[tuple[Evidence, float]]:
    """Return each candidate's distinct best answer places with scores, best first."""
    scored_places: dict[SentencePlace, tuple[Evidence, float]] = {}
    for candidate in candidates:
        for evidence, score in _score_evidence(candidate):
            place = place_of(evidence)
            if place not in scored_places or scored_places[place][1] < score:
                scored_places[place] = evidence, score
    return sorted(scored_places.values(), key=lambda pair: (-pair[1], str(place_of(pair[0]))))


def _score_evidence(candidate: Candidate) -> list[tuple[Evidence, float]]:
    """Return rated evidence with relevance scores; for edges, the first place with the
    candidate score."""
    rated = [(e, e.relevance) for e in candidate.evidence if e.relevance is not None]
    return rated or [(evidence, candidate.score) for evidence in candidate.evidence[:1]]


def _build_bridge_chains(candidates: Sequence[Candidate], context: Context) -> list[list[Evidence]]:
    """Return chains of jointly answering places, each place after its bridge place."""
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
    """Build passages to read, covering each top-ranked place once."""
    passages: list[_PagePassage] = []
    for evidence in ranked:
        if len(passages) == MOST_READ:
            break
        page = page_sentences(evidence, context)
        over = page.find_overlapping(evidence.start, evidence.end)
        if over and not any(passage.place(evidence, page) for passage in passages):
            row = context.wording >= THIRD_WORDING and page.segments[page[over[0]].segment].row
            sides = () if row else (-1, 1)
            passages.append(_page_passage(evidence.title, page, over, sides))
    return passages


def _page_passage(
    title: str, page: PageSentences, over: range, directions: Iterable[int]
) -> _PagePassage:
    """Extend sentences with neighbouring sentences under one heading, limited by passage
    length; ``directions`` has -1 for sentences before, 1 for sentences after."""
    first, last = over[0], over[-1]
    room = LONGEST - sum(len(page[at].text) for at in over)
    sides = set(directions)
    while sides:
        for side in sorted(sides):
            at = first - 1 if side < 0 else last + 1
            sentence = page[at] if 0 <= at < len(page) else None
            if sentence is None or sentence.kind == "heading" or len(sentence.text) > room:
                sides.discard(side)
                continue
            room -= len(sentence.text)
            first, last = min(first, at), max(last, at)
    text = _format_heading(title, page[first])
    starts, ends = [], []
    for at in range(first, last + 1):
        starts.append(len(text))
        text += page[at].text
        ends.append(len(text))
        same = at < last and page[at + 1].segment == page[at].segment
        text += " " if same else "\n"
    return _PagePassage(page, range(first, last + 1), text.rstrip(), tuple(starts), tuple(ends))


def _format_heading(title: str, sentence: PageSentence) -> str:
    return " › ".join(dict.fromkeys((title, *sentence.context))) + "\n"


def _join_places(places: Sequence[Evidence], context: Context) -> Passage | None:
    """Join places into one passage, each place under its headings."""
    text, sentences = "", []
    for evidence in places:
        page = page_sentences(evidence, context)
        over = page.find_overlapping(evidence.start, evidence.end)
        if not over:
            return None
        text += _format_heading(evidence.title, page[over[0]])
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
) -> dict[SentencePlace, SentenceReading]:
    """Read passages around top-ranked sentences; return sentence readings by place.

    Bridge places are also read as one joint passage; where the joint reading answers better,
    all bridge places share the joint reading."""
    found_on_pages = _page_passages([evidence for evidence, _ in ranked[:MOST_RANKED]], context)
    inside: list[list[tuple[Evidence, float, tuple[int, int]]]] = [[] for _ in found_on_pages]
    for evidence, score in ranked:
        page = page_sentences(evidence, context)
        for placements, page_passage in zip(inside, found_on_pages, strict=True):
            if where := page_passage.place(evidence, page):
                placements.append((evidence, score, where))
                break
    passages = [
        Passage(page_passage.text, tuple(where for *_, where in placements))
        for page_passage, placements in zip(found_on_pages, inside, strict=True)
    ]
    joined = [(chain, passage) for chain in bridges if (passage := _join_places(chain, context))]
    scores = {place_of(evidence): score for evidence, score in ranked}
    scored_chains = [[(e, scores.get(place_of(e), 0.0)) for e in chain] for chain, _ in joined]
    read_ = reader.read(inquiry.text, [*passages, *(p for _, p in joined)], context.sink)
    readings_by_place: dict[SentencePlace, SentenceReading] = {}
    for passage, placements, reading in zip(passages, inside, read_, strict=False):
        rated = [(evidence, score) for evidence, score, _ in placements]
        for sentence_reading in _drop_partial_places(
            _sentence_readings(inquiry, passage, rated, reading), context
        ):
            place = place_of(sentence_reading.evidence)
            readings_by_place[place] = _read_asked_cell(inquiry, sentence_reading, context)
    for (_, passage), chain, reading in zip(
        joined, scored_chains, read_[len(passages) :], strict=True
    ):
        best = find_likeliest(_sentence_readings(inquiry, passage, chain, reading, bridged=1.0))
        alone = find_likeliest(
            [readings_by_place[p] for e, _ in chain if (p := place_of(e)) in readings_by_place]
        )
        if best and (alone is None or best.features.logit > alone.features.logit):
            readings_by_place |= {place_of(e): replace(best, evidence=e) for e, _ in chain}
    return (
        _apply_authorities(readings_by_place, context) if context.authorities else readings_by_place
    )


def _read_asked_cell(
    inquiry: AnalysedQuestion, reading: SentenceReading, context: Context
) -> SentenceReading:
    """Return the reading of a table's row with the cell that the question asks for, and whether the
    row lacks what is asked for."""
    page = page_sentences(reading.evidence, context)
    over = page.find_overlapping(reading.evidence.start, reading.evidence.end)
    if len(over) != 1 or context.wording < THIRD_WORDING:
        return reading
    row = page.segments[page[over[0]].segment]
    title = reading.evidence.title
    answer = answer_of_row(inquiry, row, title, reading.answer)
    return replace(reading, answer=answer, lacks_asked=lacks_asked(inquiry, row, title))


def _apply_authorities(
    readings: Mapping[SentencePlace, SentenceReading], context: Context
) -> dict[SentencePlace, SentenceReading]:
    """Return readings with document authorities; drop readings without authority."""
    authorities = context.authorities
    weighted_readings = {
        p: replace(r, authority=authorities.weigh_path(r.evidence.path))
        for p, r in readings.items()
    }
    return {place: reading for place, reading in weighted_readings.items() if reading.authority}


def _sentence_readings(
    inquiry: AnalysedQuestion,
    passage: Passage,
    ranked: Sequence[tuple[Evidence, float]],
    reading: PassageReading,
    bridged: float = 0.0,
) -> list[SentenceReading]:
    """Return a sentence reading for each scored place in a passage."""
    terms = inquiry.lexicon.term_set(passage.text)
    roots = roots_of(terms)
    lacking = tuple(term for term in inquiry.weights if not rate_match(term, terms, roots))
    weights = [inquiry.weights[term] for term in lacking]
    missing = sum(weights) / (inquiry.total or 1.0), max(weights, default=0.0)
    best = max((span.score for span in reading.spans if span), default=0.0)
    sentence_readings = []
    for (evidence, score), span in zip(ranked, reading.spans, strict=True):
        if span is not None:
            relevance, behind = bound_logit(reading.relevance), bound_logit(best - span.score)
            features = Features(
                score, bound_logit(span.score), relevance, behind, *missing, bridged
            )
            answer = passage.text[span.start : span.end]
            sentence_readings.append(
                SentenceReading(evidence, features, answer, lacking, passage=passage.text)
            )
    return sentence_readings


def _drop_partial_places(
    readings: Sequence[SentenceReading], context: Context
) -> Iterator[SentenceReading]:
    """Drop places quoting sentence fragments, such as a name, when another place contains the
    answer."""
    holding = [
        reading for reading in readings if reading.answer in read_as(reading.evidence, context)
    ]
    answers = {reading.answer for reading in holding if reading.answer}
    return (reading for reading in readings if reading in holding or reading.answer not in answers)


def _apply_readings(
    candidate: Candidate, readings: Mapping[SentencePlace, SentenceReading]
) -> Candidate:
    """Return a candidate with its evidence readings, best first."""
    places = {place_of(evidence): evidence for evidence, _ in _score_evidence(candidate)}
    evidence_readings = [
        (readings[place], evidence) for place, evidence in places.items() if place in readings
    ]
    if not evidence_readings:
        unread = tuple(replace(evidence, relevance=None) for evidence in candidate.evidence)
        return replace(candidate, score=0.0, evidence=unread, reasons=(UNREAD,))
    evidence_readings.sort(key=lambda pair: (-pair[0].probability, pair[1].iri))
    rated_evidence = tuple(
        replace(evidence, relevance=reading.probability) for reading, evidence in evidence_readings
    )
    best = evidence_readings[0][0]
    why = explain(
        "read-answer" if best.answer else "read",
        probability=best.probability,
        answer=best.answer,
        kind=candidate.item.kind,
    )
    return replace(
        candidate,
        score=best.probability,
        evidence=rated_evidence,
        reasons=(why, *candidate.reasons),
    )
