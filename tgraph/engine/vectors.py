"""The vector sets of a snapshot: opened when first searched, rebuilt when they don't fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from tgraph.index.items import KINDS
from tgraph.index.vectors import DamagedIndexError, StaleIndexError, VectorSet, load
from tgraph.models.base import Embedder


class LazyVectors(Mapping[str, VectorSet]):
    """The vector sets below a folder by kind. ``repair`` is told what is wrong with one and gives
    a set that fits."""

    def __init__(
        self,
        folder: Path,
        generation: int,
        embedder: Embedder,
        repair: Callable[[str, str], VectorSet],
    ) -> None:
        self._folder = folder
        self._generation = generation
        self._embedder = embedder
        self._repair = repair
        self._sets: dict[str, VectorSet] = {}

    def __getitem__(self, kind: str) -> VectorSet:
        if kind not in self._sets:
            try:
                self._sets[kind] = load(
                    self._folder,
                    kind,
                    generation=self._generation,
                    agent=self._embedder.agent,
                )
            except (StaleIndexError, DamagedIndexError) as error:
                self._sets[kind] = self._repair(kind, error.message)
        return self._sets[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(KINDS)

    def __len__(self) -> int:
        return len(KINDS)
