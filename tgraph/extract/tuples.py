"""The tuple format of graph replies, as GraphRAG's prompts ask for it, read as a ``GraphReply``."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from tgraph.extract.parse import EntityRow, GraphReply, RelationshipRow, UnquotedRow
from tgraph.models.reading import Read, read_reply

RELATED = "related to"
"""The predicate of a relationship for which the format has none; its description says the rest."""

_DELIMITER = re.compile(r"<\|/?>|</\|>|(?<=[\"”])\s?/?\|>")
_OPENING = re.compile(
    r"""\(?[\s"“”'*]{0,9}\b(entity|relationship|relation)["“”'*]{0,4}\s{0,9}<\|>""", re.I
)
_AT_START = re.compile(r"""^[^\w\n]{0,20}(?:\d{1,3}[.)]\s?)?""" + _OPENING.pattern, re.I | re.M)
_BETWEEN = re.compile(r"##|\)\s*\n\s*(?=\()")
_COMPLETE = re.compile(r"<\|\s*complete\s*\|>", re.I)
_CLOSED = re.compile(r'(?:\)|["”])\s*\Z')
_NOISE = ' \t\r\n"“”*`'
_STRENGTH = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(?:\s?/\s?10)?", re.ASCII)
_LONGEST = 2_000_000


def read_graph(text: str, schema: type[GraphReply] = GraphReply) -> Read[GraphReply] | str:
    """A reply in the tuple format or in JSON; one sentence where it is neither."""
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
    text = text[:_LONGEST]
    complete = _COMPLETE.search(text)
    body = text[: complete.start()] if complete else text
    records = list(_records(body))
    cut = bool(records) and complete is None and not _CLOSED.search(body.rstrip("`#* \t\r\n"))
    reply, dropped = GraphReply(), int(cut)
    for kind, fields in records[: len(records) - cut]:
        if kind == "entity" and len(fields) >= 2 and fields[0]:
            reply.entities.append(_entity(fields))
        elif kind != "entity" and len(fields) >= 2 and fields[0] and fields[1]:
            reply.relationships.append(_relationship(fields))
        else:
            dropped += 1
    return Read(reply, True, dropped, cut)


def fields_of(text: str, least: int) -> tuple[list[list[str]], int] | None:
    """The fields of records that have no kind in front, such as GraphRAG's claims; those with fewer
    than ``least`` fields are left out and counted. None where the text is not in the format."""
    text = text[:_LONGEST]
    complete = _COMPLETE.search(text)
    body = text[: complete.start()] if complete else text
    records = [
        [_field(part) for part in _DELIMITER.split(record.strip().removeprefix("("))]
        for record in _BETWEEN.split(body)
        if _DELIMITER.search(record)
    ]
    kept = [record for record in records if len(record) >= least]
    return (kept, len(records) - len(kept)) if records or complete else None


def _records(text: str) -> Iterator[tuple[str, list[str]]]:
    """The kind and the fields of each record, each as far as the next one opens."""
    openings = list(_OPENING.finditer(text))
    ends = [*(following.start() for following in openings[1:]), len(text)]
    for opening, end in zip(openings, ends, strict=False):
        record = text[opening.end() : end].partition("##")[0]
        fields = [_field(part) for part in _DELIMITER.split(record)]
        yield opening[1].lower(), fields


def _field(text: str) -> str:
    """A field without the brackets and quotation marks around it, and without what follows them."""
    text = text.strip(_NOISE)
    for closing in ('")', "”)", ")\n", '"\n'):
        text = text.partition(closing)[0]
    text = text.strip(_NOISE)
    if text.endswith(")") and text.count("(") < text.count(")"):
        text = text[:-1].rstrip(_NOISE)
    return html.unescape(text)


def _entity(fields: Sequence[str]) -> EntityRow:
    kind = fields[1] or "concept"
    return EntityRow(name=fields[0], type=kind, description=fields[2] if len(fields) > 2 else "")


def _relationship(fields: Sequence[str]) -> RelationshipRow:
    source, target, *rest = fields
    strength = _STRENGTH.fullmatch(rest[-1]) if rest else None
    if strength:
        rest = rest[:-1]
    row = {"description": rest[0] if rest else "", "keywords": rest[1] if len(rest) > 1 else ""}
    if strength:
        row["strength"] = strength[1]
    return UnquotedRow.model_validate(
        {"subject": source, "predicate": RELATED, "object": target, **row}
    )
