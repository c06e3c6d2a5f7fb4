"""The JSON objects are read from values, key by key, and their schemas hold for them."""

from __future__ import annotations

import jsonschema
import pytest
from pydantic import TypeAdapter, ValidationError
from pyoxigraph import NamedNode

from tgraph.engine.index.run import IndexReport
from tgraph.engine.json_answers import SentenceOut, SourceOut, answer_json, event_json
from tgraph.engine.json_index_runs import index_json
from tgraph.engine.json_judgements import replay_json, verification_json
from tgraph.engine.json_sessions import SessionTraceOut
from tgraph.engine.rerun.replay import Replay
from tgraph.engine.schemas import build_schemas
from tgraph.errors import IngestError
from tgraph.explain.assess.verification import Verification
from tgraph.explain.trace.comparison import RecordDifference
from tgraph.model import (
    NO_USAGE,
    Answer,
    Candidate,
    Edge,
    GraphRagResponse,
    Item,
    Selected,
    Sentence,
    Source,
)
from tgraph.vocabulary import session_iri

EDGE = Edge(NamedNode("urn:fram"), NamedNode("urn:of"), NamedNode("urn:ship"), "Fram", "is", "ship")
CHUNK = Item("chunk", "urn:chunk", "page 1", "The Fram is a ship.")
ITEMS: tuple[Edge | Item, ...] = (EDGE, CHUNK)
ANSWER = Answer(
    question="What is the Fram?",
    mode="graph",
    text="A ship.",
    verdict="answered",
    sentences=(Sentence("A ship.", ()),),
    selection=tuple(
        Selected(index, Candidate(item, index + 1, 0.5), "likely", 0.5)
        for index, item in enumerate(ITEMS)
    ),
    session=session_iri("42"),
    explain_collection="explainability",
    usage=NO_USAGE,
    model="none",
)


def test_keys_are_printed_in_the_order_of_the_fields():
    source = SourceOut.model_validate(Source("urn:d", "Fram", "fram.md"))
    assert list(source.model_dump(mode="json").items()) == [
        ("document", "urn:d"), ("title", "Fram"), ("path", "fram.md"),
    ]  # fmt: skip


def test_a_value_of_another_form_is_refused():
    with pytest.raises(ValidationError):
        SentenceOut.model_validate(Source("urn:d", "Fram", "fram.md"))


def test_only_an_edge_has_terms():
    printed = answer_json(ANSWER)
    edge, chunk = printed["selection"]
    assert (edge["edge"], edge["object"], edge["label"]) == (EDGE.iri, "urn:ship", "Fram is ship")
    assert (chunk["edge"], chunk["object"], chunk["label"]) == (None, None, "page 1")
    assert edge["edge_selection"] != chunk["edge_selection"]
    jsonschema.validate(printed, build_schemas()["ask"])


def test_an_event_has_a_sentence_or_answer_only_where_the_message_has_one():
    message = GraphRagResponse(response="A ship.", message_type="chunk")
    assert not {"sentence", "answer"} & set(event_json(message))
    printed = event_json(message, ANSWER.sentences[0], ANSWER)
    assert printed["sentence"] == {"text": "A ship.", "citations": []}
    assert printed["answer"] == answer_json(ANSWER)
    jsonschema.validate(printed, build_schemas()["ask-event"])


def test_a_verification_counts_verdicts_and_calls():
    verification = Verification("urn:s", "?", "graph", "words", (), None, None, usage={"calls": 2})
    printed = verification_json(verification)
    assert (printed["passed"], printed["counts"], printed["usage"]["calls"]) == (True, {}, 2)
    jsonschema.validate(printed, build_schemas()["verify"])


def test_a_replay_has_the_first_difference():
    differences = tuple(RecordDifference(name, "is", ("a",), ("b",)) for name in ("urn:x", "urn:y"))
    printed = replay_json(Replay("urn:s", "1", "2", differences))
    assert (printed["differences"], printed["first_difference"]["subject"]) == (2, "urn:x")
    assert replay_json(Replay("urn:s", "1", "1"))["first_difference"] is None
    jsonschema.validate(printed, build_schemas()["replay"])


def test_an_index_run_names_its_folder_first_and_why_files_failed():
    failed = (IngestError("fram.pdf", "It is locked."),)
    report = IndexReport(
        "urn:run", ("fram.md",), (), (), failed, (), (), 1, 1, 1, 0, 0, 0, 0, 0, {}, NO_USAGE, 1
    )
    printed = index_json(report, "/graph")
    assert next(iter(printed.items())) == ("root", "/graph")
    assert printed["failed"] == [{"path": "fram.pdf", "reason": "It is locked."}]


def test_the_schema_of_a_trace_requires_all_that_is_printed():
    schema = TypeAdapter(SessionTraceOut).json_schema(mode="serialization")
    assert set(schema["required"]) == set(schema["properties"])
    assert "report" not in schema["properties"]
    assert (schema["title"], schema["additionalProperties"]) == ("Trace", False)
