"""The registry of modes: what there is to know of a mode is said in its module alone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

import tgraph
from tgraph.retrieve.modes.base import Form, load_entry
from tgraph.retrieve.modes.registry import MODES, mode_for, mode_named
from tgraph.retrieve.modes.suggest import SUGGEST

PACKAGE = Path(tgraph.__file__).parent
WORDS = {"graph", "local", "global", "sparql"}  # which name other things as well


def constants(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}


@pytest.mark.slow
def test_no_other_module_has_the_name_of_a_mode():
    named = MODES.keys() - WORDS
    modes = PACKAGE / "retrieve/modes"
    others = [path for path in PACKAGE.rglob("*.py") if modes not in path.parents]
    assert {path.name: found for path in others if (found := named & constants(path))} == {}


@pytest.mark.parametrize("mode", [*MODES.values(), SUGGEST], ids=lambda mode: mode.name)
def test_the_cut_offs_of_a_mode_are_where_it_says(mode):
    assert not mode.cut_offs or callable(load_entry(mode.cut_offs))


def test_auto_has_a_mode_for_every_form():
    found = {form: mode_for(form) for form in get_args(Form)}
    assert found == {
        "one": "graph",
        "linked": "ppr",
        "compared": "ppr",
        "listed": "graph",
        "whole": "global",
    }


def test_a_mode_of_another_version_is_none():
    assert mode_named("gone") is None
    assert mode_named("suggest") is SUGGEST
