"""What each audit costs on a graph with many sessions: CPU and wall seconds and peak memory.

The graph is made by ``benchmarks/audit_graph.py``; every audit then runs in a process of its own.

Run: python -m benchmarks.audit [--sessions 10000] [--folder FOLDER] [--audits uncited,...]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import tgraph
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.named_audits import Audit, list_audits

REPOSITORY = Path(__file__).resolve().parent.parent
ONE = (sys.executable, "-m", "benchmarks.audit", "--one")


def run_one(root: Path, name: str, arguments: Sequence[str]) -> None:
    """Run one audit and print its costs; for a process of its own."""
    with tgraph.open(root) as graph:
        graph.opened.read()
        wall, cpu = time.perf_counter(), time.process_time()
        found = graph.audit(name, *arguments)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "memory": _peak(), "rows": len(found.rows)}))


def _peak() -> float:
    """The peak resident memory of this process in MB; that of ``getrusage`` may be its parent's."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def subjects(graph: KnowledgeGraph) -> dict[str, str]:
    """What bounded audits are asked about: something that many answers share."""
    wanted = (s for s in graph.sessions.summaries() if (s.status, s.mode) == ("completed", "graph"))
    trace = graph.trace(next(wanted).explain_id)
    return {
        "session": trace.explain_id,
        "edge": trace.selected[0].item,
        "document": trace.sentences[0].citations[0].document,
    }


def measure(root: Path, audits: Iterable[Audit]) -> None:
    """Print a row for each audit."""
    with tgraph.open(root) as graph:
        known = subjects(graph)
    print("| audit | about | rows | CPU | wall | peak memory |\n|---|---|---|---|---|---|")
    for audit in audits:
        about = [p.kind for p in audit.parameters if p.kind in known]
        shown = f"one {about[0]}" if about else "all"
        done = subprocess.run(
            [*ONE, audit.name, "--folder", str(root.parent), *(known[kind] for kind in about)],
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        if done.returncode:
            print(f"{audit.name}: {done.stderr.strip()[-500:]}", file=sys.stderr)
            print(f"| `{audit.name}` | {shown} | failed | | | |", flush=True)
            continue
        cost = json.loads(done.stdout)
        print(
            f"| `{audit.name}` | {shown} | {cost['rows']} | {cost['cpu']:.2f} s |"
            f" {cost['wall']:.2f} s | {cost['memory']:.0f} MB |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the graph here, and use it again")
    parser.add_argument("--audits", help="only these, with commas between")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.folder / "graph", given.one, given.arguments)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "graph").exists():
            from benchmarks.audit_graph import make

            print(f"{given.sessions} sessions, {make(folder, given.sessions):,} quads\n")
        wanted = given.audits.split(",") if given.audits else None
        known = list_audits()
        measure(folder / "graph", [a for a in known if wanted is None or a.name in wanted])


if __name__ == "__main__":
    main()
