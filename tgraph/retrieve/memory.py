"""What retrieval has read of one published state, kept for the next question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


class Remembered(Generic[Key, Item]):
    """A bounded store of what was read: when it is full, it starts again from nothing."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[Key, Item] = {}

    def get_all(
        self, keys: Iterable[Key], read: Callable[[list[Key]], Mapping[Key, Item]]
    ) -> dict[Key, Item]:
        """The items of the keys. ``read`` gets those that are not known, all at once.

        What ``read`` has nothing for is asked for again the next time.
        """
        wanted = list(dict.fromkeys(keys))
        missing = [key for key in wanted if key not in self._items]
        fresh = read(missing) if missing else {}
        known = {**self._items, **fresh} if fresh else self._items
        found = {key: known[key] for key in wanted if key in known}
        if len(self._items) + len(fresh) > self._limit:
            self._items.clear()
        if len(fresh) <= self._limit:
            self._items.update(fresh)
        return found

    def get(self, key: Key, read: Callable[[], Item]) -> Item:
        """The item of one key, read where it is not known."""
        if key not in self._items:
            if len(self._items) >= self._limit:
                self._items.clear()
            self._items[key] = read()
        return self._items[key]
