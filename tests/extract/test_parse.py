"""From a model's rows to spans and literals that hold."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal
from rdflib import Literal as RdflibLiteral
from rdflib import URIRef

from tgraph import vocabulary as v
from tgraph.extract.model.quote_location import QuoteFinder
from tgraph.extract.model.replies import GraphReply, typed_literal, usable_rows
from tgraph.model import Chunk, ExtractedRelationship
from tgraph.models.json_parsing import Read
from tgraph.models.json_parsing import read_reply as read_json

PAGE = "Preface. “Roald Amundsen”  reached\nthe South Pole — on 14 December 1911, with Ann.\n"
START = 9


def chunk(text: str = PAGE[START:], start: int = START) -> Chunk:
    return Chunk("0" * 64, None, 0, start, start + len(text), text, 1)


def relationships(quote: str, text: str = PAGE[START:], **changes: object):
    row = {"subject": "A", "predicate": "reach", "object": "B", "quote": quote, **changes}
    dropped: Counter[str] = Counter()
    reply = GraphReply.model_validate({"relationships": [row]})
    _, found = usable_rows(reply, QuoteFinder(chunk(text)), dropped)
    return found, dropped


@pytest.mark.parametrize(
    ("quote", "span"),
    [
        ("Roald Amundsen” reached the South Pole", "Roald Amundsen”  reached\nthe South Pole"),
        ('"roald amundsen" REACHED', "Roald Amundsen”  reached"),
        ("the South Pole - on 14 December 1911...", "the South Pole — on 14 December 1911"),
        ("with Ann", "with Ann."),
        ("“Roald", "Roald"),
    ],
)
def test_a_quote_is_found_and_the_span_is_the_texts_own(quote, span):
    (found,), dropped = relationships(quote)
    assert found.span is not None
    assert found.span.quote == span == PAGE[found.span.start : found.span.end]
    assert not dropped


@pytest.mark.parametrize("quote", ["", "...", "the North Pole", "reached the Pole", "outh Po", "n"])
def test_a_quote_that_does_not_stand_there_drops_the_row(quote):
    found, dropped = relationships(quote)
    assert not found
    assert dropped == {"relationship whose quote is not in the chunk": 1}


def test_scripts_without_spaces_have_quotes_too():
    (found,), _ = relationships("居里夫人发现了钋", "一八九八年居里夫人发现了钋。她在巴黎。")
    assert found.span is not None
    assert found.span.quote == "居里夫人发现了钋"


def test_what_a_prompt_did_to_angle_brackets_is_undone():
    (found,), _ = relationships("›››print is a prompt", "Type >>>print is a prompt in Python.")
    assert found.span is not None
    assert found.span.quote == ">>>print is a prompt"


@given(st.text(min_size=1, max_size=60), st.data())
def test_a_found_quote_is_always_the_text_at_its_place(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    form = data.draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
    found, dropped = relationships(unicodedata.normalize(form, text[start:end]), text)
    assert len(found) + dropped.total() == 1
    for row in found:
        assert isinstance(row, ExtractedRelationship)
        assert row.span is not None
        assert row.span.quote == text[row.span.start - START : row.span.end - START] != ""


@given(st.text(max_size=40))
def test_a_whole_sentence_is_found_in_every_unicode_form(text):
    sentence = f"It says {text} here"
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        found, _ = relationships(unicodedata.normalize(form, sentence), f"Well. {sentence} now.")
        assert found


@pytest.mark.parametrize(
    ("value", "datatype", "expected"),
    [
        ("1911-12-14", "date", '"1911-12-14"^^xsd:date'),
        ("1911-12-14", "xsd:date", '"1911-12-14"^^xsd:date'),
        ("1911-02-30", "date", None),
        ("14 December 1911", "date", None),
        ("1911-12-14T15:00:00Z", "dateTime", '"1911-12-14T15:00:00Z"^^xsd:dateTime'),
        ("1911-12-14T15", "dateTime", None),
        ("1911", "gYear", '"1911"^^xsd:gYear'),
        ("1911-12", "gYearMonth", '"1911-12"^^xsd:gYearMonth'),
        ("1,250", "integer", '"1250"^^xsd:integer'),
        ("12,50", "integer", None),
        ("39.10", "decimal", '"39.1"^^xsd:decimal'),
        ("1e5", "decimal", None),
        ("1_000", "decimal", None),
        ("١٢", "integer", None),
        ("True", "boolean", '"true"^^xsd:boolean'),
        ("yes", "boolean", None),
        ("39 metres", "string", '"39 metres"^^xsd:string'),
        ("x", "anyURI", None),
    ],
)
def test_values_are_typed_or_not_at_all(value, datatype, expected):
    literal = typed_literal(value, datatype)
    shown = literal and f'"{literal.value}"^^xsd:{literal.datatype.value.rpartition("#")[2]}'
    assert shown == expected


NAMES = ["integer", "decimal", "boolean", "date", "dateTime", "gYear", "gYearMonth", "string"]


@given(st.from_regex(r"[-+]?[0-9T:.,Z-]{1,20}", fullmatch=True), st.sampled_from(NAMES))
def test_a_typed_value_is_in_its_lexical_space_and_canonical(value, datatype):
    literal = typed_literal(value, datatype)
    if literal is not None:
        assert v.canonicalise_literal(literal) == literal
        other = RdflibLiteral(literal.value, datatype=URIRef(literal.datatype.value))
        assert not other.ill_typed


def test_rows_are_read_with_what_models_leave_out_or_write_their_own_way():
    reply = {
        "entities": [
            {"name": " Roald\nAmundsen ", "type": "Person", "aliases": None},
            {"name": "Fram", "aliases": "the Fram; Fram I"},
            {"name": "…"},
            {"name": None, "type": "x"},
        ],
        "relationships": [
            {"subject": "A", "predicate": "b", "object": "C", "quote": "with Ann", "strength": s}
            for s in (99, -1, "7", "strong", None)
        ],
        "attributes": [
            {"subject": "A", "predicate": "be known", "value": True, "datatype": "boolean",
             "quote": "with Ann"},
            {"subject": "A", "predicate": "be known", "value": None, "quote": "with Ann"},
            {"subject": "A", "predicate": "be born", "value": "May", "datatype": "date",
             "quote": "with Ann"},
        ],
    }  # fmt: skip
    read = read_json(json.dumps(reply), GraphReply)
    assert isinstance(read, Read)
    dropped: Counter[str] = Counter()
    entities, found = usable_rows(read.value, QuoteFinder(chunk()), dropped)
    assert [(e.name, e.type, e.aliases) for e in entities] == [
        ("Roald Amundsen", "person", ()),
        ("Fram", "concept", ("the Fram", "Fram I")),
    ]
    assert [r.strength for r in found[:5]] == [10.0, 1.0, 7.0, 5.0, 5.0]
    assert [r.object for r in found[5:]] == [
        Literal("true", datatype=v.xsd("boolean")),
        Literal("May"),
    ]
    assert dropped == {
        "entity without a name": 2,
        "strength that is not a number (taken as 5)": 2,
        "attribute without subject, predicate or value": 1,
        "attribute whose value does not fit its datatype (kept as text)": 1,
    }


def test_a_thing_has_no_relationship_with_itself():
    found, dropped = relationships("with Ann", object="a")
    assert not found
    assert dropped == {"relationship of a thing with itself": 1}
