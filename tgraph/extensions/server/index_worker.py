"""Index job process: reads one order line from standard input, writes progress and report lines
to standard output.

The process ends when standard input closes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from tgraph.masking import hide_paths
from tgraph.shortages import explain_shortage

_EVERY = 0.2


def main() -> None:
    """Run the index job ordered on standard input."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a server under nohup ignores it
    order = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    out = sys.stdout
    sys.stdout = sys.stderr
    try:
        _write_message(out, {"report": _run_index(order, out)})
    except KeyboardInterrupt:
        _write_message(out, {"error": "Interrupted."})
    except Exception as error:
        if (shortage := explain_shortage(error)) is None:
            raise
        _write_message(out, {"error": hide_paths(str(shortage))})


def _end_with_parent() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


def _run_index(order: dict[str, Any], out: Any) -> dict[str, Any]:
    import tgraph
    from tgraph.engine.index.run import UploadRun
    from tgraph.engine.json_index_runs import index_json
    from tgraph.engine.progress import Progress
    from tgraph.ingest.files import discover_files

    last: tuple[float, str] = (0.0, "")

    def progress(told: Progress) -> None:
        nonlocal last
        if told.stage != last[1] or time.monotonic() - last[0] > _EVERY:
            last = time.monotonic(), told.stage
            _write_message(out, {"stage": told.stage, "done": told.done, "total": told.total})

    with tgraph.open(
        order["root"], collection=order["collection"], settings=order["settings"]
    ) as graph:
        run = UploadRun(graph.opened.setup(progress))
        report = run.run(discover_files(order["files"]), reinstate=order["reinstate"])
        return index_json(report, graph.root.name)


def _write_message(out: Any, told: dict[str, Any]) -> None:
    out.write(json.dumps(told) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
