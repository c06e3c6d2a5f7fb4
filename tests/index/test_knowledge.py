"""Knowledge is a function of the standing evidence: changes by parts end where all at once does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Triple

from tests.support.examples import examples
from tests.support.workers import LineExtractor, knowledge
from tgraph import vocabulary as v
from tgraph.extract.base import with_endpoints
from tgraph.index.decisions import Decisions
from tgraph.index.descriptions import Described, Original, PendingDescriptions
from tgraph.index.knowledge import Derivation
from tgraph.index.standing_knowledge import term_value
from tgraph.index.touched import Touched
from tgraph.model import Chunk, ExtractedEntity, Extraction
from tgraph.record.activities import Authorship
from tgraph.record.sources import ExtractionRecord
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import SpooledQuads
from tgraph.testing import ticking_clock

NAMES = ["Robert Falcon Scott", "Scott", "the Scott", "Walter Scott", "Ivanhoe", "South Pole", "R"]
RELATIONS = ["reached", "Reached", "wrote", "lies in", "lies-in"]
LINES = st.one_of(
    st.builds("{} {} {}".format, *map(st.sampled_from, (NAMES, RELATIONS, NAMES))),
    st.builds("{} = {}".format, *map(st.sampled_from, (NAMES, NAMES))),
)
SPLITS = st.lists(
    st.lists(st.sampled_from(NAMES).map(v.entity_iri), min_size=2, max_size=2, unique=True).map(
        lambda pair: (pair[0], pair[1])
    ),
    max_size=2,
)
DOCUMENTS = st.lists(
    st.lists(LINES, min_size=1, max_size=5).map("\n".join), max_size=6, unique=True
)


class Graph:
    """A store in memory in which documents come to stand and cease to."""

    def __init__(self, splits: Iterable[tuple[str, str]] = ()) -> None:
        self.store = OxigraphStore.memory()
        self.splits = tuple(splits)
        self.standing: set[str] = set()
        self.merges: dict[str, str] = {}
        self._touched: dict[str, Touched] = {}

    def change(
        self,
        *,
        add: Sequence[str] = (),
        withdraw: Sequence[str] = (),
        touched: Iterable[str] = (),
    ) -> None:
        self._change(add, withdraw, Touched(set(touched)))

    def _change(self, add: Sequence[str], withdraw: Sequence[str], touched: Touched) -> None:
        for text in [*add, *withdraw]:
            found = self._read(text)
            touched.entities |= found.entities
            touched.edges |= found.edges
        self.standing = (self.standing | set(map(iri, add))) - set(map(iri, withdraw))
        derivation = Derivation(
            self.store, self.merges, lambda chunk: chunk in self.standing, Decisions(self.splits)
        )
        change = derivation.run(touched)
        self.store.remove(change.removed)
        self.store.extend(change.added)
        for absorbed in change.unmerged:
            del self.merges[absorbed]
        self.merges |= change.merged

    def renamed(self, text: str) -> Iterator[tuple[str, str]]:
        """The edges that the text states under other names, each after what it is now."""
        for original, triple in self._read(text).edges.items():
            ends = (triple.subject, triple.object)
            one, other = (NamedNode(self.merges.get(term_value(e), term_value(e))) for e in ends)
            canonical = v.edge_iri(one, triple.predicate, other)
            if one != other and canonical != original:
                yield canonical, original

    def _read(self, text: str) -> Touched:
        if text not in self._touched:
            chunk = _chunk(text)
            extraction = with_endpoints(LineExtractor().extract(chunk, ""))
            now = ticking_clock()()
            how = Authorship("urn:run", LineExtractor.agent, (), now, now)
            record = ExtractionRecord(how, chunk, extraction, "lines")
            self.store.extend(record.quads())
            self._touched[text] = Touched(record.entities, record.edges)
        return self._touched[text]


def _chunk(text: str) -> Chunk:
    return Chunk(v.digest_parts(text), None, 0, 0, len(text), text, len(text.split()))


def iri(text: str) -> str:
    return _chunk(text).iri


def at_once(documents: list[str], splits: Iterable[tuple[str, str]] = ()) -> set[Quad]:
    graph = Graph(splits)
    graph.change(add=documents)
    return knowledge(graph.store)


@pytest.mark.slow
@settings(max_examples=examples(80), deadline=None)
@given(DOCUMENTS, DOCUMENTS, SPLITS, st.randoms(use_true_random=False))
def test_the_way_does_not_matter(
    kept: list[str], passing: list[str], splits: list[tuple[str, str]], random: Random
) -> None:
    """Documents that come and go, one by one and in any order, leave nothing behind."""
    coming = sorted({*kept, *passing})
    random.shuffle(coming)
    leaving = [text for text in passing if text not in kept]
    graph = Graph(splits)
    for text in coming:
        graph.change(add=[text])
    for text in leaving:
        graph.change(withdraw=[text])
    assert knowledge(graph.store) == at_once(kept, splits)
    for text in leaving:
        graph.change(add=[text])
    assert knowledge(graph.store) == at_once([*kept, *leaving], splits)
    for first, second in splits:
        assert graph.merges.get(first, first) != graph.merges.get(second, second)


@settings(max_examples=examples(50), deadline=None)
@given(DOCUMENTS, SPLITS)
def test_a_split_made_later_is_as_if_it_had_always_been(
    documents: list[str], splits: list[tuple[str, str]]
) -> None:
    graph = Graph()
    graph.change(add=documents)
    before = knowledge(graph.store)
    for taken in (tuple(splits), ()):
        graph.splits = taken
        graph.change(touched={entity for pair in splits for entity in pair})
        assert knowledge(graph.store) == (at_once(documents, taken) if taken else before)


@settings(max_examples=examples(50), deadline=None)
@given(DOCUMENTS)
def test_what_knowledge_holds(documents: list[str]) -> None:
    """Each statement has its edge and both ends are entities with one label; no one is absorbed."""
    graph = Graph()
    graph.change(add=documents)
    quads = knowledge(graph.store)
    entities = {q.subject for q in quads if q.object == v.tg("Entity")}
    edges = {str(q.subject) for q in quads if q.object == v.tg("Edge")}
    stated = [q for q in quads if q.predicate.value.startswith(v.relation_iri(""))]
    assert edges == {f"<{v.edge_iri(q.subject, q.predicate, q.object)}>" for q in stated}
    for quad in stated:
        assert {quad.subject, quad.object} <= entities
    for thing in entities | {q.predicate for q in stated}:
        assert sum(q.subject == thing and q.predicate == v.RDFS_LABEL for q in quads) == 1
    assert not set(graph.merges) & {e.value for e in entities if not isinstance(e, Triple)}
    said = {
        (term_value(q.subject), term_value(q.object))
        for q in quads
        if q.predicate == v.tg("original")
    }
    assert said == {pair for text in documents for pair in graph.renamed(text)}


def test_an_edge_weighs_what_its_standing_evidence_says() -> None:
    graph, other = Graph(), "Ivanhoe wrote R\nScott reached South Pole"
    ends = (NamedNode(v.entity_iri(name)) for name in ("Scott", "South Pole"))
    edge = v.edge_iri(next(ends), NamedNode(v.relation_iri("reached")), next(ends))

    def said(name: str) -> list[str]:
        found = graph.store.match(NamedNode(edge), v.tg(name), None, v.KNOWLEDGE_GRAPH)
        return [term_value(quad.object) for quad in found]

    graph.change(add=["Scott reached South Pole", other])
    assert said("weight") == ["10"]
    graph.change(withdraw=[other])
    assert said("weight") == ["5"]
    assert said("description") == ["Scott reached South Pole"]


def test_an_entity_is_called_by_its_own_name_however_often_another_is_used() -> None:
    graph = Graph()
    often = ["Scott reached South Pole", "Scott wrote R", "Scott wrote Ivanhoe"]
    graph.change(add=["Robert Falcon Scott = Scott", *often])
    scott = v.entity_iri("Robert Falcon Scott")
    assert graph.merges == {v.entity_iri("Scott"): scott}
    labels = graph.store.match(NamedNode(scott), v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
    assert [term_value(quad.object) for quad in labels] == ["Robert Falcon Scott"]


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["ship", "concept"], "ship"),
        (["concept", "thing", "concept", "ship"], "ship"),
        (["concept", "concept", "concept", "ship"], "concept"),
        (["thing", "person", "person", "ship"], "person"),
        (["concept"], "concept"),
    ],
)
def test_a_specific_type_goes_before_a_vague_one(kinds: list[str], expected: str) -> None:
    store = OxigraphStore.memory()
    entities = set()
    for number, kind in enumerate(kinds):
        chunk = _chunk(f"Fram {number}")
        extraction = Extraction(chunk.iri, (ExtractedEntity("Fram", kind),), ())
        now = ticking_clock()()
        how = Authorship("urn:run", LineExtractor.agent, (), now, now)
        record = ExtractionRecord(how, chunk, extraction, "kinds")
        store.extend(record.quads())
        entities |= record.entities
    change = Derivation(store, {}, lambda chunk: True).run(Touched(entities, {}))
    types = {
        term_value(q.object)
        for q in change.added
        if q.predicate == v.RDF_TYPE and term_value(q.subject) in entities
    }
    assert types == {v.tg("Entity").value, v.type_iri(expected)}


def test_what_a_large_change_does_not_hold_in_memory_is_the_same(tmp_path: Path) -> None:
    node = NamedNode("urn:x")
    texts = ['"\\\n\r\t\u2028', "ä" * 200, ""]
    quads = [Quad(node, v.tg("description"), Literal(text)) for text in texts]
    quads.append(Quad(node, v.RDF_REIFIES, Triple(node, node, Literal("1", language="en"))))
    quads.append(Quad(node, node, node, v.SOURCE_GRAPH))
    with (
        closing(SpooledQuads(tmp_path, in_memory=1)) as spooled,
        closing(PendingDescriptions(tmp_path)) as pending,
    ):
        for quad in quads:
            spooled += [quad]
            assert list(spooled)[-1] == quad
        assert list(spooled) == quads
        described = [
            Described(f"urn:{n}", tuple(Original(text, ("urn:e", "urn:f")) for text in texts))
            for n in range(3)
        ]
        for one in described:
            pending.add(one)
        assert [pending[subject] for subject in pending] == described
        assert len(pending) == len(described)
    assert not list(tmp_path.iterdir())
