"""What an index without a model costs: CPU seconds, peak memory and the folder, by the text's size.

CPU is user and system time of the process and of those it starts. The text is the bytes of the
files; the folder's are counted once where files are linked. What else runs on the machine adds to
the CPU, so the best of ``--runs`` counts.

Run: python -m benchmarks.indexing FOLDER... [--runs 1] [-- OPTIONS OF tgraph index]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1e6


@dataclass(frozen=True, slots=True)
class Indexed:
    """One run: bytes of text and folder, CPU and wall seconds, peak memory in MB."""

    text: int
    folder: int
    cpu: float
    wall: float
    memory: float

    def row(self, name: str) -> str:
        size = self.text / MEGABYTE
        return (
            f"| {name} | {size:.2f} MB | {self.cpu:.1f} s | {self.cpu / size:.0f} s "
            f"| {self.wall:.1f} s | {self.memory:.0f} MB | {self.folder / MEGABYTE:.1f} MB "
            f"| {self.folder / self.text:.0f} |"
        )


def size_of(folder: Path) -> int:
    """The bytes of all files below it."""
    files = {(s.st_dev, s.st_ino): s.st_size for s in map(Path.stat, _files(folder))}
    return sum(files.values())


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def indexed(documents: Path, options: list[str]) -> Indexed:
    """Index the folder into a new graph."""
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "graph"
        call = ["index", str(documents), "-q", "--root", str(root), "--chat-provider", "embedded"]
        code = "from tgraph.cli.main import cli; cli()"
        started = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", code, *call, *options])
        _, status, used = os.wait4(process.pid, 0)  # with what its own processes used
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"tgraph index ended with {process.returncode}.")
        wall = time.perf_counter() - started
        cpu = used.ru_utime + used.ru_stime
        return Indexed(size_of(documents), size_of(root), cpu, wall, used.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--runs", type=int, default=1)
    given, own = sys.argv[1:], sys.argv[1:]
    options: list[str] = []
    if "--" in given:
        at = given.index("--")
        own, options = given[:at], given[at + 1 :]
    arguments = parser.parse_args(own)
    print("| text | size | CPU | CPU a MB | wall | memory | folder | times the text |")
    print("|---|---|---|---|---|---|---|---|")
    for folder in arguments.folders:
        runs = [indexed(folder, options) for _ in range(arguments.runs)]
        print(min(runs, key=lambda run: run.cpu).row(folder.name), flush=True)


if __name__ == "__main__":
    main()
