"""Claims of a chunk by a language model: who, what sort, whether it holds, when, and the quote."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, get_args

from pydantic import BaseModel, Field
from pyoxigraph import Literal

from tgraph.errors import EndpointError, ModelError
from tgraph.extract.located import Located, one_line
from tgraph.extract.parse import Row, Text, name_of, typed_literal
from tgraph.extract.tuples import fields_of
from tgraph.model import (
    Agent,
    Chunk,
    ClaimStatus,
    ExtractedClaim,
    ExtractedEntity,
    Extraction,
    Prompt,
)
from tgraph.models.base import CallSink, ChatModel, ChatRequest, canonical_json, no_sink
from tgraph.models.prompts import load_prompt, messages
from tgraph.models.reading import Read, read_reply
from tgraph.models.structured import Structured, ask
from tgraph.vocabulary import digest, normalise_name

_STATUSES: tuple[ClaimStatus, ...] = get_args(ClaimStatus)
_NOBODY = frozenset({"", "none", "n/a", "na", "null", "unknown", "-"})
_DATE_FORMS = ("date", "dateTime", "gYearMonth", "gYear")


class ClaimExtractor(Protocol):
    """Finds what a chunk claims. ``key`` changes when the same chunk could yield something else."""

    @property
    def agent(self) -> Agent: ...

    @property
    def key(self) -> str: ...

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def claims(
        self, chunk: Chunk, title: str, names: Sequence[str], sink: CallSink = no_sink
    ) -> Extraction:
        """The claims of one chunk of the document called ``title``, and nothing else but an entity
        for each name that a claim uses and ``names``, those known in the chunk, lack.

        Every claim has a span, which lies inside the chunk. What can't be used is dropped and
        counted by reason.
        """


class ClaimRow(Row):
    subject: Text
    object: Text = ""
    type: Text = ""
    status: Text = "TRUE"
    started: Text = ""
    ended: Text = ""
    description: Text = ""
    quote: Text


class ClaimsReply(BaseModel):
    """What one passage claims."""

    claims: list[ClaimRow] = Field(default_factory=list)


class ModelClaims:
    """A ``ClaimExtractor`` that asks a language model by the prompts ``extract_claims`` and
    ``extract_claims_more`` (a gleaning round, repeated until it yields nothing new)."""

    def __init__(
        self,
        model: ChatModel,
        gleanings: int = 1,
        prompts: Path | None = None,
        *,
        temperature: float = 0.0,
        seed: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._model = model
        self._gleanings = gleanings
        self._first = load_prompt("extract_claims", prompts)
        self._more = load_prompt("extract_claims_more", prompts)
        self._options = (temperature, seed, max_tokens)

    @property
    def agent(self) -> Agent:
        return self._model.agent

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._first, self._more) if self._gleanings else (self._first,)

    @property
    def key(self) -> str:
        options = [str(self._gleanings), *map(str, self._options)]
        return digest("claims", self.agent.iri, *(p.sha256 for p in self.prompts), *options)

    def claims(
        self, chunk: Chunk, title: str, names: Sequence[str], sink: CallSink = no_sink
    ) -> Extraction:
        """As ``ClaimExtractor.claims``. ``ModelError`` where the first reply can't be used."""
        values = {
            "title": one_line(title),
            "section": one_line(" > ".join(chunk.headings)) or "-",
            "text": chunk.text,
            "names": "\n".join(map(one_line, names)) or "-",
        }
        gathered = _Gathered(chunk)
        gathered.take(self._ask(self._first, values, sink))
        for _ in range(self._gleanings):
            try:
                reply = self._ask(self._more, {**values, "known": gathered.known()}, sink)
            except EndpointError:
                raise
            except ModelError:  # what was paid for is kept
                gathered.dropped["further round whose reply can't be used"] += 1
                break
            if not gathered.take(reply):
                break
        return gathered.extraction(names)

    def _ask(
        self, prompt: Prompt, values: dict[str, str], sink: CallSink
    ) -> Structured[ClaimsReply]:
        temperature, seed, max_tokens = self._options
        request = ChatRequest(
            prompt,
            messages(prompt, values),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return ask(self._model, request, ClaimsReply, sink, read=read_claims)


class _Gathered:
    """What the rounds over one chunk have brought so far."""

    def __init__(self, chunk: Chunk) -> None:
        self.dropped: Counter[str] = Counter()
        self._chunk = chunk
        self._text = Located(chunk)
        self._claims: dict[tuple[object, ...], ExtractedClaim] = {}
        self._replies: list[dict[str, Any]] = []

    def take(self, reply: Structured[ClaimsReply]) -> bool:
        """Adds a reply; whether it claims anything that was not known."""
        self._replies.append(reply.value.model_dump())
        self.dropped["malformed row"] += reply.dropped
        self.dropped["reply that was cut off"] += reply.truncated
        found = [
            c for row in reply.value.claims if (c := read_claim(row, self._text, self.dropped))
        ]
        before = len(self._claims)
        for claim in found:
            self._claims.setdefault(_key(claim), claim)
        fresh = len(self._claims) - before
        self.dropped["repetition"] += len(found) - fresh
        return fresh > 0

    def known(self) -> str:
        """One JSON value to a line, for the prompt of the next round."""
        rows = ([c.subject, c.type, c.object, c.description] for c in self._claims.values())
        return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)

    def extraction(self, names: Sequence[str]) -> Extraction:
        content = canonical_json(self._replies).encode("utf-8", "surrogatepass")
        claims = tuple(self._claims.values())
        return Extraction(
            self._chunk.iri,
            named_in(claims, names),
            (),
            sha256(content).hexdigest(),
            {reason: count for reason, count in self.dropped.items() if count},
            claims,
        )


