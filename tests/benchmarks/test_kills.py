"""kill -9 at random moments; more of them by ``python -m benchmarks.kills``."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kills import rounds

pytestmark = pytest.mark.slow


def test_nothing_is_lost_and_nothing_half_made_by_kills_at_random_moments(tmp_path: Path) -> None:
    kills, changes = 0, set()
    for done in rounds(tmp_path, seed=7):
        kills += done.kills
        changes.add(done.change)
        if kills >= 8:
            break
    assert len(changes) > 3
