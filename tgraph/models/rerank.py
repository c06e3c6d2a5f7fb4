"""Ranking of texts for a question by a server that has the ``/rerank`` endpoint.

The JSON is what Cohere, Jina, vLLM and others have in common: ``model``, ``query``, ``documents``
and ``top_n`` are sent; ``results`` with ``index`` and ``relevance_score`` come back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tgraph.errors import ModelError, UsageError
from tgraph.models.base import CallSink, no_sink
from tgraph.models.client import Client, Clock, Counter, member, now, rough_tokens
from tgraph.models.endpoint import Endpoint

if TYPE_CHECKING:
    import openai


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
        with self._exchange("rerank", None, sink) as exchange:
            exchange.request = body

            def send(client: openai.OpenAI) -> Any:
                return client.post("/rerank", body=body, cast_to=object)

            with self.endpoint.open(send, self.model, expected) as (result, slot):
                scores = self._scores(result, len(texts))
                usage, record = self._usage(_counted(result), [question, *texts], "")
                exchange.usage = usage
                slot.spent(usage.input_tokens)
                exchange.reply.update(scores=scores, model=self.model, usage=record)
        return scores

    def _scores(self, result: Any, count: int) -> list[tuple[int, float]]:
        rows = member(result, "results")
        found: dict[int, float] = {}
        for row in rows if isinstance(rows, list) else ():
            place, score = _row(row)
            if place is not None and 0 <= place < count and math.isfinite(score):
                found.setdefault(place, score)
        if count and not found:
            raise ModelError(
                f"{self.endpoint.url} returned no ranking of the texts.",
                f"Check that {self.model} is a ranking model.",
            )
        if not all(0 <= score <= 1 for score in found.values()):
            found = {place: _logistic(score) for place, score in found.items()}
        rounded = {place: round(score, 6) for place, score in found.items()}
        return sorted(rounded.items(), key=lambda pair: (-pair[1], pair[0]))


def _counted(result: object) -> dict[str, object]:
    """The usage of a reply, wherever the server says it."""
    said = member(result, "usage")
    given = member(said, "prompt_tokens")
    return {"prompt_tokens": member(said, "total_tokens") if given is None else given}


def _row(row: Any) -> tuple[int | None, float]:
    if not isinstance(row, Mapping):
        return None, math.nan
    place, score = row.get("index"), row.get("relevance_score", row.get("score"))
    usable = isinstance(place, int) and isinstance(score, int | float)
    return (place, float(score)) if usable else (None, math.nan)


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, logit))))
