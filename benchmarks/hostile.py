"""How ``tgraph serve`` bears clients a third of which are hostile.

A server process is started on a graph of examples/antarctica. Clients ask over REST, each as soon
as it has its answer: to warm up, then alone, then beside half as many others, in equal parts:

- idle: they connect and are silent;
- slow: they send a request byte by byte;
- deaf: they ask for a large result of SPARQL and don't read it;
- malformed: what they send is no HTTP, or has wrong lengths, hosts and heads;
- reconnecting: they send half a request and go, again and again.

The exit code is 1 where the p95 of those who ask more than doubles, one of them gets no answer or
an error, or an acknowledged answer is not on record.

Run: python -m benchmarks.hostile [--clients 20] [--seconds 60] [--modes basic,bm25,graph]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import cycle
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.load import (
    API,
    CORPUS,
    Load,
    Tally,
    check_record,
    lost_by_rest,
    questions_of_examples,
    serving,
    tgraph,
)

PAUSE = 0.05
"""Seconds between two attempts of a hostile client."""
_CROSS = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"
_HEAD = f"POST {API}/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
MALFORMED = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: [evil\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"y" * 200_000 + b"\r\n\r\n",
    f"{_HEAD}Content-Length: -1\r\n\r\n".encode(),
    f"{_HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    f"{_HEAD}Content-Length: 9\r\n\r\n{{{{{{{{{{{{{{{{{{".encode(),
    b"POST /sparql HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd",
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Hostile = Callable[[Streams], Awaitable[None]]


async def stay_idle(streams: Streams) -> None:
    await streams[0].read()


async def send_slowly(streams: Streams) -> None:
    for byte in f"{_HEAD}Content-Length: 90\r\n\r\n{{".encode() + b" " * 90:
        streams[1].write(bytes([byte]))
        await streams[1].drain()
        await asyncio.sleep(0.3)


async def stay_deaf(streams: Streams) -> None:
    target = f"/sparql?query={quote(_CROSS)}"
    streams[1].write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await asyncio.sleep(600)


def send_malformed() -> Hostile:
    """A client that sends each of the malformed requests in turn."""
    texts = cycle(MALFORMED)

    async def send(streams: Streams) -> None:
        streams[1].write(next(texts))
        await asyncio.wait_for(streams[0].read(4096), 5)

    return send


async def go_half_way(streams: Streams) -> None:
    streams[1].write(_HEAD[:40].encode())
    await streams[1].drain()


KINDS: tuple[Callable[[], Hostile], ...] = (
    lambda: stay_idle,
    lambda: send_slowly,
    lambda: stay_deaf,
    send_malformed,
    lambda: go_half_way,
)


async def harass(address: str, behave: Hostile) -> None:
    """Connect and behave so, again and again, until it is cancelled."""
    place = urlsplit(address)
    while True:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            streams = await asyncio.open_connection(place.hostname, place.port)
            with closing(streams[1]):
                await behave(streams)
        await asyncio.sleep(PAUSE)


@contextmanager
def harassing(address: str, number: int) -> Iterator[None]:
    """So many hostile clients, of each kind in turn, for as long as it lasts."""
    kinds = cycle(KINDS)
    tasks = [asyncio.ensure_future(harass(address, next(kinds)())) for _ in range(number)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()


async def ask(load: Load, clients: int, seconds: float, hostile: int) -> Tally:
    """What clients saw who asked beside so many hostile ones."""
    load.tally = Tally()
    with harassing(load.address, hostile):
        await load.run(clients, seconds)
    return load.tally


def percentile(tally: Tally, percent: int) -> float:
    """Seconds within which so many of a hundred answers came."""
    seconds = [value for each in tally.seconds.values() for value in each]
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1]


def report(name: str, tally: Tally, clients: int) -> None:
    """A row of the table."""
    numbers = " | ".join(f"{percentile(tally, at):.2f} s" for at in (50, 95, 99))
    unserved = clients - len([number for number, answers in tally.served.items() if answers])
    waits, errors = sum(tally.waits.values()), sum(tally.errors.values())
    print(f"| {name} | {len(tally.sessions)} | {numbers} | {unserved} | {waits} | {errors} |")


def run(root: Path, options: argparse.Namespace) -> bool:
    """One measurement; whether everything holds."""
    clients, seconds = options.clients, options.seconds
    with serving(root, []) as server:
        load = Load(server.address, options.modes.split(","), questions_of_examples())
        print("| | answers | p50 | p95 | p99 | not served | told to wait | errors |")
        print("|---|---|---|---|---|---|---|---|")
        tallies = []
        for name, length, hostile in (
            ("warm-up", seconds / 3, 0),
            ("alone", seconds, 0),
            ("beside hostile clients", seconds, clients // 2),
        ):
            tallies.append(asyncio.run(ask(load, clients, length, hostile)))
            report(name, tallies[-1], clients)
        sessions = [session for tally in tallies for session in tally.sessions]
        lost = lost_by_rest(server.address, sessions)
        server.process.terminate()
        status = server.process.wait(60)
    _, alone, beside = tallies
    factor = percentile(beside, 95) / percentile(alone, 95)
    served = all(len(tally.served) == clients and not tally.errors for tally in tallies)
    print(f"\np95 beside hostile clients: {factor:.2f} times; {lost} lost; status {status}")
    return check_record(root, sessions) and served and not lost and factor <= 2 and status == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=20, help="who ask; half as many are hostile")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--modes", default="basic,bm25,graph", help="parted by commas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "graph"
        made = tgraph("index", str(CORPUS), "-r", str(root), "--quiet", "--prepare")
        if made.returncode:
            raise SystemExit(made.stderr)
        sys.exit(0 if run(root, options) else 1)


if __name__ == "__main__":
    main()
