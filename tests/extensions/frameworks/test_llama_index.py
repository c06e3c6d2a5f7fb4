"""What LlamaIndex's own components make of it: engines, routers, agents, callbacks; needs the extra
``frameworks``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("llama_index.core", reason="needs the extra 'frameworks'")

from llama_index.core import MockEmbedding
from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.llms import MockLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
)
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.selectors import EmbeddingSingleSelector
from llama_index.core.tools import QueryEngineTool, ToolMetadata
from llama_index_instrumentation import get_dispatcher

from tgraph.errors import UsageError
from tgraph.extensions.frameworks.llama_index import (
    TgraphNodeRetriever,
    TgraphQueryEngine,
    TgraphQueryTool,
)
from tgraph.retrieve.filters import Filters

from .conftest import QUESTION, TEXTS, is_exact

SHIP = "Who built the Fram?"


def nodes_of(response: Any) -> list[dict[str, Any]]:
    return [found.node.metadata for found in response.source_nodes]


def test_a_node_carries_its_citation(graph):
    found = TgraphNodeRetriever(graph, mode="graph").retrieve(QUESTION)
    assert len(found) == 3
    for each in found:
        assert is_exact(each.node.metadata)
        assert each.node.get_content() == each.node.metadata["quote"]
        assert each.node.ref_doc_id == each.node.metadata["document"]
        assert each.score == each.node.metadata["score"]
    told = found[0].node.get_content(metadata_mode="llm")
    assert "curie.md" in told
    assert "urn:" not in told
    assert graph.trace(found[0].node.metadata["session"]).status == "context-only"


def test_chunks_limits_and_async(graph):
    retriever = TgraphNodeRetriever(graph, mode="ppr", k=2, content="chunk")
    found = asyncio.run(retriever.aretrieve(QUESTION))
    assert {each.node.text for each in found} <= {
        TEXTS[name][each.node.start_char_idx : each.node.end_char_idx]
        for each in found
        for name in TEXTS
    }
    assert len(found) == 2


def test_an_engine_of_theirs_writes_from_it(graph):
    """Retriever, postprocessor, synthesiser; the model gives its prompt back."""
    engine = RetrieverQueryEngine.from_args(
        TgraphNodeRetriever(graph, mode="graph"),
        llm=MockLLM(),
        node_postprocessors=[SimilarityPostprocessor(similarity_cutoff=0.4)],
    )
    response = engine.query(QUESTION)
    assert "Pierre Curie worked with Marie Curie at the Sorbonne." in str(response)
    assert len(response.source_nodes) == 2
    assert asyncio.run(engine.aquery(QUESTION)).source_nodes


def test_an_answer_has_what_it_cites_as_its_sources(graph):
    engine = TgraphQueryEngine(graph)
    for response in (engine.query(QUESTION), asyncio.run(engine.aquery(QUESTION))):
        trace = graph.trace(response.metadata["explain_id"])
        assert str(response) == trace.answer
        cited = {c["quote"] for s in response.metadata["sentences"] for c in s["citations"]}
        assert {each["quote"] for each in nodes_of(response)} == cited
        assert all(is_exact(each) for each in nodes_of(response))


def test_an_answer_is_streamed(graph):
    engine = TgraphQueryEngine(graph, streaming=True)
    response = engine.query(QUESTION)
    assert isinstance(response, StreamingResponse)
    assert response.metadata
    session = response.metadata["explain_id"]
    pieces = list(response.response_gen)
    assert len(pieces) > 1
    assert "".join(pieces) == graph.trace(session).answer
    assert all(is_exact(each) for each in nodes_of(response))
    assert nodes_of(response)

    async def stream():
        response = await engine.aquery(QUESTION)
        assert isinstance(response, AsyncStreamingResponse)
        return [piece async for piece in response.async_response_gen()], response

    again, response = asyncio.run(stream())
    assert again == pieces
    assert response.metadata["answer"] == "".join(pieces)
    with pytest.raises(UsageError, match="empty"):
        engine.query(" ")


def test_a_stream_that_is_left_is_recorded_as_interrupted(graph):
    response = TgraphQueryEngine(graph, streaming=True).query(QUESTION)
    next(response.response_gen)
    response.response_gen.close()
    assert graph.trace(response.metadata["explain_id"]).status == "interrupted"


def tools(graph, **options):
    """Two engines, each of what one document says."""
    return [
        QueryEngineTool(
            TgraphQueryEngine(graph, filters=Filters(documents=(name,)), **options),
            ToolMetadata(f"Answers from {name}", name.partition(".")[0]),
        )
        for name in TEXTS
    ]


class NamedThings(MockEmbedding):
    """A text is what it names."""

    def _vector(self, text: str) -> list[float]:
        return [1.0 + ("curie" in text.lower()), 1.0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vector(query)


@pytest.mark.parametrize("streaming", [False, True])
def test_a_router_of_theirs_chooses_it(graph, streaming):
    selector = EmbeddingSingleSelector.from_defaults(NamedThings(embed_dim=2))
    router = RouterQueryEngine.from_defaults(
        tools(graph, streaming=streaming), llm=MockLLM(), selector=selector
    )
    response = router.query(QUESTION)
    assert str(response) == graph.trace(response.metadata["explain_id"]).answer
    assert {each["title"] for each in nodes_of(response)} == {"Marie Curie"}


class Divided(BaseQuestionGenerator):
    """A question for each tool."""

    def generate(self, tools: Sequence[ToolMetadata], query: Any) -> list[SubQuestion]:
        asked = (QUESTION, SHIP)
        pairs = zip(tools, asked, strict=True)
        return [SubQuestion(tool_name=t.get_name(), sub_question=q) for t, q in pairs]

    async def agenerate(self, tools: Sequence[ToolMetadata], query: Any) -> list[SubQuestion]:
        return self.generate(tools, query)

    def _get_prompts(self) -> dict[str, Any]:
        return {}

    def _update_prompts(self, prompts: Any) -> None: ...


def test_an_engine_of_theirs_asks_parts_of_a_question(graph):
    """At the same time, over one graph."""
    engine = SubQuestionQueryEngine.from_defaults(
        tools(graph),
        llm=MockLLM(),
        question_gen=Divided(),
        response_synthesizer=get_response_synthesizer(MockLLM()),
        verbose=False,
    )
    told = str(asyncio.run(engine.aquery("Both?")))
    assert "Polonium" in told
    assert "Colin Archer built Fram" in told


def scripted(*replies: ChatMessage) -> MockFunctionCallingLLM:
    """A model that calls tools as the replies say, one after the other."""
    following = iter(replies)
    return MockFunctionCallingLLM(response_generator=lambda messages, **known: next(following))


def calling(**arguments: Any) -> ChatMessage:
    block = ToolCallBlock(tool_call_id="1", tool_name="ask_documents", tool_kwargs=arguments)
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[block])


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # theirs
def test_an_agent_of_theirs_calls_the_tool(graph):
    """First with arguments that can't be used, which it is told."""
    model = scripted(
        calling(question=SHIP, since="soon"),
        calling(question=SHIP, documents=["curie.md"]),
        calling(question=SHIP, mode="graph"),
        ChatMessage("Colin Archer did.", role=MessageRole.ASSISTANT),
    )
    tool = TgraphQueryTool(graph, filters=Filters(documents=("ships.txt",)))
    agent = FunctionAgent(tools=[tool], llm=model, streaming=False)

    async def run():
        handler = agent.run(SHIP)
        events = [event async for event in handler.stream_events()]
        return str(await handler), [e.tool_output for e in events if isinstance(e, ToolCallResult)]

    said, (wrong, further, output) = asyncio.run(run())
    assert said == "Colin Archer did."
    assert wrong.is_error
    assert "soon" in wrong.content
    assert further.is_error
    assert "documents" in further.content
    told = json.loads(output.content)
    assert told["session"] == output.raw_output["explain_id"]
    assert "Colin Archer built the Fram." in {each["quote"] for each in told["citations"]}
    assert {each["title"] for each in told["citations"]} == {"Ships"}
    assert "Colin Archer" in TgraphQueryTool(graph)(SHIP).content


class Heard(BaseEventHandler):
    names: list[str] = []  # noqa: RUF012

    def handle(self, event: Any, **known: Any) -> None:
        self.names.append(type(event).__name__)


def test_callbacks_and_instrumentation_hear_of_it(graph):
    debug, heard = LlamaDebugHandler(print_trace_on_end=False), Heard()
    manager = CallbackManager([debug])
    get_dispatcher().add_event_handler(heard)
    try:
        TgraphNodeRetriever(graph, callback_manager=manager).retrieve(QUESTION)
        TgraphQueryEngine(graph, callback_manager=manager).query(QUESTION)
    finally:
        get_dispatcher().event_handlers.remove(heard)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1
    assert len(debug.get_event_pairs(CBEventType.QUERY)) == 1
    wanted = {"RetrievalStartEvent", "RetrievalEndEvent", "QueryStartEvent", "QueryEndEvent"}
    assert wanted <= set(heard.names)


def test_a_folder_is_opened_and_let_go_of(graph):
    for kind in (TgraphNodeRetriever, TgraphQueryEngine, TgraphQueryTool):
        made = kind(str(graph.root), collection="default")
        made.close()
