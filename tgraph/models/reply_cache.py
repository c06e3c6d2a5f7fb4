"""A reply and vector cache, sparing interrupted runs from paying twice for a call.

The cache is derived and may be deleted at any time: the historical facts are in the recorded
calls."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

from tgraph.model import Agent, Usage
from tgraph.models.base import (
    Call,
    CallSink,
    ChatModel,
    ChatReply,
    ChatRequest,
    Clock,
    Embedder,
    current_time,
    decode_vectors,
    encode_vectors,
    no_sink,
    request_hash,
)
from tgraph.models.embedding import token_starts
from tgraph.models.recorded_calls import reply_of
from tgraph.store.files import allowed_in, make_folder

log = logging.getLogger(__name__)

ReplyStore = MutableMapping[str, bytes]
_DIGEST = 64
_UNFIT = frozenset({"content_filter"})


class CacheFolder(MutableMapping[str, bytes]):
    """Cache entries by key (hexadecimal digits), stored as single files; safe for threads and
    processes.

    An entry outlives the writing process, however the process ends; entries are not synced to
    disk. Damaged or incomplete entries count as absent. Entries that can't be written (a full
    disk, a read-only folder) are left out, with a single warning."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._warned = False

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return cache_here, (self.folder,)

    def _entry_path(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def __getitem__(self, key: str) -> bytes:
        try:
            stored = self._entry_path(key).read_bytes()
        except OSError:
            raise KeyError(key) from None
        digest, value = stored[:_DIGEST], stored[_DIGEST:]
        if digest != _hash_value(value):
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: bytes) -> None:
        path = self._entry_path(key)
        try:
            try:
                _overwrite_file(path, _hash_value(value) + value)
            except FileNotFoundError:
                make_folder(path.parent)
                _overwrite_file(path, _hash_value(value) + value)
        except OSError as error:
            if not self._warned:
                log.warning("Replies can't be cached in %s: %s.", self.folder, error.strerror)
            self._warned = True

    def __delitem__(self, key: str) -> None:
        try:
            self._entry_path(key).unlink()
        except OSError:
            raise KeyError(key) from None

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self.folder.glob("??/*")):
            if not path.name.startswith("."):
                yield path.name

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _overwrite_file(path: Path, data: bytes) -> None:
    """Overwrite the file in place, never truncating first: rewriting equal data disturbs no
    reader."""
    with open(path, "wb", buffering=0, opener=_without_truncating) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        file.truncate()


def _without_truncating(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, allowed_in(Path(path).parent))


def _hash_value(value: bytes) -> bytes:
    return sha256(value).hexdigest().encode("ascii")


def chat_key(agent: Agent, request: ChatRequest) -> str:
    """Return a chat reply's cache key, computed from agent and full request.

    The key doesn't depend on the server's capabilities, nor on streaming."""
    key_data = {
        "agent": [agent.name, agent.version, agent.provider],
        "step": request.prompt.name,
        "messages": [dict(m) for m in request.messages],
        "schema": request.schema,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
    }
    return request_hash("chat", key_data)


def cache_here(folder: Path) -> ReplyStore:
    """Return another process's cache; on another machine lacking the graph folder, an unsaved
    cache."""
    return CacheFolder(folder) if folder.parent.parent.is_dir() else {}


class UnknownReplyError(Exception):
    """An error for a reply missing in the ``cache`` while calls are forbidden."""

    def __init__(self, cache: ReplyStore) -> None:
        super().__init__("the reply is not known")
        self.cache = cache


@dataclass(slots=True)
class _Memory:
    """Entries known in addition to the cache, plus entries read and received meanwhile."""

    known: Mapping[str, bytes] = field(default_factory=dict)
    read: dict[str, bytes] = field(default_factory=dict)
    had: dict[str, bytes] = field(default_factory=dict)
    asks: bool = True


_memory: ContextVar[_Memory | None] = ContextVar("_memory", default=None)


