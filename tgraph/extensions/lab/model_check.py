"""Model server diagnostics: a few small calls test server abilities and suggest settings for
failures (``tgraph doctor --model``).

Nothing is recorded or written, and no finding contains a key."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from tgraph.engine.checks import HealthFinding
from tgraph.errors import EndpointError, ModelError, TgraphError
from tgraph.index.vectors.items import KINDS
from tgraph.index.vectors.stores import vector_store
from tgraph.models.base import Call, ChatReply, ChatRequest
from tgraph.models.client import read_member
from tgraph.models.endpoint import OPENAI_URL, Endpoint
from tgraph.models.json_parsing import read_reply
from tgraph.models.openai import OpenAIChat, OpenAIEmbedder
from tgraph.models.prompts import fill_messages, load_prompt
from tgraph.models.server_capabilities import ServerCapabilities
from tgraph.models.structured_output import strict_schema
from tgraph.models.tokens import count_tokens, encoding_for
from tgraph.settings import EmbeddingSettings, Settings, load_settings
from tgraph.store.folder import GraphFolder
from tgraph.store.snapshot import Snapshot

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

Findings = Iterator[HealthFinding]

_RETRIES = 1
_COUNT = 30
_PASSAGE = "The Brun lighthouse was lit in 1871. Its keepers were Ada Rell and Tom Brook."
_CODE = "KESTREL"
_LEAST_PROBE = 1_000
_REPLY = 1_000
_SLOW = 5.0
_SAME = 0.999
_CONTEXT_NAMES = (
    *("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx"),
)
_SHOWN = 8
_ALWAYS = ("chunk.", "reports.", "summaries.", "graph.")
"""The beginnings of settings that matter whatever mode is asked."""
_LIMIT = re.compile(r"\b(\d{3,7})\b")


def examine_model(root: Path | None, collection: str | None = None) -> Findings:
    """Yield findings about the configured model server; none where the embedded default works.

    A finding that makes further checks pointless comes last."""
    try:
        settings = load_settings(root, {"collection": collection})
    except TgraphError as error:
        yield _bad_finding("settings", error)
        return
    if settings.uses_model():
        yield from ChatCheck(settings).findings()
    else:
        yield HealthFinding(
            "note",
            "chat",
            "the embedded default; there is no server to ask",
            "Set chat.base_url, or OPENAI_API_KEY.",
        )
    if settings.embedding.provider == "openai":
        yield from EmbeddingCheck(settings, _stored_sizes(root, settings)).findings()


def _bad_finding(subject: str, error: TgraphError, remedy: str = "") -> HealthFinding:
    return HealthFinding("bad", subject, error.message, remedy or error.remedy)


# --- what is set ---------------------------------------------------------------------------------


def prompt_budgets(settings: Settings) -> dict[str, int]:
    """Return settings that limit prompt tokens, with their values."""
    budgets = {"chunk.size": settings.chunk.size}
    for section, values in settings:
        if isinstance(values, BaseModel):
            budgets |= {
                f"{section}.{name}": value
                for name, value in values
                if name.startswith("max_") and name.endswith("_tokens") and type(value) is int
                if "output" not in name and section != "chat"
            }
    return budgets


def _longest_usual_prompt(settings: Settings) -> int:
    """Return the token count of the longest prompt: of an index run with reports, or a question
    in default mode."""
    return max(
        settings.chunk.size + _REPLY,
        settings.reports.max_input_tokens,
        settings.graph.max_context_tokens,
    )


def _too_large(settings: Settings, context: int) -> str:
    """Return advice about settings to lower for a context of ``context`` tokens."""
    room = max(_LEAST_PROBE // 2, context - _REPLY)
    names = [name for name, value in prompt_budgets(settings).items() if value > room]
    always = [name for name in names if name.startswith(_ALWAYS)]
    mode_hint = f" ({len(names) - len(always)} more of modes)" if len(names) > len(always) else ""
    return f"set {', '.join(always)}{mode_hint} to at most {room}"


# --- chat ----------------------------------------------------------------------------------------


class _Keepers(BaseModel):
    lighthouse: str
    lit: int
    keepers: list[str]


@dataclass(frozen=True, slots=True)
class _Probe:
    """A test reply with its recorded call, or an error."""

    reply: ChatReply | None
    call: Call | None
    error: ModelError | None
    seconds: float
    pieces: int = 0

    @property
    def finish_reason(self) -> str:
        return str(self.call.reply.get("finish_reason", "")) if self.call else ""

    @property
    def thought(self) -> int:
        """The number of reasoning tokens in the reply."""
        return self.call.usage.reasoning_tokens if self.call else 0


class ChatCheck:
    """A chat server check: at most twelve calls to the configured server, including long
    prompts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        chat = settings.chat
        key = chat.api_key.get_secret_value() if chat.api_key else ""
        self._endpoint = _open_endpoint(chat.base_url, key, settings)
        self._chat = self._chat_client(thinking=chat.thinking == "default")
        self._entry: Any = None

    def _chat_client(self, **form: Any) -> OpenAIChat:
        chat = self._settings.chat
        form = {"structured": chat.structured_output, **form}
        return OpenAIChat(chat.model, self._endpoint, **form)

    def findings(self) -> Findings:
        """Yield findings in check order."""
        with closing(self._endpoint):
            listed, finding = self._list_models()
            yield finding
            if finding.status == "bad":
                return
            probe = self._probe_structure(self._chat)
            if isinstance(probe.error, EndpointError):
                yield self._model_error_finding(probe.error, listed)
                return
            yield self._check_model_name(listed)
            yield from self._check_reply(probe)
            yield from self._check_parameters()
            if probe.error is None:
                yield from self._check_streaming(cut=probe.finish_reason == "length")
                yield from self._check_context() if probe.finish_reason != "length" else ()

    # --- the server and its models ---

    def _list_models(self) -> tuple[list[str], HealthFinding]:
        """Return listed models and a finding about server reachability."""
        url = self._endpoint.url
        try:
            with self._endpoint.open(
                lambda client: client.get("/models", cast_to=object), self._chat.model
            ) as (reply, _):
                rows = read_member(reply, "data")
        except EndpointError as error:
            if "(HTTP 404)" in error.message or "HTTP 405" in error.message:
                return [], HealthFinding("ok", "server", f"{url} answers; it lists no models")
            return [], _bad_finding("server", error)
        except ModelError as error:
            return [], _bad_finding("server", error)
        names = [str(read_member(row, "id")) for row in rows] if isinstance(rows, list) else []
        model_name = self._chat.model
        entries = rows if isinstance(rows, list) else []
        self._entry = next((row for row in entries if read_member(row, "id") == model_name), None)
        return names, HealthFinding(
            "ok", "server", f"{url} answers; models: {_format_names(names)}"
        )

    def _check_model_name(self, listed: Sequence[str]) -> HealthFinding:
        model = self._chat.model
        if not listed or model in listed:
            return HealthFinding("ok", "model", model)
        return HealthFinding("note", "model", f"{model} answers, and the server doesn't list it")

    def _model_error_finding(self, error: EndpointError, listed: Sequence[str]) -> HealthFinding:
        """Return a finding explaining why the model can't be called."""
        if "does not have the model" in error.message and listed:
            return _bad_finding(
                "model", error, f"Set chat.model to one of: {_format_names(listed)}."
            )
        key = error.remedy.replace("OPENAI_API_KEY", "chat.api_key or OPENAI_API_KEY")
        return _bad_finding("model", error, key)

    # --- a structured reply ---

    def _send_request(self, chat: OpenAIChat, request: ChatRequest) -> _Probe:
        calls: list[Call] = []
        started = time.monotonic()
        reply: ChatReply | None = None
        failed: ModelError | None = None
        try:
            reply = chat.complete(request, calls.append)
        except ModelError as error:
            failed = error
        seconds = time.monotonic() - started
        return _Probe(reply, calls[-1] if calls else None, failed, seconds)

    def _build_request(
        self, name: str, values: Mapping[str, str], schema: type[BaseModel] | None = None
    ) -> ChatRequest:
        chat = self._settings.chat
        prompt = load_prompt(name)
        return ChatRequest(
            prompt,
            fill_messages(prompt, values),
            strict_schema(schema) if schema else None,
            max_tokens=chat.max_tokens,
            temperature=chat.temperature,
            seed=chat.seed,
        )

    def _probe_structure(self, chat: OpenAIChat) -> _Probe:
        return self._send_request(
            chat, self._build_request("preflight_structure", {"text": _PASSAGE}, _Keepers)
        )

    def _check_reply(self, probe: _Probe) -> Findings:
        yield from self._check_thinking(probe)
        if probe.finish_reason == "length":
            yield HealthFinding("bad", "length", *self._cut_off())
        elif probe.error is not None:
            yield _bad_finding("reply", probe.error)
        else:
            yield self._check_structured_output(probe)

    def _cut_off(self) -> tuple[str, str]:
        limit = self._settings.chat.max_tokens
        if limit is not None:
            message = f"the reply was cut off at chat.max_tokens = {limit:,}"
            return message, "Raise chat.max_tokens, or unset it."
        return (
            "the server cut the reply off at a limit of its own",
            "Set chat.max_tokens to what replies need, such as 4000, or raise the server's limit.",
        )

    def _check_thinking(self, probe: _Probe) -> Findings:
        """Yield a finding about thinking: token costs and ways to disable it."""
        if not probe.thought:
            return
        nothing = probe.error is not None
        message = f"{probe.thought:,} tokens of thinking before a reply of one line"
        if nothing:
            message = f"thinking took all of the reply: {probe.thought:,} tokens, then nothing"
        yield HealthFinding(
            "bad" if nothing else "note", "thinking", message, self._try_without_thinking(probe)
        )

    def _try_without_thinking(self, probe: _Probe) -> str:
        """Return advice after a test call with thinking disabled."""
        if self._settings.chat.thinking == "off":
            return (
                f"chat.thinking is off, which doesn't help here.{self._advise_more_tokens(probe)}"
            )
        tried = self._probe_structure(self._chat_client(thinking=False))
        if tried.reply is not None and not tried.thought:
            return "Set chat.thinking to off: that was tried, and it replies without."
        return f"chat.thinking = off was tried and doesn't help.{self._advise_more_tokens(probe)}"

    def _advise_more_tokens(self, probe: _Probe) -> str:
        """Return advice to raise ``chat.max_tokens`` if thinking left no room for a reply,
        otherwise an empty string."""
        if probe.error is None:
            return ""
        return f" {'Raise' if self._settings.chat.max_tokens else 'Set'} chat.max_tokens."

    def _check_structured_output(self, probe: _Probe) -> HealthFinding:
        assert probe.reply is not None
        wanted_format, used = self._settings.chat.structured_output, self._chat.dialect.format
        sent = (probe.call.request.get("response_format") or {}) if probe.call else {}
        form = sent.get("type", "none")
        read = read_reply(probe.reply.text, _Keepers)
        if isinstance(read, str):
            return self._check_prompt_structure(form, read)
        if form != wanted_format:
            return HealthFinding(
                "note",
                "structured output",
                f"{wanted_format} is refused; replies are asked for by {form}",
                f"Set chat.structured_output to {form}: it spares each run the refused call.",
            )
        if read.repaired or used != wanted_format:
            return HealthFinding(
                "note",
                "structured output",
                f"{form} is taken and not kept to: JSON came within other text",
                "Set chat.structured_output to none, or use a larger model.",
            )
        return HealthFinding("ok", "structured output", f"by {form}")

    def _check_prompt_structure(self, form: str, why: str) -> HealthFinding:
        """Return a finding about structured output requested by prompt alone."""
        if form != "none":
            by_prompt = self._probe_structure(self._chat_client(structured="none"))
            text = by_prompt.reply.text if by_prompt.reply else ""
            if not isinstance(read_reply(text, _Keepers), str):
                return HealthFinding(
                    "bad",
                    "structured output",
                    f"{form} is taken and ignored: {why}",
                    "Set chat.structured_output to none: that was tried, and the prompt's own words"
                    " are kept to.",
                )
        return HealthFinding(
            "bad",
            "structured output",
            f"the reply is not what was asked for: {why}",
            "Use a larger model, or a server that supports structured output.",
        )

    def _check_parameters(self) -> Findings:
        """Yield a finding about parameters that the server refused, except the response format."""
        chat, dialect = self._settings.chat, self._chat.dialect
        full = ServerCapabilities(
            dialect.format, effort=chat.thinking == "off", template=chat.thinking == "off"
        )
        names = {
            "limit": "max_tokens",
            "temperature": "temperature (chat.temperature has no effect)",
            "seed": "seed (chat.seed has no effect)",
            "effort": "reasoning_effort",
            "template": "chat_template_kwargs",
        }
        refused = [
            description
            for name, description in names.items()
            if getattr(dialect, name) != getattr(full, name)
        ]
        if refused:
            yield HealthFinding("note", "parameters", f"refused and left out: {', '.join(refused)}")

    # --- a stream ---

    def _check_streaming(self, *, cut: bool) -> Findings:
        request = self._build_request("preflight_stream", {"count": str(_COUNT)})
        probe = self._probe_stream(request)
        if probe.error is not None:
            yield _bad_finding("streaming", probe.error, probe.error.remedy or _NO_STREAM)
            return
        if probe.finish_reason == "length" and not cut:
            yield HealthFinding("bad", "length", *self._cut_off())
        if probe.pieces > 1:
            yield HealthFinding("ok", "streaming", f"{probe.pieces} pieces")
        else:
            message = "the reply comes in one piece, at its end"
            yield HealthFinding("note", "streaming", message, _NO_STREAM)
        yield from self._check_usage(probe)

    def _probe_stream(self, request: ChatRequest) -> _Probe:
        calls: list[Call] = []
        started, first, pieces = time.monotonic(), 0.0, 0
        failed: ModelError | None = None
        try:
            for _ in self._chat.stream(request, calls.append):
                first = first or time.monotonic()
                pieces += 1
        except ModelError as error:
            failed = error
        total_seconds = time.monotonic() - started
        writing = time.monotonic() - first if pieces > 1 else total_seconds
        return _Probe(None, calls[-1] if calls else None, failed, max(writing, 1e-6), pieces)

    def _check_usage(self, probe: _Probe) -> Findings:
        """Yield findings about token counts and generation speed."""
        if probe.call is None:
            return
        counted = probe.call.reply.get("usage") or {}
        if counted.get("estimated"):
            message = "the server reports none: tokens are counted here, and marked as estimated"
            yield HealthFinding("note", "usage", message)
        else:
            yield HealthFinding("ok", "usage", "the server counts tokens")
        reply_tokens = max(1, probe.call.usage.output_tokens - probe.thought)
        yield self._check_speed(reply_tokens / probe.seconds)

    def _check_speed(self, rate: float) -> HealthFinding:
        settings = self._settings
        rate_text = (
            f"about {rate:,.0f} tokens a second" if rate >= 1 else f"{rate:.2f} tokens a second"
        )
        longest = settings.reports.max_output_tokens / rate
        if longest > settings.chat.timeout:
            return HealthFinding(
                "bad",
                "speed",
                f"{rate_text}: a report may take {longest:,.0f} s, and chat.timeout is"
                f" {settings.chat.timeout:g}",
                f"Set chat.timeout to {longest * 2:.0f} or more, or lower"
                " reports.max_output_tokens.",
            )
        if rate < _SLOW:
            remedy = "Use a smaller model, or extract.method = fast, which asks for less."
            return HealthFinding("note", "speed", f"{rate_text}: slow", remedy)
        return HealthFinding("ok", "speed", rate_text)

    # --- the context ---

    @cached_property
    def _token_encoding(self) -> str:
        return encoding_for(self._chat.model)

    def _check_context(self) -> Findings:
        needed = _longest_usual_prompt(self._settings)
        if server_context := _stated_context(self._entry):
            yield self._context_of(server_context, needed, "the server says")
            return
        size, problem = needed, ""
        while size >= _LEAST_PROBE:
            probe, sent = self._probe_context(size)
            if isinstance(probe.error, EndpointError):
                yield _bad_finding("context", probe.error)
                return
            why, limit = _explain_unread_prompt(probe, sent)
            if not why:
                break
            problem = problem or why
            size = limit if limit < size else size // 2
        if not problem:
            yield HealthFinding("ok", "context", f"a prompt of {needed:,} tokens is read")
            return
        read = f"{size:,} are read" if size >= _LEAST_PROBE else "nor are fewer"
        lower = _too_large(self._settings, size)
        remedy = f"Give the server a larger context ({_SERVERS}), or {lower}."
        yield HealthFinding("bad", "context", f"{problem}; {read}", remedy)

    def _context_of(self, context: int, wanted: int, who: str) -> HealthFinding:
        context_text = f"{who}: {context:,} tokens"
        if context >= wanted + _REPLY:
            return HealthFinding("ok", "context", context_text)
        lower = _too_large(self._settings, context)
        remedy = f"Give the server a larger context ({_SERVERS}), or {lower}."
        return HealthFinding(
            "bad", "context", f"{context_text}; prompts may have {wanted:,} and their reply", remedy
        )

    def _probe_context(self, size: int) -> tuple[_Probe, int]:
        """Return the reply to a prompt of about ``size`` tokens, and the prompt's token count."""
        line = "{:05d} is a line of a long list that says nothing of interest."
        line_tokens = count_tokens(line.format(10_000) + "\n", self._token_encoding)
        filler = "\n".join(line.format(number) for number in range(max(1, size // line_tokens)))
        request = self._build_request("preflight_context", {"code": _CODE, "filler": filler})
        sent = sum(count_tokens(m["content"], self._token_encoding) for m in request.messages)
        return self._send_request(self._chat, request), sent


_NO_STREAM = "`tgraph ask` streams: look for a setting of the server, or of a proxy before it."
_SERVERS = "llama.cpp: -c; Ollama: OLLAMA_CONTEXT_LENGTH; vLLM: --max-model-len"


def _stated_context(entry: Any) -> int | None:
    """Return the context size of a model entry in the server's model list."""
    for place in (entry, read_member(entry, "meta"), read_member(entry, "top_provider")):
        for name in _CONTEXT_NAMES:
            value = read_member(place, name)
            if type(value) is int and value > 0:
                return value
    return None


def _explain_unread_prompt(probe: _Probe, sent: int) -> tuple[str, int]:
    """Return the reason for an incompletely read prompt (an empty string if complete) and the
    estimated number of tokens read."""
    if probe.error is not None:
        refused = "longer than" in probe.error.message
        why = f"of a prompt of {sent:,} tokens: {probe.error.message.rstrip('.')}"
        return (why, _limit_in(probe.error.message, sent)) if refused else ("", sent)
    assert probe.reply is not None
    counted = probe.reply.usage.input_tokens
    if _CODE.lower() in probe.reply.text.lower():
        return "", sent
    if counted < 0.7 * sent:
        why = f"of a prompt of {sent:,} tokens the server reads {counted:,}, without a word"
        return why, counted - _LEAST_PROBE // 2
    return f"of a prompt of {sent:,} tokens the beginning is not found again", sent


def _limit_in(said: str, sent: int) -> int:
    """Return a prompt size within the limit in a refusal message, or ``sent`` without a limit."""
    numbers = [int(number) for number in _LIMIT.findall(said)]
    room = [number - _LEAST_PROBE // 2 for number in numbers if _LEAST_PROBE <= number < sent]
    return min(room, default=sent)


def _format_names(names: Sequence[str]) -> str:
    name_list = ", ".join(names[:_SHOWN])
    return f"{name_list}, …" if len(names) > _SHOWN else name_list or "none"


def _open_endpoint(url: str | None, key: str, settings: Settings) -> Endpoint:
    chat = settings.chat
    return Endpoint(url or OPENAI_URL, key, timeout=chat.timeout, retries=_RETRIES)


# --- embeddings ----------------------------------------------------------------------------------


class EmbeddingCheck:
    """A check of the configured embedding server; ``stored`` holds vector sizes of the graph."""

    def __init__(self, settings: Settings, stored: Mapping[str, int]) -> None:
        chat, embedding = settings.chat, settings.embedding
        secret = embedding.api_key or chat.api_key
        key = secret.get_secret_value() if secret else ""
        self._own: EmbeddingSettings = embedding
        self._stored = stored
        self._endpoint = _open_endpoint(embedding.base_url or chat.base_url, key, settings)
        self._embedder = OpenAIEmbedder(
            embedding.model, self._endpoint, batch_size=embedding.batch_size
        )

    def findings(self) -> Findings:
        """Yield findings about the embedding server."""
        with closing(self._endpoint):
            try:
                single, many = self._embed_twice()
            except ModelError as error:
                yield _bad_finding("embeddings", error, self._embedding_remedy(error))
                return
        likeness = float((single[0] * many[0]).sum())
        if likeness < _SAME:
            message = f"the same text has two vectors (likeness {likeness:.3f})"
            remedy = "Use a server whose vectors don't change from call to call (embedding.model)."
            yield HealthFinding("bad", "embeddings", message, remedy)
        else:
            message = f"{self._own.model}, {len(many)} texts a call"
            yield HealthFinding("ok", "embeddings", message)
        yield self._check_vector_size(int(single.shape[1]))

    def _embed_twice(self) -> tuple[NDArray[float32], NDArray[float32]]:
        text = "A lighthouse is kept by its keepers."
        batch = [text, *(f"Line {n} of a list." for n in range(self._own.batch_size - 1))]
        return self._embedder.embed([text]), self._embedder.embed(batch)

    def _embedding_remedy(self, error: ModelError) -> str:
        if "There is nothing OpenAI-compatible" in error.message:
            return (
                "The server has no embeddings: set embedding.base_url to one that has, or"
                " embedding.provider to embedded."
            )
        if "changed its dimension" in error.message:
            return "Use a server whose vectors have one size (embedding.base_url, embedding.model)."
        if "refused the request" in error.message:
            return f"Lower embedding.batch_size ({self._own.batch_size}), or see embedding.model."
        return error.remedy.replace("OPENAI_API_KEY", "embedding.api_key or OPENAI_API_KEY")

    def _check_vector_size(self, size: int) -> HealthFinding:
        differing = {kind: stored for kind, stored in self._stored.items() if stored != size}
        if not differing:
            return HealthFinding("ok", "embedding size", f"{size:,} numbers")
        kinds = ", ".join(f"{kind} vectors have {stored:,}" for kind, stored in differing.items())
        return HealthFinding(
            "bad",
            "embedding size",
            f"{size:,} numbers, and the graph's {kinds}",
            "Set embedding.model to the one that the graph was indexed with, or run `tgraph index`,"
            " which embeds anew.",
        )


def _stored_sizes(root: Path | None, settings: Settings) -> dict[str, int]:
    """Return sizes of stored graph vectors by kind."""
    sizes: dict[str, int] = {}
    if root is None:
        return sizes
    with suppress(TgraphError):
        snapshot = Snapshot.open(GraphFolder.open(root).collection(settings.collection))
        if snapshot is None:
            return sizes
        with closing(snapshot):
            for kind in KINDS:
                with suppress(TgraphError):
                    vectors = vector_store(settings.vectors.store).open_vectors(
                        snapshot.vectors, kind
                    )
                    sizes |= {kind: vectors.dimension} if len(vectors) else {}
    return sizes
