"""From several descriptions of one thing to one: summaries are made, put on record, and become
knowledge. What has a summary of the same descriptions already is not asked about again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.phase import Made, Phase
from tgraph.engine.workshop import Workshop
from tgraph.extract.summaries import JoinedDescriptions, Summariser, Summary
from tgraph.index.descriptions import Described, described_by
from tgraph.index.sources import text_value
from tgraph.models.base import CallSink
from tgraph.record.summaries import record_summary
from tgraph.retrieve.labels import labels_of, reified
from tgraph.store.base import Store
from tgraph.store.statements import NQuads, Statements


def describe(context: Workshop, pending: Mapping[str, Described]) -> int:
    """Summarise what has several descriptions; how many summaries were made."""
    summariser = context.parts.summariser
    if summariser is None or not pending:
        return 0
    _Summaries(context, summariser, list(pending)).run([pending[one] for one in sorted(pending)])
    return len(pending)


class _Summaries(Phase[Described, Summary, Summariser]):
    stage = "Summarising"
    unusable = "summary whose reply can't be used"

    def __init__(self, context: Workshop, maker: Summariser, subjects: Sequence[str]) -> None:
        super().__init__(context, maker)
        self._names = _names(context.copy.store, subjects)

    def make(self, item: Described, maker: Summariser, sink: CallSink) -> Summary:
        texts = [original.text for original in item.originals]
        return maker.summarise(self._names[item.subject], texts, sink)

    def stand_in(self) -> Summariser:
        return JoinedDescriptions(self.context.settings.summaries.max_words)

    def complaint(self, item: Described, made: Made[Summary, Summariser]) -> str:
        name = self._names[item.subject]
        return f"The descriptions of {name} were joined, not summarised: {made.error}"

    def dropped(self, made: Made[Summary, Summariser]) -> dict[str, int]:
        return {**made.result.dropped, **super().dropped(made)}

    def record(self, item: Described, made: Made[Summary, Summariser], began: datetime) -> None:
        context, by = self.context, made.by
        summary = item.summary(by.key)
        if not text_value(context.copy.store, summary, v.tg("text")):  # a stand-in may be there
            stated = NQuads(v.SOURCE_GRAPH)
            record_summary(stated, item, summary, made.result, self.authorship(made, began))
            context.copy.note(stated.take())
            self.credit(by)
        out = Statements(v.KNOWLEDGE_GRAPH)
        out.add(item.subject, *described_by(summary, made.result.text))
        context.copy.add(out.quads)


def _names(store: Store, subjects: Sequence[str]) -> dict[str, str]:
    """What people call each subject: an entity's label, an edge's three."""
    edges = reified(store, subjects)
    labels = labels_of(store, (NamedNode(one) for one in subjects if one not in edges))
    named = {node.value: label for node, label in labels.items()}
    return named | {subject: edge.text for subject, edge in edges.items()}
