"""Several descriptions become one, with a model and without, and every sentence traces back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode, QuerySolutions

import tgraph
from tests.support import corpora
from tests.support.workers import knowledge, open_graph
from tgraph import vocabulary as v
from tgraph.engine.index.run import IndexReport
from tgraph.errors import EndpointError
from tgraph.index.standing_knowledge import term_value
from tgraph.testing import Fault, ScriptedModel, ScriptedServer

STEP = "summarise_descriptions"
TEXTS = {
    "a": "Fram: A Norwegian ship.\nColin Archer built Fram.\n",
    "b": "Fram: A ship of 402 tons.\nColin Archer built Fram.\n",
    "c": "Fram: A Norwegian ship.\nColin Archer: A shipbuilder.\n",
}
FRAM = v.entity_iri("Fram")
SUMMARISED = "A Norwegian ship. A ship of 402 tons."


def extracted(request: Any) -> str:
    """``Name: description`` gives an entity, ``X built Y.`` an edge described by its document."""
    text = str(request.messages[-1]["content"])
    lines = text.partition("<<<TEXT\n")[2].partition("\nTEXT>>>")[0].splitlines()
    entities, relationships = [], []
    for line in lines:
        name, colon, description = line.partition(": ")
        if colon:
            entities.append({"name": name, "type": "ship", "description": description})
        elif " built " in line:
            relationships.append(
                {
                    "subject": "Colin Archer",
                    "predicate": "built",
                    "object": "Fram",
                    "description": f"He built her, says {'' if '402' in text else 'not '}b.",
                    "quote": line,
                }
            )
    return json.dumps({"entities": entities, "relationships": relationships, "attributes": []})


class Corpus(corpora.Corpus):
    """A folder of documents, a model, and a graph of them."""

    def __init__(
        self, folder: Path, replies: Mapping[str, Any] | None = None, *, enabled: bool = True
    ) -> None:
        self.model = ScriptedModel({"extract_graph": extracted, **(replies or {})})
        super().__init__(folder, self.model, extract__gleanings=0, summaries__enabled=enabled)

    def take_in(self, **texts: str) -> IndexReport:
        return self.index({f"{name}.txt": text for name, text in texts.items()})

    def described(self, subject: str = FRAM) -> list[str]:
        with self.open() as kg:
            quads = kg.opened.read().match(
                NamedNode(subject), v.tg("description"), None, v.KNOWLEDGE_GRAPH
            )
            return sorted(term_value(quad.object) for quad in quads)

    def rows(self, query: str) -> list[list[str]]:
        with self.open() as kg:
            found = kg.sparql(query)
            assert isinstance(found, QuerySolutions)
            return [[term_value(term) for term in row] for row in found]

    @property
    def calls(self) -> int:
        return self.model.count(STEP)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path / "corpus")


def test_an_entity_and_an_edge_get_one_description(corpus: Corpus) -> None:
    report = corpus.take_in(**TEXTS)
    assert corpus.described() == [SUMMARISED]
    archer, built = v.entity_iri("Colin Archer"), v.relation_iri("built")
    edge = v.edge_iri(NamedNode(archer), NamedNode(built), NamedNode(FRAM))
    assert corpus.described(edge) == ["He built her, says b. He built her, says not b."]
    assert corpus.described(archer) == ["A shipbuilder."], "one description is no summary"
    assert corpus.calls == 2
    assert report.dropped == {}


def test_each_sentence_traces_to_the_places_of_its_originals(corpus: Corpus) -> None:
    corpus.take_in(**TEXTS)
    with corpus.open() as kg:
        audit = kg.audit("summary-sources", "fram")
        edge = kg.audit("summary-sources", "colin archer built")
    rows = [dict(zip(audit.audit.columns, row, strict=True)) for row in audit.rows]
    of_fram = [(r["sentence"], r["title"], r["description"]) for r in rows if r["name"] == "Fram"]
    assert sorted(of_fram) == [
        ("A Norwegian ship.", "A", "A Norwegian ship."),
        ("A Norwegian ship.", "C", "A Norwegian ship."),
        ("A ship of 402 tons.", "B", "A ship of 402 tons."),
    ]
    assert {row[2] for row in edge.rows} == {"A", "B"}
    assert all(int(row["end"]) > int(row["start"]) for row in rows)
    ((agent, plan, run),) = corpus.rows(
        """SELECT DISTINCT ?agent ?plan ?run {
          ?summary a tg:DescriptionSummary ; prov:wasGeneratedBy ?made .
          ?made a tg:Summarising ; dcterms:isPartOf ?run ;
            prov:wasAssociatedWith/rdfs:label ?agent ;
            prov:qualifiedAssociation/prov:hadPlan/rdfs:label ?plan ;
            prov:startedAtTime ?s ; prov:endedAtTime ?e FILTER(?s <= ?e) }"""
    )
    assert (agent, plan) == ("scripted", STEP)
    calls = corpus.rows(
        f"""SELECT ?call {{ <{run}> tg:call ?call .
          ?call prov:qualifiedAssociation/prov:hadPlan/rdfs:label '{STEP}' }}"""
    )
    assert len(calls) == corpus.calls


@pytest.mark.slow
def test_what_did_not_change_is_not_asked_again(corpus: Corpus) -> None:
    corpus.take_in(**TEXTS)
    made = corpus.rows("SELECT ?s { ?s a tg:DescriptionSummary } ORDER BY ?s")
    corpus.take_in(**TEXTS)
    corpus.take_in(d="Roald Amundsen: A man.\n")
    assert corpus.calls == 2
    corpus.take_in(c="Colin Archer: A shipbuilder.\n")  # said in two places before
    assert corpus.calls == 2, "the same question has the same reply"
    corpus.take_in(b="Colin Archer built Fram.\n")
    assert corpus.described() == ["A Norwegian ship."]
    corpus.take_in(b=TEXTS["b"], c=TEXTS["c"])
    assert corpus.described() == [SUMMARISED]
    again = corpus.rows("SELECT ?s { ?subject tg:summary ?s } ORDER BY ?s")
    assert again == made, "what comes back has the summary that it had"


@pytest.mark.slow
@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_the_way_does_not_matter(tmp_path: Path, order: str) -> None:
    reference, other = Corpus(tmp_path / "one"), Corpus(tmp_path / "two")
    reference.take_in(**TEXTS)
    for name in order:
        other.take_in(**{name: TEXTS[name]})
    graphs = []
    for corpus in (reference, other):
        with corpus.open() as kg:
            graphs.append(knowledge(kg.opened.read()))
    assert graphs[0] == graphs[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "reply",
    ["No.", '{"sentences": [{"text": "It is gold.", "ids": ["99"]}]}', '{"sentences": [{"te'],
)
def test_a_bad_reply_costs_its_summary_and_is_tried_again_with_the_next_change(
    tmp_path: Path, reply: str
) -> None:
    corpus = Corpus(tmp_path / "corpus", {STEP: reply})
    report = corpus.take_in(**TEXTS)
    assert report.dropped["summary whose reply can't be used"] == 2
    assert corpus.described() == [SUMMARISED]
    assert any("joined, not summarised" in text for text in corpus.said)
    failed = """SELECT ?agent ?error { ?s prov:wasGeneratedBy ?made ; a tg:DescriptionSummary .
      ?made tg:error ?error ; prov:wasAssociatedWith/rdfs:label ?agent }"""
    assert {agent for agent, _ in corpus.rows(failed)} == {"joined-descriptions"}
    healed = Corpus(tmp_path / "corpus")
    healed.take_in(d="Fram: She drifted.\n")
    assert healed.described() == ["A Norwegian ship. A ship of 402 tons. She drifted."]


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        Fault("rate_limit", STEP, times=2),
        Fault("server_error", STEP, nth=1),
        Fault("drop", STEP, nth=2),
        Fault("reject_format", STEP),
        Fault("truncated_json", STEP, nth=1),
        Fault("over_long", STEP),
        Fault("prose", STEP),
        Fault("empty", STEP),
        Fault("unknown_ids", STEP),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.nth or fault.times or 'always'}",
)
def test_faults_of_a_server(tmp_path: Path, fault: Fault) -> None:
    """What passes is tried again; what stays costs the summaries, not the run."""
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    script = {"extract_graph": lambda request: extracted(_Body(request.body))}
    with ScriptedServer(script, faults=[fault]) as server:
        settings = {
            "chat.base_url": server.base_url,
            "chat.model": "scripted",
            "chat.concurrency": 1,  # which call meets the fault is not left to chance
            "embedding.provider": "hashing",
            "extract.gleanings": 0,
        }
        with tgraph.open(tmp_path / "g", create=True, settings=settings) as kg:
            report = kg.index([tmp_path / f"{name}.txt" for name in TEXTS])
            quads = kg.opened.read().match(NamedNode(FRAM), v.tg("description"))
            assert [term_value(q.object) for q in quads] == [SUMMARISED]
    lost = report.dropped.get("summary whose reply can't be used", 0)
    assert lost == (2 if fault.kind in ("prose", "empty", "unknown_ids") else 0)


def test_an_interrupted_run_goes_on_from_the_summaries_it_had(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    script = {"extract_graph": lambda request: extracted(_Body(request.body))}
    fault = Fault("unauthorised", STEP, nth=2)
    with ScriptedServer(script, faults=[fault]) as server:
        settings = {
            "chat.base_url": server.base_url,
            "chat.concurrency": 1,
            "embedding.provider": "hashing",
            "extract.gleanings": 0,
        }
        paths = [tmp_path / f"{name}.txt" for name in TEXTS]
        with tgraph.open(tmp_path / "g", create=True, settings=settings) as kg:
            with pytest.raises(EndpointError):
                kg.index(paths)
            kg.index(paths)
        asked = [r for r in server.requests if r.step == STEP]
    assert len(asked) == 1 + 2, "the first was not asked again"
    assert asked[1].body["messages"] == asked[2].body["messages"]


class _Body:
    def __init__(self, body: Any) -> None:
        self.messages = body["messages"]


def test_they_stay_apart_where_the_settings_say_so_until_they_don_t(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path / "corpus", enabled=False)
    corpus.take_in(**TEXTS)
    assert corpus.described() == ["A Norwegian ship.", "A ship of 402 tons."]
    assert corpus.calls == 0
    Corpus(tmp_path / "corpus").take_in(**TEXTS)
    assert corpus.described() == [SUMMARISED]
    more = {**TEXTS, "d": TEXTS["a"].replace("A Norwegian ship", "A polar ship")}
    corpus.take_in(**more)
    assert len(corpus.described()) == 3
    Corpus(tmp_path / "corpus").take_in(**more)
    assert corpus.described() == ["A Norwegian ship. A polar ship. A ship of 402 tons."]


def test_without_a_model_sentences_are_picked(tmp_path: Path) -> None:
    """The embedded way, with an extractor that says of an edge what its line says."""
    for name, line in {"a": "Fram lies in Oslo.", "b": "Fram lies in Oslo"}.items():
        (tmp_path / f"{name}.txt").write_text(line)
    with open_graph(tmp_path / "g") as kg:
        kg.index([tmp_path / "a.txt"])
        kg.index([tmp_path / "b.txt"])
        (row,) = kg.audit("summary-sources").rows
        assert row[1] == "Fram lies in Oslo"
        agents = kg.sparql(
            """SELECT ?label { ?s a tg:Summarising ; prov:wasAssociatedWith ?agent .
               ?agent a tg:EmbeddedMethod ; rdfs:label ?label }"""
        )
        assert isinstance(agents, QuerySolutions)
        assert [term_value(agent) for (agent,) in agents] == ["distinct-sentences"]


def test_a_split_divides_the_descriptions_too(corpus: Corpus) -> None:
    corpus.take_in(a="Fram: A ship.\n", b="The Fram: A drifting ship.\n")
    assert corpus.described() == ["A drifting ship. A ship."]
    with corpus.open() as kg:
        kg.entities.split("The Fram", "Fram", reason="A test.")
    assert corpus.described() == ["A ship."]
    assert corpus.described(v.entity_iri("The Fram")) == ["A drifting ship."]
    with corpus.open() as kg:
        kg.entities.rejoin("The Fram", "Fram", reason="It was one.")
    assert corpus.described() == ["A drifting ship. A ship."]
    assert corpus.calls == 1
