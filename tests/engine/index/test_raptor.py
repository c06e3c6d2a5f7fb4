"""The tree of summaries: grown, recorded, kept up to date, searched at once and from the top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyshacl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import Graph

import tgraph
from tests.support import corpora
from tests.support.examples import examples
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.ask.methods import TwoStages
from tgraph.engine.components import Components
from tgraph.engine.index.run import IndexReport
from tgraph.errors import EndpointError
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.index.cluster_summaries import ClusterPassage, ModelWriter, QuotingWriter
from tgraph.index.gaussian_mixture import Limits, soft_clusters
from tgraph.index.summary_tree import TreeNode, is_chunk, standing_tree, summary_text, ways_down
from tgraph.model import Retrieval
from tgraph.models.base import no_sink
from tgraph.models.tokens import count_tokens
from tgraph.resources import read_text
from tgraph.retrieve.base import Question
from tgraph.settings import load_settings
from tgraph.store.statements import format_nquads
from tgraph.testing import Fault, HashingEmbedder, ScriptedModel, ScriptedServer

STEP = "summarise_cluster"
SHIPS = ("Fram", "Gauss", "Nimrod", "Belgica", "Discovery", "Quest", "Aurora")


def ship(name: str) -> str:
    return (
        f"# {name}\n\n{name} was a ship of the south. The ship {name} lay in the ice of the south"
        f" for a winter. The captain of {name} kept a diary in the ice.\n"
    )


def baker(name: str) -> str:
    return (
        f"# {name}\n\n{name} was a baker of rye bread. The oven of {name} was hot at four in the"
        f" morning. The bread of {name} was sold in the market of the town.\n"
    )


TEXTS = {f"{name.lower()}.md": ship(name) for name in SHIPS} | {
    f"{name.lower()}.md": baker(name)
    for name in ("Anna", "Berta", "Clara", "Dora", "Emma", "Frida")
}


class Corpus(corpora.Corpus):
    """A folder of documents and a graph of them."""

    def __init__(self, folder: Path, chat: Any = None, **settings: object) -> None:
        super().__init__(folder, chat, extract__gleanings=0, raptor__enabled=True, **settings)

    def index(self, texts: Mapping[str, str] = TEXTS) -> IndexReport:
        return super().index(texts)

    def tree(self) -> dict[str, TreeNode]:
        with self.open() as kg:
            return standing_tree(kg.opened.read())

    def retrieve(self, question: str, mode: str, **values: object) -> Retrieval:
        made = load_settings(None, {**self.settings, **values})
        parts = Components(made, self.folder / "cache", embedder=HashingEmbedder())
        method = method_of(mode, parts)
        assert isinstance(method, TwoStages)
        with self.open() as kg:
            context = kg.context(mode).for_question(no_sink)
            return method.retriever.retrieve(Question(question), context)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return Corpus(tmp_path)


@pytest.mark.slow
def test_a_view_with_settings_of_its_own_grows_the_tree_by_those_of_the_graph(
    tmp_path: Path,
) -> None:
    """A question grows the tree for everybody, so its own settings don't count."""
    trees = []
    for name, values in (("own", {}), ("view", {"raptor.max_words": 20, "answer.language": "de"})):
        corpus = corpora.Corpus(tmp_path / name, None, extract__gleanings=0)
        corpus.index(TEXTS)
        with corpus.open() as kg:
            with kg.view(values) as view:
                view.ask("Which ship lay in the ice?", "raptor", history=())
            store = kg.opened.read()
            trees.append(sorted(summary_text(store, node) for node in standing_tree(store)))
    assert trees[0] == trees[1]


# --- clusters ---


def blobs(groups: int, each: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(groups, 40))
    return np.concatenate([c + 0.1 * rng.normal(size=(each, 40)) for c in centres])


def test_what_lies_together_is_one_cluster() -> None:
    found = soft_clusters(blobs(5, 15), [1] * 75, Limits())
    assert found == [tuple(range(start, start + 15)) for start in range(0, 75, 15)]


def test_what_lies_between_belongs_to_both() -> None:
    points = blobs(2, 20)
    between = (points[:20].mean(axis=0) + points[20:].mean(axis=0)) / 2
    found = soft_clusters(np.vstack([points, between]), [1] * 41, Limits(threshold=0.01))
    assert {row for cluster in found for row in cluster} == set(range(41))


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 40), st.integers(0, 5), st.integers(1, 60))
def test_everything_is_in_a_cluster_and_none_is_too_large(n: int, seed: int, size: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(n, 12)).round(1)
    sizes = [10] * n
    found = soft_clusters(vectors, sizes, Limits(dimensions=4, size=size))
    assert {row for cluster in found for row in cluster} == set(range(n))
    assert all(len(cluster) <= 2 or 10 * len(cluster) <= size for cluster in found)
    assert found == soft_clusters(vectors, sizes, Limits(dimensions=4, size=size))


