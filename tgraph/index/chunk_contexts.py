"""Contexts: a few words that situate a chunk in its document, so that both are found together.

A chunk by itself often says neither what it is of nor what its pronouns stand for. Its context is
put before it where it is embedded and where its words are counted (Anthropic, "Introducing
Contextual Retrieval", 2024). A context is a function of the chunk, its document and who made it.
"""

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
    """A chunk in its document: the document's title, the texts of its pages joined, where the chunk
    starts in them, and the names that matter in the document, the most frequent first."""

    chunk: Chunk
    title: str
    document: str
    start: int
    names: tuple[str, ...] = ()


class Situator(Author, Protocol):
    """Who writes contexts."""

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        """The context; empty where there is nothing to say. ``ModelError`` where a reply can't be
        used."""


class StructuralSituator:
    """Contexts without a model: title, section path (in code and outlines the less indented lines
    that the chunk stands under) and the names that matter in the document."""

    agent = Agent("method", "document-structure", __version__)
    prompts: Sequence[Prompt] = ()

    def __init__(self, most_names: int) -> None:
        self._most = most_names

    @property
    def key(self) -> str:
        return v.digest(self.agent.iri, str(self._most))

    def situate(self, setting: Setting, sink: CallSink = no_sink) -> str:
        path = setting.chunk.headings or tuple(enclosing_lines(setting.document, setting.start))
        above = [part for part in path if part != setting.title]
        lines = [" > ".join([setting.title, *above]), ", ".join(setting.names[: self._most])]
        return "\n".join(line for line in lines if line)


def enclosing_lines(text: str, start: int) -> list[str]:
    """The lines before ``start`` that what stands there is indented under, outermost first."""
    begin = text.rfind("\n", 0, start) + 1
    first = next((line for line in text[begin:].split("\n") if _LETTER.search(line)), "")
    indent, found = _indent(first), []
    end = begin
    while indent and end > 0:
        before = text.rfind("\n", 0, end - 1) + 1
        line = text[before : end - 1]
        end = before
        if _LETTER.search(line) and _indent(line) < indent:
            found.append(line.strip()[:_LONGEST_LINE])
            indent = _indent(line)
    return found[::-1]


def _indent(line: str) -> int:
    match = _INDENT.match(line)
    assert match is not None
    return len(match.group().expandtabs(4))


def names_that_matter(chunks: Iterable[tuple[str, Iterable[str]]], most: int) -> tuple[str, ...]:
    """The names that a document uses most: of its chunks' (text, names found in it) and of the
    compound identifiers in them; the most frequent first, then by name."""
    count: Counter[str] = Counter()
    for text, names in chunks:
        count.update(_IDENTIFIER.findall(text))
        count.update({name: _times(name, text) for name in set(names) if _PLAIN.fullmatch(name)})
    found = sorted((-times, name) for name, times in count.items() if times > 1)
    return tuple(name for _, name in found[:most])


def _times(name: str, text: str) -> int:
    """How often a text has the name, and not only within a longer word."""
    return len(re.findall(rf"(?<!\w){re.escape(name)}(?!\w)", text))


def pieces(text: str, size: int = PIECE) -> Iterator[str]:
    """The text in stretches of whole lines of at most ``size`` characters; longer lines are cut at
    a space where there is one. Nothing but white space is lost."""
    held = ""
    for line in text.splitlines(keepends=True):
        if held and len(held) + len(line) > size:
            yield from _said(held)
            held = ""
        held += line
        while len(held) > size:
            at = held.rfind(" ", size // 2, size) + 1 or size
            yield from _said(held[:at])
            held = held[at:]
    yield from _said(held)


def _said(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip("\n")


def spelled_out(text: str) -> str:
    """The text with the parts of compound identifiers apart, as embedders of prose know them."""
    return _JOINTS.sub(" ", text)


def with_context(context: str, text: str) -> str:
    return f"{context}\n\n{text}" if context else text


def lacks_contexts(store: Store) -> bool:
    """Whether there are chunks and none of them has a context."""
    linked = store.match(None, v.tg("context"), None, v.KNOWLEDGE_GRAPH)
    if next(linked, None) is not None:
        return False
    return next(standing_chunks(store), None) is not None


def standing_contexts(store: Store) -> dict[str, str]:
    """The context (IRI) of each chunk that knowledge has one for."""
    quads = store.match(None, v.tg("context"), None, v.KNOWLEDGE_GRAPH)
    return {
        quad.subject.value: quad.object.value
        for quad in quads
        if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode)
    }


def context_texts(store: Store) -> dict[str, str]:
    """What each context says, and whatever else on record has a text of its own."""
    quads = store.match(None, v.tg("text"), None, v.SOURCE_GRAPH)
    return {text_of(quad.subject): text_of(quad.object) for quad in quads}


def context_text(store: Store, context: str) -> str:
    """What a context says."""
    return text_value(store, context, v.tg("text"))
