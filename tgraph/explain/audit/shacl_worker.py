"""Validation against foreign shapes, isolated in a separate process: bounded memory and time,
no network, files or new handles.

The returned JSON is trusted as little as the shapes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from tgraph.errors import TgraphError
from tgraph.isolation import (
    forbid_sockets,
    forbid_writing,
    limit_memory,
    limit_time,
    no_more_handles,
    start_process,
)

SECONDS, MEMORY = 120.0, 2 << 30
_MOST = 10_000
"""Results that are taken."""


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """A pyshacl result for a focus node; ``path`` and ``value`` are empty if missing."""

    focus: str
    path: str
    value: str
    message: str


def validate_shapes(shapes: Sequence[str], data: str) -> list[ShapeResult]:
    """Return validation results of shapes (each N-Triples) on data (N-Triples). Raise
    ``TgraphError`` if shapes are unusable or exceed limits."""
    process = start_process("tgraph.explain.audit.shacl_worker", subprocess.PIPE)
    timer = threading.Timer(SECONDS, process.kill)
    timer.daemon = True
    timer.start()
    try:
        job = json.dumps({"shapes": list(shapes), "data": data}).encode()
        out, complaint = process.communicate(job)
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    if process.returncode:
        last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = last or f"the validation was stopped after {SECONDS:g} seconds or for lack of memory"
        raise TgraphError(f"The shapes could not be applied: {why}", "Mend the shapes.")
    return [ShapeResult(*(str(part) for part in row)) for row in json.loads(out)[:_MOST]]


def main() -> None:
    """The process: a job as JSON on standard input, the results on standard output."""
    limit_memory(MEMORY)
    limit_time(SECONDS)
    job = json.loads(sys.stdin.buffer.read())
    forbid_sockets()
    forbid_writing()
    _validate_graph(_WARM_SHAPES, "")  # all that is imported on the way is imported
    no_more_handles()
    rows = _validate_graph("".join(job["shapes"]), job["data"])
    sys.stdout.buffer.write(json.dumps(rows).encode())
    sys.stdout.buffer.flush()


_SH = "http://www.w3.org/ns/shacl#"
_WARM_SHAPES = f"""
<urn:x:s> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{_SH}NodeShape> .
<urn:x:s> <{_SH}targetNode> <urn:x:n> .
<urn:x:s> <{_SH}sparql> _:c .
_:c <{_SH}select> "SELECT $this WHERE {{ $this a <urn:x:k> FILTER(BOUND($this)) }}" .
_:c <{_SH}message> "m" .
<urn:x:s> <{_SH}property> _:p .
_:p <{_SH}path> <urn:x:p> .
_:p <{_SH}minCount> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
"""


def _validate_graph(shapes: str, data: str) -> list[list[str]]:
    from pyshacl import validate as validate_graph
    from rdflib import RDF, SH, Graph

    graph = Graph().parse(BytesIO(data.encode()), format="nt")
    shacl = Graph().parse(BytesIO(shapes.encode()), format="nt")
    _, report, _ = validate_graph(graph, shacl_graph=shacl, inference="none", advanced=False)
    results: list[list[str]] = []
    for result in report.subjects(RDF.type, SH.ValidationResult):
        parts: list[Any] = [
            report.value(result, predicate)
            for predicate in (SH.focusNode, SH.resultPath, SH.value, SH.resultMessage)
        ]
        results.append(["" if part is None else str(part) for part in parts])
    return sorted(results)
