"""Knowledge is a function of the standing documents, the merges and the settings: whatever has
happened to a graph, it says what a fresh index of what stands says.

``HISTORIES=200`` makes so many histories of each kind of graph, others each time.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Collection
from contextlib import ExitStack, closing
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tests.support.workers import knowledge
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.index.catalogue import count_catalogue
from tgraph.index.catalogue_table import load_catalogue
from tgraph.index.entity_network import load_network, read_network
from tgraph.index.reports.report_table import ReportTable, load_reports, stored_reports
from tgraph.index.vectors.inverted_list_store import open_vectors
from tgraph.index.vectors.items import KINDS
from tgraph.models.base import ChatRequest
from tgraph.retrieve.candidates import cost_of
from tgraph.retrieve.reports import item_of
from tgraph.settings import load_settings
from tgraph.store.folder import GraphFolder
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.snapshot import read_pointer
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import plausible_reply

HISTORIES = os.environ.get("HISTORIES")
FEW = 2
STEPS = 10 if HISTORIES else 7
MEMORY = Path("/dev/shm")
PLACE = MEMORY if os.access(MEMORY, os.W_OK) else None
"""Where folders are made: none of this is about disks, which take most of the time."""
TEXTS = (
    "# Notes\n\nErnest Nansen (also called Nansen) met Edgar Evans in Oslo. He sailed in 1910.\n",
    "# Pole\n\nNansen reached the South Pole. Nansen wrote a diary.\n",
    "# Cousins\n\nGustav Amundsen (also called Amundsen) met Odd Nansen (also called Nansen).\n",
    "# Ships\n\nThe Terra Nova carried Edgar Evans. He served under Ernest Nansen.\n",
    "# Denial\n\nNansen did not reach the South Pole. Roald Amundsen reached the South Pole.\n",
    "# Bergen\n\nRoald Amundsen (also called Amundsen) met Nansen in Oslo. He was born in 1872.\n",
    "# Fram\n\nAmundsen sailed the Fram. The Fram was built by Colin Archer.\n",
    "# Rival\n\nAmundsen reached the South Pole. ROALD AMUNDSEN sailed the Fram.\n",
    "# Oslo\n\nRoald Amundsen (also called Amundsen) left Oslo. Amundsen bought the Fram.\n",
    "# Death\n\nErnest Nansen (also called Nansen) died in 1912. Nansen met Edgar Evans.\n",
    "# Weather\n\nit was cold and dark all winter.\n",
    "# Fleet\n\n| name | launched |\n|---|---|\n| Fram | 1892 |\n| Gauss | 1901 |\n",
)
"""They share names and aliases, contradict each other, and have titles of their own: one that is
made of a file's name is that of the file in which a text was first read."""
NAMES = ("one.md", "two.md", "three.md")
ALSO_CALLED = re.compile(r"([A-Z][\w ]+) \(also called ([A-Z]\w+)\)")


def read_names(request: ChatRequest) -> str:
    """What the model finds in a chunk: what it would, and who is known as what."""
    reply = json.loads(plausible_reply(request.prompt.name, request.messages))
    aliases = dict(ALSO_CALLED.findall(request.messages[-1]["content"]))
    for entity in reply["entities"]:
        entity["aliases"] = [aliases[entity["name"]]] if entity["name"] in aliases else []
    return json.dumps(reply)


Values = dict[str, Any]
KINDS_OF_GRAPH: dict[str, Values] = {
    "embedded": {},
    "model": {"claims.enabled": True, "contextual_search.by_model": True},
    "fast": {"extract.method": "fast"},
}
MADE = {"raptor.enabled": True, "contextual_search.enabled": True}
"""What is else made when a question first needs it, and kept from then on."""

Pair = tuple[str, str]
Exact = dict[str, frozenset[Any]]
"""What the promise is about, by what it is called."""


@cache
def replies() -> Path:
    """Where what was extracted and replied is kept: the same text gets the same reply."""
    folder = Path(mkdtemp(prefix="replies", dir=PLACE))
    atexit.register(shutil.rmtree, folder)
    return folder


def opened(root: Path, kind: str) -> KnowledgeGraph:
    values = {"embedding.provider": "hashing", **MADE, **KINDS_OF_GRAPH[kind]}
    chat = ScriptedModel({"extract_graph": read_names}) if kind == "model" else None
    parts = Components(
        load_settings(None, values), replies(), chat=chat, embedder=HashingEmbedder()
    )
    return tgraph.open(root, create=True, settings=values, parts=parts)


