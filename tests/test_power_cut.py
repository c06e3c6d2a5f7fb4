"""What was acknowledged is there after a power cut: kill -9 can't show what was never synced."""

from __future__ import annotations

import gzip
import json
import os
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tgraph
from tests.power import COMPILER, Synced

SETTINGS = {"embedding.provider": "hashing", "reader.model": "none"}
TEXTS = {
    "curie.txt": "Marie Curie discovered polonium in Paris. Pierre Curie worked in Paris.\n",
    "ships.txt": "The Fram carried Roald Amundsen to the Bay of Whales. Colin Archer built it.\n",
    "secret.txt": "Ann Miller earns ninety thousand crowns. Ann Miller lives in Bergen.\n",
}
WORK = textwrap.dedent(
    """
    import json, os, sys
    from pathlib import Path
    import tgraph

    documents, root, told, settings = sys.argv[1:]
    out = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def tell(**what):
        os.write(out, (json.dumps(what) + "\\n").encode())
        os.fsync(out)

    def opened(create=False):
        return tgraph.open(root, create=create, settings=json.loads(settings))

    def asked(graph, question):
        answer = graph.ask(question)
        tell(did="ask", session=answer.session, text=answer.text)

    with opened(True) as graph:
        report = graph.index([Path(documents, "curie.txt")])
        tell(did="index", documents=["curie.txt"])
        asked(graph, "What did Marie Curie discover?")
        graph.index([Path(documents, "ships.txt"), Path(documents, "secret.txt")])
        tell(did="index", documents=["ships.txt", "secret.txt"])
        asked(graph, "Who built the Fram?")
        asked(graph, "Where does Ann Miller live?")
        graph.retract("curie.txt", reason="withdrawn by the publisher")
        tell(did="retract", document="curie.txt")
    with opened() as graph:
        graph.purge("secret.txt", reason="a request under the law")
        tell(did="purge", document="secret.txt")
        asked(graph, "Who was carried to the Bay of Whales?")
    """
)


@dataclass
class Told:
    """What the process was told by the moment of the power cut."""

    lines: list[dict[str, Any]]

    def of(self, did: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["did"] == did]


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Synced:
    if COMPILER is None:
        pytest.skip("there is no C compiler, which makes what watches the syncs")
    folder = tmp_path_factory.mktemp("power")
    documents = folder / "documents"
    documents.mkdir()
    for name, text in TEXTS.items():
        (documents / name).write_text(text)
    synced = Synced.make(folder)
    given = (documents, synced.root / "g", synced.told)
    synced.run(sys.executable, "-c", WORK, *given, json.dumps(SETTINGS))
    return synced


def assert_nothing_lost(root: Path, told: Told) -> None:
    """Everything told is there, the record is in order, and the graph can be worked with."""
    if not told.lines:
        return
    with tgraph.open(root, settings=SETTINGS) as graph:
        sessions = {session.explain_id for session in graph.sessions()}
        documents = {Path(document.path).name: document for document in graph.documents()}
        purged = {line["document"] for line in told.of("purge")}
        for line in told.of("ask"):
            assert line["session"] in sessions
            trace = graph.trace(line["session"])
            if not purged:
                assert trace.answer == line["text"]
        for line in told.of("index"):
            assert set(line["documents"]) - purged <= set(documents)
        for line in told.of("retract"):
            assert not documents[line["document"]].standing
        assert graph.audit("integrity").passed
        assert graph.ask("Who discovered polonium?").session
    for name in purged:
        sentence = TEXTS[name].split(".")[0].encode()
        assert [path for path in root.rglob("*") if path.is_file() and holds(path, sentence)] == []


def holds(path: Path, text: bytes) -> bool:
    data = path.read_bytes()
    return text in (gzip.decompress(data) if path.suffix == ".gz" else data)


def cuts(synced: Synced, only_after_telling: bool, folder: Path) -> int:
    """Cuts the power after each sync, or each that said something was done; how often."""
    count = 0
    for path, disk in synced.disks():
        if only_after_telling and path != str(synced.told):
            continue
        lines = disk.content(synced.told).decode().splitlines()
        if str(synced.root / "g") not in disk.roots and lines:
            raise AssertionError("something was told before the graph's folder was synced")
        if not lines:
            continue
        target = folder / f"cut{count}"
        disk.restore(synced.root, target)
        assert_nothing_lost(target / "g", Told([json.loads(line) for line in lines]))
        count += 1
    return count


def test_nothing_acknowledged_is_lost_when_the_power_fails(synced: Synced, tmp_path: Path) -> None:
    assert cuts(synced, only_after_telling=True, folder=tmp_path) == 8


@pytest.mark.skipif(not os.environ.get("TGRAPH_EVERY_CUT"), reason="minutes; by TGRAPH_EVERY_CUT=1")
def test_at_each_sync(synced: Synced, tmp_path: Path) -> None:
    assert cuts(synced, only_after_telling=False, folder=tmp_path) > 50
