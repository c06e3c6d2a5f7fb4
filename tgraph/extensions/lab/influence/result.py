"""From outcomes and weights to the influence analysis as it is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.extensions.lab.influence.ablations import Ablation, Kind
from tgraph.extensions.lab.influence.attribution import Noise, Outcomes, StillSaid, Weights, share
from tgraph.extensions.lab.influence.values import (
    AblationRun,
    CitedSet,
    Gap,
    Influence,
    ItemInfluence,
    Means,
    SentenceInfluence,
    SentenceWeight,
)

BARELY = 0.5
"""The share of the answer that runs with nothing removed must say again to tell much."""


def cited_by(trace: Trace) -> list[frozenset[int]]:
    """For each sentence the places in the selection of what it cites."""
    place = {item.iri: n for n, item in enumerate(trace.selected)}
    return [frozenset(place[s] for s in each.edge_selections) for each in trace.sentences]


@dataclass(frozen=True, slots=True)
class Findings:
    """What the runs came to: ``cited`` has for each sentence the places of what it cites."""

    trace: Trace
    method: Means
    noise: Noise
    weights: Weights
    ablations: Sequence[Ablation]
    outcomes: Outcomes
    cited: Sequence[frozenset[int]]

    @property
    def all_cited(self) -> frozenset[int]:
        return frozenset().union(*self.cited)

    def said(self, kind: Kind, subject: int = -1) -> StillSaid | None:
        """What the (first) ablation of the kind, for that sentence, still says."""
        alike = (a.run for a in self.ablations if a.kind == kind and a.subject == subject)
        run = next(alike, None)
        return None if run is None else self.outcomes[run]

    def shares(self, kind: Kind) -> list[float]:
        """The share of the answer that each run of the kind still says, of those that could be
        used."""
        runs = dict.fromkeys(a.run for a in self.ablations if a.kind == kind)
        return [share(said) for run in runs if (said := self.outcomes[run]) is not None]

    def kept(self, kind: Kind) -> float | None:
        """The share that they say on average."""
        shares = self.shares(kind)
        return sum(shares) / len(shares) if shares else None

    def lost(self, kind: Kind) -> float | None:
        """The share of the answer that they lose, on average, of what is said with nothing
        removed."""
        kept = self.kept(kind)
        return None if kept is None else max(0.0, 1 - self.noise.loss - kept)

    @property
    def cited_set(self) -> CitedSet:
        """What everything that is cited is worth."""
        if not self.all_cited:
            return CitedSet.of(None, None)
        shares = [self.shares("cited-only"), self.shares("without-cited")]
        spreads = [max(found) - min(found) for found in shares if len(found) > 1]
        return CitedSet.of(
            self.lost("without-cited"), self.kept("cited-only"), max(spreads, default=None)
        )


def made(
    found: Findings,
    *,
    writer: str,
    measure: str,
    analysis: str,
    usage: Mapping[str, int],
    dropped: Mapping[str, int],
    notes: tuple[str, ...],
) -> Influence:
    """The analysis as it is told and recorded."""
    trace, alone = found.trace, found.said("closed-book")
    return Influence(
        session=trace.explain_id,
        question=trace.question,
        mode=trace.mode,
        method=found.method,
        writer=writer,
        measure=measure,
        items=tuple(_item(found, n, item) for n, item in enumerate(trace.selected)),
        sentences=tuple(_sentence(found, n) for n in range(len(trace.sentences))),
        noise_floor=found.weights.noise,
        cited_set=found.cited_set,
        parametric=None if alone is None else share(alone),
        gap=_gap(found),
        fit=found.weights.fit,
        top=found.lost("top"),
        random=found.lost("random"),
        runs=_runs(found),
        analysis=analysis,
        usage=usage,
        dropped=dropped,
        notes=(*notes, *_notes(found)),
    )


def _item(found: Findings, number: int, item: TraceItem) -> ItemInfluence:
    weights = found.weights
    return ItemInfluence(
        selection=item.iri,
        item=item.item,
        kind=item.kind,
        label=item.words,
        cited=number in found.all_cited,
        weight=weights.whole(number),
        floor=weights.whole_floors[number],
        influential=weights.influential(number),
        by_sentence=weights.by_sentence[number],
    )


def _sentence(found: Findings, number: int) -> SentenceInfluence:
    sentence, items = found.trace.sentences[number], found.trace.selected
    above = [n for n in range(len(items)) if found.weights.above(n, number)]
    rows = [
        SentenceWeight(items[n].iri, items[n].words, row[number], cited=n in found.cited[number])
        for n in above
        if (row := found.weights.by_sentence[n]) is not None
    ]
    still = [
        found.said("sentence", number),
        found.said("places", number),
        found.said("closed-book"),
    ]
    without = [None if said is None else said[number] for said in still]
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


def _gap(found: Findings) -> Gap:
    items = found.trace.selected
    cited = found.all_cited
    known = [n for n in range(len(items)) if found.weights.by_sentence[n] is not None]
    moving = {n for n in known if found.weights.influential(n)}
    idle = [n for n in known if n in cited and n not in moving]
    hidden = sorted(moving - cited)
    first = len(idle) / len(cited) if cited else 0.0
    second = len(hidden) / len(moving) if moving else 0.0
    return Gap(
        tuple(items[n].iri for n in idle), tuple(items[n].iri for n in hidden), first + second
    )


def _runs(found: Findings) -> tuple[AblationRun, ...]:
    width = len(found.trace.selected)
    kinds: dict[object, list[str]] = {}
    for ablation in found.ablations:
        kinds.setdefault(ablation.run, []).append(ablation.kind)
    return tuple(
        AblationRun(
            tuple(dict.fromkeys(kinds[run])),
            bits([n in run.kept for n in range(width)]),
            run.repeat,
            None if said is None else bits(said),
        )
        for run, said in sorted(found.outcomes.items(), key=lambda each: list(kinds).index(each[0]))
    )


def bits(values: Sequence[bool]) -> str:
    """A 1 for each that is true, a 0 for each that is not."""
    return "".join("01"[value] for value in values)


def _notes(found: Findings) -> list[str]:
    if (said := 1 - found.noise.loss) >= BARELY:
        return []
    return [
        f"With nothing removed only {said:.0%} of the answer was said again: its dependence can't"
        " be told well."
    ]