def exact(graph: KnowledgeGraph) -> Exact:
    """All triples of knowledge, the names that are one, and the vectors."""
    found: Exact = {
        "knowledge": frozenset(knowledge(graph.opened.read())),
        "merges": frozenset(
            (merge.absorbed, merge.canonical) for merge in graph.entities.read_merges()
        ),
    }
    found["catalogue"] = frozenset(map(repr, count_catalogue(graph.opened.read()).classes))
    folder = graph.opened.folder
    for kind in KINDS:
        vectors = open_vectors(folder.vectors, kind)
        rows = vectors.vectors_of(slice(None))
        lines = zip(vectors.owners.tolist(), vectors.hashes, rows, strict=True)
        found[f"{kind} vectors"] = frozenset(
            (vectors.keys[owner], text.tobytes(), row.tobytes()) for owner, text, row in lines
        )
    return found


def assert_derived_as_stated(graph: KnowledgeGraph) -> None:
    """The network, the reports and the catalogue, which a purge takes away, are what the knowledge
    says."""
    store, folder = graph.opened.read(), graph.opened.folder
    pointer = read_pointer(folder)
    assert pointer is not None
    catalogue = load_catalogue(folder.vectors, pointer.generation)
    assert catalogue is not None
    with closing(catalogue):
        assert catalogue.catalogue == count_catalogue(store)
    stated, told = read_network(store), stored_reports(store)
    if network := load_network(folder.vectors, pointer.generation, stated.cutting):
        assert list(network.entities) == list(stated.entities)
        for name in ("attributes", "ends", "weights", "counts"):
            assert np.array_equal(getattr(network, name), getattr(stated, name)), name
    if kept := load_reports(folder.vectors, pointer.generation):
        with closing(kept), closing(told):
            known, reports = told.communities(), told.reports()
            assert [*kept.communities().items()] == [*known.items()]
            assert [*kept.reports().items()] == [*reports.items()]
            inside = {member for community in known.values() for member in community.members}
            assert inside_of(kept, inside) == inside_of(told, inside)
            evidence = graph.opened.context().evidence
            for iri, report in reports.items():
                chunks = evidence.mentions(known[iri].members).values()
                assert kept.counts(report.iri).occurrences == len(set().union(*chunks))
                assert kept.counts(report.iri).cost == cost_of(item_of(report))


def inside_of(table: ReportTable, entities: Collection[str]) -> dict[str, list[str]]:
    return {entity: sorted(own) for entity, own in table.communities_of(entities).items()}


@cache
def fresh(kind: str, standing: frozenset[tuple[str, str]], apart: frozenset[Pair]) -> Exact:
    """The same of a fresh index of the texts, in which those names are told apart."""
    with TemporaryDirectory(dir=PLACE) as folder, opened(Path(folder) / "graph", kind) as graph:
        for name, text in standing:
            (Path(folder) / name).write_text(text)
        graph.index(sorted(Path(folder).glob("*.md")))
        while together := sorted(pair for pair in apart if in_one(graph, pair)):
            graph.entities.split(*together[0], reason="They are two.")
        return exact(graph)


def in_one(graph: KnowledgeGraph, pair: Pair) -> bool:
    canonical = {merge.absorbed: merge.canonical for merge in graph.entities.read_merges()}
    first, second = (canonical.get(entity, entity) for entity in pair)
    return first == second


