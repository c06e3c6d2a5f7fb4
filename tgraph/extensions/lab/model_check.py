"""Five probes of a model server, which suggest settings for failures (``tgraph doctor --model``).

Nothing is recorded or written, and no finding contains a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tgraph.engine.checks import HealthFinding, Status
from tgraph.errors import EndpointError, ModelError, RefusedPromptError, TgraphError
from tgraph.index.vectors.items import KINDS
from tgraph.index.vectors.stores import vector_store
from tgraph.models.base import Call, ChatRequest
from tgraph.models.client import read_member
from tgraph.models.endpoint import OPENAI_URL, Endpoint
from tgraph.models.json_parsing import read_reply
from tgraph.models.openai import OpenAIChat, OpenAIEmbedder
from tgraph.models.prompts import fill_messages, load_prompt
from tgraph.models.structured_output import strict_schema
from tgraph.models.tokens import count_tokens, encoding_for
from tgraph.settings import REPLY_LIMIT, Settings, load_settings
from tgraph.store.folder import GraphFolder
from tgraph.store.snapshot import Snapshot

HealthFindings = Iterator[HealthFinding]

_RETRIES = 1
_LINES = 30
_PASSAGE = "The Brun lighthouse was lit in 1871. Its keepers were Ada Rell and Tom Brook."
_CODE = "KESTREL"
_LEAST_CONTEXT = 1_000
_REPLY = 1_000
_SAME = 0.999
_CONTEXT_NAMES = (
    *("max_model_len", "context_length", "context_window", "max_context_length", "n_ctx"),
)
_SHOWN = 8
_ALWAYS = ("chunk.", "reports.", "summaries.", "graph.")
"""The beginnings of settings that matter whatever mode is asked."""
_NUMBER = re.compile(r"\b(\d{3,7})\b")
_NO_STREAM = "`tgraph ask` streams: look for a setting of the server, or of a proxy before it."
_SERVERS = "llama.cpp: -c; Ollama: OLLAMA_CONTEXT_LENGTH; vLLM: --max-model-len"


def examine_model(root: Path | None, collection: str | None = None) -> HealthFindings:
    """Yield findings about the configured model server, one for each probe; none where the embedded
    default works. A finding that makes further probes pointless comes last."""
    try:
        settings = load_settings(root, {"collection": collection})
    except TgraphError as error:
        yield HealthFinding.of_error("settings", error)
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
        yield _check_embeddings(settings, _stored_sizes(root, settings))


def _open_endpoint(url: str | None, key: str, settings: Settings) -> Endpoint:
    return Endpoint(url or OPENAI_URL, key, timeout=settings.chat.timeout, retries=_RETRIES)


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


# --- chat ----------------------------------------------------------------------------------------


class _Keepers(BaseModel):
    lighthouse: str
    lit: int
    keepers: list[str]


@dataclass(frozen=True, slots=True)
class _Probe:
    """The text of a reply with its pieces and recorded call, or an error."""

    text: str
    pieces: int
    call: Call | None
    error: ModelError | None

    @property
    def is_cut_off(self) -> bool:
        return self.call is not None and self.call.reply.get("finish_reason") == "length"

    @property
    def reasoning_tokens(self) -> int:
        return self.call.usage.reasoning_tokens if self.call else 0


class ChatCheck:
    """The probes of a chat server: at most four calls, one of them with a long prompt."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        chat = settings.chat
        key = chat.api_key.get_secret_value() if chat.api_key else ""
        self._endpoint = _open_endpoint(chat.base_url, key, settings)
        self._chat = OpenAIChat(
            chat.model,
            self._endpoint,
            structured=chat.structured_output,
            thinking=chat.thinking == "default",
            max_tokens=REPLY_LIMIT,
        )

    def findings(self) -> HealthFindings:
        """Yield findings in the order of the probes."""
        with closing(self._endpoint):
            try:
                models = self._list_models()
            except ModelError as error:
                yield HealthFinding.of_error("model", error)
                return
            request = self._build_request("preflight_structure", {"text": _PASSAGE}, _Keepers)
            probe = self._send_request(request)
            model_finding = self._check_model(models, probe)
            yield model_finding
            if model_finding.status == "bad":
                return
            yield self._check_structured_output(probe)
            if probe.error is None:
                yield self._check_streaming()
                yield self._check_context(models.get(self._chat.model))

    def _list_models(self) -> dict[str, Any]:
        """Return the server's entries by model name, none where the server lists no models."""
        try:
            with self._endpoint.open(
                lambda client: client.get("/models", cast_to=object), self._chat.model
            ) as (reply, _):
                rows = read_member(reply, "data")
        except EndpointError as error:
            if "(HTTP 404)" in error.message or "HTTP 405" in error.message:
                return {}
            raise
        entries = rows if isinstance(rows, list) else []
        return {str(read_member(entry, "id")): entry for entry in entries}

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

    def _send_request(self, request: ChatRequest, *, stream: bool = False) -> _Probe:
        calls: list[Call] = []
        pieces: list[str] = []
        failure: ModelError | None = None
        try:
            if stream:
                pieces.extend(self._chat.stream(request, calls.append))
            else:
                pieces.append(self._chat.complete(request, calls.append).text)
        except ModelError as error:
            failure = error
        return _Probe("".join(pieces), len(pieces), calls[-1] if calls else None, failure)

    def _check_model(self, models: Mapping[str, Any], probe: _Probe) -> HealthFinding:
        """Return a finding about server, key and name of the model."""
        model, names = self._chat.model, _format_names(list(models))
        if isinstance(error := probe.error, EndpointError):
            if "does not have the model" in error.message and models:
                return HealthFinding.of_error("model", error, f"Set chat.model to one of: {names}.")
            remedy = error.remedy.replace("OPENAI_API_KEY", "chat.api_key or OPENAI_API_KEY")
            return HealthFinding.of_error("model", error, remedy)
        if models and model not in models:
            detail = f"{model} answers, and the server doesn't list it; models: {names}"
            return HealthFinding("note", "model", detail)
        return HealthFinding("ok", "model", f"{model} answers at {self._endpoint.url}")

    def _check_structured_output(self, probe: _Probe) -> HealthFinding:
        status, detail, remedy = self._judge_structure(probe)
        thoughts = probe.reasoning_tokens
        if thoughts and probe.error is None:
            detail = f"{detail}; {thoughts:,} tokens of thinking before it"
            remedy = remedy or "chat.thinking = off spares them where the server can."
            status = "note" if status == "ok" else status
        return HealthFinding(status, "structured output", detail, remedy)

    def _judge_structure(self, probe: _Probe) -> tuple[Status, str, str]:
        """Return status, detail and remedy for the reply to a prompt with a schema."""
        limit, thoughts = self._settings.chat.max_tokens, probe.reasoning_tokens
        raise_limit = f"{'Raise' if limit else 'Set'} chat.max_tokens"
        if thoughts and probe.error is not None:
            off = "" if self._settings.chat.thinking == "off" else "Set chat.thinking to off. "
            detail = f"thinking took all of the reply: {thoughts:,} tokens, then nothing"
            return "bad", detail, f"{off}{raise_limit}."
        if probe.is_cut_off:
            at = f"chat.max_tokens = {limit:,}" if limit else "a limit of the server's own"
            return "bad", f"the reply was cut off at {at}", f"{raise_limit} or the server's limit."
        if probe.error is not None:
            return "bad", probe.error.message, probe.error.remedy
        wanted, used = self._settings.chat.structured_output, self._chat.dialect.format
        sent = (probe.call.request.get("response_format") or {}) if probe.call else {}
        form = sent.get("type", "none")
        result = read_reply(probe.text, _Keepers)
        if isinstance(result, str):
            remedy = "Use a larger model, or a server that supports structured output."
            if form != "none":
                remedy = f"Set chat.structured_output to none; if that is no better: {remedy}"
            return "bad", f"the reply is not what was asked for by {form}: {result}", remedy
        if form != wanted:
            detail = f"{wanted} is refused; replies are asked for by {form}"
            remedy = f"Set chat.structured_output to {form}: it spares each run the refused call."
            return "note", detail, remedy
        if result.repaired or used != wanted:
            detail = f"{form} is taken and not kept to: JSON came within other text"
            return "note", detail, "Set chat.structured_output to none, or use a larger model."
        return "ok", f"by {form}", ""

    def _check_streaming(self) -> HealthFinding:
        request = self._build_request("preflight_stream", {"count": str(_LINES)})
        probe = self._send_request(request, stream=True)
        if probe.error is not None:
            return HealthFinding.of_error(
                "streaming", probe.error, probe.error.remedy or _NO_STREAM
            )
        if probe.pieces <= 1:
            detail = "the reply comes in one piece, at its end"
            return HealthFinding("note", "streaming", detail, _NO_STREAM)
        usage = (probe.call.reply.get("usage") or {}) if probe.call else {}
        if usage.get("estimated"):
            detail = f"{probe.pieces} pieces; the server reports no tokens: they are estimated here"
            return HealthFinding("note", "streaming", detail)
        return HealthFinding("ok", "streaming", f"{probe.pieces} pieces; the server counts tokens")

    def _check_context(self, entry: Any) -> HealthFinding:
        """Return a finding about the longest usual prompt: of an index run with reports, or of a
        question in default mode."""
        settings = self._settings
        needed = max(
            settings.chunk.size + _REPLY,
            settings.reports.max_input_tokens,
            settings.graph.max_context_tokens,
        )
        if context := _stated_context(entry):
            detail = f"the server says: {context:,} tokens"
            if context >= needed + _REPLY:
                return HealthFinding("ok", "context", detail)
            detail += f"; prompts may have {needed:,} and their reply"
            return self._context_finding(detail, context)
        probe, sent = self._probe_context(needed)
        if probe.error is not None:
            if not isinstance(probe.error, RefusedPromptError):
                return HealthFinding.of_error("context", probe.error)
            numbers = [int(number) for number in _NUMBER.findall(probe.error.message)]
            limits = [number for number in numbers if _LEAST_CONTEXT <= number < sent]
            reason = probe.error.message.rstrip(".")
            detail = f"of a prompt of {sent:,} tokens: {reason}"
            return self._context_finding(detail, min(limits, default=sent // 2))
        if _CODE.lower() in probe.text.lower():
            return HealthFinding("ok", "context", f"a prompt of {needed:,} tokens is read")
        counted = probe.call.usage.input_tokens if probe.call else sent
        if counted < 0.7 * sent:
            detail = f"of a prompt of {sent:,} tokens the server reads {counted:,}, without a word"
            return self._context_finding(detail, counted)
        detail = f"of a prompt of {sent:,} tokens the beginning is not found again"
        return self._context_finding(detail, sent // 2)

    def _context_finding(self, detail: str, context: int) -> HealthFinding:
        """Return a finding that names the settings to lower for a context of ``context`` tokens."""
        room = max(_LEAST_CONTEXT // 2, context - _REPLY)
        names = [name for name, value in prompt_budgets(self._settings).items() if value > room]
        always = [name for name in names if name.startswith(_ALWAYS)]
        of_modes = len(names) - len(always)
        mode_hint = f" ({of_modes} more of modes)" if of_modes else ""
        lower = f"set {', '.join(always)}{mode_hint} to at most {room}"
        remedy = f"Give the server a larger context ({_SERVERS}), or {lower}."
        return HealthFinding("bad", "context", detail, remedy)

    def _probe_context(self, size: int) -> tuple[_Probe, int]:
        """Return the reply to a prompt of about ``size`` tokens, and the prompt's token count."""
        encoding = encoding_for(self._chat.model)
        line = "{:05d} is a line of a long list that says nothing of interest."
        line_tokens = count_tokens(line.format(10_000) + "\n", encoding)
        filler = "\n".join(line.format(number) for number in range(max(1, size // line_tokens)))
        request = self._build_request("preflight_context", {"code": _CODE, "filler": filler})
        sent = sum(count_tokens(m["content"], encoding) for m in request.messages)
        return self._send_request(request), sent


def _stated_context(entry: Any) -> int | None:
    """Return the context size of a model entry in the server's model list."""
    for place in (entry, read_member(entry, "meta"), read_member(entry, "top_provider")):
        for name in _CONTEXT_NAMES:
            value = read_member(place, name)
            if type(value) is int and value > 0:
                return value
    return None


def _format_names(names: Sequence[str]) -> str:
    name_list = ", ".join(names[:_SHOWN])
    return f"{name_list}, …" if len(names) > _SHOWN else name_list or "none"


# --- embeddings ----------------------------------------------------------------------------------


def _check_embeddings(settings: Settings, stored: Mapping[str, int]) -> HealthFinding:
    """Return a finding about vectors of the same text, alone and in a batch, and about their size;
    ``stored`` holds vector sizes of the graph."""
    chat, embedding = settings.chat, settings.embedding
    secret = embedding.api_key or chat.api_key
    key = secret.get_secret_value() if secret else ""
    text = "A lighthouse is kept by its keepers."
    batch = [text, *(f"Line {n} of a list." for n in range(embedding.batch_size - 1))]
    with closing(_open_endpoint(embedding.base_url or chat.base_url, key, settings)) as endpoint:
        embedder = OpenAIEmbedder(embedding.model, endpoint, batch_size=embedding.batch_size)
        try:
            single, many = embedder.embed([text]), embedder.embed(batch)
        except ModelError as error:
            remedy = _advise_embeddings(error, embedding.batch_size)
            return HealthFinding.of_error("embeddings", error, remedy)
    size, likeness = int(single.shape[1]), float((single[0] * many[0]).sum())
    if likeness < _SAME:
        detail = f"the same text has two vectors (likeness {likeness:.3f})"
        remedy = "Use a server whose vectors don't change from call to call (embedding.model)."
        return HealthFinding("bad", "embeddings", detail, remedy)
    if differing := {kind: number for kind, number in stored.items() if number != size}:
        kinds = ", ".join(f"{kind} vectors have {number:,}" for kind, number in differing.items())
        return HealthFinding(
            "bad",
            "embeddings",
            f"{size:,} numbers, and the graph's {kinds}",
            "Set embedding.model to the one that the graph was indexed with, or run `tgraph index`,"
            " which embeds anew.",
        )
    detail = f"{embedding.model}, {len(many)} texts a call, {size:,} numbers"
    return HealthFinding("ok", "embeddings", detail)


def _advise_embeddings(error: ModelError, batch_size: int) -> str:
    if "There is nothing OpenAI-compatible" in error.message:
        return (
            "The server has no embeddings: set embedding.base_url to one that has, or"
            " embedding.provider to embedded."
        )
    if "changed its dimension" in error.message:
        return "Use a server whose vectors have one size (embedding.base_url, embedding.model)."
    if "refused the request" in error.message:
        return f"Lower embedding.batch_size ({batch_size}), or see embedding.model."
    return error.remedy.replace("OPENAI_API_KEY", "embedding.api_key or OPENAI_API_KEY")


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
