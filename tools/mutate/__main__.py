"""Puts small faults into the core modules, one at a time, and tells which of them no test finds.

    python -m tools.mutate --list                      # the mutants: what is changed, and where
    nice python -m tools.mutate                        # run those that have no result yet
    python -m tools.mutate --only pagerank --jobs 2    # of one module
    python -m tools.mutate --only likeness-sign        # one, by a part of its name
    python -m tools.mutate --report                    # the table of what was run, as Markdown

``mutants.toml`` beside this has the modules with the tests that cover each, the seed by which
``operators.py`` chooses places in them, faults written by hand, and why those that survive may.

A mutant is run in a copy of the tree, never in the tree, with the tests of its module, until the
first fails. Results are kept (``--results``) and a mutant is run again when its module has changed,
or, if it survived, when its tests have. It is a program of our own because what is wanted is a
fixed list that a person can read and run in half an hour: mutmut and cosmic-ray make every mutant
of a package (here tens of thousands), choose none of them and know none that are written by hand.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from queue import Queue
from typing import Any

from tools.mutate.operators import Mutant, chosen

TREE = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("mutants.toml")
PYTEST = [
    *("-x", "-q", "-m", "", "-n", "0", "-p", "no:cacheprovider"),
    *("--hypothesis-profile", "unshrunk"),
    *(
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ),  # the process before the fork has loaded it
]
SLOWER = 3
"""How many times longer than without a fault the tests may take, and ``AT_LEAST`` seconds."""
AT_LEAST = 40
ALIVE = "survived"


@dataclass(frozen=True, slots=True)
class Module:
    """A module with the tests that cover it, and the mutants in it."""

    file: str
    tests: tuple[str, ...]
    tests_digest: str
    mutants: tuple[Mutant, ...]


def _digest_of_tests(tests: Sequence[str]) -> str:
    files = {test.partition("::")[0] for test in tests} | {"tests/conftest.py"}
    return _digest(*((TREE / file).read_text() for file in sorted(files)))


def _digest(*texts: str) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()[:16]


def read_modules(table: dict[str, Any]) -> list[Module]:
    modules = []
    for entry in table["module"]:
        file = entry["file"]
        source = (TREE / file).read_text()
        drawn = chosen(file, source, entry.get("drawn", 0), table["seed"])
        written = [_written(file, source, **each) for each in entry.get("written", ())]
        tests = tuple(entry["tests"])
        modules.append(Module(file, tests, _digest_of_tests(tests), (*drawn, *written)))
    return modules


def _written(file: str, source: str, name: str, old: str, new: str) -> Mutant:
    """A fault that the table has as a text to be found once and what is to stand there."""
    if source.count(old) != 1:
        raise SystemExit(f"{name}: {source.count(old)} places in {file} have {old!r}")
    line = source[: source.index(old)].count("\n") + 1
    changed = source.replace(old, new)
    ast.parse(changed)
    stem = Path(file).stem
    return Mutant(f"{stem}:{name}", file, line, old.strip(), new.strip(), changed)


# --- running ---


class Copy:
    """A copy of the tree as it is, what git ignores left out, in which faults are put."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tree"
        self._server: subprocess.Popen[str] | None = None
        listed = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
        names = subprocess.run(listed, cwd=TREE, capture_output=True, check=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (TREE / name).is_file():
                target = self.path / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(TREE / name, target)

    def run(self, tests: Sequence[str], mutant: Mutant | None, limit: float | None) -> str:
        """What the tests make of it: ``killed``, ``survived`` or ``timed out``."""
        file = self.path / mutant.file if mutant else None
        before = file.read_bytes() if file else b""
        try:
            if mutant and file:
                file.write_text(mutant.source)
                _forget(file)
            return self._tested(tests, limit)
        finally:
            if file:
                file.write_bytes(before)
                _forget(file)

    def _tested(self, tests: Sequence[str], limit: float | None) -> str:
        temporary = self.path.parent / "tmp"
        temporary.mkdir(exist_ok=True)
        if self._server is None or self._server.poll() is not None:
            self._server = self._started(temporary)
        code = self._answer([*PYTEST, f"--basetemp={temporary / 'tests'}", *tests], limit)
        shutil.rmtree(temporary, ignore_errors=True)
        if code == 5:
            raise SystemExit(f"no test was found in {' '.join(tests)}")
        return "timed out" if code is None else "killed" if code else ALIVE

    def _started(self, temporary: Path) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.path), "TMPDIR": str(temporary)}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tools.mutate.tested"], cwd=self.path,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def _answer(self, arguments: Sequence[str], limit: float | None) -> int | None:
        """The exit status of a run, None where it took longer than the limit. Then it is ended,
        and with it whatever it started."""
        server = self._server
        assert server
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps(arguments) + "\n")
        server.stdin.flush()
        process = int(server.stdout.readline().removeprefix("pid "))
        late = threading.Event()

        def end() -> None:
            late.set()
            with suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)

        timer = threading.Timer(limit or 1e6, end)
        timer.start()
        said = server.stdout.readline()
        timer.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process, signal.SIGKILL)
        return None if late.is_set() else int(said.removeprefix("exit "))

    def close(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    def output(self) -> str:
        return (self.path.parent / "log").read_text()


def _forget(file: Path) -> None:
    """What was compiled of the file, which may be of the same second and the same size."""
    for compiled in file.parent.glob(f"__pycache__/{file.stem}.*.pyc"):
        compiled.unlink()


@contextmanager
def copies(count: int) -> Iterator[Queue[Copy]]:
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        queue: Queue[Copy] = Queue()
        made = [Copy(Path(folder, str(number))) for number in range(count)]
        for copy in made:
            queue.put(copy)
        try:
            yield queue
        finally:
            for copy in made:
                copy.close()


class Results:
    """What became of the mutants, a line for each run; the last one counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path.exists():
            rows = map(json.loads, path.read_text().splitlines())
            self._known = {row["name"]: row for row in rows}

    def of(self, mutant: Mutant, module: Module) -> str:
        """The result, "" where there is none that still holds."""
        row = self._known.get(mutant.name)
        if row is None or row["source"] != _digest(mutant.source):
            return ""
        stale = row["result"] == ALIVE and row["tests"] != module.tests_digest
        return "" if stale else str(row["result"])

    def add(self, mutant: Mutant, module: Module, result: str, seconds: float) -> None:
        row = {
            "name": mutant.name,
            "result": result,
            "seconds": round(seconds, 1),
            "source": _digest(mutant.source),
            "tests": module.tests_digest,
        }
        self._known[mutant.name] = row
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def run(modules: Sequence[Module], results: Results, jobs: int) -> None:
    """Run the mutants without a result, the modules after one another."""
    with copies(jobs) as queue, ThreadPoolExecutor(jobs) as threads:
        for module in modules:
            waiting = [m for m in module.mutants if not results.of(m, module)]
            if waiting:
                one = partial(_run_one, module, _limit(module, queue), queue, results)
                list(threads.map(one, waiting))


def _limit(module: Module, queue: Queue[Copy]) -> float:
    """How long the tests may take; they must pass where there is no fault."""
    copy = queue.get()
    started = time.monotonic()
    if copy.run(module.tests, None, None) != ALIVE:
        raise SystemExit(f"{copy.output()}\nThe tests of {module.file} fail without a fault.")
    queue.put(copy)
    return max(AT_LEAST, SLOWER * (time.monotonic() - started))


def _run_one(
    module: Module, limit: float, queue: Queue[Copy], results: Results, mutant: Mutant
) -> None:
    copy = queue.get()
    started = time.monotonic()
    result = copy.run(module.tests, mutant, limit)
    seconds = time.monotonic() - started
    queue.put(copy)
    results.add(mutant, module, result, seconds)
    print(f"{result:9} {seconds:5.1f} s  {_shown(mutant)}", flush=True)


# --- telling ---


def _shown(mutant: Mutant) -> str:
    before, after = (" ".join(text.split()) for text in (mutant.before, mutant.after))
    return f"{mutant.name}  line {mutant.line}: {before} -> {after or '(nothing)'}"


def report(modules: Sequence[Module], results: Results, accepted: dict[str, str]) -> str:
    """A table by module, and below it what survived, with why it may."""
    lines = ["| module | mutants | killed | accepted | left |", "|---|---|---|---|---|"]
    totals = [0, 0, 0, 0]
    survived: list[str] = []
    for module in modules:
        found = {mutant: results.of(mutant, module) for mutant in module.mutants}
        alive = [mutant for mutant, result in found.items() if result in (ALIVE, "")]
        may = [mutant for mutant in alive if mutant.name in accepted]
        row = [len(found), len(found) - len(alive), len(may), len(alive) - len(may)]
        totals = [total + each for total, each in zip(totals, row, strict=True)]
        lines.append(f"| `{module.file}` | {' | '.join(map(str, row))} |")
        for mutant in alive:
            why = accepted.get(mutant.name) or (found[mutant] or "not run")
            survived.append(f"- `{_shown(mutant)}`: {why}")
    lines.append(f"| all | {' | '.join(map(str, totals))} |")
    return "\n".join([*lines, "", *survived])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", action="append", default=[], help="a part of a mutant's name")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="show the mutants")
    parser.add_argument("--report", action="store_true", help="show the results as a table")
    parser.add_argument("--results", type=Path, default=TREE / "build" / "mutants.jsonl")
    options = parser.parse_args()
    table = tomllib.loads(TABLE.read_text())
    modules = [
        replace(m, mutants=tuple(x for x in m.mutants if _is_wanted(x, options.only)))
        for m in read_modules(table)
    ]
    modules = [module for module in modules if module.mutants]
    results = Results(options.results)
    if options.list:
        for module in modules:
            print(f"{module.file}: {' '.join(module.tests)}")
            for mutant in module.mutants:
                print(f"  {_shown(mutant)}")
        print(f"{sum(len(module.mutants) for module in modules)} mutants")
        return
    if not options.report:
        run(modules, results, options.jobs)
    print(report(modules, results, table.get("accepted", {})))


def _is_wanted(mutant: Mutant, parts: Sequence[str]) -> bool:
    return not parts or any(part in mutant.name for part in parts)


if __name__ == "__main__":
    main()
