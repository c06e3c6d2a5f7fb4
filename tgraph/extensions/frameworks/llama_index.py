"""LlamaIndex: a retriever and a query engine whose nodes carry their citations, and a tool for
agents.

    from tgraph.extensions.frameworks.llama_index import TgraphNodeRetriever, TgraphQueryEngine

Needs the extra ``llama-index``. LlamaIndex's callbacks and instrumentation hear of each query and
retrieval as of those of its own components.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, Unpack

from pydantic import ValidationError

from tgraph.engine.ask.streams import ThreadStream, result_of
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_answers import answer_json
from tgraph.errors import UsageError
from tgraph.extensions.frameworks import asking
from tgraph.extensions.frameworks.asking import Asker, CitedPassage, ToolParameter
from tgraph.model import Answer, GraphRagResponse

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.response.schema import (
        RESPONSE_TYPE,
        AsyncStreamingResponse,
        Response,
        StreamingResponse,
    )
    from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
    from llama_index.core.schema import (
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
    from llama_index.core.tools.types import AsyncBaseTool, ToolMetadata, ToolOutput
except ModuleNotFoundError as error:
    raise asking.MissingExtraError("LlamaIndex", "llama-index") from error

OpenableGraph = KnowledgeGraph | str | Path


class TgraphNodeRetriever(BaseRetriever):
    """What a question's answer would be written from: a node for each place, best first.

    A node's text is the exact quote, or with ``content="chunk"`` the chunk around it; its metadata
    the citation (document, path, title, page, start, end, quote, kind, item, chunk, via), score,
    reason and session. ``k`` limits how many are returned; what is selected, and goes on record as
    a session without an answer, is up to the mode's settings. A graph that is given by its folder
    stays open until ``close``. ``how``: see ``tgraph.extensions.frameworks.asking.Asker``.
    """

    def __init__(
        self,
        graph: OpenableGraph,
        *,
        k: int | None = None,
        content: asking.Content = "quote",
        callback_manager: CallbackManager | None = None,
        **how: Unpack[asking.How],
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._asker = Asker.from_graph(graph, **how)
        self._content, self._most = content, k

    def close(self) -> None:
        """Close the graph, if given as a folder."""
        self._asker.close()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [_build_node(passage) for passage in result_of(self._find_passages(query_bundle))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            _build_node(passage)
            for passage in await ThreadStream(self._find_passages(query_bundle)).read_result()
        ]

    def _find_passages(self, query_bundle: QueryBundle) -> asking.AnswerSteps[list[CitedPassage]]:
        return self._asker.passages(query_bundle.query_str, self._content, self._most)


class TgraphQueryEngine(BaseQueryEngine):
    """A query engine answering questions with cited source nodes.

    Source nodes of a response are the cited places, in the form of ``TgraphNodeRetriever``;
    response metadata contains the whole answer, in the form of ``tgraph ask --json``. With
    ``streaming``, sentences arrive as written; source nodes and metadata exist once the last
    sentence has been read. A response abandoned earlier is recorded as interrupted."""

    def __init__(
        self,
        graph: OpenableGraph,
        *,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        **how: Unpack[asking.How],
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._asker = Asker.from_graph(graph, **how)
        self._streaming = streaming

    def close(self) -> None:
        """Close the graph, if given as a folder."""
        self._asker.close()

    def _get_prompt_modules(self) -> dict[str, Any]:
        return {}

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._query_event(query_bundle) as event:
            answer_stream = self._asker.answer(query_bundle.query_str)
            response = (
                _stream_response(answer_stream)
                if self._streaming
                else _build_response(result_of(answer_stream))
            )
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with self._query_event(query_bundle) as event:
            answer_stream = ThreadStream(self._asker.answer(query_bundle.query_str))
            response = (
                await _stream_response_async(answer_stream)
                if self._streaming
                else _build_response(await answer_stream.read_result())
            )
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _query_event(self, query_bundle: QueryBundle) -> Any:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        return self.callback_manager.event(CBEventType.QUERY, payload=payload)


class TgraphQueryTool(AsyncBaseTool):
    """An agent tool answering questions.

    The result content is JSON with the answer, citations and session; the raw output is the
    whole answer, in the form of ``tgraph ask --json``. The agent may set those ``parameters``
    not set here. Invalid arguments are reported to the agent; all other errors are raised."""

    def __init__(
        self,
        graph: OpenableGraph,
        *,
        name: str = asking.TOOL_NAME,
        description: str = asking.TOOL_DESCRIPTION,
        parameters: tuple[ToolParameter, ...] = asking.PARAMETERS,
        return_direct: bool = False,
        **how: Unpack[asking.How],
    ) -> None:
        self._asker = Asker.from_graph(graph, **how)
        self._arguments = asking.tool_arguments(self._asker, parameters)
        self._metadata = ToolMetadata(description, name, self._arguments, return_direct)

    @property
    def metadata(self) -> ToolMetadata:
        return self._metadata

    def close(self) -> None:
        """Close the graph, if given as a folder."""
        self._asker.close()

    def call(self, *args: Any, **kwargs: Any) -> ToolOutput:
        arguments = _named_arguments(args, kwargs)
        try:
            return self._tool_output(arguments, result_of(self._ask_question(arguments)))
        except (UsageError, ValidationError) as error:
            return self._refusal_output(arguments, error)

    async def acall(self, *args: Any, **kwargs: Any) -> ToolOutput:
        arguments = _named_arguments(args, kwargs)
        try:
            return self._tool_output(
                arguments, await ThreadStream(self._ask_question(arguments)).read_result()
            )
        except (UsageError, ValidationError) as error:
            return self._refusal_output(arguments, error)

    def _ask_question(self, given: dict[str, Any]) -> asking.AnswerSteps[Answer]:
        arguments = self._arguments.model_validate(given).model_dump()
        return asking.asked_with(self._asker, arguments).answer(arguments["question"])

    def _tool_output(self, given: dict[str, Any], answer: Answer) -> ToolOutput:
        return ToolOutput(
            tool_name=self._metadata.get_name(),
            content=asking.tool_text(answer),
            raw_input=given,
            raw_output=answer_json(answer),
        )

    def _refusal_output(
        self, given: dict[str, Any], error: UsageError | ValidationError
    ) -> ToolOutput:
        message = (
            asking.argument_refusal(error) if isinstance(error, ValidationError) else str(error)
        )
        name = self._metadata.get_name()
        return ToolOutput(name, message, raw_input=given, is_error=True, exception=error)


def _named_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by name; an unnamed argument is the question."""
    return {"question": args[0], **kwargs} if args else kwargs


