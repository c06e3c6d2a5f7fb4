"""Which ablations an influence analysis makes.

Leave-one-out where the selection is small and the writer says the same each time; otherwise random
subsets, each item kept with probability one half, as ContextCite has it (Cohen-Wang and others,
2409.00729, section 4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal as Choice

from tgraph.errors import UsageError
from tgraph.extensions.lab.influence import REPEATS, SAMPLES
from tgraph.extensions.lab.influence.values import Means

Kind = Choice[
    "none", "one", "sampled", "cited-only", "without-cited", "sentence", "places",
    "closed-book", "top", "random",
]  # fmt: skip

MOST_ONE_BY_ONE = 20
"""Items up to which each is left out in turn."""
FEWEST_SAMPLES = 12
"""Sampled ablations below which nothing can be told of more than a few items."""
KEPT = 0.5
"""The probability that a sampled ablation keeps an item."""
SEED = 0
MOST_TOP = 3
"""The most influential items that are removed together in the end."""


@dataclass(frozen=True, slots=True)
class AblatedRun:
    """An answer regeneration from ``kept`` items (selection positions).

    ``repeat`` distinguishes equal runs. ``alone`` uses the writer without documents."""

    kept: frozenset[int]
    repeat: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Ablation:
    """An ablation run with its purpose; ``subject`` identifies an omitted item or sentence
    (default -1)."""

    kind: Kind
    run: AblatedRun
    subject: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """An ablation plan in running order, with at most ``later`` follow-up calls and at most
    ``budget`` calls in total."""

    method: Means
    ablations: tuple[Ablation, ...]
    later: int = 0
    budget: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[AblatedRun, ...]:
        """Distinct runs: equal ablations share a run."""
        return tuple(dict.fromkeys(ablation.run for ablation in self.ablations))

    def of(self, kind: Kind) -> list[Ablation]:
        return [ablation for ablation in self.ablations if ablation.kind == kind]

    def with_samples(self, halves: Sequence[Ablation]) -> Plan:
        """Return the plan with random halves instead of leave-one-out ablations."""
        remaining = [ablation for ablation in self.ablations if ablation.kind != "one"]
        return replace(self, method="sampled", ablations=(*remaining, *halves))


def calls_model(run: AblatedRun) -> bool:
    """Tell whether a run calls a model: a run without items calls none."""
    return run.alone or bool(run.kept)


def plan_ablations(
    count: int,
    cited: Sequence[frozenset[int]],
    resting: Sequence[frozenset[int]],
    *,
    repeats: int = REPEATS,
    samples: int = SAMPLES,
    budget: int | None = None,
    is_sure: bool = False,
) -> Plan:
    """Return ablations for ``count`` items; ``cited`` lists cited items per sentence,
    ``resting`` lists items sharing cited positions.

    Cited items are tried as often as the whole selection, unless ``is_sure``, when equal runs
    have equal results. Calls stay within ``budget``. Raise ``UsageError`` if the budget is too
    small for any conclusion."""
    all_items = frozenset(range(count))
    fixed = _fixed_ablations(all_items, frozenset().union(*cited), repeats)
    groups = [
        Ablation("sentence", AblatedRun(all_items - omitted), n)
        for n, omitted in enumerate(cited)
        if omitted
    ]
    groups += [
        Ablation("places", AblatedRun(all_items - omitted), n)
        for n, omitted in enumerate(resting)
        if omitted
    ]
    remaining_calls = None if budget is None else budget - calls_of(fixed)
    method, main = _choose_main(all_items, samples, remaining_calls)
    ablations = [*fixed, *main, *groups]
    notes: list[str] = []
    if budget is not None and groups and calls_of(ablations) > budget:
        ablations = [*fixed, *main]
        notes.append("The budget left no call to try each sentence by itself.")
    again = [] if is_sure else _repeat_fixed(fixed, repeats)
    if budget is None or calls_of([*ablations, *again]) <= budget:
        ablations += again
    else:
        notes.append("The budget left no call to try what is cited more than once.")
    later = 2 if method == "sampled" else 2 + len(main) + samples
    if budget is not None:
        later = min(later, budget - calls_of(ablations))
    return Plan(method, tuple(ablations), later, budget, tuple(notes))


def calls_of(ablations: Iterable[Ablation]) -> int:
    """Return the number of model calls in distinct runs of these ablations."""
    return sum(map(calls_model, dict.fromkeys(ablation.run for ablation in ablations)))


def _fixed_ablations(whole: frozenset[int], cited: frozenset[int], repeats: int) -> list[Ablation]:
    return [
        *(Ablation("none", AblatedRun(whole, n)) for n in range(repeats)),
        Ablation("closed-book", AblatedRun(frozenset(), alone=True)),
        Ablation("cited-only", AblatedRun(cited)),
        Ablation("without-cited", AblatedRun(whole - cited)),
    ]


def _repeat_fixed(fixed: Sequence[Ablation], repeats: int) -> list[Ablation]:
    """Return repeated cited-only and without-cited ablations, restricted to runs calling a
    model; other runs always repeat their result."""
    sets = [a for a in fixed if a.kind in ("cited-only", "without-cited") and calls_model(a.run)]
    return [replace(a, run=replace(a.run, repeat=n)) for n in range(1, repeats) for a in sets]


def _choose_main(
    whole: frozenset[int], samples: int, left: int | None
) -> tuple[Means, list[Ablation]]:
    """Return leave-one-out ablations if item count and remaining calls allow, otherwise sampled
    ablations."""
    ablations = [Ablation("one", AblatedRun(whole - {n}), n) for n in sorted(whole)]
    if len(whole) <= MOST_ONE_BY_ONE and (left is None or calls_of(ablations) <= left):
        return "leave-one-out", ablations
    allowed = samples if left is None else min(samples, left)
    if allowed < FEWEST_SAMPLES:
        least = FEWEST_SAMPLES - (left or 0)
        raise UsageError(
            f"Too few calls to tell anything of {len(whole)} items: "
            + (f"{least} more are needed." if left is not None else f"{FEWEST_SAMPLES} at least."),
            "Raise `budget` or `samples`.",
        )
    return "sampled", sample_halves(sorted(whole), allowed)


def sample_halves(items: Sequence[int], count: int) -> list[Ablation]:
    """Return random subset ablations, reproducible for equal counts; a repeated subset becomes
    a repeated run."""
    random = Random(SEED)  # noqa: S311
    subset_counts: Counter[frozenset[int]] = Counter()
    ablations = []
    for _ in range(count):
        subset = frozenset(n for n in items if random.random() < KEPT)
        ablations.append(
            Ablation("sampled", AblatedRun(subset, subset_counts[subset] if subset else 0))
        )
        subset_counts[subset] += 1
    return ablations


def without_top(ranked: Sequence[int], whole: frozenset[int]) -> list[Ablation]:
    """Return two ablations: most influential items removed, equally many random items removed."""
    top = frozenset(ranked[:MOST_TOP])
    candidates = sorted(whole - top)
    if not top or len(candidates) < len(top):
        return []
    random = frozenset(Random(SEED).sample(candidates, len(top)))  # noqa: S311
    return [
        Ablation("top", AblatedRun(whole - top)),
        Ablation("random", AblatedRun(whole - random)),
    ]
