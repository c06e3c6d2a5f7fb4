"""Vector sets: search against a brute-force oracle, re-use, damage, staleness, atomicity."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.errors import StoreError, UsageError
from tgraph.index.data_files import DamagedIndexError
from tgraph.index.vectors import files
from tgraph.index.vectors.base import StaleIndexError
from tgraph.index.vectors.inverted_list_store import build_vectors, open_vectors, revise_vectors
from tgraph.index.vectors.inverted_lists import InvertedLists, IvfParameters
from tgraph.index.vectors.keys import Keys
from tgraph.index.vectors.vector_set import VectorSet
from tgraph.model import Agent
from tgraph.models.hashing import HashingEmbedder

DIMENSION = 32


class Spy:
    """A hashing embedder of few dimensions that reads four tokens at a time and counts texts."""

    lexical = True

    def __init__(
        self, name: str = "spy", dimension: int = DIMENSION, max_tokens: int | None = None
    ):
        self.agent = Agent("method", name, "1")
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.seen: list[str] = []
        self._inner = HashingEmbedder(dimension)

    def token_starts(self, text: str) -> list[int]:
        return [i for i in range(len(text)) if i == 0 or text[i - 1] == " "]

    def embed(self, texts: Sequence[str], sink=None) -> np.ndarray:
        self.seen.extend(texts)
        return self._inner.embed(texts)


ITEMS = [(f"urn:e:{i:02}", f"word{i} shared{i % 3} text") for i in range(40)]


def _saved(folder: Path, items=ITEMS, generation: int = 7, **options) -> VectorSet:
    vectors = build_vectors("entity", items, Spy(), **options)
    vectors.save(folder, generation)
    return vectors


def _oracle(items, queries: np.ndarray, k: int, allowed=None) -> list[list[tuple[str, float]]]:
    results = []
    for query in queries:
        best: dict[str, float] = {}
        for iri, text in items:
            score = float(np.dot(HashingEmbedder(DIMENSION).embed([text])[0], query))
            best[iri] = max(best.get(iri, -2.0), score)
        known = [(i, s) for i, s in best.items() if allowed is None or i in allowed]
        results.append(sorted(known, key=lambda hit: (-round(hit[1], 6), hit[0]))[:k])
    return results


# --- search -------------------------------------------------------------------------------------

names = st.text("abcé漢", min_size=1, max_size=3).map("urn:{}".format)
sentences = st.lists(st.sampled_from(["sun", "moon", "sea", "tree", "ox"]), max_size=4).map(
    " ".join
)
item_lists = st.lists(st.tuples(names, sentences), max_size=25)


@settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(
    items=item_lists,
    asked=st.lists(sentences, min_size=1, max_size=3),
    k=st.integers(0, 30),
    allowed=st.none() | st.sets(names, max_size=30),
)
def test_exact_search_equals_brute_force(items, asked, k, allowed):
    embedder = Spy()
    vectors = build_vectors("entity", items, embedder)
    queries = embedder.embed(asked)
    found = vectors.search(queries, k, allowed)
    expected = _oracle(items, queries, k, allowed)
    for hits, wanted in zip(found, expected, strict=True):
        assert np.allclose([s for _, s in hits], [s for _, s in wanted], atol=2e-6)
        assert len(hits) == len(wanted)
        if len({round(score, 4) for _, score in wanted}) == len(wanted):
            assert [iri for iri, _ in hits[:-1]] == [iri for iri, _ in wanted[:-1]]
    assert [vectors.search(query, k, allowed)[0] for query in queries] == found


def test_equal_scores_are_ordered_by_iri():
    items = [(f"urn:{name}", "the same text") for name in "zbéa漢m"]
    vectors = build_vectors("entity", items, Spy())
    (hits,) = vectors.search(Spy().embed(["same"]), 4)
    assert [iri for iri, _ in hits] == ["urn:a", "urn:b", "urn:m", "urn:z"]


def test_windows_and_texts_of_one_iri_collapse_to_the_best():
    long = " ".join(["filler"] * 20 + ["polonium"])
    embedder = Spy(max_tokens=4)
    items = [("urn:long", long), ("urn:two", "dog"), ("urn:two", "polonium"), ("urn:x", "cat")]
    vectors = build_vectors("chunk", items, embedder)
    assert len(vectors) == 3
    assert len(vectors.matrix) > 4
    (hits,) = vectors.search(embedder.embed(["polonium"]), 10)
    assert hits[0] == ("urn:two", 1.0)
    assert len(hits) == 3
    assert dict(hits)["urn:long"] > dict(hits)["urn:x"]


def test_a_mask_over_the_keys_narrows_the_search():
    vectors = build_vectors("entity", ITEMS, Spy())
    query = Spy().embed(["shared1"])
    mask = np.array([iri.endswith("4") for iri in vectors.keys])
    wanted = {iri for iri in vectors.keys if iri.endswith("4")}
    assert vectors.search(query, 9, mask) == vectors.search(query, 9, wanted)
    assert {iri for iri, _ in vectors.search(query, 9, mask)[0]} == wanted
    assert vectors.search(query, 9, set()) == [[]]


def test_a_query_of_another_dimension_is_refused():
    with pytest.raises(UsageError, match="8 dimensions, the entity vectors have 32"):
        build_vectors("entity", ITEMS, Spy()).search(np.ones((1, 8), dtype=np.float32), 3)


@given(st.sets(st.text(max_size=4), max_size=60), st.sets(st.text(max_size=4), max_size=60))
def test_keys_are_a_sorted_sequence_with_places(iris, asked):
    keys = Keys.from_iris(sorted(iris))
    assert list(keys) == sorted(iris)
    assert [keys[int(place)] for place in keys.places(asked)] == sorted(iris & asked)
    assert keys[1:3] == sorted(iris)[1:3]
    with pytest.raises(IndexError):
        keys[len(iris)]


# --- inverted lists ------------------------------------------------------------------------------

IN_LISTS = IvfParameters(size=16, probed=40, threshold=500)


def _clustered(count: int, seed: int = 1) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((40, DIMENSION))
    rows = centres[random.integers(0, 40, count)] + 0.5 * random.standard_normal((count, DIMENSION))
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit.astype(np.float32)


class Table:
    """An embedder that looks the vector of ``"3"`` up in row 3."""

    lexical = False
    max_tokens = None
    dimension = DIMENSION
    agent = Agent("model", "table", "1")

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def embed(self, texts: Sequence[str], sink=None) -> np.ndarray:
        return self.rows[[int(text) for text in texts]]


def _large(parameters: IvfParameters = IN_LISTS, per_iri: int = 1) -> VectorSet:
    items = [(f"urn:{i // per_iri:05}", str(i)) for i in range(3000)]
    return build_vectors("entity", items, Table(_clustered(3000)), parameters=parameters)


@pytest.mark.parametrize("per_iri", [1, 3])
def test_a_few_lists_have_nearly_all_that_an_exact_search_finds(per_iri):
    queries = _clustered(60, seed=2)
    exact = _large(IvfParameters(), per_iri).search(queries, 10)
    approximate = _large(per_iri=per_iri).search(queries, 10)
    shared = [len(set(a) & set(b)) for a, b in zip(exact, approximate, strict=True)]
    assert sum(shared) / (10 * len(queries)) >= 0.95


def test_lists_answer_the_same_when_built_again_and_when_opened(tmp_path):
    queries = _clustered(5, seed=3)
    first = _large()
    first.save(tmp_path, 1)
    assert list(tmp_path.glob("entity.centroids.*"))
    opened = open_vectors(tmp_path, "entity", verify=True)
    assert opened.search(queries, 7) == first.search(queries, 7) == _large().search(queries, 7)


@pytest.mark.parametrize("parameters", [IN_LISTS, IvfParameters()])
def test_what_comes_after_the_best_changes_nothing_of_them(parameters):
    queries = _clustered(20, seed=5)
    vectors = _large(parameters)
    best = vectors.search(queries, 7)
    more = vectors.search(queries, 7, beyond=400)
    assert [hits[:7] for hits in more] == best
    assert all(7 < len(hits) <= 407 for hits in more)
    assert vectors.search(queries, 0, beyond=5) == [[] for _ in queries]


def test_a_filtered_search_of_a_large_set_is_exact():
    queries = _clustered(5, seed=4)
    allowed = [f"urn:{i:05}" for i in range(0, 3000, 300)]
    found = _large().search(queries, 10, allowed)
    assert found == _large(IvfParameters()).search(queries, 10, allowed)
    assert all(len(hits) == 10 for hits in found)


def test_where_most_lists_would_be_read_a_search_is_exact(monkeypatch):
    queries = _clustered(3, seed=5)
    exact = _large(IvfParameters())
    assert _large().search(queries, 2900) == exact.search(queries, 2900)
    built = InvertedLists.build(_clustered(160), IN_LISTS)
    assert built is not None
    lists, order = built
    assert sorted(order.tolist()) == list(range(160))
    assert lists.nearest(queries[0], 6) is None  # of ten
    rows = lists.nearest(queries[0], 5)
    assert rows is not None
    assert rows.tolist() == sorted(set(rows.tolist()))
    monkeypatch.setattr(InvertedLists, "nearest", lambda *_: None)
    assert _large().search(queries, 5) == exact.search(queries, 5)


def test_lists_have_the_rows_that_are_nearest_to_their_centroids():
    rows = _clustered(1000)
    built = InvertedLists.build(rows, IN_LISTS)
    assert built is not None
    lists, order = built
    centroids = rows[:: IN_LISTS.size]
    own = np.repeat(np.arange(len(centroids)), np.diff(lists.starts))
    best = (rows[order] @ centroids.T).argmax(axis=1)
    assert (own == best).mean() > 0.99
    assert set(order[lists.starts[5] : lists.starts[6]].tolist()) >= {5 * IN_LISTS.size}


def test_damaged_centroids_are_not_used_and_that_is_said(tmp_path, caplog):
    _large().save(tmp_path, 1)
    (path,) = tmp_path.glob("entity.centroids.*")
    _flip(path, path.stat().st_size // 2)
    with pytest.raises(DamagedIndexError, match="SHA-256"):
        open_vectors(tmp_path, "entity", verify=True)
    with caplog.at_level(logging.WARNING):
        found = open_vectors(tmp_path, "entity").search(_clustered(2, seed=6), 5)
    assert found == _large(IvfParameters()).search(_clustered(2, seed=6), 5)
    assert "searches are exact" in caplog.text


def test_without_hnswlib_searches_are_exact_and_that_is_said(tmp_path):
    program = (
        "import sys, logging; sys.modules['hnswlib'] = None; logging.basicConfig();"
        "from tests_double import build_and_search; build_and_search(sys.argv[1])"
    )
    (tmp_path / "tests_double.py").write_text(
        "from pathlib import Path\n"
        "from tgraph.index.vectors.inverted_list_store import IvfParameters, build_vectors\n"
        "from tgraph.models.hashing import HashingEmbedder\n"
        "def build_and_search(folder):\n"
        "    e = HashingEmbedder()\n"
        "    items = [(f'urn:{i}', f'word{i}') for i in range(30)]\n"
        "    s = build_vectors('entity', items, e, parameters=IvfParameters(threshold=10))\n"
        "    s.save(Path(folder), 1)\n"
        "    print(s.search(e.embed(['word7']), 1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "out")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[[('urn:7', 1.0)]]"
    assert done.stderr.count("hnswlib isn't installed") == 1


# --- re-use -------------------------------------------------------------------------------------


def test_only_new_texts_are_embedded_and_each_once(tmp_path):
    _saved(tmp_path)
    previous = open_vectors(tmp_path, "entity")
    embedder, steps = Spy(), []
    changed = [*ITEMS[5:], ("urn:e:00", "something new"), ("urn:copy", "something new")]
    vectors = build_vectors(
        "entity", changed, embedder, previous, lambda done, total: steps.append((done, total))
    )
    assert embedder.seen == ["something new"]
    assert steps == [(1, 1)]
    fresh = build_vectors("entity", changed[::-1], Spy())
    assert np.array_equal(vectors.matrix, fresh.matrix)
    assert list(vectors.keys) == list(fresh.keys)


def test_windows_of_unchanged_texts_are_kept_with_them():
    long = [(f"urn:{i}", f"a{i} b c d e f g h i{i}") for i in range(4)]
    first = build_vectors("chunk", [*long, ("urn:9", long[0][1])], Spy(max_tokens=4))
    embedder = Spy(max_tokens=4)
    again = build_vectors("chunk", [*long, ("urn:9", long[0][1])], embedder, first)
    assert embedder.seen == []
    assert np.array_equal(again.matrix, first.matrix)
    assert np.array_equal(again.owners, first.owners)


SMALL = IvfParameters(size=2, probed=3, threshold=4)
WITHOUT_LISTS = IvfParameters(threshold=10_000)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 45), st.integers(0, 6)), max_size=12),
    st.lists(st.tuples(st.integers(0, 45), st.integers(0, 6)), max_size=12),
    st.sampled_from((SMALL, WITHOUT_LISTS)),
)
def test_a_revised_set_says_what_one_of_everything_says(first, second, parameters):
    """Of whatever was changed, added and taken away, in two rounds; only new texts are embedded."""
    items = {iri: [text, f"{text} again"][: 1 + n % 2] for n, (iri, text) in enumerate(ITEMS)}
    vectors = build_vectors("entity", _pairs(items), Spy(), parameters=parameters)
    for changes in (first, second):
        touched = {f"urn:e:{place:02}" for place, _ in changes}
        before = {text for texts in items.values() for text in texts}
        for place, kind in changes:
            items[f"urn:e:{place:02}"] = [f"word{kind} new text {n}" for n in range(kind % 3)]
        embedder = Spy()
        own = [pair for pair in _pairs(items) if pair[0] in touched]
        revised = revise_vectors(vectors, own, touched, embedder)
        assert revised is not None
        vectors = revised
        assert not before & set(embedder.seen)
        fresh = build_vectors("entity", _pairs(items), Spy(), parameters=parameters)
        assert _content(vectors) == _content(fresh)
        queries = HashingEmbedder(DIMENSION).embed(["word3 shared1", "word2 new text 1"])
        assert vectors.search(queries, 9) == fresh.search(queries, 9)
        assert vectors.search(queries, 3, list(fresh.keys)[::2]) == fresh.search(
            queries, 3, list(fresh.keys)[::2]
        )


def _pairs(items):
    return [(iri, text) for iri, texts in items.items() for text in texts]


def _content(vectors):
    rows = vectors.vectors_of(slice(None))
    keys = [vectors.keys[owner] for owner in vectors.owners.tolist()]
    return list(vectors.keys), [
        (key, digest.tobytes(), row.tobytes())
        for key, digest, row in zip(keys, vectors.hashes, rows, strict=True)
    ]


def test_what_came_since_is_kept_beside_the_files_that_were_there(tmp_path):
    """A small change of a large set leaves its rows and its lists where they are."""
    _saved(tmp_path / "a", parameters=SMALL)
    vectors = revise_vectors(
        open_vectors(tmp_path / "a", "entity"), [("urn:new", "brand new")], ["urn:new"], Spy()
    )
    assert vectors is not None
    vectors.save(tmp_path / "b", 8)
    roles = ("vectors", "centroids", "lists")
    names = [
        [files.read_manifest(tmp_path / folder, "entity").files[role].name for role in roles]
        for folder in "ab"
    ]
    assert names[0] == names[1]
    found = open_vectors(tmp_path / "b", "entity", generation=8, verify=True)
    assert _content(found) == _content(
        build_vectors("entity", [*ITEMS, ("urn:new", "brand new")], Spy())
    )
    (query,) = HashingEmbedder(DIMENSION).embed(["brand new"])
    assert found.search(query, 1)[0][0][0] == "urn:new"
    everything = [(iri, "other " + text) for iri, text in ITEMS]
    anew = revise_vectors(found, everything, [iri for iri, _ in ITEMS], Spy())
    assert anew is not None
    anew.save(tmp_path / "b", 9)
    manifest = files.read_manifest(tmp_path / "b", "entity")
    assert "more" not in manifest.files
    assert manifest.rows == len(anew.matrix) == 41


def test_vectors_of_another_agent_or_dimension_are_not_kept():
    first = build_vectors("entity", ITEMS[:4], Spy())
    for other in (Spy("another"), Spy(dimension=16)):
        vectors = build_vectors("entity", ITEMS[:5], other, first)
        assert sorted(set(other.seen)) == sorted(text for _, text in ITEMS[:5])
        assert vectors.dimension == other.dimension


def test_an_empty_set_can_be_saved_opened_searched_and_grown(tmp_path):
    _saved(tmp_path, [])
    empty = open_vectors(
        tmp_path, "entity", generation=7, agent=Spy().agent, dimension=99, verify=True
    )
    assert len(empty) == 0
    assert empty.search(Spy().embed(["x", "y"]), 3) == [[], []]
    assert len(build_vectors("entity", ITEMS, Spy(), empty)) == len(ITEMS)


# --- stale and damaged --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "said"),
    [
        ({"generation": 8}, "generation 7 of the knowledge, which is at 8"),
        ({"agent": Agent("method", "spy", "2")}, "made by spy 1, not by spy 2"),
        ({"dimension": 384}, "dimension 32, not 384"),
    ],
)
def test_a_stale_set_is_refused(tmp_path, expected, said):
    _saved(tmp_path)
    assert (
        len(open_vectors(tmp_path, "entity", generation=7, agent=Spy().agent, dimension=32)) == 40
    )
    with pytest.raises(StaleIndexError, match=said):
        open_vectors(tmp_path, "entity", **expected)


def test_a_missing_set_is_stale(tmp_path):
    with pytest.raises(StaleIndexError, match="no vectors of kind entity"):
        open_vectors(tmp_path / "nowhere", "entity")


def _flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("role", ["vectors", "owners", "hashes", "keys", "ends"])
@pytest.mark.parametrize("harm", ["truncate", "empty", "flip first", "flip last", "remove"])
@pytest.mark.parametrize("verify", [False, True])
def test_a_damaged_file_is_noticed(tmp_path, role, harm, verify):
    _saved(tmp_path)
    (path,) = tmp_path.glob(f"entity.{role}.*")
    size = path.stat().st_size
    if harm == "remove":
        path.unlink()
    elif harm.startswith("flip"):
        _flip(path, 3 if harm == "flip first" else size - 1)
    else:
        os.truncate(path, 0 if harm == "empty" else size - 1)
    with pytest.raises(DamagedIndexError, match=f"damaged: .*entity.{role}"):
        open_vectors(tmp_path, "entity", verify=verify)


def test_a_file_too_large_to_read_whole_is_checked_by_size_header_and_verify(tmp_path, monkeypatch):
    monkeypatch.setattr("tgraph.index.vectors.files.CHECKED_WHOLE", 0)
    _saved(tmp_path)
    (path,) = tmp_path.glob("entity.vectors.*")
    _flip(path, path.stat().st_size - 1)
    open_vectors(tmp_path, "entity")
    with pytest.raises(DamagedIndexError, match="SHA-256"):
        open_vectors(tmp_path, "entity", verify=True)
    _flip(path, 3)
    with pytest.raises(DamagedIndexError, match="damaged"):
        open_vectors(tmp_path, "entity")


@given(st.data())
@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
def test_any_flipped_byte_of_the_manifest_is_noticed(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("set")
    _saved(folder, ITEMS[:3])
    before = open_vectors(folder, "entity").search(Spy().embed(["word1"]), 3)
    path = folder / "entity.json"
    _flip(path, data.draw(st.integers(0, path.stat().st_size - 1)))
    try:
        after = open_vectors(folder, "entity", generation=7).search(Spy().embed(["word1"]), 3)
    except DamagedIndexError:
        return
    assert after == before  # white space between values carries nothing


def test_a_manifest_of_another_format_is_stale(tmp_path):
    _saved(tmp_path)
    path = tmp_path / "entity.json"
    facts = {**json.loads(path.read_text()), "format": 99}
    del facts["checksum"]
    facts["checksum"] = files._hash_facts(facts)
    path.write_text(json.dumps(facts))
    with pytest.raises(StaleIndexError, match="another format"):
        open_vectors(tmp_path, "entity")


# --- atomicity ----------------------------------------------------------------------------------


class Killed(BaseException):
    """Stands for a kill: nothing of tgraph may handle it."""


@pytest.mark.parametrize("step", range(14))
@pytest.mark.parametrize("failure", [Killed, OSError(28, "No space left on device")])
def test_a_failure_at_any_sync_leaves_the_old_set_whole(tmp_path, monkeypatch, step, failure):
    old = _saved(tmp_path)
    new = build_vectors("entity", ITEMS[:10], Spy())
    query, real, left = Spy().embed(["word1"]), os.fsync, [step]

    def fsync(handle: int) -> None:
        if left[0] == 0:
            raise failure
        left[0] -= 1
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    outcome: BaseException | None = None
    try:
        new.save(tmp_path, 8)
    except (Killed, StoreError) as error:
        outcome = error
    monkeypatch.undo()
    opened = open_vectors(tmp_path, "entity", verify=True)
    current = new if len(opened) == 10 else old
    assert opened.search(query, 5) == current.search(query, 5)
    if outcome is None:
        assert current is new
    elif isinstance(outcome, StoreError):
        assert "No space left" in str(outcome)
    new.save(tmp_path, 9)
    assert len(open_vectors(tmp_path, "entity", generation=9)) == 10
    assert len(list(tmp_path.iterdir())) == 7  # six arrays and the manifest: no litter


def test_readers_keep_the_set_they_opened_while_it_is_replaced(tmp_path):
    _saved(tmp_path)
    reader, query = open_vectors(tmp_path, "entity"), Spy().embed(["word1 shared1"])
    before = reader.search(query, 5)
    _saved(tmp_path, ITEMS[20:], generation=8)
    assert reader.search(query, 5) == before
    assert len(open_vectors(tmp_path, "entity", generation=8)) == 20


def test_kinds_share_a_folder(tmp_path):
    _saved(tmp_path)
    build_vectors("edge", ITEMS[:3], Spy()).save(tmp_path, 7)
    _saved(tmp_path, ITEMS[:5], generation=8)
    assert len(open_vectors(tmp_path, "edge", generation=7)) == 3
    assert len(open_vectors(tmp_path, "entity", generation=8)) == 5