def _build_node(passage: CitedPassage) -> NodeWithScore:
    start, end = passage.span
    metadata = passage.metadata
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        start_char_idx=start,
        end_char_idx=end,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=[name for name in metadata if name not in asking.SHOWN],
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=metadata["document"])},
    )
    return NodeWithScore(node=node, score=passage.score)


def _answer_nodes(answer: Answer) -> list[NodeWithScore]:
    return [_build_node(passage) for passage in asking.cited_passages(answer)]


def _build_response(answer: Answer) -> Response:
    return Response(answer.text, _answer_nodes(answer), answer_json(answer))


class _Text:
    """Text of a running answer, with response nodes and metadata."""

    def __init__(self) -> None:
        self.nodes = list[NodeWithScore]()
        self.metadata = dict[str, Any]()

    def piece(self, message: GraphRagResponse) -> str:
        """Return a message's text; the first message determines the session."""
        self.metadata.setdefault("explain_id", message.explain_id)
        return message.response

    def end(self, answer: Answer) -> None:
        self.nodes += _answer_nodes(answer)
        self.metadata.update(answer_json(answer))


def _stream_response(asked: asking.AnswerSteps[Answer]) -> StreamingResponse:
    """Return a response once the engine starts writing; earlier failures are raised
    immediately."""
    text = _Text()
    first = next(piece for message in asked if (piece := text.piece(message)))

    def pieces() -> Generator[str, None, None]:
        with closing(asked):
            yield first
            while True:
                try:
                    message = next(asked)
                except StopIteration as end:
                    return text.end(end.value)
                if piece := text.piece(message):
                    yield piece

    return StreamingResponse(pieces(), text.nodes, text.metadata)


async def _stream_response_async(
    asked: ThreadStream[GraphRagResponse, Answer],
) -> AsyncStreamingResponse:
    text, messages = _Text(), asked.messages()
    first = await anext(text.piece(message) async for message in messages if message.response)

    async def pieces() -> AsyncGenerator[str, None]:
        async with aclosing(messages):
            yield first
            async for message in messages:
                if piece := text.piece(message):
                    yield piece
        text.end(asked.result)

    return AsyncStreamingResponse(pieces(), text.nodes, text.metadata)