class History(RuleBasedStateMachine):
    """What may happen to a graph, and what stands after it."""

    kind: str
    taken_steps: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folder = Path(self.stack.enter_context(TemporaryDirectory(dir=PLACE)))
        self.graph = self.stack.enter_context(opened(self.folder / "graph", self.kind))
        self.standing: dict[Path, str] = {}
        self.known: set[str] = set()
        self.retracted: set[str] = set()
        self.erased: set[str] = set()

    def teardown(self) -> None:
        self.stack.close()

    def write(self, name: str, text: str) -> Path:
        path = self.folder / "texts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def taken(self, path: Path, text: str) -> None:
        if text not in self.erased | self.retracted:
            self.standing[path] = text
            self.known.add(text)

    @initialize(texts=st.lists(st.sampled_from(TEXTS), min_size=2, max_size=3, unique=True))
    def begin(self, texts: list[str]) -> None:
        self.taken_steps["begin"] += 1
        self.index(dict(zip(NAMES, texts, strict=False)))

    @rule(name=st.sampled_from(NAMES), text=st.sampled_from(TEXTS))
    def add_or_change(self, name: str, text: str) -> None:
        self.index({name: text})

    @rule(texts=st.lists(st.sampled_from(TEXTS), min_size=2, max_size=3))
    def add_or_change_several(self, texts: list[str]) -> None:
        self.index(dict(zip(NAMES, texts, strict=False)))

    def index(self, texts: dict[str, str]) -> None:
        self.taken_steps["add or change"] += 1
        paths = {self.write(name, text): text for name, text in texts.items()}
        self.graph.index(list(paths))
        for path, text in paths.items():
            self.taken(path, text)

    @precondition(lambda self: self.retracted)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def reinstate(self, data: st.DataObject, name: str) -> None:
        self.taken_steps["reinstate"] += 1
        text = data.draw(st.sampled_from(sorted(self.retracted)))
        self.retracted.remove(text)
        path = self.write(name, text)
        self.graph.index([path], reinstate=True)
        self.taken(path, text)

    @precondition(lambda self: self.standing)
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        self.taken_steps["retract"] += 1
        text = data.draw(st.sampled_from(sorted(set(self.standing.values()))))
        self.graph.retract(document(text), reason="It is wrong.")
        self.retracted.add(text)
        self.ended(text)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def purge(self, data: st.DataObject) -> None:
        self.taken_steps["purge"] += 1
        text = data.draw(st.sampled_from(sorted(self.known)))
        self.graph.purge(document(text), reason="It is wrong.")
        self.known.remove(text)
        self.retracted.discard(text)
        self.erased.add(text)
        self.ended(text)

    def ended(self, text: str) -> None:
        self.standing = {path: said for path, said in self.standing.items() if said != text}

    @precondition(lambda self: self.graph.entities.read_merges())
    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        self.taken_steps["split"] += 1
        merge = data.draw(st.sampled_from(self.graph.entities.read_merges()))
        self.graph.entities.split(merge.absorbed, merge.canonical, reason="They are two.")

    @precondition(lambda self: self.graph.entities.read_splits())
    @rule(data=st.data())
    def rejoin(self, data: st.DataObject) -> None:
        self.taken_steps["rejoin"] += 1
        split = data.draw(st.sampled_from(self.graph.entities.read_splits()))
        self.graph.entities.rejoin(*split.entities, reason="They are one.")

    @precondition(lambda self: self.standing)
    @rule(data=st.data(), what=st.sampled_from(["ask", "audit", "remove"]))
    def look_or_remove(self, data: st.DataObject, what: str) -> None:
        """What was read stands until it is retracted, whatever becomes of its file."""
        self.taken_steps[what] += 1
        if what == "ask":
            self.graph.ask("Who reached the South Pole?", history=[])
        elif what == "audit":
            assert self.graph.audit("knowledge").rows == ()
        else:
            path = data.draw(st.sampled_from(sorted(self.standing)))
            path.unlink(missing_ok=True)
            self.graph.index([path.parent])
            for other in path.parent.iterdir():  # one may have been out while it was retracted
                self.taken(other, other.read_text())

    @invariant()
    def is_as_if_fresh(self) -> None:
        if not self.known and not self.erased:
            return  # nothing has been published yet
        apart = frozenset(split.entities for split in self.graph.entities.read_splits())
        standing = frozenset((path.name, text) for path, text in self.standing.items())
        expected = fresh(self.kind, standing, apart)
        assert_derived_as_stated(self.graph)
        for name, found in exact(self.graph).items():
            assert sorted(map(str, found - expected[name])) == [], f"{name}: too much"
            assert sorted(map(str, expected[name] - found)) == [], f"{name}: too little"


def document(text: str) -> str:
    return v.document_iri(sha256(text.encode()).hexdigest())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_GRAPH)
