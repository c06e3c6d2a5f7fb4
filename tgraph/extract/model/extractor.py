"""Extraction by a language model: rounds of gleaning over a chunk, and what they give."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
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
    load_prompt,
    messages,
    with_addition,
)
from tgraph.models.structured_output import Structured, ask
from tgraph.vocabulary import digest, normalise_name

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")
Key = tuple[object, ...]


class GleanedReplies(ABC, Generic[R]):
    """What the rounds over one chunk have brought so far, and what was left out, by reason."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.dropped: Counter[str] = Counter()
        self._replies: list[dict[str, Any]] = []
        self._found: dict[Key, Any] = {}

    def take(self, reply: Structured[R]) -> bool:
        """Adds a reply; whether it says anything that was not known."""
        self._replies.append(reply.value.model_dump())
        self.dropped["malformed row"] += reply.dropped
        self.dropped["reply that was cut off"] += reply.truncated
        before = len(self._found)
        said = list(self.read(reply.value))
        for key, item in said:
            self._found.setdefault(key, item)
        fresh = len(self._found) - before
        self.dropped["repetition"] += len(said) - fresh
        return fresh > 0

    def all_of(self, kind: type[T]) -> tuple[T, ...]:
        """What is known of a kind, in the order in which it was found."""
        return tuple(item for item in self._found.values() if isinstance(item, kind))

    @abstractmethod
    def read(self, reply: R) -> Iterable[tuple[Key, Any]]:
        """What the reply says that can be used, each with a key that is the same for the same."""

    @abstractmethod
    def known(self) -> str:
        """One JSON value to a line, for the prompt of the next round."""

    @cached_property
    def text(self) -> QuoteFinder:
        """The chunk's text, in which quotes are looked up."""
        return QuoteFinder(self.chunk)

    @property
    def reply_hash(self) -> str:
        content = canonical_json(self._replies).encode("utf-8", "surrogatepass")
        return sha256(content).hexdigest()

    @property
    def counts(self) -> dict[str, int]:
        return {reason: count for reason, count in self.dropped.items() if count}


class Gleaning(Prompted, Generic[R]):
    """Asks by the prompts ``NAME`` and ``NAME_more`` (a gleaning round, repeated until it yields
    nothing new). ``asked_for`` is what the replies depend on beside the chunk and the options."""

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
        """Changes when the same chunk could yield something else."""
        options = map(str, (self._asked_for, self._gleanings, *self._options))
        return digest(self.agent.iri, *(p.sha256 for p in self.prompts), *options)

    @staticmethod
    @abstractmethod
    def read(text: str, schema: type[R]) -> Read[R] | str:
        """A reply as a value, or one sentence that says what is wrong with it."""

    def run(
        self,
        chunk: Chunk,
        title: str,
        values: Mapping[str, str],
        gathered: GleanedReplies[R],
        sink: CallSink,
    ) -> None:
        """All rounds over the chunk; ``values`` are what the prompts have beside its text.

        Raises ``ModelError`` where the first reply can't be used; a later one costs its round.
        """
        filled = {
            "title": one_line(title),
            "section": one_line(" > ".join(chunk.headings)) or "-",
            "text": f"{chunk.preface}\n\n{chunk.text}" if chunk.preface else chunk.text,
            **values,
        }
        gathered.take(self._reply(self._prompt, filled, sink))
        for _ in range(self._gleanings):
            try:
                reply = self._reply(self._more, {**filled, "known": gathered.known()}, sink)
            except EndpointError:
                raise
            except ModelError:  # what was paid for is kept
                gathered.dropped["further round whose reply can't be used"] += 1
                break
            if not gathered.take(reply):
                break

    def _reply(self, prompt: Prompt, values: Mapping[str, str], sink: CallSink) -> Structured[R]:
        temperature, seed, max_tokens = self._options
        request = ChatRequest(
            prompt,
            messages(prompt, values),
            max_tokens=max_tokens,
            temperature=temperature,
            seed=seed,
        )
        return ask(self._model, request, self.schema, sink, read=self.read)


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
        """The same extractor, shown at most ``limit`` classes and properties of the ontology, those
        nearest to the chunk; ``iris`` are those under which it is on record."""
        led = copy(self)
        addition = load_prompt("extract_graph_ontology", self._folder)
        led._prompt = with_addition(self._prompt, addition)
        led._more = with_addition(self._more, addition)
        led._ontology, led._limit, led.ontologies = ontology, limit, iris
        led._asked_for = digest(self._asked_for, ontology.rows(), str(limit))
        return led

    def extract(self, chunk: Chunk, title: str, sink: CallSink = no_sink) -> Extraction:
        """As ``Extractor.extract``. Raises ``ModelError`` where the first reply can't be used."""
        gathered = _GleanedGraph(chunk)
        values = {"entity_types": self._types}
        if self._ontology is not None:
            values["ontology"] = self._ontology.near(chunk.text, self._limit).rows()
        self.run(chunk, title, values, gathered, sink)
        return gathered.extraction()


def _normalised(name: object) -> object:
    return normalise_name(name) if isinstance(name, str) else name


class _GleanedGraph(GleanedReplies[GraphReply]):
    def read(self, reply: GraphReply) -> Iterator[tuple[Key, Any]]:
        entities, relationships = usable_rows(reply, self.text, self.dropped)
        for e in entities:
            yield (normalise_name(e.name), frozenset(map(normalise_name, e.aliases))), e
        for r in relationships:
            yield (*map(_normalised, (r.subject, r.predicate, r.object)), r.span), r

    def known(self) -> str:
        names = (entity.name for entity in self.all_of(ExtractedEntity))
        lines = [json.dumps({"entity": name}, ensure_ascii=False) for name in names]
        for r in self.all_of(ExtractedRelationship):
            obj = r.object if isinstance(r.object, str) else r.object.value
            lines.append(json.dumps([r.subject, r.predicate, obj], ensure_ascii=False))
        return "\n".join(lines)

    def extraction(self) -> Extraction:
        found = self.all_of(ExtractedEntity), self.all_of(ExtractedRelationship)
        return Extraction(self.chunk.iri, *found, self.reply_hash, self.counts)
