"""What people state, deny and take back: honoured by later runs, exact, on record, and undone."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pyoxigraph import Literal, NamedNode

import tgraph
from tests.support.workers import knowledge
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.extract.resolution import Name, resolve_entities
from tgraph.index.decisions import Decisions, normalise_entity
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

HISTORIES = os.environ.get("HISTORIES")
CATALOGUE = v.collection_iri("explainability")
TEXTS = {
    "radium.txt": "Marie Curie discovered Polonium. Henri Becquerel met Lord Kelvin.",
    "couple.txt": "Pierre Curie married Marie Curie. Marie Curie discovered Polonium.",
}


def opened(root: Path, **values: object) -> KnowledgeGraph:
    """Extraction by the scripted model: every sentence is a relationship."""
    parts = Components(
        load_settings(None), root / "c", chat=ScriptedModel(), embedder=HashingEmbedder()
    )
    given = {"person": "Ada Archivist", **values}
    return tgraph.open(root / "g", create=True, parts=parts, settings=given)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corrections")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    with opened(folder) as graph:
        graph.index([folder / name for name in TEXTS])
        graph.ask("Whom did Henri Becquerel meet?", history=[])
    return folder


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> Iterator[KnowledgeGraph]:
    shutil.copytree(made / "g", tmp_path / "g")
    with opened(tmp_path) as graph:
        yield graph


def facts(graph: KnowledgeGraph, entity: str) -> set[str]:
    return {fact.text for fact in graph.entities.read_facts(entity)}


def is_exact(graph: KnowledgeGraph) -> bool:
    return not graph.audit("knowledge").rows and not graph.integrity().problems


def said(graph: KnowledgeGraph, entity: str, predicate: NamedNode) -> set[str]:
    node = NamedNode(v.entity_iri(entity))
    quads = graph.opened.read().match(node, predicate, None, v.KNOWLEDGE_GRAPH)
    return {quad.object.value for quad in quads}  # type: ignore[union-attr]


# --- one correction ---


@pytest.mark.slow
def test_what_is_stated_is_cited_as_evidence_of_its_own_kind_and_undone(graph):
    before = knowledge(graph.opened.read())
    done = graph.entities.add_fact(
        "Marie Curie", "won", "Nobel Prize", description="In 1903.", reason="the register"
    )
    assert done.new == ("Nobel Prize",)
    assert facts(graph, "Nobel Prize") == {"Marie Curie — won — Nobel Prize"}
    answer = graph.ask("What did Marie Curie win?", history=[])
    cited = answer.sentences[0].citations[0]
    assert cited.quote == "Marie Curie won Nobel Prize. In 1903."
    assert re.fullmatch(r"Stated by hand, \d{4}-\d\d-\d\d: the register", cited.title)
    assert cited.path.startswith("curations/")
    text = graph.documents.read_text(cited.document)
    assert text[cited.start : cited.end] == cited.quote
    kinds = graph.opened.read().match(NamedNode(cited.document), v.RDF_TYPE, None, v.SOURCE_GRAPH)
    assert v.tg("CurationNote") in {quad.object for quad in kinds}
    assert is_exact(graph)
    undone = graph.history.undo_curation(done.curation, reason="misread")
    assert undone.questioned == (answer.session,)
    assert knowledge(graph.opened.read()) == before
    assert is_exact(graph)
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()


@pytest.mark.slow
def test_a_denied_fact_stays_out_of_knowledge_whoever_states_it(graph, tmp_path):
    before = knowledge(graph.opened.read())
    asked = graph.sessions.summaries()[-1].explain_id
    done = graph.entities.deny_fact(
        "Henri Becquerel", "met", "Lord Kelvin", reason="they never met"
    )
    assert done.questioned == (asked,)
    assert graph.trace(asked).questioned
    assert not facts(graph, "Henri Becquerel")
    other = tmp_path / "other.txt"
    other.write_text("HENRI BECQUEREL met Lord Kelvin.")
    graph.index([other])
    assert not facts(graph, "Henri Becquerel")
    assert is_exact(graph)
    with pytest.raises(UsageError, match="denied by a person"):
        graph.entities.add_fact("Henri Becquerel", "met", "Lord Kelvin", reason="they did")
    graph.history.undo_curation("last", reason="they did")
    assert len(facts(graph, "Henri Becquerel")) == 1
    graph.retract(str(other), reason="an example")
    assert knowledge(graph.opened.read()) == before
    assert is_exact(graph)
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()


def test_an_edited_fact_is_denied_and_stated_as_one_decision(graph):
    before = knowledge(graph.opened.read())
    done = graph.entities.edit_fact(
        "Marie Curie", "discovered", "Polonium", object="Radium", reason="no"
    )
    assert facts(graph, "Marie Curie") == {
        "Marie Curie — discovered — Radium",
        "Pierre Curie — married — Marie Curie",
    }
    assert {result.kind for result in graph.history.find_curation("last").results} == {
        "Denial",
        "Accession",
    }
    graph.history.undo_curation(done.curation, reason="yes")
    assert knowledge(graph.opened.read()) == before


@pytest.mark.slow
def test_other_values_of_a_fact_take_the_place_of_those_of_documents(graph):
    before = knowledge(graph.opened.read())
    (fact,) = (f for f in graph.entities.read_facts("Marie Curie") if f.object_label == "Polonium")
    graph.entities.edit_fact(fact.edge[:30], weight=2, description="In July.", reason="no")
    (edited,) = (f for f in graph.entities.read_facts("Marie Curie") if f.edge == fact.edge)
    assert (edited.weight, edited.description) == (2.0, "In July.")
    assert (edited.documents, edited.by_hand) == (2, True)
    assert is_exact(graph)
    graph.history.undo_curation("last", reason="yes")
    assert knowledge(graph.opened.read()) == before


def test_a_value_is_of_its_datatype(graph):
    graph.entities.add_fact(
        "Marie Curie", "born on", "1867-11-07", datatype="date", reason="register"
    )
    (fact,) = (
        f for f in graph.entities.read_facts("Marie Curie") if f.predicate_label == "born on"
    )
    assert fact.object == str(Literal("1867-11-07", datatype=v.xsd("date")))
    for text, datatype in (("7 November", "date"), ("x", "xsd:integer"), ("1", "xsd:no such")):
        with pytest.raises(UsageError):
            graph.entities.add_fact("A", "b", text, datatype=datatype, reason="no")


@pytest.mark.slow
def test_what_a_person_says_of_an_entity_goes_before_what_documents_say(graph):
    before = knowledge(graph.opened.read())
    graph.entities.edit(
        "Marie Curie",
        label="Maria Skłodowska-Curie",
        type="chemist",
        description="Of Warsaw.",
        aliases=["Marya"],
        reason="her name",
    )
    assert said(graph, "Marie Curie", v.RDFS_LABEL) == {"Maria Skłodowska-Curie"}
    assert said(graph, "Marie Curie", v.SKOS_ALT_LABEL) == {"Marie Curie", "Marya"}
    assert said(graph, "Marie Curie", v.tg("description")) == {"Of Warsaw."}
    assert v.type_iri("chemist") in said(graph, "Marie Curie", v.RDF_TYPE)
    graph.entities.edit("Maria Skłodowska-Curie", type="physicist", description="", reason="later")
    assert v.type_iri("physicist") in said(graph, "Marie Curie", v.RDF_TYPE)
    assert not said(graph, "Marie Curie", v.tg("description"))
    assert is_exact(graph)
    for _ in range(2):
        standing = next(c for c in graph.history.read_curations() if c.standing and not c.undoes)
        graph.history.undo_curation(standing.curation, reason="back")
    assert knowledge(graph.opened.read()) == before


@pytest.mark.slow
def test_an_edit_keeps_nothing_alive(graph, made):
    graph.entities.edit("Lord Kelvin", type="physicist", reason="he was")
    graph.retract(str(made / "radium.txt"), reason="forged")
    assert not said(graph, "Lord Kelvin", v.RDF_TYPE)
    graph.index([made / "radium.txt"], reinstate=True)
    assert v.type_iri("physicist") in said(graph, "Lord Kelvin", v.RDF_TYPE)
    assert is_exact(graph)


@pytest.mark.slow
def test_an_entity_is_made_and_deleted_by_hand(graph, tmp_path):
    before = knowledge(graph.opened.read())
    graph.entities.create("Radium", type="element", description="Glows.", reason="it is lacking")
    assert said(graph, "Radium", v.RDFS_LABEL) == {"Radium"}
    with pytest.raises(UsageError, match="already"):
        graph.entities.create("radium", reason="again")
    graph.entities.delete("Lord Kelvin", reason="nobody")
    assert not said(graph, "Lord Kelvin", v.RDF_TYPE)
    (tmp_path / "more.txt").write_text("Marie Curie met The Lord-Kelvin.")
    graph.index([tmp_path / "more.txt"])
    assert facts(graph, "Marie Curie") == {
        "Marie Curie — discovered — Polonium",
        "Pierre Curie — married — Marie Curie",
    }
    assert is_exact(graph)
    graph.retract(str(tmp_path / "more.txt"), reason="an example")
    for each in [
        c for c in graph.history.read_curations() if c.label in ("Entity stated", "Entity denied")
    ]:
        graph.history.undo_curation(each.curation, reason="back")
    assert knowledge(graph.opened.read()) == before
    assert check_shapes(graph.opened.read(), CATALOGUE) == ()


@pytest.mark.slow
def test_names_are_made_one_by_hand_and_parted_again(graph):
    before = knowledge(graph.opened.read())
    graph.entities.merge("Henri Becquerel", "Pierre Curie", reason="an example")
    assert len(facts(graph, "Pierre Curie")) == 2
    (merge,) = graph.entities.read_merges()
    assert merge.grounds[0].kind == "hand"
    with pytest.raises(UsageError, match="already"):
        graph.entities.merge("Henri Becquerel", "Pierre Curie", reason="again")
    assert is_exact(graph)
    graph.history.undo_curation("last", reason="an example")
    assert knowledge(graph.opened.read()) == before
    graph.entities.merge("Henri Becquerel", "Pierre Curie", reason="an example")
    graph.entities.split("Henri Becquerel", "Pierre Curie", reason="they are two")
    assert knowledge(graph.opened.read()) == before
    with pytest.raises(UsageError, match="split by a person"):
        graph.entities.merge("Henri Becquerel", "Pierre Curie", reason="again")


def test_what_cannot_be_is_refused_and_changes_nothing(graph):
    generation = graph.history.read_curations()
    for wrong in (
        lambda: graph.entities.add_fact("Marie Curie", "is", "Marie Curie", reason="x"),
        lambda: graph.entities.add_fact("  ", "is", "Marie Curie", reason="x"),
        lambda: graph.entities.add_fact("Marie Curie", "is", "b", reason=" "),
        lambda: graph.entities.deny_fact("Marie Curie", "ate", "Polonium", reason="x"),
        lambda: graph.entities.deny_fact("urn:trustgraph:edge:000000", reason="x"),
        lambda: graph.entities.edit_fact("Marie Curie", "discovered", "Polonium", reason="x"),
        lambda: graph.entities.edit("Marie Curie", reason="x"),
        lambda: graph.entities.edit("Marie Curie", not_aliases=["Zoë"], reason="x"),
        lambda: graph.entities.delete("Nobody", reason="x"),
        lambda: graph.history.undo_curation("0000", reason="x"),
        lambda: graph.history.undo_curation("last", reason="x"),
    ):
        with pytest.raises(UsageError):
            wrong()
    assert graph.history.read_curations() == generation


@pytest.mark.slow
def test_a_note_is_erased_as_any_document(graph):
    graph.entities.add_fact("Marie Curie", "won", "Zymurgic Medal", reason="a rumour")
    (note,) = (d for d in graph.documents.summaries() if d.path.startswith("curations/"))
    graph.entities.deny_fact(
        "Marie Curie", "won", "Zymurgic Medal", reason="no such Zymurgic thing"
    )
    graph.purge(note.path, reason="a request")
    assert is_exact(graph)
    listed = " ".join(f"{c.what} {c.reason}" for c in graph.history.read_curations())
    assert "Zymurgic" not in listed
    assert not any("Zymurgic" in str(quad) for quad in graph.opened.read().match())


# --- the commands ---


@pytest.mark.slow
def test_the_commands_state_list_and_take_back(made, tmp_path, monkeypatch):
    shutil.copytree(made / "g", tmp_path / "g")
    monkeypatch.setenv("TGRAPH_ROOT", str(tmp_path / "g"))
    monkeypatch.setenv("TGRAPH_EMBEDDING__PROVIDER", "hashing")

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == code, result.output
        return result.output

    why = "--reason", "the register"
    told = run("facts", "add", "Marie Curie", "won", "Nobel Prize", "--weight", "8", *why)
    assert told.startswith("Marie Curie won Nobel Prize. (urn:trustgraph:curation:")
    assert "New to the graph: Nobel Prize." in told
    listed = json.loads(run("facts", "list", "Nobel Prize", "--json"))
    assert [(each["weight"], each["by_hand"]) for each in listed] == [(8.0, True)]
    run("facts", "deny", listed[0]["edge"].rpartition(":")[2][:12], *why)
    assert "no facts" in run("facts", "list", "Nobel Prize")
    run("facts", "deny", "Marie Curie", "won", *why, code=2)
    run("entities", "merge", "Pierre Curie", "Lord Kelvin", *why)
    run("entities", "edit", "Lord Kelvin", "--type", "peer", *why)
    shown = json.loads(run("curations", "list", "--json"))
    assert [each["label"] for each in shown] == [
        "Entity edited", "Merge by hand", "Fact denied", "Fact stated",
    ]  # fmt: skip
    assert all(each["standing"] for each in shown)
    assert "Pierre Curie is a peer." in run("curations", "show", "last")
    assert "Undone" in run("curations", "undo", "last", *why)
    assert "undone" in run("curations", "list")
    run("curations", "undo", shown[0]["curation"], *why, code=2)


# --- decisions ---


def test_splits_go_before_joins_and_joins_before_names():
    one, two, three = (v.entity_iri(name) for name in ("Ann", "Ben", "the Ann"))
    names = [Name(one, "Ann"), Name(two, "Ben"), Name(three, "the Ann")]
    assert resolve_entities(names) == {three: one}
    assert len(resolve_entities(names, (), [(one, two)])) == 2
    assert three not in resolve_entities(names, [(two, three)], [(two, one)])
    assert resolve_entities(names, [(one, two)], [(one, two)]) == {three: one}
    assert resolve_entities(names, (), [(one, v.entity_iri("Nobody"))]) == {three: one}


def test_a_deleted_name_is_out_in_every_spelling():
    kelvin = v.entity_iri("Lord Kelvin")
    decisions = Decisions(denied_entities=frozenset({kelvin, normalise_entity(kelvin)}))
    for name in ("LORD KELVIN", "the Lord Kelvin", "Lord-Kelvin"):
        assert decisions.drops(v.entity_iri(name))
    assert not decisions.drops(v.entity_iri("Kelvin"))
    assert not decisions.drops(Literal("Lord Kelvin"))


# --- histories ---

STEPS = 8 if HISTORIES else 5
PEOPLE = ("Ann Lee", "Lee", "Bo Ek", "the Ann-Lee")
FILES = ("one.txt", "two.txt", "three.txt")
SENTENCES = st.lists(
    st.builds(
        "{} {} {}.".format,
        st.sampled_from(PEOPLE),
        st.sampled_from(("met", "knew")),
        st.sampled_from(PEOPLE),
    ),
    min_size=1,
    max_size=3,
)


class History(RuleBasedStateMachine):
    """Documents come, change and go, and people state, deny, edit, join and take back."""

    def __init__(self) -> None:
        super().__init__()
        self.place = TemporaryDirectory()
        self.folder = Path(self.place.name)
        self.graph = opened(self.folder)
        self.texts: dict[str, str] = {}
        self.touched = True

    def teardown(self) -> None:
        self.undo_all()
        with TemporaryDirectory() as other, opened(Path(other)) as fresh:
            for name, text in self.texts.items():
                (Path(other) / name).write_text(text)
            fresh.index([Path(other) / name for name in self.texts])
            assert knowledge(self.graph.opened.read()) == knowledge(fresh.opened.read())
        self.graph.close()
        self.place.cleanup()

    def undo_all(self) -> None:
        for each in self.graph.history.read_curations():
            if any(not result.ended for result in each.results):
                self.graph.history.undo_curation(each.curation, reason="an end")

    @initialize(texts=st.lists(SENTENCES, min_size=2, max_size=2))
    def begin(self, texts: list[list[str]]) -> None:
        for name, sentences in zip(FILES, texts, strict=False):
            self.index(name, sentences)

    @rule(name=st.sampled_from(FILES), sentences=SENTENCES)
    def index(self, name: str, sentences: list[str]) -> None:
        path = self.folder / name
        path.write_text(" ".join(sentences))
        self.graph.index([path], reinstate=True)
        self.texts[name] = path.read_text()

    @rule(name=st.sampled_from(FILES))
    def retract(self, name: str) -> None:
        if name in self.texts:
            text = self.texts[name]
            self.attempt(self.graph.retract, str(self.folder / name))
            self.texts = {n: t for n, t in self.texts.items() if t != text}

    @rule(ends=st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)))
    def add(self, ends: tuple[str, str]) -> None:
        self.attempt(
            self.graph.entities.add_fact, ends[0], "met", ends[1], description="So it was."
        )

    @rule(name=st.sampled_from(PEOPLE), which=st.integers(0, 3), edit=st.booleans())
    def deny(self, name: str, which: int, edit: bool) -> None:
        try:
            found = self.graph.entities.read_facts(name)
        except UsageError:
            return
        for fact in found[which : which + 1]:
            if edit:
                self.attempt(self.graph.entities.edit_fact, fact.edge, object="Bo Ek", weight=9)
            else:
                self.attempt(self.graph.entities.deny_fact, fact.edge)

    @rule(
        name=st.sampled_from(PEOPLE),
        label=st.sampled_from((None, "Annie")),
        aliases=st.sampled_from(((), ("Lee",), ("Bo Ek",))),
    )
    def edit(self, name: str, label: str | None, aliases: tuple[str, ...]) -> None:
        values = {"label": label, "type": "person", "aliases": aliases}
        self.attempt(self.graph.entities.edit, name, **values)

    @rule(name=st.sampled_from(PEOPLE))
    def create_or_delete(self, name: str) -> None:
        if not self.attempt(self.graph.entities.create, name, type="person"):
            self.attempt(self.graph.entities.delete, name)

    @rule(pair=st.tuples(st.sampled_from(PEOPLE), st.sampled_from(PEOPLE)), join=st.booleans())
    def join_or_split(self, pair: tuple[str, str], join: bool) -> None:
        self.attempt(self.graph.entities.merge if join else self.graph.entities.split, *pair)

    @rule(which=st.integers(0, 4))
    def undo(self, which: int) -> None:
        for each in self.graph.history.read_curations()[which : which + 1]:
            self.attempt(self.graph.history.undo_curation, each.curation)

    def attempt(self, method, *arguments, **values) -> bool:
        try:
            method(*arguments, reason="an example", **values)
        except UsageError:
            return False
        return True

    @invariant()
    def knowledge_follows_from_the_record(self) -> None:
        if self.texts:
            assert not self.graph.audit("knowledge").rows


@pytest.mark.slow
def test_after_any_history_knowledge_is_a_function_of_texts_and_decisions():
    few = settings(
        max_examples=int(HISTORIES or 2),
        stateful_step_count=STEPS,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    run_state_machine_as_test(History, settings=few)
