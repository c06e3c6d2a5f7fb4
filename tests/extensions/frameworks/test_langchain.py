"""LangChain's own tests of retrievers and tools, and its callbacks; needs the extra
``frameworks``."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="needs the extra 'frameworks'")

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from tgraph.errors import UsageError
from tgraph.extensions.frameworks.langchain import TgraphRetriever, TgraphTool
from tgraph.retrieve.filters import Filters

from .conftest import QUESTION, is_exact

CALL = {"name": "ask_documents", "id": "1", "type": "tool_call"}


class Given:
    """What LangChain's tests construct from."""

    @pytest.fixture(autouse=True)
    def _of(self, graph):
        self.graph = graph


class TestRetriever(Given, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self):
        return TgraphRetriever

    @property
    def retriever_constructor_params(self):
        return {"graph": self.graph, "mode": "graph"}

    @property
    def retriever_query_example(self):
        return QUESTION


class ToolGiven(Given):
    @property
    def tool_constructor(self):
        return TgraphTool

    @property
    def tool_constructor_params(self):
        return {"graph": self.graph}

    @property
    def tool_invoke_params_example(self):
        return {"question": QUESTION, "documents": ["curie.md"], "mode": "graph"}


class TestTool(ToolGiven, ToolsUnitTests):
    pass


class TestToolAtWork(ToolGiven, ToolsIntegrationTests):
    pass


class Heard(BaseCallbackHandler):
    """Notes which callbacks were called, and with what."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def on_retriever_start(self, serialized: Any, query: str, **known: Any) -> None:
        self.calls.append(("start", known["run_id"]))

    def on_retriever_end(self, documents: Any, **known: Any) -> None:
        self.calls.append(("end", documents))

    def on_retriever_error(self, error: BaseException, **known: Any) -> None:
        self.calls.append(("error", error))

    def on_custom_event(self, name: str, data: Any, **known: Any) -> None:
        self.calls.append((name, data))


class HeardAsync(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    async def on_custom_event(self, name: str, data: Any, **known: Any) -> None:
        self.calls.append((name, data))


def of_kind(heard: Heard | HeardAsync, kind: str) -> list[Any]:
    return [data for name, data in heard.calls if name == kind]


def test_a_document_carries_its_citation(graph):
    retriever = TgraphRetriever(graph=graph, filters=Filters(documents=("ships.txt",)))
    documents = retriever.invoke("Who built the Fram?")
    assert documents
    for document in documents:
        assert is_exact(document.metadata)
        assert document.page_content == document.metadata["quote"]
        assert document.id
    assert graph.trace(documents[0].metadata["session"]).status == "context-only"
    assert len({d.metadata["session"] for d in documents}) == 1


def test_callbacks_hear_the_steps_as_they_happen(graph):
    heard, later = Heard(), HeardAsync()
    retriever = TgraphRetriever(graph=graph)
    documents = retriever.invoke(QUESTION, {"callbacks": [heard]})
    steps = [data["explain_id"].split(":")[-2] for data in of_kind(heard, "tgraph")]
    assert steps == ["session", "retrieval", "selection"]
    assert heard.calls[0][0] == "start"
    assert heard.calls[-1] == ("end", documents)
    asyncio.run(retriever.ainvoke(QUESTION, {"callbacks": [later]}))
    assert len(of_kind(later, "tgraph")) == len(steps)
    with pytest.raises(UsageError, match="empty"):
        retriever.invoke(" ", {"callbacks": [heard]})
    assert of_kind(heard, "error")


def test_a_stream_of_events_has_the_sentences_of_a_tool(graph):
    async def events():
        tool = TgraphTool(graph=graph)
        stream = tool.astream_events({"question": QUESTION}, version="v2")
        return [event async for event in stream]

    found = asyncio.run(events())
    said = [e["data"] for e in found if e["event"] == "on_custom_event"]
    answer = json.loads(next(e for e in found if e["event"] == "on_tool_end")["data"]["output"])
    assert "".join(e["response"] for e in said) == answer["answer"]


def test_questions_in_a_batch_are_questions_of_their_own(graph):
    found = TgraphRetriever(graph=graph, mode="graph", k=2).batch([QUESTION] * 3)
    assert [len(documents) for documents in found] == [2, 2, 2]
    assert len({documents[0].metadata["session"] for documents in found}) == 3


def test_a_chain_answers_from_the_documents(graph):
    """LangChain's usual one: retrieve, format, prompt, model, text."""
    prompts = []

    def model(prompt: Any) -> AIMessage:
        prompts.append(prompt.to_string())
        return AIMessage("Polonium [1].")

    chain = (
        {
            "context": TgraphRetriever(graph=graph)
            | (lambda documents: "\n".join(d.page_content for d in documents)),
            "question": RunnablePassthrough(),
        }
        | ChatPromptTemplate.from_template("{context}\n\n{question}")
        | RunnableLambda(model)
        | StrOutputParser()
    )
    assert chain.invoke(QUESTION) == "Polonium [1]."
    assert "Marie Curie discovered Polonium in Paris." in prompts[0]


def test_a_model_calls_the_tool_and_gets_the_answer_with_its_proof(graph):
    tool = TgraphTool(graph=graph, mode="graph", parameters=("documents", "since"))
    parameters = convert_to_openai_tool(tool)["function"]["parameters"]
    assert set(parameters["properties"]) == {"question", "documents", "since"}
    asked = AIMessage("", tool_calls=[{**CALL, "args": {"question": QUESTION}}])
    model = GenericFakeChatModel(messages=iter([asked]))
    (call,) = model.invoke("Go").tool_calls
    message = tool.invoke(call)
    assert isinstance(message, ToolMessage)
    assert message.status == "success"
    told = json.loads(str(message.content))
    assert told["session"] == message.artifact["explain_id"]
    assert graph.trace(told["session"]).answer == told["answer"]


def test_an_agent_is_told_what_is_wrong_and_cannot_reach_further(graph):
    tool = TgraphTool(graph=graph, filters=Filters(documents=("curie.md",)))
    before = len(graph.sessions.summaries())
    further = tool.invoke({**CALL, "args": {"question": "Fram?", "documents": ["ships.txt"]}})
    assert further.status == "error"
    assert "documents" in further.content
    wrong = tool.invoke({**CALL, "args": {"question": "Fram?", "since": "soon"}})
    assert wrong.status == "error"
    assert "soon" in wrong.content
    assert len(graph.sessions.summaries()) == before


def test_a_folder_is_opened_and_let_go_of(graph):
    with TgraphRetriever(graph=str(graph.root), collection="default") as retriever:
        assert retriever.collection == "default"
    with pytest.raises(UsageError, match="open at the collection"):
        TgraphRetriever(graph=graph, collection="other")
