"""Extraction by a language model: one structured reply a chunk, then rounds for what was missed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from tgraph.extract.parse import GraphReply, read_reply
from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
)
from tgraph.models.base import CallSink, ChatModel, ChatRequest, canonical_json, no_sink
from tgraph.models.prompts import load_prompt, messages
from tgraph.models.structured import ask
from tgraph.vocabulary import digest


class ModelExtractor:
    """An ``Extractor`` that asks a language model by the prompts ``extract_graph`` and
    ``extract_graph_more`` (a gleaning round, repeated until it yields nothing new)."""

    def __init__(
        self,
        model: ChatModel,
        entity_types: Sequence[str],
        gleanings: int = 1,
        prompts: Path | None = None,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._types = ", ".join(entity_types)
        self._gleanings = gleanings
        self._first = load_prompt("extract_graph", prompts)
        self._more = load_prompt("extract_graph_more", prompts)
        self._options = (temperature, seed, max_tokens)

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._first, self._more) if self._gleanings else (self._first,)

    @property
    def key(self) -> str:
        options = [self._types, str(self._gleanings), *map(str, self._options)]
        return digest(self.agent.iri, *(p.sha256 for p in self.prompts), *options)

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        values = {
            "title": title,
            "section": " > ".join(chunk.headings) or "-",
            "text": chunk.text,
            "entity_types": self._types,
        }
        dropped: Counter[str] = Counter()
        entities: list[ExtractedEntity] = []
        relationships: list[ExtractedRelationship] = []
        replies = []
        for prompt in [self._first, *[self._more] * self._gleanings]:
            known = _known(entities, relationships)
            reply = self._ask(prompt, {**values, "known": known}, sink)
            replies.append(reply.model_dump())
            found = read_reply(reply, chunk, dropped)
            fresh = [e for e in found[0] if e not in entities]
            new = [r for r in found[1] if r not in relationships]
            entities += fresh
            relationships += new
            if prompt is self._more and not fresh and not new:
                break
        content = sha256(canonical_json(replies).encode("utf-8", "surrogatepass")).hexdigest()
        return Extraction(chunk.iri, tuple(entities), tuple(relationships), content, dict(dropped))

    def _ask(self, prompt: Prompt, values: dict[str, str], sink: CallSink) -> GraphReply:
        temperature, seed, max_tokens = self._options
        request = ChatRequest(
            prompt,
            messages(prompt, values),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return ask(self._model, request, GraphReply, sink).value


def _known(
    entities: Sequence[ExtractedEntity], relationships: Sequence[ExtractedRelationship]
) -> str:
    lines = [json.dumps({"entity": e.name}, ensure_ascii=False) for e in entities]
    for r in relationships:
        obj = r.object if isinstance(r.object, str) else r.object.value
        lines.append(json.dumps([r.subject, r.predicate, obj], ensure_ascii=False))
    return "\n".join(lines)
