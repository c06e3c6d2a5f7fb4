"""Ranking of candidate queries: how likely each is what a question means.

The weights were learnt from questions whose answers are known; which, and how well they do, is in
docs/reference/computing.md. A candidate that leaves words without account is less likely: a near
miss is no answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from tgraph.compute.algebra import (
    CompareGroups,
    Compares,
    ComparesTo,
    CompareTwo,
    Difference,
    Exists,
    Extreme,
    GroupRows,
    Query,
    RowShare,
)
from tgraph.compute.doubts import doubt_result, find_doubt
from tgraph.compute.features import Features, features_of, question_cues, result_features
from tgraph.compute.linking import QuestionLinks
from tgraph.compute.parts import CandidateQuery
from tgraph.model import Object
from tgraph.resources import load_tables

LEAST_LIKELIHOOD = 0.5
"""The likelihood below which a question has no answer by a query."""

LEAST_LEARNT = 0.7
"""The same for a reading that only learnt weights judge."""

LEAST_INCOMPLETE = 0.95
"""The same for a reading that leaves a word without account, which may be a near miss."""

UNACCOUNTED = 0.25
"""The factor of a strict reading's likelihood for each word that it doesn't account for."""

DOUBTED = 0.25
"""The factor of the likelihood of a reading that something speaks against."""

LEAST_RIVAL = 0.45
"""The confidence in another result from which a strict reading is doubted."""

UNLIKE = "what was learnt of questions chooses another result"

MOST_EVALUATED = 8
"""The best candidates that are evaluated, so that their results count in the ranking."""

_WIDEST = 5.0

FindTerms = Callable[[Query], Sequence[Object]]
"""The terms that a query's result answers with."""


@dataclass(frozen=True, slots=True)
class RankedQuery:
    """A candidate with its likelihood, the words that it leaves without account, and what speaks
    against it."""

    candidate: CandidateQuery
    likelihood: float
    unaccounted: tuple[str, ...] = ()
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """A candidate's features and score, and the key of its result where it was evaluated."""

    features: Features
    score: float
    key: Iterable[object] | None = None


def rank_candidates(
    candidates: Sequence[CandidateQuery], links: QuestionLinks, find_terms: FindTerms
) -> list[RankedQuery]:
    """Return the candidates, the likeliest first, closed classes before others.

    Of readings of tables the learnt weights decide, and how likely the first of them is; of others
    how sure their links are. A strict reading stands, unless the weights are sure of another
    result."""
    strict = rank_strictly([one for one in candidates if one.is_strict], links)
    strict = doubt_readings(strict, links, find_terms)
    of_tables = [candidate for candidate in candidates if is_of_table(candidate)]
    weighed = doubt_readings(_rank_by_weights(of_tables, links, find_terms), links, find_terms)
    if strict and weighed and is_rivalled(strict[0], weighed[0], find_terms):
        first = strict[0]
        strict[0] = replace(first, likelihood=first.likelihood * DOUBTED, doubt=UNLIKE)
    is_chosen = bool(strict) and strict[0].likelihood >= LEAST_LIKELIHOOD
    leading = strict[:1] if is_chosen else []
    of_other_rows = [one for one in strict if not is_of_table(one.candidate)]
    rest = [
        one for one in (*weighed, *of_other_rows) if not leading or not has_query(one, leading[0])
    ]
    return [*leading, *sorted(rest, key=lambda one: -one.likelihood)]


def has_query(one: RankedQuery, other: RankedQuery) -> bool:
    """Return whether two readings are of one query."""
    return one.candidate.query == other.candidate.query


def is_of_table(candidate: CandidateQuery) -> bool:
    """Return whether a candidate is of the rows of a table."""
    known_class = candidate.query.rows.known_class
    return known_class is not None and known_class.kind == "table"


def is_rivalled(strict: RankedQuery, learnt: RankedQuery, find_terms: FindTerms) -> bool:
    """Return whether the learnt weights are sure enough of another result than a strict reading
    has, of a form that they were learnt of."""
    query, other = strict.candidate.query, learnt.candidate.query
    if learnt.likelihood < LEAST_RIVAL or isinstance(
        query, Exists | RowShare | CompareGroups | CompareTwo | Difference
    ):
        return False
    if isinstance(query, Extreme) and query.shown and learnt.unaccounted:
        return False  # it leaves out what is asked beside the first place
    is_each_group = isinstance(query, GroupRows) and query.place is None
    is_bounded = any(
        isinstance(condition, Compares | ComparesTo) for condition in query.rows.conditions
    )
    if is_each_group or (is_bounded and other.rows.step):
        return False
    return set(find_terms(query)) != set(find_terms(other))


def keep_likeliest(
    candidates: Iterable[CandidateQuery], links: QuestionLinks
) -> list[CandidateQuery]:
    """Return the candidates without those of the same query that are less likely."""
    likeliest: dict[Query, tuple[tuple[bool, float, int], CandidateQuery]] = {}
    for candidate in candidates:
        likelihood = _rank_strict(candidate, links).likelihood
        key = (candidate.is_strict, likelihood, len(candidate.span))
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
        doubt = find_doubt(query, links) or doubt_result(query, find_terms(query), links)
        likelihood = round(reading.likelihood * (DOUBTED if doubt else 1.0), 6)
        judged.append(replace(reading, likelihood=likelihood, doubt=doubt))
    return sorted(
        (*judged, *ranked[MOST_EVALUATED:]), key=lambda reading: -round(reading.likelihood, 4)
    )


