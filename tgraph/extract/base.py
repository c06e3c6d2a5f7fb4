"""The interface of extractors: a chunk in, entities and relationships out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from tgraph.model import Agent, Chunk, ExtractedEntity, Extraction, Prompt, Span
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
    used = (
        (name, relationship.span)
        for relationship in extraction.relationships
        for name in (relationship.subject, relationship.object)
        if isinstance(name, str)
    )
    missing = missing_entities((entity.name for entity in extraction.entities), used)
    return replace(extraction, entities=(*extraction.entities, *missing))


def missing_entities(
    known: Iterable[str], used: Iterable[tuple[str, Span | None]]
) -> tuple[ExtractedEntity, ...]:
    """An entity for each name that is used and not known, where it is used first."""
    names = set(map(normalise_name, known))
    missing: dict[str, ExtractedEntity] = {}
    for name, span in used:
        if (key := normalise_name(name)) not in names:
            missing.setdefault(key, ExtractedEntity(name, "concept", span=span))
    return tuple(missing.values())


def installed(package: str) -> str:
    """The version of a package, empty where it isn't installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
