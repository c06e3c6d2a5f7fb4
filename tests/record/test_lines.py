"""Statements written down as TriG at once say what statements as quads say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.store.statements import Statements, TriG, iri, read_trig, trig_row

GRAPH = NamedNode("urn:x:bundle")
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1]),
    st.text(st.characters(), max_size=8),
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 99).map(lambda n: iri(f"urn:x:{n}")),
    st.just(Literal("1.50", datatype=v.xsd("decimal"))),
)
PAIRS = st.tuples(
    st.sampled_from([v.RDF_TYPE, v.tg("score")]),
    st.one_of(VALUES, st.lists(VALUES.filter(lambda value: value is not None), max_size=3)),
)


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(PAIRS, max_size=4)), max_size=5))
def test_lines_are_the_quads(stated: list[tuple[int, list[Any]]]) -> None:
    quads, lines = Statements(GRAPH), TriG(GRAPH)
    for number, pairs in stated:
        for out in (quads, lines):
            assert out.add(f"urn:x:{number}", *pairs) == iri(f"urn:x:{number}")
    assert read_trig(lines.take()) == quads.quads
    assert lines.take() == ""


def test_what_was_taken_is_not_taken_again() -> None:
    lines = TriG(GRAPH)
    lines.add("urn:x:1", (v.tg("time"), datetime(2020, 1, 1, tzinfo=UTC)))
    assert len(read_trig(lines.take())) == 1
    lines.add("urn:x:1", (v.tg("rank"), 1))
    (quad,) = read_trig(lines.take())
    assert quad.predicate == v.tg("rank")


@given(st.lists(st.tuples(st.integers(0, 9), VALUES | st.lists(VALUES, max_size=2)), max_size=5))
def test_what_is_stated_of_many_is_what_is_stated_of_each(stated: list[tuple[int, Any]]) -> None:
    quads, lines = Statements(GRAPH), TriG(GRAPH)
    always = (v.RDF_TYPE, [v.prov("Entity"), v.tg("Point")])
    for number, value in stated:
        quads.add(f"urn:x:{number}", always, (v.tg("score"), value))
    lines.add_rows("urn:x:", [trig_row(str(n), always, (v.tg("score"), x)) for n, x in stated])
    assert read_trig(lines.take()) == quads.quads
