"""What the tests of the store share."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> set[tuple[int, int]]:
    """The files and folders that were synced, by device and number."""
    done: set[tuple[int, int]] = set()

    def watched(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(handle: int) -> None:
            sync(handle)
            done.add((os.fstat(handle).st_dev, os.fstat(handle).st_ino))

        return synced

    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    return done
