"""A writer and two replicas, each a host with a network of its own, over one storage: whoever is
cut off goes on, and once healed all have the same chain."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from tests.support.endpoints import s3_options, s3_server
from tests.support.workers import open_graph
from tgraph.cli.main import cli
from tgraph.errors import TgraphError

pytestmark = pytest.mark.slow

pytest.importorskip("fsspec")

URL = "s3://graphs/polar"
QUESTION = "Who reached the South Pole?"
HUB = "10.213.0.1"
_PATIENCE = 120.0
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET


# --- networks ---


def ip(*call: str) -> None:
    subprocess.run(["ip", *call], check=True, capture_output=True, text=True)


@dataclass(frozen=True)
class Network:
    """The network namespace of a host, with a cable to the hub."""

    name: str
    hub: str

    @property
    def cable(self) -> str:
        """The hub's end of it."""
        return self.name[-15:]

    def lay(self, number: int) -> None:
        ip("netns", "add", self.name)
        inside = "netns", "exec", self.name, "ip"
        cable = "link", "add", self.cable, "type", "veth", "peer", "name", "eth0"
        ip("-n", self.hub, *cable, "netns", self.name)
        ip("-n", self.hub, "link", "set", self.cable, "master", "bridge", "up")
        for call in (
            ("addr", "add", f"10.213.0.{number}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            ip(*inside, *call)

    def cut(self) -> None:
        ip("-n", self.hub, "link", "set", self.cable, "down")

    def heal(self) -> None:
        ip("-n", self.hub, "link", "set", self.cable, "up")

    def slow(self, rate: str) -> None:
        """What comes to the host comes at that rate."""
        shape = "tbf", "rate", rate, "burst", "5kb", "latency", "200ms"
        call = ["tc", "-n", self.hub, "qdisc", "add", "dev", self.cable, "root", *shape]
        subprocess.run(call, check=True, capture_output=True)

    def fast(self) -> None:
        call = ["tc", "-n", self.hub, "qdisc", "del", "dev", self.cable, "root"]
        subprocess.run(call, check=True, capture_output=True)


@pytest.fixture
def networks() -> Iterator[list[Network]]:
    """Those of three hosts; the hub's is their ``hub``."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("networks are made by ip and tc (iproute2)")
    hub = f"tg{os.getpid()}hub"
    made = [Network(f"tg{os.getpid()}{name}", hub) for name in ("w", "r", "s")]
    with ExitStack() as stack:
        try:
            for name in (hub, *(network.name for network in made)):
                stack.callback(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
            ip("netns", "add", hub)
            ip("-n", hub, "link", "add", "bridge", "type", "bridge")
            ip("-n", hub, "addr", "add", f"{HUB}/24", "dev", "bridge")
            ip("-n", hub, "link", "set", "bridge", "up")
            for number, network in enumerate(made, 2):
                network.lay(number)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"networks can't be made here: {error.stderr.strip()}")
        yield made


# --- hosts ---


@dataclass
class Host:
    """A process in a network, which runs commands and asks; what they print is in ``log``."""

    network: Network
    root: Path
    pipe: Connection
    process: Any
    log: Path

    def begin(self, *call: str) -> None:
        self.pipe.send(call)

    def ended(self) -> int:
        """The exit code of what was begun."""
        assert self.pipe.poll(_PATIENCE), self.said()
        return int(self.pipe.recv())

    def run(self, *call: str) -> int:
        self.log.write_text("")
        self.begin(*call)
        return self.ended()

    def said(self) -> str:
        return self.log.read_text()

    def end(self) -> None:
        self.process.kill()
        self.process.join()


def serve(pipe: Connection, network: str, server: str, root: str, log: str) -> None:
    """Runs commands in the network, one after the other."""
    with Path(f"/run/netns/{network}").open() as file:
        assert ctypes.CDLL(None).setns(file.fileno(), _NEW_NETWORK) == 0
    use(server)
    while True:
        call = pipe.recv()
        with Path(log).open("a", buffering=1) as said, redirect_stdout(said), redirect_stderr(said):
            pipe.send(cli.main([*call, "-q", "-r", root], standalone_mode=False) or 0)


def use(server: str) -> None:
    """Reach the server by short patience."""
    options = s3_options(server, connect_timeout=2, read_timeout=2, retries={"max_attempts": 0})
    import_module("fsspec.config").conf["s3"] = options
    import_module("s3fs").S3FileSystem.retries = 1


@pytest.fixture
def hosts(networks: list[Network], tmp_path: Path) -> Iterator[list[Host]]:
    """The writer, with a graph, and two replicas to be."""
    hub = networks[0].hub
    context = multiprocessing.get_context("forkserver")
    with ExitStack() as stack:
        server = stack.enter_context(s3_server(tmp_path, "ip", "netns", "exec", hub, host=HUB))
        made = []
        for network in networks:
            here, there = context.Pipe()
            root, log = tmp_path / network.name[-1], tmp_path / f"{network.name[-1]}.log"
            arguments = there, network.name, server, str(root), str(log)
            process = context.Process(target=serve, args=arguments, daemon=True)
            process.start()
            made.append(Host(network, root, here, process, log))
            stack.callback(made[-1].end)
        yield made


# --- what must hold ---


def write(host: Host, name: str, text: str) -> None:
    path = host.root.parent / f"{name}.txt"
    path.write_text(text)
    with open_graph(host.root) as graph:
        assert not graph.index([path]).failed


def noise(seed: int) -> str:
    """Text that takes a while to be sent."""
    words = random.Random(seed)
    return "\n".join(f"{words.getrandbits(256):x}" for _ in range(1_000))


def ask(host: Host) -> tuple[str, str]:
    """An answer, and the session, which is on record from then on."""
    with open_graph(host.root) as graph:
        answer = graph.ask(QUESTION, history=())
    return answer.text, answer.session


def head(host: Host) -> tuple[int, str]:
    """What readers see."""
    with open_graph(host.root) as graph:
        found = graph.integrity()
        assert found.ok
        return found.sequence, found.head


def contents(host: Host) -> int:
    return sum(1 for _ in host.root.glob("collections/default/librarian/??/*"))


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)  # what is looked at is a graph that is opened


def fails(host: Host) -> None:
    """What was begun ends in a sentence that says what is wrong, and what that means."""
    assert host.ended() == 5, host.said()
    assert "can't be reached" in host.said()
    assert "Nothing is lost" in host.said()
    assert "Traceback" not in host.said()


def cut_in_the_middle(host: Host) -> None:
    """Cut the network off while the host follows."""
    had = contents(host)
    host.network.slow("200kbit")
    host.log.write_text("")
    host.begin("follow", URL)
    until(lambda: contents(host) > had + 2)
    host.network.cut()
    fails(host)
    host.network.fast()


def test_hosts_that_are_cut_off_go_on_and_end_with_the_same_chain(hosts: list[Host]) -> None:
    writer, one, two = hosts
    write(writer, "a", "Scott reached South Pole.\n")
    for seed in range(2):
        write(writer, f"noise{seed}", noise(seed))
    assert writer.run("ship", URL) == 0, writer.said()
    one.begin("follow", URL, "--every", "1")

    cut_in_the_middle(two)  # of its first round: there is nothing to be seen yet
    with pytest.raises(TgraphError):
        ask(two)
    two.network.heal()
    assert two.run("follow", URL) == 0, two.said()
    until(lambda: "Followed" in one.said())
    assert head(one) == head(two) == head(writer)
    answers = {ask(host)[0] for host in hosts}
    assert len(answers) == 1

    write(writer, "b", "Amundsen reached South Pole.\n")
    write(writer, "noise", noise(9))
    assert writer.run("ship", URL) == 0
    before = head(two)
    cut_in_the_middle(two)  # of a later one: what was there is there still
    assert head(two) == before
    there, kept = ask(two)
    assert {there} == answers

    writer.network.cut()
    one.network.cut()
    until(lambda: "Next try in 1 s" in one.said())
    write(writer, "c", "Nansen led Fram Expedition.\n")
    acknowledged = {kept, *(ask(host)[1] for host in hosts)}
    writer.log.write_text("")
    writer.begin("ship", URL)
    fails(writer)

    one.network.heal()  # the replicas go on without the writer
    two.network.heal()
    assert two.run("follow", URL) == 0, two.said()
    assert head(two) > before
    assert "sessions handed over: 3" in two.said()
    until(lambda: sum(map(int, re.findall("handed over: (.+?)\\.", one.said()))) == 2)

    writer.network.heal()
    assert writer.run("ship", URL) == 0, writer.said()
    assert two.run("follow", URL) == 0
    until(lambda: head(one) == head(writer))
    assert head(two) == head(writer)
    for host in hosts:
        with open_graph(host.root) as graph:
            assert acknowledged <= {each.explain_id for each in graph.sessions.summaries()}
    assert len({ask(host)[0] for host in hosts}) == 1
    os.kill(one.process.pid, signal.SIGINT)
    assert one.ended() == 130
    assert "Traceback" not in one.said()
