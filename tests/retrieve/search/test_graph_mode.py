"""Graph retrieval: its limits, its determinism, and that it reads knowledge only."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import NamedNode

import tgraph
from tgraph.engine.components import Components
from tgraph.errors import UsageError
from tgraph.retrieve.base import Question
from tgraph.retrieve.search.graph import GraphRetriever, reading_order
from tgraph.retrieve.subgraph import Subgraph, edges_of
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.question_analysis import analyse_question
from tgraph.retrieve.text.sentence_ranking import meaning_of
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder
from tgraph.vocabulary import edge_iri, entity_iri, relation_iri

PEOPLE = ["Ada", "Berta", "Clara", "Dora", "Emma", "Frida", "Gerda", "Hanna"]
TOWNS = ["Oslo", "Bergen", "Lund", "Turku", "Riga", "Visby", "Kiel", "Aarhus"]
TEXT = "name,town,friend\n" + "".join(
    f"{name},{town},{PEOPLE[(i + 1) % len(PEOPLE)]}\n"
    for i, (name, town) in enumerate(zip(PEOPLE, TOWNS, strict=True))
)
QUESTION = "In which town does Clara live?"


def open_graph(folder: Path, **limits: object):
    settings = {f"graph.{name}": value for name, value in limits.items()}
    parts = Components(load_settings(None, settings), folder / "cache", embedder=HashingEmbedder())
    return tgraph.open(folder / "graph", create=True, parts=parts, settings=settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    (folder / "people.csv").write_text(TEXT)
    with open_graph(folder) as kg:
        assert not kg.index([folder / "people.csv"]).failed
    return folder


def retrieve(folder: Path, text: str = QUESTION, **limits: Any):
    with open_graph(folder, **limits) as kg:
        return GraphRetriever().retrieve(Question(text, concepts=("Clara",)), kg.context())


def test_ranks_count_from_one_and_scores_fall(folder):
    found = retrieve(folder)
    assert [c.rank for c in found.candidates] == list(range(1, len(found.candidates) + 1))
    scores = [c.score for c in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert all(c.evidence and c.reasons and c.hop >= 0 for c in found.candidates)
    assert found.total >= len(found.candidates)


def test_a_name_in_the_question_is_a_seed(folder):
    found = retrieve(folder)
    assert any(match.label == "Clara" and match.method == "name" for match in found.matches)
    assert "Clara" in found.candidates[0].edge.labels


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_the_subgraph_is_no_larger_than_its_limit(folder, limit):
    found = retrieve(folder, max_subgraph_size=limit)
    assert len(found.candidates) <= limit
    assert found.total == len(found.cut) > limit
    assert found.dropped["subgraph size"] == found.total - limit


def test_the_triples_of_one_entity_are_limited(folder):
    found = retrieve(folder, entity_limit=1, triple_limit=2, max_path_length=1)
    assert 0 < found.total <= 2
    assert found.dropped["triple limit"] > 0


@pytest.mark.parametrize("limit", [1, 2])
def test_seeds_are_limited(folder, limit):
    assert len(retrieve(folder, entity_limit=limit).matches) <= limit


def test_of_the_candidates_only_some_are_judged(folder):
    every, judged = retrieve(folder), retrieve(folder, edge_score_limit=3)
    assert judged.candidates == every.candidates[:3]
    assert judged.dropped["edge score limit"] == len(every.candidates) - 3
    fewer = retrieve(folder, edge_score_limit=3, max_subgraph_size=2)
    assert fewer.candidates == judged.candidates[:2]


@pytest.mark.parametrize("seed", ["Oslo", "urn:trustgraph:entity:oslo", '["Oslo"]'])
def test_given_entities_are_the_only_seeds(folder, seed):
    found = retrieve(folder, graph_seeds=[seed], max_path_length=1)
    assert [match.label for match in found.matches] == ["Oslo"]
    assert [c.edge.text for c in found.candidates] == ["Ada town Oslo"]


def test_each_hop_follows_what_its_instructions_say(folder):
    hops = ['{"relationships": ["TOWN"]}', '{"relationships": ["friend"], "types": ["person"]}']
    seeds: dict[str, Any] = {"graph_seeds": ["Oslo"], "max_path_length": 2}
    said = {(c.hop, c.edge.text) for c in retrieve(folder, **seeds).candidates}
    assert (1, "People mentions Ada") in said
    expected = {(0, "Ada town Oslo"), (1, "Ada friend Berta"), (1, "Hanna friend Ada")}
    for given in (hops, [f"[{', '.join(hops)}]"]):
        found = retrieve(folder, **seeds, traversal_instructions=given)
        assert {(c.hop, c.edge.text) for c in found.candidates} == expected
        assert found.dropped["not in the traversal instructions"] > 0
    towns = retrieve(folder, graph_seeds=["Ada"], traversal_instructions=['{"types": ["place"]}'])
    assert {c.edge.text for c in towns.candidates if c.hop == 0} == {"Ada town Oslo"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"graph_seeds": ["Nobody"]}, "no entity called 'Nobody'"),
        ({"graph_seeds": ["Ada"], "grounding_seeds": ["Ada"]}, "exclude each other"),
        ({"traversal_instructions": ['{"relationships": ["enemy"]}']}, "No relationship is called"),
        ({"traversal_instructions": ['{"types": ["ghost"]}']}, "No entity is of the type"),
        ({"traversal_instructions": ['{"graphs": ["urn:graph:source"]}']}, "by a filter"),
        ({"traversal_instructions": ["[1"]}, "traversal_instructions"),
    ],
)
def test_instructions_that_mean_nothing_are_refused(folder, given, said):
    with pytest.raises(UsageError, match=said):
        retrieve(folder, **given)


def test_given_concepts_are_on_record_and_replayed(folder):
    with open_graph(folder, grounding_seeds=["Oslo"], edge_score_limit=5) as kg:
        session = kg.ask("Who lives there?", "graph", history=[]).session
    with open_graph(folder) as kg:
        found, again = kg.trace(session), kg.replay(session)
        why = str(kg.why_not(session, "Kiel"))
        other = kg.trace(kg.ask("Who lives there?", "graph", history=[]).session)
    assert found.concepts == ("Oslo",)
    assert [m.label for m in found.matches if m.method == "name"] == ["Oslo"]
    assert "Oslo" not in other.concepts
    assert found.parameters["grounding-seeds"] == '["Oslo"]'
    assert found.edge_count > len((*found.selected, *found.rejected)) == 5
    assert again.is_same
    assert "edge-score-limit" in why


def test_given_entities_need_no_concepts(folder):
    with open_graph(folder, graph_seeds=["Oslo"]) as kg:
        session = kg.ask("Who lives there?", "graph", history=[]).session
        found, again = kg.trace(session), kg.replay(session)
    assert "Concept extraction" not in [step.label for step in found.steps]
    assert [match.label for match in found.matches] == ["Oslo"]
    assert again.is_same


def test_a_longer_path_reaches_farther(folder):
    near = retrieve(folder, entity_limit=2, max_path_length=1)
    far = retrieve(folder, entity_limit=2, max_path_length=2)
    assert {c.hop for c in near.candidates} == {0}
    assert {c.hop for c in far.candidates} == {0, 1}
    ways = {(c.hop, c.reasons[-1]) for c in far.candidates}
    assert (1, "the edge is 2 hops away from an entity matched to the question") in ways
    assert not any(hop == 0 and "hops" in way for hop, way in ways)


def test_of_two_edges_that_mean_as_much_the_nearer_is_read_first(folder):
    with open_graph(folder) as kg:
        context = kg.context()
        edges = edges_of(entity_iri("Clara"), context)
        one, other = sorted(edges)[:2]
        meaning = meaning_of(
            analyse_question(QUESTION, count_frequencies(context)), context
        )  # of none of them
        for near, far in ((one, other), (other, one)):
            subgraph = Subgraph({far: (edges[far], 1), near: (edges[near], 0)})
            assert reading_order(subgraph, meaning, ()) == [near, far]


def test_an_edge_without_standing_evidence_is_no_candidate(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    clara, riga = (NamedNode(entity_iri(name)) for name in ("Clara", "Riga"))
    bare = edge_iri(clara, NamedNode(relation_iri("town")), riga)
    with open_graph(copy) as kg:
        kg.update(
            f"INSERT DATA {{ {clara} <{relation_iri('town')}> {riga} ."
            f" <{bare}> a tg:Edge ; tg:weight 1.0 }}"
        )
    found = retrieve(copy)
    assert found.dropped["edge without standing evidence"] == 1
    assert bare not in [c.item.iri for c in found.candidates]


def test_evidence_is_limited(folder):
    assert all(len(c.evidence) == 1 for c in retrieve(folder, evidence_limit=1).candidates)


def test_the_same_question_finds_the_same_whatever_was_asked_before(folder):
    first = retrieve(folder)
    with open_graph(folder) as kg:
        kg.ask("Who is the friend of Clara?")
        kg.ask(QUESTION)
    with open_graph(folder) as kg:
        context = kg.context()
        question = Question(QUESTION, concepts=("Clara",))
        GraphRetriever().retrieve(Question("Who lives in Riga?"), context)
        again = GraphRetriever().retrieve(question, context)
        once_more = GraphRetriever().retrieve(question, context)
    assert first.candidates == again.candidates == once_more.candidates
    assert first.matches == again.matches


def test_a_question_without_words_is_no_failure(folder):
    assert retrieve(folder, "?").candidates is not None


def test_history_brings_its_concepts(folder):
    with open_graph(folder) as kg:
        question = Question("In which town does she live?", concepts=("Clara",))
        found = GraphRetriever().retrieve(question, kg.context())
    assert "Clara" in found.candidates[0].edge.labels