# --- strict readings --------------------------------------------------------------------------


def rank_strictly(candidates: Sequence[CandidateQuery], links: QuestionLinks) -> list[RankedQuery]:
    """Return the candidates by how sure their links are; several that are as likely as the best,
    of classes as closed, are each as likely as chance among them: the question doesn't say which
    it means."""
    ranked = [_rank_strict(candidate, links) for candidate in candidates]
    ranked.sort(key=lambda one: _preference(one.candidate, one.likelihood))
    if not ranked:
        return []
    keys = [_preference(one.candidate, one.likelihood)[:2] for one in ranked]
    rivals = [one for one, key in zip(ranked, keys, strict=True) if key == keys[0]]
    if len(rivals) == 1:
        return ranked
    shared = ranked[0].likelihood / len(rivals)
    return [replace(rival, likelihood=shared) for rival in rivals] + ranked[len(rivals) :]


def _rank_strict(candidate: CandidateQuery, links: QuestionLinks) -> RankedQuery:
    missing = len(links.content - candidate.span)
    return _ranked(candidate, math.prod(candidate.scores) * UNACCOUNTED**missing, links)


def _preference(candidate: CandidateQuery, score: float) -> tuple[float, int, int]:
    known_class = candidate.query.rows.known_class
    order = ("table", "type", "name").index(known_class.kind) if known_class else 3
    return -round(score, 4), order, -(known_class.members if known_class else 0)


# --- readings that leave words out ------------------------------------------------------------


def _rank_by_weights(
    candidates: Sequence[CandidateQuery], links: QuestionLinks, find_terms: FindTerms
) -> list[RankedQuery]:
    """Return the candidates by what was learnt; the likelihood of the first is the confidence that
    its result is what is asked for."""
    cues, weights = question_cues(links), candidate_weights()
    scored = [
        (candidate, ScoredCandidate(features, weigh_features(features, weights)))
        for candidate in candidates
        for features in (features_of(candidate, links, cues),)
    ]
    scored.sort(key=lambda pair: _preference(pair[0], pair[1].score))
    evaluated = [
        (candidate, _with_result(entry, candidate.query, find_terms(candidate.query), cues))
        for candidate, entry in scored[:MOST_EVALUATED]
    ]
    evaluated.sort(key=lambda pair: _preference(pair[0], pair[1].score))
    scored = evaluated + scored[MOST_EVALUATED:]
    if not scored:
        return []
    sure = confidence([entry for _, entry in scored])
    best = scored[0][1].score
    return [
        _ranked(candidate, sure * min(1.0, math.exp(entry.score - best)), links)
        for candidate, entry in scored
    ]


def _with_result(
    found: ScoredCandidate, query: Query, terms: Sequence[Object], cues: Sequence[str]
) -> ScoredCandidate:
    added = dict(result_features(query, terms, cues))
    score = found.score + weigh_features(added, candidate_weights())
    return ScoredCandidate({**found.features, **added}, score, frozenset(terms))


def _ranked(candidate: CandidateQuery, likelihood: float, links: QuestionLinks) -> RankedQuery:
    missing = sorted(links.content - candidate.span)
    words = tuple(links.words[at].text for at in missing)
    return RankedQuery(candidate, round(likelihood, 6), words)


# --- what was learnt --------------------------------------------------------------------------


def weigh_features(features: Features, weights: Mapping[str, float]) -> float:
    """Return the sum of the weighed features."""
    return sum(weights.get(name, 0.0) * value for name, value in features.items())


@cache
def candidate_weights() -> Mapping[str, float]:
    """Return the weights of the features of candidates."""
    weights: Mapping[str, float] = load_tables("computing_weights")["candidates"]
    return weights


def confidence(scored: Sequence[ScoredCandidate]) -> float:
    """Return the probability that the first of the candidates is right, the best ones first."""
    weights = load_tables("computing_weights")["confidence"]
    logit = weights["bias"] + weigh_features(confidence_features(scored), weights)
    return 1 / (1 + math.exp(-logit))


def confidence_features(scored: Sequence[ScoredCandidate]) -> Features:
    """Return what the confidence in the first candidate rests on: how it is ranked among those
    with other results, and its own features, such as the words it leaves without account."""
    first = scored[0]
    shares = [math.exp(one.score - first.score) for one in scored]
    alike = [one.key is not None and one.key == first.key for one in scored]
    own_share = sum(share for share, is_alike in zip(shares, alike, strict=True) if is_alike)
    rivals = [one.score for one, same in zip(scored[1:], alike[1:], strict=True) if not same]
    margin = first.score - max(rivals) if rivals else _WIDEST
    return {
        "ranked:share": math.log(max(own_share, 1.0) / sum(shares)),
        "ranked:margin": min(margin, _WIDEST),
        "ranked:count": math.log(len(scored)),
        "ranked:complete": float("missing" not in first.features or not first.features["missing"]),
        **{name: value for name, value in first.features.items() if "&" not in name},
    }
