"""Prints how many files and functions of the package four operations run through.

The operations are a question in the mode graph, a why-not of its answer, an index run of one more
document and a retraction, on the example corpus, without a model, each after an equal one.
``--list`` names an operation whose functions are printed.

    python -m tools.traversed [--list OPERATION]
"""

from __future__ import annotations

import argparse
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import tgraph

PACKAGE = f"{Path(tgraph.__file__).parent}/"
CORPUS = Path(__file__).parent.parent / "examples" / "antarctica"
QUESTIONS = ("Who led the Belgica expedition?", "Which ship did Amundsen sail to the South Pole?")
PAGE = "Carsten Borchgrevink visited {city} in 1900. He was born in Oslo.\n"

_codes: set[CodeType] = set()


def _add_code(frame: FrameType, event: str, argument: object) -> None:
    if event == "call":
        _codes.add(frame.f_code)


def trace_functions(operation: Callable[[], object]) -> list[tuple[str, int, str]]:
    """File, line and name of the package's functions that an operation calls in any thread; bodies
    of modules and classes, lambdas and comprehensions are left out."""
    _codes.clear()
    operation()
    return sorted(
        (code.co_filename.removeprefix(PACKAGE), code.co_firstlineno, code.co_qualname)
        for code in tuple(_codes)
        if code.co_filename.startswith(PACKAGE)
        and code.co_flags & inspect.CO_OPTIMIZED
        and not code.co_name.startswith("<")
    )


def main() -> None:
    """Print a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", default="", metavar="OPERATION", help="print its functions")
    listed = parser.parse_args().list
    threading.setprofile(_add_code)
    sys.setprofile(_add_code)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with tgraph.open(root / "graph", create=True) as graph:
            graph.index([CORPUS])
            for question, city in zip(QUESTIONS, ("London", "Hobart"), strict=True):
                page = root / f"{city}.txt"
                page.write_text(PAGE.format(city=city))
                graph.ask(QUESTIONS[0], mode="graph")
                operations: dict[str, Callable[[], object]] = {
                    "question": partial(graph.ask, question, mode="graph"),
                    "why-not": partial(graph.why_not, "last", "Louis Bernacchi"),
                    "page": partial(graph.index, [page]),
                    "retraction": partial(graph.retract, str(page), reason="No longer true."),
                }
                functions = {key: trace_functions(call) for key, call in operations.items()}
    for operation, calls in functions.items():
        print(f"{operation}: {len({file for file, *_ in calls})} files, {len(calls)} functions")
        for file, line, qualified_name in calls if operation == listed else ():
            print(f"  {file}:{line} {qualified_name}")


if __name__ == "__main__":
    main()
