"""Embedders behind any OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import openai
    from numpy import float32
    from numpy.typing import NDArray

from tgraph.errors import EndpointError, ModelError
from tgraph.models.base import CallSink, encode_vectors, no_sink
from tgraph.models.endpoint import Endpoint
from tgraph.models.exchange import Client, Clock, Counter, member, now, rough_tokens


class OpenAIEmbedder(Client):
    """An ``Embedder`` behind an OpenAI-compatible server.

    Texts are sent ``batch_size`` at a time, each batch one call. ``dimensions`` asks the server for
    shorter vectors, where the model can; without it the dimension is learnt from the first reply
    (``dimension`` makes one small unrecorded call if nothing has been embedded yet). ``max_tokens``
    is how much of a text the model reads. Rows are brought to unit length.
    """

    lexical = False

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        dimensions: int | None = None,
        max_tokens: int | None = 8191,  # OpenAI's embedding models, platform documentation
        batch_size: int = 64,
        count_tokens: Counter | None = None,
        clock: Clock = now,
    ) -> None:
        super().__init__(model, endpoint, count_tokens, clock)
        self.max_tokens = max_tokens
        self._wanted = dimensions
        self._dimension: int | None = None
        self._batch_size = batch_size

    @property
    def dimension(self) -> int:
        if self._dimension is None:
            self.embed(["dimension"])
        assert self._dimension is not None
        return self._dimension

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        size = self._batch_size
        batches = [self._batch(texts[i : i + size], sink) for i in range(0, len(texts), size)]
        if not batches:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate(batches)

    def _batch(self, texts: Sequence[str], sink: CallSink) -> NDArray[float32]:
        body: dict[str, Any] = {
            "model": self.model,
            "input": [text or " " for text in texts],  # servers refuse an empty string
            "encoding_format": "float",
        }
        if self._wanted is not None:
            body["dimensions"] = self._wanted
        expected = sum(rough_tokens(text) for text in texts)
        with self._exchange("embedding", None, sink) as exchange:
            exchange.request = body

            def send(client: openai.OpenAI) -> Any:
                return client.post("/embeddings", body=body, cast_to=object)

            with self.endpoint.open(send, self.model, expected) as (result, slot):
                vectors = self._vectors(result, len(texts))
                counted, record = self._usage(member(result, "usage"), texts, "")
                exchange.usage = replace(counted, output_tokens=0)
                slot.spent(counted.input_tokens)
                exchange.reply.update(
                    vectors=encode_vectors(vectors),
                    dimension=vectors.shape[1],
                    model=member(result, "model") or self.model,
                    usage=record,
                )
            return vectors

    def _vectors(self, result: Any, count: int) -> NDArray[float32]:
        import numpy as np

        data = member(result, "data")
        rows = data if isinstance(data, list) else []
        if len(rows) != count:
            raise ModelError(
                f"{self.endpoint.url} returned {len(rows)} vectors for {count} texts.",
                f"Check that {self.model} is an embedding model.",
            )
        try:
            ordered = sorted(rows, key=lambda row: member(row, "index") or 0)
            vectors = np.asarray([member(row, "embedding") for row in ordered], dtype=np.float32)
        except (TypeError, ValueError):
            vectors = np.zeros((0, 0), dtype=np.float32)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise ModelError(f"{self.endpoint.url} returned vectors that are not numbers.")
        return self._unit(vectors)

    def _unit(self, vectors: NDArray[float32]) -> NDArray[float32]:
        import numpy as np

        width = int(vectors.shape[1])
        if self._dimension not in (None, width):
            raise EndpointError(
                f"{self.model} at {self.endpoint.url} changed its dimension from"
                f" {self._dimension} to {width}.",
                "Check that the same model is served, then index again.",
            )
        self._dimension = width
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(norms == 0, 1, norms)).astype(np.float32)
