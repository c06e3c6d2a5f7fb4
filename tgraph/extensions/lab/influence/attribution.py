"""From what was still said in each ablation to the weight of each item, and what noise may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

from tgraph.answer.model import VERIFY
from tgraph.answer.support import LexicalJudge
from tgraph.errors import ModelError
from tgraph.extensions.lab.influence.ablations import AblatedRun, Plan
from tgraph.extensions.lab.influence.values import SurrogateFit
from tgraph.models.base import no_sink

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[float64]"
StillSaid = tuple[bool, ...]
"""For each sentence of the answer whether it is still said."""
Outcomes = Mapping[AblatedRun, StillSaid | None]
"""What each run came to; None where its reply could not be used."""

HELD_OUT = 4
"""Every fourth sampled ablation is held out to test the surrogate."""
JUST_ABOVE = 1e-9


@dataclass(frozen=True, slots=True)
class Noise:
    """What runs with nothing removed came to: ``reproduced`` is the share of them that say each
    sentence again, ``worst`` the largest share of the answer that one of them lost below the
    mean. ``differing`` is the share of sentences in which equal runs of another sort differ."""

    reproduced: tuple[float, ...]
    worst: float
    differing: float = 0.0

    @property
    def loss(self) -> float:
        """The share of sentences that is lost with nothing removed."""
        return 1 - sum(self.reproduced) / len(self.reproduced)

    @property
    def chance(self) -> float:
        """The probability that a run loses a sentence for no reason; of two runs either may."""
        return max(self.loss, self.differing / 2)

    def losing(self, sentence: int) -> float:
        """The same for one sentence, of which it is what it has lost if that is more."""
        return max(1 - self.reproduced[sentence], self.chance)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights and floors, item by item: for each sentence, and of the whole answer.

    A row is None where no reply of its ablation could be used. ``noise`` is the floor that noise
    alone sets for the whole.
    """

    by_sentence: tuple[tuple[float, ...] | None, ...]
    floors: tuple[tuple[float, ...], ...]
    whole_floors: tuple[float, ...]
    noise: float
    fit: SurrogateFit | None = None

    def whole(self, item: int) -> float | None:
        row = self.by_sentence[item]
        return None if row is None else sum(row) / len(row)

    def above(self, item: int, sentence: int) -> bool:
        """Whether the sentence depends on the item by more than the floor."""
        row = self.by_sentence[item]
        return row is not None and row[sentence] > self.floors[item][sentence] + JUST_ABOVE

    def influential(self, item: int) -> bool:
        if (weight := self.whole(item)) is None:
            return False
        above = [self.above(item, sentence) for sentence in range(len(self.floors[item]))]
        return weight > self.whole_floors[item] + JUST_ABOVE or any(above)


def share(said: Sequence[bool]) -> float:
    return sum(said) / len(said)


def noise_of(plan: Plan, outcomes: Outcomes) -> Noise | None:
    """The noise; None where no run with nothing removed could be used."""
    rows = [said for a in plan.of("none") if (said := outcomes[a.run]) is not None]
    if not rows:
        return None
    reproduced = tuple(share(column) for column in zip(*rows, strict=True))
    mean = sum(reproduced) / len(reproduced)
    return Noise(reproduced, max(mean - share(row) for row in rows))


def differing(pairs: Sequence[tuple[StillSaid, StillSaid]]) -> float:
    """The share of sentences in which the two of a pair differ; 0 where there is no pair."""
    same = [one == other for pair in pairs for one, other in zip(*pair, strict=True)]
    return 1 - share(same) if same else 0.0


# --- leave-one-out ---


def left_out(plan: Plan, outcomes: Outcomes, noise: Noise) -> Weights:
    """What the answer loses without each item, over all runs without it."""
    sentences = range(len(noise.reproduced))
    tests = max(1, len(plan.of("one")) * len(sentences))
    rows: list[tuple[float, ...] | None] = []
    floors, whole_floors = [], []
    for ablation in plan.of("one"):
        found = runs_like(ablation.run, outcomes)
        columns = list(zip(*found, strict=True))
        rows.append(
            tuple(noise.reproduced[n] - share(columns[n]) for n in sentences) if found else None
        )
        floors.append(tuple(_floor(noise, n, len(found), tests) for n in sentences))
        whole_floors.append(_whole_floor(noise, len(found), tests))
    return Weights(tuple(rows), tuple(floors), tuple(whole_floors), _whole_floor(noise, 1, tests))


