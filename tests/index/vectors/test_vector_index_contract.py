"""The contract of ``VectorIndex`` and ``VectorStore``, held against every store and every form in
which an index comes about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy import float32
from numpy.typing import NDArray

from tgraph.errors import UsageError
from tgraph.extensions.evidence.crates.reads import NotingIndex
from tgraph.index.vectors.base import StaleIndexError, VectorIndex, VectorStore, text_hash
from tgraph.index.vectors.inverted_list_store import build_vectors
from tgraph.index.vectors.inverted_lists import IvfParameters
from tgraph.index.vectors.keys import Keys
from tgraph.index.vectors.stores import INVERTED_LISTS, exact_index, vector_store
from tgraph.model import Agent
from tgraph.models.base import CallSink, no_sink
from tgraph.models.embedding import embed_windows
from tgraph.models.hashing import HashingEmbedder

DIMENSION = 24


class CountingEmbedder:
    """A hashing embedder that reads four words at a time and counts the texts that it reads."""

    lexical = True
    max_tokens: int | None = 4

    def __init__(self, name: str = "counting", dimension: int = DIMENSION) -> None:
        self.agent = Agent("method", name, "1")
        self.dimension = dimension
        self.texts: list[str] = []
        self._inner = HashingEmbedder(dimension)

    def token_starts(self, text: str) -> list[int]:
        return [i for i in range(len(text)) if i == 0 or text[i - 1] == " "]

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        self.texts.extend(texts)
        return self._inner.embed(texts)


EMBEDDER = CountingEmbedder()
ITEMS = [
    *((f"urn:e:{n:02}", f"word{n} shared{n % 3} text") for n in range(30)),
    ("urn:e:05", "a second text of five"),
    ("urn:e:07", " ".join(["filler"] * 6 + ["polonium", "radium"])),
    ("urn:é", "a second text of five"),
    ("urn:漢", "word3 shared0 text"),
]
IRIS = sorted({iri for iri, _ in ITEMS})
TOUCHED = ["urn:e:02", "urn:e:07", "urn:é", "urn:gone"]
BEFORE = [
    *((iri, text) for iri, text in ITEMS if iri not in TOUCHED),
    ("urn:e:02", "what it said before"),
    ("urn:gone", "word9 shared0 text"),
]
QUERIES = HashingEmbedder(DIMENSION).embed(["word3 shared1", "polonium", "second text", "absent"])
IN_LISTS = IvfParameters(size=2, probed=1_000, threshold=4)

Form = Callable[[VectorStore, Path], VectorIndex]


def fresh(store: VectorStore, folder: Path) -> VectorIndex:
    return store.build_vectors("entity", ITEMS[::-1], EMBEDDER)


def exact(store: VectorStore, folder: Path) -> VectorIndex:
    """As a filtered question builds an index of a part of the state."""
    whole = store.build_vectors("entity", [*ITEMS, ("urn:other", "left out")], EMBEDDER)
    return store.build_vectors("entity", ITEMS, EMBEDDER, whole, exact=True)


def built_with_previous(store: VectorStore, folder: Path) -> VectorIndex:
    """As a question about an earlier day builds an index of the state of that day."""
    store.build_vectors("entity", BEFORE, EMBEDDER).save(folder, 1)
    return store.build_vectors("entity", ITEMS, EMBEDDER, store.open_vectors(folder, "entity"))


def reloaded(store: VectorStore, folder: Path) -> VectorIndex:
    fresh(store, folder).save(folder, 3)
    return store.open_vectors(folder, "entity", generation=3, agent=EMBEDDER.agent, verify=True)


def revised(store: VectorStore, folder: Path) -> VectorIndex:
    items = [item for item in ITEMS if item[0] in TOUCHED]
    before = store.build_vectors("entity", BEFORE, EMBEDDER)
    index = store.revise_vectors(before, items, TOUCHED, EMBEDDER)
    assert index is not None
    return index


def revised_and_reloaded(store: VectorStore, folder: Path) -> VectorIndex:
    revised(store, folder).save(folder, 4)
    return store.open_vectors(folder, "entity", generation=4)


def compacted(store: VectorStore, folder: Path) -> VectorIndex:
    return store.compact_vectors(revised(store, folder))


def from_windows(store: VectorStore, folder: Path) -> VectorIndex:
    """As the vectors of a crate are read."""
    index = fresh(store, folder)
    windows = index.read_windows(np.arange(len(index)))
    return exact_index("entity", index.agent, Keys.from_iris(list(index.keys)), windows)


def noting(store: VectorStore, folder: Path) -> VectorIndex:
    return NotingIndex(fresh(store, folder))


def in_lists(store: VectorStore, folder: Path) -> VectorIndex:
    return build_vectors("entity", ITEMS, EMBEDDER, parameters=IN_LISTS)


def in_lists_with_added_rows(store: VectorStore, folder: Path) -> VectorIndex:
    """Lists that were made before a change, reloaded with the rows that came since."""
    build_vectors("entity", ITEMS[:-1], EMBEDDER, parameters=IN_LISTS).save(folder, 1)
    before = store.open_vectors(folder, "entity")
    added = [("urn:漢", "brand new"), ("urn:漢", "word3 shared0 text")]
    between = store.revise_vectors(before, added, ["urn:漢"], EMBEDDER)
    assert between is not None
    index = store.revise_vectors(between, ITEMS[-1:], ["urn:漢"], EMBEDDER)
    assert index is not None
    index.save(folder, 2)
    return store.open_vectors(folder, "entity", generation=2)


FORMS: list[Form] = [
    fresh,
    exact,
    built_with_previous,
    reloaded,
    revised,
    revised_and_reloaded,
    compacted,
    from_windows,
    noting,
]
CASES = [(INVERTED_LISTS, form) for form in [*FORMS, in_lists, in_lists_with_added_rows]]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def index(request: pytest.FixtureRequest, tmp_path: Path) -> VectorIndex:
    name, form = request.param
    index: VectorIndex = form(vector_store(name), tmp_path)
    return index


@pytest.fixture(params=[INVERTED_LISTS])
def store(request: pytest.FixtureRequest) -> VectorStore:
    return vector_store(request.param)


def window_rows(text: str) -> NDArray[float32]:
    return embed_windows(EMBEDDER, [text], no_sink)[0]


def brute_force(query: NDArray[float32], k: int, allowed: Sequence[str]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for iri, text in ITEMS:
        score = round(float((window_rows(text) @ query).max()), 6)
        best[iri] = max(best.get(iri, -1.0), score)
    hits = [(iri, best[iri]) for iri in IRIS if iri in allowed]
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]


def assert_same_hits(hits: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [iri for iri, _ in hits] == [iri for iri, _ in expected]
    scores, wanted = [score for _, score in hits], [score for _, score in expected]
    assert scores == pytest.approx(wanted, abs=2e-3)  # rows on the disk are of half precision


def test_an_index_names_its_kind_embedder_and_iris_in_order(index: VectorIndex) -> None:
    assert index.kind == "entity"
    assert index.agent == EMBEDDER.agent
    assert index.dimension == DIMENSION
    assert list(index.keys) == IRIS
    assert len(index) == len(IRIS)


def test_a_search_of_everything_finds_what_brute_force_finds(index: VectorIndex) -> None:
    for hits, query in zip(index.search(QUERIES[:3], 5), QUERIES[:3], strict=True):
        scores = dict(brute_force(query, len(IRIS), IRIS))
        assert [score for _, score in hits] == pytest.approx(list(scores.values())[:5], abs=2e-3)
        assert [scores[iri] for iri, _ in hits] == pytest.approx([s for _, s in hits], abs=2e-3)
        assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))
        assert len(dict(hits)) == 5


def test_a_search_among_allowed_iris_is_exact(index: VectorIndex) -> None:
    allowed = ["urn:e:03", "urn:e:05", "urn:e:07", "urn:漢", "urn:unknown"]
    mask = np.array([iri in allowed for iri in index.keys])
    for query in QUERIES[:3]:
        (hits,) = index.search(query, 3, allowed)
        assert_same_hits(hits, brute_force(query, 3, allowed))
        assert index.search(query, 3, mask) == [hits]


def test_hits_of_equal_score_are_in_the_order_of_their_iris(index: VectorIndex) -> None:
    (query,) = HashingEmbedder(DIMENSION).embed(["a second text of five"])
    (hits,) = index.search(query, 2)
    assert [iri for iri, _ in hits] == ["urn:e:05", "urn:é"]
    assert hits[0][1] == hits[1][1]


def test_the_hits_of_a_query_do_not_depend_on_others(index: VectorIndex) -> None:
    together = index.search(QUERIES, 4)
    assert [index.search(query, 4)[0] for query in QUERIES] == together
    assert index.search(QUERIES[::-1], 4) == together[::-1]


def test_the_number_of_hits_has_bounds(index: VectorIndex) -> None:
    assert index.search(QUERIES, 0) == [[]] * len(QUERIES)
    assert index.search(QUERIES[:1], 3, []) == [[]]
    (hits,) = index.search(QUERIES[:1], 1_000)
    assert sorted(iri for iri, _ in hits) == IRIS


def test_a_query_of_another_dimension_is_refused(index: VectorIndex) -> None:
    with pytest.raises(UsageError, match="dimensions"):
        index.search(np.ones((1, DIMENSION + 1), dtype=np.float32), 1)


def test_windows_are_read_in_the_order_of_the_places(index: VectorIndex) -> None:
    iris = ["urn:e:07", "urn:e:05", "urn:漢"]
    windows = index.read_windows(np.array([IRIS.index(iri) for iri in iris]))
    texts = [[text for iri, text in ITEMS if iri == wanted] for wanted in iris]
    rows = [{text_hash(text): window_rows(text) for text in each} for each in texts]
    assert windows.counts.tolist() == [sum(map(len, each.values())) for each in rows]
    assert windows.starts.tolist() == [0, *np.cumsum(windows.counts)[:-1].tolist()]
    at = 0
    for each in rows:
        for digest in sorted(each):
            for row in each[digest]:
                assert windows.hashes[at].tobytes() == digest
                assert windows.vectors[at] == pytest.approx(row, abs=1e-3)
                at += 1
    assert at == len(windows.vectors) == len(windows.hashes)


def test_no_places_have_no_windows(index: VectorIndex) -> None:
    windows = index.read_windows(np.zeros(0, dtype=np.int64))
    assert len(windows.counts) == len(windows.hashes) == len(windows.vectors) == 0


def test_a_saved_index_opens_with_the_same_hits(index: VectorIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "saved", 9)
    opened = vector_store().open_vectors(tmp_path / "saved", "entity", generation=9, verify=True)
    assert list(opened.keys) == IRIS
    for query in QUERIES[:3]:
        (hits,), (before,) = opened.search(query, 8, IRIS), index.search(query, 8, IRIS)
        assert [score for _, score in hits] == pytest.approx([s for _, s in before], abs=2e-3)
    for expected in (
        {"generation": 8},
        {"agent": Agent("method", "another", "1")},
        {"dimension": 7},
    ):
        with pytest.raises(StaleIndexError):
            vector_store().open_vectors(tmp_path / "saved", "entity", **expected)
    with pytest.raises(StaleIndexError):
        vector_store().open_vectors(tmp_path / "saved", "chunk")


def test_an_index_lends_its_vectors_to_the_next(index: VectorIndex) -> None:
    """Only new texts are embedded, whatever form the index before has."""
    embedder = CountingEmbedder()
    items = [*ITEMS[3:], ("urn:new", "brand new")]
    built = vector_store().build_vectors("entity", items, embedder, index)
    assert embedder.texts == ["brand new"]
    changed = vector_store().revise_vectors(index, items[-1:], ["urn:new"], embedder)
    assert changed is not None
    assert embedder.texts == ["brand new"] * 2
    assert list(changed.keys) == sorted([*IRIS, "urn:new"])
    assert list(built.keys) == sorted({iri for iri, _ in items})
    (query,) = HashingEmbedder(DIMENSION).embed(["brand new"])
    assert built.search(query, 1)[0][0][0] == changed.search(query, 1)[0][0][0] == "urn:new"


def test_vectors_of_another_embedder_are_not_reused(store: VectorStore) -> None:
    other = CountingEmbedder("another", 16)
    before = store.build_vectors("entity", ITEMS, EMBEDDER)
    index = store.build_vectors("entity", ITEMS, other, before)
    assert index.dimension == 16
    assert index.agent == other.agent
    assert {text for _, text in ITEMS if len(text.split()) == 3} <= set(other.texts)
    assert store.revise_vectors(before, [("urn:new", "new text")], ["urn:new"], other) is None


def test_an_empty_index_is_saved_opened_searched_and_grown(
    store: VectorStore, tmp_path: Path
) -> None:
    store.build_vectors("entity", [], EMBEDDER).save(tmp_path, 1)
    empty = store.open_vectors(tmp_path, "entity", dimension=99)
    assert len(empty) == empty.dimension == 0
    assert empty.search(QUERIES, 3) == [[]] * len(QUERIES)
    assert list(store.build_vectors("entity", ITEMS, EMBEDDER, empty).keys) == IRIS


def test_an_unknown_store_is_refused() -> None:
    with pytest.raises(UsageError, match="no vector store 'unknown'"):
        vector_store("unknown")
