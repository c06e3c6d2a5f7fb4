"""What only some modes need is built by the first question that does, and kept up to date by every
index run from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice

from tgraph.engine.embedding import embed
from tgraph.engine.indexing import Run, describe_run
from tgraph.engine.situating import lacks_contexts, situate
from tgraph.index.sources import standing_chunks
from tgraph.index.tree import standing_tree
from tgraph.retrieve.modes.base import Need
from tgraph.store.base import Store


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build it and publish the graph with it; nothing where another process has done so."""
        with self._workshop() as shop:
            started = shop.clock()
            if need.what == "contexts":
                situate(shop, wanted=True)
            if embed(shop, self._ledger, tree=need.what == "tree"):
                describe_run(shop, started)
                self._commit(shop)
            self._publish(shop)


def _lacks_tree(store: Store) -> bool:
    """Whether there are chunks enough for a tree, and none."""
    return not standing_tree(store) and len(list(islice(standing_chunks(store), 2))) == 2


_MISSING: Mapping[str, Callable[[Store], bool]] = {
    "contexts": lacks_contexts,
    "tree": _lacks_tree,
}


def is_missing(need: Need, store: Store) -> bool:
    """Whether a state of the graph lacks it."""
    return _MISSING[need.what](store)
