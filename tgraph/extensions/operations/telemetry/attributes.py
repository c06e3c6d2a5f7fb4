"""Span attributes for calls and retrievals, following OpenTelemetry generative AI and
OpenInference conventions.

Without ``content``, attributes contain no question or document text."""

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
    """Return the span kind of an activity class; retrievals are recognised by their results."""
    return _KINDS.get(activity, Kind.CHAIN)


def of_kind(kind: Kind) -> Attributes:
    return {SpanAttributes.OPENINFERENCE_SPAN_KIND: kind.value}


def statement_attributes(said: Iterable[Pair], *, content: bool) -> Attributes:
    """Return recorded statements suitable as span attributes."""
    names = {**_COUNTS, **(_CONTENT if content else {})}
    return {
        names[predicate]: value
        for predicate, value in said
        if predicate in names and isinstance(value, str | int | float)
    }


def call_name(call: Call) -> str:
    """Return a call name: operation plus model name."""
    return f"{_CALLS[call.kind][1]} {call.agent.name}"


def call_attributes(call: Call, *, content: bool) -> Attributes:
    """Return call attributes for a span."""
    kind, operation, name_attribute = _CALLS[call.kind]
    attributes: Attributes = {
        **of_kind(kind),
        gen_ai.GEN_AI_OPERATION_NAME: operation,
        gen_ai.GEN_AI_PROVIDER_NAME: call.agent.provider or "tgraph",
        gen_ai.GEN_AI_REQUEST_MODEL: call.agent.name,
        "tgraph.call.cached": call.cached,
        "tgraph.call.occurrence": call.occurrence,
        **_usage_attributes(call),
    }
    if name_attribute:
        attributes[name_attribute] = call.agent.name
    if call.prompt:
        attributes["gen_ai.prompt.name"] = call.prompt.name
        attributes["tgraph.prompt.iri"] = call.prompt.iri
    if isinstance(reason := call.reply.get("finish_reason"), str):
        attributes[gen_ai.GEN_AI_RESPONSE_FINISH_REASONS] = [reason]
    return {**attributes, **_content_attributes(call)} if content else attributes


def _usage_attributes(call: Call) -> Attributes:
    """Return token counts under both conventions."""
    usage = call.usage
    attributes: Attributes = {gen_ai.GEN_AI_USAGE_INPUT_TOKENS: usage.input_tokens}
    if call.kind != "chat":
        return attributes
    attributes |= {
        gen_ai.GEN_AI_USAGE_OUTPUT_TOKENS: usage.output_tokens,
        SpanAttributes.LLM_PROVIDER: call.agent.provider or "tgraph",
        SpanAttributes.LLM_TOKEN_COUNT_PROMPT: usage.input_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_COMPLETION: usage.output_tokens,
        SpanAttributes.LLM_TOKEN_COUNT_TOTAL: usage.input_tokens + usage.output_tokens,
    }
    if usage.reasoning_tokens:
        attributes[SpanAttributes.LLM_TOKEN_COUNT_COMPLETION_DETAILS_REASONING] = (
            usage.reasoning_tokens
        )
    return attributes


def _content_attributes(call: Call) -> Attributes:
    """Return request and reply texts as attributes."""
    request, reply = call.request, call.reply
    if call.kind == "chat":
        return _chat_attributes(request, reply)
    if call.kind == "embedding":
        return _number_rows(
            SpanAttributes.EMBEDDING_EMBEDDINGS,
            [{EmbeddingAttributes.EMBEDDING_TEXT: text} for text in request.get("input", ())],
            MOST_TEXTS,
        )
    if call.kind == "rerank":
        texts = [{DocumentAttributes.DOCUMENT_CONTENT: t} for t in request.get("documents", ())]
        listed = _number_rows(RerankerAttributes.RERANKER_INPUT_DOCUMENTS, texts, MOST_TEXTS)
        return {RerankerAttributes.RERANKER_QUERY: str(request.get("query", "")), **listed}
    return {**_json_attributes("input", request), **_json_attributes("output", reply)}


def _chat_attributes(request: Mapping[str, Any], reply: Mapping[str, Any]) -> Attributes:
    input_messages = [
        _message_attributes(m["role"], m["content"]) for m in request.get("messages", ())
    ]
    output_messages = [_message_attributes("assistant", reply["text"])] if reply.get("text") else []
    how = {name: value for name, value in request.items() if name != "messages"}
    return {
        SpanAttributes.LLM_INVOCATION_PARAMETERS: canonical_json(how),
        **_number_rows(SpanAttributes.LLM_INPUT_MESSAGES, input_messages, MOST_DOCUMENTS),
        **_number_rows(SpanAttributes.LLM_OUTPUT_MESSAGES, output_messages, MOST_DOCUMENTS),
    }


def _message_attributes(role: str, content: object) -> Attributes:
    text = content if isinstance(content, str) else canonical_json(content)
    return {MessageAttributes.MESSAGE_ROLE: role, MessageAttributes.MESSAGE_CONTENT: text}


def _json_attributes(side: str, value: object) -> Attributes:
    mime = OpenInferenceMimeTypeValues.JSON.value
    return {f"{side}.value": canonical_json(value), f"{side}.mime_type": mime}


def _number_rows(name: str, rows: Sequence[Attributes], most: int) -> Attributes:
    """Return the first ``most`` rows as OpenInference numbered attributes."""
    return {
        f"{name}.{index}.{key}": value
        for index, row in enumerate(rows[:most])
        for key, value in row.items()
    }


def retrieval_attributes(retrieval: Retrieval, *, content: bool) -> Attributes:
    """Return retrieval counts; ``content`` adds top candidates."""
    attributes: Attributes = {
        "tgraph.retrieval.edges": retrieval.total,
        "tgraph.retrieval.items": retrieval.items,
        "tgraph.retrieval.candidates": len(retrieval.candidates),
    }
    return {**attributes, **document_attributes(retrieval.candidates)} if content else attributes


def document_attributes(candidates: Sequence[Candidate]) -> Attributes:
    """The candidates as documents: their IRIs, scores and texts."""
    rows = [_candidate_attributes(candidate) for candidate in candidates[:MOST_DOCUMENTS]]
    return _number_rows(SpanAttributes.RETRIEVAL_DOCUMENTS, rows, MOST_DOCUMENTS)


def _candidate_attributes(candidate: Candidate) -> Attributes:
    item = candidate.item
    text = " ".join(item.labels) if isinstance(item, Edge) else item.text
    return {
        DocumentAttributes.DOCUMENT_ID: item.iri,
        DocumentAttributes.DOCUMENT_SCORE: float(candidate.score),
        DocumentAttributes.DOCUMENT_CONTENT: text,
    }