def _key(claim: ExtractedClaim) -> tuple[object, ...]:
    names = normalise_name(claim.subject), normalise_name(claim.object)
    return *names, normalise_name(claim.type), claim.status, claim.span


def named_in(claims: Iterable[ExtractedClaim], names: Iterable[str]) -> tuple[ExtractedEntity, ...]:
    """An entity for each name that the claims use and that is not known."""
    known = {normalise_name(name) for name in names}
    missing: dict[str, ExtractedEntity] = {}
    for claim in claims:
        for name in filter(None, (claim.subject, claim.object)):
            if normalise_name(name) not in known:
                entity = ExtractedEntity(name, "concept", span=claim.span)
                missing.setdefault(normalise_name(name), entity)
    return tuple(missing.values())


# --- rows ---------------------------------------------------------------------------------------


def read_claims(text: str, schema: type[ClaimsReply] = ClaimsReply) -> Read[ClaimsReply] | str:
    """A reply in JSON or in the tuple format of GraphRAG's prompts: subject, object, type, status,
    start, end, description and source text between ``<|>``; one sentence where it is neither."""
    read = read_reply(text, schema)
    if not isinstance(read, str):
        return read
    found = fields_of(text, len(_FIELDS))
    if found is None:
        return read
    rows = [ClaimRow(**dict(zip(_FIELDS, fields, strict=False))) for fields in found[0]]
    return Read(schema(claims=rows), True, found[1], False)


_FIELDS = ("subject", "object", "type", "status", "started", "ended", "description", "quote")


def read_claim(row: ClaimRow, text: Located, dropped: Counter[str]) -> ExtractedClaim | None:
    """A row as a claim; None where it can't be used, which is counted by reason."""
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
    other = name_of(row.object) or ""
    started, ended = (_date(value, dropped) for value in (row.started, row.ended))
    return ExtractedClaim(
        subject=subject,
        object="" if other.lower() in _NOBODY or _same(other, subject) else other,
        type=(name_of(row.type) or "claim").lower(),
        status=status,
        description=one_line(row.description) or one_line(span.quote),
        started=started,
        ended=ended,
        span=span,
    )


def _same(one: str, other: str) -> bool:
    return normalise_name(one) == normalise_name(other)


def _date(text: str, dropped: Counter[str]) -> Literal | None:
    """A date in one of the four forms; any other is left out of its claim and counted."""
    value = text.strip()
    if value.lower() in _NOBODY:
        return None
    value = _MIDNIGHT.sub("", value)
    for form in _DATE_FORMS:
        literal = typed_literal(value, form)
        if literal is not None:
            return literal
    dropped["date that can't be read (its claim is kept)"] += 1
    return None


_MIDNIGHT = re.compile(r"T00:00:00(?:\.0+)?Z?\Z")
