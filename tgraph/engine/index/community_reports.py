"""Communities are brought up to date, and their reports: only where something has changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby, islice

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.index.given_communities import GivenReports
from tgraph.engine.index.phase import IndexContext, Made, Phase
from tgraph.errors import UsageError
from tgraph.index.communities.communities import (
    FoundCommunities,
    community_names,
    community_quads,
    divided,
    find_communities,
    isolated_entities,
    read_communities,
    read_components,
    state_communities,
    stated_quads,
    with_edges,
)
from tgraph.index.communities.given import named, standing_given
from tgraph.index.communities.leiden import SEED, Clustering
from tgraph.index.reports.context import Child, Details, ReportContext
from tgraph.index.reports.extractive import ExtractiveWriter
from tgraph.index.reports.packing import DetailReader, Sizes, pack
from tgraph.index.reports.report import (
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
from tgraph.model import Agent, Community, CommunityReport
from tgraph.models.base import CallSink
from tgraph.models.tokens import DEFAULT_ENCODING, encoding_for
from tgraph.record.activities import Authorship, is_recorded
from tgraph.record.communities import (
    Hierarchy,
    clustering_quads,
    last_parameters,
    report_content,
    report_quads,
    standing_hierarchies,
    state_report,
)
from tgraph.record.merges import standing_merges
from tgraph.store.base import Store
from tgraph.store.statements import NQuads, literal

STAGE = "Clustering"
ADDED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Clustered:
    """How many communities there are now, of all levels, and how many entities are in none."""

    communities: int
    isolated: int


@dataclass(frozen=True, slots=True)
class Reclustering:
    """A change of communities: those ``found``, the quads of knowledge to remove, the hierarchies
    that were ``made`` (communities by key) and that ``ended``, and the communities that ``left``,
    with what was said of them. Where it is ``first`` there were none before."""

    first: bool
    found: Sequence[FoundCommunities]
    removed: Sequence[Quad]
    made: Mapping[str, Sequence[str]]
    ended: Sequence[Hierarchy]
    left: Mapping[str, Sequence[Quad]]


def cluster(context: IndexContext) -> Clustered:
    """Bring the communities in the working copy up to date with its knowledge.

    The communities of a connected part that did not change stay as they are, and the result is that
    of clustering everything at once. Where neither knowledge nor the settings changed nothing does.
    """
    store, wanted = context.copy.store, context.settings.communities
    seed = SEED if wanted.seed is None else wanted.seed
    how = Clustering(wanted.max_size, wanted.quality, wanted.resolution, seed, wanted.use_lcc)
    parameters = {name: literal(value) for name, value in how.parameters.items()}
    if context.copy.changed or last_parameters(store) != parameters:
        isolated = _recluster(context, how)
    else:
        isolated = len(isolated_entities(store))
    return Clustered(len(community_names(store)), isolated)


def _recluster(context: IndexContext, how: Clustering) -> int:
    """Cluster; how many entities are in no community then."""
    copy, started = context.copy, context.clock()
    change = compare(copy.store, how, partial(context.show, STAGE))
    copy.remove(change.removed)
    found = iter(change.found)
    while batch := list(islice(found, ADDED_AT_ONCE)):  # the quads of all take a lot of memory
        if change.first:
            out = NQuads(v.KNOWLEDGE_GRAPH)
            state_communities(out, batch)
            copy.add_new(out.take())
        else:
            copy.add(community_quads(batch))
    isolated = len(isolated_entities(copy.store))
    if not copy.changed:
        return isolated
    agent = Agent("method", f"{how.package}-leiden", version(how.package), how.package)
    by = Authorship(context.run, agent, (), started, context.clock())
    copy.add(clustering_quads(by, how.parameters, isolated, change.made, change.ended, change.left))
    return isolated


def compare(
    store: Store, how: Clustering, progress: Callable[[int, int], None] = lambda done, total: None
) -> Reclustering:
    """What has to change for the communities to be those of the knowledge in the store."""
    standing = standing_hierarchies(store)
    there = community_names(store)
    wanted = _wanted(store, how)
    kept = {key for key, known in standing.items() if key in wanted and known.communities <= there}
    fresh = sorted(wanted.keys() - kept)
    made: dict[str, list[str]] = {}
    found: list[FoundCommunities] = []
    for done, key in enumerate(fresh, 1):
        made_now = wanted.pop(key)()
        made[key] = [community.iri for community, _ in made_now]
        found += made_now
        progress(done, len(fresh))
    ended = [standing[key] for key in sorted(standing.keys() - kept)]
    before = {name: stated_quads(store, name) for known in ended for name in known.communities}
    again = {name for names in made.values() for name in names}
    stay = set(community_quads(one for one in found if one.community.iri in before))
    return Reclustering(
        first=not there,
        found=found,
        removed=[quad for said in before.values() for quad in said if quad not in stay],
        made=made,
        ended=ended,
        left={name: said for name, said in sorted(before.items()) if said and name not in again},
    )


def _wanted(store: Store, how: Clustering) -> dict[str, Callable[[], list[FoundCommunities]]]:
    """The hierarchies that knowledge asks for, by key, and who makes each: those that imported
    graphs brought as far as they stand, and of each other part a division."""
    parts = {part.digest: part for part in read_components(store)}
    merges = standing_merges(store)
    given = standing_given(store, parts, merges)
    ready = {one.key: partial(named, one, tuple(parts.values())) for one in given}
    taken = {digest for one in given for digest in one.parts}
    free = (part for part in divided(list(parts.values()), how) if part.digest not in taken)
    return {**ready, **{part.key(how): partial(find_communities, part, how) for part in free}}


LEAST_BUDGET = 500
"""Tokens that a prompt must leave for what it shows."""

MOST_MEMBERS = 100
"""Entities of a community that a report can tell of, beside a large imported graph: about as many
as have room in ``reports.max_input_tokens``, where the rest would be read to be left out."""

AT_ONCE = 256
"""Reports whose contexts are in memory together."""


def write_reports(context: IndexContext, known: Mapping[str, CommunityReport] | None = None) -> int:
    """Bring the reports up to date with the communities; how many were written or written anew.

    A report stays as it is while what there is to show for it stays the same; ``known`` are those
    that a model is not asked for again, by default those that stand. A reply that can't be used
    costs its report, which is then made without the model.
    """
    communities = reported(read_communities(context.copy.store, edges=False), context)
    standing = read_reports(context.copy.store)
    if not context.copy.changed and standing.keys() == {c.iri for c in communities}:
        return 0
    communities = with_edges(context.copy.store, communities)
    phase = _ReportPhase(context, communities, standing, known or standing)
    levels = groupby(sorted(communities, key=lambda c: (-c.level, c.iri)), lambda c: c.level)
    phase.begin(len(communities))
    for _, level in levels:
        phase.write(level)
    phase.clear()
    return phase.written


def reported(communities: Sequence[Community], context: IndexContext) -> Sequence[Community]:
    """The communities that have a report: all of them, beside a large imported graph the coarsest
    of those that one can tell of."""
    most = context.settings.graphs.reports
    if len(communities) <= most or not context.is_large:
        return communities
    ranked = sorted(communities, key=lambda c: (c.level, -len(c.members), c.iri))
    chosen = [c for c in ranked if len(c.members) <= MOST_MEMBERS][:most]
    left = len(communities) - len(chosen)
    context.message(
        f"{left:,} communities get no report: the imported graph is large (graphs.reports)."
    )
    context.record.dropped["report of a community of a large imported graph"] = left
    return chosen


class _ReportPhase(Phase[ReportContext, ReportDraft, ReportWriter]):
    stage = "Reporting"
    unusable = "community report whose reply can't be used"

    def __init__(
        self,
        context: IndexContext,
        communities: Sequence[Community],
        standing: Mapping[str, CommunityReport],
        known: Mapping[str, CommunityReport],
    ) -> None:
        super().__init__(context, context.parts.report_writer)
        store = context.copy.store
        self.written = 0
        self._communities = {community.iri: community for community in communities}
        self._standing = standing
        keys = keys_of_reports(store)
        self._known = {keys[r.iri]: r for r in known.values() if r.iri in keys}
        self._reader = DetailReader(store, Texts(store, context.librarian), context.evidence)
        name = self.maker.agent.name
        self._sizes = Sizes(encoding_for(name) if self.by_model else DEFAULT_ENCODING)
        self._budget = context.settings.reports.max_input_tokens - self.maker.overhead
        self._made: dict[str, CommunityReport] = {}
        self._given = GivenReports(store, Texts(store, context.librarian))
        if self._budget < LEAST_BUDGET:
            raise UsageError(
                f"The prompt community_report leaves {self._budget:,} tokens for what it shows.",
                "Raise reports.max_input_tokens, or shorten the prompt.",
            )

    def write(self, communities: Iterable[Community]) -> None:
        """The reports of one level; those of the level below are there."""
        shown = map(self._shown, self._reader.read(communities))
        while batch := list(islice(shown, AT_ONCE)):
            self.go_on(batch)

    def _shown(self, details: Details) -> ReportContext:
        children = [
            Child(self._communities[child], self._made[child])
            for child in details.community.children
            if child in self._made
        ]
        if details.community.iri in self._given:  # whatever it cites is there
            return pack(details, (), sys.maxsize, self._sizes)
        return pack(details, children, self._budget, self._sizes)

    def attempt(self, item: ReportContext) -> Made[ReportDraft, ReportWriter]:
        if item.community.iri in self._given:
            return Made(self._given.write(item), self._given)
        return super().attempt(item)

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
            state_report(out, done, how, content)
            context.copy.note(out.take())
        before = self._standing.get(report.community)
        if before is None or before.iri != report.iri:
            self.written += 1
            context.copy.add(report_quads(report))

    def clear(self) -> None:
        """Reports that no community has any more leave knowledge; their record stays."""
        for community, before in self._standing.items():
            now = self._made.get(community)
            if now is None or now.iri != before.iri:
                self.context.copy.remove(report_subjects(self.context.copy.store, before))
