"""An answer at a terminal: the short answer, quotes by document, and mark-up as it is meant."""

from __future__ import annotations

import string
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from tgraph.explain.render.answer import answer_block, is_extractive
from tgraph.explain.render.markup import BULLET, CELLS, parse_runs
from tgraph.model import Answer, Citation, Note, Sentence, Usage, join_sentences


def said(text: str, path: str = "docs/pigeons.md", title: str = "Pigeons") -> Sentence:
    cited = Citation(
        "urn:e", "urn:c", f"urn:{path}", title, path, None, 7, 7 + len(text), text,
        "chunk", None, "urn:c", "urn:s",
    )  # fmt: skip
    return Sentence(" ".join(text.split()), (cited,))


def answer(*sentences: Sentence, **given: object) -> Answer:
    made = Answer(
        "Who?",
        "graph",
        join_sentences(sentences),
        "answered" if sentences else "no_evidence",
        sentences,
        (),
        "urn:x",
        "c",
        Usage(),
        "m",
    )
    return replace(made, **given)  # type: ignore[arg-type]


def printed(of: Answer, width: int = 80) -> list[str]:
    console = Console(width=width, file=StringIO(), markup=False, highlight=False)
    with console.capture() as shown:
        for part in answer_block(of):
            console.print(part)
    return [line.rstrip() for line in shown.get().split("\n")[:-1]]


def test_the_short_answer_comes_first_and_quotes_stand_by_document() -> None:
    found = printed(
        answer(
            said("Ada flew *home*."),
            said("Ships can't fly.", "docs/ships.txt", "Ships"),
            said("So did Bo."),
            short="Ada",
            confidence=0.83,
            short_confidence=0.71,
        )
    )
    assert found == [
        "Ada   probability 0.71 that this is right",
        "",
        "Pigeons  docs/pigeons.md",
        " [1] “Ada flew home.”",
        "     characters 7–23",
        " [2] “So did Bo.”",
        "     characters 7–17",
        "",
        "Ships  docs/ships.txt",
        " [3] “Ships can't fly.”",
        "     characters 7–23",
        "",
        "probability 0.83 that the documents answer",
    ]


def test_what_is_in_nobodys_words_stands_by_itself_before_its_quotes() -> None:
    summary, label = Sentence("The documents are about pigeons.", ()), Sentence("Homing", ())
    whole = answer(summary, label, said("Ada flew home."), Sentence("Ships", ()), said("Bo swam."))
    found = printed(whole)
    assert found[0] == "The documents are about pigeons."
    assert found[2:5] == ["Homing", " [1] “Ada flew home.”", "     Pigeons, characters 7–21"]
    assert found[6] == "Ships"
    assert not is_extractive(whole.sentences)
    assert is_extractive([summary, said("Ada flew home."), said("Bo swam.")])


def test_notes_about_the_question_speak_for_themselves() -> None:
    missing = Note("Nothing found on: the colour of Ada.", (), ())
    found = printed(
        answer(said("Ada flew home."), notes=(missing, Note("Two say it.", ("f",), ())))
    )
    assert found[-3:] == ["Nothing found on: the colour of Ada.", "", "Note: Two say it."]


def test_no_line_is_wider_than_the_terminal_and_none_is_lost() -> None:
    long = said("A pigeon of Skerrow " * 30 + "came.", "docs/" + "x" * 90 + ".md")
    found = printed(answer(long), 40)
    assert max(map(len, found)) <= 40
    assert "".join("".join(found).split()).count("Skerrow") == 30


def test_mark_up_of_markdown_is_read() -> None:
    found = parse_runs("The *Fram* is **40** `m/s` [here](https://x.example) ~~not~~.", "a.MD")
    assert [(run.text, *run.styles) for run in found if run.styles] == [
        ("Fram", "em"), ("40", "strong"), ("m/s", "code"), ("here", "link"), ("not", "s"),
    ]  # fmt: skip
    assert "".join(run.text for run in found) == "The Fram is 40 m/s here not."


