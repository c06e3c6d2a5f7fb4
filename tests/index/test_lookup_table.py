"""What is looked up is the same wherever it is read: in the statements, or in tables of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from tests.support.workers import collection, open_graph, snapshot
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import StoreError
from tgraph.index.evidence import EvidenceReader, StoredEvidence, stored_evidence
from tgraph.index.graph_source import HUB, GraphSource
from tgraph.index.hub_rows import write_hub_rows
from tgraph.index.lookup_table import (
    FILES,
    LookupTable,
    load_table,
)
from tgraph.index.network_rows import write_network_rows
from tgraph.index.sources import Texts, standing_documents
from tgraph.index.stored_graph import MOST_COUNTED, StoredGraph
from tgraph.index.tabulation import make_tables
from tgraph.index.vectors.inverted_list_store import open_vectors
from tgraph.librarian import Librarian
from tgraph.model import Evidence
from tgraph.retrieve.search.names import WORDING
from tgraph.retrieve.search.network import Network, network_of
from tgraph.retrieve.text.lexical import term_set
from tgraph.store.base import Store
from tgraph.store.oxigraph import OxigraphStore

TEXTS = {
    "a": "Robert Falcon Scott = Scott\nRobert Falcon Scott led Terra Nova Expedition.\n",
    "b": "Scott reached South Pole.\nScott is called Robert Falcon Scott.\n",
    "c": "the South Pole lies in Antarctica.\nTerra Nova Expedition Reached South Pole.\n",
    "d": "South Pole lies-in Antarctica.\nROBERT FALCON SCOTT wrote diary.\n",
    "w": "nothing of note\n",
}
CHANGES = ("indexed", "a merge undone", "the merge again", "split", "retracted", "purged")
DATA = f"{FILES.stem}.[0-9a-f]*[0-9a-f]"
AMBIGUOUS = "Walter Scott = Scott\nWalter Scott wrote Ivanhoe.\n"


def everything(store: Store, reader: EvidenceReader) -> tuple[Any, ...]:
    """All that a reader says about whatever there is in the store."""

    def named(predicate: NamedNode, *, subject: bool = False) -> list[str]:
        quads = store.match(None, predicate, None)
        found = {quad.subject if subject else quad.object for quad in quads}
        return sorted(term.value for term in found if isinstance(term, NamedNode))

    merged = [*named(v.tg("canonical")), *named(v.tg("absorbed"))]
    edges = [*named(v.RDF_REIFIES, subject=True), *named(v.tg("edge"))]
    entities = sorted({*named(v.tg("entity")), *merged})
    everywhere = named(v.tg("charOffset"), subject=True)
    documents = named(v.prov("specializationOf"))
    mentions = {entity: chunks for entity, chunks in reader.mentions().items() if chunks}
    for one in entities:
        assert reader.mentions([one]).get(one) == mentions.get(one)
        assert reader.telling([one], 2).get(one) == first_places(reader, one, 2)
    return (
        reader.of_edges(edges, 1),
        reader.of_edges(edges, 99),
        {entity: sorted(rows, key=_place) for entity, rows in reader.of_entities(entities).items()},
        reader.by_iri(everywhere),
        reader.documents([*documents, v.document_iri("0" * 64)]),
        mentions,
        reader.telling(entities, 1),
        reader.stated_in(sorted({place.chunk for place in reader.by_iri(everywhere).values()})),
    )


def first_places(reader: EvidenceReader, entity: str, limit: int) -> tuple[Evidence, ...] | None:
    """Of an entity's places the first that describe it, or else that name it."""
    rows = sorted(reader.of_entities([entity]).get(entity, ()), key=_place)
    describing = [place for place, description in rows if description]
    return tuple((describing or [place for place, _ in rows])[:limit]) or None


def _place(row: tuple[Evidence, str]) -> tuple[str, str]:
    return row[0].iri, row[1]


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of a graph after each of the changes that it goes through."""
    return changed_graphs(tmp_path_factory.mktemp("evidence"))


@pytest.fixture(scope="module")
def added_states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """The same where tables are never made anew, and few edges make a hub."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tgraph.index.lookup_table.LARGEST_ADDITION", 0)
        patch.setattr("tgraph.index.hub_rows.KEPT_HUB", 1)
        yield changed_graphs(tmp_path_factory.mktemp("added"))


