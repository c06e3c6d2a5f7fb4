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
from tgraph.extensions.server.problems import BusyError
from tgraph.masking import hide_paths, mask_urls
from tgraph.shortages import explain_shortage
from tgraph.store.files import FileLock, hold_lock, make_folder, read_json, write_json

if TYPE_CHECKING:
    from tgraph.extensions.server.service import ServerLimits, Service

log = logging.getLogger("tgraph.extensions.server")

JobStatus = Literal["receiving", "queued", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobStatus, ...] = ("done", "failed", "cancelled")
_POLL = 0.3
_AGAIN = 3.0
"""Seconds that a process has to end before it is interrupted once more."""
_PATIENCE = 30.0
_LAST = 9.0
"""Seconds after which a process that was interrupted is killed."""
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


@dataclass(frozen=True)
class Upload:
    """A job that receives its files; its lock is held for as long as somebody receives."""

    job: Job
    lock: FileLock


class Jobs:
    """Index jobs in a graph folder."""

    def __init__(
        self, root: Path, limits: ServerLimits, settings: dict[str, Any] | None = None
    ) -> None:
        self._root = root
        self._limits = limits
        self._folder = root / "jobs"
        self._settings = settings or {}
        self._worker: subprocess.Popen[bytes] | None = None

    # --- what there is ---

    def begin(self, collection: str, person: str | None, *, reinstate: bool) -> Upload:
        """Create a job awaiting files. ``BusyError`` beyond the uploads and jobs that there may be,
        in all or of the person."""
        job = Job(
            str(uuid4()), collection, person, "receiving", _current_timestamp(), reinstate=reinstate
        )
        make_folder(self._folder, private=True)
        with hold_lock(self._folder / "uploads.lock", timeout=_PATIENCE):
            self.remove_abandoned()
            self._check_room(person)
            make_folder(self.files(job), private=True)
            lock = FileLock.try_acquire(self._upload_lock(job))
            assert lock is not None
            try:
                return Upload(self._write_job(job), lock)
            except BaseException:
                lock.release()
                raise

    def _check_room(self, person: str | None) -> None:
        unended = [job for job in self._read_jobs() if job.status not in ENDED]
        own = [job for job in unended if job.person == person]
        limits = self._limits
        for jobs, receiving, kept in (
            (own, limits.uploads_each, limits.jobs_each),
            (unended, limits.uploads, limits.jobs),
        ):
            whose = " of yours" if jobs is own else ""
            if sum(job.status == "receiving" for job in jobs) >= receiving:
                raise BusyError(f"{receiving} uploads{whose} are under way.", "Wait for their end.")
            if len(jobs) >= kept:
                raise BusyError(
                    f"{kept} jobs{whose} have not ended.", "Wait for some, or end some of them."
                )

    def queue(self, upload: Upload, files: tuple[str, ...]) -> Job:
        """Queue a job after its files arrived."""
        job = self._write_job(replace(upload.job, files=files, status="queued"))
        upload.lock.release()
        self._upload_lock(job).unlink(missing_ok=True)
        return job

    def abandon(self, upload: Upload) -> None:
        """Delete the job of an upload that was broken off, with the files that arrived."""
        upload.lock.release()
        self._forget(upload.job)

    def remove_abandoned(self) -> None:
        """Delete jobs that nobody receives files for: the process that did has died."""
        for job in self._read_jobs():
            if job.status != "receiving":
                continue
            with suppress(OSError):
                if lock := FileLock.try_acquire(self._upload_lock(job)):
                    present_state = self._read_job(job.id)
                    if present_state is not None and present_state.status == "receiving":
                        self._forget(job)
                    lock.release()

    def _upload_lock(self, job: Job) -> Path:
        return self._folder / job.id / "upload.lock"

    def _forget(self, job: Job) -> None:
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
        self.remove_abandoned()
        waiting = [job for job in self._read_jobs() if job.status in ("queued", "running")]
        return min(waiting, key=lambda job: (job.created, job.id), default=None)

    def _forget_old(self) -> None:
        ended = [job for job in self._read_jobs() if job.status in ENDED]
        for job in sorted(ended, key=lambda job: job.ended)[:-KEPT]:
            self._forget(job)

    async def _run_job(self, job: Job, service: Service) -> None:
        job = self._write_job(
            replace(job, status="running", started=job.started or _current_timestamp())
        )
        try:
            await self._run_worker(job, service)
        except asyncio.CancelledError:  # the server stops: the job goes on when it is back
            raise
        except Exception as error:
            shortage = explain_shortage(error)
            log.error("The job %s failed", job.id, exc_info=None if shortage else error)
            reason = str(shortage) if shortage else f"{type(error).__name__}: {error}"
            self._end_job(job, "failed", error=hide_paths(mask_urls(reason)))

    async def _run_worker(self, job: Job, service: Service) -> None:
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
        watching = asyncio.create_task(self._interrupt_when_told(job, process, service))
        try:
            await process.stdin.drain()
            worker_message: dict[str, Any] = {}
            async for line in process.stdout:
                worker_message = json.loads(line)
                if "stage" in worker_message:
                    job = self._write_job(replace(job, **worker_message))
            await process.wait()
            self._finish_job(job, worker_message, service)
        finally:
            watching.cancel()
            if process.returncode is None:
                process.stdin.close()  # it sees that, and ends
                await asyncio.shield(_end_process(process))

    def _finish_job(self, job: Job, told: dict[str, Any], service: Service) -> None:
        if (self._folder / job.id / "cancel").exists() and "report" not in told:
            self._end_job(job, "cancelled")
        elif "report" in told:
            failed = told["report"].get("failed")
            nothing = not told["report"].get("indexed") and not told["report"].get("unchanged")
            status: JobStatus = "failed" if failed and nothing else "done"
            error = hide_paths("; ".join(failure["reason"] for failure in failed or ()))
            self._end_job(job, status, report=told["report"], error=error)
        elif service.stopping.is_set():
            log.warning("The job %s was interrupted; the next server goes on with it.", job.id)
        else:
            self._end_job(
                job,
                "failed",
                error=told.get("error", "The process of the index run ended unexpectedly."),
            )

    async def _interrupt_when_told(
        self, job: Job, process: asyncio.subprocess.Process, service: Service
    ) -> None:
        """End the process of a job that is cancelled, or whose server stops."""
        while not (self._folder / job.id / "cancel").exists():
            if service.stopping.is_set():
                await _end_process(process)
                return
            await asyncio.sleep(_POLL)
        await _interrupt(process)


async def _interrupt(process: asyncio.subprocess.Process) -> None:
    """Interrupt a process until it ends: a library may swallow an interrupt in a callback."""
    while process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGINT)
        await asyncio.sleep(_AGAIN)


async def _end_process(process: asyncio.subprocess.Process) -> None:
    """Interrupt a process; kill the process and its children if the process does not end."""
    interrupting = asyncio.create_task(_interrupt(process))
    try:
        async with asyncio.timeout(_LAST):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    finally:
        interrupting.cancel()
