"""Updating communities and their reports: only after changes."""

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
from tgraph.index.communities.given import (
    given_hierarchies,
    label_communities,
    standing_given,
    were_given,
)
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
from tgraph.index.reports.packing import Sizes, pack_details
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
    find_fallbacks,
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
from tgraph.store.statements import Statements, canonical_literal

STAGE = "Clustering"
ADDED_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class Clustered:
    """Clustering counts: communities on all levels, and entities outside communities."""

    communities: int
    isolated: int


_Wanted = dict[str, Callable[[], list[FoundCommunities]]]


@dataclass(frozen=True, slots=True)
class Reclustering:
    """A change of communities: ``found`` communities, knowledge quads to remove, and ``made``
    and ``ended`` hierarchies.

    ``made`` maps hierarchy keys to community IRIs; ``new`` are new communities, ``left`` are
    disappearing communities with their statements. ``network`` is the clustered network;
    ``first`` means that there were no communities before."""

    network: EntityNetwork
    first: bool
    found: Sequence[FoundCommunities]
    removed: Sequence[Quad]
    made: Mapping[str, Sequence[str]]
    ended: Sequence[Hierarchy]
    new: Collection[str]
    left: Mapping[str, Sequence[Quad]]


def cluster_entities(context: IndexContext) -> Clustered:
    """Update communities in the working copy to match its knowledge.

    The communities of an unchanged part stay as they are, and the result equals a clustering of
    the whole graph. If neither knowledge nor settings changed, nothing changes."""
    store, settings = context.copy.store, context.settings.communities
    seed = SEED if settings.seed is None else settings.seed
    how = Clustering(
        settings.max_size, settings.quality, settings.resolution, seed, settings.use_lcc
    )
    parameters = {name: canonical_literal(value) for name, value in how.parameters.items()}
    same = last_parameters(store) == parameters
    if context.copy.changed or not same:
        isolated = _update_clusters(context, how, same)
    else:
        isolated = len(isolated_entities(store))
    return Clustered(len(community_names(store)), isolated)


def _update_clusters(context: IndexContext, how: Clustering, same: bool) -> int:
    """Cluster entities; return the number of entities outside communities."""
    copy, started = context.copy, context.clock()
    progress = partial(context.report_progress, STAGE)
    change = _compare_changed(context, how, progress) if same else None
    local = change is not None
    if change is None:
        change = compare_communities(copy.store, how, progress)
        context.changes.communities = None
    else:
        context.changes.communities = {*change.left, *change.new}
        context.changes.divided = {community.iri: community for community, _ in change.found}
    context.changes.network = change.network
    copy.remove(change.removed)
    community_iterator = iter(change.found)
    while batch := list(
        islice(community_iterator, ADDED_AT_ONCE)
    ):  # the quads of all take a lot of memory
        if change.first:
            copy.add_new(community_quads(batch))
        else:
            copy.add(community_quads(batch))
    isolated = change.network.isolated_count if local else len(isolated_entities(copy.store))
    if not copy.changed:
        return isolated
    agent = Agent("method", f"{how.package}-leiden", version(how.package), how.package)
    by = Authorship(context.run, agent, (), started, context.clock())
    copy.add(clustering_quads(by, how.parameters, isolated, change.made, change.ended, change.left))
    return isolated


def compare_communities(
    store: Store, how: Clustering, progress: Callable[[int, int], None] = lambda done, total: None
) -> Reclustering:
    """Return changes needed for the communities to match the store's knowledge."""
    network, there = read_network(store, how.cutting), community_names(store)
    target_hierarchies, standing = (
        _target_hierarchies(store, network, how),
        standing_hierarchies(store),
    )
    return _compare_hierarchies(
        store, network, target_hierarchies, standing, there, progress, first=not there
    )


def _compare_changed(
    context: IndexContext, how: Clustering, progress: Callable[[int, int], None]
) -> Reclustering | None:
    """Return community changes based on the preceding network and the run's changes; None if
    insufficient."""
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
    target_hierarchies: _Wanted = {
        part.key(how): partial(find_communities, part, how) for part in parts
    }
    community_nodes = (
        NamedNode(name) for hierarchy in standing.values() for name in hierarchy.communities
    )
    there = {node.value for node in community_nodes if has_type(store, node, "Community")}
    return _compare_hierarchies(
        store, change.network, target_hierarchies, standing, there, progress, first=False
    )


def published_network(context: IndexContext, cutting: Cutting) -> EntityNetwork | None:
    """Return the entity network of the knowledge at the run's start."""
    pointer = read_pointer(context.ledger.folder)
    if pointer is None:
        return None
    return load_network(context.ledger.folder.vectors, pointer.generation, cutting)


