"""From a model's reply about a chunk to an extraction whose every quote really stands in the chunk."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.model import Chunk, ExtractedEntity, ExtractedRelationship, Span

LONGEST_NAME = 300


class _Row(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_nulls(cls, value: Any) -> Any:
        return "" if value is None else value


class EntityRow(_Row):
    name: str
    type: str
    description: str
    aliases: list[str]


class RelationshipRow(_Row):
    subject: str
    predicate: str
    object: str
    description: str
    keywords: list[str]
    strength: float
    quote: str


class AttributeRow(_Row):
    subject: str
    predicate: str
    value: str
    datatype: str
    quote: str


class GraphReply(BaseModel):
    """What the prompts ``extract_graph`` and ``extract_graph_more`` ask for."""

    entities: list[EntityRow] = Field(default_factory=list)
    relationships: list[RelationshipRow] = Field(default_factory=list)
    attributes: list[AttributeRow] = Field(default_factory=list)


def read_reply(
    reply: GraphReply, chunk: Chunk, dropped: Counter[str]
) -> tuple[list[ExtractedEntity], list[ExtractedRelationship]]:
    """The usable rows of a reply; what can't be used is counted in ``dropped`` by reason."""
    text = _Located(chunk)
    entities = [e for row in reply.entities if (e := _entity(row, text, dropped))]
    relationships = [r for row in reply.relationships if (r := _relationship(row, text, dropped))]
    relationships += [r for row in reply.attributes if (r := _attribute(row, text, dropped))]
    return entities, relationships


def _entity(row: EntityRow, text: _Located, dropped: Counter[str]) -> ExtractedEntity | None:
    name = _name(row.name)
    if name is None:
        dropped["entity without a name"] += 1
        return None
    aliases = tuple(dict.fromkeys(a for alias in row.aliases if (a := _name(alias)) and a != name))
    kind = (_name(row.type) or "concept").lower()
    return ExtractedEntity(name, kind, _line(row.description), aliases, text.find(name))


def _relationship(
    row: RelationshipRow, text: _Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate, obj = _name(row.subject), _name(row.predicate), _name(row.object)
    if subject is None or predicate is None or obj is None:
        dropped["relationship without subject, predicate or object"] += 1
        return None
    span = text.find(row.quote)
    if span is None:
        dropped["relationship whose quote is not in the chunk"] += 1
        return None
    keywords = tuple(dict.fromkeys(k for word in row.keywords if (k := _name(word))))
    strength = min(10.0, max(1.0, row.strength))
    return ExtractedRelationship(
        subject, predicate, obj, _line(row.description), keywords, strength, span
    )


def _attribute(
    row: AttributeRow, text: _Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate = _name(row.subject), _name(row.predicate)
    if subject is None or predicate is None or not row.value.strip():
        dropped["attribute without subject, predicate or value"] += 1
        return None
    span = text.find(row.quote)
    if span is None:
        dropped["attribute whose quote is not in the chunk"] += 1
        return None
    value = typed_literal(row.value.strip(), row.datatype.strip())
    if value is None:
        dropped["attribute whose value does not fit its datatype (kept as text)"] += 1
        value = Literal(row.value.strip())
    return ExtractedRelationship(subject, predicate, value, span=span)


def typed_literal(value: str, datatype: str) -> Literal | None:
    """The value as an xsd literal, None where it is not in the datatype's lexical space."""
    name = datatype.removeprefix("xsd:").rpartition("#")[2] or "string"
    check = _LEXICAL.get(name)
    if check is None or not check(value):
        return None
    return v.canonical(Literal(value, datatype=v.xsd(name)))


def _is_date(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) is not None


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value


def _is_decimal(value: str) -> bool:
    try:
        return Decimal(value).is_finite() and "e" not in value.lower()
    except InvalidOperation:
        return False


_LEXICAL = {
    "string": lambda value: True,
    "integer": lambda value: re.fullmatch(r"[+-]?\d{1,18}", value) is not None,
    "decimal": _is_decimal,
    "boolean": lambda value: value in {"true", "false", "1", "0"},
    "date": _is_date,
    "dateTime": _is_time,
    "gYear": lambda value: re.fullmatch(r"-?\d{4}", value) is not None,
    "gYearMonth": lambda value: re.fullmatch(r"-?\d{4}-(0[1-9]|1[0-2])", value) is not None,
}


class _Located:
    """The text of a chunk in which quotes are looked up."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._folded, self._origin = _fold(chunk.text)

    def find(self, quote: str) -> Span | None:
        """Where the quote stands, None where it doesn't. White space, letter case, Unicode form and
        the shape of quotation marks and dashes may differ; the span is the chunk's own text."""
        wanted = _fold(quote)[0].strip(" \"'.…")
        if not wanted:
            return None
        at = self._folded.find(wanted)
        if at < 0:
            return None
        start, end = self._origin[at], self._origin[at + len(wanted) - 1] + 1
        text = self._chunk.text
        if end < len(text) and text[end] in ".!?":
            end += 1
        return Span(self._chunk.start + start, self._chunk.start + end, text[start:end])


_SAME = str.maketrans({"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-"})


def _fold(text: str) -> tuple[str, Sequence[int]]:
    """The text as it is compared, and for each of its characters the one that it comes from."""
    folded: list[str] = []
    origin: list[int] = []
    for index, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).casefold().translate(_SAME):
            if part.isspace():
                if folded and folded[-1] == " ":
                    continue
                part = " "  # noqa: PLW2901
            folded.append(part)
            origin.append(index)
    return "".join(folded), origin


def _name(text: str) -> str | None:
    name = _line(text).strip("\"“”").strip()
    return name if name and len(name) <= LONGEST_NAME else None


def _line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
