"""Chat models behind any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp.

Every call is handed to its sink once, with the exact body that was sent (the key travels in a
header and is never part of it) and with what came back, errors and half replies included.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tgraph.errors import EndpointError, ModelError, RefusedPromptError
from tgraph.models.base import (
    CallSink,
    ChatReply,
    ChatRequest,
    Clock,
    canonical_json,
    current_time,
    encode_vectors,
    no_sink,
)
from tgraph.models.client import Client, Counter, Exchange, read_member, rough_tokens
from tgraph.models.endpoint import Endpoint
from tgraph.models.failures import Failure, is_refusal, refusal_words
from tgraph.models.json_parsing import without_surrogates
from tgraph.models.server_capabilities import Format, ServerCapabilities
from tgraph.models.thinking import ThoughtFilter
from tgraph.rendering import collapse_whitespace

if TYPE_CHECKING:
    import openai
    from numpy import float32, float64
    from numpy.typing import NDArray


_MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Body:
    """A serialised request, encoding message texts as JSON just once.

    Prompts are long, and serialising a prompt takes a third of the time of the surrounding
    HTTP. ``sent`` keeps the member order, which tells a server the order for filling a schema;
    ``canonical`` has the order of ``canonical_json``."""

    request: Mapping[str, Any]
    sent: str
    canonical: str


def write_body(request: Mapping[str, Any]) -> Body:
    """Serialise a request whose message members are texts."""
    texts = [
        {k: _json(text) for k, text in message.items()} for message in request.get(_MESSAGES, ())
    ]
    return Body(
        request,
        _write_object(
            request.items(), [_write_members(message.items()) for message in texts], _json
        ),
        _write_object(
            sorted(request.items()),
            [_write_members(sorted(message.items())) for message in texts],
            canonical_json,
        ),
    )


def _write_object(
    members: Iterable[tuple[str, Any]], messages: Iterable[str], write: Callable[[object], str]
) -> str:
    written = f"[{','.join(messages)}]"
    return _write_members(
        (name, written if name == _MESSAGES else write(value)) for name, value in members
    )


def _write_members(members: Iterable[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{_json(name)}:{value}" for name, value in members) + "}"


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


_PATH = "/chat/completions"
"""Posted to directly, and read as the plain object that it is: ``chat.completions.create`` first
walks the whole body, half a millisecond for one that is ready to be sent, and makes a model of
every chunk."""

Send = Callable[["openai.OpenAI", bytes], Any]


class OpenAIChat(Client):
    """A ``ChatModel`` behind an OpenAI-compatible server.

    ``structured`` is the response format to begin with; without ``thinking`` the server is told to
    let the model do none, in the two ways in which servers know that. What the server refuses
    (``response_format``, ``max_tokens``, ``temperature``, ``seed``, ``stream_options``, those two)
    is left out or replaced, and remembered for later calls if the server refuses it with another
    prompt too. ``max_tokens`` bounds replies to requests without their own limit. Thoughts are no
    part of a reply's text: they are ``reasoning`` of its ``extra``, and counted. Tokens that the
    server doesn't count are counted with ``count_tokens`` and marked as estimated in the record.
    Thread-safe. Raises ``EndpointError`` when the server can't be reached or refuses every prompt,
    ``RefusedPromptError`` when it refuses this one (a short prompt in the same form decides),
    ``ModelError`` for an empty or broken reply. A reply cut by ``max_tokens`` has the finish reason
    ``length``.
    """

    def __init__(
        self,
        model: str,
        endpoint: Endpoint,
        *,
        count_tokens: Counter | None = None,
        clock: Clock = current_time,
        structured: Format = "json_schema",
        thinking: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(model, endpoint, count_tokens, clock)
        self.dialect = ServerCapabilities(
            structured, effort=not thinking, template=not thinking, bound=max_tokens
        )
        """What the server is known to understand by now."""
        self._accepted_forms: set[str] = set()
        self._refused_in_row = 0
        self._structured = False  # whether the server has honoured a response format

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        with (
            self._exchange("chat", request.prompt, sink) as exchange,
            self._open_reply(request, exchange, _post_completion, stream=False) as completion,
        ):
            choice = completion["choices"][0]
            gathered = _Gathered(self.model)
            gathered.store_metadata(completion)
            gathered.add(choice["message"], read_member(choice, "finish_reason") or "stop")
            return self._finish_reply(request, exchange, gathered)

    def stream(
        self, request: ChatRequest, sink: CallSink = no_sink
    ) -> Generator[str, None, ChatReply]:
        """The reply's text in pieces; the generator's return value is the whole reply."""
        with (
            self._exchange("chat", request.prompt, sink) as exchange,
            self._open_reply(request, exchange, _open_stream, stream=True) as chunks,
        ):
            gathered = _Gathered(self.model)
            try:
                for chunk in self._guard_stream(chunks):
                    gathered.store_metadata(chunk)
                    choice = _first_choice(chunk)
                    finished = read_member(choice, "finish_reason")
                    if piece := gathered.add(read_member(choice, "delta"), finished):
                        yield piece
                    if passage := gathered.repeated_passage():
                        raise _repetition_error(self.model, request, passage)
                if piece := gathered.rest():
                    yield piece
                if not gathered.finish_reason:
                    raise ModelError(f"The reply of {self.model} stopped half-way.", "Ask again.")
            except BaseException:
                self._record_reply(request, exchange, gathered)
                raise
            finally:
                chunks.close()
            return self._finish_reply(request, exchange, gathered)

    # --- one exchange ---------------------------------------------------------------------------

    @contextmanager
    def _open_reply(
        self, request: ChatRequest, exchange: Exchange, send: Send, *, stream: bool
    ) -> Iterator[Any]:
        """Yield the server's reply in the first dialect not refused."""

        def attempt(client: openai.OpenAI) -> Any:
            initial = self.dialect
            result, dialect = self._send_adapted(client, request, send, stream, exchange)
            if dialect != initial and not self._accepts_form(
                client, request, send, stream, initial
            ):
                self._remember_dialect(dialect)
            self._refused_in_row = 0
            return result

        def judge(client: openai.OpenAI, error: Exception, failure: Failure) -> ModelError:
            if failure.prompt_reason and self._accepts_others(client, request, send, stream, error):
                return RefusedPromptError(
                    f"{self.endpoint.url} accepts other prompts, but not this one of the step"
                    f" {request.prompt.name} ({failure.prompt_reason}).",
                    "If it is too long for the model, use smaller chunks or a smaller context"
                    " budget.",
                )
            return failure.error

        expected = sum(rough_tokens(m["content"]) for m in request.messages)
        with self.endpoint.open(attempt, self.model, expected, judge) as (result, slot):
            yield result
            slot.record_tokens(
                exchange.usage.input_tokens + exchange.usage.output_tokens or expected
            )

    def _send_adapted(
        self,
        client: openai.OpenAI,
        request: ChatRequest,
        send: Send,
        stream: bool,
        exchange: Exchange | None = None,
    ) -> tuple[Any, ServerCapabilities]:
        """Return the server's reply and the dialect of the request, the first not refused.

        Where the server has accepted the form with another prompt, the refusal concerns the
        prompt, and only the limit of tokens is left out: prompt and limit together may be too
        long."""
        dialect = self.dialect
        while True:
            body = write_body(dialect.body(request, self.model, stream=stream))
            if exchange:
                exchange.request, exchange.request_text = body.request, body.canonical
            try:
                result = send(client, body.sent.encode())
            except Exception as error:
                if not is_refusal(error):
                    raise
                next_dialect = (
                    dialect.without_limit(body.request)
                    if self._is_accepted_form(body.request)
                    else dialect.adapt_to_refusal(refusal_words(error), body.request)
                )
                if next_dialect is None:
                    raise
                dialect = next_dialect
            else:
                self._accepted_forms.add(_form_of(body.request))
                return result, dialect

    def _accepts_others(
        self,
        client: openai.OpenAI,
        request: ChatRequest,
        send: Send,
        stream: bool,
        error: Exception,
    ) -> bool:
        """Return whether the server accepts other prompts in the form of a failed request.

        A short prompt decides, except for the first refusals in a form accepted before."""
        body = self.dialect.body(request, self.model, stream=stream)
        if is_refusal(error) and self._is_accepted_form(body):
            self._refused_in_row += 1
            if self._refused_in_row <= _REFUSED_IN_ROW:
                return True
        try:
            result, dialect = self._send_adapted(client, _short_request(request), send, stream)
        except Exception:
            return False
        _discard(result)
        self._remember_dialect(dialect)
        self._refused_in_row = 0
        return True

    def _accepts_form(
        self,
        client: openai.OpenAI,
        request: ChatRequest,
        send: Send,
        stream: bool,
        dialect: ServerCapabilities,
    ) -> bool:
        """Return whether the server accepts a short prompt in the request's form."""
        body = dialect.body(_short_request(request), self.model, stream=stream)
        if not self._is_accepted_form(body):
            try:
                _discard(send(client, write_body(body).sent.encode()))
            except Exception:
                return False
            self._accepted_forms.add(_form_of(body))
        return True

    def _is_accepted_form(self, body: Mapping[str, Any]) -> bool:
        """Return whether the server has accepted a request that differs in messages only."""
        return _form_of(body) in self._accepted_forms

    def _remember_dialect(self, dialect: ServerCapabilities) -> None:
        with self._lock:
            self.dialect = dialect

    def _guard_stream(self, chunks: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from chunks
        except Exception as error:
            failure = self.endpoint.failure(error, self.model)
            raise ModelError(
                f"The reply of {self.model} broke off: {failure.error.message}", "Ask again."
            ) from None

    def _finish_reply(
        self, request: ChatRequest, exchange: Exchange, gathered: _Gathered
    ) -> ChatReply:
        self._record_reply(request, exchange, gathered)
        if not gathered.text.strip():
            raise _empty_reply_error(self.model, request, gathered)
        if request.schema is not None:
            with self._lock:  # ask for less from a server that ignores a response format
                if gathered.text.lstrip().startswith(("{", "[")):
                    self._structured = True
                elif not self._structured and "{" not in gathered.text:
                    self.dialect = self.dialect.with_less_format()
        reply_parts, extra = (gathered.text, gathered.finish_reason), dict(gathered.extra)
        return ChatReply(*reply_parts, exchange.usage, gathered.model, extra)

    def _record_reply(self, request: ChatRequest, exchange: Exchange, gathered: _Gathered) -> None:
        sent = [m["content"] for m in request.messages]
        gathered.rest()
        exchange.usage, usage = self._usage(
            gathered.usage, sent, gathered.text, gathered.extra.get("reasoning", "")
        )
        exchange.reply.update(
            text=gathered.text,
            finish_reason=gathered.finish_reason,
            model=gathered.model,
            usage=usage,
            **gathered.extra,
        )


_REFUSED_IN_ROW = 3
"""Refused prompts in a row after which another prompt is tried, even in an accepted form."""


def _form_of(body: Mapping[str, Any]) -> str:
    return canonical_json({name: value for name, value in body.items() if name != _MESSAGES})


def _short_request(request: ChatRequest) -> ChatRequest:
    """Return a request of the same form whose prompt gives no reason for a refusal."""
    return replace(request, messages=[{"role": "user", "content": "Hello."}])


def _discard(result: Any) -> None:
    if isinstance(result, _Stream):
        result.close()


_LOOP = 2_000
_SAMPLE = 64
"""Characters of a reply's end that are examined for repetition, and that are compared first."""


_EXTRAS = (
    ("refusal", "refusal"),
    ("reasoning", "reasoning_content"),  # vLLM, llama.cpp, DeepSeek
    ("reasoning", "reasoning"),  # Ollama, OpenRouter
)


@dataclass(slots=True)
class _Gathered:
    """A reply received so far, with thoughts separated as ``reasoning``.

    ``recent`` is the end of the reply or thought, ``fresh`` its characters not yet examined for
    repetition."""

    model: str
    usage: Any = None
    pieces: list[str] = field(default_factory=list)
    finish_reason: str = ""
    extra: dict[str, str] = field(default_factory=dict)
    recent: str = ""
    fresh: int = 0
    thoughts: ThoughtFilter = field(default_factory=ThoughtFilter)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def store_metadata(self, reply: object) -> None:
        """Store usage and model reported by a reply or chunk."""
        self.usage = read_member(reply, "usage") or self.usage
        model = read_member(reply, "model")
        self.model = model if isinstance(model, str) and model else self.model

    def add(self, message: object, finish_reason: object) -> str:
        """Add a message or message piece; return text certainly added to the reply."""
        piece = ""
        for text, is_thought in _content_parts(read_member(message, "content")):
            self._note_recent(text)
            if is_thought:
                self.extra["reasoning"] = self.extra.get("reasoning", "") + text
            else:
                piece += self.thoughts.feed(text)
        if piece:
            self.pieces.append(piece)
        for name, attribute in _EXTRAS:
            value = read_member(message, attribute)
            if isinstance(value, str) and value:
                self._note_recent(value)
                self.extra[name] = self.extra.get(name, "") + without_surrogates(value)
        if isinstance(finish_reason, str) and finish_reason:
            self.finish_reason = finish_reason
        return piece

    def _note_recent(self, text: str) -> None:
        self.recent = (self.recent + text)[-_LOOP:]
        self.fresh += len(text)

    def repeated_passage(self) -> str:
        """Return the passage of which the last ``_LOOP`` characters are copies, if any."""
        if self.fresh < _LOOP:
            return ""
        self.fresh = _LOOP // 2
        end = len(self.recent) - _SAMPLE
        period = end - self.recent.rfind(self.recent[end:], 0, len(self.recent) - 1)
        repeats = period <= _LOOP // 8 and self.recent[period:] == self.recent[:-period]
        return self.recent[-period:] if repeats else ""

    def rest(self) -> str:
        """Return held-back text, given that nothing follows; empty on repeated calls."""
        piece = self.thoughts.finish()
        if piece:
            self.pieces.append(piece)
        if self.thoughts.thought:
            self.extra["reasoning"] = self.extra.get("reasoning", "") + self.thoughts.thought
            self.thoughts.thought = ""
        return piece


def _content_parts(content: object) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a message's content, each with whether it is a thought.

    Content is a text, or a list of parts (Mistral), whose thoughts are lists of parts again."""
    if isinstance(content, str):
        yield without_surrogates(content), False
    for part in content if isinstance(content, list) else ():
        if thinking := read_member(part, "thinking"):
            yield "".join(text for text, _ in _content_parts(thinking)), True
        else:
            yield from _content_parts(part if isinstance(part, str) else read_member(part, "text"))


def _first_choice(reply: object) -> object:
    """Return a reply's or chunk's first choice; None if missing."""
    choices = read_member(reply, "choices")
    return choices[0] if isinstance(choices, list) and choices else None


def _repetition_error(model: str, request: ChatRequest, passage: str) -> ModelError:
    quote = collapse_whitespace(passage)[:60]
    return ModelError(
        f"The model {model} repeated itself in the step {request.prompt.name} and was stopped:"
        f" “{quote}”.",
        "Use a larger model, or raise chat.temperature.",
    )


def _empty_reply_error(model: str, request: ChatRequest, gathered: _Gathered) -> ModelError:
    step = request.prompt.name
    if gathered.extra.get("refusal"):
        return ModelError(f"The model {model} refused the step {step}.")
    if gathered.finish_reason == "content_filter":
        return ModelError(f"A content filter removed the reply of {model} to the step {step}.")
    thought = "reasoning" in gathered.extra
    if gathered.finish_reason == "length":
        spent = " by thinking" if thought else ""
        without = "Raise chat.max_tokens, or set chat.thinking to off."
        return ModelError(
            f"The model {model} used up its tokens{spent} before it said anything in the step"
            f" {step}.",
            without if thought else "Raise chat.max_tokens.",
        )
    if thought:
        return ModelError(
            f"The model {model} thought and said nothing in the step {step}.",
            "Set chat.thinking to off, or raise chat.max_tokens.",
        )
    return ModelError(f"The reply of {model} to the step {step} is empty.", "Ask again.")


def _post_completion(client: openai.OpenAI, body: bytes) -> Any:
    completion = client.post(_PATH, content=body, cast_to=object)
    if not isinstance(read_member(_first_choice(completion), "message"), Mapping):
        raise TypeError("not a chat completion")
    return completion


class _Stream:
    """An open stream whose initial chunk has arrived, so that earlier faults are retried."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks
        try:
            self._first = next(iter(chunks), None)
        except BaseException:
            chunks.close()
            raise
        if self._first is None:
            raise TypeError("not a stream of chunks")

    def __iter__(self) -> Iterator[Any]:
        yield self._first
        yield from self._chunks

    def close(self) -> None:
        self._chunks.close()


def _open_stream(client: openai.OpenAI, body: bytes) -> Any:
    import openai

    chunks = client.post(
        _PATH, content=body, cast_to=object, stream=True, stream_cls=openai.Stream[object]
    )
    return _Stream(chunks)


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
        clock: Clock = current_time,
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
        batches = [self._embed_batch(texts[i : i + size], sink) for i in range(0, len(texts), size)]
        if not batches:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate(batches)

    def _embed_batch(self, texts: Sequence[str], sink: CallSink) -> NDArray[float32]:
        body: dict[str, Any] = {
            "model": self.model,
            "input": [text or " " for text in texts],  # servers refuse an empty string
            "encoding_format": "float",
        }
        if self._wanted is not None:
            body["dimensions"] = self._wanted
        expected = sum(rough_tokens(text) for text in texts)
        with self._post_request("embedding", "/embeddings", body, expected, sink) as (
            exchange,
            result,
        ):
            vectors = self._parse_vectors(result, texts)
            counted, record = self._usage(read_member(result, "usage"), texts, "")
            exchange.usage = replace(counted, output_tokens=0)
            exchange.reply.update(
                vectors=encode_vectors(vectors),
                dimension=vectors.shape[1],
                model=read_member(result, "model") or self.model,
                usage=record,
            )
            return vectors

    def _parse_vectors(self, result: Any, texts: Sequence[str]) -> NDArray[float32]:
        import numpy as np

        rows = self._order_rows(read_member(result, "data"), len(texts))
        try:
            vectors = np.asarray([read_member(row, "embedding") for row in rows], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            vectors = np.zeros((0, 0), dtype=np.float64)
        if vectors.ndim != 2 or not vectors.size or not np.isfinite(vectors).all():
            raise self._unusable_error("returned vectors that are not numbers")
        if any(text.strip() and not row.any() for text, row in zip(texts, vectors, strict=True)):
            raise self._unusable_error("returned a vector of zeros")
        return self._normalise_rows(vectors)

    def _order_rows(self, data: object, count: int) -> list[Any]:
        """Return rows in text order, sorted by index if given."""
        rows = data if isinstance(data, list) else []
        if len(rows) != count:
            raise self._unusable_error(f"returned {len(rows)} vectors for {count} texts")
        places = [read_member(row, "index") for row in rows]
        if any(place is not None for place in places):
            if set(places) != set(range(count)):
                raise self._unusable_error("numbered the vectors wrongly")
            rows = sorted(rows, key=lambda row: int(read_member(row, "index")))
        return rows

    def _unusable_error(self, what: str) -> ModelError:
        return ModelError(
            f"{self.endpoint.url} {what}.", f"Check that {self.model} is an embedding model."
        )

    def _normalise_rows(self, vectors: NDArray[float64]) -> NDArray[float32]:
        """Scale rows to unit length, allowing numbers too large to square."""
        import numpy as np

        width = int(vectors.shape[1])
        if self._dimension not in (None, width):
            raise EndpointError(
                f"{self.model} at {self.endpoint.url} changed its dimension from"
                f" {self._dimension} to {width}.",
                "Check that the same model is served, then index again.",
            )
        self._dimension = width
        largest = np.abs(vectors).max(axis=1, keepdims=True)
        scaled = vectors / np.where(largest == 0, 1, largest)
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        return (scaled / np.where(norms == 0, 1, norms)).astype(np.float32)