def current_network(context: IndexContext) -> EntityNetwork:
    """Return the entity network of the working copy, after communities are updated.

    If nobody asked for the network, the published network did not change."""
    network = context.changes.network or published_network(context, DEFAULT_CUTTING)
    return network or read_network(context.copy.store)


def _compare_hierarchies(
    store: Store,
    network: EntityNetwork,
    wanted: _Wanted,
    standing: Mapping[str, Hierarchy],
    there: Collection[str],
    progress: Callable[[int, int], None],
    *,
    first: bool,
) -> Reclustering:
    """Return changes turning ``standing`` hierarchies into ``wanted`` hierarchies, by key.

    ``there`` are the existing communities: some may have been taken away by somebody."""
    existing = set(there)
    kept_keys = {
        key for key, entry in standing.items() if key in wanted and entry.communities <= existing
    }
    fresh = sorted(wanted.keys() - kept_keys)
    names_by_key: dict[str, list[str]] = {}
    found_communities: list[FoundCommunities] = []
    for count, key in enumerate(fresh, 1):
        made_now = wanted.pop(key)()
        names_by_key[key] = [community.iri for community, _ in made_now]
        found_communities += made_now
        progress(count, len(fresh))
    ended = [standing[key] for key in sorted(standing.keys() - kept_keys)]
    before = {
        name: stated_quads(store, name) for existing in ended for name in existing.communities
    }
    again = {name for names in names_by_key.values() for name in names}
    stay = set(
        community_quads(entry for entry in found_communities if entry.community.iri in before)
    )
    return Reclustering(
        network=network,
        first=first,
        found=found_communities,
        removed=[quad for statements in before.values() for quad in statements if quad not in stay],
        made=names_by_key,
        ended=ended,
        new={
            entry.community.iri for entry in found_communities if entry.community.iri not in before
        },
        left={
            name: statements
            for name, statements in sorted(before.items())
            if statements and name not in again
        },
    )


def _target_hierarchies(store: Store, network: EntityNetwork, how: Clustering) -> _Wanted:
    """Return hierarchies required by knowledge, by key, each with its maker.

    Imported hierarchies are used as far as they stand; every other part is divided."""
    divided = network.largest() if how.use_lcc else set(network.parts)
    imported_hierarchies = given_hierarchies(store)
    part_names = network.parts if imported_hierarchies else sorted(divided)
    parts = dict(zip(part_names, network.components(store, part_names), strict=True))
    digests = {part.digest: part for part in parts.values()} if imported_hierarchies else {}
    resolved = (
        standing_given(store, digests, standing_merges(store)) if imported_hierarchies else []
    )
    ready = {
        resolved_hierarchy.key: partial(
            label_communities, resolved_hierarchy, tuple(parts.values())
        )
        for resolved_hierarchy in resolved
    }
    used_digests = {
        digest for resolved_hierarchy in resolved for digest in resolved_hierarchy.parts
    }
    free = (part for place, part in parts.items() if place in divided)
    free_parts = (part for part in free if not used_digests or part.digest not in used_digests)
    return {**ready, **{part.key(how): partial(find_communities, part, how) for part in free_parts}}


LEAST_BUDGET = 500
"""Tokens that a prompt must leave for what it shows."""

MOST_MEMBERS = 100
"""Entities of a community that a report can tell of, beside a large imported graph: about as many
as have room in ``reports.max_input_tokens``, where the rest would be read to be left out."""

AT_ONCE = 256
"""Reports whose contexts are in memory together."""


def write_reports(context: IndexContext, known: Mapping[str, CommunityReport] | None = None) -> int:
    """Update community reports; return the number of reports written or rewritten.

    A report stays unchanged while its input stays the same; a model is not asked again for
    ``known`` reports, by default the standing reports. An unusable reply costs only its report,
    which is then made without the model."""
    store = context.copy.store
    touched = _touched_communities(context)
    if touched is None:
        communities = select_reported(read_communities(store, edges=False), context)
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
    """Return communities that are new, gone, or have changed members, and those with a fallback
    report.

    The input of all other reports did not change. None is returned if changes are unknown, or
    if other writers wrote the reports."""
    store, keys, changed = context.copy.store, context.changes.keys, context.changes.communities
    writer = context.changes.makers.reports = _writer_key(context)
    if keys is None or changed is None or context.makers_before.reports != writer:
        return None
    community_iris = changed | find_fallbacks(store)
    for resource in keys.resources:
        for quad in store.match(None, v.tg("member"), NamedNode(resource), v.KNOWLEDGE_GRAPH):
            if isinstance(quad.subject, NamedNode) and has_type(store, quad.subject, "Community"):
                community_iris.add(quad.subject.value)
    context.changes.reported = community_iris
    return community_iris


