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
        items = self._items
        known = {key: items[key] for key in wanted if key in items}
        missing = [key for key in wanted if key not in known]
        fresh = read(missing) if missing else {}
        found = {**known, **fresh}
        if len(self._items) + len(fresh) > self._limit:
            self._items = {}  # a question that is being answered keeps what it holds
        if len(fresh) <= self._limit:
            self._items.update(fresh)
        return {key: found[key] for key in wanted if key in found}

    def get(self, key: Key, read: Callable[[], Item]) -> Item:
        """The item of one key, read where it is not known."""
        items = self._items
        if key in items:
            return items[key]
        item = read()
        if len(items) >= self._limit:
            self._items = {}
        self._items[key] = item
        return item
