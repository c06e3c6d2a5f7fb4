"""What a prompt shows keeps its budget, whether its lines are counted or known."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.answer.rows import _bound_cost, format_items
from tgraph.model import Candidate, Edge, Evidence, Item
from tgraph.models.tokens import count_tokens
from tgraph.retrieve.candidates import cost_of

PIECES = st.one_of(
    st.sampled_from(
        ['"', "\\", "\n", "\n\n", "\t", "\r\n", " ", "Scrooge", "’s", "1843", "幽灵", "…"]
    ),
    st.text(min_size=1, max_size=6),
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)


def item(number: int, label: str, text: str) -> Candidate:
    found = Item("chunk", f"{v.URN}chunk:{number}", label, text)
    return Candidate(found, number + 1, 0.5, tokens=cost_of(found))


def edge(number: int, label: str, quotes: list[str]) -> Candidate:
    node = NamedNode(f"urn:x:{number}")
    found = Edge(node, node, node, label, "knows", label)
    places = tuple(
        Evidence(f"urn:e:{n}", found.iri, "c", "d", "t", "p", None, 0, len(q), q)
        for n, q in enumerate(quotes)
    )
    cost = cost_of(found, evidence=places)
    return Candidate(found, number + 1, 0.5, evidence=places, tokens=cost)


@pytest.mark.slow
@given(st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, max_size=3)), min_size=1, max_size=6))
def test_known_costs_bound_what_lines_cost(texts: list[tuple[str, str, list[str]]]) -> None:
    shown = [item(2 * n, label, text) for n, (label, text, _) in enumerate(texts)]
    shown += [edge(2 * n + 1, label, quotes) for n, (label, _, quotes) in enumerate(texts)]
    found = format_items(shown, "", 100_000, "gpt-4o")
    lines = found.text.split("\n")
    assert all(json.loads(line) for line in lines)
    most = _bound_cost(shown, lines)
    assert most is not None
    assert sum(count_tokens(line) + 1 for line in lines) <= most


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("budget", [2_300, 20_000])
def test_what_is_shown_does_not_depend_on_what_is_known(known: bool, budget: int) -> None:
    words = "The chains that Marley wears were made of cash-boxes, keys and ledgers.\n" * 20
    shown = [item(n, f"Chunk {n}", words) for n in range(40)]
    if not known:
        shown = [replace(each, tokens=None) for each in shown]
    found = format_items(shown, "Answer.", budget, "gpt-4o")
    assert len(found.by_id) == (5 if budget == 2_300 else 40)
    assert count_tokens(found.text) <= budget
