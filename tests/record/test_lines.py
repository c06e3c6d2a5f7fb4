"""Statements written down as N-Quads at once say what statements as quads say."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.record.lines import Lines
from tgraph.store.statements import Statements, iri

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
    quads, lines = Statements(GRAPH), Lines(GRAPH)
    for number, pairs in stated:
        for out in (quads, lines):
            assert out.add(f"urn:x:{number}", *pairs) == iri(f"urn:x:{number}")
    assert list(parse(lines.take(), format=RdfFormat.N_QUADS)) == quads.quads
    assert lines.take() == ""


def test_what_was_taken_is_not_taken_again() -> None:
    lines = Lines(GRAPH)
    lines.add("urn:x:1", (v.tg("time"), datetime(2020, 1, 1, tzinfo=UTC)))
    assert lines.take().count("\n") == 1
    lines.add("urn:x:1", (v.tg("rank"), 1))
    assert "rank" in lines.take()
