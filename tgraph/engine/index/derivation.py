"""Derivation from evidence: knowledge, summarised descriptions, communities, reports, contexts
and vectors.

Summaries are made, put on record, and become knowledge. Descriptions with an existing summary
are not summarised again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.engine.index.chunk_context import update_contexts
from tgraph.engine.index.community_reports import Clustered, cluster_entities, write_reports
from tgraph.engine.index.cooccurrence_graph import update_cooccurrences
from tgraph.engine.index.embeddings import embed_knowledge
from tgraph.engine.index.given_communities import BroughtCommunities, state_given
from tgraph.engine.index.homonym_partings import update_partings
from tgraph.engine.index.ontology_led import update_fit
from tgraph.engine.index.phase import IndexContext, Made, Phase
from tgraph.extract.summaries import JoinedDescriptions, Summariser, Summary
from tgraph.index.descriptions import Described, Descriptions, PendingDescriptions, described_by
from tgraph.index.knowledge import Derivation
from tgraph.index.prepended_metadata import preface_quad, standing_prefaces, stored_preface
from tgraph.index.sources import (
    Texts,
    document_of_chunk,
    lexical_documents,
    standing_chunks,
    standing_documents,
    text_value,
)
from tgraph.index.standing_knowledge import Properties, Weigh
from tgraph.index.stored_graph import StoredGraph
from tgraph.index.touched import Touched, touch_unsummarised
from tgraph.models.base import CallSink
from tgraph.record.curations import read_decisions
from tgraph.record.merges import merge_quads, standing_merges
from tgraph.record.summaries import state_summary
from tgraph.retrieve.labels import labels_of, read_reified_edges
from tgraph.store.base import Store
from tgraph.store.statements import Statements


@dataclass(frozen=True, slots=True)
class Derived:
    """Derivation results: merged names, pending descriptions without summary, and counts from
    sentences that state nothing by themselves."""

    merged: int
    undescribed: PendingDescriptions
    entities: int = 0
    relationships: int = 0


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows from changed evidence; ``vectors`` tells whether any are new."""

    derived: Derived
    clustered: Clustered
    reports: int
    vectors: bool


def follow_up(
    context: IndexContext,
    touched: Touched,
    started: datetime,
    *,
    contexts: bool = True,
    brought: Iterable[BroughtCommunities] = (),
) -> FollowUp:
    """Update derived data after evidence changes: knowledge, descriptions, communities,
    reports, chunk ``contexts``, and vectors.

    ``brought`` are communities imported with the evidence."""
    derived = derive_knowledge(context, touched, started)
    summarise_descriptions(context, derived.undescribed)
    context.note_changes(touched)
    for brought_communities in brought:
        state_given(context, brought_communities)
    clustered = cluster_entities(context)
    reports = write_reports(context)
    update_prefaces(context)
    if contexts:
        update_contexts(context)
    return FollowUp(derived, clustered, reports, embed_knowledge(context))


def derive_knowledge(context: IndexContext, touched: Touched, started: datetime) -> Derived:
    """Bring knowledge up to date with the touched evidence."""
    copy, summariser = context.copy, context.parts.summariser
    descriptions = Descriptions(copy.store, summariser.key if summariser else None, copy.path)
    if summariser:
        _touch_undescribed(context, summariser.key, touched)
    tied = update_cooccurrences(context, touched)
    partings = update_partings(context, touched)
    fit = update_fit(context, touched)
    standing = standing_documents(copy.store)
    copy.store.compact()
    derivation = Derivation(
        copy.store,
        standing_merges(copy.store),
        lambda chunk: document_of_chunk(chunk) in standing,
        read_decisions(copy.store),
        descriptions.describe_subject,
        _weigh_in_turn(tied.weigh if tied else None, partings.weigh),
        fit,
        copy.path,
    )
    change = derivation.run(
        touched, lambda done, total: context.report_progress("Resolving", done, total)
    )
    copy.remove(change.removed)
    with closing(change.added):
        copy.add(change.added)
    copy.store.compact()
    merges = merge_quads(
        copy.store,
        context.run,
        started,
        context.clock(),
        change.merged,
        change.unmerged,
        partings.new,
        partings.ended,
    )
    copy.add(merges)
    counts = (tied.entities, tied.relationships) if tied else (0, 0)
    return Derived(len(change.merged), descriptions.pending, *counts)


