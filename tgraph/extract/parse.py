"""From a model's reply about a chunk to an extraction whose every quote stands in the chunk."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.extract.located import Located, one_line
from tgraph.model import Chunk, ExtractedEntity, ExtractedRelationship
from tgraph.vocabulary import normalise_name

LONGEST_NAME = 300
MIDDLING = 5.0


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else value


def _as_texts(value: Any) -> Any:
    if isinstance(value, str):
        return re.split(r"[,;\n]", value)
    return [_as_text(item) for item in value] if isinstance(value, list) else []


def _as_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


Text = Annotated[str, BeforeValidator(_as_text)]
Texts = Annotated[list[str], BeforeValidator(_as_texts)]
Number = Annotated[float, BeforeValidator(_as_number)]


class Row(BaseModel):
    """A row of a reply; what is not text is taken as text."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class EntityRow(Row):
    name: Text
    type: Text = "concept"
    description: Text = ""
    aliases: Texts = []


class RelationshipRow(Row):
    subject: Text
    predicate: Text
    object: Text
    description: Text = ""
    keywords: Texts = []
    strength: Number = MIDDLING
    quote: Text


class UnquotedRow(RelationshipRow):
    """A relationship in a format that has no quotes: its evidence is looked for in the passage."""

    quote: Text = ""


class AttributeRow(Row):
    subject: Text
    predicate: Text
    value: Text
    datatype: Text = "string"
    quote: Text


class GraphReply(BaseModel):
    """What one passage says."""

    entities: list[EntityRow] = Field(default_factory=list)
    relationships: list[RelationshipRow] = Field(default_factory=list)
    attributes: list[AttributeRow] = Field(default_factory=list)


def read_reply(
    reply: GraphReply, chunk: Chunk, dropped: Counter[str]
) -> tuple[list[ExtractedEntity], list[ExtractedRelationship]]:
    """The usable rows of a reply; what can't be used is counted in ``dropped`` by reason."""
    text = Located(chunk)
    entities = [e for row in reply.entities if (e := _entity(row, text, dropped))]
    relationships = [r for row in reply.relationships if (r := _relationship(row, text, dropped))]
    relationships += [r for row in reply.attributes if (r := _attribute(row, text, dropped))]
    return entities, relationships


def _entity(row: EntityRow, text: Located, dropped: Counter[str]) -> ExtractedEntity | None:
    name = name_of(row.name)
    if name is None:
        dropped["entity without a name"] += 1
        return None
    aliases = tuple(
        dict.fromkeys(a for alias in row.aliases if (a := name_of(alias)) and a != name)
    )
    kind = (name_of(row.type) or "concept").lower()
    return ExtractedEntity(name, kind, one_line(row.description), aliases, text.find(name))


def _relationship(
    row: RelationshipRow, text: Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate, obj = name_of(row.subject), name_of(row.predicate), name_of(row.object)
    if subject is None or predicate is None or obj is None:
        dropped["relationship without subject, predicate or object"] += 1
        return None
    if normalise_name(subject) == normalise_name(obj):
        dropped["relationship of a thing with itself"] += 1
        return None
    unquoted = isinstance(row, UnquotedRow)
    span = text.window((subject, obj), row.description) if unquoted else text.find(row.quote)
    if span is None and not unquoted:
        dropped["relationship whose quote is not in the chunk"] += 1
        return None
    if span is None:
        dropped["sentence that names both ends (the whole chunk is the evidence)"] += 1
    keywords = tuple(dict.fromkeys(k for word in row.keywords if (k := name_of(word))))
    return ExtractedRelationship(
        subject, predicate, obj, one_line(row.description), keywords, _strength(row, dropped), span
    )


def _strength(row: RelationshipRow, dropped: Counter[str]) -> float:
    if math.isnan(row.strength):
        dropped["strength that is not a number (taken as 5)"] += 1
        return MIDDLING
    return min(10.0, max(1.0, row.strength))


def _attribute(
    row: AttributeRow, text: Located, dropped: Counter[str]
) -> ExtractedRelationship | None:
    subject, predicate = name_of(row.subject), name_of(row.predicate)
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
    if name in ("integer", "decimal") and _GROUPED.fullmatch(value):
        value = value.replace(",", "")
    if name == "boolean":
        value = value.lower()
    form = _FORMS.get(name)
    if form is None or not form.fullmatch(value) or not _exists(name, value):
        return None
    return v.canonical(Literal(value, datatype=v.xsd(name)))


def _exists(name: str, value: str) -> bool:
    """Whether a day that is written well is in the calendar."""
    read: Callable[[str], date] | None = _CALENDAR.get(name)
    try:
        return read is None or bool(read(value))
    except ValueError:
        return False


_DAY = r"\d{4}-\d{2}-\d{2}"
_CALENDAR = {"date": date.fromisoformat, "dateTime": datetime.fromisoformat}
_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", re.ASCII)
_FORMS = {
    name: re.compile(form, re.ASCII | re.DOTALL)
    for name, form in {
        "string": r".*",
        "integer": r"[+-]?\d{1,18}",
        "decimal": r"[+-]?(\d{1,18}(\.\d{0,9})?|\.\d{1,9})",
        "boolean": r"true|false|1|0",
        "date": _DAY,
        "dateTime": _DAY + r"T\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-]\d{2}:\d{2})?",
        "gYear": r"-?\d{4}",
        "gYearMonth": r"-?\d{4}-(0[1-9]|1[0-2])",
    }.items()
}


def name_of(text: str) -> str | None:
    """The name on one line without quotation marks; None where it is none, or far too long."""
    name = one_line(text).strip('"“”').strip()
    return name if any(map(str.isalnum, name)) and len(name) <= LONGEST_NAME else None
