from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.ingest.sentences import sentences

PIECES = st.sampled_from(
    [
        "Dr. ",
        "U.S. ",
        "A. ",
        "Hello",
        " world",
        ". ",
        "! ",
        "。",
        "؟ ",
        "...",
        "\n",
        "\r\n",
        "\n\n",
        "# Head\n",
        "- item\n",
        "| a | b |\n",
        "Key: value\n",
        '"',
        "’",
        "3.14",
        " ",
        "\t",
        "é",
        "😀",
    ]
)


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@given(st.one_of(st.text(), st.lists(PIECES, max_size=40).map("".join)))
def test_every_visible_character_is_in_exactly_one_sentence(text):
    covered = [0] * len(text)
    before = 0
    for start, end in sentences(text):
        assert before <= start < end
        assert text[start:end] == text[start:end].strip()
        before = end
        for index in range(start, end):
            covered[index] += 1
    assert all(
        count == 1
        for count, character in zip(covered, text, strict=True)
        if not character.isspace()
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith met Mr. Jones. They left.", ["Dr. Smith met Mr. Jones.", "They left."]),
        ("J. R. R. Tolkien wrote it. I read it.", ["J. R. R. Tolkien wrote it.", "I read it."]),
        ("He lived in the U.S. The war ended.", ["He lived in the U.S.", "The war ended."]),
        ("The U.S. Army came. It won.", ["The U.S. Army came.", "It won."]),
        ("Pi is 3.14 or so. No. 5 lives.", ["Pi is 3.14 or so.", "No. 5 lives."]),
        (
            "She sat. Bob stood in the sun. Ann ran.",
            ["She sat.", "Bob stood in the sun.", "Ann ran."],
        ),
        ("On Jan. 5 it began. It ended.", ["On Jan. 5 it began.", "It ended."]),
        (
            "“Really?” she asked. “Yes!” He nodded.",
            ["“Really?” she asked.", "“Yes!”", "He nodded."],
        ),
        ("He left... Then he came back.", ["He left...", "Then he came back."]),
        ("Wait . . . what? Nothing.", ["Wait . . . what?", "Nothing."]),
        ("It grew.[1] Then it fell.[2][3] Over.", ["It grew.[1]", "Then it fell.[2][3]", "Over."]),
        ("今天很好。你吃了吗？吃了！", ["今天很好。", "你吃了吗？", "吃了！"]),
        ("ما اسمك؟ أنا علي.", ["ما اسمك؟", "أنا علي."]),
        ("1. First\n2. Second", ["1. First", "2. Second"]),
        ("no end\n\nno end either", ["no end", "no end either"]),
    ],
)
def test_full_stops(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_line_break_inside_a_paragraph_ends_nothing(newline):
    text = f"It was the best of times, it was the{newline}worst of times. It was{newline}over."
    first = f"It was the best of times, it was the{newline}worst of times."
    assert split(text) == [first, f"It was{newline}over."]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\nText of it. More.", ["# Title", "Text of it.", "More."]),
        ("- one\n- two that\n  goes on\n- three", ["- one", "- two that\n  goes on", "- three"]),
        ("| a | b |\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("Name: Ada; Born: 1815\nName: Al", ["Name: Ada; Born: 1815", "Name: Al"]),
        ("One     3\nTwo     37", ["One     3", "Two     37"]),
        (
            "Introduction\nThis is a paragraph on one long line, as many files have it.",
            ["Introduction", "This is a paragraph on one long line, as many files have it."],
        ),
    ],
)
def test_lines_that_mean_something_end_a_sentence(text, expected):
    assert split(text) == expected


@pytest.mark.parametrize(
    "unit",
    [".", ". ", " ", "\n", "\n   ", "!", '."', "[1]", '" ', "a: b; ", ". [", "\t|", "A.", "# "],
)
def test_endless_repetitions_are_read_to_their_end(unit):
    text = unit * (200_000 // len(unit)) + " End"
    assert text[slice(*sentences(text)[-1])].endswith("End")
