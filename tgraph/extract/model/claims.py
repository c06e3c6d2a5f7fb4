"""Chunk claims extracted by a language model: subject, claim type, status, dates and quote."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, Unpack, get_args

from pydantic import BaseModel, Field
from pyoxigraph import Literal

from tgraph.extract.base import ExtractionStep, missing_entities
from tgraph.extract.model.extractor import GleanedReplies, Gleaning, ReplyKey
from tgraph.extract.model.quote_location import QuoteFinder, one_line
from tgraph.extract.model.replies import ReplyRow, ReplyText, fields_of, name_of, typed_literal
from tgraph.model import Chunk, ClaimStatus, ExtractedClaim, ExtractedEntity, Extraction
from tgraph.models.base import CallSink, ChatModel, no_sink
from tgraph.models.json_parsing import Read, read_reply
from tgraph.models.prompts import Options, Prompts
from tgraph.vocabulary import normalise_name

_STATUSES: tuple[ClaimStatus, ...] = get_args(ClaimStatus)
_NOBODY = frozenset({"", "none", "n/a", "na", "null", "unknown", "-"})
_FIELDS = ("subject", "object", "type", "status", "started", "ended", "description", "quote")
_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?Z?\Z")
_DATE_FORMS = ("date", "dateTime", "gYearMonth", "gYear")


class ClaimExtractor(ExtractionStep, Protocol):
    """Finds what a chunk claims."""

    def claims(
        self, chunk: Chunk, title: str, names: Sequence[str], sink: CallSink = no_sink
    ) -> Extraction:
        """Return claims from one chunk of the document titled ``title``, plus entities for
        names used in claims but missing from ``names``, known in the chunk.

        Every claim has a span inside the chunk. Unusable claims are dropped and counted by
        reason."""


class ClaimRow(ReplyRow):
    subject: ReplyText
    object: ReplyText = ""
    type: ReplyText = ""
    status: ReplyText = "TRUE"
    started: ReplyText = ""
    ended: ReplyText = ""
    description: ReplyText = ""
    quote: ReplyText


class ClaimsReply(BaseModel):
    """What one passage claims."""

    claims: list[ClaimRow] = Field(default_factory=list)


def read_claims(text: str, schema: type[ClaimsReply] = ClaimsReply) -> Read[ClaimsReply] | str:
    """A reply in JSON or in the tuple format of GraphRAG's prompts: subject, object, type, status,
    start, end, description and source text between ``<|>``; one sentence where it is neither."""
    read = read_reply(text, schema)
    if not isinstance(read, str):
        return read
    fields_and_dropped = fields_of(text, len(_FIELDS))
    if fields_and_dropped is None:
        return read
    rows = [
        ClaimRow(**dict(zip(_FIELDS, fields, strict=False))) for fields in fields_and_dropped[0]
    ]
    return Read(schema(claims=rows), True, fields_and_dropped[1], False)


class ModelClaims(Gleaning[ClaimsReply]):
    """A ``ClaimExtractor`` that asks a language model by the prompts ``extract_claims`` and
    ``extract_claims_more``."""

    name = "extract_claims"
    schema = ClaimsReply
    read = staticmethod(read_claims)

    def __init__(
        self,
        model: ChatModel,
        gleanings: int = 1,
        prompts: Prompts = None,
        *,
        description: str = "",
        entity_specs: Sequence[str] = (),
        **options: Unpack[Options],
    ) -> None:
        requested_types = {
            "description": one_line(description),
            "entity_specs": one_line(", ".join(entity_specs)),
        }
        asked_for = (
            json.dumps(requested_types, ensure_ascii=False)
            if any(requested_types.values())
            else "claims"
        )
        super().__init__(model, asked_for, gleanings, prompts, **options)
        self._wanted = requested_types

    def claims(
        self, chunk: Chunk, title: str, names: Sequence[str], sink: CallSink = no_sink
    ) -> Extraction:
        """Return claims like ``ClaimExtractor.claims``.

        Raise ``ModelError`` if the first reply is unusable."""
        gathered = _GleanedClaims(chunk)
        known_names = "\n".join(map(one_line, names)) or "-"
        self.run(chunk, title, {"names": known_names, **self._wanted}, gathered, sink)
        return gathered.extraction(names)


class _GleanedClaims(GleanedReplies[ClaimsReply]):
    def read(self, reply: ClaimsReply) -> Iterator[tuple[ReplyKey, ExtractedClaim]]:
        for row in reply.claims:
            if c := read_claim(row, self.text, self.dropped):
                key = map(normalise_name, (c.subject, c.object, c.type))
                yield (*key, c.status, c.span), c

    def format_items(self) -> str:
        claims = self.all_of(ExtractedClaim)
        rows = ([c.subject, c.type, c.object, c.description] for c in claims)
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)

    def extraction(self, names: Sequence[str]) -> Extraction:
        claims = self.all_of(ExtractedClaim)
        entities = named_in(claims, names)
        return Extraction(self.chunk.iri, entities, (), self.reply_hash, self.counts, claims)


def named_in(claims: Iterable[ExtractedClaim], names: Iterable[str]) -> tuple[ExtractedEntity, ...]:
    """Return entities for names used in claims but not known."""
    used = ((name, c.span) for c in claims for name in (c.subject, c.object) if name)
    return missing_entities(names, used)


def read_claim(row: ClaimRow, text: QuoteFinder, dropped: Counter[str]) -> ExtractedClaim | None:
    """Return a row as claim; None if unusable, counting the reason."""
    subject = name_of(row.subject)
    if subject is None or subject.lower() in _NOBODY:
        dropped["claim about nobody"] += 1
        return None
    status = next((s for s in _STATUSES if s == row.status.strip().upper()), None)
    if status is None:
        dropped["claim whose status is not TRUE, FALSE or SUSPECTED"] += 1
        return None
    span = text.find(row.quote)
    if span is None:
        dropped["claim whose quote is not in the chunk"] += 1
        return None
    object_name = name_of(row.object) or ""
    same = normalise_name(object_name) == normalise_name(subject)
    started, ended = (_read_date(value, dropped) for value in (row.started, row.ended))
    return ExtractedClaim(
        subject=subject,
        object="" if object_name.lower() in _NOBODY or same else object_name,
        type=(name_of(row.type) or "claim").lower(),
        status=status,
        description=one_line(row.description) or one_line(span.quote),
        started=started,
        ended=ended,
        span=span,
    )


def _read_date(text: str, dropped: Counter[str]) -> Literal | None:
    """Return a date literal in an accepted form; other dates are omitted from the claim and
    counted."""
    if text.strip().lower() in _NOBODY:
        return None
    value = _MIDNIGHT.sub("", text.strip())
    for form in _DATE_FORMS:
        if (literal := typed_literal(value, form)) is not None:
            return literal
    dropped["date that can't be read (its claim is kept)"] += 1
    return None
