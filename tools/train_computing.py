"""Fits the weights of ``tgraph/data/computing_weights.toml`` that rank the queries a question may
mean, on the training questions of WikiTableQuestions.

    python tools/train_computing.py dump WTQ CACHE OUT [--tables N] [--seed S]
    python tools/train_computing.py fit DUMP

WTQ is a clone of the set's repository, CACHE a folder for the graphs of its tables (which are made
where they are missing), OUT a file of features and of which candidates are right. A question
teaches by its values alone: all candidates that give them count as right, and the ranking, a
softmax over the candidates, is fitted to the probability of the right ones together. Beside each
question stand two that the table doesn't answer: its name or column exchanged for one of another
table. The probability that the best candidate is right is a logistic regression on how the
candidates are ranked, fitted to folds that the ranking wasn't fitted to.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.computing_data import (
    TableQuestion,
    is_right,
    open_table,
    read_questions,
    values_of,
)
from tgraph.compute.computation import plan_query
from tgraph.compute.evaluation import read_result
from tgraph.compute.features import features_of, question_cues, result_features
from tgraph.compute.printing import print_query
from tgraph.compute.ranking import (
    MOST_EVALUATED,
    ScoredCandidate,
    confidence_features,
    weigh_features,
)
from tgraph.compute.results import result_terms
from tgraph.errors import QueryError
from tgraph.retrieve.base import Context

Matrix = NDArray[np.float64]
LEAST_COUNT = 8
"""The questions that a feature has to be of."""

STEPS, RATE, SHRINK = 400, 0.05, 4e-4
FOLDS = 4
LEAST_TOLD, CALM = 30, 3e-3
"""The choices that a feature of the confidence has to be of, and how much its weights shrink."""

_SURE = 1.01
"""A likelihood that no strict reading has, so that all are weighed."""

_OF_RESULTS = ("results:", "answer_given")


def dump(folder: Path, cache: Path, out: Path, tables: int, seed: int) -> None:
    """Writes for each question its candidates with their features, and which are right."""
    questions = read_questions(folder, "training")
    names = sorted({question.table for question in questions})
    random.Random(seed).shuffle(names)
    kept = set(names[:tables])
    by_table = {name: [q for q in questions if q.table == name] for name in names[:tables]}
    replacements = _replacements([q for q in questions if q.table in kept])
    with out.open("w", encoding="utf-8") as file:
        for table, asked in by_table.items():
            with open_table(folder, table, cache) as graph:
                context = graph.opened.context()
                for question in asked:
                    for row in _rows(question, context, replacements):
                        file.write(json.dumps(row) + "\n")


def _replacements(questions: Sequence[TableQuestion]) -> dict[str, list[str]]:
    """Words of other questions, by their first letter's kind: digits or letters."""
    words = Counter(w for q in questions for w in q.text.split() if len(w) > 3)
    rare = sorted(word.strip("?.,\"'") for word, count in words.items() if count <= 3)
    return {"words": [word for word in rare if word.isalpha()]}


def _rows(
    question: TableQuestion, context: Context, replacements: dict[str, list[str]]
) -> Iterator[dict[str, Any]]:
    plan = plan_query(question.text, context, _SURE)
    cues = question_cues(plan.links)
    candidates = []
    for ranked in plan.ranked:
        query = ranked.candidate.query
        try:
            bindings = read_result(context.store, print_query(query))
        except QueryError:
            continue
        values = values_of(query, bindings, context)
        features = {
            **features_of(ranked.candidate, plan.links, cues),
            **dict(result_features(query, result_terms(query, bindings), cues)),
        }
        candidates.append(
            [features, is_right(question, values), zlib.crc32("|".join(sorted(values)).encode())]
        )
    yield {"id": question.id, "table": question.table, "candidates": candidates}
    changed = _exchange(question, plan.links, replacements["words"])
    if changed:
        plan = plan_query(changed, context, _SURE)
        cues = question_cues(plan.links)
        own = []
        for ranked in plan.ranked:
            query = ranked.candidate.query
            bindings = read_result(context.store, print_query(query))
            features = {
                **features_of(ranked.candidate, plan.links, cues),
                **dict(result_features(query, result_terms(query, bindings), cues)),
            }
            terms = result_terms(query, bindings)
            own.append([features, False, zlib.crc32("|".join(sorted(map(str, terms))).encode())])
        yield {"id": f"{question.id}-miss", "table": question.table, "candidates": own}