def _weigh_in_turn(*given: Weigh | None) -> Weigh | None:
    """Return a function that applies the given functions one after the other."""
    functions = [function for function in given if function is not None]

    def weigh(item: Properties) -> Properties | None:
        counted: Properties | None = item
        for function in functions:
            counted = function(counted) if counted is not None else None
        return counted

    return weigh if functions else None


def _touch_undescribed(context: IndexContext, summariser: str, touched: Touched) -> None:
    """Touch items with several descriptions, unless the current summariser summarised before."""
    store = context.copy.store
    if context.makers_before.descriptions != summariser or lexical_documents(store):
        touch_unsummarised(store, touched)
    context.changes.makers.descriptions = summariser


def update_prefaces(context: IndexContext) -> None:
    """Update prefaces of standing chunks to match the settings."""
    copy, fields = context.copy, context.settings.chunk.prepend_metadata
    standing = standing_prefaces(copy.store)
    target_prefaces: dict[str, str] = {}
    texts = Texts(copy.store, context.librarian)
    prefaces: dict[str, str] = {}
    for document, chunk in standing_chunks(copy.store) if fields else ():
        if document not in prefaces:
            prefaces[document] = stored_preface(copy.store, texts, document, fields)
        if prefaces[document]:
            target_prefaces[chunk] = prefaces[document]
    copy.remove([preface_quad(*preface) for preface in standing.items() - target_prefaces.items()])
    copy.add(
        [preface_quad(*preface) for preface in sorted(target_prefaces.items() - standing.items())]
    )


DESCRIBED_AT_ONCE = 1_000
"""Subjects whose descriptions are in memory together."""


def summarise_descriptions(context: IndexContext, pending: PendingDescriptions) -> int:
    """Summarise pending descriptions, consuming ``pending``; return the number of summaries."""
    with closing(pending):
        count, summariser = len(pending), context.parts.summariser
        if summariser is None or not count:
            return 0
        phase = _Summaries(context, summariser)
        phase.begin(count)
        subjects = iter(sorted(pending))
        while batch := list(islice(subjects, DESCRIBED_AT_ONCE)):
            phase.summarise([pending[subject] for subject in batch])
        return count


class _Summaries(Phase[Described, Summary, Summariser]):
    stage = "Summarising"
    unusable = "summary whose reply can't be used"

    def __init__(self, context: IndexContext, maker: Summariser) -> None:
        super().__init__(context, maker)
        self._names: dict[str, str] = {}

    def summarise(self, items: Sequence[Described]) -> None:
        """Summarise a batch of items."""
        self._names = _subject_names(self.context.copy.store, [item.subject for item in items])
        self.go_on(items)

    def produce_result(self, item: Described, maker: Summariser, sink: CallSink) -> Summary:
        texts = [original.text for original in item.originals]
        return maker.summarise(self._names[item.subject], texts, sink)

    def stand_in(self) -> Summariser:
        return JoinedDescriptions(self.context.settings.summaries.max_words)

    def complaint(self, item: Described, made: Made[Summary, Summariser]) -> str:
        name = self._names[item.subject]
        return f"The descriptions of {name} were joined, not summarised: {made.error}"

    def count_dropped(self, made: Made[Summary, Summariser]) -> dict[str, int]:
        return {**made.result.dropped, **super().count_dropped(made)}

    def record(self, item: Described, made: Made[Summary, Summariser], began: datetime) -> None:
        context, by = self.context, made.by
        summary = item.summary(by.key)
        if not text_value(context.copy.store, summary, v.tg("text")):  # a stand-in may be there
            quads = Statements(v.SOURCE_GRAPH)
            state_summary(quads, item, summary, made.result, self.authorship(made, began))
            context.copy.note(quads.take_quads())
            self.credit(by)
        out = Statements(v.KNOWLEDGE_GRAPH)
        out.add(item.subject, *described_by(summary, made.result.text))
        context.copy.add(out.quads)


def _subject_names(store: Store, subjects: Sequence[str]) -> dict[str, str]:
    """Return a readable name per subject: an entity's label, or an edge's three labels."""
    edges = read_reified_edges(StoredGraph(store), subjects)
    labels = labels_of(StoredGraph(store), (NamedNode(iri) for iri in subjects if iri not in edges))
    entity_labels = {node.value: label for node, label in labels.items()}
    return entity_labels | {subject: edge.text for subject, edge in edges.items()}
