"""What each audit costs on a graph with many sessions: CPU and wall seconds and peak memory.

A few dozen sessions are really recorded, with the scripted model and hashed vectors, over the
example corpus: in several modes, some failing, some verified or their influence measured, one
document retracted and one changed. The rest are copies of these under other UUIDs and on other
days, each a bundle of its own with its own entry in the chain, loaded in bulk. Every audit then
runs in a process of its own.

Run: python -m benchmarks.audit [--sessions 10000] [--folder FOLDER] [--audits uncited,...]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha1, sha256
from pathlib import Path
from uuid import UUID

from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.opened import now
from tgraph.engine.parts import Parts
from tgraph.errors import ModelError
from tgraph.explain.audit import Audit, list_audits
from tgraph.record.bundle import KINDS
from tgraph.record.chain import Chain
from tgraph.settings import load_settings
from tgraph.store.base import Store
from tgraph.store.folder import GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import publish, read_pointer
from tgraph.store.statements import to_bytes
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import plausible_reply

REPOSITORY = Path(__file__).resolve().parent.parent
CORPUS = REPOSITORY / "examples" / "antarctica"
QUESTIONS = (
    "What happened to the Aurora in May 1915?",
    "Who led the Endurance expedition?",
    "Who reached the South Pole first?",
    "Which ship carried Roald Amundsen?",
    "What caused scurvy?",
    "Who wintered on the Belgica?",
    "What did Filchner discover?",
    "Who commanded the Scotia?",
)
MODES = ("graph", "basic", "graph", "bypass", "graph", "basic", "local")
FAILING = 7
"""Each so many questions the model fails; some sessions of any record have."""
CANDIDATES = 150
"""``--max-subgraph-size`` of the recorded sessions, as by default; the corpus fills it."""
PER_DAY = 40
SKIPPED = ("integrity", "shapes")
"""No queries: they read everything, in time that grows with the record."""

ONE = (sys.executable, "-m", "benchmarks.audit", "--one")

_TIME = re.compile(rb'"(\d{4}-\d\d-\d\d)(T[^"]*"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime>)')
_DIGEST = re.compile(rb"(urn:trustgraph:prov:(?:dropped|association):)([0-9a-f]{40})")


@dataclass(frozen=True, slots=True)
class Original:
    """A recorded session with the later statements about it alone: of each bundle the UUID, the
    kind and the N-Quads."""

    bundles: tuple[tuple[str, str, bytes], ...]


# --- the recorded sessions ----------------------------------------------------------------------


def record(folder: Path) -> None:
    """A graph with a few dozen sessions, as the record writer writes them."""
    asked = iter(range(1_000_000))

    def synthesise(request: object) -> str:
        if next(asked) % FAILING == FAILING - 1:
            raise ModelError("The model gave up.")
        return plausible_reply("synthesise_answer", request.messages)  # type: ignore[attr-defined]

    chat = ScriptedModel({"synthesise_answer": synthesise}, clock=now)
    settings = {"graph": {"max_subgraph_size": CANDIDATES}}
    parts = Parts(
        load_settings(None, settings), folder / "cache", chat=chat, embedder=HashingEmbedder()
    )
    corpus = folder / "corpus"
    shutil.copytree(CORPUS, corpus)
    with tgraph.open(folder / "graph", create=True, parts=parts) as graph:
        graph.index([corpus])
        for number, question in enumerate(QUESTIONS * 4):
            _ask(graph, question, MODES[number % len(MODES)], number)
        graph.retract(str(corpus / "belgica.txt"), reason="It was forged.")
        changed = corpus / "fram.md"
        changed.write_text(changed.read_text("utf-8") + "\nThe Fram lies in Oslo.\n", "utf-8")
        graph.index([changed])


def _ask(graph: KnowledgeGraph, question: str, mode: str, number: int) -> None:
    try:
        answer = graph.ask(question, mode, history=[])
    except tgraph.TgraphError:
        return
    if number % 3 == 0 and answer.sentences:
        graph.verify(answer.session, lexical=True)
    if number % 8 == 1 and mode == "graph":
        graph.influence(answer.session)


def originals(store: Store, catalogue: NamedNode) -> list[Original]:
    """The sessions on record, each with its verifications and influence analyses."""
    about: dict[str, list[tuple[str, str, bytes]]] = {}
    for kind in ("session", "verification", "influence"):
        for quad in store.match(None, v.tg("kind"), Literal(kind), catalogue):
            bundle = _iri(quad.subject)
            lines = to_bytes(store.match(None, None, None, NamedNode(bundle)))
            uuid = bundle.removeprefix(v.bundle_iri(""))
            key = uuid if kind == "session" else _judged(store, KINDS[kind].subject_iri(uuid))
            about.setdefault(key, []).append((uuid, kind, lines))
    return [Original(tuple(bundles)) for _, bundles in sorted(about.items())]


def _judged(store: Store, activity: str) -> str:
    used = store.match(NamedNode(activity), v.prov("used"), None, None)
    return _iri(next(used).object).removeprefix(v.answer_iri(""))


def _iri(term: object) -> str:
    assert isinstance(term, NamedNode)
    return term.value


# --- their copies -------------------------------------------------------------------------------


def multiply(folder: Path, sessions: int) -> int:
    """Bring the graph to so many sessions; how many quads the copies have."""
    collection = GraphFolder.open(folder / "graph").collection("default", create=False)
    catalogue = v.collection_iri("explainability")
    pointer = read_pointer(collection)
    assert pointer is not None
    store = OxigraphStore.open(collection.store)
    recorded = originals(store, NamedNode(catalogue))
    chain = Chain(store, catalogue, now)
    target = folder / "copies.nq"
    quads = 0
    with target.open("wb") as out:
        for number in range(sessions - len(recorded)):
            for lines in copies(recorded[number % len(recorded)], number, chain):
                quads += lines.count(b"\n")
                out.write(lines)
    store.load(target)
    publish(collection, store, pointer.generation, chain.head.sequence, chain.head.hash)
    store.close()
    target.unlink()
    return quads


def copies(original: Original, number: int, chain: Chain) -> Iterator[bytes]:
    """The N-Quads of a copy of a session and of what was said of it, some days earlier, sealed and
    chained as the ledger does it."""
    names = {uuid: _uuid(uuid, number) for uuid, _, _ in original.bundles}
    days = timedelta(days=-1 - number // PER_DAY)
    for uuid, kind, text in original.bundles:
        lines = _renamed(text, names, names[uuid], days)
        yield lines
        yield to_bytes(_entry(chain, kind, names[uuid], lines))


def _renamed(text: bytes, names: Mapping[str, str], uuid: str, days: timedelta) -> bytes:
    for old, new in names.items():
        text = text.replace(old.encode(), new.encode())
    text = _DIGEST.sub(lambda m: m[1] + sha1(m[2] + uuid.encode()).hexdigest().encode(), text)
    return _TIME.sub(lambda m: b'"' + _later(m[1], days) + m[2], text)


def _entry(chain: Chain, kind: str, uuid: str, lines: bytes) -> list[Quad]:
    stated = lines.splitlines(keepends=True)
    of = KINDS[kind]
    begun = min(m[1] + m[2] for m in _TIME.finditer(lines)).partition(b'"')[0].decode()
    started = Literal(begun, datatype=v.xsd("dateTime")) if kind == "session" else None
    return chain.entry(
        v.bundle_iri(uuid),
        kind,
        sha256(b"".join(sorted(stated))).hexdigest(),
        (of.subject_property, NamedNode(of.subject_iri(uuid))),
        (v.tg("sessionStarted"), started),
        (v.tg("quadCount"), len(stated)),
    )


def _uuid(original: str, number: int) -> str:
    return str(UUID(bytes=sha256(f"{original} {number}".encode()).digest()[:16], version=4))


_days: dict[tuple[bytes, timedelta], bytes] = {}


def _later(day: bytes, by: timedelta) -> bytes:
    if (day, by) not in _days:
        _days[day, by] = (datetime.fromisoformat(day.decode()) + by).date().isoformat().encode()
    return _days[day, by]


# --- measuring ----------------------------------------------------------------------------------


def run_one(root: Path, name: str, arguments: Sequence[str]) -> None:
    """Run one audit and print its costs; for a process of its own."""
    with tgraph.open(root) as graph:
        graph.read()
        wall, cpu = time.perf_counter(), time.process_time()
        found = graph.audit(name, *arguments)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "memory": _peak(), "rows": len(found.rows)}))


def _peak() -> float:
    """The peak resident memory of this process in MB; that of ``getrusage`` may be its parent's."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def subjects(graph: KnowledgeGraph) -> dict[str, str]:
    """What bounded audits are asked about: something that many answers share."""
    wanted = (s for s in graph.sessions() if (s.status, s.mode) == ("completed", "graph"))
    trace = graph.trace(next(wanted).explain_id)
    return {
        "session": trace.explain_id,
        "edge": trace.selected[0].item,
        "document": trace.sentences[0].citations[0].document,
    }


