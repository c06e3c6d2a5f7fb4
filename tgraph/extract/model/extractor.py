"""Extraction by language model: gleaning rounds over a chunk, and their results."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from hashlib import sha256
from typing import Any, Generic, TypeVar, Unpack

from pydantic import BaseModel

from tgraph.errors import EndpointError, ModelError
from tgraph.extract.model.quote_location import QuoteFinder, one_line
from tgraph.extract.model.replies import GraphReply, read_graph, usable_rows
from tgraph.extract.ontology import Ontology
from tgraph.model import Chunk, ExtractedEntity, ExtractedRelationship, Extraction, Prompt
from tgraph.models.base import CallSink, ChatModel, ChatRequest, canonical_json, no_sink
from tgraph.models.json_parsing import Read
from tgraph.models.prompts import (
    Options,
    Prompted,
    Prompts,
    fill_messages,
    load_prompt,
    with_addition,
)
from tgraph.models.structured_output import Structured, ask_structured
from tgraph.vocabulary import digest_parts, normalise_name

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")
ReplyKey = tuple[object, ...]

CUT_OFF = "reply that was cut off"
LOST_ROUND = "further round whose reply can't be used"


class GleanedReplies(ABC, Generic[R]):
    """Gleaning results for one chunk, with counts of omissions by reason."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.dropped: Counter[str] = Counter()
        self._replies: list[dict[str, Any]] = []
        self._found: dict[ReplyKey, Any] = {}

    def add_reply(self, reply: Structured[R]) -> bool:
        """Add a reply and tell whether new items were found."""
        self._replies.append(reply.value.model_dump())
        self.dropped["malformed row"] += reply.dropped
        self.dropped[CUT_OFF] += reply.truncated
        before = len(self._found)
        items = list(self.read(reply.value))
        for key, item in items:
            self._found.setdefault(key, item)
        fresh = len(self._found) - before
        self.dropped["repetition"] += len(items) - fresh
        return fresh > 0

    def all_of(self, kind: type[T]) -> tuple[T, ...]:
        """Return items of a type, in order of discovery."""
        return tuple(item for item in self._found.values() if isinstance(item, kind))

    @abstractmethod
    def read(self, reply: R) -> Iterable[tuple[ReplyKey, Any]]:
        """Return usable items of a reply, each with an identity key."""

    @abstractmethod
    def format_items(self) -> str:
        """Return found items for the next round's prompt, one JSON value per line."""

    @cached_property
    def text(self) -> QuoteFinder:
        """Chunk text for quote lookup."""
        return QuoteFinder(self.chunk)

    @property
    def reply_hash(self) -> str:
        content = canonical_json(self._replies).encode("utf-8", "surrogatepass")
        return sha256(content).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        return {reason: count for reason, count in self.dropped.items() if count}


