"""Ranking of texts for a question by a server that has the ``/rerank`` endpoint.

The JSON is what Cohere, Jina, vLLM and others have in common: ``model``, ``query``, ``documents``
and ``top_n`` are sent; ``results`` with ``index`` and ``relevance_score`` come back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tgraph.errors import ModelError, UsageError
from tgraph.models.base import CallSink, Clock, no_sink, now
from tgraph.models.client import Client, Counter, member, rough_tokens
from tgraph.models.endpoint import Endpoint


class Reranker(Client):
    """A ranking model behind an endpoint. ``UsageError`` without a model's name."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        count_tokens: Counter | None = None,
        clock: Clock = now,
    ) -> None:
        if not model.strip():
            raise UsageError("The ranking model has no name.", "Set `rerank.model`.")
        super().__init__(model, endpoint, count_tokens, clock)

    def rank(
        self, question: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[tuple[int, float]]:
        """(place among the texts, score from 0 to 1), best first.

        Texts that the server does not mention are left out. Scores that are not all between 0 and 1
        are taken for logits. ``ModelError`` where the reply can't be used, ``EndpointError`` as
        every call.
        """
        body: dict[str, Any] = {
            "model": self.model,
            "query": question,
            "documents": [text or " " for text in texts],
            "top_n": len(texts),
        }
        expected = rough_tokens(question) + sum(map(rough_tokens, texts))
        with self._posted("rerank", "/rerank", body, expected, sink) as (exchange, result):
            scores = self._scores(result, len(texts))
            exchange.usage, record = self._usage(_counted(result), [question, *texts], "")
            exchange.reply.update(scores=scores, model=self.model, usage=record)
        return scores

    def _scores(self, result: Any, count: int) -> list[tuple[int, float]]:
        rows = member(result, "results")
        found: dict[int, float] = {}
        for row in rows if isinstance(rows, list) else ():
            place, score = member(row, "index"), member(row, "relevance_score")
            score = member(row, "score") if score is None else score
            usable = isinstance(place, int) and isinstance(score, int | float)
            if usable and 0 <= place < count and math.isfinite(score):
                found.setdefault(place, float(score))
        if count and not found:
            raise ModelError(
                f"{self.endpoint.url} returned no ranking of the texts.",
                f"Check that {self.model} is a ranking model.",
            )
        if not all(0 <= score <= 1 for score in found.values()):
            bounded = {place: max(-60.0, min(60.0, logit)) for place, logit in found.items()}
            found = {place: 1 / (1 + math.exp(-logit)) for place, logit in bounded.items()}
        rounded = {place: round(score, 6) for place, score in found.items()}
        return sorted(rounded.items(), key=lambda pair: (-pair[1], pair[0]))


def _counted(result: object) -> dict[str, object]:
    """The usage of a reply, wherever the server says it."""
    said = member(result, "usage")
    given = member(said, "prompt_tokens")
    return {"prompt_tokens": member(said, "total_tokens") if given is None else given}
