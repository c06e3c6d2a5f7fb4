"""Ranked orders from their cuts on: how they are recorded, and where the missing is in them."""

from __future__ import annotations

import json

import pytest

from tgraph.model import RankedOrder
from tgraph.retrieve.orders import (
    MOST_BEYOND,
    MOST_OF_SESSION,
    CutOff,
    OrderReader,
    cut_order,
    format_ordinal,
    left_out_order,
    orders_from_json,
    orders_to_json,
    unlike_order,
)

IRIS = [f"urn:{n}" for n in range(1, 31)]
REASON = "{item} is {place} chunks by likeness to {question}"


def reader(*missing: str, may_have: bool = False) -> OrderReader:
    """A reader that looks for these IRIs."""
    return OrderReader(
        lambda _, item: item in missing,
        lambda _, item: "it" if item else "the missing",
        lambda entity: entity.removeprefix("urn:"),
        lambda _: may_have,
    )


def order(cutoff: int, limit: str = "k", reason: str = REASON, **more: str) -> RankedOrder:
    [found] = cut_order("chunk", limit, cutoff, IRIS, reason, **more)  # type: ignore[arg-type]
    return found


def test_an_order_is_recorded_from_its_cut_on() -> None:
    assert order(28).items == ("urn:29", "urn:30")
    assert order(28).total == 30
    assert cut_order("chunk", "k", 30, IRIS, REASON) == ()
    assert left_out_order("chunk", "filter", None, {}, REASON) == ()


def test_the_first_of_the_missing_after_the_cut_is_told() -> None:
    found = reader("urn:7", "urn:3").find_beyond_cut(order(2))
    assert found == CutOff("k", 2, 3, "it is the 3rd of 30 chunks by likeness to the question")
    assert reader("urn:7").find_beyond_cut(order(7)) is None
    assert reader("urn:x").find_beyond_cut(order(2)) is None
    edges = order(2, reason="{item} is {place} edges of {about}", about="urn:Fram")
    assert reader("urn:9").find_beyond_cut(edges) == CutOff(
        "k", 2, 9, "it is the 9th of 30 edges of Fram"
    )


def test_a_rank_may_be_another_number_and_the_reason_a_score() -> None:
    reason = "only reports below level 1 speak of it, the first at level {rank}"
    [levels] = left_out_order("report", "community-level", 1, {"urn:a": 2, "urn:b": 3}, reason)
    found = reader("urn:b", "urn:a").find_beyond_cut(levels)
    assert found
    assert (found.limit, found.cutoff, found.rank) == ("community-level", 1, 2)
    assert found.reason.endswith("the first at level 2")
    hits = [("urn:1", 0.9), ("urn:2", 0.125), ("urn:3", 0.1)]
    [below] = unlike_order("chunk", hits, 0.5, "the question", {"urn:3"})
    assert below.items == ("urn:2",)
    least = reader("urn:2").find_beyond_cut(below)
    assert least
    assert (least.limit, least.cutoff, least.rank) == ("least-score", 0.5, 2)
    assert least.reason == "the similarity to the question is 0.12, less than 0.5 (least-score)"


def test_the_first_limit_that_has_the_missing_is_the_cause_and_of_its_orders_the_nearest() -> None:
    orders = [order(9, limit="first"), order(8, limit="second"), order(2, limit="third")]
    found = reader("urn:9").first_cut(orders)
    assert found
    assert found.limit == "second"
    alike = reader("urn:9").first_cut([order(2), order(8)])
    assert alike
    assert alike.cutoff == 8
    assert reader("urn:9").first_cut([order(9)]) is None
    assert reader().first_cut([]) is None


@pytest.mark.parametrize(
    ("total", "said"), [(52_000, "the first 30 of 52,000"), (None, "the first 30 of the")]
)
def test_what_stands_after_the_last_place_on_record_has_no_rank(
    total: int | None, said: str
) -> None:
    [long] = cut_order("chunk", "k", 10, IRIS, REASON, total=total)
    found = reader("urn:x", may_have=True).first_cut([long])
    assert found
    assert (found.limit, found.cutoff, found.rank) == ("k", 10, None)
    assert found.reason == f"the missing is not among {said} chunks by likeness to the question"
    assert reader("urn:x").first_cut([long]) is None
    assert reader("urn:x", may_have=True).first_cut([order(10)]) is None


def test_the_orders_of_a_session_are_canonical_and_have_so_many_places() -> None:
    many = [f"urn:{n}" for n in range(3_000)]
    long = cut_order("chunk", "k", 10, many, REASON)
    short = unlike_order("edge", [("urn:1", 0.123456789)], 0.5, "the question")
    assert len(long[0].items) == MOST_BEYOND
    text = orders_to_json([*long, *short])
    assert orders_from_json(text) == (*long, *short)
    assert text == orders_to_json(orders_from_json(text))
    assert json.loads(text)[1]["scores"] == [0.123457]
    shared = orders_from_json(orders_to_json([*long] * 20 + [*short]))
    assert sum(len(each.items) for each in shared) <= MOST_OF_SESSION
    assert len(shared[-1].items) == 1, "short orders stay whole"
    assert {len(each.items) for each in shared[:-1]} == {(MOST_OF_SESSION - 1) // 20}
    assert orders_from_json(orders_to_json([])) == ()


def test_how_far_beyond_a_limit_something_is() -> None:
    near, far = CutOff("k", 10, 12, ""), CutOff("k", 1, 5, "")
    unknown = CutOff("k", 3, None, "")
    assert sorted([unknown, far, near], key=lambda cut: cut.distance) == [near, far, unknown]


def test_ranks_in_words() -> None:
    assert [format_ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 112, 123)] == [
        *("1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th", "123rd")
    ]
