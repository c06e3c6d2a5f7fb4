"""How a question is read: its terms, its kind, its halves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.retrieve.inquiry import answers, read_question, split_question
from tgraph.retrieve.lexical import Frequencies, stem, terms, words

BODY = Frequencies(["The ship sank in the ice. The ship was strong.", "A dog barked at the ship."])


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did the ship sink?", "time"),
        ("In what year was she built?", "time"),
        ("How many dogs were there?", "number"),
        ("Who was the captain?", "person"),
        ("Where was he born?", "place"),
        ("Why did he turn back?", "reason"),
        ("Which ship was first?", "name"),
        ("How did they escape?", ""),
    ],
)
def test_the_question_word_tells_the_kind(question, kind):
    assert read_question(question, BODY).kind == kind


def test_rare_terms_weigh_more():
    weights = read_question("Did the dog see the ship?", BODY).weights
    assert weights["dog"] > weights["ship"] > 0


@pytest.mark.parametrize(
    ("question", "quote", "holds"),
    [
        ("When did she sink?", "She sank on 21 November.", True),
        ("When did she sink?", "She sank slowly.", False),
        ("How many dogs had he?", "He had fifty dogs.", True),
        ("How many dogs had he?", "He had dogs.", False),
        ("Who led Ada's party?", "It was led by Berta.", True),
        ("Who led Ada's party?", "Ada's party was led well.", False),
    ],
)
def test_an_answer_is_of_the_kind_asked_for(question, quote, holds):
    assert (answers(read_question(question, BODY), quote) > 0.5) is holds


def test_a_description_is_taken_apart():
    assert split_question("Who designed the ship that sank in the ice?") == (
        "Who designed the ship",
        "the ship that sank in the ice?",
    )
    assert split_question("Who designed the ship?") is None
    assert split_question("Which ship sank?") is None


def test_forms_of_a_word_meet():
    for family in (["sink", "sank", "sunk"], ["ship", "ships", "ship's"], ["carry", "carried"]):
        assert len({tuple(terms(word)) for word in family}) == 1


@given(st.text(max_size=60))
def test_any_text_has_words(text):
    assert all(words(text))
    assert all(stem(word) for word in words(text))
    read_question(text, BODY)
    split_question(text)
