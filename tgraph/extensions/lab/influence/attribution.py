"""Item weights computed from sentences repeated in each ablation, with noise bounds."""

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
    """Noise in unmodified runs: ``reproduced`` is the share of runs repeating each sentence,
    ``worst`` the largest answer share lost by a run below the mean.

    ``differing`` is the share of sentences that differ between equal runs of another kind."""

    reproduced: tuple[float, ...]
    worst: float
    differing: float = 0.0

    @property
    def loss(self) -> float:
        """Share of sentences lost in unmodified runs."""
        return 1 - sum(self.reproduced) / len(self.reproduced)

    @property
    def chance(self) -> float:
        """Probability of random sentence loss in a run; in a pair, either run may lose it."""
        return max(self.loss, self.differing / 2)

    def losing(self, sentence: int) -> float:
        """Return the random loss probability of a sentence: its own loss share if higher than
        the general one."""
        return max(1 - self.reproduced[sentence], self.chance)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights and floors by item, per sentence and for the complete answer.

    A row is None if all replies of its ablation were unusable. ``noise`` is the noise floor of
    the whole answer."""

    by_sentence: tuple[tuple[float, ...] | None, ...]
    floors: tuple[tuple[float, ...], ...]
    whole_floors: tuple[float, ...]
    noise: float
    fit: SurrogateFit | None = None

    def whole(self, item: int) -> float | None:
        row = self.by_sentence[item]
        return None if row is None else sum(row) / len(row)

    def above(self, item: int, sentence: int) -> bool:
        """Tell whether a sentence depends on an item above the noise floor."""
        row = self.by_sentence[item]
        return row is not None and row[sentence] > self.floors[item][sentence] + JUST_ABOVE

    def influential(self, item: int) -> bool:
        if (weight := self.whole(item)) is None:
            return False
        above = [self.above(item, sentence) for sentence in range(len(self.floors[item]))]
        return weight > self.whole_floors[item] + JUST_ABOVE or any(above)


def true_share(said: Sequence[bool]) -> float:
    return sum(said) / len(said)


def noise_of(plan: Plan, outcomes: Outcomes) -> Noise | None:
    """Return noise of unmodified runs, or None without usable runs."""
    rows = [outcome for a in plan.of("none") if (outcome := outcomes[a.run]) is not None]
    if not rows:
        return None
    reproduced = tuple(true_share(column) for column in zip(*rows, strict=True))
    mean = sum(reproduced) / len(reproduced)
    return Noise(reproduced, max(mean - true_share(row) for row in rows))


def differing_share(pairs: Sequence[tuple[StillSaid, StillSaid]]) -> float:
    """Return the share of sentences that differ within pairs; 0 without pairs."""
    same = [first == second for pair in pairs for first, second in zip(*pair, strict=True)]
    return 1 - true_share(same) if same else 0.0


# --- leave-one-out ---


def left_out(plan: Plan, outcomes: Outcomes, noise: Noise) -> Weights:
    """Return weights from leave-one-out runs: answer losses without each item, over all such
    runs."""
    sentences = range(len(noise.reproduced))
    tests = max(1, len(plan.of("one")) * len(sentences))
    rows: list[tuple[float, ...] | None] = []
    floors, whole_floors = [], []
    for ablation in plan.of("one"):
        outcome_rows = runs_like(ablation.run, outcomes)
        columns = list(zip(*outcome_rows, strict=True))
        rows.append(
            tuple(noise.reproduced[n] - true_share(columns[n]) for n in sentences)
            if outcome_rows
            else None
        )
        floors.append(tuple(_sentence_floor(noise, n, len(outcome_rows), tests) for n in sentences))
        whole_floors.append(_whole_floor(noise, len(outcome_rows), tests))
    return Weights(tuple(rows), tuple(floors), tuple(whole_floors), _whole_floor(noise, 1, tests))


def runs_like(run: AblatedRun, outcomes: Outcomes) -> list[StillSaid]:
    """Return outcomes of a run and its repetitions."""
    return [
        outcome
        for candidate, outcome in outcomes.items()
        if outcome is not None and candidate.kept == run.kept and candidate.alone == run.alone
    ]


def _sentence_floor(noise: Noise, sentence: int, runs: int, tests: int) -> float:
    chance = by_chance(runs, noise.losing(sentence), tests)
    return max(0.0, chance - (1 - noise.reproduced[sentence]))


def _whole_floor(noise: Noise, runs: int, tests: int) -> float:
    chance = by_chance(runs * len(noise.reproduced), noise.chance, tests) - noise.loss
    return max(0.0, chance, noise.worst if runs == 1 else 0.0)


# --- sampled ---


def fit_sampled_weights(plan: Plan, outcomes: Outcomes, noise: Noise, guesses: Guesses) -> Weights:
    """Return weights of sparse linear surrogates, per sentence; the answer's surrogate is their
    mean.

    Raise ``ModelError`` if too few replies are usable."""
    import numpy as np

    rows = [
        (a.run, outcome) for a in plan.of("sampled") if (outcome := outcomes[a.run]) is not None
    ]
    if len(rows) < HELD_OUT:
        problem = "Too few of the replies could be used to tell anything."
        raise ModelError(problem, "Try again, or use a larger model.")
    masks = np.array([[float(n in run.kept) for n in range(guesses.count)] for run, _ in rows])
    sentence_outcomes = np.array([row for _, row in rows], dtype=float).reshape(len(rows), -1)
    held_out = np.arange(len(rows)) % HELD_OUT == HELD_OUT - 1
    coefficients, intercepts = _fit_surrogates(masks[~held_out], sentence_outcomes[~held_out])
    guess = masks[held_out] @ coefficients.T + intercepts
    wrong = np.sqrt(((sentence_outcomes[held_out] - guess) ** 2).mean(axis=0))
    wrong_of_all = float(np.sqrt(((sentence_outcomes[held_out] - guess).mean(axis=1) ** 2).mean()))
    weights, _ = _fit_surrogates(masks, sentence_outcomes)
    sentences = range(sentence_outcomes.shape[1])
    count, tests = len(rows), guesses.count * sentence_outcomes.shape[1]
    spreads = [_binomial_deviation(noise.losing(n)) for n in sentences]
    floors = tuple(
        weight_by_chance(max(spreads[n], float(wrong[n])), count, tests) for n in sentences
    )
    noise_alone = weight_by_chance(
        _binomial_deviation(noise.chance) / sqrt(len(sentences)), count, tests
    )
    error = weight_by_chance(wrong_of_all, count, tests)
    fit = SurrogateFit(
        trained=int((~held_out).sum()),
        held_out=int(held_out.sum()),
        lds=rank_correlation(guess.mean(axis=1), sentence_outcomes[held_out].mean(axis=1)),
        by_citations=rank_correlation(
            masks[held_out] @ guesses.cited, sentence_outcomes[held_out].mean(axis=1)
        ),
        by_score=rank_correlation(
            masks[held_out] @ guesses.scores, sentence_outcomes[held_out].mean(axis=1)
        ),
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
    """Baseline guesses of important items: 1 for each cited item, and retrieval scores."""

    cited: Matrix
    scores: Matrix

    @classmethod
    def of(cls, cited: frozenset[int], scores: Sequence[float]) -> Guesses:
        import numpy as np

        return cls(np.array([float(n in cited) for n in range(len(scores))]), np.array(scores))

    @property
    def count(self) -> int:
        return len(self.cited)


def _fit_surrogates(masks: Matrix, said: Matrix) -> tuple[Matrix, Matrix]:
    """Return surrogate weights (sentences by items) and intercepts per sentence."""
    import numpy as np

    fitted = [fit_lasso(masks, column) for column in said.T]
    return np.array([w for w, _ in fitted]), np.array([b for _, b in fitted])


def _binomial_deviation(probability: float) -> float:
    return sqrt(probability * (1 - probability))


# --- the surrogate ---

ALPHA = 0.01
"""The weight of the LASSO's penalty, ContextCite's default."""
CHANCE = 0.05
"""The probability with which noise may pass for influence anywhere in one analysis."""
_ROUNDS = 1_000
_STILL = 1e-7


def fit_lasso(masks: Matrix, outcomes: Matrix, alpha: float = ALPHA) -> tuple[Matrix, float]:
    """The weights and the intercept that minimise ``|y - Xw - b|^2 / 2N + alpha |w|_1``.

    ``masks`` is N by n, ``outcomes`` has N values. By coordinate descent (Friedman, Hastie and
    Tibshirani 2010, section 2.1), until no weight moves by more than 1e-7.
    """
    import numpy as np

    count, width = masks.shape
    centre, mean = masks.mean(axis=0), float(outcomes.mean())
    columns = masks - centre
    sizes = (columns**2).sum(axis=0) / count
    weights, residuals = np.zeros(width), outcomes - mean
    for _ in range(_ROUNDS):
        moved = 0.0
        for n in np.flatnonzero(sizes):
            old = weights[n]
            pull = columns[:, n] @ residuals / count + sizes[n] * old
            new = np.sign(pull) * max(abs(pull) - alpha, 0.0) / sizes[n]
            if new != old:
                residuals -= columns[:, n] * (new - old)
                weights[n] = new
                moved = max(moved, abs(new - old))
        if moved < _STILL:
            break
    return weights, mean - float(centre @ weights)


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman rank correlation (-1 to 1), with mean ranks for ties; None if either
    sequence is constant."""
    import numpy as np

    first_ranks, second_ranks = _mean_ranks(first), _mean_ranks(second)
    if len(first_ranks) < 2 or not first_ranks.std() or not second_ranks.std():
        return None
    return float(np.corrcoef(first_ranks, second_ranks)[0, 1])


