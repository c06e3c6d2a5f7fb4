"""Chunk contexts by a language model, given the document and then the chunk."""

from __future__ import annotations

from typing import Unpack

from tgraph.extract.model.replies import ReplyRow, ReplyText
from tgraph.index.chunk_contexts import Setting
from tgraph.models.base import CallSink, ChatModel, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, load_prompt
from tgraph.models.tokens import encoding_for, token_offsets

NAME = "situate_chunk"
MOST_WORDS = 80
"""Words that are asked for; Anthropic's contexts have 50 to 100 tokens."""

_LONGEST = 1_500


class ContextReply(ReplyRow):
    context: ReplyText


class ModelSituator(Prompted):
    """A ``Situator`` that asks a language model by the prompt ``situate_chunk``.

    The document comes first and is the same for all of its chunks, so that endpoints which remember
    the beginning of a prompt read it once. Of one of more than ``max_document_tokens`` it is shown
    the part that the chunk begins in; parts are the same for all chunks.
    """

    def __init__(
        self,
        model: ChatModel,
        max_document_tokens: int,
        prompts: Prompts = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, load_prompt(NAME, prompts), (max_document_tokens,), **options)
        self._budget = max_document_tokens

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        """As ``Situator.situate``."""
        values = {
            "title": setting.title,
            "document": self._select_part(setting),
            "chunk": setting.chunk.text,
            "max_words": str(MOST_WORDS),
        }
        request = self._request(values, ContextReply)
        reply = self._ask(request, ContextReply, sink)
        context = " ".join(reply.value.context.split())
        if not context or len(context) > _LONGEST:
            raise self._refuse(request, "empty" if not context else "no short context")
        return context

    def _select_part(self, setting: Setting) -> str:
        """Return the complete document, or the document section where the chunk begins."""
        text = setting.document
        if len(text.encode("utf-8", "surrogatepass")) <= self._budget:
            return text  # a token has at least one byte
        starts = token_offsets(text, encoding_for(self.agent.name))
        edges = [starts[at] for at in range(0, len(starts), self._budget)]
        begin = max(edge for edge in edges if edge <= max(setting.start, edges[0]))
        end = next((edge for edge in edges if edge > begin), len(text))
        return text[begin:end]
