"""The synthesiser of computed answers: sentences that state the result of a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace

from tgraph.answer.base import Draft, Notes
from tgraph.compute.sentences import ComputedSentence
from tgraph.index.graph_source import Statement
from tgraph.model import Agent, ComputedResult, Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Question
from tgraph.version import __version__
from tgraph.vocabulary import edge_iri, is_statement

MOST_CITED = 100
"""Witnesses that a sentence cites; the record has them all."""


@dataclass(frozen=True, slots=True)
class ComputedSelection(Selection):
    """The witnesses of a result, all selected, with the sentences that say it; ``unlinked`` are the
    words of a question that no query accounts for, ``remark`` says why there is no query, and
    ``result`` is the table.
    ``compute_without`` gives the sentences of the result without the witnesses of some items."""

    sentences: tuple[ComputedSentence, ...] = ()
    unlinked: tuple[str, ...] = ()
    remark: str = ""
    result: ComputedResult | None = None
    compute_without: Callable[[Collection[str]], tuple[ComputedSentence, ...]] | None = None

    def keep_selected(self, positions: Collection[int]) -> ComputedSelection:
        """As ``Selection.keep_selected``: the query is evaluated without the other witnesses."""
        kept = tuple(each for at, each in enumerate(self.selected) if at in positions)
        if self.compute_without is None:
            return replace(self, selected=kept)
        left_out = {each.item.iri for at, each in enumerate(self.selected) if at not in positions}
        sentences = self.compute_without(left_out)
        return replace(self, selected=kept, sentences=sentences)


class ComputedSynthesiser:
    """States the result of a query, each sentence with its witnesses."""

    agent = Agent("method", "computed-sentences", __version__)

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``."""
        if not isinstance(selection, ComputedSelection):
            return
        by_item = {selected.item.iri: selected for selected in selection.selected}
        for number, sentence in enumerate(selection.sentences):
            cited = cite_statements(sentence.statements, by_item)
            notes.drop("witnesses that a sentence doesn't cite", max(0, len(cited) - MOST_CITED))
            cited = cited[:MOST_CITED]
            places = tuple(s.candidate.evidence[0].iri for s in cited if s.candidate.evidence)
            yield Draft(sentence.text, tuple(cited), places, " " if number else "")
        if not selection.sentences:
            notes.missing += selection.unlinked
            notes.remarks += (selection.remark,) if selection.remark else ()


def cite_statements(
    statements: tuple[Statement, ...], by_item: dict[str, Selected]
) -> list[Selected]:
    """Return the selections of the statements: of a class or a name that of its bearer."""
    cited: dict[int, Selected] = {}
    for subject, predicate, obj in statements:
        is_edge = is_statement(predicate)
        item = edge_iri(subject, predicate, obj) if is_edge else subject.value
        if item in by_item:
            cited[by_item[item].index] = by_item[item]
    return list(cited.values())
