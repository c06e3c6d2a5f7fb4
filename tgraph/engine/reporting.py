"""Community reports: written from the deepest level up, and only where something has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice

from tgraph import vocabulary as v
from tgraph.engine.index.phase import Made, Phase
from tgraph.engine.workshop import Workshop
from tgraph.errors import UsageError
from tgraph.index.communities import read_communities
from tgraph.index.report_context import Child, Details, ReportContext
from tgraph.index.report_details import DetailReader
from tgraph.index.report_extractive import ExtractiveWriter
from tgraph.index.report_packing import Sizes, pack
from tgraph.index.reports import (
    ReportDraft,
    ReportWriter,
    as_draft,
    keys_of_reports,
    made_report,
    read_reports,
    report_key,
    report_subjects,
)
from tgraph.index.sources import Texts
from tgraph.model import Community, CommunityReport
from tgraph.models.base import CallSink
from tgraph.models.tokens import DEFAULT_ENCODING, encoding_for
from tgraph.record.activities import is_recorded
from tgraph.record.reports import (
    knowledge_quads,
    record_report,
    report_content,
)
from tgraph.store.statements import NQuads

LEAST_BUDGET = 500
"""Tokens that a prompt must leave for what it shows."""

AT_ONCE = 256
"""Reports whose contexts are in memory together."""


def write_reports(context: Workshop) -> int:
    """Bring the reports up to date with the communities; how many were written or written anew.

    A report stays as it is while what there is to show for it stays the same. A reply that can't
    be used costs its report, which is then made without the model.
    """
    communities = read_communities(context.copy.store)
    standing = read_reports(context.copy.store)
    if not context.copy.changed and standing.keys() == {c.iri for c in communities}:
        return 0
    phase = _Reports(context, communities, standing)
    levels = groupby(sorted(communities, key=lambda c: (-c.level, c.iri)), lambda c: c.level)
    phase.begin(len(communities))
    for _, level in levels:
        phase.write(level)
    phase.clear()
    return phase.written


class _Reports(Phase[ReportContext, ReportDraft, ReportWriter]):
    stage = "Reporting"
    unusable = "community report whose reply can't be used"

    def __init__(
        self,
        context: Workshop,
        communities: Sequence[Community],
        standing: Mapping[str, CommunityReport],
    ) -> None:
        super().__init__(context, context.parts.report_writer)
        store = context.copy.store
        self.written = 0
        self._communities = {community.iri: community for community in communities}
        self._standing = standing
        keys = keys_of_reports(store)
        self._known = {keys[r.iri]: r for r in standing.values() if r.iri in keys}
        self._reader = DetailReader(store, Texts(store, context.librarian), context.evidence)
        name = self.maker.agent.name
        self._sizes = Sizes(encoding_for(name) if self.by_model else DEFAULT_ENCODING)
        self._budget = context.settings.reports.max_input_tokens - self.maker.overhead
        self._made: dict[str, CommunityReport] = {}
        if self._budget < LEAST_BUDGET:
            raise UsageError(
                f"The prompt community_report leaves {self._budget:,} tokens for what it shows.",
                "Raise reports.max_input_tokens, or shorten the prompt.",
            )

    def write(self, communities: Iterable[Community]) -> None:
        """The reports of one level; those of the level below are there."""
        for batch in _batches(map(self._shown, self._reader.read(communities)), AT_ONCE):
            self.go_on(batch)

    def _shown(self, details: Details) -> ReportContext:
        children = [
            Child(self._communities[child], self._made[child])
            for child in details.community.children
            if child in self._made
        ]
        return pack(details, children, self._budget, self._sizes)

    def make(self, item: ReportContext, maker: ReportWriter, sink: CallSink) -> ReportDraft:
        """The draft of a report; one with the same input is taken over."""
        by_model = maker.agent.kind == "model"
        known = self._known.get(report_key(item, maker)) if by_model else None
        return as_draft(known, item) if known is not None else maker.write(item, sink)

    def stand_in(self) -> ReportWriter:
        return ExtractiveWriter()

    def complaint(self, item: ReportContext, made: Made[ReportDraft, ReportWriter]) -> str:
        title = self._made[item.community.iri].title
        return f"The report on {title} quotes the sources: {made.error}"

    def record(
        self, item: ReportContext, made: Made[ReportDraft, ReportWriter], began: datetime
    ) -> None:
        context, by = self.context, made.by
        done = made_report(made.result, item, report_key(item, by))
        report = self._made[done.report.community] = done.report
        how = self.authorship(made, began)
        no_room = Counter(item.left_out)  # that is said of the report, and no loss of the run
        context.record.dropped.update(Counter(done.dropped) - no_room)
        if not is_recorded(context.copy.store, report.iri):
            content = context.record.keep(report_content(done, item))
            self.credit(by)
            out = NQuads(v.SOURCE_GRAPH)
            record_report(out, done, how, content)
            context.copy.note(out.take())
        before = self._standing.get(report.community)
        if before is None or before.iri != report.iri:
            self.written += 1
            context.copy.add(knowledge_quads(report))

    def clear(self) -> None:
        """Reports that no community has any more leave knowledge; their record stays."""
        for community, before in self._standing.items():
            now = self._made.get(community)
            if now is None or now.iri != before.iri:
                self.context.copy.remove(report_subjects(self.context.copy.store, before))


def _batches(items: Iterable[ReportContext], size: int) -> Iterator[list[ReportContext]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
