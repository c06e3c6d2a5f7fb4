"""The interface of extractors: a chunk in, entities and relationships out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from pyoxigraph import Literal, NamedNode

from tgraph.model import (
    Agent,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.store.files import read_json, write_atomic
from tgraph.vocabulary import digest, normalise_name


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


# --- extractions that were made once are not made again: an interrupted index continues from ------


class CachedExtractor:
    """An extractor whose results are kept by chunk and key; a damaged entry is made anew."""

    def __init__(self, extractor: Extractor, folder: Path) -> None:
        self._extractor = extractor
        self._folder = folder

    @property
    def agent(self) -> Agent:
        return self._extractor.agent

    @property
    def key(self) -> str:
        return self._extractor.key

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return self._extractor.prompts

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        name = digest(chunk.iri, chunk.text, title, *chunk.headings, "", self.key)
        path = self._folder / name[:2] / f"{name}.json"
        entry = read_json(path)
        if entry is not None:
            try:
                return _decode(entry)
            except (KeyError, TypeError, ValueError):
                pass  # written by another version or damaged
        extraction = self._extractor.extract(chunk, title, sink)
        data = json.dumps(asdict(extraction), default=_plain, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        write_atomic(path, data, durable=False, scratch=self._folder)
        return extraction


def _plain(literal: Literal) -> dict[str, str | None]:
    datatype = literal.datatype.value
    return {"value": literal.value, "datatype": datatype, "language": literal.language}


def _decode(entry: dict[str, Any]) -> Extraction:
    return Extraction(
        chunk=entry["chunk"],
        entities=tuple(
            ExtractedEntity(
                e["name"], e["type"], e["description"], tuple(e["aliases"]), _span(e["span"])
            )
            for e in entry["entities"]
        ),
        relationships=tuple(
            ExtractedRelationship(
                r["subject"],
                r["predicate"],
                _decode_object(r["object"]),
                r["description"],
                tuple(r["keywords"]),
                r["strength"],
                _span(r["span"]),
            )
            for r in entry["relationships"]
        ),
        reply_hash=entry["reply_hash"],
        dropped=entry["dropped"],
    )


def _decode_object(value: Any) -> str | Literal:
    if isinstance(value, str):
        return value
    if value["language"]:
        return Literal(value["value"], language=value["language"])
    return Literal(value["value"], datatype=NamedNode(value["datatype"]))


def _span(value: Any) -> Span | None:
    return Span(**value) if value else None
