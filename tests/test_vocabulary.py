"""How agents are named."""

from __future__ import annotations

import pytest

from tgraph.model import Agent

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
