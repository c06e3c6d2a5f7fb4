"""Evidence of candidates, narrowed to the sentences that answer best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tgraph.model import Candidate, Edge, Evidence, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import triples_of
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.reports import add_report_evidence
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.question_analysis import analyse_question
from tgraph.retrieve.text.sentence_ranking import (
    SentencePlace,
    gather_sentences,
    meaning_of,
    place_of,
    rate_passages,
    stated_in,
)

if TYPE_CHECKING:
    from tgraph.retrieve.text.similarity import Vector


KEPT = 6
"""Sentences kept of one candidate."""

_PLACES = 12
"""Places read of one edge."""

_OF_REPORTS = 50
"""Places read of one report among other candidates, the nearest: of 200 the answers of the mode
``local`` to questions on SQuAD's and MuSiQue's texts were no others (``benchmarks.answers``)."""

_OF_CHUNKS = ("chunk", "summary")

ByEdge = Mapping[str, Sequence[Evidence]]


def sharpen_evidence(
    question: Question, retrieval: Retrieval, context: Context, vector: Vector | None = None
) -> Retrieval:
    """The retrieval with each candidate's evidence narrowed to its best sentences.

    Where no model reads what was retrieved, its sentences are ranked instead, as those of the graph
    mode are; a candidate keeps the best of them as its evidence, each with its relevance.
    Candidates keep their order; those whose evidence holds no sentence that states an edge keep it
    as it is, without relevance. ``vector`` is as of ``meaning_of``.
    """
    candidates = add_report_evidence(retrieval.candidates, context, _OF_REPORTS)
    behind = _evidence_behind(candidates, context)
    relevance = relevance_of(question.text, _by_edge(behind.values()), context, vector)
    narrowed = (
        _narrow_candidate(candidate, behind[candidate.rank], relevance) for candidate in candidates
    )
    return replace(retrieval, candidates=tuple(narrowed))


def _narrow_candidate(
    candidate: Candidate, evidence: Sequence[Evidence], relevance: Mapping[SentencePlace, float]
) -> Candidate:
    best: dict[SentencePlace, Evidence] = {}
    for item in evidence:
        place = place_of(item)
        if place in relevance:
            best.setdefault(place, item)
    ranked = sorted(best, key=lambda place: (-relevance[place], best[place].iri))[:KEPT]
    narrowed_evidence = tuple(replace(best[place], relevance=relevance[place]) for place in ranked)
    return replace(candidate, evidence=narrowed_evidence) if narrowed_evidence else candidate


def _evidence_behind(
    candidates: Sequence[Candidate], context: Context
) -> dict[int, Sequence[Evidence]]:
    """Return edge evidence behind each candidate.

    Chunk candidates have evidence stated in the chunk; summary candidates have evidence stated
    in underlying chunks."""
    chunks = {e.chunk for c in candidates if c.item.kind in _OF_CHUNKS for e in c.evidence}
    evidence_by_chunk = _stated_in(sorted(chunks), context)
    return {
        c.rank: _stated_by(c, evidence_by_chunk) if c.item.kind in _OF_CHUNKS else c.evidence
        for c in candidates
    }


def _stated_by(
    candidate: Candidate, stated: Mapping[str, Sequence[Evidence]]
) -> Sequence[Evidence]:
    """Return evidence stated within candidate places, keeping each place's ``via`` path."""
    stated_evidence = []
    for place in candidate.evidence:
        inside = (
            e for e in stated.get(place.chunk, ()) if place.start <= e.start and e.end <= place.end
        )
        stated_evidence += [e if e.via == place.via else replace(e, via=place.via) for e in inside]
    return stated_evidence


def _stated_in(chunks: Sequence[str], context: Context) -> dict[str, list[Evidence]]:
    chunk_edges = stated_in(chunks, context).values()
    edges = list(dict.fromkeys(edge for places in chunk_edges for _, edge in places))
    memory = context.open_cache("evidence", 50_000)
    evidence_by_chunk: defaultdict[str, list[Evidence]] = defaultdict(list)
    chunk_set = set(chunks)
    for items in memory.get_all(edges, lambda missing: _read_evidence(missing, context)).values():
        for item in items:
            if item.chunk in chunk_set:
                evidence_by_chunk[item.chunk].append(item)
    return evidence_by_chunk


def _read_evidence(edges: list[str], context: Context) -> Mapping[str, tuple[Evidence, ...]]:
    return context.evidence.of_edges(edges, _PLACES)


def _by_edge(groups: Iterable[Sequence[Evidence]]) -> dict[str, list[Evidence]]:
    evidence_by_edge: defaultdict[str, list[Evidence]] = defaultdict(list)
    for group in groups:
        for item in group:
            evidence_by_edge[item.statement].append(item)
    return evidence_by_edge


def relevance_of(
    question: str, evidence: ByEdge, context: Context, vector: Vector | None = None
) -> dict[SentencePlace, float]:
    """Rate how well each place answers, 0 to 1; places come from ``place_of``."""
    inquiry = analyse_question(question, count_frequencies(context))
    meaning = meaning_of(inquiry, context, vector)
    edges = _label_edges(list(evidence), context)
    meaning.learn(edges)
    passages = gather_sentences(edges, evidence, context)
    ratings = rate_passages(passages.values(), inquiry, meaning)
    return {place: min(1.0, round(rating.score, 6)) for place, rating in ratings.items()}


def _label_edges(edges: list[str], context: Context) -> dict[str, Edge]:
    def read(missing: list[str]) -> dict[str, Edge]:
        triples = triples_of(missing, context)
        labelled = with_labels(context.graph, list(triples.values()))
        return dict(zip(triples, labelled, strict=True))

    labelled_edges: dict[str, Edge] = context.open_cache("labels of edges", 50_000).get_all(
        edges, read
    )
    return labelled_edges
