"""Embedding: clean texts in, a record of the call out; long texts in overlapping windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from tgraph.model import Agent, Usage
from tgraph.models.base import Call, CallSink, Clock, Embedder, encode_vectors, no_sink, well_formed
from tgraph.models.tokens import token_offsets

if TYPE_CHECKING:
    from numpy import float32, int64
    from numpy.typing import NDArray


@dataclass(slots=True)
class EmbeddingCall:
    """A running embedding call: well-formed texts and, once known, rows and tokens."""

    texts: list[str]
    rows: NDArray[float32] | None = None
    tokens: int = 0


@contextmanager
def embedding_call(
    agent: Agent, texts: Sequence[str], clock: Clock, sink: CallSink
) -> Iterator[EmbeddingCall]:
    """Yield an embedding call, reported to the sink on success or failure; calls without texts
    are not reported."""
    call, started = EmbeddingCall([well_formed(text) for text in texts]), clock()

    def tell(**reply: object) -> None:
        sink(
            Call(
                kind="embedding",
                request={"model": agent.name, "version": agent.version, "input": call.texts},
                reply=reply,
                agent=agent,
                started=started,
                ended=clock(),
                usage=Usage(input_tokens=call.tokens, calls=1),
            )
        )

    try:
        yield call
    except Exception as error:
        tell(error=str(error))
        raise
    if call.texts and call.rows is not None and sink is not no_sink:
        tell(vectors=encode_vectors(call.rows), dimension=call.rows.shape[1])


OVERLAP = 32


@runtime_checkable
class HasTokenizer(Protocol):
    """An embedder reporting the start of each text token (code points, ascending)."""

    def token_starts(self, text: str) -> Sequence[int]: ...


def embed_windows(
    embedder: Embedder, texts: Sequence[str], sink: CallSink = no_sink, overlap: int = OVERLAP
) -> tuple[NDArray[float32], NDArray[int64]]:
    """Return vectors of all text windows, plus the text index of each row.

    Texts and windows keep their order; each text has at least one window. The rows have unit
    length; a text is best compared by its best window."""
    import numpy as np

    parts = [split_windows(embedder, text, overlap) for text in texts]
    owners = np.repeat(np.arange(len(texts)), [len(text_windows) for text_windows in parts])
    return embedder.embed(
        [window for text_windows in parts for window in text_windows], sink
    ), owners


def split_windows(embedder: Embedder, text: str, overlap: int = OVERLAP) -> list[str]:
    """Split text into windows that the embedder can read whole, together covering the text.

    Neighbouring windows share about ``overlap`` tokens. Tokens are counted by the embedder's
    own tokenizer if ``token_starts`` exists, else as cl100k_base."""
    limit = embedder.max_tokens
    if limit is None or len(text.encode("utf-8", "replace")) <= limit:
        return [text]  # a token has at least one byte
    starts = token_starts(embedder, text)
    if len(starts) <= limit:
        return [text]
    return [text[start:end] for start, end in _window_spans(starts, len(text), limit, overlap)]


def token_starts(embedder: Embedder, text: str) -> Sequence[int]:
    """Return token starts in the text, as counted for the embedder's windows.

    An embedder wrapping another embedder passes on the wrapped embedder's starts, so that both
    receive the same windows."""
    count = embedder.token_starts if isinstance(embedder, HasTokenizer) else token_offsets
    return count(text)


def _window_spans(
    starts: Sequence[int], length: int, limit: int, overlap: int
) -> list[tuple[int, int]]:
    """Code-point spans of windows of equal token counts that cover ``length``.

    A little below the limit, because half a word may be read as more tokens than it was.
    """
    room = max(1, limit - limit // 32)
    overlap = min(overlap, room // 2)
    fresh = len(starts) - overlap
    count = -(-fresh // (room - overlap))
    edges = [i * fresh // count for i in range(count)]
    ends = [starts[edge + overlap] for edge in edges[1:]]
    return list(zip([0, *(starts[edge] for edge in edges[1:])], [*ends, length], strict=True))
