"""Extraction by a language model: one structured reply a chunk, then rounds for what was missed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from tgraph.errors import EndpointError, ModelError
from tgraph.extract.located import one_line
from tgraph.extract.parse import GraphReply, read_reply
from tgraph.extract.tuples import read_graph
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
from tgraph.models.structured import Structured, ask
from tgraph.vocabulary import digest, normalise_name


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
        """As ``Extractor.extract``. Raises ``ModelError`` where the first reply can't be used."""
        values = {
            "title": one_line(title),
            "section": one_line(" > ".join(chunk.headings)) or "-",
            "text": chunk.text,
            "entity_types": self._types,
        }
        gathered = _Gathered(chunk)
        gathered.take(self._ask(self._first, values, sink))
        for _ in range(self._gleanings):
            try:
                reply = self._ask(self._more, {**values, "known": gathered.known()}, sink)
            except EndpointError:
                raise
            except ModelError:  # what was paid for is kept
                gathered.dropped["further round whose reply can't be used"] += 1
                break
            if not gathered.take(reply):
                break
        return gathered.extraction()

    def _ask(
        self, prompt: Prompt, values: dict[str, str], sink: CallSink
    ) -> Structured[GraphReply]:
        temperature, seed, max_tokens = self._options
        request = ChatRequest(
            prompt,
            messages(prompt, values),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return ask(self._model, request, GraphReply, sink, read=read_graph)


class _Gathered:
    """What the rounds over one chunk have brought so far."""

    def __init__(self, chunk: Chunk) -> None:
        self.dropped: Counter[str] = Counter()
        self._chunk = chunk
        self._entities: dict[tuple[object, ...], ExtractedEntity] = {}
        self._relationships: dict[tuple[object, ...], ExtractedRelationship] = {}
        self._replies: list[dict[str, Any]] = []

    def take(self, reply: Structured[GraphReply]) -> bool:
        """Adds a reply; whether it says anything that was not known."""
        self._replies.append(reply.value.model_dump())
        self.dropped["malformed row"] += reply.dropped
        self.dropped["reply that was cut off"] += reply.truncated
        entities, relationships = read_reply(reply.value, self._chunk, self.dropped)
        before = len(self._entities) + len(self._relationships)
        for entity in entities:
            self._entities.setdefault(_entity_key(entity), entity)
        for relationship in relationships:
            self._relationships.setdefault(_relationship_key(relationship), relationship)
        found = len(entities) + len(relationships)
        fresh = len(self._entities) + len(self._relationships) - before
        self.dropped["repetition"] += found - fresh
        return fresh > 0

    def known(self) -> str:
        """One JSON value to a line, for the prompt of the next round."""
        lines = [
            json.dumps({"entity": e.name}, ensure_ascii=False) for e in self._entities.values()
        ]
        for r in self._relationships.values():
            obj = r.object if isinstance(r.object, str) else r.object.value
            lines.append(json.dumps([r.subject, r.predicate, obj], ensure_ascii=False))
        return "\n".join(lines)

    def extraction(self) -> Extraction:
        content = canonical_json(self._replies).encode("utf-8", "surrogatepass")
        return Extraction(
            self._chunk.iri,
            tuple(self._entities.values()),
            tuple(self._relationships.values()),
            sha256(content).hexdigest(),
            {reason: count for reason, count in self.dropped.items() if count},
        )


def _entity_key(entity: ExtractedEntity) -> tuple[object, ...]:
    return normalise_name(entity.name), frozenset(map(normalise_name, entity.aliases))


def _relationship_key(r: ExtractedRelationship) -> tuple[object, ...]:
    obj = normalise_name(r.object) if isinstance(r.object, str) else r.object
    return normalise_name(r.subject), normalise_name(r.predicate), obj, r.span
