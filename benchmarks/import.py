"""What importing RDF costs: N-Triples of entities with a label, a type and three relationships.

python -m benchmarks.import --triples 1000000
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import tgraph
from tgraph.engine.progress import Progress
from tgraph.extensions.interchange import import_graph

_BASE = "http://example.org/"
_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_TYPES = ("City", "Person", "Company", "Work", "Event")
_RELATIONS = ("knows", "locatedIn", "partOf", "madeBy", "follows", "owns")
_SYLLABLES = ("ka", "lo", "min", "ter", "su", "ra", "bel", "do", "vi", "nor", "tal", "eg")
_PER_ENTITY = 5


def lines(triples: int, seed: int = 1) -> Iterator[str]:
    """The triples, five of each entity: neighbours for the most part, so that there are communities
    as in data of the world."""
    draw = random.Random(seed)
    count = max(triples // _PER_ENTITY, 2)
    for number in range(count):
        subject = f"<{_BASE}e{number}>"
        name = "".join(draw.choices(_SYLLABLES, k=3)).capitalize()
        yield f'{subject} {_LABEL} "{name} {number}" .\n'
        yield f"{subject} {_TYPE} <{_BASE}{draw.choice(_TYPES)}> .\n"
        for _ in range(_PER_ENTITY - 2):
            near = number + draw.randint(1, 40) if draw.random() < 0.9 else draw.randrange(count)
            relation = f"<{_BASE}{draw.choice(_RELATIONS)}>"
            yield f"{subject} {relation} <{_BASE}e{near % count}> .\n"


def main() -> None:
    """Import the triples and print what it cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true", help="Print where the time went.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.nt"
        with file.open("w") as out:
            out.writelines(lines(given.triples))
        size = file.stat().st_size
        began, stages = time.process_time(), _Stages()
        with tgraph.open(Path(folder) / "graph", create=True) as graph:
            report = import_graph(graph, [file], progress=stages, message=print)
        spent = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        files = [f.stat() for f in (Path(folder) / "graph").rglob("*") if f.is_file()]
        kept = sum({stat.st_ino: stat.st_size for stat in files}.values())  # snapshots are links
    stages.show()
    print(f"{given.triples:,} triples, {size / 1e6:.0f} MB: {report.relationships:,} relationships")
    print(f"{spent:.0f} s of CPU, {peak:,.0f} MB at most, {kept / 1e6:,.0f} MB on disk")


class _Stages:
    """The CPU time of each stage."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._stage, self._since = "Reading", time.process_time()

    def __call__(self, progress: Progress) -> None:
        stage = " ".join(filter(None, (progress.stage, progress.detail.rpartition("/")[2])))
        now = time.process_time()
        self._spent[self._stage] = self._spent.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now

    def show(self) -> None:
        """Print the times, and the memory at the end of each stage."""
        self(Progress("", 0, 0))
        for stage, spent in self._spent.items():
            print(f"{spent:8.1f} s  {stage}")


if __name__ == "__main__":
    main()
