"""Ranking of candidate queries: how likely each is what a question means.

A word of the question that has no account makes a query unlikely: a near miss is no answer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tgraph.compute.algebra import Query
from tgraph.compute.features import Features
from tgraph.compute.linking import QuestionLinks
from tgraph.compute.parts import CandidateQuery

LEAST_LIKELIHOOD = 0.5
"""The likelihood below which a question has no answer by a query."""

UNACCOUNTED = 0.25
"""The factor of a candidate's likelihood for each word that it doesn't account for."""


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A candidate with its likelihood, and the words that it leaves without account."""

    candidate: CandidateQuery
    likelihood: float
    unaccounted: tuple[str, ...] = ()


def rank_candidates(
    candidates: Sequence[CandidateQuery], links: QuestionLinks
) -> list[RankedQuery]:
    """Return the candidates, the likeliest first, closed classes before others.

    Several that are as likely as the best, of classes as closed, are each as likely as chance among
    them: the question doesn't say which it means."""
    ranked = [_rank_candidate(candidate, links) for candidate in candidates]
    ranked.sort(key=_preference)
    if not ranked:
        return []
    best = ranked[0]
    rivals = [one for one in ranked if _preference(one)[:2] == _preference(best)[:2]]
    if len(rivals) == 1:
        return ranked
    shared = best.likelihood / len(rivals)
    return [replace(one, likelihood=shared) for one in rivals] + ranked[len(rivals) :]


def keep_likeliest(
    candidates: Iterable[CandidateQuery], links: QuestionLinks
) -> list[CandidateQuery]:
    """Return the candidates without those of the same query that are less likely."""
    kept: dict[Query, RankedQuery] = {}
    for candidate in candidates:
        ranked = _rank_candidate(candidate, links)
        other = kept.get(candidate.query)
        if other is None or ranked.likelihood > other.likelihood:
            kept[candidate.query] = ranked
    return [ranked.candidate for ranked in kept.values()]


def _preference(ranked: RankedQuery) -> tuple[float, int, int]:
    known = ranked.candidate.query.rows.known_class
    order = ("table", "type", "name").index(known.kind) if known else 3
    return -round(ranked.likelihood, 4), order, -(known.members if known else 0)


def _rank_candidate(candidate: CandidateQuery, links: QuestionLinks) -> RankedQuery:
    missing = sorted(links.content - candidate.span)
    likelihood = math.prod(candidate.scores) * UNACCOUNTED ** len(missing)
    words = tuple(links.words[at].text for at in missing)
    return RankedQuery(candidate, likelihood, words)


CONFIDENCE = (
    "first",
    "margin",
    "count",
    "prior",
    "missing",
    "names",
    "values",
    "properties",
    "words",
)
"""What the confidence in the best candidate rests on."""


def confidence_features(features: Features, scores: Sequence[float]) -> tuple[float, ...]:
    """Return what the confidence rests on: how the best candidate, of these features, is ranked
    among the scores of all, and which words it leaves without account."""
    ordered = sorted(scores, reverse=True)
    total = sum(math.exp(score - ordered[0]) for score in ordered)
    margin = ordered[0] - ordered[1] if len(ordered) > 1 else _WIDEST
    missing = {kind: features.get(f"missing:{kind}", 0.0) for kind in _KINDS}
    return (
        -math.log(total),
        min(margin, _WIDEST),
        math.log(len(ordered)),
        features.get("prior", 0.0),
        features.get("missing", 0.0),
        missing["name"] + missing["number"],
        missing["value"] + missing["bound"] + missing["extreme"],
        missing["property"],
        missing["word"],
    )


_WIDEST = 5.0
_KINDS = ("property", "value", "bound", "extreme", "number", "name", "word")
