"""Server process: runs the application under uvicorn and shuts down without losing work."""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn

from tgraph.errors import UsageError
from tgraph.extensions.server.access import Tokens
from tgraph.extensions.server.app import create_app
from tgraph.extensions.server.connections import (
    ConnectionLimits,
    bounded_protocol,
    raise_descriptor_limit,
)
from tgraph.extensions.server.logs import ServerLog
from tgraph.extensions.server.service import ServerLimits, Service, StopTimes, end_process
from tgraph.shortages import bound_thread_starts, check_store_headroom

log = logging.getLogger("tgraph.extensions.server")

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Serving:
    """Server configuration: address, tokens, graph folder, limits."""

    root: Path
    host: str = "127.0.0.1"
    port: int = 8088
    tokens: Path | None = None
    hosts: tuple[str, ...] = ()
    settings: Mapping[str, Any] | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)
    workers: int = 1
    stop: StopTimes = field(default_factory=StopTimes)

    def check(self) -> None:
        """Raise ``UsageError`` for network access without tokens."""
        if self.host not in LOOPBACK and self.tokens is None:
            raise UsageError(
                f"Every user who reaches {self.host} could read and change the graph.",
                "Make tokens (`tgraph tokens create FILE`) and serve with them "
                "(`--tokens FILE`), or listen on this machine alone.",
            )


class _Server(uvicorn.Server):
    """A server that tells running work to stop, and ends the process within a bounded time."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.stopping.set()
        last = threading.Timer(self._service.stop_times.last, _end_late)
        last.daemon = True
        last.start()
        await super().shutdown(sockets)


def _end_late() -> None:
    log.error("The server did not end by itself, and is ended.")
    time.sleep(0.2)  # for the log
    end_process()


def serve(serving: Serving, told: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; raise ``UsageError`` where listening is impossible."""
    serving.check()
    check_store_headroom(writing=True)
    bound_thread_starts()
    tokens = Tokens(serving.tokens) if serving.tokens else None
    listening = _open_socket(serving)
    address = "[::1]" if ":" in serving.host else serving.host
    told(f"Serving {serving.root} at http://{address}:{listening.getsockname()[1]}/")
    if serving.workers > 1:
        _fork_workers(serving.workers)
    server_log = ServerLog()
    server_log.start()
    service = Service(serving.root, serving.limits, serving.settings, serving.stop)
    person = service.person
    app = create_app(service, tokens, person=person, hosts=serving.hosts)
    connections = ConnectionLimits(connections=raise_descriptor_limit())
    config = uvicorn.Config(
        app,
        http=bounded_protocol(connections, lambda: server.should_exit),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=math.ceil(serving.stop.drain),
        h11_max_incomplete_event_size=64 * 1024,
        lifespan="on",
    )
    server = _Server(config, service)

    def stop(number: int, frame: object) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):  # until uvicorn listens, and when it ends: it
        signal.signal(number, stop)  # raises again what stopped it
    server.run(sockets=[listening])
    server_log.write_out()
    service.leave()


def _open_socket(serving: Serving) -> socket.socket:
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((serving.host, serving.port))
    except OSError as error:
        listening.close()
        raise UsageError(
            f"Nobody can listen at {serving.host}:{serving.port}: {error.strerror}.",
            "Choose another port (`--port`).",
        ) from error
    listening.listen(256)
    return listening


def _fork_workers(workers: int) -> None:
    """Fork worker processes accepting from one socket.

    The parent process waits for workers, forwards stop signals and replaces dead workers."""
    from tgraph.extensions.server.processes import Processes

    if not Processes(workers).run():
        sys.stdout.flush()
        os._exit(0)