def changed_graphs(folder: Path) -> dict[str, Path]:
    kept: dict[str, Path] = {}

    def keep(name: str) -> None:
        kept[name] = folder / f"state-{len(kept)}"
        shutil.copytree(folder / "g", kept[name])

    def index(kg: KnowledgeGraph, **texts: str) -> None:
        for name, text in texts.items():
            (folder / f"{name}.txt").write_text(text)
        assert not kg.index([folder / f"{name}.txt" for name in texts]).failed

    def change(name: str) -> None:
        with open_graph(folder / "g") as kg:
            match name:
                case "indexed":
                    index(kg, **TEXTS)
                case "a merge undone":
                    index(kg, w=AMBIGUOUS)
                case "the merge again":
                    index(kg, w="nothing at all\n")
                case "split":
                    kg.entities.split("Scott", reason="two people")
                case "retracted":
                    kg.retract(str(folder / "c.txt"), reason="withdrawn")
                case "purged":
                    kg.purge(str(folder / "d.txt"), reason="a request")
        keep(name)

    for name in CHANGES:
        change(name)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["states", "added_states"])
def test_the_graph_is_the_same_in_the_table(
    request: pytest.FixtureRequest, which: str, change: str
) -> None:
    with snapshot(request.getfixturevalue(which)[change]) as found:
        table = load_table(found.vectors, found.pointer.generation)
        assert table is not None
        with closing(table):
            said = whole_graph(found.store, table)
            known = whole_graph(found.store, StoredGraph(found.store))
            assert said[1:] == known[1:]
            assert said[0].items() <= known[0].items()
            assert table.evidence.of_edges(list(known[0].keys() - said[0].keys())) == []
            assert all(said)


def whole_graph(store: Store, graph: GraphSource) -> tuple[Any, ...]:
    """All that a source says about whatever there is in the store."""
    quads = list(store.match(None, None, None))
    things = sorted({t.value for q in quads for t in [*q][:3] if isinstance(t, NamedNode)})
    others = ("edge:", "community:", "report:", "finding:")
    resources = [thing for thing in things if not any(map(thing.__contains__, others))]
    names = sorted({q.object.value for q in quads if isinstance(q.object, Literal)})
    edges = [thing for thing in things if thing.startswith(f"{v.URN}edge:")]
    said = graph.statements
    return (
        said.triples(edges),
        {thing: said.read_edges_around(thing) for thing in things if "entity:" in thing},
        said.attributes(edges),
        said.labels(resources),
        said.aliases(resources),
        said.types(resources),
        said.find_entities_by_name([*names, "nobody"]),
    )


@pytest.mark.slow
def test_pages_read_from_the_table_as_from_their_texts(states: dict[str, Path]) -> None:
    with snapshot(states["indexed"]) as found:
        librarian = Librarian(collection(states["indexed"]).librarian)
        table = load_table(found.vectors, found.pointer.generation)
        assert table is not None
        with closing(table):
            stored, kept = (
                Texts(found.store, librarian),
                Texts(found.store, librarian, lambda: table.pages),
            )
            for document in standing_documents(found.store):
                assert table.pages.reading(document)
                assert kept.reading(document, None) == stored.reading(document, None)
                assert kept.media_type(document) == stored.media_type(document) == "text/plain"
                assert kept.is_note(document) == stored.is_note(document)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["states", "added_states"])
def test_the_table_says_what_the_store_says(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, which: str, change: str
) -> None:
    monkeypatch.setattr("tgraph.index.lookup_rows._FIRST", 1)  # rows of an entity at a time
    states = request.getfixturevalue(which)
    with snapshot(states[change]) as found:
        texts = Texts(found.store, Librarian(collection(states[change]).librarian))
        table = load_table(found.vectors, found.pointer.generation)
        assert table is not None
        with closing(table):
            said = everything(found.store, EvidenceReader(table.evidence, texts))
            assert said == everything(found.store, stored_evidence(found.store, texts))
            assert all(said)
            quads = list(found.store.match(None, None, None))
            subjects = {q.subject.value for q in quads if isinstance(q.subject, NamedNode)}
            counts = StoredGraph(found.store).counts
            counted = counts.degrees(sorted(subjects))
            assert counted == table.counts.degrees(sorted(subjects))
            assert max(counted.values()) > 1
            standing = {each.chunk for each in said[3].values()}
            assert table.counts.chunk_tokens(standing) == counts.chunk_tokens(sorted(standing))