def test_equal_vectors_can_be_divided_too() -> None:
    found = soft_clusters(np.ones((30, 8)), [100] * 30, Limits(size=500))
    assert max(map(len, found)) <= 5


# --- the tree ---


def test_summaries_lead_down_to_every_chunk(corpus: Corpus) -> None:
    corpus.index()
    tree = corpus.tree()
    assert max(node.level for node in tree.values()) >= 2
    top = [iri for iri in tree if not any(iri in node.members for node in tree.values())]
    with corpus.open() as kg:
        chunks = set(kg.context().vectors["chunk"].keys)
        summaries = set(kg.context().vectors["summary"].keys)
    assert {chunk for iri in top for chunk in ways_down(tree, iri)} == chunks
    assert summaries == set(tree)
    for iri in top:
        for way in ways_down(tree, iri).values():
            assert way[0] == iri
            assert all(low in tree[high].members for high, low in pairwise(way))


def test_what_has_not_changed_is_not_made_anew(corpus: Corpus) -> None:
    first = corpus.index()
    assert corpus.index().generation == first.generation


def test_unchanged_clusters_keep_their_summaries(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, ScriptedModel())
    corpus.index()
    before, asked = corpus.tree(), corpus.chat.count(STEP)
    assert asked == len(before)
    corpus.index({"gerda.md": baker("Gerda")})
    after = corpus.tree()
    assert corpus.chat.count(STEP) == asked + len(after.keys() - before.keys())
    assert after.keys() & before.keys()


@pytest.mark.slow
def test_a_superseded_document_takes_its_summaries_out_of_knowledge(corpus: Corpus) -> None:
    corpus.index()
    before = corpus.tree()
    corpus.index({"fram.md": "# Fram\n\nThe Fram is a museum in Oslo today.\n"})
    after = corpus.tree()
    assert before.keys() - after.keys()
    with corpus.open() as kg:
        chunks = set(kg.context().vectors["chunk"].keys)
        gone = next(iter(before.keys() - after.keys()))
        assert summary_text(kg.opened.read(), gone), "its record stays"
    members = {m for node in after.values() for m in node.members if is_chunk(m)}
    assert members == chunks


@pytest.mark.slow
def test_the_tree_is_made_on_first_use_and_kept_up_to_date_from_then_on(corpus: Corpus) -> None:
    corpus.settings["raptor.enabled"] = False
    corpus.index()
    assert not corpus.tree()
    with corpus.open() as kg:
        kg.ask("Which ship lay in the ice?", "raptor")
    assert sum("raptor" in line for line in corpus.said) == 1
    corpus.said.clear()
    corpus.index({"new.md": ship("Terra Nova")})
    with corpus.open() as kg:
        kg.ask("Which ship lay in the ice?", "raptor-traversal")
    assert not corpus.said
    assert any("ice" in text for text in texts(corpus))


def texts(corpus: Corpus) -> list[str]:
    with corpus.open() as kg:
        store = kg.opened.read()
        return [summary_text(store, iri) for iri in standing_tree(store)]


@pytest.mark.slow
def test_everything_that_is_written_conforms_to_the_shapes(corpus: Corpus) -> None:
    corpus.index()
    corpus.index({"fram.md": ship("Fram II")})
    with corpus.open() as kg:
        quads = replace_triple_terms(kg.opened.read().match())
    graph = Graph().parse(data=format_nquads(quads), format="nt")
    shapes = Graph().parse(data=read_text("ontology", "shapes.ttl"), format="turtle")
    conforms, _, text = pyshacl.validate(graph, shacl_graph=shapes, inference="none")
    assert conforms, text


def test_two_chunks_are_a_tree_and_one_is_none(corpus: Corpus) -> None:
    corpus.index({"fram.md": ship("Fram")})
    assert not corpus.tree()
    with corpus.open() as kg:
        assert kg.ask("Which ship lay in the ice?", "raptor").sentences
    corpus.index({"gauss.md": ship("Gauss")})
    assert [len(node.members) for node in corpus.tree().values()] == [2]


# --- writers ---


