"""Class-based TF-IDF: what sets a group of sentences apart, and nothing that it was not told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tgraph.retrieve.text.distinctive_terms import distinctive_terms


def said(*sentences: str, document: str = "a.txt") -> list[tuple[str, str]]:
    return [(document, sentence) for sentence in sentences]


SHIPS = said("The ice crushed the Snow Petrel.", "The Snow Petrel had a cook.", "A cook sang.")
FARMS = said("The farm had a cook.", "Cows sang on the farm.", "The farm lay in Skerrow.")
NAMES = {"ships": ["Snow Petrel, ice, cook, board"], "farms": ["farm: cows, cook, Skerrow"]}


def test_what_is_frequent_here_and_rare_elsewhere_comes_first() -> None:
    found = distinctive_terms({"ships": SHIPS, "farms": FARMS}, 2, NAMES)
    assert found["ships"][0] == "Snow Petrel"
    assert found["farms"][0] == "farm"
    assert "cook" not in found["farms"]


def test_a_term_is_written_as_it_mostly_is_and_shares_no_word_with_another() -> None:
    sentences = said("The Farm sold eggs.", "A farm sold eggs.", "On the farm they ate eggs.")
    found = distinctive_terms({"a": sentences, "b": SHIPS}, 5, {"a": ["farm, eggs"], "b": []})
    assert set(found["a"]) == {"farm", "eggs"}
    assert found["b"] == []


def test_what_several_documents_say_comes_before_what_one_repeats() -> None:
    repeated = said(*["The tide rose."] * 3, document="a.txt")
    spread = [("a.txt", "A lamp."), ("b.txt", "The lamp."), ("c.txt", "Lamp.")]
    found = distinctive_terms({"a": [*repeated, *spread]}, 1, {"a": ["tide", "lamp"]})
    assert found == {"a": ["lamp"]}


def test_a_term_is_a_noun_phrase_and_whole() -> None:
    sentences = said(
        "The Court of Justice met.", "A technical committee met.", "The Court of Justice rose."
    )
    names = {"a": ["Court of Justice", "technical committee"]}
    assert distinctive_terms({"a": sentences}, 3, names) == {"a": ["Court of Justice"]}


def test_what_a_heading_says_comes_first_and_each_term_is_of_one_group() -> None:
    groups = {"a": said("Sails and masts.", "Masts and sails."), "b": said("Masts.", "A mast.")}
    names = {"a": ["sails", "masts"], "b": ["masts"]}
    assert distinctive_terms(groups, 1, names) == {"a": ["sails"], "b": ["masts"]}
    assert distinctive_terms(groups, 2, names, ["Sails"])["a"][0] == "sails"


def test_where_a_link_leads_to_is_no_term() -> None:
    sentences = said("A [sail](/docs/mast/) is set.", "A sail of https://masts.org/mast is set.")
    assert distinctive_terms({"a": sentences}, 3, {"a": ["sail", "mast"]}) == {"a": ["sail"]}


def test_no_group_has_no_terms() -> None:
    assert distinctive_terms({}, 3, {}) == {}
    assert distinctive_terms({"a": []}, 3, {"a": ["x"]}) == {"a": []}


WORDS = st.sampled_from(
    ["Ada", "flute", "rome", "the", "Fram", "ice", "of", "sea-ice", "Ada's", "1911"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
SENTENCES = st.lists(st.tuples(st.sampled_from(["a.txt", "b.txt"]), TEXTS), max_size=6)


@given(st.dictionaries(st.sampled_from("abc"), SENTENCES, max_size=3), st.integers(1, 4))
def test_terms_are_of_their_sentences_few_and_do_not_depend_on_order(groups, most) -> None:
    names = {group: [text for _, text in sentences] for group, sentences in groups.items()}
    found = distinctive_terms(groups, most, names)
    assert found.keys() == groups.keys()
    for group, terms in found.items():
        whole = " ".join(text for _, text in groups[group]).casefold()
        assert len(terms) <= most
        assert all(term.casefold() in whole for term in terms)
        parts = [part for term in terms for part in term.casefold().split() if part != "of"]
        assert len(parts) == len(set(parts))
    shuffled = {group: list(reversed(groups[group])) for group in reversed(groups)}
    assert distinctive_terms(shuffled, most, names) == found
