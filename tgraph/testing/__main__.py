"""``python -m tgraph.testing``: a scripted server; prints its base URL and runs until stopped."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Sequence

from tgraph.testing.faults import FAULT_KINDS, Fault
from tgraph.testing.server import ScriptedServer


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tgraph.testing", description="A scripted OpenAI-compatible server."
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--api-key", help="refuse every other key")
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=Fault.parse,
        metavar="KIND[:STEP[:NTH]]",
        help=f"may be repeated; {', '.join(FAULT_KINDS)}",
    )
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ScriptedServer(faults=options.fault, api_key=options.api_key, port=options.port) as server:
        print(server.base_url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
