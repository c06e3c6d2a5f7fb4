"""Communities through the library: made by an index run, kept by the next, and on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyshacl
import pytest
from pyoxigraph import NamedNode, Quad
from rdflib import Graph

from tests.support.workers import generation, knowledge, open_graph, snapshot
from tgraph import vocabulary as v
from tgraph.engine.index.run import IndexReport
from tgraph.explain.export.formats import serialise_quads
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.index.communities.communities import isolated_entities, read_communities
from tgraph.model import Community
from tgraph.resources import read_text

CURIES = "Marie Curie discovered polonium.\nPierre Curie worked in Paris.\nMarie Curie won it.\n"
RING = "".join(f"P{n} led P{(n + 1) % 14}.\n" for n in range(14))


class Corpus:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "g"

    def index(self, settings: dict[str, Any] | None = None, **texts: str) -> IndexReport:
        paths = [self.folder / f"{name}.txt" for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
        with open_graph(self.root, settings=settings) as kg:
            return kg.index(paths)

    def update(self, text: str) -> None:
        with open_graph(self.root) as kg:
            kg.update(text)

    @property
    def communities(self) -> dict[str, Community]:
        with snapshot(self.root) as found:
            return {community.iri: community for community in read_communities(found.store)}

    def knowledge(self) -> set[Quad]:
        with snapshot(self.root) as found:
            return knowledge(found.store)

    def record(self, kind: str) -> set[str]:
        with snapshot(self.root) as found:
            quads = found.store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH)
            return {q.subject.value for q in quads if isinstance(q.subject, NamedNode)}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


def test_an_index_run_makes_and_counts_them(corpus: Corpus) -> None:
    report = corpus.index(a=CURIES, b=RING, c="Alone = Lonely\n")
    assert report.communities == len(corpus.communities) >= 5
    assert report.isolated == 1
    with snapshot(corpus.root) as found:
        assert isolated_entities(found.store) == (v.entity_iri("Alone"),)
    top = [c for c in corpus.communities.values() if c.level == 0]
    small = [c for c in top if len(c.members) < 10]
    assert {v.entity_iri("Pierre Curie"), v.entity_iri("Paris")} in [set(c.members) for c in small]


def test_the_next_run_over_the_same_files_changes_nothing(corpus: Corpus) -> None:
    first = corpus.index(a=CURIES, b=RING)
    before = generation(corpus.root)
    second = corpus.index(a=CURIES, b=RING)
    assert generation(corpus.root) == before
    assert (second.communities, second.isolated) == (first.communities, first.isolated)
    assert len(corpus.record("Clustering")) == 1


@pytest.mark.slow
def test_a_change_leaves_other_parts_alone(corpus: Corpus) -> None:
    corpus.index(a=CURIES, b=RING)
    before = corpus.communities
    corpus.index(b=RING + "P3 led P9.\n")
    after = corpus.communities
    curies = {name for name, c in before.items() if v.entity_iri("Paris") in c.members}
    assert curies <= after.keys()
    hierarchies = corpus.record("Hierarchy")
    with snapshot(corpus.root) as found:
        ended = found.store.match(None, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH)
        ends = {q.subject.value for q in ended if isinstance(q.subject, NamedNode)}
    assert len(hierarchies) == 4, "three parts at first, one of them anew"
    assert len(hierarchies & ends) == 1
    assert len(corpus.record("FormerCommunity")) == len(before.keys() - after.keys()) > 0


@pytest.mark.slow
def test_what_leaves_the_documents_leaves_the_communities(corpus: Corpus, tmp_path: Path) -> None:
    other = Corpus(tmp_path / "other")
    other.folder.mkdir()
    corpus.index(a=CURIES, b=RING)
    corpus.index(b=CURIES)
    other.index(a=CURIES, b=CURIES)
    assert corpus.knowledge() == other.knowledge()


@pytest.mark.slow
def test_other_settings_are_honoured_by_the_next_run(corpus: Corpus) -> None:
    corpus.index(a=CURIES, b=RING)
    before = corpus.communities
    smaller = {"communities.max_size": 3}
    report = corpus.index(smaller, a=CURIES, b=RING)
    assert report.indexed == ()
    assert max(len(c.members) for c in corpus.communities.values() if not c.children) <= 3
    assert corpus.index(smaller, a=CURIES).generation == report.generation
    corpus.index(a=CURIES, b=RING)
    assert corpus.communities == before


@pytest.mark.slow
def test_only_the_largest_part_may_have_communities(corpus: Corpus) -> None:
    corpus.index(curies=CURIES, ring=RING)
    every = corpus.communities
    corpus.index({"communities.use_lcc": True}, curies=CURIES, ring=RING)
    largest = corpus.communities
    assert largest
    assert largest.items() < every.items()
    assert not any("curie" in m for each in largest.values() for m in each.members)
    with open_graph(corpus.root, settings={"communities.use_lcc": True}) as kg:
        assert kg.audit("knowledge").rows == ()
        assert kg.audit("shapes").passed
    corpus.index(curies=CURIES, ring=RING)
    assert corpus.communities == every


@pytest.mark.slow
def test_the_seed_is_on_record_and_part_of_what_communities_depend_on(corpus: Corpus) -> None:
    corpus.index(ring=RING)
    before = corpus.record("Hierarchy")
    corpus.index({"communities.seed": 7}, ring=RING)
    assert len(corpus.record("Clustering")) == 2
    assert corpus.record("Hierarchy") > before
    with open_graph(corpus.root, settings={"communities.seed": 7}) as kg:
        assert kg.audit("knowledge").rows == ()


@pytest.mark.parametrize("quality", ["cpm", "surprise"])
def test_other_qualities_are_named_in_the_record(corpus: Corpus, quality: str) -> None:
    corpus.index({"communities.quality": quality}, a=CURIES, b=RING)
    assert corpus.communities
    with snapshot(corpus.root) as found:
        agents = {value.object for value in found.store.match(None, v.prov("wasAssociatedWith"))}
        names = {str(agent) for agent in agents}
    assert any("method:leidenalg-leiden:" in name for name in names)


def test_an_update_is_followed_at_once(corpus: Corpus) -> None:
    corpus.index(a=CURIES)
    edge = f"<{v.entity_iri('Pierre Curie')}> ?p <{v.entity_iri('Paris')}>"
    corpus.update(f"DELETE {{ {edge} }} WHERE {{ {edge} }}")
    assert all(v.entity_iri("Paris") not in c.members for c in corpus.communities.values())


@pytest.mark.slow
def test_retrieval_takes_nothing_of_communities(corpus: Corpus) -> None:
    corpus.index(a=CURIES, b=RING)
    with open_graph(corpus.root) as kg:
        kg.ask("Which community is Marie Curie a member of, and who discovered polonium?")
        rows = kg.sparql("SELECT ?edge { ?candidate a tg:Candidate ; tg:edge ?edge }")
    with snapshot(corpus.root) as found:
        edges = found.store.match(None, v.RDF_TYPE, v.tg("Edge"), v.KNOWLEDGE_GRAPH)
        known = {quad.subject for quad in edges}
    candidates = {row["edge"] for row in rows}  # type: ignore[union-attr]
    assert candidates
    assert candidates <= known


@pytest.mark.slow
def test_the_record_of_changes_conforms(corpus: Corpus) -> None:
    corpus.index(a=CURIES, b=RING)
    corpus.index(b=RING + "P3 led P9.\n")
    corpus.update("INSERT DATA { <urn:x:paris> rdfs:label 'Paris' }")
    with snapshot(corpus.root) as found:
        quads = [q for q in found.store.match() if "urn:x:paris" not in str(q.subject)]
    data = Graph().parse(
        data=serialise_quads(replace_triple_terms(quads), "turtle"), format="turtle"
    )
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    conforms, _, text = pyshacl.validate(data, shacl_graph=shapes, inference="none")
    assert conforms, text
