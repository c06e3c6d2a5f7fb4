"""Word lists and weights: each says what it is for, and none knows the texts it is tried on."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.support.paths import REPOSITORY
from tgraph.resources import load_tables, load_weights, word_list, word_set

DATA = REPOSITORY / "tgraph" / "data"
FILES = sorted(path.stem for path in DATA.glob("*.toml"))
OF_EXAMPLES_AND_TESTS = frozenset(
    """
    amundsen apsley belinda cratchit ebenezer endurance filchner fram fridtjof gjoa hjalmar marley
    nansen nimrod roald scrooge shackleton terra topsy
    """.split()  # noqa: SIM905 - a list of words reads better so
)


@pytest.mark.parametrize("name", FILES)
def test_every_list_is_read_and_says_what_it_is_for(name: str):
    text = (DATA / f"{name}.toml").read_text("utf-8")
    assert text.startswith("# ")
    assert load_tables(name) == tomllib.loads(text)
    for match in re.finditer(r"^\[?\w+\]?(?: = ''')?$", text, re.MULTILINE):
        key = match.group().strip("[]").removesuffix(" = '''")
        if key in load_tables(name) and name != "entity_types":
            assert text[: match.start()].rsplit("\n", 2)[-2].startswith("# "), key


@pytest.mark.parametrize("name", FILES)
def test_no_list_holds_a_name_of_the_examples_or_the_tests(name: str):
    values = load_tables(name).values()
    texts = [text for value in values if isinstance(value, dict) for text in value.values()]
    texts += [value for value in values if not isinstance(value, dict)]
    words = {word.lower() for text in texts for word in str(text).replace(",", " ").split()}
    assert not words & OF_EXAMPLES_AND_TESTS


def test_lists_keep_their_order_and_sets_their_words():
    assert word_list("questions", "numbers")[:2] == ["two", "three"]
    assert {"mary", "kate"} <= word_set("first_names", "female", "more_female")
    assert sum(w for w in load_weights("sentence") if w > 0) == pytest.approx(1.0)
