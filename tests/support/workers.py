"""Work that tests do in processes of their own, which they kill or set against each other.

A fork server imports tgraph once and never opens a store, so that a process is cheap.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from pyoxigraph import NamedNode, Quad

import tgraph
from tests.support.paths import REPOSITORY
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.progress import Progress
from tgraph.errors import TgraphError
from tgraph.extract.base import Extractor
from tgraph.index.standing_knowledge import term_value
from tgraph.librarian import Librarian
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Span,
)
from tgraph.models.base import CallSink, current_time, no_sink
from tgraph.record import ledger
from tgraph.record.chain import GENESIS, Chain, Head, canonical_hash, chain_hash
from tgraph.settings import load_settings
from tgraph.store.base import Store
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import Snapshot
from tgraph.store.statements import to_bytes

QUESTION = "Who discovered polonium?"
CATALOGUE = v.collection_iri("explainability")


# --- a small extractor --------------------------------------------------------------------------


_STATEMENT = re.compile(
    "(.+?) (discovered|worked in|won|lived in|studied|led|reached|Reached|is called|lies in|lies-in"
    r"|wrote) (.+?)\.?"
)


class LineExtractor:
    """Reads lines such as ``Marie Curie discovered radium.``, and ``Name = Alias``."""

    agent = Agent("method", "lines", "1")
    key = "lines-1"
    prompts: tuple[Prompt, ...] = ()

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        entities: dict[str, ExtractedEntity] = {}
        relationships = []
        start = chunk.start
        for line in chunk.text.splitlines(keepends=True):
            quote = line.strip()
            span = Span(start, start + len(quote), quote)
            start += len(line)
            stated = _STATEMENT.fullmatch(quote)
            if stated:
                subject, predicate, obj = stated.groups()
                relationships.append(
                    ExtractedRelationship(subject, predicate, obj, quote, ("k",), 5, span)
                )
                for name in (subject, obj):
                    entities.setdefault(name, ExtractedEntity(name, "thing", "", (), span))
            elif " = " in line:
                name, alias = (part.strip() for part in quote.split(" = "))
                entities[name] = ExtractedEntity(name, "thing", "", (alias,), span)
        reply = sha256(chunk.text.encode()).hexdigest()
        return Extraction(chunk.iri, tuple(entities.values()), tuple(relationships), reply)


class LineParts(Components):
    """The embedded parts with ``LineExtractor``."""

    @property
    def extractor(self) -> Extractor:
        return LineExtractor()


def open_graph(
    root: Path, *, create: bool = True, settings: dict[str, Any] | None = None, **options: Any
) -> tgraph.KnowledgeGraph:
    """A graph with the hashing embedder, and ``LineExtractor`` unless the settings have a model."""
    values = {"embedding.provider": "hashing", **(settings or {})}
    if "chat.base_url" in values:
        return tgraph.open(root, create=create, settings=values, **options)
    folder = GraphFolder.create(root) if create else GraphFolder.open(root)
    loaded = load_settings(root, values)
    parts = LineParts(loaded, folder.collection(loaded.collection, create=create).cache)
    return KnowledgeGraph(folder, loaded, create=create, parts=parts, **options)


def collection(root: Path) -> CollectionFolder:
    return GraphFolder.open(root).collection("default")


TEXT = "Marie Curie discovered polonium.\nPierre Curie worked in Paris.\n"
EDGES = {"marie-curie discovered polonium", "pierre-curie worked-in paris"}
"""What a graph of the text holds."""


def graph_with_a_session(folder: Path) -> Path:
    """A graph of a document with ``TEXT``, and of one question."""
    (folder / "a.txt").write_text(TEXT)
    assert start(index, folder / "g", [folder / "a.txt"]).end() == 0
    with open_graph(folder / "g", create=False) as kg:
        kg.ask(QUESTION, "graph")
    return folder / "g"


# --- processes ----------------------------------------------------------------------------------

PRELOADED = ("answer", "compute", "engine", "index", "models", "record", "retrieve", "store")
"""The packages whose modules the fork server loads, so that no process loads them."""

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        module.name
        for package in PRELOADED
        for module in walk_packages([str(REPOSITORY / "tgraph" / package)], f"tgraph.{package}.")
    ]
    + ["igraph", "numpy.ma", "pydantic.dataclasses", "regex", "sqlite3"]
)
Tell = Callable[[Any], None]
Work = Callable[..., None]


@dataclass
class Worker:
    """A process at work; ``told`` is what it has said so far."""

    process: BaseProcess
    pipe: Connection
    told: list[Any] = field(default_factory=list)

    def listen(self, until: Callable[[Any], bool] = lambda item: False) -> bool:
        """Take what it says up to an item for which ``until`` holds; False if it ended first."""
        while True:
            try:
                item = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                return False
            self.told.append(item)
            if until(item):
                return True

    def kill(self) -> None:
        self.process.kill()
        self.listen()
        self.process.join()

    def end(self) -> int | None:
        """Its exit code, when everything has been said."""
        self.listen()
        self.process.join()
        return self.process.exitcode


def start(work: Work, *arguments: Any) -> Worker:
    here, there = _context.Pipe(duplex=False)
    process = _context.Process(target=_run, args=(work, there, arguments))
    process.start()
    there.close()
    return Worker(process, here)


def _run(work: Work, pipe: Connection, arguments: tuple[Any, ...]) -> None:
    gc.freeze()  # a search for garbage would write to, and so copy, all that was loaded
    try:
        work(pipe.send, *arguments)
    except TgraphError as error:
        pipe.send(("error", type(error).__name__, str(error)))
    pipe.close()
    os._exit(0)  # at once, as after a command


def ask(tell: Tell, root: Path, times: int = 1, settings: dict[str, Any] | None = None) -> None:
    """Tells each event as it arrives; closing folds the sessions, which is told too."""
    with open_graph(root, create=False, settings=settings) as kg:
        for _ in range(times):
            for event in kg.stream(QUESTION):
                tell(("event", event.message_type, event.explain_id))
    tell(("closed",))


def index(
    tell: Tell,
    root: Path,
    paths: list[Path],
    settings: dict[str, Any] | None = None,
    die_at: tuple[str, int] | None = None,
) -> None:
    """Tells each stage as it is reached, messages, and at the end the report's numbers; with
    ``die_at`` it kills itself when that much of a stage is done."""

    def progress(step: Progress) -> None:
        tell(("stage", step.stage, step.done))
        if die_at == (step.stage, step.done):
            os.kill(os.getpid(), signal.SIGKILL)

    with open_graph(root, settings=settings) as kg:
        report = kg.index(paths, progress=progress, message=lambda text: tell(("message", text)))
    tell(("indexed", report.generation, len(report.indexed), len(report.failed)))


def split(tell: Tell, root: Path, name: str) -> None:
    with open_graph(root, create=False) as kg:
        tell(("split", kg.entities.split(name, reason="They are two.")))


def retract(tell: Tell, root: Path, document: str) -> None:
    with open_graph(root, create=False) as kg:
        tell(("retracted", len(kg.retract(document, reason="It was forged.").questioned)))


def fold(tell: Tell, root: Path) -> None:
    with open_graph(root, create=False) as kg:
        tell(("sessions", [session.explain_id for session in kg.sessions.summaries()]))


# --- faults -------------------------------------------------------------------------------------

STEPS = ("fsync", "fdatasync", "rename", "replace", "link", "unlink", "rmdir", "mkdir", "pwrite")


def killed_at(tell: Tell, number: int, work: Work, *arguments: Any) -> None:
    """Do the work, with kill -9 just before its ``number``-th change of the disk; tells ``whole``
    if there were fewer."""
    counter = iter(range(number))

    def before(real: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if next(counter, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    for name in STEPS:
        setattr(os, name, partial(before, getattr(os, name)))
    work(tell, *arguments)
    tell(("whole",))


def killed_before_sealing(tell: Tell, root: Path) -> None:
    """Fold, with kill -9 once the statements of a long session are in the store."""
    ledger.BULK = 1  # type: ignore[attr-defined]

    def kill(store: OxigraphStore, quads: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    OxigraphStore.extend = kill  # type: ignore[assignment,method-assign]
    fold(tell, root)


def seal_quads(kg: KnowledgeGraph, quads: list[Quad], kind: str, subject: str) -> None:
    """Chain quads as an entry, as a program would that checks nothing."""
    with kg.opened.ledger.open() as (store, _):
        chain = Chain(store, CATALOGUE, current_time)
        if kind == "batch":
            data = b"".join(b"+" + line for line in to_bytes(quads).splitlines(keepends=True))
            key = kg.opened.librarian.store_content(data)
            entry = chain.entry(subject, kind, key, (v.tg("contentHash"), key))
        else:
            store.extend(quads)
            entry = chain.entry(subject, kind, canonical_hash(quads))
        store.extend(entry)
        kg.opened.ledger.publish(store)


# --- what must hold -----------------------------------------------------------------------------


@contextmanager
def snapshot(root: Path) -> Iterator[Snapshot]:
    found = Snapshot.open(collection(root))
    assert found is not None
    try:
        yield found
    finally:
        found.close()


def generation(root: Path) -> int:
    with snapshot(root) as found:
        return found.pointer.generation


def knowledge(store: Store) -> set[Quad]:
    return set(store.match(None, None, None, v.KNOWLEDGE_GRAPH))


def edges(root: Path) -> set[str]:
    """The relationships that a reader sees, as ``subject predicate object``."""
    with snapshot(root) as found:
        return {
            " ".join(term_value(part).rpartition(":")[2] for part in quad.triple)
            for quad in knowledge(found.store)
            if v.is_statement(quad.predicate)
        }


def mentioned(store: Store, iri: str) -> bool:
    return next(store.match(NamedNode(iri), None, None, None), None) is not None


def assert_chain(root: Path, catalogue: str = CATALOGUE) -> dict[str, str]:
    """Every entry follows the one before, and seals what is there. The status of each session."""
    folder = collection(root)
    with snapshot(root) as found:
        entries = _entries(found.store, catalogue)
        head = Head(0, GENESIS)
        statuses = {}
        for number, entry in enumerate(entries, 1):
            assert int(entry["sequence"]) == number
            assert entry["previousHash"] == head.hash
            assert entry["hash"] == _sealed(found.store, Librarian(folder.librarian), entry)
            node = NamedNode(entry["subject"])
            link = chain_hash(found.store.match(node, None, None, NamedNode(catalogue)))
            assert entry["chainHash"] == link
            head = Head(number, link)
            if entry["kind"] == "session":
                statuses[entry["session"]] = _status(found.store, entry)
        assert (found.pointer.sequence, found.pointer.head) == (head.sequence, head.hash)
        return statuses


def _entries(store: Store, catalogue: str) -> list[dict[str, str]]:
    entries: dict[str, dict[str, str]] = {}
    for quad in store.match(None, None, None, NamedNode(catalogue)):
        name = quad.predicate.value.rpartition("/")[2]
        entry = entries.setdefault(term_value(quad.subject), {"subject": term_value(quad.subject)})
        assert name not in entry or name == "22-rdf-syntax-ns#type", f"{name} is stated twice"
        entry[name] = term_value(quad.object)
    return sorted(entries.values(), key=lambda entry: int(entry["sequence"]))


def _sealed(store: Store, librarian: Librarian, entry: dict[str, str]) -> str:
    if entry["kind"] == "batch":
        return sha256(librarian.read_content(entry["contentHash"])).hexdigest()
    quads = list(store.match(None, None, None, NamedNode(entry["subject"])))
    assert len(quads) == int(entry["quadCount"])
    return canonical_hash(quads)


def _status(store: Store, entry: dict[str, str]) -> str:
    session, graph = NamedNode(entry["session"]), NamedNode(entry["subject"])
    ends = list(store.match(session, v.prov("endedAtTime"), None, graph))
    assert len(ends) == 1, "every session has one end"
    return term_value(next(store.match(session, v.tg("status"), None, graph)).object)


def assert_tidy(root: Path) -> None:
    """One snapshot and its pin are left, no journal, no staging, no temporary file."""
    folder = collection(root)
    kept = sorted(path.name for path in folder.snapshots.iterdir())
    assert len(kept) == 2, kept
    assert not list(folder.journals.glob("*"))
    assert not list(folder.staging.glob("*"))
    assert not list(folder.path.rglob(".*.tmp"))


def copy_graph(source: Path, target: Path) -> Path:
    shutil.copytree(source, target)
    return target
