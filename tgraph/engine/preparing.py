"""What only some modes need is built by the first question that does, and kept up to date by every
index run from then on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tgraph.engine.embedding import embed
from tgraph.engine.indexing import Run, describe_run
from tgraph.engine.situating import lacks_contexts, situate
from tgraph.engine.workshop import Workshop
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Need:
    """Something that a mode reads: whether a state of the graph lacks it, and how it is built."""

    is_missing: Callable[[Store], bool]
    build: Callable[[Workshop], object]
    message: str


class PrepareRun(Run):
    """An index run without files."""

    def prepare(self, need: Need) -> None:
        """Build it and publish the graph with it; nothing where another process has done so."""
        with self._workshop() as shop:
            started = shop.clock()
            need.build(shop)
            if shop.copy.changed:
                embed(shop, self._ledger)
                describe_run(shop, started)
                self._commit(shop)
            self._publish(shop)


def _situate(shop: Workshop) -> int:
    return situate(shop, wanted=True)


_CONTEXTS = Need(
    lacks_contexts,
    _situate,
    "The mode contextual needs the contexts of chunks; they are made now, and kept up to date from"
    " here on.",
)
_NEEDS: Mapping[str, Need] = {"contextual": _CONTEXTS}


def need_of(mode: str) -> Need | None:
    """What the mode needs beside what every index run builds."""
    return _NEEDS.get(mode)
