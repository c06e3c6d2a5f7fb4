"""How a question is read: its terms and what they weigh."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tgraph.retrieve.text.lexical import Frequencies, stem, terms, words
from tgraph.retrieve.text.question_analysis import (
    analyse_question,
    find_descriptions,
    rate_match,
    roots_of,
)

BODY = Frequencies(["The ship sank in the ice. The ship was strong.", "A dog barked at the ship."])


def test_rare_terms_weigh_more():
    weights = analyse_question("Did the dog see the ship?", BODY).weights
    assert weights["dog"] > weights["ship"] > 0


def test_names_are_known_and_left_out_of_what_is_asked():
    inquiry = analyse_question("Where was Ada Byron born?", BODY)
    assert inquiry.names == {"ada", "byron"}
    assert inquiry.text_without_names == "Where was born?"


def test_forms_of_a_word_meet():
    for family in (["sink", "sank", "sunk"], ["ship", "ships", "ship's"], ["carry", "carried"]):
        assert len({tuple(terms(word)) for word in family}) == 1


def test_a_relative_of_a_word_counts_in_part():
    found = frozenset(terms("The magnetician measured."))
    assert rate_match("magnetic", found, roots_of(found)) == 0.7
    assert rate_match("measur", found, roots_of(found)) == 1.0
    assert rate_match("dog", found, roots_of(found)) == 0.0


@given(st.text(max_size=60))
def test_any_text_can_be_read(text):
    assert all(words(text))
    assert all(stem(word) for word in words(text))
    assert all(weight > 0 for weight in analyse_question(text, BODY).weights.values())
    find_descriptions(text)
