"""From several descriptions of one thing to one: summaries are made, put on record, and become
knowledge. What has a summary of the same descriptions already is not asked about again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError
from tgraph.extract.summaries import JoinedDescriptions, Summariser, Summary
from tgraph.index.descriptions import Described, described_by
from tgraph.index.sources import text_value
from tgraph.record.agents import agent_quads
from tgraph.record.nquads import NQuads
from tgraph.record.summaries import SummaryRecord
from tgraph.retrieve.labels import labels_of, reified
from tgraph.store.base import Store
from tgraph.store.statements import Statements

STAGE = "Summarising"
UNUSABLE = "summary whose reply can't be used"


@dataclass(frozen=True, slots=True)
class _Made:
    """A summary and who made it; ``error`` where that is not who was asked."""

    summary: Summary
    by: Summariser
    error: str = ""


def describe(shop: Workshop, pending: Mapping[str, Described]) -> int:
    """Summarise what has several descriptions; how many summaries were made."""
    summariser = shop.parts.summariser
    if summariser is None or not pending:
        return 0
    names = _names(shop.copy.store, list(pending))
    work = [pending[subject] for subject in sorted(pending)]
    shop.show(STAGE, 0, len(work))
    results = shop.each(
        work,
        lambda item: _summarise(shop, summariser, names[item.subject], item),
        by_model=summariser.agent.kind == "model",
    )
    for done, (described, made, began) in enumerate(results, 1):
        _record(shop, described, made, began)
        shop.show(STAGE, done, len(work))
    return len(work)


def _names(store: Store, subjects: Sequence[str]) -> dict[str, str]:
    """What people call each subject: an entity's label, an edge's three."""
    edges = reified(store, subjects)
    labels = labels_of(store, (NamedNode(one) for one in subjects if one not in edges))
    named = {node.value: label for node, label in labels.items()}
    return named | {subject: edge.text for subject, edge in edges.items()}


def _summarise(shop: Workshop, summariser: Summariser, name: str, described: Described) -> _Made:
    """The summary; a reply that can't be used costs its summary, not the run."""
    texts = [original.text for original in described.originals]
    try:
        return _Made(summariser.summarise(name, texts, shop.record.call), summariser)
    except EndpointError:
        raise
    except ModelError as error:
        shop.message(f"The descriptions of {name} were joined, not summarised: {error}")
        standin = JoinedDescriptions(shop.settings.summaries.max_words)
        return _Made(standin.summarise(name, texts), standin, str(error))


def _record(shop: Workshop, described: Described, made: _Made, began: datetime) -> None:
    shop.record.write_calls(shop.copy)
    summary = described.summary(made.by.key)
    if not text_value(shop.copy.store, summary, v.tg("text")):  # a stand-in may be there
        record = SummaryRecord(shop.run, described, summary, made.summary)
        stated = NQuads(v.SOURCE_GRAPH)
        record.state(stated, made.by.agent, made.by.prompts, began, shop.clock(), made.error)
        shop.copy.note(stated.take())
        shop.copy.add(agent_quads([made.by.agent]))
        shop.copy.add(shop.record.prompts(made.by.prompts))
    shop.record.dropped.update(made.summary.dropped)
    if made.error:
        shop.record.dropped[UNUSABLE] += 1
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(described.subject, *described_by(summary, made.summary.text))
    shop.copy.add(out.quads)