def _exchange(question: TableQuestion, links: Any, words: Sequence[str]) -> str:
    """Return the question with words that name a value, else a column, exchanged for another's."""
    named = [*links.values, *links.parts] or [p for p in links.properties if p.score > 0.9]
    if not named:
        return ""
    chance = random.Random(zlib.crc32(question.id.encode()))
    span = chance.choice(sorted(named, key=lambda link: sorted(link.span))).span
    texts = [word.text for word in links.words]
    other = chance.choice(words)
    other = other.capitalize() if chance.random() < 0.5 else other
    texts[min(span) : max(span) + 1] = [other]
    return " ".join(texts)


# --- fitting ----------------------------------------------------------------------------------


def fit(path: Path) -> None:
    """Prints the weights."""
    questions = [json.loads(line) for line in path.open(encoding="utf-8")]
    own = [q for q in questions if not q["id"].endswith("-miss")]
    names = _names(own)
    chosen = [one for fold in range(FOLDS) for one in _choose_in_fold(questions, names, fold)]
    counts = Counter(name for one in chosen for name in one.features)
    told = sorted(name for name, count in counts.items() if count >= LEAST_TOLD)
    _report(chosen, told, len(own))
    print("\n# What the confidence that the first candidate is right rests on.\n[confidence]")
    for name, weight in zip(("bias", *told), _fit_confidence(chosen, told), strict=True):
        print(f'"{name}" = {weight:.4f}')
    print("\n# What a candidate is ranked by.\n[candidates]")
    for name, weight in zip(names, _fit_ranking(_groups(own, names), len(names)), strict=True):
        if abs(weight) >= 0.02:
            print(f'"{name}" = {weight:.3f}')


@dataclass(frozen=True, slots=True)
class Chosen:
    """The best candidate of a question, by weights that were fitted to other tables."""

    features: Mapping[str, float]
    right: bool
    is_miss: bool
    fold: int


def _choose_in_fold(questions: Sequence[Any], names: Sequence[str], fold: int) -> Iterator[Chosen]:
    others = [q for q in questions if _fold_of(q) != fold and not q["id"].endswith("-miss")]
    weights = _fit_ranking(_groups(others, names), len(names))
    for question in questions:
        if _fold_of(question) == fold and question["candidates"]:
            features, right = _choose(question, names, weights)
            yield Chosen(features, right, question["id"].endswith("-miss"), fold)


def _fold_of(question: Any) -> int:
    return zlib.crc32(question["table"].encode()) % FOLDS


def _matrix(chosen: Sequence[Chosen], names: Sequence[str]) -> Matrix:
    return np.array([[1.0, *(one.features.get(n, 0.0) for n in names)] for one in chosen])


def _fit_confidence(chosen: Sequence[Chosen], names: Sequence[str]) -> Matrix:
    right = np.array([one.right for one in chosen], dtype=float)
    return _logistic(_matrix(chosen, names), right)


def _names(questions: Sequence[Any]) -> list[str]:
    counts: Counter[str] = Counter()
    for question in questions:
        counts.update({name for features, _, _ in question["candidates"] for name in features})
    return sorted(name for name, count in counts.items() if count >= LEAST_COUNT)


