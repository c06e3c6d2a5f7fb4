"""Questions that ask several things: each part is a question, with its own words."""

from __future__ import annotations

import pytest

from tgraph.retrieve.text.coordination import split_question


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "When was Acme Corp founded and who leads it?",
            ["When was Acme Corp founded?", "Who leads Acme Corp?"],
        ),
        (
            "What happened to the crew and how did they die?",
            ["What happened to the crew?", "How did the crew die?"],
        ),
        (
            "When and where was Ada Kern born?",
            ["When was Ada Kern born?", "Where was Ada Kern born?"],
        ),
        (
            "When was the company founded and dissolved?",
            ["When was the company founded?", "When was the company dissolved?"],
        ),
        (
            "In which year was the Alba built and by whom was it designed?",
            ["In which year was the Alba built?", "By whom was the Alba designed?"],
        ),
        (
            "What are the causes and effects of scurvy?",
            ["What are the causes of scurvy?", "What are the effects of scurvy?"],
        ),
        (
            "Who led the party and how did its members die?",
            ["Who led the party?", "How did the party's members die?"],
        ),
    ],
)
def test_parts(question, parts):
    assert [step.text for step in split_question(question)] == parts


def test_a_part_keeps_its_own_words():
    steps = split_question("What happened to the crew and how they died?")
    assert [step.phrase for step in steps] == ["what happened to the crew", "how they died"]


@pytest.mark.parametrize(
    "question",
    [
        "Who was the man who built the Alba and who sailed it?",
        "Who discovered radium and won the Nobel Prize?",
        "What did Ada Kern build and sail?",
        "Where did Kern and Brun go?",
        "What is the difference between bread and butter?",
        "When was the town in which the man lived and died founded?",
        "How do cats and dogs differ?",
        "How many people left the town and moved to Oslo?",
        "Who directed Alba?",
        "and who?",
        "",
    ],
)
def test_what_asks_one_thing(question):
    assert split_question(question) == ()