@pytest.mark.parametrize("change", CHANGES)
def test_the_network_of_graph_ranking_is_the_same_in_the_table(
    states: dict[str, Path], change: str
) -> None:
    with open_graph(states[change]) as kg:
        context = kg.opened.context()
        plain = replace(context, table=lambda: None, _memory={})
        for settings in (0.8, 1.0), (0.95, 0.0), (0.1, 2.0):
            kept, read = (network_of(each, *settings) for each in (context, plain))
            nodes = range(len(read.entities) + len(read.chunks))
            assert [*map(kept.iri, nodes)] == [*map(read.iri, nodes)]
            assert [*map(kept.list_neighbours, nodes)] == [*map(read.list_neighbours, nodes)]
            assert list(kept.spread) == list(read.spread)
            assert kept.walk({0: 1.0}, 0.85) == pytest.approx(read.walk({0: 1.0}, 0.85), abs=1e-9)
            for name in ("Scott", "robert falcon scott", "the South Pole", "diary"):
                assert kept.node(v.entity_iri(name)) == read.node(v.entity_iri(name))
                assert named_nodes(kept, name) == named_nodes(read, name)
        assert named_nodes(kept, "South Pole")


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_put_for_changed_keys_is_what_is_made_of_all(
    added_states: dict[str, Path], change: str
) -> None:
    with snapshot(added_states[change]) as found:
        librarian = Librarian(collection(added_states[change]).librarian)
        vectors = {kind: open_vectors(found.vectors, kind) for kind in ("entity", "edge", "chunk")}
        added = load_table(found.vectors, found.pointer.generation)
        assert added is not None
        assert (added.newer is None) == (change in ("indexed", "purged"))
        with closing(added), closing(make_tables(found.store, librarian)) as anew:
            write_network_rows(anew.reader, found.store, vectors, WORDING)
            write_hub_rows(anew.reader, Texts(found.store, librarian), term_set)
            assert kept(added) == kept(anew)
            assert kept(anew)["hub"]


def kept(table: LookupTable) -> dict[str, list[Any]]:
    """The rows that are written last, by table."""

    def rows(name: str) -> list[Any]:
        [found] = table.reader.matching_rows(name, f"SELECT * FROM {name}", [()])
        return sorted(set(found))

    return {name: rows(name) for name in ("node", "alike", "link", "hub")}


def named_nodes(found: Network, text: str) -> list[tuple[str, list[int]]]:
    return [(name.text, sorted(name.nodes)) for name in found.names.in_text(text)]


def test_an_entity_with_very_many_relationships_is_counted_up_to_a_bound(
    tmp_path: Path,
) -> None:
    hub, spoke = NamedNode(v.entity_iri("hub")), v.URN + "entity:spoke{}"
    near = v.relation_iri("near")
    store = OxigraphStore.memory(
        quad
        for n in range(MOST_COUNTED + 5)
        for quad in (
            Quad(hub, NamedNode(near), NamedNode(spoke.format(n))),
            Quad(NamedNode(spoke.format(n)), NamedNode(near), hub),
            Quad(hub, v.tg("description"), Literal(str(n))),
        )
    )
    with closing(make_tables(store, Librarian(tmp_path))) as table:
        entities, stored = [hub.value, spoke.format(0)], StoredGraph(store)
        assert [*table.counts.degrees(entities).values()] == [2 * MOST_COUNTED, 2]
        assert stored.counts.degrees(entities) == table.counts.degrees(entities)
        around = table.statements.read_edges_around(hub.value)
        assert around == stored.statements.read_edges_around(hub.value)
        assert HUB < len(around) < 2 * HUB + 1


