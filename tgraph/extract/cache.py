"""Extractions that were made once are not made again: an interrupted index continues from here."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyoxigraph import Literal, NamedNode

from tgraph.extract.base import Extractor
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
from tgraph.vocabulary import digest


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
