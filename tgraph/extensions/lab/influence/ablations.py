"""The ablations of an influence analysis: each selected item is left out in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tgraph.errors import UsageError
from tgraph.extensions.lab.influence import REPEATS

Kind = Literal["none", "one", "cited-only", "without-cited", "sentence", "places", "closed-book"]


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
    """An ablation plan in running order, with ``repeats`` runs of the complete selection, at most
    ``later`` follow-up calls and at most ``budget`` calls in total."""

    ablations: tuple[Ablation, ...]
    repeats: int = REPEATS
    later: int = 0
    budget: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> tuple[AblatedRun, ...]:
        """Distinct runs: equal ablations share a run."""
        return tuple(dict.fromkeys(ablation.run for ablation in self.ablations))

    def list_ablations(self, kind: Kind) -> list[Ablation]:
        return [ablation for ablation in self.ablations if ablation.kind == kind]


def calls_model(run: AblatedRun) -> bool:
    """Tell whether a run calls a model: a run without items calls none."""
    return run.alone or bool(run.kept)


def plan_ablations(
    count: int,
    cited: Sequence[frozenset[int]],
    resting: Sequence[frozenset[int]],
    *,
    repeats: int = REPEATS,
    budget: int | None = None,
    is_sure: bool = False,
) -> Plan:
    """Return ablations for ``count`` items; ``cited`` lists cited items per sentence,
    ``resting`` lists items sharing cited positions.

    Cited items are tried as often as the whole selection, unless ``is_sure``, when equal runs
    have equal results. Calls stay within ``budget``. Raise ``UsageError`` if the budget is too
    small to leave out each item."""
    all_items = frozenset(range(count))
    fixed = _fixed_ablations(all_items, frozenset().union(*cited), repeats)
    single = [Ablation("one", AblatedRun(all_items - {n}), n) for n in sorted(all_items)]
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
    least = calls_of([*fixed, *single])
    if budget is not None and budget < least:
        raise UsageError(
            f"Too few calls to leave out each of {count} items: {least - budget} more are needed.",
            f"Raise `budget` to {least}, or lower `repeats`.",
        )
    ablations = [*fixed, *single, *groups]
    notes: list[str] = []
    if budget is not None and groups and calls_of(ablations) > budget:
        ablations = [*fixed, *single]
        notes.append("The budget left no call to try each sentence by itself.")
    again = [] if is_sure else _repeat_fixed(fixed, repeats)
    if budget is None or calls_of([*ablations, *again]) <= budget:
        ablations += again
    else:
        notes.append("The budget left no call to try what is cited more than once.")
    later = (2 * repeats - 1) * calls_of(single)
    if budget is not None:
        later = min(later, budget - calls_of(ablations))
    return Plan(tuple(ablations), repeats, later, budget, tuple(notes))


def calls_of(ablations: Iterable[Ablation]) -> int:
    """Return the number of model calls in distinct runs of these ablations."""
    return sum(map(calls_model, dict.fromkeys(ablation.run for ablation in ablations)))


def repeat_ablations(ablations: Iterable[Ablation], repeat: int) -> list[Ablation]:
    """Return the ablations that call a model, as repetition ``repeat``; other runs always repeat
    their result."""
    return [replace(a, run=replace(a.run, repeat=repeat)) for a in ablations if calls_model(a.run)]


def _fixed_ablations(whole: frozenset[int], cited: frozenset[int], repeats: int) -> list[Ablation]:
    return [
        *(Ablation("none", AblatedRun(whole, n)) for n in range(repeats)),
        Ablation("closed-book", AblatedRun(frozenset(), alone=True)),
        Ablation("cited-only", AblatedRun(cited)),
        Ablation("without-cited", AblatedRun(whole - cited)),
    ]


def _repeat_fixed(fixed: Sequence[Ablation], repeats: int) -> list[Ablation]:
    """Return repetitions of cited-only and without-cited ablations."""
    sets = [a for a in fixed if a.kind in ("cited-only", "without-cited")]
    return [a for n in range(1, repeats) for a in repeat_ablations(sets, n)]