def runs_like(run: AblatedRun, outcomes: Outcomes) -> list[StillSaid]:
    """What was said in the run and in its repetitions."""
    return [
        said
        for other, said in outcomes.items()
        if said is not None and other.kept == run.kept and other.alone == run.alone
    ]


def _floor(noise: Noise, sentence: int, runs: int, tests: int) -> float:
    chance = by_chance(runs, noise.losing(sentence), tests)
    return max(0.0, chance - (1 - noise.reproduced[sentence]))


def _whole_floor(noise: Noise, runs: int, tests: int) -> float:
    chance = by_chance(runs * len(noise.reproduced), noise.chance, tests) - noise.loss
    return max(0.0, chance, noise.worst if runs == 1 else 0.0)


# --- sampled ---


def sampled(plan: Plan, outcomes: Outcomes, noise: Noise, guesses: Guesses) -> Weights:
    """A sparse linear surrogate for each sentence; the whole answer's is their mean.

    ``ModelError`` where too few replies could be used.
    """
    import numpy as np

    rows = [(a.run, found) for a in plan.of("sampled") if (found := outcomes[a.run]) is not None]
    if len(rows) < HELD_OUT:
        problem = "Too few of the replies could be used to tell anything."
        raise ModelError(problem, "Try again, or use a larger model.")
    masks = np.array([[float(n in run.kept) for n in range(guesses.count)] for run, _ in rows])
    said = np.array([row for _, row in rows], dtype=float).reshape(len(rows), -1)
    held = np.arange(len(rows)) % HELD_OUT == HELD_OUT - 1
    known, intercepts = _surrogates(masks[~held], said[~held])
    guess = masks[held] @ known.T + intercepts
    wrong = np.sqrt(((said[held] - guess) ** 2).mean(axis=0))
    wrong_of_all = float(np.sqrt(((said[held] - guess).mean(axis=1) ** 2).mean()))
    weights, _ = _surrogates(masks, said)
    sentences = range(said.shape[1])
    count, tests = len(rows), guesses.count * said.shape[1]
    spreads = [_spread(noise.losing(n)) for n in sentences]
    floors = tuple(
        weight_by_chance(max(spreads[n], float(wrong[n])), count, tests) for n in sentences
    )
    noise_alone = weight_by_chance(_spread(noise.chance) / sqrt(len(sentences)), count, tests)
    error = weight_by_chance(wrong_of_all, count, tests)
    fit = SurrogateFit(
        trained=int((~held).sum()),
        held_out=int(held.sum()),
        lds=spearman(guess.mean(axis=1), said[held].mean(axis=1)),
        by_citations=spearman(masks[held] @ guesses.cited, said[held].mean(axis=1)),
        by_score=spearman(masks[held] @ guesses.scores, said[held].mean(axis=1)),
        error=error,
    )
    return Weights(
        tuple(tuple(map(float, weights[:, n])) for n in range(guesses.count)),
        (floors,) * guesses.count,
        (max(noise_alone, error),) * guesses.count,
        noise_alone,
        fit,
    )


@dataclass(frozen=True, slots=True)
class Guesses:
    """What else could tell which items matter: 1 for each that is cited, and retrieval scores."""

    cited: Matrix
    scores: Matrix

    @classmethod
    def of(cls, cited: frozenset[int], scores: Sequence[float]) -> Guesses:
        import numpy as np

        return cls(np.array([float(n in cited) for n in range(len(scores))]), np.array(scores))

    @property
    def count(self) -> int:
        return len(self.cited)


def _surrogates(masks: Matrix, said: Matrix) -> tuple[Matrix, Matrix]:
    """For each sentence the weights (sentences by items) and the intercept."""
    import numpy as np

    fitted = [lasso(masks, column) for column in said.T]
    return np.array([w for w, _ in fitted]), np.array([b for _, b in fitted])