@dataclass(frozen=True, slots=True)
class Groups:
    """Candidates of questions that have right and wrong ones: their features as triples of row,
    column and value, the question of each, and which are right."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Matrix
    owners: NDArray[np.int64]
    right: Matrix
    questions: int


def _groups(questions: Sequence[Any], names: Sequence[str]) -> Groups:
    at = {name: number for number, name in enumerate(names)}
    triples: list[tuple[int, int, float]] = []
    owners: list[int] = []
    right: list[float] = []
    count = 0
    for question in questions:
        marks = [mark for _, mark, _ in question["candidates"]]
        if not any(marks) or all(marks):
            continue
        for features, mark, _ in question["candidates"]:
            triples += [(len(owners), at[n], v) for n, v in features.items() if n in at]
            owners.append(count)
            right.append(float(mark))
        count += 1
    rows, columns, values = zip(*triples, strict=True)
    return Groups(
        np.array(rows),
        np.array(columns),
        np.array(values),
        np.array(owners),
        np.array(right),
        count,
    )


def _fit_ranking(groups: Groups, size: int) -> Matrix:
    """A softmax over the candidates of each question, all right ones together."""
    owners, count = groups.owners, groups.questions
    w, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, STEPS + 1):
        scores = np.bincount(groups.rows, groups.values * w[groups.columns], len(owners))
        most = np.full(count, -np.inf)
        np.maximum.at(most, owners, scores)
        shares = np.exp(scores - most[owners])
        wanted = shares * groups.right
        all_, of_right = np.bincount(owners, shares), np.bincount(owners, wanted)
        slope = shares / all_[owners] - wanted / of_right[owners]
        moved = np.bincount(groups.columns, groups.values * slope[groups.rows], size)
        d = moved / count + SHRINK * w
        mean, square = 0.9 * mean + 0.1 * d, 0.999 * square + 0.001 * d * d
        w -= RATE * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return w


def _choose(
    question: Any, names: Sequence[str], weights: Matrix
) -> tuple[Mapping[str, float], bool]:
    """The features of the confidence in the best candidate, and whether it is right, ranked as
    questions are: the results of the best alone count."""
    by_name = dict(zip(names, weights, strict=True))
    scored = []
    for features, right, key in question["candidates"]:
        of_result = {n: v for n, v in features.items() if n.startswith(_OF_RESULTS)}
        others = {n: v for n, v in features.items() if n not in of_result}
        score = weigh_features(others, by_name)
        scored.append((score, weigh_features(of_result, by_name), features, right, key))
    scored.sort(key=lambda one: -one[0])
    first = [
        (ScoredCandidate(features, score + more, key), right)
        for score, more, features, right, key in scored[:MOST_EVALUATED]
    ]
    first.sort(key=lambda one: -one[0].score)
    rest = [
        ScoredCandidate(features, score) for score, _, features, _, _ in scored[MOST_EVALUATED:]
    ]
    return confidence_features([*(one for one, _ in first), *rest]), bool(first[0][1])


def _logistic(x: Matrix, y: Matrix) -> Matrix:
    spread = x.std(axis=0) + 1e-9
    spread[0] = 1
    w, mean, square = np.zeros(x.shape[1]), np.zeros(x.shape[1]), np.zeros(x.shape[1])
    for step in range(1, 801):
        off = 1 / (1 + np.exp(-(x / spread @ w))) - y
        d = off @ (x / spread) / len(y) + CALM * w
        mean, square = 0.9 * mean + 0.1 * d, 0.999 * square + 0.001 * d * d
        w -= 0.03 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    weights: Matrix = w / spread
    return weights


def _report(chosen: Sequence[Chosen], names: Sequence[str], asked: int) -> None:
    """Prints how often the choice is right, and how well the confidence, fitted to other folds,
    tells it."""
    found = sum(one.right for one in chosen)
    print(f"# right by folds: {found} of {asked}, {found / asked:.1%}")
    sure = np.zeros(len(chosen))
    folds = np.array([one.fold for one in chosen])
    x = _matrix(chosen, names)
    for fold in range(FOLDS):
        weights = _fit_confidence([one for one in chosen if one.fold != fold], names)
        sure[folds == fold] = 1 / (1 + np.exp(-(x[folds == fold] @ weights)))
    is_miss = np.array([one.is_miss for one in chosen])
    right = np.array([one.right for one in chosen])[~is_miss]
    own = sure[~is_miss]
    order = np.argsort(-own, kind="stable")
    for share in (0.1, 0.25, 0.5, 0.75):
        most = order[: int(asked * share)]
        print(
            f"# of the surest {share:.0%}: {right[most].mean():.1%} right, from {own[most[-1]]:.2f}"
        )
    for low in np.arange(0, 1, 0.2):
        at = (own >= low) & (own < low + 0.2)
        if at.any():
            mean, rate = own[at].mean(), right[at].mean()
            print(f"# {low:.1f}: {at.sum()} of mean {mean:.2f}, right {rate:.2f}")
    print(f"# near misses at least 0.5: {(sure[is_miss] >= 0.5).mean():.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("dump")
    for name in ("wtq", "cache", "out"):
        one.add_argument(name, type=Path)
    one.add_argument("--tables", type=int, default=240)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(run=lambda a: dump(a.wtq, a.cache, a.out, a.tables, a.seed))
    one = commands.add_parser("fit")
    one.add_argument("dump", type=Path)
    one.set_defaults(run=lambda a: fit(a.dump))
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
