"""Questions in steps: what they describe is asked first, the innermost of all at the start."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tgraph.retrieve.text.decomposition import MOST, decompose_question


@pytest.mark.parametrize(
    ("question", "steps"),
    [
        (
            "When was the director of the film that won the prize born?",
            [
                "What is the film that won the prize?",
                "Who is the director of #1?",
                "When was #2 born?",
            ],
        ),
        (
            "Who was the first president of the association which published the Annals of Glass?",
            [
                "What is the association which published the Annals of Glass?",
                "Who was the first president of #1?",
            ],
        ),
        (
            "What is the native language of the person who broke the salt law in 1930?",
            [
                "Who is the person who broke the salt law in 1930?",
                "What is the native language of #1?",
            ],
        ),
        (
            "Who is the spouse of Alba's main author?",
            ["Who is Alba's main author?", "Who is the spouse of #1?"],
        ),
    ],
)
def test_steps(question, steps):
    assert [step.text for step in decompose_question(question)] == steps


@pytest.mark.parametrize(
    "question",
    [
        "Who built the Fram?",
        "What is the capital of Norway?",
        "What is Oslo's population?",
        "Which film that won a prize was the longest?",
        "In which war that Italy entered when?",
        "",
        "#1 of the #2 that won the Palme d'Or?",
    ],
)
def test_questions_that_take_one_step(question):
    assert decompose_question(question) == ()


def test_an_answer_takes_the_place_that_is_kept_for_it():
    steps = decompose_question("When was the director of the film that won the prize born?")
    assert [step.needs for step in steps] == [(), (1,), (2,)]
    assert steps[1].fill_question({1: "Parasite"}) == "Who is the director of Parasite?"
    assert steps[2].fill_question({1: "Parasite"}) == steps[2].text, "what is not known stays open"
    assert [step.noun for step in steps] == ["film", "director", ""]


TOLD = "who what the a director of film that won Oslo 's born which in , where Ada country ?"
WORDS = st.sampled_from(TOLD.split())


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(WORDS, min_size=3, max_size=25))
def test_any_words_give_steps_that_need_only_those_before_them(words):
    steps = decompose_question(" ".join(words))
    assert len(steps) <= MOST
    for place, step in enumerate(steps, 1):
        assert all(0 < needed < place for needed in step.needs)
    if steps:
        assert {n for step in steps for n in step.needs} == set(range(1, len(steps)))
