"""What a span says of a call or a retrieval, by OpenTelemetry's conventions for generative AI and
by OpenInference's. Without ``content`` nothing of a question or a text is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openinference.semconv.trace import (
    DocumentAttributes,
    EmbeddingAttributes,
    MessageAttributes,
    OpenInferenceMimeTypeValues,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

from tgraph import vocabulary as v
from tgraph.model import Candidate, Edge, Retrieval
from tgraph.models.base import Call, canonical_json
from tgraph.store.statements import Pair

Attributes = dict[str, str | int | float | bool | Sequence[str]]
Kind = OpenInferenceSpanKindValues

IRI = "tgraph.prov.iri"
"""The IRI of the activity that the span is of."""
WITHIN = "tgraph.prov.within"
"""The IRI of the session or run that it belongs to."""
TYPE = "tgraph.prov.type"
"""The class of the activity, without its namespace."""
PHASE = "tgraph.phase"
STATUS = "tgraph.status"
RECORDED = "tgraph.recorded"
"""Whether the record says when it ended: not of an index run that changed or published nothing."""

MOST_DOCUMENTS = 25
MOST_TEXTS = 60
"""A span keeps 128 attributes unless told otherwise, and forgets the first of more."""

_CALLS = {
    "chat": (Kind.LLM, "chat", SpanAttributes.LLM_MODEL_NAME),
    "embedding": (Kind.EMBEDDING, "embeddings", SpanAttributes.EMBEDDING_MODEL_NAME),
    "rerank": (Kind.RERANKER, "rerank", RerankerAttributes.RERANKER_MODEL_NAME),
    "reading": (Kind.CHAIN, "reading", ""),
    "support": (Kind.EVALUATOR, "support", ""),
}
"""By the kind of a call: of what kind its span is, what is done, where its model is named."""

_KINDS = {
    "EntityMatching": Kind.RETRIEVER,
    "Reading": Kind.RERANKER,
    "Evaluation": Kind.EVALUATOR,
    "Verification": Kind.EVALUATOR,
    "InfluenceAnalysis": Kind.EVALUATOR,
}
_COUNTS = {
    v.tg("generation"): "tgraph.generation",
    v.tg("mode"): "tgraph.mode",
    v.tg("inToken"): "tgraph.usage.input_tokens",
    v.tg("outToken"): "tgraph.usage.output_tokens",
    v.tg("reasoningToken"): "tgraph.usage.reasoning_tokens",
    v.tg("callCount"): "tgraph.usage.calls",
}
_CONTENT = {v.tg("query"): SpanAttributes.INPUT_VALUE, v.tg("collection"): "tgraph.collection"}


def kind_of(activity: str) -> Kind:
    """The kind of span for an activity of the class; a retrieval is known by what it finds."""
    return _KINDS.get(activity, Kind.CHAIN)


def of_kind(kind: Kind) -> Attributes:
    return {SpanAttributes.OPENINFERENCE_SPAN_KIND: kind.value}


def stated(said: Iterable[Pair], *, content: bool) -> Attributes:
    """What of what was stated belongs into a span."""
    names = {**_COUNTS, **(_CONTENT if content else {})}
    return {
        names[predicate]: value
        for predicate, value in said
        if predicate in names and isinstance(value, str | int | float)
    }


def call_name(call: Call) -> str:
    """What is done, and by which model."""
    return f"{_CALLS[call.kind][1]} {call.agent.name}"


def call_attributes(call: Call, *, content: bool) -> Attributes:
    """All that a span says of a call."""
    kind, operation, named = _CALLS[call.kind]
    found: Attributes = {
        **of_kind(kind),
        gen_ai.GEN_AI_OPERATION_NAME: operation,
        gen_ai.GEN_AI_PROVIDER_NAME: call.agent.provider or "tgraph",
        gen_ai.GEN_AI_REQUEST_MODEL: call.agent.name,
        "tgraph.call.cached": call.cached,
        "tgraph.call.occurrence": call.occurrence,
        **_usage(call),
    }
    if named:
        found[named] = call.agent.name
    if call.prompt:
        found["gen_ai.prompt.name"] = call.prompt.name
        found["tgraph.prompt.iri"] = call.prompt.iri
    if isinstance(reason := call.reply.get("finish_reason"), str):
        found[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = [reason]
    return {**found, **_content(call)} if content else found


def _usage(call: Call) -> Attributes:
    """Tokens under the names of both conventions."""
    usage = call.usage
    found: Attributes = {gen_ai.GEN_AI_USAGE_INPUT_TOKENS: usage.input_tokens}
    if call.kind != "chat":
        return found
    found |= {
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output_tokens,
        SpanAttributes.LLM_PROVIDER: call.agent.provider or "tgraph",
        SpanAttributes.LLM_TOKEN_COUNT_PROMPT: usage.input_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: usage.output_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_TOTAL: usage.input_tokens + usage.output_tokens,
    }
    if usage.reasoning_tokens:
        found[SpanAttributes.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING] = usage.reasoning_tokens
    return found


def _content(call: Call) -> Attributes:
    """What was asked and what came back, as far as it is text."""
    request, reply = call.request, call.reply
    if call.kind == "chat":
        return _chat(request, reply)
    if call.kind == "embedding":
        return _numbered(
            SpanAttributes.EMBEDDING_EMBEDDINGS,
            [{EmbeddingAttributes.EMBEDDING_TEXT: text} for text in request.get("input", ())],
            MOST_TEXTS,
        )
    if call.kind == "rerank":
        texts = [{DocumentAttributes.DOCUMENT_CONTENT: t} for t in request.get("documents", ())]
        listed = _numbered(RerankerAttributes.RERANKER_INPUT_DOCUMENTS, texts, MOST_TEXTS)
        return {RerankerAttributes.RERANKER_QUERY: str(request.get("query", "")), **listed}
    return {**_json("input", request), **_json("output", reply)}


def _chat(request: Mapping[str, Any], reply: Mapping[str, Any]) -> Attributes:
    asked = [_message(m["role"], m["content"]) for m in request.get("messages", ())]
    said = [_message("assistant", reply["text"])] if reply.get("text") else []
    how = {name: value for name, value in request.items() if name != "messages"}
    return {
        SpanAttributes.LLM_INVOCATION_PARAMETERS: canonical_json(how),
        **_numbered(SpanAttributes.LLM_INPUT_MESSAGES, asked, MOST_DOCUMENTS),
        **_numbered(SpanAttributes.LLM_OUTPUT_MESSAGES, said, MOST_DOCUMENTS),
    }


def _message(role: str, content: object) -> Attributes:
    text = content if isinstance(content, str) else canonical_json(content)
    return {MessageAttributes.MESSAGE_ROLE: role, MessageAttributes.MESSAGE_CONTENT: text}


def _json(side: str, value: object) -> Attributes:
    mime = OpenInferenceMimeTypeValues.JSON.value
    return {f"{side}.value": canonical_json(value), f"{side}.mime_type": mime}


def _numbered(name: str, rows: Sequence[Attributes], most: int) -> Attributes:
    """The rows as OpenInference lists them, the first ``most``."""
    return {
        f"{name}.{index}.{key}": value
        for index, row in enumerate(rows[:most])
        for key, value in row.items()
    }


def retrieval_attributes(retrieval: Retrieval, *, content: bool) -> Attributes:
    """How much was retrieved; with content also what came first."""
    found: Attributes = {
        "tgraph.retrieval.edges": retrieval.total,
        "tgraph.retrieval.items": retrieval.items,
        "tgraph.retrieval.candidates": len(retrieval.candidates),
    }
    return {**found, **documents(retrieval.candidates)} if content else found


def documents(candidates: Sequence[Candidate]) -> Attributes:
    """The candidates as documents: their IRIs, scores and texts."""
    rows = [_document(candidate) for candidate in candidates[:MOST_DOCUMENTS]]
    return _numbered(SpanAttributes.RETRIEVAL_DOCUMENTS, rows, MOST_DOCUMENTS)


def _document(candidate: Candidate) -> Attributes:
    item = candidate.item
    text = " ".join(item.labels) if isinstance(item, Edge) else item.text
    return {
        DocumentAttributes.DOCUMENT_ID: item.iri,
        DocumentAttributes.DOCUMENT_SCORE: float(candidate.score),
        DocumentAttributes.DOCUMENT_CONTENT: text,
    }