def test_rows_items_and_code_keep_their_lines() -> None:
    row = "".join(run.text for run in parse_runs("| a \\| b | `c` |\n|---|:-:|\n| d | e |", "a.md"))
    assert row == f"a | b{CELLS}c\nd{CELLS}e"
    items = "".join(run.text for run in parse_runs("- one\n- *two*", "a.md"))
    assert items == f"{BULLET}one\n{BULLET}two"
    (code,) = parse_runs("```sh\na *b*\nc\n```", "a.md")
    assert code.text == "a *b*\nc"
    assert code.styles == {"block"}


CODE = "# __init__ of *all*\ndef a(b):\n    return `b`\n"


@pytest.mark.parametrize("path", ["a.md", "a.txt", "a.html"])
def test_code_is_shown_as_it_stands(path: str) -> None:
    (block,) = parse_runs(CODE, path, "code")
    assert block.text == block.display_text == CODE
    assert block.styles == {"block"}


@pytest.mark.parametrize(
    ("quote", "kind", "read"),
    [
        ("1912. It was *cold\n   > there*.", "item", "1912. It was cold there."),
        ("# of *ships*", "prose", "# of ships"),
        ("    It was `cold`.", "prose", "It was cold."),
        ("*d* | `e\\|f`", "row", f"d{CELLS}e|f"),
        ("| d | e |", "row", f"d{CELLS}e"),
        ("d</td>\n  <td class='x'>**e**", "row", f"d{CELLS}e"),
        ("Author: *Ada*", "row", "Author: Ada"),
    ],
)
def test_what_a_quote_stands_in_says_how_it_is_read(quote, kind, read) -> None:
    assert "".join(run.display_text for run in parse_runs(quote, "a.md", kind)) == read


def test_a_block_of_code_has_its_lines_and_no_quotation_marks() -> None:
    cited = replace(said(CODE.strip()).citations[0], segment_kind="code")
    assert printed(answer(Sentence(CODE.strip(), (cited,)))) == [
        "Pigeons  docs/pigeons.md",
        " [1] # __init__ of *all*",
        "     def a(b):",
        "         return `b`",
        "     characters 7–51",
    ]


def shown(text: str) -> str:
    return "".join(run.text for run in parse_runs(text, "a.md"))


def test_tags_that_style_words_are_not_shown_and_others_are_text() -> None:
    assert shown("Use <b>it</b><!-- no -->, a Vec<T>.<br>Now.") == "Use it, a Vec<T>. Now."


def test_what_is_defined_elsewhere_on_the_page_is_a_link_all_the_same() -> None:
    assert shown("See [the *docs*][1], [more][] and [sic].") == "See the docs, more and [sic]."
    assert shown("![the *ship*](a.png) sails.") == "the ship sails."


def test_a_number_before_a_sentence_and_marks_of_a_block_quote_are_no_loss() -> None:
    assert shown("1912. It was *cold\nthere*.") == "1912. It was cold there."
    assert shown("said *that\n> all* is\n> well.") == "said that all is well."


def test_other_formats_are_text() -> None:
    assert [run.text for run in parse_runs("2 * 3 * 4 | `x`", "a.txt")] == ["2 * 3 * 4 | `x`"]


@pytest.mark.parametrize("path", ["a.md", "a.txt"])
def test_the_lines_of_a_file_are_not_those_of_a_terminal(path: str) -> None:
    found = parse_runs("She came\r\n   home,  \r\nwas old.", path, "prose")
    assert "".join(run.display_text for run in found) == "She came home, was old."


@given(st.text(alphabet="ab *_`[]()|\\~#->\n&<!1.", max_size=80))
def test_no_mark_up_fails_and_no_word_is_lost(text: str) -> None:
    shown = "".join(run.text for run in parse_runs(text, "a.md"))
    assert parse_runs(text, "a.txt")[0].text == text
    for kind in ("prose", "row"):
        assert parse_runs(text, "a.md", kind) or not text.strip()
    if not set(text) & set("[]`()<&"):  # where links, code and their titles may go
        kept = [c for c in text if c in string.ascii_letters]
        assert [c for c in shown if c in string.ascii_letters] == kept
