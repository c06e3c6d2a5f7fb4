"""The language of the code: measures that may fall and never rise."""

import pytest

from tests.support.paths import REPOSITORY
from tools.language import (
    LIMITS,
    Language,
    compute_stop_word_share,
    is_participle,
    measure_language,
    parse_modules,
)

CEILINGS = {
    "assignments to vague names": 0.0125,
    "functions named by a stop word or participle": 340,
    "names of classes and aliases with two meanings": 58,
}
"""Measures that are above their limit in ``tools.language.LIMITS`` today; they may only fall."""


@pytest.fixture(scope="module")
def language() -> Language:
    return measure_language(parse_modules(REPOSITORY / "tgraph"))


@pytest.mark.parametrize("title", LIMITS)
def test_the_language_gets_no_worse(language: Language, title: str):
    worst = sorted(language.places[title], reverse=True)[:10]
    assert language.measures[title] <= CEILINGS.get(title, LIMITS[title]), worst


def test_stop_words_are_counted_in_the_first_paragraph():
    assert compute_stop_word_share("Rank sentences.\n\nIt is what it was.") == 0
    assert compute_stop_word_share("What it is.") == 1
    assert compute_stop_word_share("") == 0


def test_participles_are_recognised():
    assert [
        word for word in ("found", "merged", "embed", "rank", "read") if is_participle(word)
    ] == [
        "found",
        "merged",
    ]


def test_a_tree_is_measured(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "one.py").write_text(
        "Row = tuple[int, str]\ndef told():\n    found = 1\n    rows = 2\n"
    )
    (folder / "two.py").write_text(
        "Row = tuple[str, str]\ndef rank_rows():\n    '''Rank rows.'''\n"
    )
    measures = measure_language(parse_modules(folder)).measures
    assert measures["assignments to vague names"] == 1 / 4
    assert measures["functions named by a stop word or participle"] == 1
    assert measures["functions named by one word"] == 1 / 2
    assert measures["names of classes and aliases with two meanings"] == 1
    assert measures["stop words in docstrings, mean"] == 0
