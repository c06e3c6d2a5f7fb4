"""Communities and reports that imported graphs bring: put on record, and taken as the reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.extract.imported_communities import ImportedCommunity, RenderedReport, read_report
from tgraph.index.communities.given import (
    GivenCommunity,
    given_hierarchies,
    group_communities,
    resolve_given,
)
from tgraph.index.entity_network import read_network
from tgraph.index.knowledge import Derivation
from tgraph.index.reports.context import ReportContext
from tgraph.index.reports.report import DraftFinding, ReportDraft
from tgraph.index.sources import Texts, chunks_of_document, source_value
from tgraph.index.touched import Touched
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.record.activities import SOFTWARE, Authorship, is_recorded
from tgraph.record.communities import given_quads, standing_hierarchies
from tgraph.record.merges import standing_merges
from tgraph.store.base import Store, text_of
from tgraph.store.oxigraph import OxigraphStore
from tgraph.version import __version__


@dataclass(frozen=True, slots=True)
class BroughtCommunities:
    """Communities of an imported graph, with its document IRIs."""

    communities: Sequence[ImportedCommunity]
    documents: Sequence[str]


def state_given(context: IndexContext, brought: BroughtCommunities) -> None:
    """Record communities brought by a graph, and the network parts they belong to.

    Parts are computed from the graph's documents alone, so that other knowledge makes no
    difference. Communities of unconnected entities belong to no part and are left out."""
    started = context.clock()
    store = context.copy.store
    part_of = _parts_alone(store, brought.documents)
    placed_communities = list(_convert_communities(brought.communities))
    how = Authorship(context.run, SOFTWARE, (), started, context.clock())
    groups = group_communities(placed_communities, part_of)
    for parts, group in ((parts, group) for parts, group in groups if parts):
        name = v.digest_parts(
            *sorted(parts), "", *(community.iri for community in group), "", *brought.documents
        )
        hierarchy = f"{v.URN}given-hierarchy:{name}"
        if not is_recorded(store, hierarchy):
            context.copy.add(given_quads(how, hierarchy, parts, group, brought.documents))


def _convert_communities(communities: Iterable[ImportedCommunity]) -> Iterator[GivenCommunity]:
    placed = {
        community.key: (community, place) for community in communities if (place := community.place)
    }
    names = {
        key: v.digest_parts(
            place.document, str(place.start), str(community.level), *sorted(community.members)
        )
        for key, (community, place) in placed.items()
    }
    iris = {key: f"{v.URN}given-community:{name}" for key, name in names.items()}
    for key, (community, at) in placed.items():
        parent, where = iris.get(community.parent or "", ""), (at.document, at.start, at.end)
        yield GivenCommunity(
            iris[key], community.level, community.members, parent, *where, community.refers
        )


def _parts_alone(store: Store, documents: Iterable[str]) -> dict[str, str]:
    """Return part digests keyed by entity IRI, computed from these documents alone."""
    alone = OxigraphStore.memory()
    alone.extend(_evidence_of(store, documents))
    touched = Touched()
    for quad in alone.match(None, v.tg("entity"), None, v.SOURCE_GRAPH):
        touched.entities.add(text_of(quad.object))
    for quad in alone.match(None, v.RDF_REIFIES, None, v.SOURCE_GRAPH):
        assert isinstance(quad.object, Triple)
        touched.edges[text_of(quad.subject)] = quad.object
    change = Derivation(alone, {}, lambda chunk: True).run(touched)
    alone.extend(change.added)
    network = read_network(alone)
    parts = network.components(alone, network.parts)
    digests = {member: part.digest for part in parts for member in part.members}
    return digests | {name: digests[to] for name, to in change.merged.items() if to in digests}


def _evidence_of(store: Store, documents: Iterable[str]) -> Iterator[Quad]:
    for document in documents:
        for chunk in chunks_of_document(store, document):
            for part in store.match(
                None, v.prov("wasDerivedFrom"), NamedNode(chunk), v.SOURCE_GRAPH
            ):
                for quad in store.match(part.subject, None, None, v.SOURCE_GRAPH):
                    yield quad
                    if quad.predicate in (v.tg("edge"), v.tg("contains")):
                        assert isinstance(quad.object, NamedNode)
                        yield from store.match(quad.object, v.RDF_REIFIES, None, v.SOURCE_GRAPH)


# --- their reports ---


class GivenReports:
    """A ``ReportWriter`` that repeats community reports of imported graphs word for word.

    A finding cites its subjects and rests on their evidence; the report is also derived from
    the imported community."""

    agent = Agent("method", "imported-reports", __version__)
    prompts: tuple[Prompt, ...] = ()
    overhead = 0
    key = v.digest_parts(agent.iri)

    def __init__(self, store: Store, texts: Texts) -> None:
        self._store = store
        self._merges: Mapping[str, str] = {}
        self._reports: dict[str, tuple[RenderedReport, GivenCommunity]] = {}
        if hierarchies := given_hierarchies(store):
            self._merges = standing_merges(store)
            standing = standing_hierarchies(store).keys()
            for hierarchy in hierarchies:
                resolved = resolve_given(store, hierarchy, self._merges)
                if resolved.key in standing:
                    self._read_reports(resolved.given, texts)

    def _read_reports(self, given: Mapping[str, GivenCommunity], texts: Texts) -> None:
        for community, source in given.items():
            text = texts.of_page(source.document, None)[source.start : source.end]
            if report := read_report(text):
                self._reports[community] = report, source

    def __contains__(self, community: str) -> bool:
        return community in self._reports

    def _canonical_iri(self, thing: str) -> str:
        """Return the canonical IRI of an entity or edge named in texts."""
        triple = source_value(self._store, thing, v.RDF_REIFIES)
        if not isinstance(triple, Triple):
            return self._merges.get(thing, thing)
        subject_iri, object_iri = map(text_of, (triple.subject, triple.object))
        ends = (NamedNode(self._merges.get(end, end)) for end in (subject_iri, object_iri))
        return v.edge_iri(next(ends), triple.predicate, next(ends))

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """Return a draft of the imported community report, as ``ReportWriter.write`` does.

        A finding without known subjects cites the community's first member."""
        report, source = self._reports[context.community.iri]
        ids = {iri: i for i, iri in context.ids().items()}
        first = [ids[entity.iri] for entity in context.entities[:1]]
        findings = []
        for finding, refers in zip(report.findings, source.refers, strict=True):
            cited = [ids[iri] for iri in map(self._canonical_iri, refers) if iri in ids] or first
            findings.append(DraftFinding(finding.summary, finding.explanation, tuple(cited)))
        return ReportDraft(
            report.title,
            report.summary,
            report.rating,
            report.rating_reason,
            tuple(findings),
            origins=(source.iri,),
        )
