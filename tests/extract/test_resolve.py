"""Which names are one entity: the same decision for the same names, in whatever order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.extract.resolution import Name, describe_same_name, name_key, resolve_entities


def name(text: str, *aliases: str, kind: str = "") -> Name:
    return Name(v.entity_iri(text), text, kind, frozenset(map(name_key, aliases)))


def merged(*names: Name) -> dict[str, str]:
    """The decision, by the last part of the IRIs."""
    return {a.rpartition(":")[2]: c.rpartition(":")[2] for a, c in resolve_entities(names).items()}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The Hague", "hague"),
        ("U.S. Navy", "u s  navy"),
        ("Straße", "STRASSE"),
        ("ﬁve", "FIVE"),
        ("Terra-Nova", "terra nova"),
        ("“Endurance”", "Endurance"),
        ("N.A.S.A.", "NASA"),
        ("U.S. Steel", "US Steel"),
        ("J. R. R. Tolkien", "JRR Tolkien"),
        ("the U.S.", "US"),
        ("Acme Corp.", "Acme Corporation"),
        ("Foo Co., Ltd.", "Foo Company Limited"),
        ("Bauer GmbH & Co. KG", "Bauer GmbH und Co KG"),
        ("Lumen S.p.A.", "Lumen SpA"),
        ("Holm AB", "Holm Aktiebolag"),
    ],
)
def test_names_that_are_the_same_name(left: str, right: str) -> None:
    assert name_key(left) == name_key(right)


DIFFERENT = [
    ("Acme Corp.", "Acme Ltd."),
    ("Acme Corp.", "Acme"),
    ("Acme GmbH", "Acme AG"),
    ("Limited", "Ltd"),  # no name stands before the form
    ("US", "us"),
    ("U.S.", "us"),
    ("IT", "it"),
    ("W.H.O.", "who"),
]


@pytest.mark.parametrize(
    ("left", "right"), [("A", "B"), ("the", "a"), ("!!", "??"), ("C", "C#1"), *DIFFERENT]
)
def test_names_that_are_not(left: str, right: str) -> None:
    assert name_key(left) != name_key(right)


def test_the_fuller_of_two_spellings_is_the_entity() -> None:
    assert merged(name("Acme Corp."), name("Acme Corporation")) == {
        "acme-corp.": "acme-corporation"
    }


def test_the_reason_of_the_same_name_is_told() -> None:
    assert "full stops" in describe_same_name("U.S. Steel", "US Steel")
    assert "legal form" in describe_same_name("Acme Corp.", "Acme Corporation")
    assert describe_same_name("Fram", "The Fram") == "'Fram' and 'The Fram' are the same name"


def test_an_alias_joins_its_claimant() -> None:
    assert merged(name("Robert Scott", "Scott"), name("Scott")) == {"scott": "robert-scott"}


def test_two_claimants_who_differ_leave_the_alias_alone() -> None:
    assert merged(name("Robert Scott", "Scott"), name("Walter Scott", "Scott"), name("Scott")) == {}


def test_a_claimant_and_a_shorter_name_of_it_agree() -> None:
    names = [name("Robert Falcon Scott", "Scott"), name("Robert Scott", "Scott"), name("Scott")]
    assert merged(*names)["scott"] == "robert-falcon-scott"


def test_types_keep_names_apart_unless_one_says_nothing() -> None:
    ship = name("Discovery", kind="ship")
    claimant = name("Operation Discovery", "Discovery", kind="event")
    assert merged(claimant, ship) == {}
    assert merged(claimant, name("Discovery", kind="concept")) == {
        "discovery": "operation-discovery"
    }


WORDS = st.sampled_from(["Scott", "Robert", "the", "Walter", "Ship", "of", "Dr", "Fram"])
TEXTS = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
NAMES = st.lists(
    st.builds(
        lambda text, aliases, kind: name(text, *aliases, kind=kind),
        TEXTS,
        st.lists(TEXTS, max_size=3),
        st.sampled_from(["", "person", "ship", "concept"]),
    ),
    unique_by=lambda item: item.iri,
)


@given(NAMES, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(names: list[Name], random: Random) -> None:
    decided = resolve_entities(names)
    random.shuffle(names)
    assert resolve_entities(names) == decided


@given(NAMES)
def test_a_canonical_entity_is_nobodys_alias(names: list[Name]) -> None:
    decided = resolve_entities(names)
    assert not set(decided) & set(decided.values())
    assert set(decided) | set(decided.values()) <= {item.iri for item in names}


@given(NAMES, NAMES)
def test_names_far_away_do_not_matter(names: list[Name], others: list[Name]) -> None:
    """Resolving a neighbourhood by itself gives what resolving everything gives."""
    far = [
        Name(
            f"{item.iri}-far",
            f"far{item.name}",
            item.type,
            frozenset(f"far{a}" for a in item.aliases),
        )
        for item in others
    ]
    decided = resolve_entities([*names, *far])
    assert {k: c for k, c in decided.items() if not k.endswith("-far")} == resolve_entities(names)