def test_every_history_ends_in_what_a_fresh_index_says(kind: str) -> None:
    steps: Counter[str] = Counter()
    run_state_machine_as_test(
        type(f"{kind.title()}History", (History,), {"kind": kind, "taken_steps": steps}),
        settings=settings(
            max_examples=int(HISTORIES or FEW),
            derandomize=not HISTORIES,
            database=None,
            phases=[Phase.generate],  # ten steps can be read; to make them fewer takes minutes
            stateful_step_count=STEPS,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"{kind}: {steps['begin']} histories, {steps.total()} steps: {dict(steps)}")


def test_a_name_that_another_document_claimed_is_an_entity_again(tmp_path: Path) -> None:
    """Nothing that speaks of it has changed; random histories come by this seldom."""
    for number in (1, 2):
        (tmp_path / f"{number}.md").write_text(TEXTS[number])
    with opened(tmp_path / "graph", "embedded") as graph:
        graph.index(sorted(tmp_path.glob("*.md")))
        assert [merge.absorbed_name for merge in graph.entities.read_merges()] == ["Nansen"]
        graph.retract(document(TEXTS[2]), reason="It is wrong.")
        assert exact(graph) == fresh("embedded", frozenset([("1.md", TEXTS[1])]), frozenset())


def test_the_context_of_a_chunk_depends_on_no_other_document(tmp_path: Path) -> None:
    """Which names of a fast reading are kept depends on all; its contexts are told all of them."""
    texts = {
        "one.md": "# Polar\n\nRoald Amundsen met Nansen, and Nansen left Roald Amundsen.\n",
        "two.md": "# Others\n\nRoald Amundsen met Nansen. In Bergen Roald Amundsen met Nansen.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with opened(tmp_path / "graph", "fast") as graph:
        for name in texts:
            graph.index([tmp_path / name])
        assert exact(graph) == fresh("fast", frozenset(texts.items()), frozenset())


def altered(root: Path, removed: list[Quad], added: list[Quad]) -> None:
    """Change the store behind tgraph's back."""
    store = OxigraphStore.open(GraphFolder.open(root).collection("default").store)
    store.remove(removed)
    store.extend(added)
    store.flush()
    store.close()


def test_the_audit_finds_each_triple_that_does_not_follow(tmp_path: Path) -> None:
    with opened(tmp_path / "g", "model") as graph:
        for number in (0, 1, 6):
            (tmp_path / f"{number}.md").write_text(TEXTS[number])
        graph.index(sorted(tmp_path.glob("*.md")))
        assert graph.audit("knowledge").passed
        found = sorted(knowledge(graph.opened.read()), key=str)
        merges = list(graph.opened.read().match(None, v.tg("absorbed")))
        assert graph.audit("knowledge").rows == ()
    weight = next(quad for quad in found if quad.predicate == v.tg("weight"))
    label = next(quad for quad in found if quad.predicate == v.RDFS_LABEL)
    finding = next(quad for quad in found if quad.predicate == v.tg("member"))
    heavier = Quad(weight.subject, weight.predicate, Literal(99.0))
    (merge,) = merges
    gone = Quad(merge.subject, v.RDF_TYPE, v.tg("Merge"), v.SOURCE_GRAPH)
    invented = Quad(label.subject, NamedNode(v.relation_iri("invented")), label.subject)
    altered(tmp_path / "g", [weight, label, finding, gone], [heavier, invented])
    with opened(tmp_path / "g", "model") as graph:
        result = graph.audit("knowledge")
    expected = {("does not follow", quad) for quad in (heavier, invented)}
    expected |= {("is missing", quad) for quad in (weight, label, finding)}
    rows = {(problem, *map(as_shown, quad.triple)) for problem, quad in expected}
    assert {row for row in result.rows if row[2] != v.tg("canonical").value} == rows
    (lost,) = (row for row in result.rows if row[2] == v.tg("canonical").value)
    assert lost[:2] == ("is missing", v.entity_iri("Nansen"))
    assert result.passed is False


def as_shown(term: object) -> str:
    return term.value if isinstance(term, NamedNode) else str(term)


def test_the_command_tells_by_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "hashing")
    (tmp_path / "a.md").write_text(TEXTS[5])
    with opened(tmp_path / "g", "embedded") as graph:
        graph.index([tmp_path / "a.md"])
    command = ["audit", "knowledge", "-r", str(tmp_path / "g")]
    done = CliRunner().invoke(cli, command)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "Knowledge against the record: no problem." in done.stderr
    made_up = [
        Quad(NamedNode(v.entity_iri("Bergen")), v.tg("description"), Literal(f"It is {number}."))
        for number in range(60)
    ]
    altered(tmp_path / "g", [], made_up)
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 4
    assert done.stdout.count("does not follow") == 50
    assert "10 more rows; --json lists all of them." in done.stderr
    assert "60 violations" in done.stderr
    assert len(json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)) == 60