def measure(root: Path, audits: Iterable[Audit]) -> None:
    """Print a row for each audit."""
    with tgraph.open(root) as graph:
        known = subjects(graph)
    print("| audit | about | rows | CPU | wall | peak memory |\n|---|---|---|---|---|---|")
    for audit in audits:
        about = [p.kind for p in audit.parameters if p.kind in known]
        shown = f"one {about[0]}" if about else "all"
        done = subprocess.run(
            [*ONE, audit.name, "--folder", str(root.parent), *(known[kind] for kind in about)],
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        if done.returncode:
            print(f"{audit.name}: {done.stderr.strip()[-500:]}", file=sys.stderr)
            print(f"| `{audit.name}` | {shown} | failed | | | |", flush=True)
            continue
        cost = json.loads(done.stdout)
        print(
            f"| `{audit.name}` | {shown} | {cost['rows']} | {cost['cpu']:.2f} s |"
            f" {cost['wall']:.2f} s | {cost['memory']:.0f} MB |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="keep the graph here, and use it again")
    parser.add_argument("--audits", help="only these, with commas between")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        run_one(given.folder / "graph", given.one, given.arguments)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "graph").exists():
            folder.mkdir(parents=True, exist_ok=True)
            record(folder)
            print(f"{given.sessions} sessions, {multiply(folder, given.sessions):,} quads\n")
        wanted = given.audits.split(",") if given.audits else None
        known = [a for a in list_audits() if a.name not in SKIPPED]
        measure(folder / "graph", [a for a in known if wanted is None or a.name in wanted])


if __name__ == "__main__":
    main()
