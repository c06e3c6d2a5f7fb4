"""Proposing questions: what a reader of the documents would ask next, with what led to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from tgraph.answer.base import Draft, Notes
from tgraph.answer.model import ModelStep, asked
from tgraph.answer.replies import SentenceRow, read_citations
from tgraph.model import Agent, Edge, Selected, Selection
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.jsonl import read_jsonl
from tgraph.retrieve.base import Question
from tgraph.retrieve.lexical import terms
from tgraph.version import __version__


class ModelSuggester(ModelStep):
    """The model proposes; what cites nothing that it was shown is left out and counted."""

    name = "suggest_questions"

    def __init__(
        self, model: ChatModel, prompts: Path | None = None, *, count: int, **options: Any
    ) -> None:
        super().__init__(model, prompts, **options)
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """The proposed questions, at most ``count``."""
        if not selection.selected:
            return
        values = {"history": asked(question)["history"], "count": str(self._count)}
        shown = self._show(selection.selected, "evidence", values)
        notes.drop("selected item over the token budget", len(shown.left_out))
        reply = self.model.complete(self.request({**values, "evidence": shown.text}), sink)
        rows, malformed = read_jsonl(reply.text, SentenceRow)
        notes.drop("malformed row", malformed)
        found = 0
        for row in rows:
            text, cited, unknown = read_citations(row.sentence, row.citations, shown.by_id)
            notes.drop("citation of an id that was not shown", unknown)
            if not text or not cited:
                notes.drop("question without a citation that holds")
            elif found < self._count:
                found += 1
                yield Draft(text, tuple(shown.by_id[i] for i in cited), lead="\n")


class EmbeddedSuggester:
    """Questions made from the strongest edges that the conversation has not touched."""

    agent = Agent("method", "embedded-suggestion", __version__)

    def __init__(self, count: int) -> None:
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """The proposed questions, at most ``count``; two never start from the same entity."""
        told = {term for turn in question.history for term in terms(turn.question)}
        used: set[str] = set()
        found = 0
        for selected in _strongest(selection.selected):
            edge = selected.edge
            ends = _ends(edge)
            if found == self._count:
                return
            if used.isdisjoint(ends) and not told.issuperset(terms(edge.text)):
                used |= ends
                found += 1
                yield Draft(_question(edge), (selected,), lead="\n")


def _strongest(selected: Iterable[Selected]) -> list[Selected]:
    """Edges that say more than that something is mentioned: those between two names first, those
    of the first entities before others."""
    items = list(selected)
    order = {s.item.iri: place for place, s in enumerate(items) if s.item.kind == "entity"}
    edges = [s for s in items if isinstance(s.item, Edge) and s.edge.predicate_label != "mentions"]

    def key(chosen: Selected) -> tuple[bool, int, float, int]:
        place = min(order.get(end, len(items)) for end in _ends(chosen.edge))
        return not _is_link(chosen.edge), place, -chosen.score, chosen.candidate.rank

    return sorted(edges, key=key)


def _ends(edge: Edge) -> set[str]:
    return {term.value for term in (edge.subject, edge.object) if isinstance(term, NamedNode)}


def _is_link(edge: Edge) -> bool:
    return all(any(map(str.isupper, label)) for label in (edge.subject_label, edge.object_label))


def _question(edge: Edge) -> str:
    if isinstance(edge.object, NamedNode) and _is_link(edge):
        return f"How is {edge.subject_label} connected with {edge.object_label}?"
    if isinstance(edge.object, NamedNode):
        return f"What do the documents say about {edge.subject_label} and {edge.object_label}?"
    return f"What is known about the {edge.predicate_label} of {edge.subject_label}?"
