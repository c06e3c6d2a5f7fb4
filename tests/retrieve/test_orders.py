"""Ranked orders with their cut-offs, and the search for the one that something is beyond."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace

import pytest

from tgraph.retrieve.orders import CutOff, RankedOrder, above_level, first_cut, nth, rerun, unlike

ORDER = [f"urn:{n}" for n in range(1, 31)]


def order(cutoff: int, *wanted: str, limit: str = "k", **more: str) -> RankedOrder:
    return RankedOrder(limit, cutoff, ORDER, wanted, "chunks by likeness", **more)


def test_the_first_of_the_wanted_beyond_the_cut_off_is_told() -> None:
    found = order(2, "urn:7", "urn:3").beyond()
    assert found == CutOff("k", 2, 3, "it is the 3rd of 30 chunks by likeness")
    chunk = order(2, "urn:22", who="its chunk").beyond()
    assert chunk
    assert chunk.reason == "its chunk is the 22nd of 30 chunks by likeness"
    assert order(7, "urn:7").beyond() is None
    assert order(2, "urn:x").beyond() is None
    assert order(2).standing is None


def test_an_order_may_give_places() -> None:
    levels = {"urn:a": 3, "urn:b": 2, "urn:c": 0}
    found = above_level(1, levels, {"urn:a", "urn:b"}).beyond()
    assert found
    assert (found.limit, found.cutoff, found.rank) == ("community-level", 1, 2)
    assert found.reason.endswith("the first at level 2 (community-level)")
    assert above_level(1, levels, set(levels)).beyond() is None


def test_the_orders_are_looked_through_in_turn_and_no_further_than_needed() -> None:
    def orders() -> Iterator[RankedOrder | CutOff]:
        yield order(9, "urn:9", limit="first")
        yield order(8, "urn:9", limit="second")
        raise AssertionError("the second has it")

    found = first_cut(orders())
    assert found
    assert found.limit == "second"
    known = CutOff("exclude", None, None, "it is left out")
    assert first_cut([order(9, "urn:9"), known]) is known
    assert first_cut([]) is None


@pytest.mark.parametrize("least", [4, 5, 17, 1 << 10])
def test_a_limit_that_cuts_no_order_is_told_by_the_least_value_that_lets_it_in(least: int) -> None:
    seen: list[Mapping[str, int]] = []

    def lets_in(values: Mapping[str, int]) -> bool:
        seen.append(values)
        return values["top_k"] >= least

    own = SimpleNamespace(top_k=3)
    [found] = rerun(own, "top_k", 1 << 10, {"other": 9}, lets_in, "it comes in")
    assert isinstance(found, CutOff)
    assert (found.limit, found.cutoff, found.rank) == ("top-k", 3, least)
    assert found.reason == f"it comes in from top-k {least} on, and it was 3"
    assert all(values["other"] == 9 for values in seen)
    assert not list(rerun(own, "top_k", least - 1, {}, lets_in, "it comes in"))


def test_what_is_too_unlike_is_told_with_its_likeness() -> None:
    hits = [("urn:1", 0.9), ("urn:2", 0.125)]
    [found] = unlike(hits, {"urn:2"}, 0.5, "the question")
    assert isinstance(found, CutOff)
    assert (found.rank, found.cutoff) == (2, 0.5)
    assert found.reason == "its likeness to the question is 0.12, below 0.5 (least-score)"
    assert not list(unlike(hits, {"urn:1"}, 0.5, "the question"))


def test_how_far_beyond_a_limit_something_is() -> None:
    near, far = CutOff("k", 10, 12, ""), CutOff("k", 1, 5, "")
    unknown = CutOff("k", 3, None, "")
    assert sorted([unknown, far, near], key=lambda cut: cut.distance) == [near, far, unknown]


def test_ranks_in_words() -> None:
    assert [nth(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112, 123)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "123rd")
    ]
