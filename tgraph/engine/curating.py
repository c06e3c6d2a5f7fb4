"""What a user decides about names: splits, and splits taken back, as changes like any other.

The decision enters the source graph, knowledge is derived again from there, and both are published
as one batch. Design, sections 3.4 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyoxigraph import Quad

from tgraph.engine.clustering import cluster
from tgraph.engine.describing import describe
from tgraph.engine.embedding import embed
from tgraph.engine.indexing import Run, derive
from tgraph.engine.reporting import write_reports
from tgraph.errors import UsageError
from tgraph.explain.entities import Entities
from tgraph.index.knowledge import Touched
from tgraph.model import Agent
from tgraph.record.agents import SOFTWARE
from tgraph.record.splits import curation_quads, rejoin_quads, split_quads
from tgraph.store.base import Store

Decision = tuple[str, tuple[str, str], list[Quad]]
"""The split that it is about, the two entities, and what to write."""


class CurationRun(Run):
    """One decision. Copy, derivation, communities, vectors and commit are those of an index run."""

    kind = "curation"
    busy = "An index run is at work on this collection; waiting for it to finish."

    def split(self, name: str, other: str | None, reason: str, person: str | None) -> str:
        """The IRI of the new split. Raises ``UsageError``; then nothing changed."""

        def decide(store: Store, decided: datetime) -> Decision:
            pair = _pair_to_split(Entities(store), name, other)
            quads = split_quads(self.iri, pair, decided)
            return quads[0].subject.value, pair, quads  # type: ignore[union-attr]

        return self._decide("Split", reason, person, decide)

    def rejoin(self, name: str, other: str, reason: str, person: str | None) -> str:
        """The IRI of the split taken back. Raises ``UsageError``; then nothing changed."""

        def decide(store: Store, decided: datetime) -> Decision:
            entities = Entities(store)
            pair = entities.find(name), entities.find(other)
            split = entities.split_of(*pair)
            return split, pair, rejoin_quads(self.iri, split, decided)

        return self._decide("Rejoining", reason, person, decide)

    def _decide(
        self,
        label: str,
        reason: str,
        person: str | None,
        decide: Callable[[Store, datetime], Decision],
    ) -> str:
        if not reason.strip():
            raise UsageError("A decision needs a reason.", "Give it with --reason.")
        with self._workshop() as shop:
            started = shop.clock()
            split, pair, quads = decide(shop.copy.store, shop.clock())
            shop.copy.add(quads)
            derived = derive(shop, Touched(set(pair)), started)
            describe(shop, derived.undescribed)
            cluster(shop)
            write_reports(shop)
            embed(shop, self._ledger)
            agents = [SOFTWARE, *([Agent("person", person)] if person else [])]
            shop.copy.add(curation_quads(self.iri, label, reason, started, shop.clock(), agents))
            self._commit(shop)
            self._publish(shop)
        return split


def _pair_to_split(entities: Entities, name: str, other: str | None) -> tuple[str, str]:
    """The two entities of the texts, which must be one entity of knowledge."""
    first = entities.find(name)
    second = entities.find(other) if other is not None else entities.canonical(first)
    if first == second:
        raise UsageError(
            f"{entities.name(first)!r} was not merged into another name.",
            "Name the one to split from it too; `tgraph entities merges` lists what was merged.",
        )
    if entities.canonical(first) != entities.canonical(second):
        raise UsageError(
            f"{entities.name(first)!r} and {entities.name(second)!r} are not one entity.",
            "`tgraph entities merges` lists what was merged.",
        )
    return first, second
