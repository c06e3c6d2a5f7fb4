"""How ``tgraph serve`` bears many who ask at once, and whether its record has all that it answered.

A server process is started on a graph of examples/antarctica. Clients ask the questions of
examples/questions.toml over REST, each as soon as it has its answer, in all modes that the server
lists, in turn. A mode that the server refuses before the clock starts (``bypass`` without a model)
is left out, and named. Where the server says that it has too much to do (429 or 503 with
``Retry-After``), a client waits as long as it is told; that is counted, and is no error.

Seconds are those that a client waits for an answer, its own waiting after a refusal left out. CPU
and memory are the server's; the model of ``scripted`` runs in a process of its own. Memory is flat
where its slope, a line fitted to the second half of the time, is near nothing.

Afterwards each answer that a client got has to be on record: by REST while the server runs, and by
``tgraph sparql`` and ``tgraph audit integrity`` when it has stopped. With ``--stop-in-the-middle``
the server is told to stop (SIGTERM) at half time while all clients work; it has to end by itself
with status 0. The exit code is 1 where anything of this fails.

Run: python -m benchmarks.load [--clients 50] [--seconds 60] [--model embedded|scripted]
[--stop-in-the-middle] [--workers 1] [--asking 4] [--modes local,ppr]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path

import httpx

from benchmarks.overhead import REPOSITORY, command, server

CORPUS = REPOSITORY / "examples" / "antarctica"
QUESTIONS = REPOSITORY / "examples" / "questions.toml"
API = "/api/v1/collections/default"
SAMPLES_EVERY = 0.5
PATIENCE = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
_RECORDED = "SELECT ?session { GRAPH ?catalogue { ?bundle tg:session ?session } }"
_ANSWERED = ("completed", "no-evidence")


# --- the server -----------------------------------------------------------------------------------


@dataclass
class ServerProcess:
    """A server in a process, or several, of its own."""

    process: subprocess.Popen[str]
    address: str

    def processes(self) -> list[int]:
        """Itself and those that it started."""
        found, known = [self.process.pid], [self.process.pid]
        while found:
            with suppress(OSError):
                children = Path(f"/proc/{found[0]}/task/{found[0]}/children").read_text().split()
                known += map(int, children)
                found += map(int, children)
            found.pop(0)
        return known

    def cpu(self) -> float:
        """Seconds that they have computed, those included that have ended."""
        total = 0
        for pid in self.processes():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:13]))
        return total / _TICKS

    def memory(self) -> float:
        """Megabytes in memory; what processes share is counted once."""
        total = 0
        for pid in self.processes():
            with suppress(OSError, AttributeError):
                said = Path(f"/proc/{pid}/smaps_rollup").read_text()
                total += int(re.search(r"^Pss:\s+(\d+)", said, re.MULTILINE)[1])  # type: ignore[index]
        return total / 1024


@contextmanager
def serving(root: Path, options: Sequence[str]) -> Iterator[ServerProcess]:
    """The server, once it is ready."""
    run = [sys.executable, *command("serve", "-r", str(root), "--port", "0", *options)]
    with subprocess.Popen(run, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", line := process.stderr.readline())
            if found is None:
                raise SystemExit(line + process.stderr.read())
            address = found[0].rstrip("/")
            httpx.get(f"{address}/ready", timeout=PATIENCE).raise_for_status()
            yield ServerProcess(process, address)
        finally:
            process.kill()


def environment() -> dict[str, str]:
    """This process's, without what would say how is asked."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("TGRAPH_", "OPENAI_"))}
    return {**own, "PYTHONPATH": str(REPOSITORY)}


def tgraph(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of its own."""
    run = [sys.executable, *command(*arguments)]
    return subprocess.run(run, capture_output=True, text=True, env=environment(), check=False)


# --- the clients ----------------------------------------------------------------------------------


@dataclass
class Tally:
    """What clients saw: seconds of the answers by mode, acknowledged sessions, answers by client,
    how often they were told to wait, and what went wrong."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    sessions: list[str] = field(default_factory=list)
    served: Counter[int] = field(default_factory=Counter)
    waits: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)


