"""What the lines of a graph say in words: each statement by the labels of what it speaks of.

The text of such a page is for parsers. What a line says to a reader is what is on record as stated
there, so that is read, chunk by chunk, under the names that knowledge has now.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.index.sources import document_of_chunk
from tgraph.model import Inline, Segment
from tgraph.rendering import flat
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import with_labels
from tgraph.store.base import Term

_VAGUE = frozenset(("", "concept", "thing"))
_ENDS = (".", "!", "?", "。")


class _SaidAt(NamedTuple):
    """What a place says; a ``faint`` one only names something."""

    start: int
    end: int
    faint: bool
    text: str


def is_graph(chunk: str, context: Context) -> bool:
    """Whether the chunk is of a graph that was written down, not of a text."""
    return context.texts.media_type(document_of_chunk(chunk)) in v.GRAPH_MEDIA_TYPES


def graph_segments(chunk: str, context: Context) -> tuple[Segment, ...]:
    """The statements of the chunk in order, those of the same lines together."""
    found = sorted(_statements(chunk, context))
    segments: list[Segment] = []
    run: list[_SaidAt] = []
    end = -1
    for said in found:
        if run and said.start >= end:
            segments.append(_segment(run, end))
            run = []
        run.append(said)
        end = max(end, said.end)
    return (*segments, _segment(run, end)) if run else ()


def _segment(run: Sequence[_SaidAt], end: int) -> Segment:
    """The statements of a place as one row, of which any part is the place."""
    told = [said for said in run if not said.faint] or run[:1]
    text = " ".join(dict.fromkeys(said.text for said in told))
    start = run[0].start
    inlines = (Inline(start, start, start, end),)
    return Segment("row", start, end, text, array("q", [start]) * len(text), inlines=inlines)


def _statements(chunk: str, context: Context) -> Iterator[_SaidAt]:
    store, edges = context.store, []
    for quad in store.match(None, v.prov("wasDerivedFrom"), NamedNode(chunk), v.SOURCE_GRAPH):
        said: dict[str, list[Term]] = {}
        assert isinstance(quad.subject, NamedNode)
        for _, predicate, term, _ in store.match(quad.subject, None, None, v.SOURCE_GRAPH):
            said.setdefault(predicate.value.removeprefix(v.TG), []).append(term)
        if "charOffset" not in said:
            continue
        start = int(_text(said, "charOffset"))
        end = start + int(_text(said, "charLength"))
        if "edge" in said:
            edges.append((start, end, said["edge"][0]))
        elif "entity" in said:
            yield from (_SaidAt(start, end, *told) for told in _told(said))
    triples = [_triple(_known(edge, context), context) for _, _, edge in edges]
    named = with_labels(context.graph, [triple for triple in triples if triple is not None])
    placed = (place for place, triple in zip(edges, triples, strict=True) if triple is not None)
    for (start, end, _), edge in zip(placed, named, strict=True):
        yield _SaidAt(start, end, False, _sentence(edge.text))


def _known(edge: object, context: Context) -> NamedNode:
    """The edge as knowledge has it, under canonical names."""
    assert isinstance(edge, NamedNode)
    known = context.store.match(None, v.tg("original"), edge, v.KNOWLEDGE_GRAPH)
    found = next((quad.subject for quad in known), edge)
    return found if isinstance(found, NamedNode) else edge


def _triple(
    edge: NamedNode, context: Context
) -> tuple[NamedNode, NamedNode, NamedNode | Literal] | None:
    for quad in context.store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        triple = quad.object
        if isinstance(triple, Triple) and isinstance(triple.subject, NamedNode):
            assert isinstance(triple.object, NamedNode | Literal)
            return triple.subject, triple.predicate, triple.object
    return None


def _told(said: dict[str, list[Term]]) -> Iterator[tuple[bool, str]]:
    """What evidence of an entity says, and whether that is only its name."""
    name, kind = _text(said, "name"), _text(said, "entityType")
    typed = f"{name} is {'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}."
    if "entityClass" in said:
        yield False, typed
    for alias in sorted(map(_value, said.get("alias", ()))):
        yield False, f"{name} is also called {_sentence(alias)}"
    for description in sorted(map(_value, said.get("description", ()))):
        yield False, f"{name}: {_sentence(description)}"
    yield True, f"{name}." if kind.lower() in _VAGUE else typed


def _text(said: dict[str, list[Term]], name: str) -> str:
    return _value(said[name][0]) if name in said else ""


def _value(term: Term) -> str:
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _sentence(text: str) -> str:
    line = flat(text)
    return line if line.endswith(_ENDS) else f"{line}."