def _spread(probability: float) -> float:
    return sqrt(probability * (1 - probability))


# --- the surrogate ---

ALPHA = 0.01
"""The weight of the LASSO's penalty, ContextCite's default."""
CHANCE = 0.05
"""The probability with which noise may pass for influence anywhere in one analysis."""
_ROUNDS = 1_000
_STILL = 1e-7


def lasso(masks: Matrix, outcomes: Matrix, alpha: float = ALPHA) -> tuple[Matrix, float]:
    """The weights and the intercept that minimise ``|y - Xw - b|^2 / 2N + alpha |w|_1``.

    ``masks`` is N by n, ``outcomes`` has N values. By coordinate descent (Friedman, Hastie and
    Tibshirani 2010, section 2.1), until no weight moves by more than 1e-7.
    """
    import numpy as np

    count, width = masks.shape
    centre, mean = masks.mean(axis=0), float(outcomes.mean())
    columns = masks - centre
    sizes = (columns**2).sum(axis=0) / count
    weights, rest = np.zeros(width), outcomes - mean
    for _ in range(_ROUNDS):
        moved = 0.0
        for n in np.flatnonzero(sizes):
            old = weights[n]
            pull = columns[:, n] @ rest / count + sizes[n] * old
            new = np.sign(pull) * max(abs(pull) - alpha, 0.0) / sizes[n]
            if new != old:
                rest -= columns[:, n] * (new - old)
                weights[n] = new
                moved = max(moved, abs(new - old))
        if moved < _STILL:
            break
    return weights, mean - float(centre @ weights)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The rank correlation (-1 to 1), ties having the mean of their ranks; None where one of the
    two doesn't vary."""
    import numpy as np

    one, other = _ranks(first), _ranks(second)
    if len(one) < 2 or not one.std() or not other.std():
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> Matrix:
    import numpy as np

    _, place, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Matrix = (ends - (counts - 1) / 2)[place]
    return ranks


def by_chance(trials: int, probability: float, tests: int) -> float:
    """The share of ``trials`` that losing each with that probability exceeds by chance only, where
    ``tests`` are made: a quantile of the binomial distribution, with Bonferroni's correction."""
    if probability <= 0 or trials <= 0:
        return 0.0
    if probability >= 1:
        return 1.0
    beyond = 1.0
    for losses in range(trials + 1):
        ways = comb(trials, losses)
        beyond -= ways * probability**losses * (1 - probability) ** (trials - losses)
        if beyond <= CHANCE / tests:
            return losses / trials
    return 1.0


def weight_by_chance(spread: float, count: int, tests: int) -> float:
    """What a weight over ``count`` masks exceeds by chance only, where outcomes are off by a
    standard deviation of ``spread``: masks of one half give the weight four times its variance."""
    if spread <= 0 or count <= 0:
        return 0.0
    return NormalDist().inv_cdf(1 - CHANCE / tests) * 2 * spread / sqrt(count)


class ClaimOverlap:
    """Tells which sentences of one answer another answer still says.

    A sentence is still said where a sentence of the other answer proves it by its words, as
    ``verify`` judges without a model (``LexicalJudge``).
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = [_plain(text) for text in sentences]
        self._judge = LexicalJudge()
        self._known: dict[tuple[int, str], bool] = {}

    @property
    def measure(self) -> str:
        return self._judge.agent.name

    def of(self, answer: Sequence[str]) -> tuple[bool, ...]:
        """For each sentence whether the answer says it."""
        places = [_plain(text) for text in answer]
        return tuple(
            any(self._proves(place, number) for place in places)
            for number in range(len(self._sentences))
        )

    def _proves(self, place: str, number: int) -> bool:
        key = number, place
        if key not in self._known:
            sentence = self._sentences[number]
            found = place == sentence or (self._judge.judge("", sentence, (place,), no_sink).full)
            self._known[key] = found
        return self._known[key]


def _plain(text: str) -> str:
    return " ".join(text.removesuffix(VERIFY).split())