def test_quotations_stand_in_the_passages() -> None:
    passages = [ClusterPassage("A", ship("Fram")), ClusterPassage("B", ship("Gauss"))]
    made = QuotingWriter(30).write(passages)
    flat = " ".join(" ".join(passage.text.split()) for passage in passages)
    assert made.text
    assert all(line in flat for line in made.text.splitlines())
    assert len(made.text.split()) <= 30
    assert (
        QuotingWriter(20).write([ClusterPassage("A", "Word"), ClusterPassage("B", "")]).text
        == "Word"
    )


def test_what_has_no_room_is_cut_and_counted() -> None:
    model = ScriptedModel()
    long = "The ship lay in the ice. " * 200
    made = ModelWriter(model, 50, 500).write([ClusterPassage("A", long), ClusterPassage("B", long)])
    assert made.dropped == {"passage cut for its summary": 2}
    shown = str(model.requests[0].messages[-1]["content"])
    assert count_tokens(shown) < 600


@pytest.mark.parametrize("reply", ['{"title": "T", "summary": ""}', "Here you are!"])
def test_a_reply_that_is_of_no_use_costs_its_summary_and_is_asked_for_again(
    tmp_path: Path, reply: str
) -> None:
    corpus = Corpus(tmp_path, ScriptedModel({STEP: lambda request: reply}))
    report = corpus.index()
    before = corpus.tree()
    assert report.dropped["summary of a cluster whose reply can't be used"] == len(before)
    assert all("\n" in text or text for text in texts(corpus))
    corpus.chat = ScriptedModel()
    corpus.index({"new.md": ship("Terra Nova")})
    assert not before.keys() & corpus.tree().keys()


def test_an_interrupted_run_does_not_pay_for_a_summary_twice(tmp_path: Path) -> None:
    with ScriptedServer(faults=[Fault("unauthorised", STEP, nth=2)]) as server:
        corpus = Corpus(tmp_path, chat__base_url=server.base_url, chat__concurrency=1)
        with pytest.raises(EndpointError):
            corpus.index()
        corpus.index()
        assert server.count(STEP) == len(corpus.tree()) + 1


# --- searching ---


def levels(found: Retrieval, tree: Mapping[str, TreeNode]) -> Sequence[int]:
    return [tree[c.item.iri].level if c.item.iri in tree else 0 for c in found.candidates]


