"""How well `tgraph influence` finds what an answer depends on, and what it takes noise for.

A simulated writer says four sentences each of which needs one of the selected items (one of them
cites another item) and a fifth that needs none. It forgets, with a probability, each sentence by
itself or the whole answer at once.

    python -m benchmarks.influence [ANALYSES]
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean

from tgraph.engine.progress import ignore_progress
from tgraph.explain.trace.values import Trace, TraceItem, TraceSentence
from tgraph.extensions.lab.influence.ablations import AblatedRun, plan_ablations
from tgraph.extensions.lab.influence.regeneration import Regenerator
from tgraph.extensions.lab.influence.result import cited_by
from tgraph.extensions.lab.influence.run import InfluenceAnalysis, InfluenceRun
from tgraph.model import Agent
from tgraph.models.base import CallSink
from tgraph.record.assessments import InfluenceRecord
from tgraph.vocabulary import edge_selection_iri, session_iri, session_part_iri

NAMES = ("Aster", "Boreal", "Cobalt", "Dover", "Ember")
UUID = "00000000-0000-4000-8000-000000000001"


class Planted(Regenerator):
    """The simulated writer; ``needs`` has for each sentence the item without which it is not said,
    None where there is none."""

    def __init__(
        self, needs: Sequence[int | None], forgets: float, *, at_once: bool, random: Random
    ) -> None:
        self._needs = needs
        self._forgets = forgets
        self._at_once = at_once
        self._random = random

    @property
    def agent(self) -> Agent:
        return Agent("model", "simulated")

    @property
    def is_sure(self) -> bool:
        return False

    def prepare(self, runs: Sequence[AblatedRun]) -> None:
        pass

    def write(self, run: AblatedRun, sink: CallSink) -> list[str]:
        gone = self._at_once and self._random.random() < self._forgets
        if run.alone or gone:
            return []
        return [
            sentence(name)
            for name, needed in zip(NAMES, self._needs, strict=True)
            if (needed is None or needed in run.kept)
            and (self._at_once or self._random.random() >= self._forgets)
        ]


def sentence(name: str) -> str:
    return f"Of all of them {name} was chosen."


@dataclass(frozen=True)
class Found:
    """One analysis beside what was planted."""

    false: int
    right: float
    runs: int


def analysed(count: int, forgets: float, *, at_once: bool, seed: int) -> Found:
    """An analysis of ``count`` items."""
    random = Random(seed)
    needs: list[int | None] = [*random.sample(range(count), len(NAMES) - 1), None]
    trace = traced(count, needs, random)
    writer = Planted(needs, forgets, at_once=at_once, random=random)
    cited = cited_by(trace)
    plan = plan_ablations(count, cited, cited)
    with tempfile.TemporaryDirectory() as folder:
        record = InfluenceRecord(Path(folder), UUID, lambda: datetime.now(UTC))
        analysis = InfluenceAnalysis(trace, writer, plan)
        run = InfluenceRun(analysis, record, ignore_progress)
        found = run.run("explainability")
    planted = {edge_selection_iri(UUID, n) for n in needs if n is not None}
    shown = {item.selection for item in found.ranked_items}
    return Found(len(shown - planted), len(shown & planted) / len(planted), len(found.runs))


def traced(count: int, needs: Sequence[int | None], random: Random) -> Trace:
    """A session; its first sentence cites an item that it does not need."""
    items = tuple(
        TraceItem(
            edge_selection_iri(UUID, n), "edge", f"urn:trustgraph:edge:{n}", f"item {n}",
            random.random(), "", n + 1, 0, 0,
        )
        for n in range(count)
    )  # fmt: skip
    wrong = next(n for n in range(count) if n not in needs)
    cites = [wrong, *(wrong if n is None else n for n in needs[1:])]
    sentences = tuple(
        TraceSentence(
            session_part_iri("sentence", UUID, n), sentence(name), (items[cites[n]].iri,), ()
        )
        for n, name in enumerate(NAMES)
    )
    return Trace(
        explain_id=session_iri(UUID), explain_collection="explainability", question="?",
        mode="graph", status="completed", error="", started="", ended="", generation=1,
        parameters={}, usage={}, concepts=(), matches=(), edge_count=count, item_count=0,
        answer="", sentences=sentences, selected=items, rejected=(), steps=(), calls=(),
    )  # fmt: skip


def line(count: int, forgets: float, many: int, *, at_once: bool) -> str:
    found = [analysed(count, forgets, at_once=at_once, seed=seed) for seed in range(many)]
    cells = (
        str(count),
        f"{forgets:.0%} of the {'answers' if at_once else 'sentences'}",
        f"{fmean(each.right for each in found):.2f}",
        f"{fmean(each.false > 0 for each in found):.2f}",
        f"{fmean(each.runs for each in found):.0f}",
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    head = (
        "items",
        "the writer forgets",
        "planted found",
        "analyses with a false item",
        "runs",
    )
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for count, at_once, forgets in product((8, 15, 30, 60), (False, True), (0.0, 0.05, 0.1, 0.2)):
        if forgets or not at_once:
            print(line(count, forgets, many, at_once=at_once), flush=True)


if __name__ == "__main__":
    main()