@contextmanager
def _use_memory(memory: _Memory) -> Iterator[_Memory]:
    token = _memory.set(memory)
    try:
        yield memory
    finally:
        _memory.reset(token)


@contextmanager
def only_known() -> Iterator[Mapping[str, bytes]]:
    """Ask no model in this thread: ``UnknownReplyError`` instead. Gives what is read."""
    with _use_memory(_Memory(asks=False)) as memory:
        yield memory.read


@contextmanager
def remember_entries(known: Mapping[str, bytes]) -> Iterator[Mapping[str, bytes]]:
    """Remember additional cache entries in the current thread; yield entries received
    meanwhile."""
    with _use_memory(_Memory(known)) as memory:
        yield memory.had


def _open_cache(cache: ReplyStore | str | Path) -> ReplyStore:
    return CacheFolder(cache) if isinstance(cache, str | Path) else cache


class CachedChat:
    """A ``ChatModel`` with reply cache; ``cache`` is a folder or any mapping of text to bytes.

    An earlier reply is given again: its call goes to the sink with ``cached`` set, with the
    original request and reply, and costs nothing. A reply truncated by ``max_tokens`` is kept
    with its finish reason (another limit is another request); failed, empty and filtered
    replies and broken streams aren't kept."""

    def __init__(
        self, model: ChatModel, cache: ReplyStore | str | Path, *, clock: Clock = current_time
    ) -> None:
        self.agent = model.agent
        self._model = model
        self._cache = _open_cache(cache)
        self._clock = clock

    def complete(self, request: ChatRequest, sink: CallSink = no_sink) -> ChatReply:
        key = chat_key(self.agent, request)
        kept_reply = self._kept_reply(key, request, sink)
        return kept_reply or self._allowed_model().complete(request, self._keeping(key, sink))

    def stream(
        self, request: ChatRequest, sink: CallSink = no_sink
    ) -> Generator[str, None, ChatReply]:
        """Yield the reply in pieces, or in a single piece if cached."""
        key = chat_key(self.agent, request)
        kept_reply = self._kept_reply(key, request, sink)
        if kept_reply is not None:
            yield kept_reply.text
            return kept_reply
        calls: list[Call] = []
        try:
            yield from self._allowed_model().stream(request, calls.append)
        finally:
            for call in calls:
                self._keeping(key, sink)(call)
        return reply_of(calls[-1].reply, calls[-1].usage)

    def forget(self, request: ChatRequest) -> None:
        """Remove a request's useless reply from the cache."""
        key = chat_key(self.agent, request)
        self._cache.pop(key, None)
        if memory := _memory.get():
            memory.known = {
                entry_key: memory.known[entry_key] for entry_key in memory.known if entry_key != key
            }
            memory.had.pop(key, None)

    def _allowed_model(self) -> ChatModel:
        memory = _memory.get()
        if memory is not None and not memory.asks:
            raise UnknownReplyError(self._cache)
        return self._model

    def _remember_entry(self, key: str, entry: bytes) -> None:
        self._cache[key] = entry
        if memory := _memory.get():
            memory.had[key] = entry

    def _recall_entry(self, key: str) -> bytes | None:
        memory = _memory.get() or _Memory()
        entry = memory.known.get(key) or self._cache.get(key)
        if entry is not None:
            memory.read[key] = entry
        return entry

    def _keeping(self, key: str, sink: CallSink) -> CallSink:
        def keep_call(call: Call) -> None:
            reply = call.reply
            fit = "error" not in reply and bool(reply.get("text"))
            if fit and reply["finish_reason"] not in _UNFIT:
                entry_text = json.dumps({"key": key, "reply": dict(reply)}, ensure_ascii=False)
                self._remember_entry(
                    key, f'{entry_text[:-1]}, "request": {call.request_text}}}'.encode()
                )
            sink(call)

        return keep_call

    def _kept_reply(self, key: str, request: ChatRequest, sink: CallSink) -> ChatReply | None:
        started = self._clock()
        entry = _parse_entry(self._recall_entry(key), key)
        if entry is None:
            return None
        sink(
            Call(
                kind="chat",
                request=entry["request"],
                reply=entry["reply"],
                agent=self.agent,
                started=started,
                ended=self._clock(),
                prompt=request.prompt,
                cached=True,
            )
        )
        return reply_of(entry["reply"], Usage())


