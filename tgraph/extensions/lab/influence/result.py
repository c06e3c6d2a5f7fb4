"""Influence results built from ablation outcomes and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.extensions.lab.influence.ablations import Ablation, Kind
from tgraph.extensions.lab.influence.attribution import (
    Noise,
    Outcomes,
    StillSaid,
    Weights,
    true_share,
)
from tgraph.extensions.lab.influence.values import (
    AblationRun,
    CitedSet,
    Gap,
    Influence,
    ItemInfluence,
    SentenceInfluence,
    SentenceWeight,
)

BARELY = 0.5
"""The share of the answer that runs with nothing removed must say again to tell much."""


def cited_by(trace: Trace) -> list[frozenset[int]]:
    """Return selection positions of cited items, per sentence."""
    place = {item.iri: n for n, item in enumerate(trace.selected)}
    return [frozenset(place[s] for s in sentence.edge_selections) for sentence in trace.sentences]


@dataclass(frozen=True, slots=True)
class Findings:
    """Ablation results; ``cited`` holds selection positions cited by each sentence."""

    trace: Trace
    noise: Noise
    weights: Weights
    ablations: Sequence[Ablation]
    outcomes: Outcomes
    cited: Sequence[frozenset[int]]

    @property
    def all_cited(self) -> frozenset[int]:
        return frozenset().union(*self.cited)

    def find_outcome(self, kind: Kind, subject: int = -1) -> StillSaid | None:
        """Return an ablation outcome by kind and subject, taking the first match."""
        alike = (a.run for a in self.ablations if a.kind == kind and a.subject == subject)
        run = next(alike, None)
        return None if run is None else self.outcomes[run]

    def shares(self, kind: Kind) -> list[float]:
        """Return answer shares reproduced by usable runs of this kind."""
        runs = dict.fromkeys(a.run for a in self.ablations if a.kind == kind)
        return [true_share(outcome) for run in runs if (outcome := self.outcomes[run]) is not None]

    def compute_kept_share(self, kind: Kind) -> float | None:
        """Return the mean answer share reproduced by runs of this kind."""
        shares = self.shares(kind)
        return sum(shares) / len(shares) if shares else None

    def compute_lost_share(self, kind: Kind) -> float | None:
        """Return the mean answer share lost by runs of this kind, relative to unmodified runs."""
        mean_share = self.compute_kept_share(kind)
        return None if mean_share is None else max(0.0, 1 - self.noise.loss - mean_share)

    @property
    def cited_set(self) -> CitedSet:
        """Return measures of all cited items together."""
        if not self.all_cited:
            return CitedSet.from_shares(None, None)
        shares = [self.shares("cited-only"), self.shares("without-cited")]
        spreads = [
            max(kind_shares) - min(kind_shares) for kind_shares in shares if len(kind_shares) > 1
        ]
        return CitedSet.from_shares(
            self.compute_lost_share("without-cited"),
            self.compute_kept_share("cited-only"),
            max(spreads, default=None),
        )


def build_influence(
    found: Findings,
    *,
    writer: str,
    measure: str,
    analysis: str,
    usage: Mapping[str, int],
    dropped: Mapping[str, int],
    notes: tuple[str, ...],
) -> Influence:
    """Return the influence analysis for output and recording."""
    trace, alone = found.trace, found.find_outcome("closed-book")
    return Influence(
        session=trace.explain_id,
        question=trace.question,
        mode=trace.mode,
        method="leave-one-out",
        writer=writer,
        measure=measure,
        items=tuple(_item_influence(found, n, item) for n, item in enumerate(trace.selected)),
        sentences=tuple(_sentence_influence(found, n) for n in range(len(trace.sentences))),
        noise_floor=found.weights.noise,
        cited_set=found.cited_set,
        parametric=None if alone is None else true_share(alone),
        gap=_citation_gap(found),
        runs=_ablation_runs(found),
        analysis=analysis,
        usage=usage,
        dropped=dropped,
        notes=(*notes, *_reproduction_notes(found)),
    )


def _item_influence(found: Findings, number: int, item: TraceItem) -> ItemInfluence:
    weights = found.weights
    return ItemInfluence(
        selection=item.iri,
        item=item.item,
        kind=item.kind,
        label=item.words,
        cited=number in found.all_cited,
        weight=weights.compute_mean_weight(number),
        floor=weights.whole_floors[number],
        influential=weights.influential(number),
        by_sentence=weights.by_sentence[number],
    )


def _sentence_influence(found: Findings, number: int) -> SentenceInfluence:
    sentence, items = found.trace.sentences[number], found.trace.selected
    above = [n for n in range(len(items)) if found.weights.exceeds_noise(n, number)]
    rows = [
        SentenceWeight(items[n].iri, items[n].words, row[number], cited=n in found.cited[number])
        for n in above
        if (row := found.weights.by_sentence[n]) is not None
    ]
    still = [
        found.find_outcome("sentence", number),
        found.find_outcome("places", number),
        found.find_outcome("closed-book"),
    ]
    without = [None if outcome is None else outcome[number] for outcome in still]
    return SentenceInfluence(
        sentence=sentence.iri,
        text=sentence.text,
        reproduced=found.noise.reproduced[number],
        floor=max((floors[number] for floors in found.weights.floors), default=0.0),
        without_cited=without[0],
        without_places=without[1],
        without_anything=without[2],
        depends_on=tuple(sorted(rows, key=lambda row: -row.weight)),
    )


def _citation_gap(found: Findings) -> Gap:
    items = found.trace.selected
    cited = found.all_cited
    measured = [n for n in range(len(items)) if found.weights.by_sentence[n] is not None]
    moving = {n for n in measured if found.weights.influential(n)}
    idle = [n for n in measured if n in cited and n not in moving]
    hidden = sorted(moving - cited)
    first = len(idle) / len(cited) if cited else 0.0
    second = len(hidden) / len(moving) if moving else 0.0
    return Gap(
        tuple(items[n].iri for n in idle), tuple(items[n].iri for n in hidden), first + second
    )


def _ablation_runs(found: Findings) -> tuple[AblationRun, ...]:
    width = len(found.trace.selected)
    kinds: dict[object, list[str]] = {}
    for ablation in found.ablations:
        kinds.setdefault(ablation.run, []).append(ablation.kind)
    return tuple(
        AblationRun(
            tuple(dict.fromkeys(kinds[run])),
            encode_bits([n in run.kept for n in range(width)]),
            run.repeat,
            None if outcome is None else encode_bits(outcome),
        )
        for run, outcome in sorted(
            found.outcomes.items(), key=lambda each: list(kinds).index(each[0])
        )
    )


def encode_bits(values: Sequence[bool]) -> str:
    """Return a bit string: 1 for true values, 0 for false values."""
    return "".join("01"[value] for value in values)


def _reproduction_notes(found: Findings) -> list[str]:
    if (reproduced_share := 1 - found.noise.loss) >= BARELY:
        return []
    return [
        f"With nothing removed only {reproduced_share:.0%} of the answer was said again: its"
        " dependence can't"
        " be told well."
    ]
