"""Fast indexing: a graph of what stands together, without a model, with exact evidence."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

import tgraph
from tests.support.chunks import chunk_of
from tgraph import vocabulary as v
from tgraph.engine.components import Components
from tgraph.engine.index.cooccurrence_graph import RELATION
from tgraph.extract.english import parser
from tgraph.extract.fast import FastExtractor
from tgraph.index.evidence import stored_evidence
from tgraph.index.sources import Texts
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ticking_clock

NANSEN = (
    "Fridtjof Nansen ordered the Fram from Colin Archer. The Fram drifted with Fridtjof Nansen "
    "through the polar ice. Colin Archer had built pilot boats before.\n"
)
AMUNDSEN = (
    "Roald Amundsen took the Fram to the Bay of Whales. Roald Amundsen built Framheim "
    "at the Bay of Whales. Later Fridtjof Nansen praised Roald Amundsen. Colin Archer saw the Fram "
    "again.\n"
)
SCOTT = (
    "Robert Falcon Scott reached the South Pole after Roald Amundsen. Nobody told Scott that "
    "Roald Amundsen had gone to the Bay of Whales.\n"
)


class Place:
    def __init__(self, folder: Path, **settings: object) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._settings = {
            "extract.method": "fast",
            "fast.window": "sentence",
            "fast.remove_ego_nodes": False,
            **settings,
        }
        self._ids, self._clock = count(), ticking_clock()

    def open(self) -> tgraph.KnowledgeGraph:
        values = load_settings(None, {"chat.provider": "embedded", **self._settings})
        parts = Components(values, self.folder / "cache", embedder=HashingEmbedder())
        return tgraph.open(
            self.folder / "graph",
            create=True,
            parts=parts,
            settings=self._settings,
            clock=self._clock,
            uuid=lambda: f"00000000-0000-4000-8000-{next(self._ids):012d}",
        )

    def index(self, **texts: str):
        for name, text in texts.items():
            (self.folder / f"{name}.txt").write_text(text, "utf-8")
        with self.open() as kg:
            return kg.index([self.folder / f"{name}.txt" for name in texts])

    def knowledge(self) -> set[str]:
        """The default graph without what is about communities, which have tests of their own."""
        with self.open() as kg:
            store = kg.opened.read()
            quads = list(store.match(None, None, None, v.KNOWLEDGE_GRAPH))
            kinds = {v.tg("Community"), v.tg("Isolated")}
            others = {q.subject for q in quads if q.predicate == v.RDF_TYPE and q.object in kinds}
            return {str(q) for q in quads if q.subject not in others and q.object not in others}

    def edges(self) -> dict[tuple[str, str], list[str]]:
        """The pairs by name, with the quotes of their evidence, each checked against its page."""
        with self.open() as kg:
            store = kg.opened.read()
            texts = Texts(store, kg.opened.librarian)
            found = {}
            for quad in store.match(None, RELATION, None, v.KNOWLEDGE_GRAPH):
                assert isinstance(quad.subject, NamedNode)
                assert isinstance(quad.object, NamedNode)
                edge = v.edge_iri(quad.subject, RELATION, quad.object)
                evidence = stored_evidence(store, texts).of_edges([edge], 9)[edge]
                for e in evidence:
                    assert e.quote == texts.of_page(e.document, e.page)[e.start : e.end]
                ends = sorted(label(store, end) for end in (quad.subject, quad.object))
                found[ends[0], ends[1]] = sorted(e.quote for e in evidence)
            return found


def label(store, node: NamedNode) -> str:
    (quad,) = store.match(node, v.RDFS_LABEL, None, v.KNOWLEDGE_GRAPH)
    return str(quad.object.value)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "one")


def test_what_stands_together_is_tied_by_the_sentences_that_name_both(place):
    report = place.index(nansen=NANSEN, amundsen=AMUNDSEN)
    assert report.entities > 0
    assert report.relationships > 0
    assert report.dropped["name that is too rare"] > 0
    edges = place.edges()
    assert edges["Bay of Whales", "Roald Amundsen"] == [
        "Roald Amundsen built Framheim at the Bay of Whales.",
        "Roald Amundsen took the Fram to the Bay of Whales.",
    ]
    assert all("Framheim" not in ends for ends in edges)


def test_neighbouring_sentences_are_evidence_whole(tmp_path):
    place = Place(tmp_path, **{"fast.window": "neighbours", "fast.min_edge_weight_pct": 0})
    place.index(nansen=NANSEN, amundsen=AMUNDSEN)
    assert "Colin Archer saw the Fram again." in place.edges()["Colin Archer", "Fram"]
    assert place.edges()["Colin Archer", "Roald Amundsen"] == [
        "Later Fridtjof Nansen praised Roald Amundsen. Colin Archer saw the Fram again."
    ]


@pytest.mark.slow
def test_knowledge_follows_from_what_stands_and_not_from_how_it_came(tmp_path):
    together, apart = Place(tmp_path / "together"), Place(tmp_path / "apart")
    together.index(nansen=NANSEN, amundsen=AMUNDSEN, scott=SCOTT)
    for name, text in {"scott": SCOTT, "nansen": "Nothing yet.", "amundsen": AMUNDSEN}.items():
        apart.index(**{name: text})
    apart.index(nansen=NANSEN)
    assert apart.knowledge() == together.knowledge()
    with together.open() as one, apart.open() as other:
        assert one.opened.read() is not other.opened.read()
    apart.index(scott="Gone.")
    alone = Place(tmp_path / "alone")
    alone.index(nansen=NANSEN, amundsen=AMUNDSEN)
    assert apart.knowledge() == alone.knowledge()
    assert apart.knowledge() != together.knowledge()


def test_a_run_that_takes_nothing_in_changes_nothing_unless_the_limits_change(place):
    place.index(nansen=NANSEN, amundsen=AMUNDSEN)
    before = place.knowledge()
    assert place.index(nansen=NANSEN).dropped == {}
    assert place.knowledge() == before
    stricter = Place(place.folder, **{"fast.min_node_freq": 4})
    stricter._ids = count(100)
    stricter.index(nansen=NANSEN)
    assert stricter.knowledge() < before or len(stricter.knowledge()) < len(before)
    place.index(nansen=NANSEN)
    assert place.knowledge() == before


def test_questions_are_answered_over_it(place):
    place.index(nansen=NANSEN, amundsen=AMUNDSEN, scott=SCOTT)
    with place.open() as kg:
        answer = kg.ask("Who took the Fram to the Bay of Whales?")
        assert not answer.no_evidence
        assert "Roald Amundsen took the Fram to the Bay of Whales." in answer.text
        for sentence in answer.sentences:
            assert sentence.citations


def test_both_methods_share_a_graph(place):
    place.index(nansen=NANSEN, amundsen=AMUNDSEN)
    standard = Place(place.folder, **{"extract.method": "standard"})
    standard._ids = count(100)
    standard.index(scott=SCOTT)
    edges = place.edges()
    assert ("Bay of Whales", "Roald Amundsen") in edges
    with place.open() as kg:
        scott = NamedNode(v.entity_iri("Robert Falcon Scott"))
        assert list(kg.opened.read().match(scott, None, None, v.KNOWLEDGE_GRAPH))


def read(text: str, title: str = "Notes") -> list[tuple[str, list[str]]]:
    """Each sentence with what it names."""
    chunk = chunk_of(text, 50)
    found = FastExtractor().extract(chunk, title)
    for entity in found.entities:
        assert entity.span is not None
        assert entity.span.quote == text[entity.span.start - 50 : entity.span.end - 50]
    return [
        (text[s.start - 50 : s.end - 50], [found.entities[at].name for at in s.entities])
        for s in found.sentences
    ]


def test_phrases_are_nouns_with_what_says_something_of_them():
    ((_, named),) = read("The old captain kept many sea charts and a pocket-watch in a big room.")
    assert named == ["sea chart", "pocket-watch"]


def test_short_names_join_long_ones_and_names_inside_names_are_not_named_twice():
    first, second = read("Captain Robert Scott sailed to Ross Island. There Scott wintered.")
    assert first[1] == ["Robert Scott", "Ross Island"]
    assert second[1] == ["Robert Scott"]


def test_long_words_are_left_out():
    text = "He read about electroencephalography machines and steam engines."
    ((_, named),) = read(text)
    assert named == ["steam engine"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "Im Winter lag die Fram vor der Insel, und Nansen schrieb über das Eis. Dann ging "
            "Nansen mit Johansen nach Norden, und die Fram trieb weiter.",
            {"Fram", "Nansen"},
        ),
        ("弗拉姆号在冰中漂流。南森离开弗拉姆号。弗拉姆号到达挪威。", {"弗拉姆号"}),
    ],
)
def test_other_languages_go_by_their_words(text, names):
    assert names <= {name for _, named in read(text) for name in named}


def test_english_without_spacy_goes_by_its_words_too(monkeypatch):
    monkeypatch.setattr(parser, "package_versions", lambda: ("", ""))
    monkeypatch.setattr(parser, "load_pipeline", lambda: pytest.fail("the pipeline is not needed"))
    found = [named for _, named in read("Then they say that Nansen met Archer.")]
    assert found[0] == ["Nansen", "Archer"]


@pytest.mark.parametrize("text", ["", " \n", "...", "a", "\u0301\u0301", "x" * 5000, "A. " * 500])
def test_any_text_can_be_read(text):
    read(text)