def test_all_values_that_a_piece_of_evidence_has_are_read(tmp_path: Path) -> None:
    """Two replies may describe one place differently; the tables have what the statements say."""
    document, evidence = v.document_iri("0" * 64), NamedNode(f"{v.URN}evidence:{'1' * 40}")
    chunk, entity = f"{v.URN}chunk:{'0' * 64}:0-9", v.entity_iri("hub")

    def said(subject: NamedNode, predicate: NamedNode, *terms: NamedNode | Literal) -> list[Quad]:
        return [Quad(subject, predicate, term, v.SOURCE_GRAPH) for term in terms]

    accession = NamedNode("urn:accession")
    store = OxigraphStore.memory(
        [
            *said(accession, v.prov("specializationOf"), NamedNode(document)),
            *said(accession, v.tg("path"), Literal("a.txt")),
            *said(NamedNode(document), v.dcterms("title"), Literal("A")),
            *said(evidence, v.tg("entity"), NamedNode(entity)),
            *said(evidence, v.prov("wasDerivedFrom"), NamedNode(chunk)),
            *said(evidence, v.tg("charOffset"), Literal(0)),
            *said(evidence, v.tg("charLength"), Literal(3)),
            *said(evidence, v.tg("quote"), Literal("hub")),
            *said(evidence, v.tg("description"), Literal("one"), Literal("other")),
        ]
    )
    with closing(make_tables(store, Librarian(tmp_path), scratch=tmp_path)) as table:
        stated = StoredEvidence(store).of_entities([entity])
        assert len(found := sorted(table.evidence.of_entities([entity]))) == 2
        assert found == sorted(stated)


def test_merged_names_lend_their_evidence(states: dict[str, Path]) -> None:
    """Otherwise the test above would compare too little."""

    def quotes(change: str) -> set[str]:
        with open_graph(states[change]) as kg:
            evidence = kg.opened.context().evidence
            found = evidence.of_entities([v.entity_iri("Robert Falcon Scott")])
        return {place.quote for rows in found.values() for place, _ in rows}

    assert "Scott reached South Pole." in quotes("the merge again")
    assert "Scott reached South Pole." not in quotes("split")
    assert "ROBERT FALCON SCOTT wrote diary." not in quotes("purged")


@pytest.mark.parametrize(
    ("file", "damage"),
    [
        (DATA, lambda data: data[:-1]),
        (DATA, lambda data: b""),
        (DATA, lambda data: data[:5000] + b"x" + data[5001:]),
        (FILES.head, lambda data: b"{}"),
        (FILES.head, lambda data: b"x"),
    ],
)
def test_what_is_damaged_is_not_read(states, tmp_path, file, damage):
    with snapshot(states["indexed"]) as found:
        shutil.copytree(found.vectors, tmp_path / "v")
        generation = found.pointer.generation
    assert load_table(tmp_path / "v", generation + 1) is None
    (path,) = (tmp_path / "v").glob(file)
    path.write_bytes(damage(path.read_bytes()))
    assert load_table(tmp_path / "v", generation) is None


def test_a_folder_without_one_has_none(tmp_path):
    assert load_table(tmp_path, 1) is None


def test_without_the_table_answers_are_the_same(states, tmp_path):
    shutil.copytree(states["the merge again"], tmp_path / "g")
    for path in (tmp_path / "g").rglob(DATA):
        path.unlink()
    said = []
    for root in (states["the merge again"], tmp_path / "g"):
        with open_graph(root) as kg:
            context = kg.opened.context()
            assert (context.table() is None) == (root == tmp_path / "g")
            answer = kg.ask("Who reached the South Pole?", "local", history=[])
            trace = kg.trace(answer.session)
            said.append((answer.text, [(i.item, i.score) for i in trace.selected]))
    assert said[0] == said[1]


def test_a_large_file_that_is_damaged_is_noticed_when_it_is_read(states, tmp_path, monkeypatch):
    """It is not read as a whole before."""
    monkeypatch.setattr("tgraph.index.sqlite_files.CHECKED_WHOLE", 0)
    with snapshot(states["indexed"]) as found:
        shutil.copytree(found.vectors, tmp_path / "v")
        generation = found.pointer.generation
    (path,) = (tmp_path / "v").glob(DATA)
    data = path.read_bytes()
    path.write_bytes(data[:100] + bytes(len(data) - 100))
    table = load_table(tmp_path / "v", generation)
    assert table is not None
    with closing(table), pytest.raises(StoreError, match="Index again"):
        table.evidence.documents([v.document_iri("0" * 64)])
