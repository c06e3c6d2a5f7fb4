"""Graph ranking: the walk itself against networkx, and what the mode makes of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode

import tgraph
from tests.support.examples import examples
from tgraph import vocabulary as v
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.methods import TwoStages
from tgraph.engine.components import Components
from tgraph.index.network_ties import NetworkTies, WeightedPairs, synonym_pairs
from tgraph.index.sources import document_of_chunk
from tgraph.index.vectors.stores import vector_store
from tgraph.model import Candidate, Edge
from tgraph.models.base import Call
from tgraph.retrieve.base import Question
from tgraph.retrieve.modes.ppr import PprSearchSettings
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.search.graph import GraphRetriever
from tgraph.retrieve.search.names import WORDING, NameIndex
from tgraph.retrieve.search.network import Network, build_network, network_of
from tgraph.retrieve.search.pagerank import (
    MOST_PAGES,
    linked_pages,
    named_pages,
    named_shares,
    scale_weights,
    walk_starts,
)
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "fram.md": "# Fram\n\nThe Fram was built by Colin Archer. Roald Amundsen sailed the Fram.\n",
    "archer.md": "# Colin Archer\n\nColin Archer was born in Larvik. Colin Archer built boats.\n",
    "larvik.md": "# Larvik\n\nLarvik lies on the coast of Norway. Ferries leave Larvik daily.\n",
    "bread.md": "# Bread\n\nSourdough bread is baked in Paris. Bakers in Paris rise early.\n",
}
QUESTION = "In which town was the builder of the Fram born?"

small = st.integers(2, 9)


def made(entities: int, chunks: int, ties: dict[tuple[int, int], float]) -> Network:
    names = [v.entity_iri(f"entity {n}") for n in range(entities)]
    parts = [f"urn:chunk:{n}" for n in range(chunks)]
    return build_network(names, parts, ties_of(facts=ties), 1.0, NameIndex([]), lambda iri: None)


def ties_of(**kinds: dict[tuple[int, int], float]) -> NetworkTies:
    """Ties of the kinds, and of the other kinds none."""
    pairs = {}
    for kind in ("facts", "mentions", "subjects", "synonyms"):
        ends = list(kinds.get(kind, {}))
        ones, others = [one for one, _ in ends], [other for _, other in ends]
        pairs[kind] = WeightedPairs.from_ends(ones, others, list(kinds.get(kind, {}).values()))
    return NetworkTies(**pairs)


@st.composite
def networks(draw):
    entities, chunks = draw(small), draw(small)
    size = entities + chunks
    pairs = draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), min_size=1))
    weights = st.floats(0.1, 10)
    ties = {pair: draw(weights) for pair in pairs}
    starts = draw(st.dictionaries(st.integers(0, size - 1), weights, min_size=1))
    return made(entities, chunks, ties), ties, starts, size


@settings(deadline=None, max_examples=examples(40))
@given(networks(), st.sampled_from([0.5, 0.85]))
def test_the_walk_is_personalised_pagerank(drawn, damping):
    found, ties, starts, size = drawn
    graph = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_weighted_edges_from((one, other, weight) for (one, other), weight in ties.items())
    matrix = nx.google_matrix(graph, alpha=damping, personalization=starts, nodelist=range(size))
    wanted = np.full(size, 1 / size)
    for _ in range(400):
        wanted = wanted @ matrix
    walk = found.walk(starts, damping)
    assert walk == pytest.approx(wanted, abs=1e-6)


@settings(deadline=None, max_examples=examples(40))
@given(networks())
def test_a_walk_is_a_distribution_that_leaves_alone_what_it_cannot_reach(drawn):
    found, ties, starts, size = drawn
    walk = found.walk(starts, 0.85)
    assert walk.sum() == pytest.approx(1)
    graph = nx.Graph(list(ties))
    graph.add_nodes_from(range(size))
    reached = {n for start in starts for n in nx.node_connected_component(graph, start)}
    for node in range(size):
        assert walk[node] >= 0 if node in reached else walk[node] == 0


@given(st.dictionaries(st.integers(), st.floats(0, 1e6)), st.floats(0.01, 10))
def test_shares_keep_proportions_and_come_to_the_whole(weights, whole):
    found = scale_weights(weights, whole)
    if sum(weights.values()) > 0:
        assert sum(found.values()) == pytest.approx(whole)
        assert set(found) == set(weights)
    else:
        assert not found


def test_ties_of_several_kinds_add_up_whatever_their_direction():
    ties = ties_of(mentions={(0, 2): 1.0}, synonyms={(2, 0): 0.5, (1, 2): 0.0})
    found = build_network(["a", "b"], ["c"], ties, 1.0, NameIndex([]), lambda iri: None)
    assert [found.list_neighbours(node) for node in range(3)] == [[2], [], [0]]
    assert found.ties.weights.tolist() == [1.5, 1.5]
    assert list(found.spread) == [1, 0]
    assert [found.iri(node) for node in range(3)] == ["a", "b", "c"]


def test_only_names_that_share_a_word_are_synonyms():
    names = ["Royal Society", "The Royal Society", "Royal Navy", "Larvik"]
    embedder = HashingEmbedder()
    vectors = vector_store().build_vectors(
        "entity", [(v.entity_iri(name), name) for name in names], embedder
    )
    synonyms = synonym_pairs(vectors, 0.6, WORDING)
    found = dict(zip(map(tuple, synonyms.ends.tolist()), synonyms.weights.tolist(), strict=True))
    keys = list(vectors.keys)
    pairs = {frozenset((keys[one], keys[other])) for one, other in found}
    alike = frozenset(map(v.entity_iri, names[:2]))
    assert alike in pairs
    assert all(v.entity_iri("Larvik") not in pair for pair in pairs)
    assert not len(synonym_pairs(vectors, 1.1, WORDING).ends)
    for (one, other), score in found.items():
        a, b = embedder.embed([names_of(keys[one], names), names_of(keys[other], names)])
        assert score == pytest.approx(float(np.dot(a, b)), abs=1e-4)


def names_of(iri: str, names: list[str]) -> str:
    return next(name for name in names if v.entity_iri(name) == iri)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    root = tmp_path_factory.mktemp("ppr")
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    parts = Components(load_settings(None), root / "cache", embedder=HashingEmbedder())
    with tgraph.open(root / "graph", create=True, parts=parts) as kg:
        assert not kg.index([root / name for name in TEXTS]).failed
        yield kg


def retrieve(graph: tgraph.KnowledgeGraph, question: str = QUESTION, chat=None, **changed: object):
    changes = {f"ppr_search.{name}": value for name, value in changed.items()}
    parts = Components(
        load_settings(None, changes), graph.root / "cache", chat=chat, embedder=HashingEmbedder()
    )
    method = method_of("ppr", parts)
    assert isinstance(method, TwoStages)
    return method.retriever.retrieve(Question(question), graph.context())


def titles(retrieval) -> list[str]:
    return [c.evidence[0].title for c in retrieval.candidates if c.item.kind == "chunk"]


def test_the_walk_leads_over_an_entity_to_a_chunk_that_shares_no_word(graph):
    found = titles(retrieve(graph))
    assert found[0] == "Fram"
    assert found.index("Colin Archer") < found.index("Bread")
    vector = np.asarray(HashingEmbedder().embed([QUESTION]))
    nearest = [iri for iri, _ in graph.context().vectors["chunk"].search(vector, len(found))[0]]
    alone = retrieve(graph, edge_weight=0, name_weight=0, passage_weight=0, read=0)
    chunks = [c.item.iri for c in alone.candidates if c.item.kind == "chunk"]
    assert chunks == nearest, "without a start, likeness alone decides"


def test_two_sentences_over_a_bridge_stand_in_front(graph):
    found = GraphRetriever().retrieve(Question(QUESTION), graph.context()).candidates
    told, asked, *others = found
    assert told.edge.labels == ("Fram", "be built by", "Colin Archer")
    assert asked.edge.labels == ("Colin Archer", "be born in", "Larvik")
    assert asked.bridge == told.evidence[0].iri
    assert not any(candidate.bridge for candidate in (told, *others))


def test_the_network_ties_chunks_to_what_they_are_called_after(graph):
    found = network_of(graph.context(), 0.8, 1.0)
    archer = found.node(v.entity_iri("Colin Archer"))
    assert archer is not None
    beside = {found.iri(node) for node in found.list_neighbours(archer)}
    assert len([iri for iri in beside if iri.startswith(f"{v.URN}chunk:")]) == 2
    assert found.spread[archer] == 2
    assert found.node("urn:nowhere") is None


def test_names_are_found_in_a_question_however_they_are_written(graph):
    found = network_of(graph.context(), 0.8, 1.0)
    archer, larvik = (found.node(v.entity_iri(n)) for n in ("Colin Archer", "Larvik"))
    for question in ("Did Colin Archer's boats come from Larvik?", "did colin archer like larvik"):
        named = named_shares(question, found, 1.0)
        assert {archer, larvik} <= named.keys()
        assert sum(share for share, _ in named.values()) == pytest.approx(1.0)
    assert not named_shares("what is it", found, 1.0)
    assert not named_shares("Which boats of a builder and town?", found, 1.0), "words are no names"


def test_limits_hold_and_the_nearest_can_be_kept_in_front(graph):
    found = retrieve(graph, passages=2, top_k_edges=1)
    assert len(titles(found)) == 2
    assert sum(isinstance(c.item, Edge) for c in found.candidates) == 1
    nearest = graph.context().vectors["chunk"]
    vector = np.asarray(HashingEmbedder().embed(["Who bakes bread in Paris?"]))
    first = nearest.search(vector, 1)[0][0][0]
    kept = retrieve(graph, "Who bakes bread in Paris?", head=1)
    assert next(c for c in kept.candidates if c.item.kind == "chunk").item.iri == first


def test_the_walk_starts_from_so_many_ends_of_edges(graph):
    question = "Who built it, and who sailed it?"
    for most in (1, 2):
        matches = retrieve(graph, question, top_k_entities=most).matches
        assert [match.method for match in matches] == ["edge"] * most


def test_what_many_chunks_name_weighs_less():
    names = [v.entity_iri("Paris"), v.entity_iri("Fram")]
    index = NameIndex([("Paris", 0), ("Fram", 1)])
    chunks = [f"urn:chunk:{n}" for n in range(4)]
    ties = ties_of(mentions={**{(0, chunk): 1.0 for chunk in range(2, 6)}, (1, 2): 1.0})
    found = build_network(
        names, chunks, ties, 1.0, index, dict(zip(names, range(2), strict=True)).get
    )
    one, other = map(NamedNode, names)
    edge = Edge(one, NamedNode(v.relation_iri("left")), other, "Paris", "left", "Fram")
    starts = walk_starts("", {}, [Candidate(edge, 1, 0.5)], found, PprSearchSettings())
    assert {start.node: start.weight for start in starts} == pytest.approx({0: 0.2, 1: 0.8})
    named = named_shares("Did the Fram leave Paris?", found, 1.0)
    assert {node: share for node, (share, _) in named.items()} == pytest.approx({0: 0.2, 1: 0.8})


def test_the_walk_starts_from_pages_about_what_is_named_and_about_what_those_mention(graph):
    network = network_of(graph.context(), 0.8, 1.0)

    def named(pages: dict[int, float]) -> list[str]:
        documents = graph.context().evidence.documents
        iris = [document_of_chunk(network.iri(page)) for page in pages]
        return [documents([iri])[iri][0] for iri in iris]

    pages = named_pages(named_shares("Who was the builder of the Fram?", network, 2.0), network)
    assert named(pages) == ["Fram"]
    linked = linked_pages(pages, network)
    assert named(linked) == ["Colin Archer"]
    assert sum(linked.values()) == pytest.approx(sum(pages.values()))
    assert named(linked_pages(linked, network)) == ["Larvik"]


def test_a_long_document_is_no_page_about_what_it_is_called_after():
    chunks = [f"urn:chunk:{n}" for n in range(MOST_PAGES + 2)]
    about = dict.fromkeys(((0, 2 + n) for n in range(MOST_PAGES + 1)), 1.0)
    ties = ties_of(mentions={**about, (1, MOST_PAGES + 3): 1.0}, subjects=about)
    entities = [v.entity_iri("Fram"), v.entity_iri("Gjoa")]
    found = build_network(entities, chunks, ties, 1.0, NameIndex([]), lambda iri: None)
    assert len(found.chunks_about(0)) == MOST_PAGES + 1
    assert not found.chunks_about(1)
    assert not named_pages({0: (1.0, "Fram"), 1: (1.0, "Gjoa")}, found)


def test_a_session_of_an_earlier_release_walks_as_it_did(graph):
    context = graph.context()
    method = method_of("ppr", Components(load_settings(None), graph.root / "cache"))
    assert isinstance(method, TwoStages)
    now, before = (
        method.retriever.retrieve(Question(QUESTION), replace(context, wording=wording))
        for wording in (THIRD_WORDING, THIRD_WORDING - 1)
    )
    assert titles(now)[:2] == titles(before)[:2]
    scores = [
        [c.score for c in found.candidates if c.item.kind == "chunk"] for found in (now, before)
    ]
    assert scores[0] != scores[1]


def test_a_model_chooses_the_edges_to_start_from_and_its_call_is_on_record(graph):
    chat = ScriptedModel({"select_edges": '{"none": true}'})
    calls: list[Call] = []
    parts = Components(
        load_settings(None), graph.root / "cache", chat=chat, embedder=HashingEmbedder()
    )
    method = method_of("ppr", parts)
    assert isinstance(method, TwoStages)
    context = graph.context().for_question(calls.append)
    found = method.retriever.retrieve(Question(QUESTION), context)
    assert not any(isinstance(c.item, Edge) for c in found.candidates)
    assert titles(found), "what it names and what is near still lead on"
    assert [call.prompt.name for call in calls if call.prompt] == ["select_edges"]
    assert any(
        isinstance(c.item, Edge) for c in retrieve(graph, chat=chat, filter=False).candidates
    )


def test_reasons_say_over_what_the_walk_came(graph):
    for candidate in retrieve(graph).candidates:
        assert candidate.reasons
    first = next(c for c in retrieve(graph).candidates if c.item.kind == "chunk")
    assert first.reasons[0] == "sentences of the chunk rank highest as answers to the question"
    assert "Fram" in first.reasons[1]
    assert "cosine similarity" in first.reasons[2]
    assert first.reasons[3] == "the question names the title or the subject of the chunk"
    archer = next(c for c in retrieve(graph).candidates if c.item.text.startswith("# Colin"))
    assert archer.reasons[-1] == "a chunk that the question names mentions the subject of the chunk"
    plain = next(c for c in retrieve(graph, read=0).candidates if c.item.kind == "chunk")
    assert "Fram" in plain.reasons[0]


def test_the_chunks_that_are_read_stand_in_front(graph):
    question = "Which ship did Nansen sail in?"
    read = [c for c in retrieve(graph, question, read=3).candidates if c.item.kind == "chunk"]
    plain = [c for c in retrieve(graph, question, read=0).candidates if c.item.kind == "chunk"]
    front = [
        c.item.iri
        for c in read
        if "sentences of the chunk rank highest as answers to the question" in c.reasons
    ]
    assert front == [c.item.iri for c in read[: len(front)]]
    assert 0 < len(front) <= 3
    rest = [c.item.iri for c in plain if c.item.iri not in front]
    assert [c.item.iri for c in read[len(front) :]] == rest[: len(read) - len(front)]
