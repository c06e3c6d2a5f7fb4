"""Chunk contexts: short texts situating chunks in documents, making both findable together.

A chunk by itself often leaves its subject and the referents of its pronouns open. Its context
is put before it for embedding and for word counts (Anthropic, "Introducing Contextual
Retrieval", 2024). A context is a function of the chunk, its document and its author."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import standing_chunks, text_value
from tgraph.model import Agent, Chunk, Prompt
from tgraph.models.base import Author, CallSink, no_sink
from tgraph.store.base import Store, text_of
from tgraph.version import __version__

PIECE = 600
"""Characters of a chunk that are embedded with its context: small enough that the context counts,
and together no more than MiniLM's 256 tokens."""

_LONGEST_LINE = 120
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z][A-Za-z0-9]*_\w+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+"
    r"|[a-z]+[0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z]{2,}[a-z]\w*)\b"
    r"|\b[A-Z][a-z0-9]+(?=::|[(<{]|\.[A-Za-z])"  # one word, called or qualified as only code does
)
_JOINTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=\w)_+(?=\w)")
_PLAIN = re.compile(r"\w[\w .'’-]*")
_INDENT = re.compile(r"[ \t]*")
_LETTER = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class Setting:
    """A chunk in its document: document title, joined page texts, chunk start in the joined
    text, and important names, most frequent leading."""

    chunk: Chunk
    title: str
    document: str
    start: int
    names: tuple[str, ...] = ()


class Situator(Author, Protocol):
    """Who writes contexts."""

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        """Return the chunk context, blank if nothing is worth saying.

        Raise ``ModelError`` if a reply is unusable."""


class StructuralSituator:
    """Contexts without a model: title, section path (in code and outlines the less indented
    enclosing lines) and important document names."""

    agent = Agent("method", "document-structure", __version__)
    prompts: Sequence[Prompt] = ()

    def __init__(self, most_names: int) -> None:
        self._most = most_names

    @property
    def key(self) -> str:
        return v.digest_parts(self.agent.iri, str(self._most))

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        path = setting.chunk.headings or tuple(enclosing_lines(setting.document, setting.start))
        above = [part for part in path if part != setting.title]
        lines = [" > ".join([setting.title, *above]), ", ".join(setting.names[: self._most])]
        return "\n".join(line for line in lines if line)


def enclosing_lines(text: str, start: int) -> list[str]:
    """Return less indented lines enclosing the text at ``start``, outermost leading."""
    begin = text.rfind("\n", 0, start) + 1
    first = next((line for line in text[begin:].split("\n") if _LETTER.search(line)), "")
    indent, lines = _indent_width(first), []
    end = begin
    while indent and end > 0:
        before = text.rfind("\n", 0, end - 1) + 1
        line = text[before : end - 1]
        end = before
        if _LETTER.search(line) and _indent_width(line) < indent:
            lines.append(line.strip()[:_LONGEST_LINE])
            indent = _indent_width(line)
    return lines[::-1]


def _indent_width(line: str) -> int:
    match = _INDENT.match(line)
    assert match is not None
    return len(match.group().expandtabs(4))


def names_that_matter(chunks: Iterable[tuple[str, Iterable[str]]], most: int) -> tuple[str, ...]:
    """Return the most frequent names in a document, sorted by frequency, then alphabetically.

    Counted are names found in each chunk's text, given as (text, names) pairs, and compound
    identifiers in the texts."""
    count: Counter[str] = Counter()
    for text, names in chunks:
        count.update(_IDENTIFIER.findall(text))
        count.update(
            {name: _count_occurrences(name, text) for name in set(names) if _PLAIN.fullmatch(name)}
        )
    ranked_names = sorted((-times, name) for name, times in count.items() if times > 1)
    return tuple(name for _, name in ranked_names[:most])


def _count_occurrences(name: str, text: str) -> int:
    """Return how often text contains a name as complete words."""
    return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def split_pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """Yield text pieces of complete lines, up to ``size`` characters; longer lines are cut at a
    space if possible.

    Only white space is lost."""
    buffer = ""
    for line in text.splitlines(keepends=True):
        if buffer and len(buffer) + len(line) > size:
            yield from _non_blank(buffer)
            buffer = ""
        buffer += line
        while len(buffer) > size:
            at = buffer.rfind(" ", size // 2, size) + 1 or size
            yield from _non_blank(buffer[:at])
            buffer = buffer[at:]
    yield from _non_blank(buffer)


def _non_blank(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip("\n")


def spelled_out(text: str) -> str:
    """The text with the parts of compound identifiers apart, as embedders of prose know them."""
    return _JOINTS.sub(" ", text)


def with_context(context: str, text: str) -> str:
    return f"{context}\n\n{text}" if context else text


def lacks_contexts(store: Store) -> bool:
    """Tell whether chunks exist but all lack contexts."""
    linked = store.match(None, v.tg("context"), None, v.KNOWLEDGE_GRAPH)
    if next(linked, None) is not None:
        return False
    return next(standing_chunks(store), None) is not None


def standing_contexts(store: Store) -> dict[str, str]:
    """Return context IRIs by chunk, as recorded in knowledge."""
    quads = store.match(None, v.tg("context"), None, v.KNOWLEDGE_GRAPH)
    return {
        quad.subject.value: quad.object.value
        for quad in quads
        if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode)
    }


def context_texts(store: Store) -> dict[str, str]:
    """Return texts by IRI, for contexts and any other recorded resources with text."""
    quads = store.match(None, v.tg("text"), None, v.SOURCE_GRAPH)
    return {text_of(quad.subject): text_of(quad.object) for quad in quads}


def context_text(store: Store, context: str) -> str:
    """Return a context's text."""
    return text_value(store, context, v.tg("text"))
