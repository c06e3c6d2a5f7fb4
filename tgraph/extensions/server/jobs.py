"""Index jobs, stored in the graph folder and run sequentially by a separate process.

``jobs/ID/job.json`` describes a job and its progress; ``jobs/ID/files/`` holds uploads until
indexed (afterwards the librarian keeps the bytes). Jobs outlive the server: the server process
holding ``jobs/runner.lock`` runs queued jobs and restarts jobs interrupted by a crash; an index
run continues from existing results."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

from tgraph.errors import UnknownNameError, UsageError
from tgraph.masking import hide_paths, mask_urls
from tgraph.shortages import explain_shortage
from tgraph.store.files import FileLock, make_folder, read_json, write_json

if TYPE_CHECKING:
    from tgraph.extensions.server.service import Service

log = logging.getLogger("tgraph.extensions.server")

JobStatus = Literal["receiving", "queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobStatus, ...] = ("done", "failed", "cancelled")
_POLL = 0.3
_AGAIN = 3.0
"""Seconds that a process has to end before it is interrupted once more."""
KEPT = 200
"""Ended jobs that are remembered."""


@dataclass(frozen=True, slots=True)
class Job:
    """An index job. ``stage``, ``done`` and ``total`` are its progress; ``report`` is what
    ``tgraph index --json`` would print, ``error`` why it failed."""

    id: str
    collection: str
    person: str | None
    status: JobStatus
    created: str
    files: tuple[str, ...] = ()
    reinstate: bool = False
    started: str = ""
    ended: str = ""
    stage: str = ""
    done: int = 0
    total: int = 0
    report: dict[str, Any] | None = None
    error: str = ""


def _current_timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Jobs:
    """Index jobs in a graph folder."""

    def __init__(self, root: Path, settings: dict[str, Any] | None = None) -> None:
        self._root = root
        self._folder = root / "jobs"
        self._settings = settings or {}
        self._worker: subprocess.Popen[bytes] | None = None

    # --- what there is ---

    def new(self, collection: str, person: str | None, *, reinstate: bool) -> Job:
        """Create a job awaiting files."""
        job = Job(
            str(uuid4()), collection, person, "receiving", _current_timestamp(), reinstate=reinstate
        )
        make_folder(self.files(job), private=True)
        return self._write_job(job)

    def queue(self, job: Job, files: tuple[str, ...]) -> Job:
        """Queue a job after its files arrived."""
        return self._write_job(replace(job, files=files, status="queued"))

    def forget(self, job: Job) -> None:
        """Delete a job folder with all its files."""
        shutil.rmtree(self._folder / job.id, ignore_errors=True)

    def files(self, job: Job) -> Path:
        """Return the upload folder of a job."""
        return self._folder / job.id / "files"

    def list_jobs(self, collection: str) -> list[Job]:
        """Return collection jobs, newest first."""
        jobs = [job for job in self._read_jobs() if job.collection == collection]
        return sorted(jobs, key=lambda job: (job.created, job.id), reverse=True)

    def find(self, collection: str, name: str) -> Job:
        """Return a collection job by id; raise ``UnknownNameError`` for unknown ids."""
        with suppress(ValueError):
            job = self._read_job(str(UUID(name)))
            if job is not None and job.collection == collection:
                return job
        raise UnknownNameError(f"There is no job {name!r}.", "The list of jobs has their ids.")

    def cancel(self, job: Job) -> Job:
        """End it, whichever process runs it. ``UsageError`` where it has ended."""
        if job.status in ENDED:
            raise UsageError(f"The job has ended already ({job.status}).")
        (self._folder / job.id / "cancel").touch()
        return self._end_job(job, "cancelled") if job.status != "running" else job

    async def follow(self, job: Job, service: Service) -> AsyncIterator[Job]:
        """Yield job states on change, including the final state."""
        last_state = None
        while not service.stopping.is_set():
            state = await asyncio.to_thread(self._read_job, job.id)
            if state is None:
                return
            if state != last_state:
                yield state
                last_state = state
            if state.status in ENDED:
                return
            await asyncio.sleep(_POLL)

    def _read_jobs(self) -> list[Job]:
        if not self._folder.is_dir():
            return []
        jobs = (self._read_job(folder.name) for folder in self._folder.iterdir() if folder.is_dir())
        return [job for job in jobs if job is not None]

    def _read_job(self, name: str) -> Job | None:
        values = read_json(self._folder / name / "job.json")
        if values is None:
            return None
        with suppress(TypeError):
            return Job(**{**values, "files": tuple(values.get("files", ()))})
        return None

    def _write_job(self, job: Job) -> Job:
        write_json(self._folder / job.id / "job.json", asdict(job))
        return job

    def _end_job(self, job: Job, status: JobStatus, **more: Any) -> Job:
        ended = self._write_job(replace(job, status=status, ended=_current_timestamp(), **more))
        shutil.rmtree(self.files(job), ignore_errors=True)
        return ended

    # --- doing them ---

    async def run(self, service: Service, succeed: Callable[[], None] = lambda: None) -> None:
        """Run queued jobs during the server lifetime, unless another server process runs jobs.

        ``succeed`` is called after each look for jobs."""
        make_folder(self._folder, private=True)
        lock = None
        try:
            while not service.stopping.is_set():
                lock = lock or FileLock.try_acquire(self._folder / "runner.lock")
                job = self._next_job() if lock else None
                succeed()
                if job is None:
                    await asyncio.sleep(_POLL)
                    continue
                await self._run_job(job, service)
        finally:
            if lock is not None:
                lock.release()

    def _next_job(self) -> Job | None:
        """Return the oldest queued job, or a job interrupted by a dead runner."""
        self._forget_old()
        waiting = [job for job in self._read_jobs() if job.status in ("queued", "running")]
        return min(waiting, key=lambda job: (job.created, job.id), default=None)

    def _forget_old(self) -> None:
        ended = [job for job in self._read_jobs() if job.status in ENDED]
        for job in sorted(ended, key=lambda job: job.ended)[:-KEPT]:
            self.forget(job)

    async def _run_job(self, job: Job, service: Service) -> None:
        job = self._write_job(
            replace(job, status="running", started=job.started or _current_timestamp())
        )
        try:
            await self._run_worker(job)
        except asyncio.CancelledError:  # the server stops: the job goes on when it is back
            raise
        except Exception as error:
            shortage = explain_shortage(error)
            log.error("The job %s failed", job.id, exc_info=None if shortage else error)
            reason = str(shortage) if shortage else f"{type(error).__name__}: {error}"
            self._end_job(job, "failed", error=hide_paths(mask_urls(reason)))

    async def _run_worker(self, job: Job) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "tgraph.extensions.server.index_worker",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self.files(job),
            start_new_session=True,
            limit=1 << 26,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        order = {
            "root": str(self._root.absolute()),
            "collection": job.collection,
            "files": job.files,
            "reinstate": job.reinstate,
            "settings": {**self._settings, **({"person": job.person} if job.person else {})},
        }
        process.stdin.write(json.dumps(order).encode() + b"\n")
        cancelling = asyncio.create_task(self._cancel_when_told(job, process))
        try:
            await process.stdin.drain()
            worker_message: dict[str, Any] = {}
            async for line in process.stdout:
                worker_message = json.loads(line)
                if "stage" in worker_message:
                    job = self._write_job(replace(job, **worker_message))
            await process.wait()
            self._finish_job(job, worker_message)
        finally:
            cancelling.cancel()
            if process.returncode is None:
                process.stdin.close()  # it sees that, and ends
                await asyncio.shield(process.wait())

    def _finish_job(self, job: Job, told: dict[str, Any]) -> None:
        if (self._folder / job.id / "cancel").exists() and "report" not in told:
            self._end_job(job, "cancelled")
        elif "report" in told:
            failed = told["report"].get("failed")
            nothing = not told["report"].get("indexed") and not told["report"].get("unchanged")
            status: JobStatus = "failed" if failed and nothing else "done"
            error = hide_paths("; ".join(failure["reason"] for failure in failed or ()))
            self._end_job(job, status, report=told["report"], error=error)
        else:
            self._end_job(
                job,
                "failed",
                error=told.get("error", "The process of the index run ended unexpectedly."),
            )

    async def _cancel_when_told(self, job: Job, process: asyncio.subprocess.Process) -> None:
        while not (self._folder / job.id / "cancel").exists():
            await asyncio.sleep(_POLL)
        while process.returncode is None:  # a library may swallow an interrupt in a callback
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGINT)
            await asyncio.sleep(_AGAIN)
