"""Reasons: each wording is complete, and records of the first wording replay as equal."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest

import tgraph
from tgraph.model import Candidate, Item
from tgraph.retrieve.reasons import (
    _TEXTS,
    FIRST_WORDING,
    WORDING,
    explain,
    explain_budgeted,
    explain_selection,
    extend_reason,
    is_unread,
    join_reasons,
    parse_selection,
    render_reason,
    render_reasons,
)

PACKAGE = Path(tgraph.__file__).parent
NEAR = explain("chunk-similarity", score=0.5)
REPORT = explain("report-rating", rating=8)


def fields(text):
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def calls():
    """The calls of ``explain`` in the code: kind, names of values."""
    texts = (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    for text in (text for text in texts if "retrieve.reasons import" in text):
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "explain":
                continue
            if isinstance(node.args[0], ast.Constant):
                yield node.args[0].value, {keyword.arg for keyword in node.keywords}


def test_each_reason_in_the_code_has_a_text_and_all_its_values():
    found = list(calls())
    assert len(found) > 40
    for kind, values in found:
        first, current = _TEXTS[kind]
        assert fields(first) | fields(current) <= values, kind


def test_current_texts_name_what_they_speak_of():
    for kind, (_, current) in _TEXTS.items():
        assert not {"it", "its", "them", "they"} & set(current.split()), kind


def test_a_reason_has_a_text_for_each_wording():
    assert NEAR == "the chunk has a cosine similarity of 0.50 to the question"
    assert render_reason(NEAR, WORDING) == NEAR
    assert render_reason(NEAR, FIRST_WORDING) == "it is 0.50 similar in meaning to the question"
    assert render_reason("by a model", FIRST_WORDING) == "by a model"
    assert type(render_reason(NEAR, WORDING)) is str


def test_reasons_are_joined_in_each_wording():
    chosen = explain_selection((NEAR, REPORT, "named"))
    assert chosen.startswith("Selected: the chunk has ")
    assert render_reason(chosen, FIRST_WORDING) == (
        "Chosen because it is 0.50 similar in meaning to the question, it is rated 8 of 10"
        " and named."
    )
    within = explain_budgeted((REPORT, "named"))
    assert (
        render_reason(within, FIRST_WORDING) == "Within the budget; it is rated 8 of 10 and named."
    )
    assert within.endswith("an importance rating of 8 out of 10; named.")
    both = extend_reason(join_reasons((REPORT, "named"), ", and "), "!")
    assert render_reason(both, FIRST_WORDING) == "it is rated 8 of 10, and named!"


@pytest.mark.parametrize("wording", [FIRST_WORDING, WORDING])
@pytest.mark.parametrize("select", [explain_selection, explain_budgeted])
def test_recorded_reasons_are_read_and_written_again(select, wording):
    recorded = render_reason(select((NEAR, REPORT)), wording)
    assert render_reason(select(parse_selection(recorded)), wording) == recorded


def test_what_a_model_wrote_is_no_reason_of_ours():
    assert parse_selection("The edge names the builder.") == ()


def test_an_unread_candidate_is_known_in_each_wording():
    candidate = Candidate(
        Item("chunk", "urn:a", "a", "text"), 1, 0.0, reasons=(explain("not-read"),)
    )
    for wording in (FIRST_WORDING, WORDING):
        (worded,) = render_reasons([candidate], wording)
        assert is_unread(worded.reasons)
        assert not is_unread(("named",))