def _parse_entry(stored: bytes | None, key: str) -> dict[str, Any] | None:
    if stored is None:
        return None
    try:
        entry = json.loads(stored)
        usable = entry["key"] == key and isinstance(entry["reply"]["text"], str)
    except (ValueError, KeyError, TypeError):
        return None
    return entry if usable and isinstance(entry.get("request"), dict) else None


class CachedEmbedder:
    """An ``Embedder`` that remembers each text's vector.

    Vectors that were had before are passed to the sink as one call with ``cached`` set; the rest is
    embedded in one go.
    """

    def __init__(
        self, embedder: Embedder, cache: ReplyStore | str | Path, *, clock: Clock = current_time
    ) -> None:
        self.agent = embedder.agent
        self.max_tokens = embedder.max_tokens
        self.lexical = embedder.lexical
        self._embedder = embedder
        self._cache = _open_cache(cache)
        self._clock = clock

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def token_starts(self, text: str) -> Sequence[int]:
        return token_starts(self._embedder, text)

    def embed(self, texts: Sequence[str], sink: CallSink = no_sink) -> NDArray[float32]:
        import numpy as np

        started = self._clock()
        keys = [self._text_key(text) for text in texts]
        rows = {key: self._cached_row(key) for key in keys}
        cached_texts = [
            text for text, key in zip(texts, keys, strict=True) if rows[key] is not None
        ]
        missing = {key: text for text, key in zip(texts, keys, strict=True) if rows[key] is None}
        if missing:
            kept: set[str] = set()
            vectors = self._embedder.embed(list(missing.values()), self._keeping(sink, kept))
            for key, vector in zip(missing, vectors, strict=True):
                rows[key] = vector
                if key not in kept:
                    self._cache[key] = vector.astype("<f4").tobytes()
        result = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for index, key in enumerate(keys):
            result[index] = rows[key]
        if cached_texts:
            cached_rows = [i for i, key in enumerate(keys) if key not in missing]
            self._report_cached(cached_texts, result[cached_rows], started, sink)
        return result

    def _keeping(self, sink: CallSink, kept: set[str]) -> CallSink:
        """Return a sink that stores each batch on arrival, because later batches may fail, and
        adds the keys to ``kept``."""

        def keep_call(call: Call) -> None:
            texts, vectors = call.request.get("input"), call.reply.get("vectors")
            if isinstance(texts, list) and isinstance(vectors, str):
                rows = decode_vectors(vectors, call.reply["dimension"])
                for text, row in zip(texts, rows, strict=True):
                    key = self._text_key(text)
                    self._cache[key] = row.tobytes()
                    kept.add(key)
            sink(call)

        return keep_call

    def _text_key(self, text: str) -> str:
        agent = self.agent
        return request_hash(
            "embedding", {"agent": [agent.name, agent.version, agent.provider], "text": text}
        )

    def _cached_row(self, key: str) -> NDArray[float32] | None:
        import numpy as np

        stored = self._cache.get(key)
        if stored is None or len(stored) != 4 * self.dimension:
            return None
        return np.frombuffer(stored, dtype="<f4").astype(np.float32)

    def _report_cached(
        self, texts: list[str], vectors: NDArray[float32], started: datetime, sink: CallSink
    ) -> None:
        sink(
            Call(
                kind="embedding",
                request={"model": self.agent.name, "input": texts},
                reply={"vectors": encode_vectors(vectors), "dimension": self.dimension},
                agent=self.agent,
                started=started,
                ended=self._clock(),
                cached=True,
            )
        )
