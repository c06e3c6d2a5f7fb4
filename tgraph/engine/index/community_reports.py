"""Communities are brought up to date, and their reports: only where something has changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from importlib.metadata import version
from itertools import groupby, islice

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.engine.index.given_communities import GivenReports
from tgraph.engine.index.phase import IndexContext, Made, Phase
from tgraph.errors import UsageError
from tgraph.index.communities.communities import (
    FoundCommunities,
    community_names,
    community_quads,
    find_communities,
    has_type,
    isolated_entities,
    read_communities,
    read_community,
    stated_quads,
)
from tgraph.index.communities.given import given_hierarchies, named, standing_given, were_given
from tgraph.index.communities.leiden import SEED, Clustering
from tgraph.index.communities.partition import DEFAULT_CUTTING, Cutting
from tgraph.index.entity_network import (
    EntityNetwork,
    changed_network,
    load_network,
    pair_of,
    read_network,
)
from tgraph.index.reports.context import Child, ReportContext
from tgraph.index.reports.details import DetailReader, Details
from tgraph.index.reports.extractive import ExtractiveWriter
from tgraph.index.reports.packing import Sizes, pack
from tgraph.index.reports.report import (
    ReportDraft,
    ReportWriter,
    as_draft,
    made_report,
    read_reports,
    report_key,
    report_key_of,
    report_on,
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
    fallbacks,
    hierarchies_of,
    last_parameters,
    report_content,
    report_quads,
    standing_hierarchies,
    state_report,
)
from tgraph.record.merges import standing_merges
from tgraph.store.base import Store
from tgraph.store.snapshot import read_pointer
from tgraph.store.statements import Statements, literal

STAGE = "Clustering"
ADDED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Clustered:
    """How many communities there are now, of all levels, and how many entities are in none."""

    communities: int
    isolated: int


_Wanted = dict[str, Callable[[], list[FoundCommunities]]]


@dataclass(frozen=True, slots=True)
class Reclustering:
    """A change of communities: those ``found``, the quads of knowledge to remove, the hierarchies
    that were ``made`` (communities by key) and that ``ended``, the communities that are ``new``,
    and those that ``left``, with what was said of them. ``network`` is what they are communities
    of; where the change is ``first`` there were none before."""

    network: EntityNetwork
    first: bool
    found: Sequence[FoundCommunities]
    removed: Sequence[Quad]
    made: Mapping[str, Sequence[str]]
    ended: Sequence[Hierarchy]
    new: Collection[str]
    left: Mapping[str, Sequence[Quad]]


def cluster(context: IndexContext) -> Clustered:
    """Bring the communities in the working copy up to date with its knowledge.

    The communities of a part that did not change stay as they are, and the result is that of
    clustering everything at once. Where neither knowledge nor the settings changed nothing does.
    """
    store, wanted = context.copy.store, context.settings.communities
    seed = SEED if wanted.seed is None else wanted.seed
    how = Clustering(wanted.max_size, wanted.quality, wanted.resolution, seed, wanted.use_lcc)
    parameters = {name: literal(value) for name, value in how.parameters.items()}
    same = last_parameters(store) == parameters
    if context.copy.changed or not same:
        isolated = _recluster(context, how, same)
    else:
        isolated = len(isolated_entities(store))
    return Clustered(len(community_names(store)), isolated)


def _recluster(context: IndexContext, how: Clustering, same: bool) -> int:
    """Cluster; how many entities are in no community then."""
    copy, started = context.copy, context.clock()
    progress = partial(context.show, STAGE)
    change = _compare_changed(context, how, progress) if same else None
    local = change is not None
    if change is None:
        change = compare(copy.store, how, progress)
        context.changes.communities = None
    else:
        context.changes.communities = {*change.left, *change.new}
        context.changes.divided = {community.iri: community for community, _ in change.found}
    context.changes.network = change.network
    copy.remove(change.removed)
    found = iter(change.found)
    while batch := list(islice(found, ADDED_AT_ONCE)):  # the quads of all take a lot of memory
        if change.first:
            copy.add_new(community_quads(batch))
        else:
            copy.add(community_quads(batch))
    isolated = change.network.isolated if local else len(isolated_entities(copy.store))
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
    network, there = read_network(store, how.cutting), community_names(store)
    wanted, standing = _wanted(store, network, how), standing_hierarchies(store)
    return _compared(store, network, wanted, standing, there, progress, first=not there)


def _compare_changed(
    context: IndexContext, how: Clustering, progress: Callable[[int, int], None]
) -> Reclustering | None:
    """The same from the network before and what the run changed; None where that isn't enough."""
    store, keys = context.copy.store, context.changes.keys
    before = published_network(context, how.cutting)
    if keys is None or before is None or how.use_lcc or were_given(store):
        return None
    pairs = {pair_of(*pair) for pair in keys.pairs}
    change = changed_network(before, store, keys.resources, pairs)
    standing = hierarchies_of(store, (before.entities[part] for part in change.parts_before))
    if len(standing) != len(change.parts_before):  # an update took something of their communities
        return None
    parts = change.network.components(store, change.parts)
    wanted: _Wanted = {part.key(how): partial(find_communities, part, how) for part in parts}
    named = (NamedNode(name) for one in standing.values() for name in one.communities)
    there = {node.value for node in named if has_type(store, node, "Community")}
    return _compared(store, change.network, wanted, standing, there, progress, first=False)


