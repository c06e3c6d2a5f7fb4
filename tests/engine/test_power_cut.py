"""What was acknowledged is there after a power cut: kill -9 can't show what was never synced."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import sys
import textwrap
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode

import tgraph
from tests.support.power import COMPILER, Synced

pytestmark = pytest.mark.slow

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
    from tgraph.extensions.operations import back_up, restore

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
        for event in graph.stream("Who built the Fram?"):
            os.write(out, (json.dumps({"did": "stage", "iri": event.explain_id}) + "\\n").encode())
        os.fsync(out)
        asked(graph, "Where does Ann Miller live?")
        graph.retract("curie.txt", reason="withdrawn by the publisher")
        tell(did="retract", document="curie.txt")
    with opened() as graph:
        graph.purge("secret.txt", reason="a request under the law")
        tell(did="purge", document="secret.txt")
        asked(graph, "Who was carried to the Bay of Whales?")
        back_up(graph, root + ".tar")
    restore(root + ".tar", root + "-restored")
    """
)


COLLECTION = "g/collections/default"
_VARIABLE = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"[0-9a-f]{64}(\.gz)?", "HASH"),
    (r"(?<=librarian/)[0-9a-f]{2}(?=/|$)", "HA"),
    (r"(?<=snapshots/)\d+", "N"),
    (r"\.\d+\.\d+(?=\.tmp$)", ""),
)


def in_words(synced: Synced, path: str) -> str:
    """The path below the collection, without what differs from run to run."""
    said = os.path.relpath(path, synced.root / COLLECTION) if path else ""
    for pattern, word in _VARIABLE:
        said = re.sub(pattern, word, said)
    return said


def order(synced: Synced, pattern: str) -> list[str]:
    """The system calls on what matches the pattern, in words; what is repeated at once, once."""
    said = []
    for call in synced.calls():
        path, target = in_words(synced, call.path), in_words(synced, call.target)
        if re.fullmatch(pattern, path) and not (call.name == "unlink" and path.endswith(".tmp")):
            said.append(f"{call.name} {path}" + (f" to {target}" if call.target else ""))
    return [each for each, _ in groupby(said)]


@dataclass
class Told:
    """What the process was told by the moment of the power cut."""

    lines: list[dict[str, Any]]

    def of(self, did: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["did"] == did]


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Synced:
    if COMPILER is None or sys.platform != "linux":
        pytest.skip("what watches the syncs is made by a C compiler, and for Linux")
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
        sessions = {session.explain_id for session in graph.sessions.summaries()}
        documents = {Path(document.path).name: document for document in graph.documents.summaries()}
        purged = {line["document"] for line in told.of("purge")}
        for line in told.of("ask"):
            assert line["session"] in sessions
            answer = graph.trace(line["session"]).answer
            if not purged:
                being_purged = answer.startswith("[erased ") and told.of("retract")
                assert answer == line["text"] or being_purged
        for line in told.of("stage"):
            stage = line["iri"] and NamedNode(line["iri"])
            assert not stage or next(graph.opened.read().match(stage), None)
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
        shutil.rmtree(target)
        count += 1
    return count


# --- the order of the system calls ---

TOLD = r"(\.\./)+told"
CONTENTS = r"librarian(/HA)?(/\+?HASH)?|librarian/tmp/\.parts\.tmp"


def durably(folder: str, name: str) -> list[str]:
    """How a file comes to be there whole or not at all, once and for ever."""
    place = "" if folder == "." else f"{folder}/"
    temporary = f"{place}.{name}.tmp"
    renamed = f"rename {temporary} to {place}{name}"
    return [f"write {temporary}", f"fsync {temporary}", renamed, f"fsync {folder}"]


def places(calls: list[str], call: str) -> list[int]:
    return [n for n, each in enumerate(calls) if each == call]


def test_a_stage_is_synced_before_anybody_is_told(synced: Synced) -> None:
    """A journal is there under its name before its first stage, and each stage before its event."""
    calls = order(synced, rf"journals|journals/\.?UUID\.journal(\.tmp)?|{TOLD}")
    new, journal = "journals/.UUID.journal.tmp", "journals/UUID.journal"
    begun = places(calls, f"rename {new} to {journal}")
    assert len(begun) == 4
    for at in begun:
        assert [calls[at - 1], calls[at + 1]] == [f"write {new}", "fsync journals"]
    told = [n for n, call in enumerate(calls) if re.fullmatch(f"write {TOLD}", call)]
    ends = (f"write {journal}", f"fsync {journal}")
    stages = [calls[n - 2 : n] for n in told if n > 1 and calls[n - 1] in ends]
    assert len(stages) > 5
    assert stages == [list(ends)] * len(stages)


def test_a_commit_comes_after_all_that_it_commits(synced: Synced) -> None:
    run = "staging/UUID"
    lists = rf"staging|{run}|{run}/(added\.nq|removed\.nq|\.?commit\.json(\.tmp)?)"
    calls = order(synced, f"{lists}|{CONTENTS}")
    commits = places(calls, f"rename {run}/.commit.json.tmp to {run}/commit.json")
    assert len(commits) == 4
    for at in commits:
        assert calls[at - 9 : at + 3] == [
            "write librarian/tmp/.parts.tmp",
            "fsync librarian/tmp/.parts.tmp",
            "rename librarian/tmp/.parts.tmp to librarian/HA/HASH",
            "fsync librarian/HA",
            f"fsync {run}/added.nq",
            f"fsync {run}/removed.nq",
            f"fsync {run}",
            *durably(run, "commit.json"),
            "fsync staging",
        ]


