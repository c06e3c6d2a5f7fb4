"""What the frameworks' modules have in common; needs none of them."""

from __future__ import annotations

import asyncio
import builtins
import importlib
import json
import sys

import jsonschema
import pytest
from pydantic import ValidationError

import tgraph
from tgraph.engine.ask.streams import ThreadStream, result_of
from tgraph.engine.json_answers import answer_json
from tgraph.engine.schemas import build_schemas
from tgraph.errors import TgraphError, UsageError
from tgraph.extensions.frameworks import asking
from tgraph.extensions.frameworks.asking import Asker
from tgraph.retrieve.filters import Filters

from .conftest import QUESTION, TEXTS, is_exact

CURIE_ALONE = Filters(documents=("*.md",))


def test_a_passage_is_exact_and_says_why_it_is_there(graph):
    found = result_of(Asker.from_graph(graph, mode="graph").passages(QUESTION))
    assert len(found) == 3
    assert len({passage.session for passage in found}) == 1
    for passage in found:
        assert is_exact(passage.metadata)
        assert passage.text == passage.metadata["quote"]
        assert passage.metadata["kind"] == "edge"
        assert passage.metadata["score"] == passage.score
        assert passage.metadata["reason"]
    json.dumps([passage.metadata for passage in found])
    trace = graph.trace(found[0].session)
    assert trace.status == "context-only"
    edges = {edge.edge: (edge.score, edge.reasoning) for edge in trace.selected}
    for passage in found:
        assert edges[passage.metadata["item"]] == (passage.score, passage.reason)


def test_fewer_are_returned_and_all_are_on_record(graph):
    found = result_of(Asker.from_graph(graph, mode="graph").passages(QUESTION, most=1))
    assert len(found) == 1
    assert len(graph.trace(found[0].session).selected) > 1


def test_a_chunk_is_there_once_with_the_best_quote_in_it(graph):
    (found,) = result_of(Asker.from_graph(graph, mode="graph").passages(QUESTION, "chunk"))
    start, end = found.span
    assert found.text == TEXTS["curie.md"][start:end]
    assert found.metadata["quote"] in found.text
    assert found.id == found.metadata["chunk"]


def test_the_passages_of_an_answer_are_its_citations(graph):
    answer = result_of(Asker.from_graph(graph).answer(QUESTION))
    found = asking.cited_passages(answer)
    assert {p.text for p in found} == {c.quote for c in answer.citations}
    assert all(is_exact(p.metadata) and p.score and p.reason for p in found)


def test_a_tool_tells_the_answer_with_citations_and_session(graph):
    answer = result_of(Asker.from_graph(graph).answer(QUESTION))
    told = json.loads(asking.tool_text(answer))
    assert (told["answer"], told["session"]) == (answer.text, answer.session)
    quotes = {each["number"]: each["quote"] for each in told["citations"]}
    assert len(set(quotes.values())) == len(quotes)
    for sentence, said in zip(answer.sentences, told["sentences"], strict=True):
        assert {quotes[n] for n in said["citations"]} == {c.quote for c in sentence.citations}
    jsonschema.validate(answer_json(answer), build_schemas()["ask"])


def test_an_agent_sets_what_is_left_to_it(graph):
    asker = Asker.from_graph(graph, mode="graph", filters=CURIE_ALONE)
    arguments = asking.tool_arguments(asker, asking.PARAMETERS)
    assert {"mode", "documents"}.isdisjoint(arguments.model_fields)
    with pytest.raises(ValidationError):
        arguments.model_validate({"question": "Who?", "documents": ["ships.txt"]})
    given = arguments.model_validate({"question": "Who?", "since": "2020"}).model_dump()
    wanted = asking.asked_with(asker, given)
    assert wanted.filters == Filters(documents=("*.md",), since="2020")
    assert wanted.mode == "graph"
    assert set(asking.tool_arguments(asker, ()).model_fields) == {"question"}


def test_what_an_agent_sets_is_on_record(graph):
    asker, question = Asker.from_graph(graph), "Who built the Fram?"
    arguments = {"question": question, "documents": ["ships.txt"], "mode": "graph", "as_of": 1}
    given = asking.tool_arguments(asker, asking.PARAMETERS).model_validate(arguments)
    answer = result_of(asking.asked_with(asker, given.model_dump()).answer(question))
    trace = graph.trace(answer.session)
    assert {c.title for c in answer.citations} == {"Ships"}
    assert trace.mode == "graph"
    assert trace.as_of


def test_it_opens_a_folder_and_lets_go_of_it(graph):
    asker = Asker.from_graph(graph.root, "default", settings={"graph.edge_limit": 1})
    asker.close()
    assert asker.owned
    with pytest.raises(UsageError, match="open at the collection 'default'"):
        Asker.from_graph(graph, "other")
    with pytest.raises(TgraphError, match="no collection 'other'"):
        Asker.from_graph(graph.root, "other")


def test_settings_of_a_question_are_its_own(graph):
    one = result_of(
        Asker.from_graph(graph, mode="graph", settings={"graph.edge_limit": 1}).passages(QUESTION)
    )
    assert len(one) == 1
    assert len(result_of(Asker.from_graph(graph, mode="graph").passages(QUESTION))) == 3


def test_many_ask_at_the_same_time(graph):
    asker = Asker.from_graph(graph, mode="graph")

    async def ask_all():
        streams = [ThreadStream(asker.passages(QUESTION)) for _ in range(4)]
        return await asyncio.gather(*(stream.read_result() for stream in streams))

    found = asyncio.run(ask_all())
    assert len({passages[0].session for passages in found}) == 4
    assert len({tuple(p.id for p in passages) for passages in found}) == 1


def test_who_leaves_is_on_record(graph):
    async def leave():
        messages = ThreadStream(Asker.from_graph(graph).answer(QUESTION)).messages()
        message = await anext(messages)
        await messages.aclose()
        return message.explain_id

    assert graph.trace(asyncio.run(leave())).status == "interrupted"


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("langchain", "langchain_core", "langchain"), ("llama_index", "llama_index", "llama-index")],
)
def test_what_is_missing_is_said_with_the_command(monkeypatch, module, package, extra):
    load = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return load(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, f"tgraph.extensions.frameworks.{module}", raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf'pip install "tgraph-rag\[{extra}\]"') as raised:
        importlib.import_module(f"tgraph.extensions.frameworks.{module}")
    assert isinstance(raised.value, tgraph.TgraphError)
