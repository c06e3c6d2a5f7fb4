"""Fits the weights of ``tgraph/data/weights.toml`` that rank and judge sentences to questions.

    python tools/train_ranking.py dump GRAPH QUESTIONS OUT       # what the questions find, as JSON
    python tools/train_ranking.py rank OUT...                    # the weights [sentence]
    python tools/train_ranking.py read OUT...                    # the weights [reading]
    python tools/train_ranking.py judge OUT...                   # the weights [answerable]
    python tools/train_ranking.py short OUT...                   # the weights [short_answer]
    python tools/train_ranking.py refuse OUT...                  # what is refused
    python tools/train_ranking.py calibration OUT...             # of both probabilities, by file

GRAPH is a folder that ``tgraph index`` made, QUESTIONS a file of JSON lines with ``q`` (the
question), ``doc`` (the file that answers it) and ``answers`` (strings, none where the documents
don't answer). The ranking is fitted as a softmax over the sentences of each question (a conditional
logit), the reading as a logistic regression over the sentences that were read, the confidence and
the short answer as one over the questions, each file counting the same, and in it those with an
answer as much as those without (a short answer is right that shares half of its words with one of
``answers``, by F1, or stands in a long one); what is read must be of documents that the reader
wasn't trained on. The expected calibration error (Guo et al. 2017, arXiv:1706.04599) is over five
bins, and beside it stands the mean error of a probability that holds exactly, on as many questions.
``tools/calibration`` has questions of ours: of mdBook's guide (``guide/src`` of rust-lang/mdBook)
and pages of Caddy (``src/docs/markdown`` of caddyserver/website), each file called by its path with
hyphens, and of the first twelve chapters of "Love Among the Chickens" as Standard Ebooks has it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tgraph
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.model import Evidence, Retrieval
from tgraph.models.base import no_sink
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.search import graph
from tgraph.retrieve.text import (
    judging,
    reading,
    sentence_ranking,
    sentence_readings,
    short_answers,
)

Matrix = NDArray[np.float64]
MOST = 60
STEPS, RATE, SHRINK = 3000, 0.03, 1e-3


def dump(folder: str, questions: Path, out: Path) -> None:
    """For each question its sentences with their features, and whether they hold an answer."""
    seen: dict[str, Any] = {}

    def watch_ranking(*given: Any, **named: Any) -> Any:
        seen["ranked"] = found = ranking(*given, **named)
        seen["passages"] = {passage.place: passage for passage in given[0]}
        return found

    def watch_reading(*given: Any) -> Any:
        seen["read"] = found = readings(*given)
        return found

    def watch_judging(*given: Any) -> Any:
        seen["judged"] = found = judged(*given)
        return found

    def watch_short(*given: Any) -> Any:
        seen["short"] = {"answer": given[1][0].answer, "features": (found := short_(*given))}
        return found

    ranking, sentence_ranking.features_of = sentence_ranking.features_of, watch_ranking
    readings, reading.readings_of = reading.readings_of, watch_reading
    judged, judging.answerable_features = judging.answerable_features, watch_judging
    short_, judging.short_answer_features = judging.short_answer_features, watch_short
    with tgraph.open(folder) as kg, out.open("w", encoding="utf-8") as file:
        context = kg.opened.context()
        for item in _questions([questions]):
            seen.clear()
            found = _retrieved(item["q"], context)
            sentences = list(_sentences(item, seen, found))
            told = {"judged": seen.get("judged"), "short": seen.get("short")}
            row = {**item, "sentences": sentences, **told}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def _retrieved(text: str, context: Context) -> Retrieval:
    own = context.for_question(no_sink)
    concepts = EmbeddedConcepts().find(Question(text), own, no_sink)
    question = Question(text, (), concepts)
    found = graph.GraphRetriever().retrieve(question, own)
    if own.reader is not None:
        reading.read_candidates(question, found, own.reader, own)
    return found


def _sentences(item: Any, seen: Any, found: Retrieval) -> Iterator[dict[str, Any]]:
    ranked = sorted(seen["ranked"].items(), key=lambda pair: -pair[1].score)[:MOST]
    for place, features in ranked:
        evidence: Evidence = seen["passages"][place].evidence
        read = seen.get("read", {}).get(place)
        yield {
            "features": list(features),
            "reading": list(read.features) if read else None,
            "right": _holds(evidence, item),
            "quote": evidence.quote,
            "answer": read.answer if read else "",
        }


def _holds(evidence: Evidence, item: Any) -> bool:
    quote = f" {_plain(evidence.quote)} "
    same = Path(evidence.path).name == item["doc"]
    return same and any(f" {_plain(answer)} " in quote for answer in item["answers"])


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def rank(files: Sequence[Path]) -> None:
    """Prints the weights of the ranking, scaled so that those above 0 sum to 1."""
    groups = _groups(files, "features")
    weights = _ranked(groups)
    weights /= weights[weights > 0].sum()
    _print(sentence_ranking.SentenceFeatures._fields, weights)
    _report(groups, weights)


def read(files: Sequence[Path]) -> None:
    """Prints the weights by which what was read becomes a probability: those that rank best, made a
    probability by one scale and one bias (Platt 1999)."""
    groups = _groups(files, "reading")
    weights = _ranked(groups)
    sentences = [s for q in _questions(files) for s in q["sentences"] if s["reading"]]
    logits = np.array([[1.0, np.dot(weights, s["reading"])] for s in sentences])
    bias, scale = _logistic(logits, np.array([s["right"] for s in sentences]))
    _print(("bias", *sentence_readings.Features._fields), np.array([bias, *(scale * weights)]))
    _report(groups, weights)


def _groups(files: Sequence[Path], features: str) -> list[tuple[Matrix, Matrix]]:
    """For each question the features of its sentences, and which of them hold an answer."""
    found = []
    for question in _questions(files):
        own = [s for s in question["sentences"] if s[features]]
        right = np.array([s["right"] for s in own])
        if right.any() and not right.all():
            found.append((np.array([s[features] for s in own]), right))
    return found


def _ranked(groups: Sequence[tuple[Matrix, Matrix]]) -> Matrix:
    """The weights of a softmax over the sentences of each question."""
    spread = np.concatenate([x for x, _ in groups]).std(axis=0) + 1e-9

    def slope(w: Matrix) -> Matrix:
        total = SHRINK * w
        for x, y in groups:
            scores = x / spread @ w
            shares = np.exp(scores - scores.max())
            right = shares * y
            total += (shares / shares.sum() - right / right.sum()) @ (x / spread) / len(groups)
        return total

    return _descend(slope, len(spread)) / spread


def _report(groups: Sequence[tuple[Matrix, Matrix]], weights: Matrix) -> None:
    for most in (1, 2, 4):
        first = [y[np.argsort(-(x @ weights), kind="stable")[:most]].any() for x, y in groups]
        print(f"# an answer among the first {most}: {np.mean(first):.1%} of {len(groups)}")


def judge(files: Sequence[Path]) -> None:
    """Prints the weights by which features become the confidence that there is an answer, and what
    of the unanswerable would be refused, in the mean over the files."""
    rows = [_judged_rows(file) for file in files]
    weights = _fitted(rows, [each.answerable for each in rows])
    _print(("bias", *judging.AnswerableFeatures._fields), weights)
    sure = [(_share(each.x @ weights), each.answerable > 0) for each in rows]
    for least in np.arange(0.15, 0.5, 0.05):
        shares = [((p[y] < least).mean(), (p[~y] < least).mean()) for p, y in sure]
        lost, refused = np.mean(shares, axis=0)
        print(f"# below {least:.2f}: {lost:.0%} of the answerable, {refused:.0%} of the others")


def short(files: Sequence[Path]) -> None:
    """Prints the weights by which features become the probability that a short answer is right."""
    rows = [_short_rows(file) for file in files]
    weights = _fitted(rows, [each.right for each in rows])
    _print(("bias", *short_answers.ShortAnswerFeatures._fields), weights)


def calibration(files: Sequence[Path]) -> None:
    """Prints for each file how well both probabilities hold, by the weights that ship: their errors
    and a diagram, in which a bar is the share of right ones and ``|`` stands at the mean
    probability."""
    for file in files:
        for name, rows, right, weights in (
            ("documents answer", own := _judged_rows(file), own.answerable, judging.WEIGHTS),
            ("short answer right", own := _short_rows(file), own.right, short_answers.WEIGHTS),
        ):
            sure = _share(rows.x @ np.array(weights))
            bins = _bins(sure, right, rows.shares)
            error, chance = _error(bins), _chance_error(sure, rows.shares)
            print(f"{file.stem}, {name}: error {error:.3f} (by chance alone {chance:.3f})")
            for each in bins:
                print(_bar(each))


class Rows(NamedTuple):
    """Questions of a file: their features, what each counts, whether it has an answer, and whether
    the short answer is right."""

    x: Matrix
    shares: Matrix
    answerable: Matrix
    right: Matrix


class Bin(NamedTuple):
    """Questions of like probability: how many, their share, mean probability and share of right."""

    least: float
    questions: int
    share: float
    probability: float
    right: float


def _judged_rows(file: Path) -> Rows:
    return _rows([(q, q["judged"]) for q in _questions([file]) if q["judged"]])


def _short_rows(file: Path) -> Rows:
    return _rows([(q, q["short"]["features"]) for q in _questions([file]) if q["short"]])


def _rows(told: Sequence[tuple[Any, Sequence[float]]]) -> Rows:
    answerable = np.array([bool(q["answers"]) for q, _ in told], dtype=float)
    right = [bool(q["short"]) and _is_any(q["short"]["answer"], q["answers"]) for q, _ in told]
    halves = np.where(answerable, 1 / answerable.sum(), 1 / (1 - answerable).sum()) / 2
    features = np.array([[1.0, *each] for _, each in told])
    return Rows(features, halves, answerable, np.array(right, dtype=float))


def _fitted(rows: Sequence[Rows], y: Sequence[Matrix]) -> Matrix:
    shares = np.concatenate([each.shares for each in rows])
    return _logistic(
        np.concatenate([each.x for each in rows]), np.concatenate(y), shares / shares.mean()
    )


def _bins(sure: Matrix, right: Matrix, shares: Matrix) -> list[Bin]:
    fifths = np.minimum((sure * 5).astype(int), 4)
    bins = []
    for fifth in np.unique(fifths):
        own = fifths == fifth
        means = (np.average(values[own], weights=shares[own]) for values in (sure, right))
        bins.append(Bin(fifth / 5, int(own.sum()), shares[own].sum(), *means))
    return bins


def _error(bins: Sequence[Bin]) -> float:
    return sum(each.share * abs(each.probability - each.right) for each in bins)


def _chance_error(sure: Matrix, shares: Matrix) -> float:
    """The mean error of a probability that holds exactly."""
    chance = np.random.default_rng(0)
    draws = (chance.random(len(sure)) < sure for _ in range(200))
    return float(np.mean([_error(_bins(sure, drawn.astype(float), shares)) for drawn in draws]))


def _bar(each: Bin) -> str:
    line = list(("#" * round(40 * each.right)).ljust(41, "."))
    line[round(40 * each.probability)] = "|"
    told = f"{each.questions:4} of mean {each.probability:.2f}, right {each.right:.2f}"
    return f"  {each.least:.1f}-{each.least + 0.2:.1f} {''.join(line)} {told}"


def _is_any(answer: str, answers: Sequence[str]) -> bool:
    return any(_is_right(answer, gold) for gold in answers)


def _is_right(answer: str, gold: str) -> bool:
    """Whether an answer shares half of its words with the gold answer, or stands in a gold answer
    of four words or more, as the words of a passage that answer often are."""
    words = _plain(gold)
    stands = len(words.split()) >= 4 and f" {_plain(answer)} " in f" {words} "
    return stands or _f1(answer, gold) >= 0.5


def _f1(answer: str, gold: str) -> float:
    """The words that two answers share, as SQuAD counts them."""
    own, other = (
        Counter(re.sub(r"\b(?:a|an|the)\b", " ", _plain(t)).split()) for t in (answer, gold)
    )
    same = (own & other).total()
    return 2 * same / (own.total() + other.total()) if same else 0.0


def refuse(files: Sequence[Path]) -> None:
    """Prints for each file what share of its answerable and of its unanswerable questions each of
    some thresholds refuses, by the weights that ship."""
    thresholds = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
    for file in files:
        rows = _judged_rows(file)
        sure, y = _share(rows.x @ np.array(judging.WEIGHTS)), rows.answerable > 0
        told = (f"{t}: {(sure[y] < t).mean():.0%}, {(sure[~y] < t).mean():.0%}" for t in thresholds)
        print(f"{file.stem} ({y.sum()} of {len(y)} answerable): {'; '.join(told)}")


def _share(logit: Any) -> Any:
    return 1 / (1 + np.exp(-logit))


def _logistic(x: Matrix, y: Matrix, shares: Matrix | float = 1.0) -> Matrix:
    """A logistic regression; the first column is the bias, ``shares`` what each row counts."""
    spread = x.std(axis=0) + 1e-9
    spread[0] = 1

    def slope(w: Matrix) -> Matrix:
        off = (_share(x / spread @ w) - y) * shares
        found: Matrix = off @ (x / spread) / len(y) + SHRINK * w
        return found

    return _descend(slope, x.shape[1]) / spread


def _questions(files: Sequence[Path]) -> list[Any]:
    texts = (file.read_text("utf-8") for file in files)
    return [json.loads(line) for text in texts for line in text.split("\n") if line]


def _descend(slope: Callable[[Matrix], Matrix], size: int) -> Matrix:
    """Adam (Kingma and Ba 2015, arXiv:1412.6980) over all examples."""
    w, mean, square = np.zeros(size), np.zeros(size), np.zeros(size)
    for step in range(1, STEPS + 1):
        d = slope(w)
        mean, square = 0.9 * mean + 0.1 * d, 0.999 * square + 0.001 * d * d
        w -= RATE * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return w


def _print(names: Sequence[str], weights: Matrix) -> None:
    for name, weight in zip(names, weights, strict=True):
        print(f"{name} = {weight:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("dump")
    one.add_argument("graph")
    one.add_argument("questions", type=Path)
    one.add_argument("out", type=Path)
    one.set_defaults(run=lambda a: dump(a.graph, a.questions, a.out))
    runs = {
        "rank": rank,
        "read": read,
        "judge": judge,
        "short": short,
        "refuse": refuse,
        "calibration": calibration,
    }
    for name, run in runs.items():
        one = commands.add_parser(name)
        one.add_argument("out", type=Path, nargs="+")
        one.set_defaults(run=lambda a, run=run: run(a.out))
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
