"""Proposing questions: what a reader of the documents would ask next, with what led to each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from tgraph.answer.base import Draft, Notes
from tgraph.answer.model import ModelStep, asked
from tgraph.answer.rows import SentenceRow, read_citations
from tgraph.model import Agent, Edge, Item, Selected, Selection
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.json_parsing import read_jsonl
from tgraph.models.prompts import Prompts
from tgraph.retrieve.base import Question
from tgraph.retrieve.text.lexical import terms
from tgraph.version import __version__
from tgraph.vocabulary import normalise_name


class ModelSuggester(ModelStep):
    """The model proposes; what cites nothing that it was shown, and what was asked or proposed
    before, is left out and counted."""

    name = "suggest_questions"

    def __init__(
        self, model: ChatModel, prompts: Prompts = None, *, count: int, **options: Any
    ) -> None:
        super().__init__(model, prompts, **options)
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """The proposed questions, at most ``count``; no two are the same."""
        if not selection.selected:
            return
        values = {"history": asked(question)["history"], "count": str(self._count)}
        shown = self._show(selection.selected, "evidence", values)
        notes.drop("selected item over the token budget", len(shown.left_out))
        reply = self.model.complete(self.request({**values, "evidence": shown.text}), sink)
        rows, malformed = read_jsonl(reply.text, SentenceRow)
        notes.drop("malformed row", malformed)
        told = {normalise_name(turn.question) for turn in question.history}
        known = set(told)
        for row in rows:
            text, cited, unknown = read_citations(row.sentence, row.citations, shown.by_id)
            notes.drop("citation of an id that was not shown", unknown)
            if not text or not cited:
                notes.drop("question without a citation that holds")
            elif (name := normalise_name(text)) in known:
                notes.drop("question that was asked before")
            elif len(known) - len(told) < self._count:
                known.add(name)
                yield Draft(text, tuple(shown.by_id[i] for i in cited), lead="\n")


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A question, what it is about in words and in entities, and what led to it."""

    text: str
    about: str
    ends: frozenset[str]
    selected: Selected


class EmbeddedSuggester:
    """Questions made from the strongest edges that the conversation has not touched, and about the
    central entities: first those that share no entity with another question."""

    agent = Agent("method", "embedded-suggestion", __version__)

    def __init__(self, count: int) -> None:
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """The proposed questions, at most ``count``; no two are the same."""
        told = {term for turn in question.history for term in terms(turn.question)}
        edges = [_of_edge(selected) for selected in _strongest(selection.selected)]
        centres = [_of_entity(s) for s in selection.selected if s.item.kind == "entity"]
        asked: dict[str, Selected] = {}
        used: set[str] = set()
        for proposals, shared in ((edges, 0), (centres, 0), (edges, 1)):
            for proposal in proposals:
                new = proposal.text not in asked and not told.issuperset(terms(proposal.about))
                if new and len(proposal.ends & used) <= shared and len(asked) < self._count:
                    used |= proposal.ends
                    asked[proposal.text] = proposal.selected
        for text, selected in asked.items():
            yield Draft(text, (selected,), lead="\n")


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


def _of_edge(selected: Selected) -> _Proposal:
    edge = selected.edge
    if isinstance(edge.object, NamedNode) and _is_link(edge):
        text = f"How is {edge.subject_label} connected with {edge.object_label}?"
    elif isinstance(edge.object, NamedNode):
        text = f"What do the documents say about {edge.subject_label} and {edge.object_label}?"
    else:
        text = f"What do the documents say about {edge.subject_label}?"
    return _Proposal(text, edge.text, frozenset(_ends(edge)), selected)


def _of_entity(selected: Selected) -> _Proposal:
    assert isinstance(selected.item, Item)
    label = selected.item.label
    text = f"What do the documents say about {label}?"
    return _Proposal(text, label, frozenset({selected.item.iri}), selected)
