"""Task executors for extra workers: local processes or a Dask cluster, behind the standard
library's ``Executor``."""

from __future__ import annotations

import os
import pickle
import socket
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from queue import LifoQueue
from typing import Any, BinaryIO, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tgraph.errors import EndpointError, UsageError
from tgraph.isolation import start_process

P = ParamSpec("P")
T = TypeVar("T")

DASK = "dask"
_REMEDY = "Run: pip install 'tgraph-rag[dask]'"
_PATIENCE = 20.0
"""Seconds in which a scheduler has to answer, and to have a worker."""


class WorkerDiedError(Exception):
    """A dead worker error: the task's process died, completion is unknown."""


class ProcessExecutor(Executor):
    """An ``Executor`` with up to ``workers`` processes, started on demand.

    Tasks are module functions with picklable arguments. Processes receive no key and no open
    files of this process, and none outlives it. A task whose process dies ends with
    ``WorkerDiedError``; the next task gets a new process."""

    def __init__(self, workers: int) -> None:
        self._idle: LifoQueue[_Worker | None] = LifoQueue()
        self._workers = workers
        self._running: set[_Worker] = set()
        for _ in range(workers):
            self._idle.put(None)
        self._threads = ThreadPoolExecutor(workers, "workers")

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        return self._threads.submit(self._run_task, function, arguments, named)

    def _run_task(self, *task: object) -> Any:
        data = pickle.dumps(task, pickle.HIGHEST_PROTOCOL)
        worker = self._idle.get()
        try:
            worker = worker or _Worker()
            self._running.add(worker)
            return worker.run_task(data)
        except WorkerDiedError:
            if worker is not None:
                self._running.discard(worker)
                worker.end()
            worker = None
            raise
        finally:
            if worker is not None:
                self._running.discard(worker)
            self._idle.put(worker)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all processes, interrupting running tasks unless ``wait``."""
        if not wait:
            self._threads.shutdown(wait=False, cancel_futures=cancel_futures)
            for busy in tuple(self._running):
                busy.kill()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        for worker in [self._idle.get() for _ in range(self._workers)]:
            if worker is not None:
                worker.end()
            self._idle.put(None)


class _Worker:
    """A worker process; it ends with its standard input, so never outlives its parent."""

    def __init__(self) -> None:
        self._process = start_process("tgraph.executors")

    def run_task(self, data: bytes) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
            failed, value = pickle.load(self._process.stdout)  # noqa: S301 - our own
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            raise WorkerDiedError(str(error)) from error
        if failed:
            raise value
        return value

    def kill(self) -> None:
        """Kill the process; a waiting caller gets an error."""
        self._process.kill()

    def end(self) -> None:
        self.kill()
        with suppress(OSError):
            self._process.communicate()


def _serve_tasks(source: BinaryIO, target: BinaryIO) -> None:
    while True:
        try:
            function, arguments, keywords = pickle.load(source)  # noqa: S301 - from our own parent
        except EOFError:
            return
        try:
            reply = False, function(*arguments, **keywords)
        except Exception as error:
            reply = True, error
        try:
            data = pickle.dumps(reply, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            data = pickle.dumps((True, TypeError(str(error))), pickle.HIGHEST_PROTOCOL)
        target.write(data)
        target.flush()


def main() -> None:
    """Serve tasks for the parent process through standard input and output."""
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # what is printed is no reply
        _serve_tasks(sys.stdin.buffer, replies)


def checked_address(address: str) -> str:
    """Return the TCP address for a cluster address ``dask://HOST:PORT``. Raise ``UsageError``
    for other addresses."""
    try:
        parts = urlsplit(address)
        if parts.scheme == DASK and parts.hostname and parts.port and not parts.path:
            return f"tcp://{parts.netloc}"
    except ValueError:
        pass
    raise UsageError(f"{address!r} is no executor.", "Write it as dask://HOST:PORT.")


def _check_listening(server: str) -> None:
    """Raise ``OSError`` immediately if no server listens: Dask would retry until its timeout."""
    parts = urlsplit(server)
    socket.create_connection((parts.hostname, parts.port), _PATIENCE).close()


class DaskExecutor(Executor):
    """A Dask cluster executor; workers need the same tgraph version.

    ``processes`` and ``slots`` count workers and concurrent tasks. Raise ``UsageError`` if the
    extra ``dask`` is missing or the address is invalid, ``EndpointError`` if no scheduler with
    a worker answers at ``dask://HOST:PORT``."""

    def __init__(self, address: str) -> None:
        server = checked_address(address)
        try:
            client: Any = import_module("distributed").Client
        except ImportError as error:
            raise UsageError("Dask isn't installed.", _REMEDY) from error
        try:
            _check_listening(server)
            self._client = client(server, timeout=_PATIENCE, set_as_default=False)
        except OSError as error:
            raise EndpointError(
                f"No Dask scheduler answers at {address}.", "Start it: dask scheduler"
            ) from error
        try:
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            self._client.close()
            remedy = f"Start some: dask worker {server}"
            raise EndpointError(f"The Dask cluster at {address} has no worker.", remedy) from error
        threads = self._client.nthreads()
        self.processes, self.slots = len(threads), sum(threads.values())
        self._executor: Executor = self._client.get_executor(pure=False)

    def submit(
        self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs
    ) -> Future[T]:
        return self._executor.submit(function, *arguments, **named)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait and not cancel_futures)
        self._client.close()
