"""Descriptions in a question, and the question with a name in their place."""

from __future__ import annotations

import pytest

from tgraph.retrieve.text.question_analysis import find_descriptions


@pytest.mark.parametrize(
    ("question", "text", "noun", "asked"),
    [
        (
            "Who designed the ship that sank in the ice?",
            "ship that sank in the ice?",
            "ship",
            "Who designed X",
        ),
        (
            "Where was the man born who walked alone to the hut?",
            "man who walked alone to the hut?",
            "man",
            "Where was X born",
        ),
        (
            "Who paid the captain of the relief ship Morning?",
            "the captain of the relief ship Morning",
            "captain",
            "Who paid X ?",
        ),
        (
            "Who is the wife of Gisvi's brother?",
            "Gisvi's brother",
            "brother",
            "Who is the wife of X ?",
        ),
        (
            "He looked at a vessel in Norway. What was she called later?",
            "He looked at a vessel in Norway.",
            "",
            "What was she called later? X",
        ),
    ],
)
def test_a_description_is_taken_apart(question, text, noun, asked):
    found = {d.text: d for d in find_descriptions(question)}
    assert found[text].noun == noun
    assert found[text].replace_description("X") == asked


@pytest.mark.parametrize(
    "question", ["Who designed the ship?", "Which ship sank?", "Who sank?", ""]
)
def test_a_plain_question_has_none(question):
    assert find_descriptions(question) == []
