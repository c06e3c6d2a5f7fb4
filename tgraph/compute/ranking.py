"""Ranking of candidate queries: how likely each is what a question means.

A candidate that leaves words without account is less likely: a near miss is no answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tgraph.compute.algebra import Query
from tgraph.compute.doubts import doubt_result, find_doubt, may_doubt_result
from tgraph.compute.linking import QuestionLinks
from tgraph.compute.parts import CandidateQuery
from tgraph.model import Object

LEAST_LIKELIHOOD = 0.5
"""The likelihood below which a question has no answer by a query."""

UNACCOUNTED = 0.25
"""The factor of a reading's likelihood for each word that it doesn't account for."""

DOUBTED = 0.25
"""The factor of the likelihood of a reading that something speaks against."""

MOST_EVALUATED = 8
"""The best candidates that are evaluated, so that their results may speak against them."""

FindTerms = Callable[[Query], Sequence[Object] | None]
"""The terms that a query's result answers with; None where it isn't known in time."""


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A candidate with its likelihood, the words that it leaves without account, and what speaks
    against it."""

    candidate: CandidateQuery
    likelihood: float
    unaccounted: tuple[str, ...] = ()
    doubt: str = ""


def keep_likeliest(
    candidates: Iterable[CandidateQuery], links: QuestionLinks
) -> list[CandidateQuery]:
    """Return the candidates without those of the same query that are less likely."""
    likeliest: dict[Query, tuple[tuple[float, int], CandidateQuery]] = {}
    for candidate in candidates:
        likelihood = _rank_candidate(candidate, links).likelihood
        key = (likelihood, len(candidate.span))
        if candidate.query not in likeliest or key > likeliest[candidate.query][0]:
            likeliest[candidate.query] = key, candidate
    return [candidate for _, candidate in likeliest.values()]


def doubt_readings(
    ranked: Sequence[RankedQuery], links: QuestionLinks, find_terms: FindTerms
) -> list[RankedQuery]:
    """Return the readings, of the first those less likely that something speaks against."""
    judged = []
    for reading in ranked[:MOST_EVALUATED]:
        query = reading.candidate.query
        doubt = find_doubt(query, links)
        if not doubt and may_doubt_result(query, links):
            terms = find_terms(query)
            doubt = "" if terms is None else doubt_result(query, terms, links)
        likelihood = round(reading.likelihood * (DOUBTED if doubt else 1.0), 6)
        judged.append(replace(reading, likelihood=likelihood, doubt=doubt))
    return sorted(
        (*judged, *ranked[MOST_EVALUATED:]), key=lambda reading: -round(reading.likelihood, 4)
    )


def rank_candidates(
    candidates: Sequence[CandidateQuery], links: QuestionLinks
) -> list[RankedQuery]:
    """Return the candidates by how sure their links are; several that are as likely as the best,
    of classes as closed, are each as likely as chance among them: the question doesn't say which
    it means."""
    ranked = [_rank_candidate(candidate, links) for candidate in candidates]
    ranked.sort(key=lambda one: _preference(one.candidate, one.likelihood))
    if not ranked:
        return []
    keys = [_preference(one.candidate, one.likelihood)[:2] for one in ranked]
    rivals = [one for one, key in zip(ranked, keys, strict=True) if key == keys[0]]
    if len(rivals) == 1:
        return ranked
    shared = ranked[0].likelihood / len(rivals)
    return [replace(rival, likelihood=shared) for rival in rivals] + ranked[len(rivals) :]


def _rank_candidate(candidate: CandidateQuery, links: QuestionLinks) -> RankedQuery:
    missing = tuple(links.words[at].text for at in sorted(links.content - candidate.span))
    likelihood = math.prod(candidate.scores) * UNACCOUNTED ** len(missing)
    return RankedQuery(candidate, round(likelihood, 6), missing)


def _preference(candidate: CandidateQuery, score: float) -> tuple[float, int, int]:
    known_class = candidate.query.rows.known_class
    order = ("table", "type", "name").index(known_class.kind) if known_class else 3
    return -round(score, 4), order, -(known_class.members if known_class else 0)