def test_all_levels_are_searched_at_once(corpus: Corpus) -> None:
    corpus.index()
    found = corpus.retrieve("Which ships lay in the ice of the south?", "raptor")
    scores = [candidate.score for candidate in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert {0, 1} <= set(levels(found, corpus.tree()))


def test_a_traversal_goes_from_the_top_down(corpus: Corpus) -> None:
    corpus.index()
    tree = corpus.tree()
    found = corpus.retrieve(
        "Which ships lay in the ice?", "raptor-traversal", **{"raptor_search.top_k": 2}
    )
    down = levels(found, tree)
    assert down == sorted(down, reverse=True)
    assert down[-1] == 0
    chosen = [candidate.item.iri for candidate in found.candidates]
    top = {iri for iri in tree if not any(iri in node.members for node in tree.values())}
    for iri in chosen:
        assert iri in top or any(iri in tree[c].members for c in chosen if c in tree)


LEVELS = "Which ships lay in the ice of the south?"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A corpus whose summaries are short, so that they name few; only read."""
    made = Corpus(tmp_path_factory.mktemp("levels"), raptor__max_words=20)
    made.index()
    return made


def set_for_raptor(**values: object) -> dict[str, object]:
    return {f"raptor_search.{name}": value for name, value in values.items()}


@pytest.mark.parametrize("mode", ["raptor", "raptor-traversal"])
@pytest.mark.parametrize(
    ("start", "count", "allowed"), [(1, 1, {1}), (0, None, {0}), (1, None, {0, 1}), (99, 1, None)]
)
def test_the_levels_that_are_searched_can_be_set(
    indexed: Corpus, mode: str, start: int, count: int | None, allowed: set[int] | None
) -> None:
    tree = indexed.tree()
    allowed = allowed or {max(node.level for node in tree.values())}
    values = set_for_raptor(start_layer=start, num_layers=count)
    found = indexed.retrieve(LEVELS, mode, **values)
    assert set(levels(found, tree)) == allowed


def test_chunks_alone_are_found_as_basic_search_finds_them(indexed: Corpus) -> None:
    chunks = indexed.retrieve(LEVELS, "raptor", **set_for_raptor(start_layer=0, k=5))
    basic = indexed.retrieve(LEVELS, "basic", **{"basic_search.k": 5})
    assert [c.item.iri for c in chunks.candidates] == [c.item.iri for c in basic.candidates]


@pytest.mark.parametrize("mode", ["raptor", "raptor-traversal"])
def test_a_threshold_takes_all_that_are_like_enough(indexed: Corpus, mode: str) -> None:
    every = indexed.retrieve(LEVELS, mode, **set_for_raptor(threshold=0.0, k=1, top_k=1))
    assert len(every.candidates) == len(indexed.tree()) + len(TEXTS)
    assert len(indexed.retrieve(LEVELS, mode, **set_for_raptor(k=1, top_k=1)).candidates) < 5
    least = sorted(c.score for c in every.candidates)[1]
    some = indexed.retrieve(LEVELS, mode, **set_for_raptor(threshold=least))
    assert len(some.candidates) < len(every.candidates)
    assert all(c.score >= least for c in some.candidates)
    assert not indexed.retrieve(LEVELS, mode, **set_for_raptor(threshold=1.0)).candidates


def test_why_not_names_the_levels_and_the_threshold(indexed: Corpus) -> None:
    with indexed.open() as kg:
        said = " ".join(summary_text(kg.opened.read(), iri) for iri in indexed.tree())
    unsaid = next(name for name in ("Anna", "Berta", "Clara", "Dora", "Emma") if name not in said)
    with indexed.open(**set_for_raptor(start_layer=1, num_layers=1)) as kg:
        session = kg.ask(LEVELS, "raptor").session
        assert "levels 1 to 1 were searched" in kg.why_not(session, unsaid).reason
        assert kg.trace(session).parameters["num-layers"] == "1"
        assert kg.replay(session).is_same
    with indexed.open(**set_for_raptor(threshold=0.9)) as kg:
        session = kg.ask(LEVELS, "raptor-traversal").session
        assert "(threshold)" in kg.why_not(session, unsaid).reason
        assert kg.replay(session).is_same


def test_a_quoting_summary_rests_on_the_characters_that_it_quotes(corpus: Corpus) -> None:
    corpus.index()
    found = corpus.retrieve("Which ships lay in the ice of the south?", "raptor")
    summaries = [c for c in found.candidates if c.item.kind == "summary"]
    for candidate in summaries:
        for place in candidate.evidence:
            text = (corpus.folder / Path(place.path).name).read_text()
            assert text[place.start : place.end] == place.quote
            assert " ".join(place.quote.split()) in candidate.item.text
            assert place.via[0] == candidate.item.iri


@pytest.mark.slow
def test_an_answer_from_a_summary_leads_down_to_characters(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, ScriptedModel())
    corpus.index()
    with corpus.open() as kg:
        answer = kg.ask("Which ships lay in the ice of the south?", "raptor-traversal")
        cited = [c for s in answer.sentences for c in s.citations if c.kind == "summary"]
        assert cited
        for citation in cited:
            assert citation.via[0] == citation.item
            text = (tmp_path / Path(citation.path).name).read_text()
            assert text[citation.start : citation.end] == citation.quote
            down = f"""ASK {{ <{citation.item}> <http://www.w3.org/ns/prov#wasDerivedFrom>+
                <{citation.chunk}> }}"""
            assert kg.sparql(down)
        traced = [c for s in kg.trace(answer.session).sentences for c in s.citations]
        assert {c.via for c in traced if c.via} == {c.via for c in cited}


@pytest.mark.slow
def test_a_selected_summary_does_not_select_what_it_was_made_from(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, raptor_search__max_context_tokens=500)
    corpus.index()
    with corpus.open() as kg:
        session = kg.ask("Which ships lay in the ice of the south?", "raptor-traversal").session
        trace, tree = kg.trace(session), standing_tree(kg.opened.read())
        below = {m for each in trace.selected if each.item in tree for m in tree[each.item].members}
        assert below & {each.item for each in trace.rejected}
        assert kg.audit("shapes", session).rows == ()


@pytest.mark.slow
def test_filters_leave_the_summaries_that_rest_on_what_is_left(corpus: Corpus) -> None:
    corpus.index()
    ships = tgraph.Filters(documents=tuple(f"{name.lower()}.md" for name in SHIPS))
    with corpus.open() as kg:
        for mode in ("raptor", "raptor-traversal"):
            answer = kg.ask("Which ships lay in the ice of the south?", mode, filters=ships)
            trace = kg.trace(answer.session)
            kinds = {item.kind for item in (*trace.selected, *trace.rejected)}
            assert "chunk" in kinds
            assert "baker" not in answer.text
        only = tgraph.Filters(documents=("fram.md",))
        assert kg.ask("Which ship lay in the ice?", "raptor-traversal", filters=only).sentences
