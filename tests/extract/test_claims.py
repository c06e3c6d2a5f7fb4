"""Claims by a model: rows, rounds, and what is left out."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.errors import EndpointError, ModelError
from tgraph.extract.model.claims import ClaimRow, ModelClaims, read_claim
from tgraph.extract.model.quote_location import QuoteFinder
from tgraph.model import Chunk
from tgraph.testing import ScriptedModel
from tgraph.testing.script import parse_blocks

PAGE = (
    "Preface. Frederick Cook said that he had reached the North Pole on 21 April 1908. "
    "Robert Peary did not believe him. Cook was convicted of fraud in 1923."
)
START = 9
NAMES = ["Frederick Cook", "Robert Peary"]


def chunk() -> Chunk:
    return Chunk("0" * 64, None, 0, START, len(PAGE), PAGE[START:], 30)


def row(**changes: Any) -> dict[str, Any]:
    return {
        "subject": "Frederick Cook",
        "object": "NONE",
        "type": "Conviction",
        "status": "true",
        "started": "1923",
        "ended": "1923",
        "description": "Cook was convicted of fraud.",
        "quote": "Cook was convicted of fraud in 1923",
        **changes,
    }


def read(**changes: Any):
    dropped: Counter[str] = Counter()
    claim = read_claim(ClaimRow.model_validate(row(**changes)), QuoteFinder(chunk()), dropped)
    return claim, dict(dropped)


def test_a_row_becomes_a_claim_with_its_exact_place():
    claim, dropped = read()
    assert claim is not None
    assert (claim.subject, claim.object, claim.type, claim.status) == (
        "Frederick Cook",
        "",
        "conviction",
        "TRUE",
    )
    assert claim.started == claim.ended == Literal("1923", datatype=v.xsd("gYear"))
    assert claim.span is not None
    assert claim.span.quote == PAGE[claim.span.start : claim.span.end]
    assert claim.span.quote == "Cook was convicted of fraud in 1923."
    assert not dropped


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1908-04-21", ("1908-04-21", "date")),
        ("1908-04-21T00:00:00Z", ("1908-04-21", "date")),
        ("1908-04", ("1908-04", "gYearMonth")),
        ("1908-04-21T15:00:00", ("1908-04-21T15:00:00", "dateTime")),
        ("unknown", None),
    ],
)
def test_dates_are_as_exact_as_the_text(text, value):
    claim, dropped = read(started=text)
    assert claim is not None
    assert claim.started == (value and Literal(value[0], datatype=v.xsd(value[1])))
    assert not dropped


@pytest.mark.parametrize(
    ("changes", "reason", "kept"),
    [
        ({"subject": "None"}, "claim about nobody", False),
        ({"status": "likely"}, "claim whose status is not TRUE, FALSE or SUSPECTED", False),
        ({"quote": "Cook was acquitted"}, "claim whose quote is not in the chunk", False),
        ({"started": "last spring"}, "date that can't be read (its claim is kept)", True),
        ({"started": "1908-02-31"}, "date that can't be read (its claim is kept)", True),
    ],
)
def test_what_cannot_be_used_is_counted(changes, reason, kept):
    claim, dropped = read(**changes)
    assert (claim is not None) == kept
    assert dropped == {reason: 1}


def reply(*rows: dict[str, Any]) -> str:
    return json.dumps({"claims": rows})


DOUBT = row(
    subject="Robert Peary",
    object="Dr. Cook",
    type="disbelief",
    status="FALSE",
    started="",
    ended="",
    description="Peary did not believe Cook.",
    quote="Robert Peary did not believe him.",
)


def test_rounds_go_on_until_nothing_new_comes_and_unknown_names_become_entities():
    more = [reply(DOUBT, row()), reply(row())]
    model = ScriptedModel({"extract_claims": reply(row()), "extract_claims_more": more})
    found = ModelClaims(model, 5).claims(chunk(), "The Pole", NAMES)
    assert model.count("extract_claims_more") == 2
    assert [c.status for c in found.claims] == ["TRUE", "FALSE"]
    assert [(e.name, e.type) for e in found.entities] == [("Dr. Cook", "concept")]
    assert not found.relationships
    assert found.dropped == {"repetition": 2}
    first, second, _ = (parse_blocks(request.messages) for request in model.requests)
    assert first["NAMES"].splitlines() == NAMES
    assert json.loads(second["KNOWN"])[:2] == ["Frederick Cook", "conviction"]


def test_a_first_reply_that_cannot_be_used_is_an_error_and_a_further_one_costs_only_itself():
    with pytest.raises(ModelError):
        ModelClaims(ScriptedModel({"extract_claims": "No."})).claims(chunk(), "", [])
    gone = ScriptedModel({"extract_claims": EndpointError("The server is gone.")})
    with pytest.raises(EndpointError):
        ModelClaims(gone).claims(chunk(), "", [])
    model = ScriptedModel({"extract_claims": reply(row()), "extract_claims_more": "No more."})
    found = ModelClaims(model).claims(chunk(), "", NAMES)
    assert len(found.claims) == 1
    assert found.dropped == {"further round whose reply can't be used": 1}


def test_the_tuple_format_is_understood():
    text = (
        "(Frederick Cook<|>NONE<|>FRAUD<|>TRUE<|>1923-01-01T00:00:00<|>1923-12-31T00:00:00<|>"
        "Cook was convicted.<|>Cook was convicted of fraud in 1923.)\n##\n"
        '("Robert Peary"<|>"Frederick Cook"<|>DISBELIEF<|>SUSPECTED<|>NONE<|>NONE<|>He doubted.<|>'
        "Robert Peary did not believe him)\n(too<|>short)\n<|COMPLETE|>"
    )
    model = ScriptedModel({"extract_claims": text, "extract_claims_more": "<|COMPLETE|>"})
    found = ModelClaims(model).claims(chunk(), "", NAMES)
    assert len(model.requests) == 2  # nothing more is an answer
    first, second = found.claims
    assert (first.type, first.status, first.object) == ("fraud", "TRUE", "")
    assert first.started == Literal("1923-01-01", datatype=v.xsd("date"))
    assert (second.subject, second.object, second.started) == (
        "Robert Peary",
        "Frederick Cook",
        None,
    )
    assert second.span is not None
    assert second.span.quote == "Robert Peary did not believe him."
    assert found.dropped == {"malformed row": 1}


def test_the_key_says_what_could_change_the_claims():
    model = ScriptedModel()
    keys = {ModelClaims(model).key, ModelClaims(model, 2).key, ModelClaims(model, seed=1).key}
    assert len(keys) == 3
    assert ModelClaims(model).key == ModelClaims(ScriptedModel()).key


def test_the_fake_claims_something_by_itself():
    found = ModelClaims(ScriptedModel()).claims(chunk(), "", NAMES)
    assert [(c.subject, c.object, c.status) for c in found.claims] == [
        ("Frederick Cook", "", "TRUE"),
        ("Robert Peary", "", "FALSE"),
    ]
