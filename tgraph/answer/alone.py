"""The model alone: an answer from what it knows, which no document proves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tgraph.answer.base import Draft, Notes
from tgraph.answer.model import VERIFY, ModelSynthesiser, asked
from tgraph.answer.replies import SentenceRow, clean
from tgraph.model import Selected, Selection
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Question


class ModelAlone(ModelSynthesiser):
    """Each sentence cites nothing and ends with ``[LLM: verify]``."""

    name = "answer_alone"

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        """As ``Synthesiser.synthesise``, whatever was selected."""
        values = {**asked(question), "response_type": self._form["response_type"]}
        yield from self._written(self.request(values), {}, notes, sink)

    def _drafts(
        self, row: SentenceRow, by_id: Mapping[str, Selected], notes: Notes
    ) -> Iterator[Draft]:
        text = clean(row.sentence)
        if row.no_evidence:
            return
        if not text:
            notes.drop("malformed row")
            return
        notes.drop("sentence from general knowledge, to be verified")
        marked = text if text.endswith(VERIFY) else f"{text} {VERIFY}"
        yield Draft(marked, (), lead=self.lead_of(row))
