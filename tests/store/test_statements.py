"""Statements are written and read again unchanged, as N-Quads and as TriG."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.store.statements import (
    Statements,
    format_nquads,
    iri_node,
    read_nquads,
    read_trig,
    trig,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 1]),
    st.text(st.characters(), max_size=8),
    st.sampled_from(['"', "\\", "\n", "\x7f", "\ufffe", "\uffff", "\ud800", "\u2028"]),
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 99).map(lambda number: iri_node(f"urn:x:{number}")),
    st.just(Literal("1.50", datatype=v.xsd("decimal"))),
)
PAIRS = st.tuples(
    st.sampled_from([v.RDF_TYPE, v.tg("score")]),
    st.one_of(VALUES, st.lists(VALUES.filter(lambda value: value is not None), max_size=3)),
)
ROWS = st.lists(st.tuples(st.integers(0, 9), st.lists(PAIRS, max_size=4)), max_size=5)


@pytest.mark.parametrize("graph", [NamedNode("urn:x:graph"), DefaultGraph()])
@given(rows=ROWS)
def test_quads_are_written_and_read(
    graph: NamedNode | DefaultGraph, rows: list[tuple[int, list[Any]]]
) -> None:
    out = Statements(graph)
    for number, pairs in rows:
        assert out.add(f"urn:x:{number}", *pairs) == iri_node(f"urn:x:{number}")
    quads = out.take_quads()
    assert format_nquads(quads) == "".join(
        f"{quad} .\n" for quad in quads
    )  # as batches were sealed
    assert read_nquads(format_nquads(quads)) == quads
    assert read_trig(trig(quads)) == quads
    assert out.take_quads() == []


def test_the_text_of_no_quads_is_empty() -> None:
    assert trig([]) == format_nquads([]) == ""


@pytest.mark.parametrize(
    ("read", "opening", "closing"),
    [
        (read_nquads, "<<( <urn:x:a> <urn:x:b> ", " )>>"),
        (read_trig, "<<( <urn:x:a> <urn:x:b> ", " )>>"),
        (read_trig, "( '\"' \"'\" ", " )"),
        (read_trig, "[ <urn:x:b> ''' \" ''' ; <urn:x:c> ", " ]"),
    ],
)
def test_what_is_nested_deeply_is_damaged(read, opening, closing):
    for levels, text in ((1, '"((((<<("'), (60_000, '"x"')):
        quad = f"<urn:x:s> <urn:x:p> {opening * levels}{text}{closing * levels} ."
        if levels == 1:
            assert read(f"{quad}\n" * 200)
        else:
            with pytest.raises(SyntaxError, match="in each other"):
                read(f"{quad}\n")
