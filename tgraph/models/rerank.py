"""Text ranking for a question, using a server's ``/rerank`` endpoint.

The JSON is common to Cohere, Jina, vLLM and others: ``model``, ``query``, ``documents`` and
``top_n`` are sent; ``results`` with ``index`` and ``relevance_score`` come back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tgraph.errors import ModelError, UsageError
from tgraph.models.base import CallSink, Clock, current_time, no_sink
from tgraph.models.client import Client, Counter, read_member, rough_tokens
from tgraph.models.endpoint import Endpoint


class Reranker(Client):
    """A ranking model behind an endpoint; raises ``UsageError`` if the model name is missing."""

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        count_tokens: Counter | None = None,
        clock: Clock = current_time,
    ) -> None:
        if not model.strip():
            raise UsageError("The ranking model has no name.", "Set `rerank.model`.")
        super().__init__(model, endpoint, count_tokens, clock)

    def rank(
        self, question: str, texts: Sequence[str], sink: CallSink = no_sink
    ) -> list[tuple[int, float]]:
        """Return (text index, score from 0 to 1) pairs, best first.

        Texts missing in the server's reply are left out. Scores that are not all between 0 and
        1 are treated as logits. Raises ``ModelError`` if the reply can't be used, and
        ``EndpointError`` like every call."""
        body: dict[str, Any] = {
            "model": self.model,
            "query": question,
            "documents": [text or " " for text in texts],
            "top_n": len(texts),
        }
        expected = rough_tokens(question) + sum(map(rough_tokens, texts))
        with self._post_request("rerank", "/rerank", body, expected, sink) as (exchange, result):
            scores = self._parse_scores(result, len(texts))
            exchange.usage, record = self._usage(_reported_usage(result), [question, *texts], "")
            exchange.reply.update(scores=scores, model=self.model, usage=record)
        return scores

    def _parse_scores(self, result: Any, count: int) -> list[tuple[int, float]]:
        rows = read_member(result, "results")
        score_by_place: dict[int, float] = {}
        for row in rows if isinstance(rows, list) else ():
            place, score = read_member(row, "index"), read_member(row, "relevance_score")
            score = read_member(row, "score") if score is None else score
            usable = isinstance(place, int) and isinstance(score, int | float)
            if usable and 0 <= place < count and math.isfinite(score):
                score_by_place.setdefault(place, float(score))
        if count and not score_by_place:
            raise ModelError(
                f"{self.endpoint.url} returned no ranking of the texts.",
                f"Check that {self.model} is a ranking model.",
            )
        if not all(0 <= score <= 1 for score in score_by_place.values()):
            bounded = {
                place: max(-60.0, min(60.0, logit)) for place, logit in score_by_place.items()
            }
            score_by_place = {place: 1 / (1 + math.exp(-logit)) for place, logit in bounded.items()}
        rounded = {place: round(score, 6) for place, score in score_by_place.items()}
        return sorted(rounded.items(), key=lambda pair: (-pair[1], pair[0]))


def _reported_usage(result: object) -> dict[str, object]:
    """Return a reply's token usage, from either field used by servers."""
    usage = read_member(result, "usage")
    prompt_tokens = read_member(usage, "prompt_tokens")
    return {
        "prompt_tokens": read_member(usage, "total_tokens")
        if prompt_tokens is None
        else prompt_tokens
    }
