"""The JSON Schemas of what commands print as JSON, as ``docs/reference/schemas`` publishes them."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from tgraph.plugins import SCHEMAS


def build_schemas() -> dict[str, dict[str, Any]]:
    """Return JSON Schemas (2020-12) by file name."""
    from pydantic import Field

    from tgraph.engine.json_answers import AskContextOut, AskOut, EventOut
    from tgraph.engine.json_catalogue import CatalogueOut
    from tgraph.engine.json_judgements import ReplayOut, VerificationOut
    from tgraph.engine.json_sessions import ComparisonOut, KnowledgeDiffOut, SessionOut
    from tgraph.explain.audit.impact import Impact
    from tgraph.explain.integrity.check import Integrity
    from tgraph.explain.trace.curations import Curation
    from tgraph.explain.trace.entities import Merge, Split
    from tgraph.explain.trace.facts import KnownFact
    from tgraph.explain.trace.generations import Generation
    from tgraph.explain.whynot.causes import WhyNot

    kinds: dict[str, Any] = {
        "ask": AskOut,
        "ask-context": AskContextOut,
        "ask-event": EventOut,
        "catalogue": CatalogueOut,
        "sessions": Annotated[tuple[SessionOut, ...], Field(title="Sessions")],
        "impact": Impact,
        "integrity": Integrity,
        "replay": ReplayOut,
        "diff": ComparisonOut,
        "knowledge-diff": KnowledgeDiffOut,
        "history": tuple[Generation, ...],
        "merges": tuple[Merge, ...],
        "verify": VerificationOut,
        "why-not": WhyNot,
        "splits": tuple[Split, ...],
        "facts": tuple[KnownFact, ...],
        "curations": tuple[Curation, ...],
    }
    kinds |= SCHEMAS.call_all(reserved=kinds)
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: dialect | _type_schema(kind) for name, kind in kinds.items()}


_PUBLISHED = {
    "SoleFact": "Fact",
    "CitingSentence": "Sentence",
    "SurrogateFit": "Fit",
    "OneSidedPlace": "Place",
    "DocumentPlace": "Place",
    "PipelinePosition": "Carrier",
}
"""Under which names classes were published that are called otherwise now."""


def _type_schema(kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    text = json.dumps(TypeAdapter(kind).json_schema(mode="serialization"))
    names = rf'"(#/\$defs/)?({"|".join(_PUBLISHED)})"'
    text = re.sub(names, lambda found: f'"{found[1] or ""}{_PUBLISHED[found[2]]}"', text)
    schema: dict[str, Any] = json.loads(text)
    if "$defs" in schema:
        schema["$defs"] = dict(sorted(schema["$defs"].items()))
    return schema
