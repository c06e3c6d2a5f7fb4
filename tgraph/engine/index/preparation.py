"""What only some modes need, built by the first question that does; every index run keeps it up to
date from then on."""

from __future__ import annotations

from tgraph.engine.index.chunk_context import update_contexts
from tgraph.engine.index.embeddings import embed
from tgraph.engine.index.run import Run, describe_run
from tgraph.retrieve.modes.base import Need


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build it and publish the graph with it; nothing where another process has done so."""
        with self._workshop() as shop:
            started = shop.begin(self.label)
            if need.what == "contexts":
                update_contexts(shop, wanted=True)
            if embed(shop, self._ledger, tree=need.what == "tree"):
                describe_run(shop, started, self.label)
                self._commit(shop)
            self._publish(shop)
