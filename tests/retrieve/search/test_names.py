"""Names in a question: under whichever variant they are written, and never common words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.retrieve.search.names import NameIndex, is_name, name_variants

NAMES = [
    "Polish-Russian War (film)",
    "Love, Honor, and Oh, Baby!",
    "Christian August, Prince of Anhalt-Zerbst",
    "Paris, Texas",
    "The Mask of Fu Manchu",
    "Café Noël",
    "北京大学",
    "Lothair II",
]
INDEX = NameIndex([(name, node) for node, name in enumerate(NAMES)])


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("Who directed polish russian war?", 0),
        ("Who directed Polish-Russian War (film)?", 0),
        ("What is Love, Honor and Oh-Baby about?", 1),
        ("Who was Christian August's wife?", 2),
        ("when was Christian August, Prince of Anhalt-Zerbst born", 2),
        ("Who starred in mask of fu manchu?", 4),
        ("Where is Cafe Noel?", 5),
        ("北京大学在哪里?", 6),
        ("Who is the mother of lothair ii?", 7),
    ],
)
def test_variants_of_a_name(text, node):
    assert [found.nodes for found in INDEX.in_text(text)] == [(node,)]


def test_what_stands_before_a_comma_is_a_name_only_if_it_is_long_enough():
    assert not INDEX.in_text("Who lives in Paris?")


def test_longer_names_go_first_and_none_lies_within_another():
    index = NameIndex([("New York", 0), ("New York City Ballet", 1), ("Ballet", 2)])
    found = index.in_text("Did the New York City Ballet leave New York?")
    assert [(name.text, name.nodes) for name in found] == [
        ("New York City Ballet", (1,)),
        ("New York", (0,)),
    ]


@pytest.mark.parametrize(
    ("label", "expected"), [("Jaws", True), ("film", False), ("iPhone", True), ("東京", True)]
)
def test_a_label_is_written_as_a_name_or_not(label, expected):
    assert is_name(label) is expected


@given(st.text(max_size=60), st.text(max_size=22))
def test_a_name_is_found_in_a_text_that_holds_it_and_has_its_place(before, name):
    index = NameIndex([(name, 0)])
    text = f"{before} {name}"
    for found in index.in_text(text):
        assert found.text in text
        assert found.nodes == (0,)
    if any(True for _ in name_variants(name)):
        assert index.in_text(name)
