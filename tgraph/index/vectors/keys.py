"""IRIs in one block of bytes, looked up by halves, and ranges of the rows that belong to them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Self, overload

if TYPE_CHECKING:
    from numpy import bool_, bytes_, int64, uint8
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
    def from_iris(cls, iris: Sequence[str]) -> Self:
        """Create keys from sorted, distinct IRIs."""
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
        """Return owner numbers, ascending, for IRIs (ignoring unknown IRIs) or for a mask over
        the IRIs."""
        import numpy as np

        if isinstance(allowed, np.ndarray):
            return np.flatnonzero(allowed)
        if self._key_column is not None and len(allowed) > _FEW:
            found_at = self.find_all(np.array([iri.encode() for iri in set(allowed)]))
            return np.sort(found_at[found_at >= 0])
        if len(allowed) * _FEW < len(self) and "_numbers" not in self.__dict__:
            place_list = [place for iri in set(allowed) if (place := self.find(iri)) is not None]
        else:
            place_list = [self._numbers[iri] for iri in set(allowed) if iri in self._numbers]
        return np.array(sorted(place_list), dtype=np.int64)

    def find_all(self, iris: NDArray[bytes_]) -> NDArray[int64]:
        """The owner numbers of IRIs, -1 for unknown ones, in their order."""
        import numpy as np

        if self._key_column is None or self._key_column.dtype != iris.dtype:
            place_list = [self.find(iri.decode()) for iri in iris.tolist()]
            return np.array(
                [-1 if place is None else place for place in place_list], dtype=np.int64
            )
        places = np.searchsorted(self._key_column, iris)
        places[places == len(self)] = 0
        return np.where(self._key_column[places] == iris, places, -1)

    @cached_property
    def _key_column(self) -> NDArray[bytes_] | None:
        """Keys as an array, if all keys have equal length, like edge IRIs; otherwise None."""
        import numpy as np

        size = int(self._ends[0]) if len(self) else 0
        if not size or not np.array_equal(self.ends, np.arange(1, len(self) + 1) * size):
            return None
        return np.ascontiguousarray(self.block).view(f"S{size}")

    def find(self, iri: str) -> int | None:
        """Return the IRI's place; None if unknown."""
        place = bisect_left(self, iri)
        return place if place < len(self) and self[place] == iri else None

    def with_changes(
        self, gone: Iterable[str], added: Iterable[str]
    ) -> tuple[Keys, NDArray[int64]]:
        """Return keys with some IRIs removed and others added, plus the new place of each old
        key: -1 if removed."""
        import numpy as np

        key_mask = np.ones(len(self), dtype=bool)
        key_mask[[place for iri in gone if (place := self.find(iri)) is not None]] = False
        fresh = sorted(iri for iri in set(added) if self.find(iri) is None)
        at = np.array([bisect_left(self, iri) for iri in fresh], dtype=np.int64)
        moved = np.full(len(self), -1, dtype=np.int64)
        stay = np.flatnonzero(key_mask)
        moved[stay] = np.arange(len(stay)) + np.searchsorted(at, stay, side="right")
        lengths = np.diff(self.ends, prepend=0)
        block = self.block[np.repeat(key_mask, lengths)]
        before = np.cumsum(np.where(key_mask, lengths, 0))  # bytes kept up to each place
        cuts = [int(before[place - 1]) if place else 0 for place in at.tolist()]
        pieces = np.split(block, cuts)
        new = [np.frombuffer(iri.encode(), dtype=np.uint8) for iri in fresh]
        joined = [piece for pair in zip(pieces, [*new, block[:0]], strict=True) for piece in pair]
        sizes = np.empty(len(stay) + len(fresh), dtype=np.int64)
        sizes[moved[stay]] = lengths[stay]
        mine = np.ones(len(sizes), dtype=bool)
        mine[moved[stay]] = False
        sizes[mine] = [len(piece) for piece in new]
        return Keys(np.concatenate(joined), np.cumsum(sizes)), moved

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {iri: place for place, iri in enumerate(self)}


def expand_ranges(starts: NDArray[int64], counts: NDArray[int64]) -> NDArray[int64]:
    """Return concatenated ranges of numbers, given range starts and counts."""
    import numpy as np

    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: NDArray[int64] = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return numbers
