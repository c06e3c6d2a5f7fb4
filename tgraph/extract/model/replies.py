"""Replies about a chunk, in JSON or GraphRAG's tuples, checked row by row against its text."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pyoxigraph import Literal

from tgraph import vocabulary as v
from tgraph.extract.model.quote_location import QuoteFinder, one_line
from tgraph.model import ExtractedEntity, ExtractedRelationship
from tgraph.models.json_parsing import Read, read_reply
from tgraph.vocabulary import normalise_name

LONGEST_NAME = 300
MIDDLING = 5.0
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


ReplyText = Annotated[str, BeforeValidator(_as_text)]
ReplyTexts = Annotated[list[str], BeforeValidator(_as_texts)]
Number = Annotated[float, BeforeValidator(_as_number)]


class ReplyRow(BaseModel):
    """A row of a reply; what is not text is taken as text."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class EntityRow(ReplyRow):
    name: ReplyText
    type: ReplyText = "concept"
    description: ReplyText = ""
    aliases: ReplyTexts = []


class RelationshipRow(ReplyRow):
    subject: ReplyText
    predicate: ReplyText
    object: ReplyText
    description: ReplyText = ""
    keywords: ReplyTexts = []
    strength: Number = MIDDLING
    quote: ReplyText


class UnquotedRow(RelationshipRow):
    """A relationship in a format that has no quotes: its evidence is looked for in the passage."""

    quote: ReplyText = ""


class AttributeRow(ReplyRow):
    subject: ReplyText
    predicate: ReplyText
    value: ReplyText
    datatype: ReplyText = "string"
    quote: ReplyText


class GraphReply(BaseModel):
    """What one passage says."""

    entities: list[EntityRow] = Field(default_factory=list)
    relationships: list[RelationshipRow] = Field(default_factory=list)
    attributes: list[AttributeRow] = Field(default_factory=list)


def usable_rows(
    reply: GraphReply, text: QuoteFinder, dropped: Counter[str]
) -> tuple[list[ExtractedEntity], list[ExtractedRelationship]]:
    """Return usable rows of a reply; unusable rows are counted in ``dropped`` by reason."""
    entities = [e for row in reply.entities if (e := _read_entity(row, text, dropped))]
    relationships = [
        r for row in reply.relationships if (r := _read_relationship(row, text, dropped))
    ]
    relationships += [r for row in reply.attributes if (r := _read_attribute(row, text, dropped))]
    return entities, relationships


def _read_entity(
    row: EntityRow, text: QuoteFinder, dropped: Counter[str]
) -> ExtractedEntity | None:
    name = name_of(row.name)
    if name is None:
        dropped["entity without a name"] += 1
        return None
    aliases = tuple(a for a in _clean_names(row.aliases) if a != name)
    kind = (name_of(row.type) or "concept").lower()
    return ExtractedEntity(name, kind, one_line(row.description), aliases, text.find(name))


