"""Hostile clients beside others; with times by ``python -m benchmarks.hostile``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.hostile import ask
from benchmarks.load import Load, check_record, lost_by_rest, serving
from tests.extensions.server.conftest import QUESTION, make_graph

pytestmark = pytest.mark.slow


def test_everybody_is_served_and_nothing_lost_beside_hostile_clients(tmp_path: Path) -> None:
    root = make_graph(tmp_path)
    with serving(root, ["--embedding-provider", "hashing"]) as server:
        load = Load(server.address, ["graph", "basic"], [QUESTION])
        tally = asyncio.run(ask(load, clients=10, seconds=5, hostile=5))
        assert not tally.errors
        assert len(+tally.served) == 10
        assert lost_by_rest(server.address, tally.sessions) == 0
        server.process.terminate()
        assert server.process.wait(60) == 0
    assert check_record(root, tally.sessions)
