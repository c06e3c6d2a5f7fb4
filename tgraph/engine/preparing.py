"""What only some modes need is built by the first question that does, and kept up to date by every
index run from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from tgraph.engine.embedding import embed
from tgraph.engine.indexing import Run, describe_run
from tgraph.engine.situating import lacks_contexts, situate
from tgraph.index.sources import standing_chunks
from tgraph.index.tree import standing_tree
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a mode reads: whether a state of the graph lacks it, which part of an index
    run builds it, and what to say of it."""

    is_missing: Callable[[Store], bool]
    message: str
    contexts: bool = False
    tree: bool = False


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build it and publish the graph with it; nothing where another process has done so."""
        with self._workshop() as shop:
            started = shop.clock()
            if need.contexts:
                situate(shop, wanted=True)
            if embed(shop, self._ledger, tree=need.tree):
                describe_run(shop, started)
                self._commit(shop)
            self._publish(shop)


def _lacks_tree(store: Store) -> bool:
    """Whether there are chunks enough for a tree, and none."""
    return not standing_tree(store) and len(list(islice(standing_chunks(store), 2))) == 2


_CONTEXTS = Need(
    lacks_contexts,
    "The mode contextual needs the contexts of chunks; they are made now, and kept up to date from"
    " here on.",
    contexts=True,
)
_TREE = Need(
    _lacks_tree,
    "The mode raptor needs a tree of summaries; it is made now, and kept up to date from here on.",
    tree=True,
)
_NEEDS: Mapping[str, Need] = {
    "contextual": _CONTEXTS,
    "raptor": _TREE,
    "raptor-traversal": _TREE,
}


def need_of(mode: str) -> Need | None:
    """What the mode needs beside what every index run builds."""
    return _NEEDS.get(mode)