@dataclass
class Load:
    """So many clients that ask until the time is over, or the server has gone."""

    address: str
    modes: Sequence[str]
    questions: Sequence[str]
    until: float = 0.0
    stopping: bool = False
    tally: Tally = field(default_factory=Tally)

    async def run(self, clients: int, seconds: float) -> None:
        """Ask; what is under way at the end is waited for."""
        self.until = time.monotonic() + seconds
        turn = count()
        await asyncio.gather(*(self._client(turn, number) for number in range(clients)))

    async def _client(self, turn: Iterator[int], number: int) -> None:
        questions = cycle(self.questions[number % len(self.questions) :] or self.questions)
        async with httpx.AsyncClient(base_url=self.address, timeout=PATIENCE) as client:
            while time.monotonic() < self.until:
                mode = self.modes[next(turn) % len(self.modes)]
                try:
                    self.tally.served[number] += await self._ask(client, mode, next(questions))
                except httpx.TransportError as error:
                    if self.stopping:  # what was not acknowledged may be lost
                        return
                    self.tally.errors[f"{mode}: {type(error).__name__} {error}"] += 1

    async def _ask(self, client: httpx.AsyncClient, mode: str, question: str) -> bool:
        """Whether it was answered."""
        while True:
            began = time.perf_counter()
            reply = await client.post(f"{API}/ask", json={"question": question, "mode": mode})
            told = reply.headers.get("retry-after", "")
            if reply.status_code not in (429, 503) or not told:
                break
            self.tally.waits[reply.status_code] += 1
            if time.monotonic() >= self.until:
                return False
            await asyncio.sleep(float(told))
        if reply.is_success:
            self.tally.sessions.append(reply.json()["explain_id"])
            self.tally.seconds[mode].append(time.perf_counter() - began)
        else:
            self.tally.errors[f"{mode}: {reply.status_code} {reply.text[:200]}"] += 1
        return reply.is_success


def listed_modes(address: str) -> list[str]:
    """The modes of the collection ``default``, from the server's list of models."""
    models = httpx.get(f"{address}/v1/models", timeout=PATIENCE).raise_for_status().json()["data"]
    names = [str(each["id"]) for each in models]
    return [name.removeprefix("tgraph-") for name in names if "@" not in name]


def questions_of_examples() -> list[str]:
    """The questions of the example corpus."""
    return [each["text"] for each in tomllib.loads(QUESTIONS.read_text("utf-8"))["question"]]


def answered_modes(address: str, modes: Sequence[str], question: str) -> list[str]:
    """Those that the server answers; it says why it refuses another."""
    found = []
    for mode in modes:
        asked = {"question": question, "mode": mode}
        reply = httpx.post(f"{address}{API}/ask", json=asked, timeout=PATIENCE)
        if reply.is_success:
            found.append(mode)
        else:
            print(f"{mode} is not asked: {reply.json()['detail']}")
    return found


# --- what it cost ---------------------------------------------------------------------------------


