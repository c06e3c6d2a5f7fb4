"""The interface of extractors: a chunk in, entities and relationships out."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from tgraph.model import Agent, Chunk, ExtractedEntity, Extraction, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.vocabulary import normalise_name


class Extractor(Protocol):
    """Finds what a chunk says. ``key`` changes when the same chunk could yield something else."""

    @property
    def agent(self) -> Agent: ...

    @property
    def key(self) -> str: ...

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """The extraction of one chunk of the document called ``title``.

        Every span lies inside the chunk and its quote is the page's text there. What can't be used
        (a quote that isn't in the chunk, a malformed row) is dropped and counted by reason.
        """


def with_endpoints(extraction: Extraction) -> Extraction:
    """The extraction with an entity for every name that its relationships use."""
    known = {normalise_name(entity.name) for entity in extraction.entities}
    missing: dict[str, ExtractedEntity] = {}
    for relationship in extraction.relationships:
        for name in (relationship.subject, relationship.object):
            if isinstance(name, str) and normalise_name(name) not in known:
                entity = ExtractedEntity(name, "concept", span=relationship.span)
                missing.setdefault(normalise_name(name), entity)
    return replace(extraction, entities=(*extraction.entities, *missing.values()))
