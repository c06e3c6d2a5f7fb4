"""Sentences for graph documents: each statement in words, using entity labels.

The text of a graph page is meant for parsers. Readers see the recorded statements of each line
instead, chunk by chunk, under the canonical names of the current knowledge graph."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pyoxigraph import Literal, NamedNode, Triple

from tgraph import vocabulary as v
from tgraph.model import Inline, Segment
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import with_labels
from tgraph.store.base import Term

_VAGUE = frozenset(("", "concept", "thing"))
_ENDS = (".", "!", "?", "。")


class _SaidAt(NamedTuple):
    """A statement with start and end; a ``faint`` statement only names something."""

    start: int
    end: int
    faint: bool
    text: str


def graph_segments(chunk: str, context: Context) -> tuple[Segment, ...]:
    """Return statement segments of a chunk in order, joining statements on the same lines."""
    statements = sorted(_read_statements(chunk, context))
    segments: list[Segment] = []
    run: list[_SaidAt] = []
    end = -1
    for statement in statements:
        if run and statement.start >= end:
            segments.append(_build_segment(run, end))
            run = []
        run.append(statement)
        end = max(end, statement.end)
    return (*segments, _build_segment(run, end)) if run else ()


def _build_segment(run: Sequence[_SaidAt], end: int) -> Segment:
    """Join statements of one place into a row segment; each part maps to the whole place."""
    statements = [statement for statement in run if not statement.faint] or run[:1]
    text = " ".join(dict.fromkeys(statement.text for statement in statements))
    start = run[0].start
    inlines = (Inline(start, start, start, end),)
    return Segment("row", start, end, text, array("q", [start]) * len(text), inlines=inlines)


def _read_statements(chunk: str, context: Context) -> Iterator[_SaidAt]:
    store, edges = context.store, []
    for quad in store.match(None, v.prov("wasDerivedFrom"), NamedNode(chunk), v.SOURCE_GRAPH):
        terms_by_name: dict[str, list[Term]] = {}
        assert isinstance(quad.subject, NamedNode)
        for _, predicate, term, _ in store.match(quad.subject, None, None, v.SOURCE_GRAPH):
            terms_by_name.setdefault(predicate.value.removeprefix(v.TG), []).append(term)
        if "charOffset" not in terms_by_name:
            continue
        start = int(_first_value(terms_by_name, "charOffset"))
        end = start + int(_first_value(terms_by_name, "charLength"))
        if "edge" in terms_by_name:
            edges.append((start, end, terms_by_name["edge"][0]))
        elif "entity" in terms_by_name:
            yield from (
                _SaidAt(start, end, *sentence_parts)
                for sentence_parts in _entity_sentences(terms_by_name)
            )
    triples = [_edge_triple(_canonical_edge(edge, context), context) for _, _, edge in edges]
    labelled_edges = with_labels(
        context.graph, [triple for triple in triples if triple is not None]
    )
    placed = (place for place, triple in zip(edges, triples, strict=True) if triple is not None)
    for (start, end, _), edge in zip(placed, labelled_edges, strict=True):
        yield _SaidAt(start, end, False, _complete_sentence(edge.text))


def _canonical_edge(edge: object, context: Context) -> NamedNode:
    """Return the canonical edge under which knowledge holds an original edge."""
    assert isinstance(edge, NamedNode)
    canonical_quads = context.store.match(None, v.tg("original"), edge, v.KNOWLEDGE_GRAPH)
    canonical = next((quad.subject for quad in canonical_quads), edge)
    return canonical if isinstance(canonical, NamedNode) else edge


def _edge_triple(
    edge: NamedNode, context: Context
) -> tuple[NamedNode, NamedNode, NamedNode | Literal] | None:
    for quad in context.store.match(edge, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        triple = quad.object
        if isinstance(triple, Triple) and isinstance(triple.subject, NamedNode):
            assert isinstance(triple.object, NamedNode | Literal)
            return triple.subject, triple.predicate, triple.object
    return None


def _entity_sentences(said: dict[str, list[Term]]) -> Iterator[tuple[bool, str]]:
    """Yield an entity evidence's sentences, flagging sentences that merely name the entity."""
    name, kind = _first_value(said, "name"), _first_value(said, "entityType")
    typed = f"{name} is {'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}."
    if "entityClass" in said:
        yield False, typed
    for alias in sorted(map(_term_value, said.get("alias", ()))):
        yield False, f"{name} is also called {_complete_sentence(alias)}"
    for description in sorted(map(_term_value, said.get("description", ()))):
        yield False, f"{name}: {_complete_sentence(description)}"
    yield True, f"{name}." if kind.lower() in _VAGUE else typed


def _first_value(said: dict[str, list[Term]], name: str) -> str:
    return _term_value(said[name][0]) if name in said else ""


def _term_value(term: Term) -> str:
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _complete_sentence(text: str) -> str:
    line = collapse_whitespace(text)
    return line if line.endswith(_ENDS) else f"{line}."
