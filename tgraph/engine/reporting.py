"""Community reports: written from the deepest level up, and only where something has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from tgraph import vocabulary as v
from tgraph.engine.workshop import Workshop
from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.index.communities import read_communities
from tgraph.index.report_context import Child, Details, ReportContext
from tgraph.index.report_details import DetailReader
from tgraph.index.report_extractive import ExtractiveWriter
from tgraph.index.report_packing import Sizes, pack
from tgraph.index.reports import (
    MadeReport,
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
from tgraph.models.tokens import DEFAULT_ENCODING, encoding_for
from tgraph.record.agents import agent_quads
from tgraph.record.nquads import NQuads
from tgraph.record.reports import (
    Reporting,
    is_recorded,
    knowledge_quads,
    record_report,
    report_content,
)

STAGE = "Reporting"
LEAST_BUDGET = 500
"""Tokens that a prompt must leave for what it shows."""

AT_ONCE = 256
"""Reports whose contexts are in memory together."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A draft, who wrote it, and why it was not the one who should have."""

    draft: ReportDraft
    writer: ReportWriter
    fallback: str = ""


def write_reports(shop: Workshop) -> int:
    """Bring the reports up to date with the communities; how many were written or written anew.

    A report stays as it is while what there is to show for it stays the same. A reply that can't
    be used costs its report, which is then made without the model.
    """
    communities = read_communities(shop.copy.store)
    standing = read_reports(shop.copy.store)
    if not shop.copy.changed and standing.keys() == {c.iri for c in communities}:
        return 0
    desk = _Desk(shop, communities, standing)
    levels = groupby(sorted(communities, key=lambda c: (-c.level, c.iri)), lambda c: c.level)
    shop.show(STAGE, 0, len(communities))
    for _, level in levels:
        desk.write(level)
    desk.clear()
    return desk.written


class _Desk:
    """Where the reports of a run are made."""

    def __init__(
        self,
        shop: Workshop,
        communities: Sequence[Community],
        standing: Mapping[str, CommunityReport],
    ) -> None:
        store = shop.copy.store
        self.written = 0
        self._shop = shop
        self._communities = {community.iri: community for community in communities}
        self._standing = standing
        self._writer: ReportWriter = shop.parts.report_writer
        self._extractive = ExtractiveWriter()
        self._by_model = self._writer.agent.kind == "model"
        self._known = self._reports_by_key()
        self._reader = DetailReader(store, Texts(store, shop.librarian), shop.evidence)
        name = self._writer.agent.name
        self._sizes = Sizes(encoding_for(name) if self._by_model else DEFAULT_ENCODING)
        self._budget = shop.settings.reports.max_input_tokens - self._writer.overhead
        self._made: dict[str, CommunityReport] = {}
        if self._budget < LEAST_BUDGET:
            raise UsageError(
                f"The prompt community_report leaves {self._budget:,} tokens for what it shows.",
                "Raise reports.max_input_tokens, or shorten the prompt.",
            )

    def _reports_by_key(self) -> dict[str, CommunityReport]:
        keys = keys_of_reports(self._shop.copy.store)
        return {keys[r.iri]: r for r in self._standing.values() if r.iri in keys}

    def write(self, communities: Iterable[Community]) -> None:
        """The reports of one level; those of the level below are there."""
        contexts = map(self._context, self._reader.read(communities))
        for batch in _batches(contexts, AT_ONCE):
            results = self._shop.each(batch, self._draft, by_model=self._by_model)
            for context, written, began in results:
                key = report_key(context, written.writer)
                made = made_report(written.draft, context, key)
                self._made[made.report.community] = made.report
                how = Reporting(
                    self._shop.run,
                    written.writer.agent,
                    written.writer.prompts,
                    began,
                    self._shop.clock(),
                    written.fallback,
                )
                self._record(made, context, how)
                self._shop.show(STAGE, len(self._made), len(self._communities))

    def _context(self, details: Details) -> ReportContext:
        children = [
            Child(self._communities[child], self._made[child])
            for child in details.community.children
            if child in self._made
        ]
        return pack(details, children, self._budget, self._sizes)

    def _draft(self, context: ReportContext) -> _Written:
        """The draft of a report, from any thread; one with the same input is taken over."""
        known = self._known.get(report_key(context, self._writer)) if self._by_model else None
        if known is not None:
            return _Written(as_draft(known, context), self._writer)
        try:
            return _Written(self._writer.write(context, self._shop.record.call), self._writer)
        except EndpointError:
            raise
        except ModelError as error:
            draft = self._extractive.write(context)
            return _Written(draft, self._extractive, str(error))

    def _record(self, made: MadeReport, context: ReportContext, how: Reporting) -> None:
        shop = self._shop
        shop.record.write_calls(shop.copy)
        no_room = Counter(context.left_out)  # that is said of the report, and no loss of the run
        shop.record.dropped.update(Counter(made.dropped) - no_room)
        if how.fallback:
            shop.record.dropped["community report whose reply can't be used"] += 1
            shop.message(f"The report on {made.report.title} quotes the sources: {how.fallback}")
        if not is_recorded(shop.copy.store, made.report.iri):
            content = shop.record.keep(report_content(made, context))
            shop.copy.add(agent_quads([how.agent]))
            shop.copy.add(shop.record.prompts(how.prompts))
            out = NQuads(v.SOURCE_GRAPH)
            record_report(out, made, how, content)
            shop.copy.note(out.take())
        before = self._standing.get(made.report.community)
        if before is None or before.iri != made.report.iri:
            self.written += 1
            shop.copy.add(knowledge_quads(made.report))

    def clear(self) -> None:
        """Reports that no community has any more leave knowledge; their record stays."""
        for community, before in self._standing.items():
            now = self._made.get(community)
            if now is None or now.iri != before.iri:
                self._shop.copy.remove(report_subjects(self._shop.copy.store, before))


def _batches(items: Iterable[ReportContext], size: int) -> Iterator[list[ReportContext]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
