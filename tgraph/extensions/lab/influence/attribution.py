"""Item weights: sentences lost without each item, with noise bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

from tgraph.answer.model import VERIFY
from tgraph.answer.support import LexicalJudge
from tgraph.extensions.lab.influence.ablations import AblatedRun, Plan
from tgraph.models.base import no_sink

StillSaid = tuple[bool, ...]
"""For each sentence of the answer whether it is still said."""
Outcomes = Mapping[AblatedRun, StillSaid | None]
"""What each run came to; None where its reply could not be used."""

CHANCE = 0.05
"""The probability with which noise may pass for influence anywhere in one analysis."""
JUST_ABOVE = 1e-9


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise in unmodified runs: ``reproduced`` is the share of runs repeating each sentence,
    ``worst`` the largest answer share lost by a run below the mean, ``runs`` the number
    of usable runs."""

    reproduced: tuple[float, ...]
    worst: float
    runs: int

    @property
    def loss(self) -> float:
        """Share of sentences lost in unmodified runs."""
        return 1 - sum(self.reproduced) / len(self.reproduced)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights and floors by item, per sentence and for the complete answer.

    A row is None if all replies of its ablation were unusable. ``noise`` is the floor of the items
    left out most often."""

    by_sentence: tuple[tuple[float, ...] | None, ...]
    floors: tuple[tuple[float, ...], ...]
    whole_floors: tuple[float, ...]

    @property
    def noise(self) -> float:
        return min(self.whole_floors, default=0.0)

    def compute_mean_weight(self, item: int) -> float | None:
        row = self.by_sentence[item]
        return None if row is None else sum(row) / len(row)

    def exceeds_noise(self, item: int, sentence: int) -> bool:
        """Tell whether a sentence depends on an item above the noise floor."""
        row = self.by_sentence[item]
        return row is not None and row[sentence] > self.floors[item][sentence] + JUST_ABOVE

    def influential(self, item: int) -> bool:
        if (weight := self.compute_mean_weight(item)) is None:
            return False
        above = [self.exceeds_noise(item, sentence) for sentence in range(len(self.floors[item]))]
        return weight > self.whole_floors[item] + JUST_ABOVE or any(above)


def true_share(said: Sequence[bool]) -> float:
    return sum(said) / len(said)


def noise_of(plan: Plan, outcomes: Outcomes) -> Noise | None:
    """Return noise of unmodified runs, or None without usable runs."""
    rows = [
        outcome for a in plan.list_ablations("none") if (outcome := outcomes[a.run]) is not None
    ]
    if not rows:
        return None
    reproduced = tuple(true_share(column) for column in zip(*rows, strict=True))
    mean = sum(reproduced) / len(reproduced)
    return Noise(reproduced, max(mean - true_share(row) for row in rows), len(rows))


def weigh_items(plan: Plan, outcomes: Outcomes, noise: Noise, *, is_stable: bool) -> Weights:
    """Return item weights: answer losses without each item, over all runs without the item.

    Noise may lose a sentence without an item as often as the sentence is lost in all other runs,
    unmodified or without another item. Nothing is noise if ``is_stable``, when equal runs had equal
    results."""
    sentences = range(len(noise.reproduced))
    item_runs = [runs_like(ablation.run, outcomes) for ablation in plan.list_ablations("one")]
    losses = [_loss_shares(runs) for runs in item_runs]
    tests = max(1, len(item_runs) * len(sentences))
    rows: list[tuple[float, ...] | None] = []
    floors, whole_floors = [], []
    for item, runs in enumerate(item_runs):
        other_losses = [row for other, row in enumerate(losses) if row and other != item]
        chances = [
            0.0 if is_stable else _loss_chance(noise, [row[n] for row in other_losses], n)
            for n in sentences
        ]
        lost = losses[item]
        rows.append(lost and tuple(noise.reproduced[n] - (1 - lost[n]) for n in sentences))
        floors.append(
            tuple(_sentence_floor(noise, n, len(runs), chances[n], tests) for n in sentences)
        )
        whole = by_chance(len(runs), max(chances), tests) - noise.loss
        whole_floors.append(max(0.0, whole, noise.worst if len(runs) == 1 else 0.0))
    return Weights(tuple(rows), tuple(floors), tuple(whole_floors))


def _loss_shares(runs: Sequence[StillSaid]) -> tuple[float, ...] | None:
    """Return the share of runs without each sentence, or None without runs."""
    return tuple(1 - true_share(column) for column in zip(*runs, strict=True)) if runs else None


def _loss_chance(noise: Noise, other_losses: Sequence[float], sentence: int) -> float:
    unmodified = (1 - noise.reproduced[sentence]) * noise.runs
    return (unmodified + sum(other_losses)) / (noise.runs + len(other_losses))


def runs_like(run: AblatedRun, outcomes: Outcomes) -> list[StillSaid]:
    """Return outcomes of a run and its repetitions."""
    return [
        outcome
        for candidate, outcome in outcomes.items()
        if outcome is not None and candidate.kept == run.kept and candidate.alone == run.alone
    ]


def _sentence_floor(noise: Noise, sentence: int, runs: int, chance: float, tests: int) -> float:
    return max(0.0, by_chance(runs, chance, tests) - (1 - noise.reproduced[sentence]))


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

    def flag_repeated(self, answer: Sequence[str]) -> tuple[bool, ...]:
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
                self._judge.judge("", sentence, (place,), no_sink).is_proven
            )
            self._known[key] = is_proven
        return self._known[key]


def _normalise_text(text: str) -> str:
    return " ".join(text.removesuffix(VERIFY).split())
