"""Extractor interface: chunks in, entities and relationships out."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

from pyoxigraph import Literal, NamedNode

from tgraph.model import (
    Agent,
    CellPlace,
    Chunk,
    ExtractedEntity,
    ExtractedRelationship,
    Extraction,
    Prompt,
    Span,
)
from tgraph.models.base import CallSink, no_sink
from tgraph.store.files import write_atomic
from tgraph.vocabulary import digest_parts, normalise_name

log = logging.getLogger(__name__)

_LEVEL = 3
"""Extractions repeat their quotes: a tenth of the size, in no time."""


class ExtractionStep(Protocol):
    """A step deriving data from text.

    ``key`` changes when identical text could yield a different result."""

    @property
    def agent(self) -> Agent: ...

    @property
    def key(self) -> str: ...

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...


class Extractor(ExtractionStep, Protocol):
    """Finds what a chunk says."""

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """Return the extraction of one chunk from the document titled ``title``.

        Every span lies inside the chunk, and its quote is the page's text there. Unusable
        results (a quote missing from the chunk, a malformed row) are dropped and counted by
        reason."""


def with_endpoints(extraction: Extraction) -> Extraction:
    """Return the extraction completed with entities for all relationship ends.

    An entity never named in the chunk is placed where a relationship first mentions it."""
    used = [
        (name, relationship.span)
        for relationship in extraction.relationships
        for name in (relationship.subject, relationship.object)
        if isinstance(name, str)  # what a graph names by IRI it lists itself
    ]
    places = {normalise_name(name): span for name, span in reversed(used) if span}
    entities = tuple(
        entity if entity.span else replace(entity, span=places.get(normalise_name(entity.name)))
        for entity in extraction.entities
    )
    missing = missing_entities((entity.name for entity in entities), used)
    return replace(extraction, entities=(*entities, *missing))


def missing_entities(
    known: Iterable[str], used: Iterable[tuple[str, Span | None]]
) -> tuple[ExtractedEntity, ...]:
    """Return entities for used but unknown names, placed at their earliest use."""
    names = set(map(normalise_name, known))
    missing: dict[str, ExtractedEntity] = {}
    for name, span in used:
        if (key := normalise_name(name)) not in names:
            missing.setdefault(key, ExtractedEntity(name, "concept", span=span))
    return tuple(missing.values())


def package_version(package: str) -> str:
    """Return a package's version, blank if not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


class CachedExtractor:
    """An extractor caching results by chunk and key; damaged entries are recreated."""

    def __init__(self, extractor: Extractor, folder: Path) -> None:
        self._extractor = extractor
        self._folder = folder
        self._warned = False

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
        read = (f"{s.kind} {s.start} {s.text} {s.context}" for s in chunk.segments)
        name = digest_parts(chunk.iri, chunk.text, title, *chunk.headings, "", *read, "", self.key)
        path = self._folder / name[:2] / f"{name}.json.gz"
        with suppress(OSError, EOFError, zlib.error, KeyError, TypeError, ValueError):
            return _decode_extraction(json.loads(gzip.decompress(path.read_bytes())))
        extraction = self._extractor.extract(chunk, title, sink)
        text = json.dumps(asdict(extraction), default=_encode_term, ensure_ascii=False)
        data = gzip.compress(text.encode("utf-8", "surrogatepass"), _LEVEL, mtime=0)
        self._write_cache_entry(path, data)
        return extraction

    def _write_cache_entry(self, path: Path, data: bytes) -> None:
        """Write a cache entry; on failure (full disk, read-only folder), skip the entry with
        one warning.

        Without warning if the machine lacks the graph's folder."""
        if not self._folder.parent.parent.is_dir():
            return
        try:
            write_atomic(path, data, durable=False, scratch=self._folder)
        except OSError as error:
            if not self._warned:
                log.warning("Extractions can't be cached in %s: %s.", self._folder, error.strerror)
            self._warned = True


def _encode_term(literal: Literal | NamedNode) -> dict[str, str | None]:
    if isinstance(literal, NamedNode):
        return {"iri": literal.value}
    datatype = literal.datatype.value
    return {"value": literal.value, "datatype": datatype, "language": literal.language}


def _decode_extraction(entry: Any) -> Extraction:
    return Extraction(
        entry["chunk"],
        tuple(ExtractedEntity(**_decode_row(row)) for row in entry["entities"]),
        tuple(ExtractedRelationship(**_decode_row(row)) for row in entry["relationships"]),
        entry["reply_hash"],
        entry["dropped"],
    )


def _decode_row(row: dict[str, Any]) -> dict[str, Any]:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
    values["span"] = Span(**row["span"]) if row["span"] else None
    if row.get("cell"):
        values["cell"] = CellPlace(*row["cell"])
    terms = {key: _decode_term(value) for key, value in row.items() if isinstance(value, dict)}
    return {**values, **{key: term for key, term in terms.items() if key != "span"}}


def _decode_term(value: dict[str, Any]) -> Literal | NamedNode | None:
    if "iri" in value:
        return NamedNode(value["iri"])
    if value.get("language"):
        return Literal(value["value"], language=value["language"])
    return (
        Literal(value["value"], datatype=NamedNode(value["datatype"])) if "value" in value else None
    )