@dataclass
class Samples:
    """Memory, in MB, by the seconds since the start."""

    server: ServerProcess
    rows: list[tuple[float, float]] = field(default_factory=list)

    async def collect(self) -> None:
        """Until it is cancelled."""
        began = time.monotonic()
        while True:
            self.rows.append((time.monotonic() - began, self.server.memory()))
            await asyncio.sleep(SAMPLES_EVERY)

    def told(self) -> str:
        """Start, middle, end, peak, and by how much it grows in a minute of the second half."""
        values = [value for _, value in self.rows]
        later = self.rows[len(self.rows) // 2 :]
        slope = 0.0
        if len(later) > 1:
            slope = statistics.linear_regression(*zip(*later, strict=True)).slope * 60
        start, middle, end = values[0], values[len(values) // 2], values[-1]
        return (
            f"memory {start:.0f} MB at the start, {middle:.0f} in the middle, {end:.0f} at the end,"
            f" {max(values):.0f} at most; {slope:+.1f} MB a minute in the second half"
        )


def report(load: Load, seconds: float, cpu: float, samples: Samples) -> None:
    """The table, and the lines below it."""
    tally = load.tally
    print("\n| mode | answers | p50 | p95 | p99 |\n|---|---|---|---|---|")
    for mode in load.modes:
        row(mode, tally.seconds[mode])
    everything = [value for each in tally.seconds.values() for value in each]
    row("all", everything)
    answers = len(everything)
    print(
        f"\n{answers / seconds:.1f} questions a second; CPU of the server {cpu:.1f} s,"
        f" {cpu / max(1, answers):.3f} s an answer; {samples.told()}"
    )
    print(f"told to wait: {sum(tally.waits.values())}; errors: {sum(tally.errors.values())}")
    for error, times in tally.errors.most_common(10):
        print(f"  {times} x {error}")


def row(name: str, seconds: Sequence[float]) -> None:
    """How long answers took."""
    if len(seconds) < 2:
        print(f"| {name} | {len(seconds)} | | | |")
        return
    parts = statistics.quantiles(seconds, n=100, method="inclusive")
    print(f"| {name} | {len(seconds)} | {' | '.join(f'{parts[at]:.2f}' for at in (49, 94, 98))} |")


# --- the record -----------------------------------------------------------------------------------


def lost_by_rest(address: str, sessions: Sequence[str]) -> int:
    """How many of the sessions the server does not know, or knows as unfinished."""
    with httpx.Client(base_url=address, timeout=PATIENCE) as client:
        replies = (client.get(f"{API}/sessions/{session}") for session in sessions)
        return sum(not (r.is_success and r.json()["status"] in _ANSWERED) for r in replies)


def check_record(root: Path, sessions: Sequence[str]) -> bool:
    """Whether the store of a server that has stopped has them all, and is intact."""
    found = tgraph("sparql", _RECORDED, "-r", str(root), "--format", "csv", "--limit", "1000000")
    recorded = set(found.stdout.split())
    lost = [session for session in sessions if session not in recorded]
    audit = tgraph("audit", "integrity", "-r", str(root))
    intact = audit.returncode == 0
    print(
        f"record: {len(recorded)} sessions, {len(lost)} of {len(sessions)} acknowledged are lost;"
        f" tgraph audit integrity: {'ok' if intact else audit.stdout + audit.stderr}"
    )
    return intact and not lost and found.returncode == 0


# --- a run ----------------------------------------------------------------------------------------


async def measure(load: Load, server: ServerProcess, options: argparse.Namespace) -> Samples:
    """Let the clients work, and the server be told to stop where that is wanted."""
    samples = Samples(server)
    collecting = asyncio.create_task(samples.collect())
    working = asyncio.create_task(load.run(options.clients, options.seconds))
    if options.stop_in_the_middle:
        await asyncio.sleep(options.seconds / 2)
        load.stopping = True
        server.process.send_signal(signal.SIGTERM)
    await working
    collecting.cancel()
    return samples


def run(root: Path, flags: Sequence[str], options: argparse.Namespace) -> bool:
    """One measurement; whether the record has everything and nothing went wrong."""
    questions = questions_of_examples()
    more = ["--workers", str(options.workers), "--asking", str(options.asking)]
    good = True
    with serving(root, [*flags, *more]) as server:
        wanted = options.modes.split(",") if options.modes else listed_modes(server.address)
        load = Load(server.address, answered_modes(server.address, wanted, questions[0]), questions)
        cpu, began = server.cpu(), time.monotonic()
        samples = asyncio.run(measure(load, server, options))
        seconds = time.monotonic() - began
        if not options.stop_in_the_middle:
            report(load, seconds, server.cpu() - cpu, samples)
            lost = lost_by_rest(server.address, load.tally.sessions)
            print(f"REST: {lost} of {len(load.tally.sessions)} acknowledged sessions are lost")
            good = not lost
            server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        status = server.process.wait(PATIENCE)
        print(f"the server ended with status {status}, {time.monotonic() - began:.1f} s later")
    return (
        check_record(root, load.tally.sessions) and good and status == 0 and not load.tally.errors
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", choices=("embedded", "scripted"), default="embedded")
    parser.add_argument("--stop-in-the-middle", action="store_true")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server")
    parser.add_argument("--asking", type=int, default=4, help="questions at once, a process")
    parser.add_argument("--modes", default="", help="only these, parted by commas")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        server() if options.model == "scripted" else nullcontext() as url,
    ):
        root = Path(folder) / "graph"
        flags = ["--base-url", url, "--embedding-provider", "hashing"] if url else []
        made = tgraph("index", str(CORPUS), "-r", str(root), "--quiet", "--prepare", *flags)
        if made.returncode:
            raise SystemExit(made.stderr)
        sys.exit(0 if run(root, flags, options) else 1)


if __name__ == "__main__":
    main()
