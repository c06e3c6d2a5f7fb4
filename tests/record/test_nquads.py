"""Statements written down as N-Quads at once are those that quads are serialised to."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.store.statements import NQuads, Statements, iri, read_nquads, to_bytes

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(), max_size=8),
    st.sampled_from(['"', "\\", "\n", "\x7f", "\ufffe", "\uffff", "\ud800", "\u2028"]),
    st.datetimes(timezones=st.just(UTC)),
    st.integers(0, 99).map(lambda n: iri(f"urn:x:{n}")),
    st.just(Literal("1.50", datatype=v.xsd("decimal"))),
)
PAIRS = st.tuples(
    st.sampled_from([v.RDF_TYPE, v.tg("score")]),
    st.one_of(VALUES, st.lists(VALUES.filter(lambda value: value is not None), max_size=3)),
)


@pytest.mark.parametrize("graph", [NamedNode("urn:x:graph"), DefaultGraph()])
@given(stated=st.lists(st.tuples(st.integers(0, 9), st.lists(PAIRS, max_size=4)), max_size=5))
def test_lines_are_the_quads(
    graph: NamedNode | DefaultGraph, stated: list[tuple[int, list[Any]]]
) -> None:
    quads, lines = Statements(graph), NQuads(graph)
    for number, pairs in stated:
        for out in (quads, lines):
            assert out.add(f"urn:x:{number}", *pairs) == iri(f"urn:x:{number}")
    text = lines.take()
    assert "".join(text).encode() == to_bytes(quads.quads)
    assert len(text) == len(quads.quads)
    assert read_nquads(text) == quads.quads
    assert lines.take() == []
