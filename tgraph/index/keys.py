"""The IRIs of a vector set: sorted, kept as one block of UTF-8 and decoded one by one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self, overload

if TYPE_CHECKING:
    from numpy import bool_, int64, uint8
    from numpy.typing import NDArray

_FEW = 16  # a search by halves costs about as much as decoding this many keys


class Keys(Sequence[str]):
    """IRIs in code-point order; a key's place in it is its owner number."""

    def __init__(self, block: NDArray[uint8], ends: NDArray[int64]) -> None:
        self.block = block
        self.ends = ends
        self._text = block.data  # four times as fast as numpy, an element at a time
        self._ends = ends.data

    @classmethod
    def of(cls, iris: Sequence[str]) -> Self:
        """Of IRIs that are sorted and distinct."""
        import numpy as np

        encoded = [iri.encode() for iri in iris]
        ends = np.cumsum([len(data) for data in encoded], dtype=np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[str]: ...

    def __getitem__(self, place: int | slice) -> str | Sequence[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        start = self._ends[place - 1] if place else 0
        return str(self._text[start : self._ends[place]], "utf-8")

    def places(self, allowed: Collection[str] | NDArray[bool_]) -> NDArray[int64]:
        """The owner numbers of IRIs (unknown ones left out) or of a mask over them; ascending."""
        import numpy as np

        if isinstance(allowed, np.ndarray):
            return np.flatnonzero(allowed)
        if len(allowed) * _FEW < len(self) and "_numbers" not in self.__dict__:
            found = [place for iri in set(allowed) if (place := self._find(iri)) is not None]
        else:
            found = [self._numbers[iri] for iri in set(allowed) if iri in self._numbers]
        return np.array(sorted(found), dtype=np.int64)

    def _find(self, iri: str) -> int | None:
        place = bisect_left(self, iri)
        return place if place < len(self) and self[place] == iri else None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {iri: place for place, iri in enumerate(self)}
