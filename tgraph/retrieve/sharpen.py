"""Sharpening: the sentences of candidates that answer a question best."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tgraph.model import Candidate, Edge, Evidence, Retrieval
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.corpus import frequencies
from tgraph.retrieve.inquiry import read_question
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.passages import Place, gather, meaning_of, place_of, rate
from tgraph.retrieve.reports import grounded
from tgraph.retrieve.seeds import triple_of
from tgraph.retrieve.stated import stated_in

KEPT = 6
"""Sentences kept of one candidate."""

_PLACES = 12
"""Places read of one edge."""

_OF_CHUNKS = ("chunk", "summary")

ByEdge = Mapping[str, Sequence[Evidence]]


def sharpened(question: Question, retrieval: Retrieval, context: Context) -> Retrieval:
    """The retrieval with each candidate's evidence narrowed to its best sentences.

    Where no model reads what was retrieved, its sentences are ranked instead, as those of the graph
    mode are; a candidate keeps the best of them as its evidence, each with its relevance.
    Candidates keep their order; those whose evidence holds no sentence that states an edge keep it
    as it is, without relevance.
    """
    candidates = grounded(retrieval.candidates, context)
    behind = _evidence_behind(candidates, context)
    relevance = relevance_of(question.text, _by_edge(behind.values()), context)
    narrowed = (_narrowed(each, behind[each.rank], relevance) for each in candidates)
    return replace(retrieval, candidates=tuple(narrowed))


def _narrowed(
    candidate: Candidate, evidence: Sequence[Evidence], relevance: Mapping[Place, float]
) -> Candidate:
    best: dict[Place, Evidence] = {}
    for item in evidence:
        place = place_of(item)
        if place in relevance:
            best.setdefault(place, item)
    ranked = sorted(best, key=lambda place: (-relevance[place], best[place].iri))[:KEPT]
    kept = tuple(replace(best[place], relevance=relevance[place]) for place in ranked)
    return replace(candidate, evidence=kept) if kept else candidate


def _evidence_behind(
    candidates: Sequence[Candidate], context: Context
) -> dict[int, Sequence[Evidence]]:
    """For each candidate the evidence of edges that it holds: a chunk's are those it states, a
    summary's those that the chunks state which it rests on."""
    chunks = {e.chunk for c in candidates if c.item.kind in _OF_CHUNKS for e in c.evidence}
    stated = _stated_in(sorted(chunks), context)
    return {
        c.rank: _stated_by(c, stated) if c.item.kind in _OF_CHUNKS else c.evidence
        for c in candidates
    }


def _stated_by(
    candidate: Candidate, stated: Mapping[str, Sequence[Evidence]]
) -> Sequence[Evidence]:
    """What is stated where the candidate rests, with the way that leads there."""
    found = []
    for place in candidate.evidence:
        inside = (
            e for e in stated.get(place.chunk, ()) if place.start <= e.start and e.end <= place.end
        )
        found += [e if e.via == place.via else replace(e, via=place.via) for e in inside]
    return found


def _stated_in(chunks: Sequence[str], context: Context) -> dict[str, list[Evidence]]:
    stated = stated_in(chunks, context).values()
    edges = list(dict.fromkeys(edge for places in stated for _, edge in places))
    memory = context.remembered("evidence", 50_000)
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    wanted = set(chunks)
    for items in memory.get_all(edges, lambda missing: _read(missing, context)).values():
        for item in items:
            if item.chunk in wanted:
                found[item.chunk].append(item)
    return found


def _read(edges: list[str], context: Context) -> Mapping[str, tuple[Evidence, ...]]:
    return context.evidence.of_edges(edges, _PLACES)


def _by_edge(groups: Iterable[Sequence[Evidence]]) -> dict[str, list[Evidence]]:
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    for group in groups:
        for item in group:
            found[item.statement].append(item)
    return found


def relevance_of(question: str, evidence: ByEdge, context: Context) -> dict[Place, float]:
    """How well each place answers, 0 to 1; places are as of ``place_of``."""
    inquiry = read_question(question, frequencies(context))
    meaning = meaning_of(inquiry, context)
    edges = _labelled(list(evidence), context)
    meaning.learn(edges)
    passages = gather(edges, evidence, context)
    ratings = rate(passages.values(), inquiry, meaning)
    return {place: min(1.0, round(rating.score, 6)) for place, rating in ratings.items()}


def _labelled(edges: list[str], context: Context) -> dict[str, Edge]:
    def read(missing: list[str]) -> dict[str, Edge]:
        triples = {iri: triple_of(iri, context) for iri in missing}
        known = {iri: triple for iri, triple in triples.items() if triple is not None}
        labelled = with_labels(context.store, list(known.values()))
        return dict(zip(known, labelled, strict=True))

    found: dict[str, Edge] = context.remembered("labels of edges", 50_000).get_all(edges, read)
    return found