class Gleaning(Prompted, Generic[R]):
    """A gleaning extractor: asks by prompt ``NAME``, then repeatedly by ``NAME_more`` until
    nothing new appears.

    ``asked_for`` is everything else influencing replies, beside the chunk and the options."""

    name: str
    schema: type[R]

    def __init__(
        self,
        model: ChatModel,
        asked_for: str,
        gleanings: int,
        prompts: Prompts,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, load_prompt(self.name, prompts), (), **options)
        self._more = load_prompt(f"{self.name}_more", prompts)
        self._asked_for = asked_for
        self._gleanings = gleanings

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._prompt, self._more) if self._gleanings else (self._prompt,)

    @property
    def key(self) -> str:
        """A key changing whenever the same chunk could yield a different result."""
        options = map(str, (self._asked_for, self._gleanings, *self._options))
        return digest_parts(self.agent.iri, *(p.sha256 for p in self.prompts), *options)

    @staticmethod
    @abstractmethod
    def read(text: str, schema: type[R]) -> Read[R] | str:
        """Return a reply as value, or one sentence explaining its fault."""

    def run(
        self,
        chunk: Chunk,
        title: str,
        values: Mapping[str, str],
        gathered: GleanedReplies[R],
        sink: CallSink,
    ) -> None:
        """Run all gleaning rounds over a chunk; ``values`` fill the prompts beside the chunk
        text.

        Raises ``ModelError`` if the first reply is unusable; a later reply only costs its
        round."""
        filled = {
            "title": one_line(title),
            "section": one_line(" > ".join(chunk.headings)) or "-",
            "text": "\n\n".join(filter(None, (chunk.preface, name_columns(chunk), chunk.text))),
            **values,
        }
        gathered.add_reply(self._request_reply(self._prompt, filled, sink))
        for _ in range(self._gleanings):
            try:
                reply = self._request_reply(
                    self._more, {**filled, "known": gathered.format_items()}, sink
                )
            except EndpointError:
                raise
            except ModelError:  # what was paid for is kept
                gathered.dropped[LOST_ROUND] += 1
                break
            if not gathered.add_reply(reply):
                break

    def _request_reply(
        self, prompt: Prompt, values: Mapping[str, str], sink: CallSink
    ) -> Structured[R]:
        temperature, seed, max_tokens = self._options
        request = ChatRequest(
            prompt,
            fill_messages(prompt, values),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return ask_structured(self._model, request, self.schema, sink, read=self.read)


def name_columns(chunk: Chunk) -> str:
    """Return a line with the columns' names for each table whose first row is in an earlier chunk,
    and so its head; empty text for none."""
    first_rows: dict[int, int] = {}
    names: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for segment in chunk.segments:
        row = segment.row
        if row is not None and first_rows.setdefault(row.table, row.number):
            for (key, _), cell in zip(segment.pairs, row.cells, strict=True):
                names[row.table][cell.column] = segment.text[slice(*key)]
    lines = (" | ".join(columns[at] for at in sorted(columns)) for columns in names.values())
    return "\n".join(f"Columns: {line}" for line in lines if line.strip(" |"))


class ModelExtractor(Gleaning[GraphReply]):
    """An ``Extractor`` that asks a language model by the prompts ``extract_graph`` and
    ``extract_graph_more``."""

    name = "extract_graph"
    schema = GraphReply
    read = staticmethod(read_graph)

    def __init__(
        self,
        model: ChatModel,
        entity_types: Sequence[str],
        gleanings: int = 1,
        prompts: Prompts = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, ", ".join(entity_types), gleanings, prompts, **options)
        self._folder = prompts
        self._types = self._asked_for
        self._ontology: Ontology | None = None
        self._limit = 0
        self.ontologies: tuple[str, ...] = ()

    def led_by(self, ontology: Ontology, iris: tuple[str, ...], limit: int) -> ModelExtractor:
        """Return a copy guided by at most ``limit`` ontology classes and properties nearest to
        the chunk; ``iris`` are the recorded ontology IRIs."""
        led = copy(self)
        addition = load_prompt("extract_graph_ontology", self._folder)
        led._prompt = with_addition(self._prompt, addition)
        led._more = with_addition(self._more, addition)
        led._ontology, led._limit, led.ontologies = ontology, limit, iris
        led._asked_for = digest_parts(self._asked_for, ontology.rows(), str(limit))
        return led

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """Return an extraction like ``Extractor.extract``.

        Raises ``ModelError`` if the first reply is unusable."""
        gathered = _GleanedGraph(chunk)
        values = {"entity_types": self._types}
        if self._ontology is not None:
            values["ontology"] = self._ontology.near(chunk.text, self._limit).rows()
        self.run(chunk, title, values, gathered, sink)
        return gathered.extraction()


def _normalise_term(name: object) -> object:
    return normalise_name(name) if isinstance(name, str) else name


class _GleanedGraph(GleanedReplies[GraphReply]):
    def read(self, reply: GraphReply) -> Iterator[tuple[ReplyKey, Any]]:
        entities, relationships = usable_rows(reply, self.text, self.dropped)
        for e in entities:
            yield (normalise_name(e.name), frozenset(map(normalise_name, e.aliases))), e
        for r in relationships:
            yield (*map(_normalise_term, (r.subject, r.predicate, r.object)), r.span), r

    def format_items(self) -> str:
        names = (entity.name for entity in self.all_of(ExtractedEntity))
        lines = [json.dumps({"entity": name}, ensure_ascii=False) for name in names]
        for r in self.all_of(ExtractedRelationship):
            obj = r.object if isinstance(r.object, str) else r.object.value
            lines.append(json.dumps([r.subject, r.predicate, obj], ensure_ascii=False))
        return "\n".join(lines)

    def extraction(self) -> Extraction:
        items = self.all_of(ExtractedEntity), self.all_of(ExtractedRelationship)
        return Extraction(self.chunk.iri, *items, self.reply_hash, self.counts)
