"""Extraction by a language model: one structured reply a chunk, then rounds for what was missed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tgraph.extract.parse import GraphReply, read_reply
from tgraph.extract.rounds import Gathered, Key, Rounds
from tgraph.extract.tuples import read_graph
from tgraph.model import Chunk, ExtractedEntity, ExtractedRelationship, Extraction
from tgraph.models.base import CallSink, ChatModel, no_sink
from tgraph.vocabulary import normalise_name


class ModelExtractor(Rounds[GraphReply]):
    """An ``Extractor`` that asks a language model by the prompts ``extract_graph`` and
    ``extract_graph_more``."""

    def __init__(
        self,
        model: ChatModel,
        entity_types: Sequence[str],
        gleanings: int = 1,
        prompts: Path | None = None,
        **options: Any,
    ) -> None:
        types = ", ".join(entity_types)
        super().__init__(
            "extract_graph", types, GraphReply, read_graph, model, gleanings, prompts, **options
        )

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """As ``Extractor.extract``. Raises ``ModelError`` where the first reply can't be used."""
        gathered = _GatheredGraph(chunk)
        self.run(chunk, title, {"entity_types": self._asked_for}, gathered, sink)
        return gathered.extraction()


class _GatheredGraph(Gathered[GraphReply]):
    def read(self, reply: GraphReply) -> Iterator[tuple[Key, Any]]:
        entities, relationships = read_reply(reply, self.chunk, self.dropped)
        yield from ((_entity_key(entity), entity) for entity in entities)
        yield from ((_relationship_key(stated), stated) for stated in relationships)

    def known(self) -> str:
        names = (entity.name for entity in self.all_of(ExtractedEntity))
        lines = [json.dumps({"entity": name}, ensure_ascii=False) for name in names]
        for r in self.all_of(ExtractedRelationship):
            obj = r.object if isinstance(r.object, str) else r.object.value
            lines.append(json.dumps([r.subject, r.predicate, obj], ensure_ascii=False))
        return "\n".join(lines)

    def extraction(self) -> Extraction:
        found = self.all_of(ExtractedEntity), self.all_of(ExtractedRelationship)
        return Extraction(self.chunk.iri, *found, self.reply_hash, self.counts)


def _entity_key(entity: ExtractedEntity) -> Key:
    return normalise_name(entity.name), frozenset(map(normalise_name, entity.aliases))


def _relationship_key(r: ExtractedRelationship) -> Key:
    obj = normalise_name(r.object) if isinstance(r.object, str) else r.object
    return normalise_name(r.subject), normalise_name(r.predicate), obj, r.span
