"""Question suggestions: likely next questions of a document reader, each with its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyoxigraph import NamedNode

from tgraph.answer.base import Draft, Notes
from tgraph.answer.model import ModelStep, question_values
from tgraph.answer.rows import AnswerSentenceRow, read_citations
from tgraph.model import Agent, Edge, Item, Selected, Selection
from tgraph.models.base import CallSink, ChatModel
from tgraph.models.json_parsing import read_jsonl
from tgraph.models.prompts import Prompts
from tgraph.retrieve.base import Question
from tgraph.retrieve.text.lexical import terms
from tgraph.version import __version__
from tgraph.vocabulary import normalise_name


class ModelSuggester(ModelStep):
    """Proposes questions with a model; proposals without valid citation, and repeated
    questions, are omitted and counted."""

    name = "suggest_questions"

    def __init__(
        self, model: ChatModel, prompts: Prompts = None, *, count: int, **options: Any
    ) -> None:
        super().__init__(model, prompts, **options)
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """Yield proposed questions, at most ``count``, without duplicates."""
        if not selection.selected:
            return
        values = {"history": question_values(question)["history"], "count": str(self._count)}
        evidence_rows = self._fit_items(selection.selected, "evidence", values)
        notes.drop("selected item over the token budget", len(evidence_rows.left_out))
        reply = self.model.complete(self.request({**values, "evidence": evidence_rows.text}), sink)
        rows, malformed = read_jsonl(reply.text, AnswerSentenceRow)
        notes.drop("malformed row", malformed)
        asked_names = {normalise_name(turn.question) for turn in question.history}
        seen_names = set(asked_names)
        for row in rows:
            text, cited, unknown = read_citations(row.sentence, row.citations, evidence_rows.by_id)
            notes.drop("citation of an id that was not shown", unknown)
            if not text or not cited:
                notes.drop("question without a citation that holds")
            elif (name := normalise_name(text)) in seen_names:
                notes.drop("question that was asked before")
            elif len(seen_names) - len(asked_names) < self._count:
                seen_names.add(name)
                yield Draft(text, tuple(evidence_rows.by_id[i] for i in cited), lead="\n")


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A proposed question: subject words, entities, and the selection behind the question."""

    text: str
    about: str
    ends: frozenset[str]
    selected: Selected


class EmbeddedSuggester:
    """Proposes questions on the strongest edges untouched by the conversation, and on central
    entities.

    Questions that share no entity with another question come first."""

    agent = Agent("method", "embedded-suggestion", __version__)

    def __init__(self, count: int) -> None:
        self._count = count

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """Yield proposed questions, at most ``count``, without duplicates."""
        asked_terms = {term for turn in question.history for term in terms(turn.question)}
        edges = [_of_edge(selected) for selected in _sort_strongest(selection.selected)]
        centres = [_of_entity(s) for s in selection.selected if s.item.kind == "entity"]
        questions_by_text: dict[str, Selected] = {}
        used: set[str] = set()
        for proposals, shared in ((edges, 0), (centres, 0), (edges, 1)):
            for proposal in proposals:
                new = proposal.text not in questions_by_text and not asked_terms.issuperset(
                    terms(proposal.about)
                )
                if (
                    new
                    and len(proposal.ends & used) <= shared
                    and len(questions_by_text) < self._count
                ):
                    used |= proposal.ends
                    questions_by_text[proposal.text] = proposal.selected
        for text, selected in questions_by_text.items():
            yield Draft(text, (selected,), lead="\n")


def _sort_strongest(selected: Iterable[Selected]) -> list[Selected]:
    """Return edges other than mere mentions, strongest first.

    Edges between two names come first, then edges of the leading entities."""
    items = list(selected)
    order = {s.item.iri: place for place, s in enumerate(items) if s.item.kind == "entity"}
    edges = [s for s in items if isinstance(s.item, Edge) and s.edge.predicate_label != "mentions"]

    def key(chosen: Selected) -> tuple[bool, int, float, int]:
        place = min(order.get(end, len(items)) for end in _end_iris(chosen.edge))
        return not _is_link(chosen.edge), place, -chosen.score, chosen.candidate.rank

    return sorted(edges, key=key)


def _end_iris(edge: Edge) -> set[str]:
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
    return _Proposal(text, edge.text, frozenset(_end_iris(edge)), selected)


def _of_entity(selected: Selected) -> _Proposal:
    assert isinstance(selected.item, Item)
    label = selected.item.label
    text = f"What do the documents say about {label}?"
    return _Proposal(text, label, frozenset({selected.item.iri}), selected)
