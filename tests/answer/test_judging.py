"""Taking answers apart and checking them: by a model, with its faults, and without one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.answer.entailment import (
    CONTRADICTION,
    ENTAILMENT,
    LABELS,
    NEUTRAL,
    LikenessEntailment,
    SentenceStatements,
    statement_text,
)
from tgraph.answer.entailment_model import NO_VERDICT, TOGETHER, ModelEntailment, ModelStatements
from tgraph.errors import ModelError
from tgraph.models.base import Call, no_sink
from tgraph.testing import HashingEmbedder, ScriptedModel
from tgraph.testing.script import parse_blocks

EXTRACT, CHECK = "extract_statements", "check_entailment"


def statements_of(reply: str, text: str = "She sank."):
    return ModelStatements(ScriptedModel({EXTRACT: reply})).statements("When?", text, no_sink)


def verdicts(*pairs: tuple[str, str]) -> str:
    return json.dumps({"verdicts": [{"id": i, "label": label} for i, label in pairs]})


def checked(replies, count: int):
    model = ScriptedModel({CHECK: replies})
    statements = [(f"It {at}", "is", "so") for at in range(count)]
    found = ModelEntailment(model).check("Is it?", "It is so.", statements, no_sink)
    return found, model


# --- by a model ---


def test_a_model_takes_an_answer_apart():
    rows = [
        {"subject": "Endurance ", "predicate": "sank", "object": "in\n1915"},
        {"subject": "Endurance", "predicate": "sank", "object": "in 1915"},
        {"subject": "Ice", "predicate": "melts", "object": None},
        {"subject": "", "predicate": "is", "object": "nobody"},
    ]
    found = statements_of(json.dumps({"statements": rows}))
    assert found.statements == (("Endurance", "sank", "in 1915"), ("Ice", "melts", ""))
    assert found.dropped == {"malformed statement": 1}
    assert [statement_text(one) for one in found.statements] == [
        "Endurance sank in 1915",
        "Ice melts",
    ]


def test_a_reply_that_is_cut_off_is_used_as_far_as_it_goes_and_counted():
    row = '{"subject": "A", "predicate": "is", "object": "b"}'
    found = statements_of('{"statements": [' + row + ', {"su')
    assert found.statements == (("A", "is", "b"),)
    assert found.dropped["statements cut off"] == 1


def test_an_unusable_reply_is_an_error_that_names_the_step():
    with pytest.raises(ModelError, match=EXTRACT):
        statements_of("I would rather not.")


def test_verdicts_come_in_the_order_of_the_statements():
    found, model = checked(
        verdicts(("2", "neutral"), ("1", "Entailment"), ("3", " Contradiction")), 3
    )
    assert found.labels == (ENTAILMENT, NEUTRAL, CONTRADICTION)
    assert not found.dropped
    assert model.count(CHECK) == 1


def test_what_is_passed_over_is_asked_again_then_taken_as_neutral_and_counted():
    replies = [
        verdicts(("1", "Entailment"), ("7", "Entailment"), ("3", "Maybe")),
        verdicts(("3", "Contradiction"), ("1", "Neutral")),
    ]
    found, model = checked(replies, 3)
    assert found.labels == (ENTAILMENT, NEUTRAL, CONTRADICTION)
    assert found.dropped == {
        "verdict on a statement that was not shown": 2,
        "verdict with an unknown label": 1,
        NO_VERDICT: 1,
    }
    asked = [
        json.loads(x)["id"]
        for x in parse_blocks(model.requests[1].messages)["STATEMENTS"].splitlines()
    ]
    assert asked == ["2", "3"]


def test_many_statements_are_checked_in_several_calls():
    model = ScriptedModel()
    statements = [("It", "is", str(at)) for at in range(2 * TOGETHER + 1)]
    calls: list[Call] = []
    found = ModelEntailment(model).check("Is it?", "It is 3.", statements, calls.append)
    assert len(calls) == model.count(CHECK) == 3
    assert [at for at, label in enumerate(found.labels) if label == ENTAILMENT] == [3]


# --- without one ---

LIKENESS = LikenessEntailment(HashingEmbedder(256))


def label(statement: str, reference: str) -> str:
    (found,) = LIKENESS.check("", reference, [(statement,)], no_sink).labels
    return found


def test_each_sentence_is_a_statement_once():
    found = SentenceStatements().statements("", "She sank. At\nfive!  She sank.", no_sink)
    assert found.statements == (("She sank.",), ("At five!",))


def test_likeness_sees_words_numbers_and_denial():
    text = "It was cold. The Endurance sank on 21 November 1915. Nobody was lost."
    assert label("The Endurance sank on 21 November 1915.", text) == ENTAILMENT
    assert label("Endurance sank on 21 November 1915", text) == ENTAILMENT
    assert label("The Endurance sank on 22 November 1915.", text) == NEUTRAL
    assert label("The Endurance did not sink on 21 November 1915.", text) == CONTRADICTION
    assert label("The Fram was built by Colin Archer.", text) == NEUTRAL
    assert label("The Endurance sank.", "") == NEUTRAL


@pytest.mark.slow
@given(st.text(max_size=80), st.lists(st.text(max_size=40), max_size=4))
def test_there_is_a_label_for_whatever_is_said(reference, said):
    found = LIKENESS.check("", reference, [(one,) for one in said], no_sink)
    assert len(found.labels) == len(said)
    assert set(found.labels) <= set(LABELS)
    assert found == LIKENESS.check("", reference, [(one,) for one in said], no_sink)


def test_a_text_is_embedded_once():
    judge = LikenessEntailment(HashingEmbedder(64))
    calls: list[Call] = []
    for reference in ("She sank.", "She sank.", "He sang."):
        judge.check("", reference, [("She sank.",)], calls.append)
    assert [len(call.request["input"]) for call in calls] == [1, 1]
