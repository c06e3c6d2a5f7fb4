"""Interfaces of language models and embedders, and records of calls.

A call is a historical fact, not a cache entry: request, reply, time and price. Callers pass
each call to a sink; the session or index run lists the call."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol
from typing import Literal as Choice

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

from tgraph.model import NO_USAGE, Agent, Prompt, Usage

Json = Mapping[str, Any]
Clock = Callable[[], datetime]


def current_time() -> datetime:
    return datetime.now(UTC)


def well_formed(text: str) -> str:
    """Replace lone surrogates by ``?`` one for one, giving the text a UTF-8 form."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def canonical_json(value: object) -> str:
    """JSON with sorted keys, no spaces and no escapes, so that equal values have equal text."""
    return _CANONICAL.encode(value)


# made once: a prompt is hundreds of values, and ``json.dumps`` makes an encoder for each
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


REFUSED_PROMPT = "refused_prompt"
"""The member of a failed call's reply that is true if the server accepts other prompts."""


@dataclass(frozen=True, slots=True)
class Call:
    """A model or embedder request with reply, recorded in the librarian.

    ``request`` is the request body sent; ``reply`` is the result (text, finish reason and usage
    for a chat; the vectors, base64 of little-endian rows (with prefix ``f2:`` in half
    precision, else in single), for an embedding; the scores for a ranking, the spans for a
    reading, the logits for support), or ``{"error": ...}``. ``occurrence`` counts equal
    requests within a session or run, from 0. ``request_text`` is the request as canonical JSON,
    ``request_hash`` the hash of kind and request: each is computed once, since prompts are
    long."""

    kind: Choice["chat", "embedding", "rerank", "reading", "support"]
    request: Json
    reply: Json
    agent: Agent
    started: datetime
    ended: datetime
    usage: Usage = NO_USAGE
    prompt: Prompt | None = None
    cached: bool = False
    repaired: bool = False
    occurrence: int = 0
    request_hash: str = field(default="", compare=False, repr=False)
    request_text: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.request_text:
            object.__setattr__(self, "request_text", canonical_json(self.request))
        if not self.request_hash:
            hashed = request_hash(self.kind, self.request_text)
            object.__setattr__(self, "request_hash", hashed)


def request_hash(kind: str, request: Json | str) -> str:
    """Return the cache key for replies to a request, given as object or canonical JSON."""
    text = request if isinstance(request, str) else canonical_json(request)
    return sha256(f"[{canonical_json(kind)},{text}]".encode()).hexdigest()


_HALF = "f2:"


def encode_vectors(vectors: NDArray[float32]) -> str:
    rows = reduce_precision(vectors)
    mark = _HALF if rows.dtype.itemsize == 2 else ""
    return mark + base64.b64encode(rows.tobytes()).decode("ascii")


def decode_vectors(text: str, dimension: int) -> NDArray[float32]:
    import numpy as np

    kind = "<f2" if text.startswith(_HALF) else "<f4"
    rows = np.frombuffer(base64.b64decode(text.removeprefix(_HALF)), dtype=kind)
    return rows.reshape(-1, dimension).astype("<f4", copy=False)


def reduce_precision(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return vectors in half precision if lossless, else in single precision; little-endian."""
    import numpy as np

    with np.errstate(over="ignore"):
        portions = (vectors[at : at + _AT_ONCE] for at in range(0, len(vectors), _AT_ONCE))
        if any(not np.array_equal(part.astype("<f2"), part) for part in portions):
            return vectors.astype("<f4", copy=False)
        return vectors.astype("<f2", copy=False)


_AT_ONCE = 10_000


CallSink = Callable[[Call], None]


def no_sink(call: Call) -> None:
    """Discard calls without recording."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A step's question to a language model.

    ``schema`` is the JSON schema of the wanted reply, None for free text. ``prompt`` names the step
    and becomes the name of the ``response_format``.
    """

    prompt: Prompt
    messages: Sequence[Mapping[str, str]]
    schema: Json | None = None
    max_tokens: int | None = None
    temperature: float = 0.0
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's whole reply. ``finish_reason`` is the server's (``stop``, ``length``, ...)."""

    text: str
    finish_reason: str
    usage: Usage
    model: str
    extra: Json = field(default_factory=dict)


class Author(Protocol):
    """An author of texts.

    ``key`` identifies the author with prompt and options, and changes whenever equal input
    could produce different text."""

    @property
    def agent(self) -> Agent: ...

    @property
    def prompts(self) -> Sequence[Prompt]: ...

    @property
    def key(self) -> str: ...


class ChatModel(Protocol):
    """A language model behind any OpenAI-compatible server, or a scripted model.

    Both methods pass each finished call to ``sink`` exactly once, including failed calls, and
    raise ``EndpointError`` if the server can't be reached or refuses permanently."""

    @property
    def agent(self) -> Agent: ...

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        """Return the reply, retrying if necessary."""

    def stream(self, request: ChatRequest, sink: CallSink = no_sink) -> Iterator[str]:
        """The reply's text in pieces as they arrive. A stream that breaks raises ``ModelError``."""


class Embedder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    ``max_tokens`` is how much of a text it reads (None: no limit); a longer text is embedded in
    windows by the caller. ``lexical`` says that vectors know only words, not meaning.
    """

    @property
    def agent(self) -> Agent: ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int | None: ...

    @property
    def lexical(self) -> bool: ...

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        """Rows of unit length, shape ``(len(texts), dimension)``, in the order of the texts."""
