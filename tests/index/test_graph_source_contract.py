"""The contract of ``GraphSource``: the store, its tables, and tables with newer rows give the same
answers to the same look-ups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from tests.support.workers import collection, open_graph, snapshot
from tgraph import vocabulary as v
from tgraph.index.evidence import EvidenceReader
from tgraph.index.graph_source import EdgeAttributes, GraphSource
from tgraph.index.lookup_table import load_table
from tgraph.index.network_ties import WeightedPairs
from tgraph.index.sources import Texts, chunks_of_document, standing_documents
from tgraph.index.stored_graph import StoredGraph
from tgraph.index.vectors.base import VectorIndex
from tgraph.index.vectors.inverted_list_store import open_vectors
from tgraph.librarian import Librarian
from tgraph.retrieve.search.names import WORDING
from tgraph.store.base import Store

EARLIER = {
    "amundsen.txt": "Roald Amundsen = Amundsen\nRoald Amundsen led Fram Expedition.\n",
    "pole.txt": "Amundsen reached South Pole.\nSouth Pole lies in Antarctica.\n",
}
LATER = {
    "fram.txt": "Fram Expedition reached South Pole.\nFram Museum studied Fram Expedition.\n",
    "gone.txt": "Amundsen wrote diary.\n",
}
NAMES = ("Roald Amundsen", "Amundsen", "Fram Expedition", "Fram Museum", "South Pole", "Antarctica")
AMUNDSEN, AMUNDSEN_ALONE, EXPEDITION, MUSEUM, POLE, ANTARCTICA = map(v.entity_iri, NAMES)
PART = "tgraph.index.lookup_table.LARGEST_ADDITION"
NOBODY, DIARY = v.entity_iri("nobody"), v.entity_iri("diary")


def edge(subject: str, relation: str, obj: str) -> str:
    return v.edge_iri(NamedNode(subject), NamedNode(v.relation_iri(relation)), NamedNode(obj))


LED, REACHED = edge(AMUNDSEN, "led", EXPEDITION), edge(AMUNDSEN, "reached", POLE)
REACHED_ALONE = edge(AMUNDSEN_ALONE, "reached", POLE)
REACHED_LATER, LIES = edge(EXPEDITION, "reached", POLE), edge(POLE, "lies-in", ANTARCTICA)
STUDIED, WROTE = edge(MUSEUM, "studied", EXPEDITION), edge(AMUNDSEN_ALONE, "wrote", DIARY)
EVERYBODY = [AMUNDSEN, AMUNDSEN_ALONE, POLE, NOBODY, DIARY]
THING = [v.tg("Entity").value, v.type_iri("thing")]


class OpenSource:
    """A source with the store that it is of, its texts and its vectors."""

    def __init__(self, graph: GraphSource, store: Store, texts: Texts, folder: Path) -> None:
        self.graph = graph
        self.store = store
        self.reader = EvidenceReader(graph.evidence, texts)
        self.vectors: dict[str, VectorIndex] = {
            kind: open_vectors(folder, kind) for kind in ("entity", "edge", "chunk")
        }
        self.network = graph.network(self.vectors, WORDING)

    def named(self, pairs: WeightedPairs) -> dict[frozenset[str], float]:
        """The weights of pairs by the IRIs of their nodes."""
        nodes = [*self.vectors["entity"].keys, *self.vectors["chunk"].keys]
        ends = (frozenset(map(nodes.__getitem__, pair)) for pair in pairs.ends.tolist())
        return dict(zip(ends, pairs.weights.tolist(), strict=True))

    def chunk(self, title: str) -> str:
        """The chunk of a document of one."""
        documents = self.reader.documents(standing_documents(self.store))
        [document] = [iri for iri, (_, path) in documents.items() if path.endswith(title)]
        [chunk] = chunks_of_document(self.store, document)
        return chunk


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph whose tables are made whole, and one with tables of what changed beside them."""
    folders = {name: tmp_path_factory.mktemp(name) for name in ("whole", "added")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tgraph.index.hub_rows.KEPT_HUB", 2)
        for name, folder in folders.items():
            for file, text in (EARLIER | LATER).items():
                (folder / file).write_text(text)
            runs = [EARLIER | LATER] if name == "whole" else [EARLIER, LATER]
            # how much smaller the newer tables have to be: without bound, or so that none is
            patch.setattr(PART, 10**9 if name == "whole" else 0)
            with open_graph(folder / "g") as kg:
                for files in runs:
                    assert not kg.index([folder / file for file in files]).failed
                kg.retract(str(folder / "gone.txt"), reason="no such thing")
    return folders


@pytest.fixture(scope="module", params=["store", "tables", "tables with newer rows"])
def source(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Iterator[OpenSource]:
    folder = folders["added" if "newer" in request.param else "whole"] / "g"
    with snapshot(folder) as state:
        texts = Texts(state.store, Librarian(collection(folder).librarian))
        table = load_table(state.vectors, state.pointer.generation)
        assert table is not None
        assert (table.newer is not None) == ("newer" in request.param)
        with closing(table):
            graph: GraphSource = StoredGraph(state.store) if request.param == "store" else table
            yield OpenSource(graph, state.store, texts, state.vectors)


def test_triples_have_the_names_of_the_texts_too(source: OpenSource) -> None:
    triples = source.graph.statements.triples([LED, REACHED, REACHED_ALONE, edge(POLE, "a", POLE)])
    relation = NamedNode(v.relation_iri("reached"))
    assert triples.keys() == {LED, REACHED, REACHED_ALONE}
    assert triples[REACHED] == (NamedNode(AMUNDSEN), relation, NamedNode(POLE))
    assert triples[REACHED_ALONE] == (NamedNode(AMUNDSEN_ALONE), relation, NamedNode(POLE))


@pytest.mark.parametrize(
    ("entity", "edges"),
    [
        (AMUNDSEN, {LED, REACHED}),
        (POLE, {REACHED, REACHED_LATER, LIES}),
        (AMUNDSEN_ALONE, set()),
        (DIARY, set()),
        (NOBODY, set()),
    ],
)
def test_statements_around_an_entity(source: OpenSource, entity: str, edges: set[str]) -> None:
    around = source.graph.statements.read_edges_around(entity)
    assert around.keys() == edges
    assert source.graph.statements.triples(list(edges)) == around


def test_attributes_are_those_of_edges_of_knowledge(source: OpenSource) -> None:
    assert source.graph.statements.attributes([REACHED, REACHED_ALONE, WROTE]) == {
        REACHED: EdgeAttributes(5.0, "Amundsen reached South Pole.")
    }


def test_names_and_types(source: OpenSource) -> None:
    statements = source.graph.statements
    assert statements.labels(EVERYBODY) == {AMUNDSEN: "Roald Amundsen", POLE: "South Pole"}
    assert statements.aliases(EVERYBODY) == {AMUNDSEN: ["Amundsen"]}
    assert statements.types(EVERYBODY) == {AMUNDSEN: THING, POLE: THING}
    names = ["Amundsen", "South Pole", "south pole", "diary"]
    assert statements.find_entities_by_name(names) == {"Amundsen": [AMUNDSEN], "South Pole": [POLE]}


@pytest.mark.parametrize(
    "look_up", ["triples", "attributes", "labels", "aliases", "types", "find_entities_by_name"]
)
def test_no_keys_have_no_rows(source: OpenSource, look_up: str) -> None:
    assert getattr(source.graph.statements, look_up)([]) == {}


def test_evidence_of_edges_includes_merged_edges(source: OpenSource) -> None:
    evidence = source.reader.of_edges([REACHED, LIES, WROTE], 9)
    assert {edge: [place.quote for place in places] for edge, places in evidence.items()} == {
        REACHED: ["Amundsen reached South Pole."],
        LIES: ["South Pole lies in Antarctica."],
    }
    places = [place.iri for places in evidence.values() for place in places]
    by_iri = source.reader.by_iri(places)
    assert {place.quote for place in by_iri.values()} == {
        "Amundsen reached South Pole.",
        "South Pole lies in Antarctica.",
    }
    assert by_iri[evidence[REACHED][0].iri].statement == REACHED_ALONE


def test_evidence_of_entities(source: OpenSource) -> None:
    rows = source.reader.of_entities([AMUNDSEN, DIARY])
    assert rows.keys() == {AMUNDSEN}
    assert {place.quote for place, _ in rows[AMUNDSEN]} == {
        "Roald Amundsen = Amundsen",
        "Amundsen reached South Pole.",
    }
    assert len(source.reader.telling([AMUNDSEN], 1)[AMUNDSEN]) == 1
    chunks = {source.chunk("amundsen.txt"), source.chunk("pole.txt")}
    assert source.graph.evidence.mentions([AMUNDSEN, DIARY]) == {AMUNDSEN: chunks}
    mentions = source.graph.evidence.mentions()
    assert mentions[AMUNDSEN] == chunks
    assert DIARY not in mentions


def test_edges_of_a_chunk_are_in_the_order_of_their_places(source: OpenSource) -> None:
    chunk = source.chunk("fram.txt")
    stated = source.graph.evidence.stated_in([chunk, source.chunk("amundsen.txt"), "urn:nowhere"])
    assert [iri for _, iri in stated[chunk]] == [REACHED_LATER, STUDIED]
    assert "urn:nowhere" not in stated


def test_documents_that_do_not_stand_are_left_out(source: OpenSource) -> None:
    documents = [
        quad.object.value
        for quad in source.store.match(None, v.prov("specializationOf"), None)
        if isinstance(quad.object, NamedNode)
    ]
    standing = source.reader.documents(documents)
    titles = {title for title, _ in standing.values()}
    assert len(titles) == len(standing) == len(set(documents)) - 1 == 3


def test_counts(source: OpenSource) -> None:
    counts = source.graph.counts
    assert counts.degrees(EVERYBODY) == dict.fromkeys(EVERYBODY, 0) | {AMUNDSEN: 2, POLE: 3}
    chunk = source.chunk("fram.txt")
    assert counts.chunk_tokens([chunk, "urn:nowhere"]) == {chunk: 14}


def test_a_hub_has_the_edges_around_its_entity(source: OpenSource) -> None:
    """Where a source keeps hubs: the store has none, and its entities are ranked edge by edge."""
    hubs = source.graph.hubs.hubs(EVERYBODY)
    assert hubs.keys() <= {POLE}
    for entity, hub in hubs.items():
        around = source.graph.statements.read_edges_around(entity)
        assert [iri.decode() for iri in hub.iris.tolist()] == sorted(around)
        assert source.graph.hubs.triples(around) == around
        best = dict(
            zip(sorted(around), hub.weigh_shared_terms({"antarctica": 2.0}).tolist(), strict=True)
        )
        assert best == {REACHED: 0.0, REACHED_LATER: 0.0, LIES: 2.0}


def test_ties_of_the_network(source: OpenSource) -> None:
    ties = source.network.ties(0.8)
    assert ties is not None
    facts = [
        (AMUNDSEN, EXPEDITION),
        (EXPEDITION, POLE),
        (MUSEUM, EXPEDITION),
        (POLE, ANTARCTICA),
        (AMUNDSEN, POLE),
    ]
    assert source.named(ties.facts) == dict.fromkeys(map(frozenset, facts), 1.0)
    amundsen, pole, fram = map(source.chunk, ("amundsen.txt", "pole.txt", "fram.txt"))
    mentions = {
        amundsen: [AMUNDSEN, EXPEDITION],
        pole: [AMUNDSEN, POLE, ANTARCTICA],
        fram: [EXPEDITION, MUSEUM, POLE],
    }
    pairs = (frozenset((chunk, e)) for chunk, entities in mentions.items() for e in entities)
    assert source.named(ties.mentions) == dict.fromkeys(pairs, 1.0)
    assert source.named(ties.subjects) == {frozenset((AMUNDSEN, amundsen)): 1.0}
    assert source.named(ties.synonyms) == {}
    places = [source.vectors["entity"].keys.find(iri) for iri in (ANTARCTICA, POLE)]
    assert [ties.chunk_counts(5)[place] for place in places if place is not None] == [1, 2]


def test_synonyms_share_a_word(source: OpenSource) -> None:
    ties = source.network.ties(0.1)
    assert ties is not None
    [(pair, likeness)] = source.named(ties.synonyms).items()
    assert pair == {EXPEDITION, MUSEUM}
    assert 0.1 < likeness < 1


def test_names_lead_to_resources(source: OpenSource) -> None:
    forms = ["south pole", "amundsen", "fram", "diary", "south pole"]
    assert source.network.find_named_resources(forms) == {
        "south pole": {POLE},
        "amundsen": {AMUNDSEN},
    }
    assert source.network.merged_into(EVERYBODY) == {AMUNDSEN_ALONE: AMUNDSEN}
