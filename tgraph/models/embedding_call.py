"""What embedders that run inside this process share: clean texts in, a record of the call out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tgraph.model import Agent, Usage
from tgraph.models.base import Call, CallSink, encode_vectors, no_sink

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def well_formed(text: str) -> str:
    """The text with each lone surrogate replaced by ``?``, so that it has a UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


@dataclass(slots=True)
class EmbeddingCall:
    """A call under way: its texts, well formed, and, once they are known, its rows and tokens."""

    texts: list[str]
    rows: NDArray[float32] | None = None
    tokens: int = 0


@contextmanager
def embedding_call(
    agent: Agent, texts: Sequence[str], clock: Clock, sink: CallSink
) -> Iterator[EmbeddingCall]:
    """Passes the call to the sink when it ends, also when it fails; no texts are no call."""
    call, started = EmbeddingCall([well_formed(text) for text in texts]), clock()
    try:
        yield call
    except Exception as error:
        _tell(agent, call, {"error": str(error)}, started, clock, sink)
        raise
    if call.texts and call.rows is not None and sink is not no_sink:
        reply = {"vectors": encode_vectors(call.rows), "dimension": call.rows.shape[1]}
        _tell(agent, call, reply, started, clock, sink)


def _tell(
    agent: Agent,
    call: EmbeddingCall,
    reply: dict[str, object],
    started: datetime,
    clock: Clock,
    sink: CallSink,
) -> None:
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
