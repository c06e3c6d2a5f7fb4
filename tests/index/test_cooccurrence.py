"""What a collection keeps of the names in its sentences: counts, weights, limits."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.index.cooccurrence import (
    Occurrences,
    decode_occurrences,
    encode_occurrences,
    select_names_and_pairs,
)
from tgraph.model import ExtractedEntity, Extraction, Occurrence, Span
from tgraph.settings import FastSettings

ALL = {
    "window": "sentence",
    "min_node_freq": 1,
    "min_edge_weight_pct": 0,
    "remove_ego_nodes": False,
}


def chunk(*sentences: str, start: int = 0, document: int = 0) -> Occurrences:
    """A chunk whose sentences are words that are names, each ten characters from the next; a bar
    ends a paragraph."""
    words = (word for sentence in sentences for word in sentence.split())
    names = [word for word in dict.fromkeys(words) if word != "|"]
    occurrences = tuple(
        Occurrence(
            start + 10 * at,
            start + 10 * at + 9,
            tuple(names.index(w) for w in sentence.split() if w != "|"),
            "".join(sentences[:at]).count("|"),
        )
        for at, sentence in enumerate(sentences)
    )
    iri = v.chunk_iri(f"{document:064}", None, start, start + 10 * len(sentences))
    entities = tuple(ExtractedEntity(n, "concept", span=Span(0, 1, "x")) for n in names)
    return Occurrences(f"urn:subgraph:{document}:{start}", iri, entities, occurrences)


def kept(*chunks: Occurrences, **limits: object):
    return select_names_and_pairs(chunks, FastSettings.model_validate({**ALL, **limits}))


def test_the_weight_is_places_times_bits():
    found = kept(chunk("a b", "a b", "a c", "d"))
    pairs, names = 3, 7
    assert found.weights == {
        ("a", "b"): round(2 * math.log2((2 / pairs) / (3 / names * 2 / names)), 2),
        ("a", "c"): round(1 * math.log2((1 / pairs) / (3 / names * 1 / names)), 2),
    }
    (places,) = found.places.values()
    assert places == {("a", "b"): [(0, 9), (10, 19)], ("a", "c"): [(20, 29)]}
    assert found.names == {"a", "b", "c"}  # d is tied to nobody


def test_names_that_are_the_same_are_counted_together():
    found = kept(chunk("The-Fram Nansen"), chunk("the-fram nansen", document=1))
    assert list(found.weights) == [("nansen", "the fram")] or list(found.weights) == [
        ("fram", "nansen")
    ]


def test_rare_names_go_first():
    found = kept(chunk("a b", "a b", "a c"), min_node_freq=2)
    assert list(found.weights) == [("a", "b")]
    assert found.dropped["name that is too rare"] == 1


def test_the_lightest_pairs_go_by_percentile():
    sentences = ["a b"] * 5 + ["c d"] * 3 + ["e f"]
    whole = kept(chunk(*sentences)).weights
    for percent in (10, 50, 90):
        found = kept(chunk(*sentences), min_edge_weight_pct=percent)
        least = np.percentile(list(whole.values()), percent)
        assert found.weights == {pair: w for pair, w in whole.items() if w >= least}
        assert found.dropped["pair with too little weight"] == len(whole) - len(found.weights)


def test_the_ego_node_is_the_one_tied_to_most_and_what_hung_on_it_alone_goes_too():
    sentences = ["a b", "a c", "a d", "b c"]
    found = kept(chunk(*sentences), remove_ego_nodes=True)
    assert list(found.weights) == [("b", "c")]
    assert found.names == {"b", "c"}
    assert found.dropped["name that is tied to too many"] == 1


def test_what_is_too_common_or_tied_to_too_many_can_be_left_out():
    sentences = ["a b"] * 9 + ["c d", "e f", "g h", "a c", "a e", "a g"]
    assert "a" in kept(chunk(*sentences)).names
    assert "a" not in kept(chunk(*sentences), max_node_freq_std=2).names
    assert "a" not in kept(chunk(*sentences), max_node_degree_std=1.5).names


def test_names_tied_to_too_few_go_and_so_on():
    sentences = ["a b", "b c", "a c", "c d"]
    assert kept(chunk(*sentences), min_node_degree=2).names == {"a", "b", "c"}
    assert kept(chunk("a b", "c"), min_node_degree=0).names == {"a", "b", "c"}


def test_where_chunks_overlap_a_sentence_counts_once():
    overlapping = [chunk("a b", "c d", "a d"), chunk("a d", "b c", start=20)]
    apart = [chunk("a b", "c d", "a d"), chunk("b c", start=30)]
    assert kept(*overlapping).weights == kept(*apart).weights
    assert sum(len(p) for p in kept(*overlapping).places.values()) == 4


def test_neighbouring_sentences_of_a_paragraph_tie_what_each_names_alone():
    found = kept(chunk("a b", "b c |", "d"), window="neighbours")
    (places,) = found.places.values()
    assert places == {("a", "b"): [(0, 9)], ("a", "c"): [(0, 19)], ("b", "c"): [(10, 19)]}
    assert "d" not in found.names


def test_by_chunk_the_stretch_is_the_shortest_that_names_both():
    found = kept(chunk("a", "x", "b", "a", "b x"), window="chunk")
    (places,) = found.places.values()
    assert places["a", "b"] == [(20, 39)]
    assert places["b", "x"] == [(40, 49)]


SENTENCES = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=5).map(" ".join), max_size=12)
LIMITS = st.fixed_dictionaries(
    {
        "window": st.sampled_from(["sentence", "neighbours", "chunk"]),
        "min_node_freq": st.integers(1, 3),
        "min_edge_weight_pct": st.integers(0, 100),
        "remove_ego_nodes": st.booleans(),
        "min_node_degree": st.integers(0, 2),
    }
)


def windows(sentences: list[str], window: str) -> list[str]:
    named = [sentence for sentence in sentences if sentence]
    in_a_row = [" ".join(two) for two in pairwise(named)] if window == "neighbours" else []
    return [" ".join(named)] if window == "chunk" else [*named, *in_a_row]


@given(st.lists(SENTENCES, max_size=4), LIMITS, st.randoms(use_true_random=False))
def test_what_is_kept_keeps_the_limits_whatever_the_order(texts, limits, random):
    chunks = [chunk(*sentences, document=at) for at, sentences in enumerate(texts)]
    found = kept(*chunks, **limits)
    random.shuffle(chunks)
    again = kept(*chunks, **limits)
    assert (again.weights, again.names, again.places) == (found.weights, found.names, found.places)
    degrees = Counter(name for pair in found.weights for name in pair)
    assert all(weight > 0 for weight in found.weights.values())
    assert all(degree >= limits["min_node_degree"] for degree in degrees.values())
    stated = {pair for places in found.places.values() for pair in places}
    assert stated == set(found.weights)
    together = {
        pair
        for sentences in texts
        for window in windows(sentences, limits["window"])
        for pair in combinations(sorted(set(window.split())), 2)
    }
    assert stated <= together


def test_what_is_kept_by_the_librarian_reads_the_same():
    page = "Fram and Nansen."
    entities = (
        ExtractedEntity("Fram", "ship", aliases=("the Fram",), span=Span(0, 4, "Fram")),
        ExtractedEntity("Nansen", "person", span=Span(9, 15, "Nansen")),
    )
    sentences = (Occurrence(0, 16, (0, 1), 3),)
    extraction = Extraction("urn:c", entities, (), sentences=sentences)
    read = decode_occurrences("urn:s", "urn:c", encode_occurrences(extraction), page)
    assert read == Occurrences("urn:s", "urn:c", entities, sentences)


@pytest.mark.parametrize("window", ["sentence", "neighbours", "chunk"])
def test_nothing_at_all_is_kept_of_nothing(window):
    assert kept(window=window).weights == {}
    assert kept(chunk(), window=window).names == set()
