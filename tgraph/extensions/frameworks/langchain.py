"""LangChain: a retriever whose documents carry their citations, and a tool for agents.

    from tgraph.extensions.frameworks.langchain import TgraphRetriever, TgraphTool

Needs the extra ``langchain``. LangChain's callbacks hear each message of the engine as it happens,
as the custom event ``tgraph`` (``docs/reference/schemas/ask-event.json``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from tgraph.engine.ask.streams import ThreadStream
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_answers import answer_json, event_json
from tgraph.errors import UsageError
from tgraph.extensions.frameworks import asking
from tgraph.extensions.frameworks.asking import Asker, CitedPassage, ToolParameter
from tgraph.model import Answer, GraphRagResponse
from tgraph.retrieve.filters import NO_FILTERS, Filters

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        AsyncCallbackManagerForToolRun,
        AsyncParentRunManager,
        CallbackManagerForRetrieverRun,
        CallbackManagerForToolRun,
        ParentRunManager,
        adispatch_custom_event,
        dispatch_custom_event,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableConfig
    from langchain_core.tools import BaseTool, ToolException
except ModuleNotFoundError as error:
    raise asking.MissingExtraError("LangChain", "langchain") from error

EVENT = "tgraph"
"""The name of the custom event for a message of the engine."""


class AskingFields(BaseModel):
    """What is asked, and how: see ``tgraph.extensions.frameworks.asking.Asker``."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    graph: KnowledgeGraph | Path = Field(exclude=True, repr=False)
    """An open graph, or the folder of one; that stays open until ``close``."""
    collection: str | None = None
    mode: asking.Mode = "auto"
    filters: Filters = NO_FILTERS
    as_of: asking.AsOf | None = None
    settings: Mapping[str, Any] | None = None
    _asker: Asker = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        how = {"mode": self.mode, "filters": self.filters, "as_of": self.as_of}
        self._asker = Asker.from_graph(self.graph, self.collection, **how, settings=self.settings)

    def close(self) -> None:
        """Close the graph, if given as a folder."""
        self._asker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class TgraphRetriever(AskingFields, BaseRetriever):
    """What a question's answer would be written from: a document for each place, best first.

    ``page_content`` is the exact quote, or with ``content="chunk"`` the chunk around it;
    ``metadata`` the citation (document, path, title, page, start, end, quote, kind, item, chunk,
    via), score, reason and session. ``k`` limits how many are returned; what is selected, and goes
    on record as a session without an answer, is up to the mode's settings.
    """

    k: int | None = Field(None, ge=1)
    content: asking.Content = "quote"

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        passage_stream = self._asker.passages(query, self.content, k or self.k)
        return [_build_document(passage) for passage in _stream_result(passage_stream, run_manager)]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
    ) -> list[Document]:
        passage_stream = self._asker.passages(query, self.content, k or self.k)
        return [
            _build_document(passage) for passage in await _stream_async(passage_stream, run_manager)
        ]


class TgraphTool(AskingFields, BaseTool):
    """Answers a question for an agent. The content of the result is JSON with the answer, its
    citations and its session; the artifact is the whole answer as ``tgraph ask --json`` has it.

    The agent may set what of ``parameters`` is not set here. What is wrong with its arguments it is
    told; any other error is raised.
    """

    name: str = asking.TOOL_NAME
    description: str = asking.TOOL_DESCRIPTION
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    handle_validation_error: Any = asking.argument_refusal
    parameters: tuple[ToolParameter, ...] = asking.PARAMETERS
    args_schema: Any = None

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.args_schema is None:
            self.args_schema = asking.tool_arguments(self._asker, self.parameters)

    def _run(
        self, question: str, run_manager: CallbackManagerForToolRun | None = None, **arguments: Any
    ) -> tuple[str, dict[str, Any]]:
        try:
            asker = asking.asked_with(self._asker, arguments)
            return _tool_result(_stream_result(asker.answer(question), run_manager))
        except UsageError as error:
            raise ToolException(str(error)) from error

    async def _arun(
        self,
        question: str,
        run_manager: AsyncCallbackManagerForToolRun | None = None,
        **arguments: Any,
    ) -> tuple[str, dict[str, Any]]:
        try:
            asker = asking.asked_with(self._asker, arguments)
            return _tool_result(await _stream_async(asker.answer(question), run_manager))
        except UsageError as error:
            raise ToolException(str(error)) from error


def _build_document(passage: CitedPassage) -> Document:
    return Document(page_content=passage.text, metadata=passage.metadata, id=passage.id)


def _tool_result(answer: Answer) -> tuple[str, dict[str, Any]]:
    return asking.tool_text(answer), answer_json(answer)


def _stream_result(stream: asking.AnswerSteps[asking.R], run: ParentRunManager | None) -> asking.R:
    """What the stream returns; callbacks hear its messages."""
    with closing(stream):
        while True:
            try:
                message = next(stream)
            except StopIteration as end:
                result: asking.R = end.value
                return result
            if run is not None and run.handlers:
                config: RunnableConfig = {"callbacks": run.get_child()}
                dispatch_custom_event(EVENT, _message_event(message), config=config)


async def _stream_async(
    stream: asking.AnswerSteps[asking.R], run: AsyncParentRunManager | None
) -> asking.R:
    thread_stream = ThreadStream(stream)
    async with aclosing(thread_stream.messages()) as messages:
        async for message in messages:
            if run is not None and run.handlers:
                config: RunnableConfig = {"callbacks": run.get_child()}
                await adispatch_custom_event(EVENT, _message_event(message), config=config)
    return thread_stream.result


def _message_event(message: GraphRagResponse) -> dict[str, Any]:
    return event_json(message, getattr(message, "sentence", None))
