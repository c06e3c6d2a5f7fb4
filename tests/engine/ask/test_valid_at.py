"""What holds at a date: claims have beginnings and ends, and date the facts read with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tgraph
from tests.support.examples import examples
from tgraph import Filters
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.models.base import ChatRequest
from tgraph.retrieve.subset import narrow_context
from tgraph.retrieve.validity import claim_holds, span_of
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXT = """# Leaders

Robert Scott led the Discovery from 1901-08 to 1904. Ernest Shackleton led the Nimrod from 1907 on.
Louis Bernacchi met Robert Scott. Carsten Borchgrevink led the Southern Cross until 1900-02-02.
"""
DATED = re.compile(
    r"(\w+ \w+) led the (\w+(?: Cross)?)(?: from ([\d-]+))?(?: (?:to|until) ([\d-]+)| on)?\."
)
QUESTION = "Who led the Discovery, the Nimrod and the Southern Cross?"


def claims(request: ChatRequest) -> str:
    """A claim for each sentence on who led what, from when to when."""
    rows = [
        {
            "subject": found[1],
            "object": found[2],
            "type": "command",
            "status": "TRUE",
            "started": found[3] or "",
            "ended": found[4] or "",
            "description": f"{found[1]} commanded the {found[2]}.",
            "quote": found[0],
        }
        for found in DATED.finditer(request.messages[-1]["content"])
    ]
    return json.dumps({"claims": rows})


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    root = tmp_path_factory.mktemp("valid")
    (root / "leaders.md").write_text(TEXT)
    values = {"claims.enabled": True, "claims.gleanings": 0, "extract.gleanings": 0}
    chat = ScriptedModel({"extract_claims": claims})
    parts = Components(
        load_settings(None, values), root / "cache", chat=chat, embedder=HashingEmbedder()
    )
    with tgraph.open(root / "graph", create=True, settings=values, parts=parts) as kg:
        assert kg.index([root / "leaders.md"]).claims == 3
        yield kg


def leaders(graph: KnowledgeGraph, date: str, mode: str = "graph") -> str:
    answer = graph.ask(QUESTION, mode, history=[], filters=Filters(valid_at=date))
    return " ".join(selected.item.iri for selected in answer.selection) + answer.text


@pytest.mark.parametrize(
    ("date", "claims", "facts"),
    [
        ("1899", 2, 2),
        ("1900-02-02", 2, 2),
        ("1900-02-03", 3, 3),
        ("1901-07", 3, 3),
        ("1901-08-01", 2, 2),
        ("1904-12-31", 2, 2),
        ("1905", 3, 3),
        ("1907", 2, 2),
        ("2020", 2, 2),
        ("1900", 2, 2),
    ],
)
def test_what_does_not_hold_is_left_out_and_told(graph, date, claims, facts):
    context = narrow_context(graph.context(), Filters(valid_at=date))
    counts = f"{claims} claims and {facts} facts"
    assert context.notes == (f"Valid at {date}: {counts} of other times were left out.",)
    assert (
        "Louis Bernacchi"
        in graph.ask(
            "Who met Robert Scott?", "graph", history=[], filters=Filters(valid_at=date)
        ).text
    )


@pytest.mark.parametrize("mode", ["graph", "local", "lightrag-mix"])
def test_an_answer_has_nothing_that_did_not_hold_and_replays(graph, mode):
    filters = Filters(valid_at="1908")
    answer = graph.ask(QUESTION, mode, history=[], filters=filters)
    edges = " ".join(s.item.text for s in answer.selection if s.item.kind in ("edge", "claim"))
    assert "Nimrod" in edges
    assert "Discovery" not in edges
    trace = graph.trace(answer.session)
    assert trace.parameters["filter-valid-at"] == "1908"
    assert any("of other times" in note.text for note in trace.notes)
    found = graph.replay(answer.session)
    assert (found.problem, found.differences[:2]) == ("", ())


def test_why_not_names_the_date(graph):
    answer = graph.ask(QUESTION, "graph", history=[], filters=Filters(valid_at="1908"))
    edge = next(
        s.item.iri
        for s in graph.ask("Who led the Discovery?", "graph", history=[]).selection
        if "Discovery" in s.item.text
    )
    found = graph.why_not(answer.session, edge)
    assert (found.cause, found.limit) == ("beyond-limit", "filter-valid-at")
    assert "valid-at 1908" in found.reason


def test_what_is_no_date_is_an_error(graph):
    with pytest.raises(UsageError, match="is no date"):
        graph.ask(QUESTION, "graph", filters=Filters(valid_at="yesterday"))


DATES = st.one_of(
    st.just(""),
    st.dates().map(str),
    st.integers(1, 9999).map("{:04}".format),
    st.tuples(st.integers(1, 9999), st.integers(1, 12)).map(lambda x: f"{x[0]:04}-{x[1]:02}"),
)


@settings(max_examples=examples(100))
@given(DATES, DATES, st.dates())
def test_a_wider_date_never_holds_less(started, ended, day):
    at = day.isoformat()
    narrow, wide = span_of(at), span_of(at[:4])
    assert narrow is not None
    assert wide is not None
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    if claim_holds(started, ended, narrow):
        assert claim_holds(started, ended, wide)
    assert claim_holds("", "", narrow)


def test_dates_with_zones_before_christ_and_in_the_wrong_order():
    at = ((-43, 1, 1), (-43, 12, 31))
    assert not claim_holds("", "-0044-03-15", at)
    assert claim_holds("1912-01-01T10:00:00Z", "1912+01:00", ((1912, 2, 1), (1912, 2, 1)))
    assert claim_holds("1914", "1911", ((1800, 1, 1), (1800, 1, 1)))
    assert span_of("soon") is None
