"""Asks Microsoft GraphRAG's questions in one process; run by the Python that has ``graphrag``.

Usage: PYTHON graphrag_driver.py ROOT. Each line of standard input is a JSON array of a mode, a
question and perhaps settings of the mode; for each a line with the CPU seconds that its answer took
is printed. What a question needs of an index is read before, and one event loop serves them all.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from typing import Any

_LEVEL = 2
_RESPONSE = "Multiple Paragraphs"
_GRAPH = ("entities", "communities", "community_reports")
_TABLES = (*_GRAPH, "text_units", "relationships")
_NEEDED = {"local": _TABLES, "drift": _TABLES, "global": _GRAPH, "basic": ("text_units",)}
_MORE: dict[str, dict[str, Any]] = {
    "local": {"covariates": None, "community_level": _LEVEL},
    "drift": {"community_level": _LEVEL},
    "global": {"community_level": _LEVEL, "dynamic_community_selection": False},
    "basic": {},
}
"""The command line's own defaults."""


async def _wait(answer: Awaitable[tuple[Any, Any]]) -> str:
    return str((await answer)[0])


def main(root: Path) -> None:
    api = import_module("graphrag.api")
    config = import_module("graphrag.config.load_config").load_config(root_dir=root)
    read = import_module("pandas").read_parquet
    tables = {name: read(root / "output" / f"{name}.parquet") for name in _TABLES}
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            mode, question, *limits = json.loads(line)
            for name, value in (pair for each in limits for pair in each.items()):
                setattr(getattr(config, f"{mode}_search"), name, value)
            given = {name: tables[name] for name in _NEEDED[mode]} | _MORE[mode]
            search = getattr(api, f"{mode}_search")
            start = time.process_time()
            answer = runner.run(
                _wait(search(config=config, response_type=_RESPONSE, query=question, **given))
            )
            spent = time.process_time() - start
            print(json.dumps({"cpu": spent, "characters": len(answer)}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