def _mean_ranks(values: Sequence[float]) -> Matrix:
    import numpy as np

    _, place, counts = np.unique(np.round(values, 9), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Matrix = (ends - (counts - 1) / 2)[place]
    return ranks


def by_chance(trials: int, probability: float, tests: int) -> float:
    """Return the share of ``trials`` lost by chance at most, given a loss probability and
    number of ``tests``: a binomial quantile with Bonferroni correction."""
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
    """Return the largest chance weight over ``count`` masks, for outcomes with standard
    deviation ``spread``: half masks give weights four times the variance."""
    if spread <= 0 or count <= 0:
        return 0.0
    return NormalDist().inv_cdf(1 - CHANCE / tests) * 2 * spread / sqrt(count)


class ClaimOverlap:
    """Overlap of answers: sentences of one answer repeated in another.

    A sentence is repeated if a sentence of the other answer proves it by its words, as
    ``verify`` judges without a model (``LexicalJudge``)."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = [_normalise_text(text) for text in sentences]
        self._judge = LexicalJudge()
        self._known: dict[tuple[int, str], bool] = {}

    @property
    def measure(self) -> str:
        return self._judge.agent.name

    def of(self, answer: Sequence[str]) -> tuple[bool, ...]:
        """Return flags for sentences repeated in the answer."""
        places = [_normalise_text(text) for text in answer]
        return tuple(
            any(self._proves_sentence(place, number) for place in places)
            for number in range(len(self._sentences))
        )

    def _proves_sentence(self, place: str, number: int) -> bool:
        key = number, place
        if key not in self._known:
            sentence = self._sentences[number]
            is_proven = place == sentence or (
                self._judge.judge("", sentence, (place,), no_sink).full
            )
            self._known[key] = is_proven
        return self._known[key]


def _normalise_text(text: str) -> str:
    return " ".join(text.removesuffix(VERIFY).split())
