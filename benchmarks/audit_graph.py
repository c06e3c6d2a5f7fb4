"""A graph with many sessions, for the audits' benchmark.

A few dozen sessions are really recorded, with two scripted models and hashed vectors, over the
example corpus: in several modes, some failing, some without evidence, some verified, evaluated or
their influence measured, one document retracted and one changed, two contradicting each other. The
rest are copies of these under other UUIDs and on other days, each a bundle of its own with its own
entry in the chain. Of the copies every few dozen are spoilt before they are sealed, so that no
audit has nothing to find.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pyoxigraph
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import ModelError
from tgraph.extensions.lab import evaluate, measure_influence
from tgraph.extensions.lab.evaluation.metrics import EvaluationItem
from tgraph.models.base import current_time
from tgraph.record.bundle import KINDS
from tgraph.record.chain import Chain
from tgraph.settings import load_settings
from tgraph.store.base import Store
from tgraph.store.folder import GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import publish_snapshot, read_pointer
from tgraph.store.statements import to_bytes
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import plausible_reply

CORPUS = Path(__file__).resolve().parent.parent / "examples" / "antarctica"
DOUBTS = """Roald Amundsen carried Adrien de Gerlache. Ernest Shackleton built the Nimrod.

Roald Amundsen did not carry Adrien de Gerlache. Ernest Shackleton never built the Nimrod.
"""
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
TRUTH = "It sailed south in 1914."
MODES = ("graph", "basic", "graph", "bypass", "graph", "basic", "local")
FAILING, EMPTY = 5, 9
"""Each so many questions the model fails, or finds nothing; some sessions of any record have."""
CANDIDATES = 150
"""``--max-subgraph-size`` of the recorded sessions, as by default; the corpus fills it."""
PER_DAY = 40
SPOILT = 25
"""Each so many rounds of copies are spoilt."""

_TIME = re.compile(rb'"(\d{4}-\d\d-\d\d)(T[^"]*"\^\^<http://www\.w3\.org/2001/XMLSchema#dateTime>)')
_DIGEST = re.compile(rb"(urn:trustgraph:prov:(?:dropped|association):)([0-9a-f]{40})")
_BEGUN = re.compile(
    rb'<urn:trustgraph:session:[^>]*> <http://www.w3.org/ns/prov#startedAtTime> "([^"]*)"'
)
_ANSWER = re.compile(rb"<urn:trustgraph:prov:answer:([0-9a-f-]{36})>")
_CITED = re.compile(
    rb"<[^>]*:sentence:[^>]*> <[^>]*#wasDerivedFrom> <[^>]*:edge:[^>]*> <[^>]*> \.\n"
)
_GENERATION = re.compile(rb'(/ns/generation> ")\d+"')


@dataclass(frozen=True, slots=True)
class Original:
    """A recorded session with the later statements about it alone: of each bundle the UUID, the
    kind and the N-Quads."""

    bundles: tuple[tuple[str, str, bytes], ...]


def make(folder: Path, sessions: int) -> int:
    """A graph of so many sessions in ``folder/graph``; how many quads the copies have."""
    folder.mkdir(parents=True, exist_ok=True)
    record(folder)
    return multiply(folder, sessions)


# --- the recorded sessions ----------------------------------------------------------------------


def record(folder: Path) -> None:
    """A graph with a few dozen sessions, as the record writer writes them."""
    corpus = folder / "corpus"
    shutil.copytree(CORPUS, corpus)
    (corpus / "doubts.txt").write_text(DOUBTS, "utf-8")
    numbers = range(4 * len(QUESTIONS))
    for model, some in (("scripted-1", numbers[::2]), ("scripted-2", numbers[1::2])):
        writer = Writer()
        parts = _parts(folder, model, writer)
        with tgraph.open(folder / "graph", create=True, parts=parts) as graph:
            if some[0] == 0:
                graph.index([corpus])
            for number in some:
                writer.number = number
                _ask(graph, number)
            if some[0] == 1:
                _change(graph, corpus)


class Writer:
    """Writes the answers; fails at some numbers, finds nothing at others."""

    number = 0

    def __call__(self, request: Any) -> str:
        if self.number % FAILING == FAILING - 1:
            raise ModelError("The model gave up.")
        if self.number % EMPTY == EMPTY - 1:
            return '{"no_evidence": true}'
        return plausible_reply("synthesise_answer", request.messages)


def _parts(folder: Path, model: str, writer: Writer) -> Components:
    return Components(
        load_settings(None, {"graph": {"max_subgraph_size": CANDIDATES}}),
        folder / "cache",
        chat=ScriptedModel({"synthesise_answer": writer}, name=model, clock=current_time),
        embedder=HashingEmbedder(),
    )


def _ask(graph: KnowledgeGraph, number: int) -> None:
    question, mode = QUESTIONS[number // 4], MODES[number % len(MODES)]
    if number % 8 == 3:
        evaluate(graph, [EvaluationItem(str(number), question, TRUTH)], mode)
        return
    try:
        answer = graph.ask(question, mode, history=[])
    except tgraph.TgraphError:
        return
    if number % 3 == 0 and answer.sentences:
        graph.verify(answer.session, lexical=True)
    if number % 4 == 1 and answer.sentences and mode == "graph":
        measure_influence(graph, answer.session)


def _change(graph: KnowledgeGraph, corpus: Path) -> None:
    graph.retract(str(corpus / "belgica.txt"), reason="It was forged.")
    changed = corpus / "fram.md"
    changed.write_text(changed.read_text("utf-8") + "\nThe Fram lies in Oslo.\n", "utf-8")
    graph.index([changed])


def originals(store: Store, catalogue: NamedNode) -> list[Original]:
    """The sessions on record, each with its verifications, evaluations and influence analyses."""
    about: dict[str, list[tuple[str, str, bytes]]] = {}
    for kind in ("session", "verification", "evaluation", "influence"):
        for quad in store.match(None, v.tg("kind"), Literal(kind), catalogue):
            bundle = _iri(quad.subject)
            lines = to_bytes(store.match(None, None, None, NamedNode(bundle)))
            uuid = bundle.removeprefix(v.bundle_iri(""))
            for key in (uuid,) if kind == "session" else _judged(lines):
                about.setdefault(key, []).append((uuid, kind, lines))
    return [Original(tuple(bundles)) for _, bundles in sorted(about.items())]


def _judged(lines: bytes) -> set[str]:
    """The sessions whose answers a later statement is about."""
    return {found.decode() for found in _ANSWER.findall(lines)}


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
    chain = Chain(store, catalogue, current_time)
    target = folder / "copies.nq"
    quads = 0
    with target.open("wb") as out:
        for number in range(sessions - len(recorded)):
            for lines in copies(recorded[number % len(recorded)], number, len(recorded), chain):
                quads += lines.count(b"\n")
                out.write(lines)
    store.load(target)
    store.close()
    _compact(collection.store)
    store = OxigraphStore.open(collection.store)
    publish_snapshot(collection, store, pointer.generation, chain.head.sequence, chain.head.hash)
    store.close()
    target.unlink()
    return quads


def _compact(database: Path) -> None:
    """Merge the files that bulk loads leave, each of which every look-up would search: Oxigraph's
    database does so by itself where sessions are written one at a time."""
    store = pyoxigraph.Store(str(database))
    store.optimize()
    del store


def copies(original: Original, number: int, recorded: int, chain: Chain) -> Iterator[bytes]:
    """The N-Quads of a copy of a session and of what was said of it, some days earlier, sealed and
    chained as the ledger does it."""
    names = {uuid: _uuid(uuid, number) for uuid, _, _ in original.bundles}
    days = timedelta(days=-1 - number // PER_DAY)
    spoil = number // recorded % SPOILT == SPOILT - 1
    for uuid, kind, text in original.bundles:
        lines = _renamed(text, names, names[uuid], days)
        if spoil and kind == "session":
            lines = spoilt(lines, names[uuid])
        yield lines
        yield to_bytes(_entry(chain, kind, names[uuid], lines))


def spoilt(lines: bytes, uuid: str) -> bytes:
    """The session's quads with something wrong for each audit that looks for it: it read knowledge
    that is newer than it, its sentences leave out what they are derived from, it ended a second
    time and before it began, is an entity too, and was retrieved from its own answer."""
    graph = NamedNode(v.bundle_iri(uuid))
    session, answer = NamedNode(v.session_iri(uuid)), NamedNode(v.answer_iri(uuid))
    retrieval = NamedNode(v.retrieval_iri(uuid))
    early = Literal("1900-01-01T00:00:00Z", datatype=v.xsd("dateTime"))
    wrong = [
        Quad(session, v.prov("endedAtTime"), early, graph),
        Quad(session, v.RDF_TYPE, v.prov("Entity"), graph),
        Quad(retrieval, v.prov("wasDerivedFrom"), answer, graph),
    ]
    return _GENERATION.sub(rb'\g<1>99"', _CITED.sub(b"", lines)) + to_bytes(wrong)


def _renamed(text: bytes, names: Mapping[str, str], uuid: str, days: timedelta) -> bytes:
    for old, new in names.items():
        text = text.replace(old.encode(), new.encode())
    text = _DIGEST.sub(lambda m: m[1] + sha1(m[2] + uuid.encode()).hexdigest().encode(), text)
    return _TIME.sub(lambda m: b'"' + _later(m[1], days) + m[2], text)


def _entry(chain: Chain, kind: str, uuid: str, lines: bytes) -> list[Quad]:
    stated = lines.splitlines(keepends=True)
    of = KINDS[kind]
    begun = _BEGUN.search(lines)
    started = Literal(begun[1].decode(), datatype=v.xsd("dateTime")) if begun else None
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
