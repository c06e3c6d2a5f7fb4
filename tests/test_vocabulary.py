"""How agents are named, and times sorted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.model import Agent
from tgraph.store.statements import canonical_literal

BASE = "urn:trustgraph:agent:"


def test_one_model_at_two_endpoints_is_two_agents() -> None:
    servers = ["http://a.example/v1", "http://b.example/v1", "http://a.example:8000/v1"]
    assert [Agent("model", "m", provider=server).iri for server in servers] == [
        f"{BASE}model:m@a.example",
        f"{BASE}model:m@b.example",
        f"{BASE}model:m@a.example:8000",
    ]


@pytest.mark.parametrize("secret", ["https://me:SECRET@h/v1", "https://h/SECRET?key=SECRET"])
def test_the_name_of_an_agent_holds_no_secret(secret: str) -> None:
    assert Agent("model", "a/b@c", "1", secret).iri == f"{BASE}model:a%2Fb%40c:1@h"


def test_what_is_part_of_tgraph_has_no_provider_in_its_name() -> None:
    assert Agent("method", "hashing", "1", "tgraph").iri == f"{BASE}method:hashing:1"
    assert Agent("model", "m").iri == f"{BASE}model:m"


MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))
ROUND = st.builds(
    lambda m, n: m.replace(microsecond=n), MOMENTS, st.sampled_from([0, 500_000, 510_000])
)


@given(st.lists(MOMENTS | ROUND, max_size=6))
def test_canonical_times_sort_as_the_moments_that_they_are(moments: list[datetime]) -> None:
    assert [canonical_literal(m).value for m in sorted(moments)] == sorted(
        (canonical_literal(m).value for m in moments), key=v.in_time
    )


def test_a_fraction_without_its_last_zero_comes_first() -> None:
    times = ["2026-01-01T00:00:00.51Z", "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"]
    assert sorted(times, key=v.in_time) == times[::-1]
