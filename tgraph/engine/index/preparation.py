"""Index parts for particular modes: built by the first question that needs them, kept current
by every later index run."""

from __future__ import annotations

from tgraph.engine.index.chunk_context import update_contexts
from tgraph.engine.index.embeddings import embed_knowledge
from tgraph.engine.index.run import Run, describe_run
from tgraph.retrieve.modes.base import Need


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build missing index structures and publish the graph, unless another process has done
        so."""
        with self._workshop() as shop:
            started = shop.begin(self.label)
            if need.what == "contexts":
                update_contexts(shop, wanted=True)
            if embed_knowledge(shop, tree=need.what == "tree"):
                describe_run(shop, started, self.label)
                self._commit(shop)
            self._publish(shop)