def _writer_key(context: IndexContext) -> str:
    """Return a digest of report dependencies beyond the report's input."""
    writer = context.parts.report_writer
    return v.digest_parts(
        writer.key, str(context.settings.reports.max_input_tokens), _writer_encoding(context)
    )


def _writer_encoding(context: IndexContext) -> str:
    agent = context.parts.report_writer.agent
    return encoding_for(agent.name) if agent.kind == "model" else DEFAULT_ENCODING


def select_reported(communities: Sequence[Community], context: IndexContext) -> Sequence[Community]:
    """Return communities that receive a report: all, or beside a large imported graph the
    coarsest describable communities."""
    report_limit = context.settings.graphs.reports
    if len(communities) <= report_limit or not context.is_large:
        return communities
    ranked = sorted(communities, key=lambda c: (c.level, -len(c.members), c.iri))
    chosen = [c for c in ranked if len(c.members) <= MOST_MEMBERS][:report_limit]
    skipped_count = len(communities) - len(chosen)
    context.message(
        f"{skipped_count:,} communities get no report: the imported graph is large"
        " (graphs.reports)."
    )
    context.record.dropped["report of a community of a large imported graph"] = skipped_count
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
        self._sizes = Sizes(_writer_encoding(context))
        self._budget = context.settings.reports.max_input_tokens - self.maker.overhead
        self._made: dict[str, CommunityReport] = {}
        self._given = GivenReports(store, texts)
        if self._budget < LEAST_BUDGET:
            raise UsageError(
                f"The prompt community_report leaves {self._budget:,} tokens for what it shows.",
                "Raise reports.max_input_tokens, or shorten the prompt.",
            )

    def write(self, communities: Iterable[Community]) -> None:
        """Write reports of one level, after reports of the level below."""
        contexts = map(self._pack_report, self._reader.read(communities))
        while batch := list(islice(contexts, AT_ONCE)):
            self.go_on(batch)

    def _pack_report(self, details: Details) -> ReportContext:
        if details.community.iri in self._given:  # whatever it cites is there
            return pack_details(details, list, sys.maxsize, self._sizes)
        children = partial(self._list_children, details.community)
        return pack_details(details, children, self._budget, self._sizes)

    def _list_children(self, community: Community) -> list[Child]:
        return [child for name in community.children if (child := self._find_child(name))]

    def _find_child(self, name: str) -> Child | None:
        """Return a lower-level community with its report.

        A community outside the processed communities has a standing report."""
        store, level_community = self.context.copy.store, self._communities.get(name)
        community = level_community or read_community(store, name)
        report = self._made.get(name) if level_community else report_on(store, name)
        return Child(community, report) if community and report else None

    def attempt(self, item: ReportContext) -> Made[ReportDraft, ReportWriter]:
        if item.community.iri in self._given:
            return Made(self._given.write(item), self._given)
        return super().attempt(item)

    def produce_result(
        self, item: ReportContext, maker: ReportWriter, sink: CallSink
    ) -> ReportDraft:
        """Return a report draft; a known report with equal input is reused."""
        by_model = maker.agent.kind == "model"
        known_report = self._known.get(report_key(item, maker)) if by_model else None
        return as_draft(known_report, item) if known_report is not None else maker.write(item, sink)

    def stand_in(self) -> ReportWriter:
        return ExtractiveWriter()

    def complaint(self, item: ReportContext, made: Made[ReportDraft, ReportWriter]) -> str:
        title = self._made[item.community.iri].title
        return f"The report on {title} quotes the sources: {made.error}"

    def record(
        self, item: ReportContext, made: Made[ReportDraft, ReportWriter], began: datetime
    ) -> None:
        context, by = self.context, made.by
        outcome = made_report(made.result, item, report_key(item, by))
        report = self._made[outcome.report.community] = outcome.report
        how = self.authorship(made, began)
        no_room = Counter(item.left_out)  # that is said of the report, and no loss of the run
        context.record.dropped.update(Counter(outcome.dropped) - no_room)
        if not is_recorded(context.copy.store, report.iri):
            content = context.record.keep_content(report_content(outcome, item))
            self.credit(by)
            out = Statements(v.SOURCE_GRAPH)
            state_report(out, outcome, how, content)
            context.copy.note(out.take_quads())
        before = self._standing.get(report.community)
        if before is None or before.iri != report.iri:
            self.written += 1
            context.copy.add(report_quads(report))

    def clear(self) -> None:
        """Remove reports without community from knowledge; their record stays."""
        for community, before in self._standing.items():
            now = self._made.get(community)
            if now is None or now.iri != before.iri:
                self.context.copy.remove(report_subjects(self.context.copy.store, before))
