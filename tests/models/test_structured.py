"""Structured replies: read through whatever models wrap them in, asked for again when useless."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from tgraph.errors import EndpointError, ModelError
from tgraph.model import Prompt
from tgraph.models.base import Call, ChatRequest
from tgraph.models.json_parsing import JsonlReader, Read, complete_part, read_jsonl, read_reply
from tgraph.models.reply_cache import CachedChat
from tgraph.models.structured_output import ask_structured, strict_schema
from tgraph.testing import ScriptedModel


class Thing(BaseModel):
    name: str
    strength: float = 5.0
    aliases: list[str] = []


class Things(BaseModel):
    things: list[Thing]
    note: str = ""


class Row(BaseModel):
    id: str
    reasoning: str = ""
    score: float = Field(default=0.5, ge=0, le=1)


PROMPT = Prompt("extract_things", "Find things.", "0" * 64)
REQUEST = ChatRequest(PROMPT, [{"role": "user", "content": "Find things."}])
GOOD = {"things": [{"name": "a", "strength": 1.0, "aliases": []}, {"name": "b"}], "note": "n"}
TEXT = json.dumps(GOOD)


def names(text: str) -> list[str]:
    read = read_reply(text, Things)
    assert isinstance(read, Read)
    return [thing.name for thing in read.value.things]


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{TEXT}\n```",
        f"```\n{TEXT}",
        f"Of course! Here is what {{I}} found [1]:\n{TEXT}\nI hope that helps.",
        f'<think>maybe {{"things": []}}</think>\n{TEXT}',
        TEXT.replace("}]", "},]"),
        TEXT.replace('"', "'"),
        json.dumps(GOOD["things"]),
        json.dumps([GOOD]),
        json.dumps(GOOD, indent=2).replace('"n"', '"two\nlines"'),
        TEXT + "\n" + "and so on " * 100,
    ],
)
def test_a_reply_is_found_in_its_wrapping(text: str) -> None:
    assert names(text) == ["a", "b"]


def test_plain_json_counts_as_clean_and_wrapped_json_as_repaired() -> None:
    clean, fenced = read_reply(TEXT, Things), read_reply(f"```json\n{TEXT}\n```", Things)
    assert isinstance(clean, Read)
    assert isinstance(fenced, Read)
    assert (clean.repaired, clean.dropped, clean.truncated) == (False, 0, False)
    assert fenced.repaired


def test_a_cut_list_keeps_its_complete_items() -> None:
    text = '{"things": [{"name": "a", "aliases": ["x", "y"]}, {"name": "bob", "aliases": ["z"]'
    read = read_reply(text, Things)
    assert isinstance(read, Read)
    assert [t.name for t in read.value.things] == ["a"]
    assert (read.truncated, read.repaired, read.dropped) == (True, True, 1)


@given(st.lists(st.text(), min_size=1, max_size=6), st.data())
def test_wherever_a_reply_is_cut_no_half_item_is_kept(texts: list[str], data: Any) -> None:
    whole = json.dumps({"things": [{"name": t, "aliases": [t]} for t in texts]})
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    read = read_reply(cut, Things)
    if isinstance(read, Read):
        kept = [(t.name, t.aliases) for t in read.value.things]
        assert kept == [(t, [t]) for t in texts[: len(kept)]]


@pytest.mark.parametrize("end", ['"}', "1}", "1}]}", '"]}]}', "}"])
def test_a_string_that_is_cut_after_a_brace_is_no_end(end: str) -> None:
    whole = json.dumps({"things": [{"name": "a"}, {"name": f"b {end} and more"}]})
    read = read_reply(whole[: whole.index(" and more")], Things)
    assert isinstance(read, Read)
    assert ([t.name for t in read.value.things], read.truncated) == (["a"], True)


def test_a_quote_that_is_not_escaped_does_not_make_a_whole_reply_a_cut_one() -> None:
    read = read_reply('{"things": [{"name": "the 5" pipe", "aliases": ["x"]}]}', Things)
    assert isinstance(read, Read)
    assert ([t.name for t in read.value.things], read.truncated) == (['the 5" pipe'], False)


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    assert isinstance(read_reply(text, Things), Read | str)


def test_malformed_items_are_dropped_and_counted_and_nulls_take_the_default() -> None:
    text = json.dumps(
        {
            "things": [
                {"name": "a", "aliases": ["x", 7]},
                {"strength": 1},
                {"name": "b", "aliases": None},
            ]
        }
    )
    read = read_reply(text, Things)
    assert isinstance(read, Read)
    assert [(t.name, t.aliases) for t in read.value.things] == [("a", ["x"]), ("b", [])]
    assert (read.dropped, read.repaired) == (2, True)


@pytest.mark.parametrize(
    "text", ["", "I can't do that.", "{}", "null", '{"other": 1}', "[1]", '{"things": [{"na', "[["]
)
def test_what_is_no_such_reply_is_refused(text: str) -> None:
    assert isinstance(read_reply(text, Things), str)


def test_a_bare_empty_list_says_that_there_is_nothing() -> None:
    assert names("[]") == []


def test_half_a_surrogate_pair_does_not_get_into_a_value() -> None:
    assert names(r'{"things": [{"name": "\ud83d\ude00 \ud83d"}]}') == ["\U0001f600 \ufffd"]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["[" * 60_000, "{" * 60_000, '{"a":' * 30_000, '{"\n' * 6_000])
def test_nonsense_is_refused_without_a_long_search(text: str) -> None:
    assert isinstance(read_reply(text, Things), str)
    assert read_jsonl(text, Row)[0] == []


def test_a_part_is_closed_where_an_item_ended() -> None:
    assert complete_part('{"a": "x", "b": [1, 2, 3') == '{"a": "x", "b": [1, 2]}'
    assert complete_part('{"a": "x", "b": "y') == '{"a": "x"}'
    assert complete_part('{"a": "x') == ""


# --- asking -------------------------------------------------------------------------------------


def test_a_clean_reply_is_one_call() -> None:
    calls: list[Call] = []
    model = ScriptedModel({"extract_things": TEXT})
    got = ask_structured(model, REQUEST, Things, calls.append)
    assert got.value == Things.model_validate(GOOD)
    assert (got.repaired, got.dropped, got.asked) == (False, 0, 1)
    assert [call.repaired for call in calls] == [False]


def test_the_record_says_that_a_reply_was_repaired() -> None:
    calls: list[Call] = []
    ask_structured(
        ScriptedModel({"extract_things": f"```json\n{TEXT}\n```"}), REQUEST, Things, calls.append
    )
    assert [call.repaired for call in calls] == [True]
    assert calls[0].reply["text"].startswith("```json")


def test_prose_is_asked_for_again_with_the_reason() -> None:
    calls: list[Call] = []
    model = ScriptedModel({"extract_things": ["I would rather talk.", TEXT]})
    got = ask_structured(model, REQUEST, Things, calls.append)
    assert got.asked == 2
    assert len(calls) == 2
    again = model.requests[1].messages
    assert again[-2] == {"role": "assistant", "content": "I would rather talk."}
    assert "holds no JSON" in again[-1]["content"]


def test_an_empty_reply_is_asked_for_again() -> None:
    calls: list[Call] = []
    got = ask_structured(
        ScriptedModel({"extract_things": ["", TEXT]}), REQUEST, Things, calls.append
    )
    assert got.asked == len(calls) == 2


def test_two_useless_replies_are_an_error_and_both_are_recorded() -> None:
    calls: list[Call] = []
    with pytest.raises(ModelError, match="step extract_things can't be used: it holds no JSON"):
        ask_structured(ScriptedModel({"extract_things": "Prose."}), REQUEST, Things, calls.append)
    assert len(calls) == 2


def test_an_unreachable_endpoint_is_not_asked_again() -> None:
    model = ScriptedModel({"extract_things": EndpointError("It is down.")})
    with pytest.raises(EndpointError):
        ask_structured(model, REQUEST, Things)
    assert model.count("extract_things") == 1


def test_a_reply_that_had_to_be_asked_for_again_is_paid_for_once(tmp_path: Path) -> None:
    model = ScriptedModel({"extract_things": ["Prose.", TEXT]})
    outcomes = [ask_structured(CachedChat(model, tmp_path), REQUEST, Things) for _ in range(2)]
    assert [outcome.asked for outcome in outcomes] == [2, 2]
    assert outcomes[0].value == outcomes[1].value
    assert model.count("extract_things") == 2


def test_a_useless_reply_does_not_stay_in_the_cache() -> None:
    cache: dict[str, bytes] = {}
    with pytest.raises(ModelError):
        ask_structured(
            CachedChat(ScriptedModel({"extract_things": "Prose."}), cache), REQUEST, Things
        )
    assert cache == {}
    calls: list[Call] = []
    for _ in range(2):
        ask_structured(
            CachedChat(ScriptedModel({"extract_things": TEXT}), cache),
            REQUEST,
            Things,
            calls.append,
        )
    assert [call.cached for call in calls] == [False, True]


# --- the schema ---------------------------------------------------------------------------------


def objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [o for item in schema for o in objects(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [o for value in schema.values() for o in objects(value)]


def test_the_schema_is_strict_and_the_reply_fits_it() -> None:
    schema = strict_schema(Things)
    for found in objects(schema):
        assert found["additionalProperties"] is False
        assert found["required"] == list(found["properties"])
    assert "default" not in json.dumps(schema)
    jsonschema.validate(Things(things=[Thing(name="a")]).model_dump(), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"things": []}, schema)


def test_a_mapping_with_free_keys_has_no_strict_schema() -> None:
    class Free(BaseModel):
        values: dict[str, int]

    with pytest.raises(TypeError):
        strict_schema(Free)


def test_a_property_may_be_called_like_a_keyword() -> None:
    class Page(BaseModel):
        title: str
        default: int

    assert set(strict_schema(Page)["properties"]) == {"title", "default"}


# --- rows ---------------------------------------------------------------------------------------

ROWS = '{"id": "a", "reasoning": "x", "score": 0.9}\n{"id": "b", "reasoning": "y", "score": 0.1}'


@pytest.mark.parametrize(
    ("text", "malformed"),
    [
        (ROWS, 0),
        (f"Here they are [as asked]:\n```jsonl\n{ROWS}\n```\nDone.", 0),
        (ROWS.replace("\n", " "), 0),
        (ROWS.replace("\n", "\n\nand then\n"), 0),
        (f"[{ROWS.replace(chr(10), ',' + chr(10))}]", 0),
        (f'{{"edges": [{ROWS.replace(chr(10), ",")}]}}', 0),
        (ROWS.replace("}", ",}"), 0),
        (ROWS.replace('"x"', '"he said "x" twice"'), 0),
        (ROWS.replace('"x"', '"a 5" disc"'), 0),
        (ROWS.replace('"x"', '"two\nlines"'), 0),
        (ROWS.replace("{", "{\n").replace(", ", ",\n"), 0),
        (ROWS + '\n{"id": "c", "reasoning": "cut o', 1),
        (ROWS + '\n{"name": "c"}\n{"id": "d", "score": 7}', 2),
        ('{"id": "broken\n' + ROWS, 1),
        (ROWS.replace("\n", "\r\n"), 0),
    ],
)
def test_rows_are_read_through_noise(text: str, malformed: int) -> None:
    rows, count = read_jsonl(text, Row)
    assert [row.id for row in rows] == ["a", "b"]
    assert count == malformed


def test_a_row_of_defaults_does_not_take_any_object() -> None:
    class Loose(BaseModel):
        sentence: str = ""

    rows, malformed = read_jsonl('{"rows": [{"sentence": "x"}]} {"other": 1}', Loose)
    assert [row.sentence for row in rows] == ["x"]
    assert malformed == 1


def test_a_text_without_rows_has_none() -> None:
    assert read_jsonl("I am sorry.", Row) == ([], 0)


@given(st.lists(st.text(max_size=20), max_size=5), st.lists(st.integers(1, 30), min_size=1))
def test_rows_are_the_same_in_whatever_pieces_they_come(texts: list[str], sizes: list[int]) -> None:
    text = "\n".join(json.dumps({"id": t, "reasoning": t}, ensure_ascii=False) for t in texts)
    reader, rows, position, turn = JsonlReader(Row), [], 0, 0
    while position < len(text):
        size = sizes[turn % len(sizes)]
        rows += reader.feed(text[position : position + size])
        position, turn = position + size, turn + 1
    rows += reader.finish()
    assert [row.id for row in rows] == texts
    assert reader.malformed == 0


def test_a_row_is_given_as_soon_as_it_is_complete() -> None:
    reader = JsonlReader(Row)
    assert reader.feed('[{"id": "a"') == []
    assert [row.id for row in reader.feed('}, {"id"')] == ["a"]
    assert reader.feed(': "b"') == []
    assert reader.finish() == []
    assert reader.malformed == 1