def test_contents_are_durable_before_they_are_named_so(synced: Synced) -> None:
    """And the folders that they lie in, also those made for contents that are not yet."""
    calls = order(synced, CONTENTS)
    at = calls.index("rename librarian/HA/+HASH to librarian/HA/HASH")
    assert calls[at - 3 : at] == [
        "fsync librarian/HA/+HASH",
        "fsync librarian/HA",
        "fsync librarian",
    ]
    named = places(calls, "rename librarian/tmp/.parts.tmp to librarian/HA/HASH")
    for at in named:
        assert calls[:at].count("fsync librarian") > 0


def test_vectors_are_whole_before_their_manifest_names_them(synced: Synced) -> None:
    folder = "staging/UUID/vectors"
    calls = order(synced, rf"{folder}(/\.(edge\.(rows|ends)\.\d+|edge\.json)\.tmp)?")
    manifests = places(calls, durably(folder, "edge.json")[2])
    assert len(manifests) == 4
    for at in manifests:
        said = [
            re.sub(r"\.(\d+|[0-9a-f]{16})(?=\.tmp|$)", "", call) for call in calls[at - 9 : at + 2]
        ]
        rows, ends = (durably(folder, f"edge.{kind}")[:3] for kind in ("rows", "ends"))
        assert said == [*rows, *ends, f"fsync {folder}", *durably(folder, "edge.json")]


def test_a_pointer_names_what_is_durable(synced: Synced) -> None:
    """And what was sealed is deleted from where it waited only when the pointer is durable."""
    checkpoint = "snapshots/N/store"
    calls = order(
        synced,
        r"\.|snapshots(/N(/vectors|/store(\.tmp(/CURRENT)?)?)?)?|\.current\.json\.tmp"
        r"|journals/UUID\.journal|staging/UUID/commit\.json",
    )
    pointer = durably(".", "current.json")
    published = places(calls, pointer[2])
    assert len(published) > 8
    for number, at in enumerate(published):
        vectors = ["fsync snapshots/N/vectors"] if number else []
        begun = at - 8 - len(vectors)
        assert calls[begun : at + 2] == [
            f"write {checkpoint}.tmp/CURRENT",
            f"fsync {checkpoint}.tmp/CURRENT",
            f"rename {checkpoint}.tmp to {checkpoint}",
            f"fsync {checkpoint}",
            *vectors,
            "fsync snapshots/N",
            "fsync snapshots",
            *pointer,
        ]
    for waited in ("unlink journals/UUID.journal", "unlink staging/UUID/commit.json"):
        assert len(places(calls, waited)) > 2
        for at in places(calls, waited):
            before = [call for call in calls[:at] if not call.startswith("unlink")]
            assert before[-4:] == pointer


def test_an_erasure_is_whole_before_it_is_final_and_done_before_it_is_over(
    synced: Synced,
) -> None:
    final = durably("erasure", "commit.json")
    calls = order(
        synced,
        r"erasure(/\.?(store|commit\.json)(\.tmp)?|/librarian/HA(/\+?HASH)?)?"
        r"|\.|\.current\.json\.tmp|staging|journals|cache|snapshots|librarian(/HA)?",
    )
    at, over = calls.index(final[2]), calls.index("unlink erasure/commit.json")
    moved = "rename erasure/librarian/HA/HASH to librarian/HA/HASH"
    assert calls[at - 4 : at] == ["fsync staging", "fsync journals", *final[:2]]
    assert {"fsync erasure/store", "fsync erasure"} <= set(calls[at - 10 : at - 4])
    assert calls[at + 1 : at + 4] == [final[3], "rename erasure/store to store", "fsync ."]
    published = calls.index(durably(".", "current.json")[2], at)
    assert calls[published - 6 : published - 3] == [moved, "fsync librarian/HA", "fsync librarian"]
    everywhere = {"fsync staging", "fsync journals", "fsync snapshots", "fsync librarian"}
    assert everywhere <= set(calls[published:over])
    assert calls[over + 1] == "fsync erasure"


def test_a_backup_and_what_it_is_restored_to_appear_when_they_are_durable(synced: Synced) -> None:
    above = "../../.."
    calls = order(synced, rf"{above}|{above}/(\.?g\.tar(\.tmp)?|\.g-restored\.restoring[^/]*)")
    backup = durably(above, "g.tar")
    at = calls.index(backup[2])
    assert calls[at - 2 : at + 2] == backup
    (renamed,) = [call for call in calls if call.endswith(f"to {above}/g-restored")]
    at = calls.index(renamed)
    assert calls[at - 1 : at + 2] == [f"sync {above}", renamed, f"fsync {above}"]


# --- power cuts ---


def test_nothing_acknowledged_is_lost_when_the_power_fails(synced: Synced, tmp_path: Path) -> None:
    assert cuts(synced, only_after_telling=True, folder=tmp_path) == 8


@pytest.mark.skipif(not os.environ.get("TGRAPH_EVERY_CUT"), reason="minutes; by TGRAPH_EVERY_CUT=1")
def test_at_each_sync(synced: Synced, tmp_path: Path) -> None:
    assert cuts(synced, only_after_telling=False, folder=tmp_path) > 50
