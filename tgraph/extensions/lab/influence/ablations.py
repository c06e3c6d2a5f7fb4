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
    """One writing of the answer from the items that are ``kept`` (places in the selection).

    ``repeat`` tells equal ones apart. ``alone`` is the writer without any documents.
    """

    kept: frozenset[int]
    repeat: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Ablation:
    """A run and what it is for; ``subject`` is the item or sentence left out, or else -1."""

    kind: Kind
    run: AblatedRun
    subject: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """The ablations in their order. At most ``later`` calls may follow from what these show, and
    no more than ``budget`` in all."""

    method: Means
    ablations: tuple[Ablation, ...]
    later: int = 0
    budget: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[AblatedRun, ...]:
        """The distinct runs: ablations that come to the same share one."""
        return tuple(dict.fromkeys(ablation.run for ablation in self.ablations))

    def of(self, kind: Kind) -> list[Ablation]:
        return [ablation for ablation in self.ablations if ablation.kind == kind]

    def with_samples(self, halves: Sequence[Ablation]) -> Plan:
        """The plan with random halves in the place of leaving one out."""
        rest = [ablation for ablation in self.ablations if ablation.kind != "one"]
        return replace(self, method="sampled", ablations=(*rest, *halves))


def asks(run: AblatedRun) -> bool:
    """Whether a model is called for it: nobody is where there is nothing to write from."""
    return run.alone or bool(run.kept)


def plan(
    count: int,
    cited: Sequence[frozenset[int]],
    resting: Sequence[frozenset[int]],
    *,
    repeats: int = REPEATS,
    samples: int = SAMPLES,
    budget: int | None = None,
    is_sure: bool = False,
) -> Plan:
    """The ablations for ``count`` items, of which each sentence cites those in ``cited``; those in
    ``resting`` rest on the places that it cites.

    What is cited is tried as often as the whole selection, unless ``is_sure``: then equal runs
    come to the same. Within ``budget`` calls. ``UsageError`` where these are too few for anything
    to be told.
    """
    whole = frozenset(range(count))
    fixed = _fixed(whole, frozenset().union(*cited), repeats)
    groups = [
        Ablation("sentence", AblatedRun(whole - own), n) for n, own in enumerate(cited) if own
    ]
    groups += [
        Ablation("places", AblatedRun(whole - own), n) for n, own in enumerate(resting) if own
    ]
    left = None if budget is None else budget - calls_of(fixed)
    method, main = _main(whole, samples, left)
    kept = [*fixed, *main, *groups]
    notes: list[str] = []
    if budget is not None and groups and calls_of(kept) > budget:
        kept = [*fixed, *main]
        notes.append("The budget left no call to try each sentence by itself.")
    again = [] if is_sure else _again(fixed, repeats)
    if budget is None or calls_of([*kept, *again]) <= budget:
        kept += again
    else:
        notes.append("The budget left no call to try what is cited more than once.")
    later = 2 if method == "sampled" else 2 + len(main) + samples
    if budget is not None:
        later = min(later, budget - calls_of(kept))
    return Plan(method, tuple(kept), later, budget, tuple(notes))


def calls_of(ablations: Iterable[Ablation]) -> int:
    """The calls that distinct runs of these make."""
    return sum(map(asks, dict.fromkeys(ablation.run for ablation in ablations)))


def _fixed(whole: frozenset[int], cited: frozenset[int], repeats: int) -> list[Ablation]:
    return [
        *(Ablation("none", AblatedRun(whole, n)) for n in range(repeats)),
        Ablation("closed-book", AblatedRun(frozenset(), alone=True)),
        Ablation("cited-only", AblatedRun(cited)),
        Ablation("without-cited", AblatedRun(whole - cited)),
    ]


def _again(fixed: Sequence[Ablation], repeats: int) -> list[Ablation]:
    """The cited set once more, and the rest without it; what asks nobody always says the same."""
    sets = [a for a in fixed if a.kind in ("cited-only", "without-cited") and asks(a.run)]
    return [replace(a, run=replace(a.run, repeat=n)) for n in range(1, repeats) for a in sets]


def _main(whole: frozenset[int], samples: int, left: int | None) -> tuple[Means, list[Ablation]]:
    """Leave-one-out where the items and the calls that are left allow it, else samples."""
    one = [Ablation("one", AblatedRun(whole - {n}), n) for n in sorted(whole)]
    if len(whole) <= MOST_ONE_BY_ONE and (left is None or calls_of(one) <= left):
        return "leave-one-out", one
    allowed = samples if left is None else min(samples, left)
    if allowed < FEWEST_SAMPLES:
        least = FEWEST_SAMPLES - (left or 0)
        raise UsageError(
            f"Too few calls to tell anything of {len(whole)} items: "
            + (f"{least} more are needed." if left is not None else f"{FEWEST_SAMPLES} at least."),
            "Raise `budget` or `samples`.",
        )
    return "sampled", halves(sorted(whole), allowed)


def halves(items: Sequence[int], count: int) -> list[Ablation]:
    """Random subsets, the same for the same number; a subset that comes again is run again."""
    random = Random(SEED)  # noqa: S311
    seen: Counter[frozenset[int]] = Counter()
    found = []
    for _ in range(count):
        kept = frozenset(n for n in items if random.random() < KEPT)
        found.append(Ablation("sampled", AblatedRun(kept, seen[kept] if kept else 0)))
        seen[kept] += 1
    return found


def without_top(ranked: Sequence[int], whole: frozenset[int]) -> list[Ablation]:
    """The run without the most influential items, and one without as many random others."""
    top = frozenset(ranked[:MOST_TOP])
    others = sorted(whole - top)
    if not top or len(others) < len(top):
        return []
    random = frozenset(Random(SEED).sample(others, len(top)))  # noqa: S311
    return [
        Ablation("top", AblatedRun(whole - top)),
        Ablation("random", AblatedRun(whole - random)),
    ]
