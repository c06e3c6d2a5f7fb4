"""What a report writer is shown: all of a community, or sub-reports in its place."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.report_builders import (
    child_of,
    details_of,
    edge_of,
    edges_of,
    entities_of,
    evidence_of,
    name,
)
from tgraph.index.reports.context import Child, EdgeDetail, EntityDetail, ReportContext
from tgraph.index.reports.details import Details
from tgraph.index.reports.packing import CENTRAL, Sizes
from tgraph.index.reports.packing import pack_details as packed
from tgraph.model import Community, Edge
from tgraph.models.tokens import DEFAULT_ENCODING, count_tokens

SIZES = Sizes(DEFAULT_ENCODING)


def pack(details: Details, children: list[Child], budget: int, sizes: Sizes) -> ReportContext:
    return packed(details, lambda: children, budget, sizes)


def size(context: ReportContext) -> int:
    return count_tokens(context.text)


GRAPHS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(31, 60)), min_size=1, max_size=80, unique=True
)


@st.composite
def divided(draw: st.DrawFn) -> tuple[Details, list[Child]]:
    """A community and sub-communities that hold each of its members once, or some of them."""
    pairs = draw(GRAPHS)
    details = details_of(pairs, draw(st.integers(0, 40)), draw(st.integers(0, 5)))
    members = sorted({n for pair in pairs for n in pair})
    parts = draw(st.lists(st.integers(0, 4), min_size=len(members), max_size=len(members)))
    groups = {part: [n for n, p in zip(members, parts, strict=True) if p == part] for part in parts}
    told = draw(st.integers(0, 30))
    return details, [child_of(group, told) for part, group in sorted(groups.items()) if part]


@given(divided(), st.integers(0, 6000))
def test_every_edge_is_shown_or_stands_in_a_report_that_is_shown_or_is_counted(made, budget):
    details, children = made
    context = pack(details, children, budget, SIZES)
    shown = {edge.iri for edge in context.edges}
    reported = {sub.report.iri for sub in context.reports}
    members = [set(c.community.members) for c in children if c.report.iri in reported]
    uncovered = [
        edge
        for edge in edges_of(details)
        if edge.iri not in shown and not any(part.issuperset(edge.ends) for part in members)
    ]
    lost_reports = context.left_out.get("sub-report with no room", 0)
    lost_edges = context.left_out.get("edge with no room", 0)
    assert len(uncovered) == lost_edges or lost_reports
    assert not uncovered or context.left_out
    assert len(shown) == len(context.edges)


@given(divided(), st.integers(0, 6000))
def test_what_is_shown_keeps_within_the_budget(made, budget):
    details, children = made
    assert size(pack(details, children, budget, SIZES)) <= max(budget, size(empty(details)))


def empty(details: Details) -> ReportContext:
    return ReportContext(details.community, (), ())


@given(divided(), st.integers(0, 6000))
def test_the_order_of_importance_is_kept(made, budget):
    details, children = made
    context = pack(details, children, budget, SIZES)
    assert list(context.edges) == [e for e in edges_of(details) if e in context.edges]
    assert list(context.entities) == [e for e in entities_of(details) if e in context.entities]
    assert context == pack(details, list(reversed(children)), budget, SIZES)


@given(divided())
def test_a_community_that_fits_is_shown_whole_and_uses_no_report(made):
    details, children = made
    context = pack(details, children, 100_000, SIZES)
    assert list(context.entities) == entities_of(details)
    assert list(context.edges) == edges_of(details)
    assert list(context.claims) == details.claims_of(details.community.members)
    assert (context.reports, dict(context.left_out)) == ((), {})


@given(divided(), st.integers(0, 6000))
def test_every_id_is_in_the_text_and_stands_for_what_its_row_says(made, budget):
    details, children = made
    context = pack(details, children, budget, SIZES)
    rows = [json.loads(line) for lines in context.rows().values() for line in lines]
    inner = [row for outer in rows for row in outer.get("findings", ())]
    assert {row["id"] for row in [*rows, *inner]} == set(context.ids())
    assert len(set(context.ids().values())) == len(context.ids())
    assert set(context.ids().values()) <= set(context.sources())


def clique(first: int, members: int) -> list[tuple[int, int]]:
    nodes = range(first, first + members)
    return [(a, b) for a in nodes for b in nodes if a < b]


def test_the_largest_part_is_replaced_first_and_no_more_than_needed():
    large, small = clique(0, 14), clique(20, 13)
    details = details_of([*large, *small, (0, 20)])
    children = [child_of(range(20, 33)), child_of(range(14))]
    whole = size(pack(details, children, 100_000, SIZES))
    context = pack(details, children, whole - 200, SIZES)
    assert [sub.report.title for sub in context.reports] == ["Part 0"]
    assert context.reports[0].whole
    assert not context.left_out
    kept = {edge.iri for edge in context.edges}
    assert kept == {edge_of(*pair).iri for pair in [*small, (0, 20)]}
    names = {entity.name for entity in context.entities}
    assert {name(n) for n in range(20, 33)} <= names
    assert {e.name for e in entities_of(details)[:CENTRAL]} <= names, "the central ones stay"


def test_all_parts_are_replaced_where_one_is_not_enough():
    details = details_of([*clique(0, 14), *clique(20, 13), (0, 20)])
    children = [child_of(range(20, 33)), child_of(range(14))]
    context = pack(details, children, 1_500, SIZES)
    assert [sub.report.title for sub in context.reports] == ["Part 0", "Part 20"]
    assert [edge.iri for edge in context.edges] == [edge_of(0, 20).iri]
    assert not context.left_out


def test_a_report_that_is_no_shorter_than_what_it_stands_for_is_not_used():
    details = details_of([*clique(0, 14), (20, 21), (0, 20)])
    wordy = child_of([20, 21], words=400)
    context = pack(details, [wordy], size(pack(details, [], 10**6, SIZES)) - 50, SIZES)
    assert not context.reports
    assert context.left_out


def test_a_leaf_over_budget_is_shown_in_brief_and_what_is_left_out_is_counted():
    details = details_of(clique(0, 20), words=60, claims=2)
    context = pack(details, [], 1_500, SIZES)
    assert context.brief
    missing = len(edges_of(details)) - len(context.edges)
    assert missing > 0
    assert context.left_out["edge with no room"] == missing
    assert list(context.edges) == edges_of(details)[: len(context.edges)]
    assert context.left_out["claim with no room"] == 2 - len(context.claims)


def test_reports_without_room_for_their_findings_are_shown_without():
    parts = [clique(n, 8) for n in range(0, 80, 8)]
    between = [(n, n + 8) for n in range(0, 72, 8)]
    details = details_of([*chain(*parts), *between])
    children = [child_of(range(n, n + 8), words=30) for n in range(0, 80, 8)]
    context = pack(details, children, 1_200, SIZES)
    assert any(not sub.whole for sub in context.reports)
    lost = context.left_out["sub-report shown without its findings"]
    assert lost == sum(not sub.whole for sub in context.reports)
    for shown in (i for i in context.ids() if "." in i):
        assert context.reports[int(shown[1:].partition(".")[0]) - 1].whole


def test_a_sentence_that_states_two_edges_is_shown_once():
    one, other = edge_of(1, 2), edge_of(2, 3)
    quote = "Entity 001 knows Entity 002, who knows Entity 003."
    shown = [EdgeDetail(edge, 3, (evidence_of(edge, quote, 0),)) for edge in (one, other)]
    context = ReportContext(Community("urn:x:c", 0, (), ()), (), tuple(shown))
    first, second = map(json.loads, context.rows()["edges"])
    assert first["quotes"] == [quote]
    assert "quotes" not in second
    assert second["quoted_at"] == ["R1"]


@pytest.mark.parametrize("described", [True, False])
def test_a_whole_chunk_is_not_quoted_whole(described):
    edge = edge_of(1, 2)
    if described:
        edge = Edge(edge.subject, edge.predicate, edge.object, *edge.labels, 5.0, "They are known.")
    detail = EdgeDetail(edge, 2, (evidence_of(edge, "Much is said. " * 200, 0),))
    context = ReportContext(Community("urn:x:c", 0, (), ()), (), (detail,))
    row = json.loads(context.rows()["edges"][0])
    assert len(context.text) < 800
    assert ("quotes" in row) != described
    assert context.sources()[edge.iri] == (detail.evidence[0].iri,)


@given(st.text(max_size=80))
def test_no_text_can_pose_as_a_row(text):
    entity = EntityDetail("urn:x:e", text, text, 1, (text,))
    context = ReportContext(Community("urn:x:c", 0, (), ()), (entity,), ())
    (line,) = context.rows()["entities"]
    assert "\n" not in line
    assert json.loads(line)["name"] == text
