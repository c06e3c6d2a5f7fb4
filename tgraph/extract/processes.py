"""Extraction by several processes, since parsing keeps a core and the interpreter's lock busy.

What is found doesn't depend on who finds it, and the caller keeps the order of its chunks, so a
graph is the same however many processes read for it.
"""

from __future__ import annotations

import os
import pickle
import sys
from contextlib import suppress
from queue import LifoQueue
from typing import BinaryIO

from tgraph.extract.base import Extractor
from tgraph.isolation import start
from tgraph.model import Agent, Chunk, Extraction, Prompt
from tgraph.models.base import CallSink, no_sink


class ProcessExtractor:
    """An extractor without a model whose work ``workers`` processes do, each begun when it is
    needed; what one of them can't do is done here. Safe to use from many threads."""

    def __init__(self, extractor: Extractor, workers: int) -> None:
        self._extractor = extractor
        self._idle: LifoQueue[_Worker | None] = LifoQueue()
        self._workers = workers
        for _ in range(workers):
            self._idle.put(None)

    @property
    def agent(self) -> Agent:
        return self._extractor.agent

    @property
    def key(self) -> str:
        return self._extractor.key

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return self._extractor.prompts

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        worker = self._idle.get()
        found: Extraction | None = None
        try:
            worker = worker or _Worker(self._extractor)
            found = worker.extract(chunk, title)
        except Exception:  # it has died, or can't be told what to do
            if worker is not None:
                worker.end()
            worker = None
        finally:
            self._idle.put(worker)
        return found if found is not None else self._extractor.extract(chunk, title, sink)

    def close(self) -> None:
        """End the processes; the next chunk begins new ones. Nobody may be extracting."""
        for worker in [self._idle.get() for _ in range(self._workers)]:
            if worker is not None:
                worker.end()
            self._idle.put(None)


class _Worker:
    """A process that extracts. It ends with its standard input, so never outlives its parent."""

    def __init__(self, extractor: Extractor) -> None:
        self._process = start("tgraph.extract.processes")
        try:
            self._send(extractor)
        except BaseException:
            self.end()
            raise

    def extract(self, chunk: Chunk, title: str) -> Extraction | None:
        assert self._process.stdout is not None
        self._send((chunk, title))
        found: Extraction | None = pickle.load(self._process.stdout)  # noqa: S301 - our own
        return found

    def _send(self, value: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(value, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()

    def end(self) -> None:
        self._process.kill()
        with suppress(OSError):
            self._process.communicate()


def _serve(source: BinaryIO, target: BinaryIO) -> None:
    extractor: Extractor = pickle.load(source)  # noqa: S301 - from our own parent
    while True:
        try:
            chunk, title = pickle.load(source)  # noqa: S301
        except EOFError:
            return
        try:
            found = extractor.extract(chunk, title)
        except Exception:  # the parent does it again, and it is raised there
            found = None
        pickle.dump(found, target, pickle.HIGHEST_PROTOCOL)
        target.flush()


def main() -> None:
    """Serve the parent at the other end of standard input and output."""
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as replies:
        os.dup2(2, 1)  # what is printed is no reply
        _serve(sys.stdin.buffer, replies)