def published_network(context: IndexContext, cutting: Cutting) -> EntityNetwork | None:
    """The network of the knowledge that the run began with."""
    pointer = read_pointer(context.ledger.folder)
    if pointer is None:
        return None
    return load_network(context.ledger.folder.vectors, pointer.generation, cutting)


def current_network(context: IndexContext) -> EntityNetwork:
    """The network of the knowledge in the working copy, once communities are those of it: where
    nobody asked for it, that did not change."""
    known = context.changes.network or published_network(context, DEFAULT_CUTTING)
    return known or read_network(context.copy.store)


def _compared(
    store: Store,
    network: EntityNetwork,
    wanted: _Wanted,
    standing: Mapping[str, Hierarchy],
    there: Collection[str],
    progress: Callable[[int, int], None],
    *,
    first: bool,
) -> Reclustering:
    """What has to change for those of the ``standing`` hierarchies, whose communities are ``there``
    as far as nobody took them away, to be the ``wanted`` ones, by key."""
    known = set(there)
    kept = {key for key, one in standing.items() if key in wanted and one.communities <= known}
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
        network=network,
        first=first,
        found=found,
        removed=[quad for said in before.values() for quad in said if quad not in stay],
        made=made,
        ended=ended,
        new={one.community.iri for one in found if one.community.iri not in before},
        left={name: said for name, said in sorted(before.items()) if said and name not in again},
    )


def _wanted(store: Store, network: EntityNetwork, how: Clustering) -> _Wanted:
    """The hierarchies that knowledge asks for, by key, and who makes each: those that imported
    graphs brought as far as they stand, and of each other part a division."""
    divided = network.largest() if how.use_lcc else set(network.parts)
    given = given_hierarchies(store)
    asked = network.parts if given else sorted(divided)
    parts = dict(zip(asked, network.components(store, asked), strict=True))
    digests = {part.digest: part for part in parts.values()} if given else {}
    resolved = standing_given(store, digests, standing_merges(store)) if given else []
    ready = {one.key: partial(named, one, tuple(parts.values())) for one in resolved}
    taken = {digest for one in resolved for digest in one.parts}
    free = (part for place, part in parts.items() if place in divided)
    left = (part for part in free if not taken or part.digest not in taken)
    return {**ready, **{part.key(how): partial(find_communities, part, how) for part in left}}


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
    store = context.copy.store
    touched = _touched_communities(context)
    if touched is None:
        communities = reported(read_communities(store, edges=False), context)
        standing = read_reports(store)
        if not context.copy.changed and standing.keys() == {c.iri for c in communities}:
            return 0
    else:
        communities = list(filter(None, (read_community(store, name) for name in sorted(touched))))
        reports = ((name, report_on(store, name)) for name in touched)
        standing = {name: report for name, report in reports if report}
    phase = _ReportPhase(context, communities, standing, known or standing)
    levels = groupby(sorted(communities, key=lambda c: (-c.level, c.iri)), lambda c: c.level)
    phase.begin(len(communities))
    for _, level in levels:
        phase.write(level)
    phase.clear()
    return phase.written


def _touched_communities(context: IndexContext) -> set[str] | None:
    """The communities that are new, gone, or have members of which anything is other than it was,
    and those whose report is a fallback: what the others' reports show did not change. None where
    that isn't known, or others wrote them."""
    store, keys, changed = context.copy.store, context.changes.keys, context.changes.communities
    writer = context.changes.makers.reports = _writer(context)
    if keys is None or changed is None or context.makers_before.reports != writer:
        return None
    found = changed | fallbacks(store)
    for resource in keys.resources:
        for quad in store.match(None, v.tg("member"), NamedNode(resource), v.KNOWLEDGE_GRAPH):
            if isinstance(quad.subject, NamedNode) and has_type(store, quad.subject, "Community"):
                found.add(quad.subject.value)
    context.changes.reported = found
    return found


def _writer(context: IndexContext) -> str:
    """All that a report depends on beside what it shows."""
    writer = context.parts.report_writer
    return v.digest(writer.key, str(context.settings.reports.max_input_tokens), _encoding(context))


def _encoding(context: IndexContext) -> str:
    agent = context.parts.report_writer.agent
    return encoding_for(agent.name) if agent.kind == "model" else DEFAULT_ENCODING


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
        keyed = ((report_key_of(store, r.iri), r) for r in known.values() if self.by_model)
        self._known = {key: report for key, report in keyed if key}
        texts = Texts(store, context.librarian)
        self._reader = DetailReader(
            store, texts, context.evidence, current_network(context).outline
        )
        self._sizes = Sizes(_encoding(context))
        self._budget = context.settings.reports.max_input_tokens - self.maker.overhead
        self._made: dict[str, CommunityReport] = {}
        self._given = GivenReports(store, texts)
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
        if details.community.iri in self._given:  # whatever it cites is there
            return pack(details, list, sys.maxsize, self._sizes)
        children = partial(self._children, details.community)
        return pack(details, children, self._budget, self._sizes)

    def _children(self, community: Community) -> list[Child]:
        return [child for name in community.children if (child := self._child(name))]

    def _child(self, name: str) -> Child | None:
        """A community of the level below with its report, which stands where it is not among those
        that are looked at."""
        store, known = self.context.copy.store, self._communities.get(name)
        community = known or read_community(store, name)
        report = self._made.get(name) if known else report_on(store, name)
        return Child(community, report) if community and report else None

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
            out = Statements(v.SOURCE_GRAPH)
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
