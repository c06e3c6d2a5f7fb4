"""Background tasks go on after a fault, and readiness says that they are in trouble."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.extensions.server.conftest import API, make_graph, running
from tgraph.engine.collections import list_collections
from tgraph.extensions.server import status
from tgraph.extensions.server.jobs import Jobs
from tgraph.extensions.server.supervision import Supervisor


def test_a_task_is_run_again_after_a_fault_and_its_trouble_ends() -> None:
    seen: list[dict[str, str]] = []
    supervisor = Supervisor(first_pause=0.001)

    async def work(succeed: Callable[[], None]) -> None:
        seen.append(dict(supervisor.troubles))
        if len(seen) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        succeed()

    asyncio.run(supervisor.keep_running("The queue", work))
    assert [list(trouble) for trouble in seen] == [[], ["The queue"], ["The queue"]]
    assert "disk is full" in seen[1]["The queue"]
    assert supervisor.troubles == {}


@pytest.mark.slow
def test_a_disk_that_was_full_does_not_end_the_index_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, full = Jobs._next_job, [True]

    def next_job(jobs: Jobs) -> Any:
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return look(jobs)

    monkeypatch.setattr(Jobs, "_next_job", next_job)
    monkeypatch.setattr(status, "_FRESH", 0.0)
    with running(make_graph(tmp_path)) as server, server.client() as client:
        files = {"file": ("a.txt", b"The Sorvik mill was built by Anna Berg in 1931.")}
        job = client.post(f"{API}/documents", files=files).json()
        assert wait_for(lambda: client.get("/ready").status_code == 503)
        assert client.get("/ready").json()["checks"]["tasks"] == "failed"
        full.clear()
        place = f"{API}/jobs/{job['id']}"
        assert wait_for(lambda: client.get(place).json()["status"] == "done")
        assert client.get("/ready").status_code == 200


def test_readiness_costs_one_check_however_many_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[int] = []
    count = list_collections

    def list_slowly(root: Path) -> Any:
        checks.append(1)
        time.sleep(0.2)
        return count(root)

    monkeypatch.setattr(status, "list_collections", list_slowly)
    with running(make_graph(tmp_path), reading=1, waiting=0) as server:
        with ThreadPoolExecutor(20) as pool:
            ready = [pool.submit(httpx.get, f"{server.address}/ready") for _ in range(20)]
        assert {reply.result().status_code for reply in ready} == {200}
    assert len(checks) == 1


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False