def _read_relationship(
    row: RelationshipRow, text: QuoteFinder, dropped: Counter[str]
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
    keywords = tuple(_clean_names(row.keywords))
    return ExtractedRelationship(
        subject,
        predicate,
        obj,
        one_line(row.description),
        keywords,
        _clamp_strength(row, dropped),
        span,
    )


def _clean_names(texts: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(name for text in texts if (name := name_of(text)))


def _clamp_strength(row: RelationshipRow, dropped: Counter[str]) -> float:
    if math.isnan(row.strength):
        dropped["strength that is not a number (taken as 5)"] += 1
        return MIDDLING
    return min(10.0, max(1.0, row.strength))


def _read_attribute(
    row: AttributeRow, text: QuoteFinder, dropped: Counter[str]
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
    """Return a value as xsd literal, or None if outside the datatype's lexical space."""
    name = datatype.removeprefix("xsd:").rpartition("#")[2] or "string"
    if name in ("integer", "decimal") and _GROUPED.fullmatch(value):
        value = value.replace(",", "")
    if name == "boolean":
        value = value.lower()
    form = _FORMS.get(name)
    if form is None or not form.fullmatch(value) or not _is_calendar_date(name, value):
        return None
    return v.canonicalise_literal(Literal(value, datatype=v.xsd(name)))


def _is_calendar_date(name: str, value: str) -> bool:
    """Tell whether a well-formed date exists in the calendar."""
    read: Callable[[str], date] | None = _CALENDAR.get(name)
    try:
        return read is None or bool(read(value))
    except ValueError:
        return False


def name_of(text: str) -> str | None:
    """Return a name as a single line, without quotation marks.

    Return None if the text is no name, or far too long."""
    name = one_line(text).strip('"“”').strip()
    return name if any(map(str.isalnum, name)) and len(name) <= LONGEST_NAME else None


# --- GraphRAG's tuples ----------------------------------------------------------------------------

RELATED = "related to"
"""The predicate of a relationship for which the format has none; its description says the rest."""

_DELIMITER = re.compile(r"<\|/?>|</\|>|(?<=[\"”])\s?/?\|>")
_OPENING = re.compile(
    r"""\(?[\s"“”'*]{0,9}\b(entity|relationship|relation)["“”'*]{0,4}\s{0,9}<\|>""", re.I
)
_AT_START = re.compile(r"""^[^\w\n]{0,20}(?:\d{1,3}[.)]\s?)?""" + _OPENING.pattern, re.I | re.M)
_BETWEEN = re.compile(r"##|\)[^\S\n]*+\n\s*+(?=\()")
_COMPLETE = re.compile(r"<\|\s*complete\s*\|>", re.I)
_CLOSED = re.compile(r'(?:\)|["”])\s*\Z')
_NOISE = ' \t\r\n"“”*`'
_STRENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(?:\s?/\s?10)?", re.ASCII)
_LONGEST = 2_000_000


def read_graph(text: str, schema: type[GraphReply] = GraphReply) -> Read[GraphReply] | str:
    """Return a reply parsed from tuple format or JSON; otherwise one sentence explaining the
    failure."""
    start = text[:_LONGEST]
    if _AT_START.search(start) or (_COMPLETE.search(start) and "{" not in start):
        return read_tuples(text)
    return read_reply(text, schema)


def read_tuples(text: str) -> Read[GraphReply]:
    """The records of a text in the tuple format of Microsoft GraphRAG's prompts.

    It is ``("entity"<|>NAME<|>TYPE<|>DESCRIPTION)``, ``##`` between records,
    ``("relationship"<|>SOURCE<|>TARGET<|>DESCRIPTION<|>STRENGTH)`` and at the end ``<|COMPLETE|>``
    (LightRAG puts keywords before the strength). A model wraps it in fences, headings and
    numbering, and slips in brackets, quotation marks, delimiters and names of kinds, so records are
    found by how they open.

    ``dropped`` counts records that lack fields; ``truncated`` says that the last one is cut off
    (and left out): the text ends neither in the mark of completeness nor in a closed record.
    """
    body, complete = _split_body(text)
    records = list(_split_records(body))
    cut = bool(records) and not complete and not _CLOSED.search(body.rstrip("`#* \t\r\n"))
    reply, dropped = GraphReply(), int(cut)
    for kind, fields in records[: len(records) - cut]:
        if kind == "entity" and len(fields) >= 2 and fields[0]:
            reply.entities.append(_entity_row(fields))
        elif kind != "entity" and len(fields) >= 2 and fields[0] and fields[1]:
            reply.relationships.append(_relationship_row(fields))
        else:
            dropped += 1
    return Read(reply, True, dropped, cut)


def fields_of(text: str, least: int) -> tuple[list[list[str]], int] | None:
    """Return record fields for records without kind, such as GraphRAG claims, plus a count of
    records with fewer than ``least`` fields.

    Return None if the text is not in the format."""
    body, complete = _split_body(text)
    records = [
        [_clean_field(part) for part in _DELIMITER.split(record.strip().removeprefix("("))]
        for record in _BETWEEN.split(body)
        if _DELIMITER.search(record)
    ]
    complete_records = [record for record in records if len(record) >= least]
    return (complete_records, len(records) - len(complete_records)) if records or complete else None


def _split_body(text: str) -> tuple[str, bool]:
    """Return text before the completion mark, and whether the mark exists."""
    complete = _COMPLETE.search(text, 0, _LONGEST)
    return text[: complete.start() if complete else _LONGEST], complete is not None


def _split_records(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield kind and fields of each record, ending where another record opens."""
    openings = list(_OPENING.finditer(text))
    ends = [*(following.start() for following in openings[1:]), len(text)]
    for opening, end in zip(openings, ends, strict=False):
        record = text[opening.end() : end].partition("##")[0]
        yield opening[1].lower(), [_clean_field(part) for part in _DELIMITER.split(record)]


def _clean_field(text: str) -> str:
    """Return a field without surrounding brackets and quotation marks, and without text after
    these."""
    text = text.strip(_NOISE)
    for closing in ('")', "”)", ")\n", '"\n'):
        text = text.partition(closing)[0]
    text = text.strip(_NOISE)
    if text.endswith(")") and text.count("(") < text.count(")"):
        text = text[:-1].rstrip(_NOISE)
    return html.unescape(text)


def _entity_row(fields: Sequence[str]) -> EntityRow:
    kind = fields[1] or "concept"
    return EntityRow(name=fields[0], type=kind, description=fields[2] if len(fields) > 2 else "")


def _relationship_row(fields: Sequence[str]) -> RelationshipRow:
    source, target, *remaining_fields = fields
    strength = _STRENGTH.fullmatch(remaining_fields[-1]) if remaining_fields else None
    if strength:
        remaining_fields = remaining_fields[:-1]
    row = {
        "description": remaining_fields[0] if remaining_fields else "",
        "keywords": remaining_fields[1] if len(remaining_fields) > 1 else "",
    }
    if strength:
        row["strength"] = strength[1]
    return UnquotedRow.model_validate(
        {"subject": source, "predicate": RELATED, "object": target, **row}
    )
