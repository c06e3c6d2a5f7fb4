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
from tgraph.index.sources import Texts, chunks_of_document, value
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
    """The communities of an imported graph, and its documents by IRI."""

    communities: Sequence[ImportedCommunity]
    documents: Sequence[str]


def state_given(context: IndexContext, brought: BroughtCommunities) -> None:
    """Put on record which communities the graph brings, and of which parts: those that it makes by
    itself, so that it makes no difference what else is known when it comes. Communities of entities
    that nothing ties to others are of no part, and are left out."""
    started = context.clock()
    store = context.copy.store
    part_of = _parts_alone(store, brought.documents)
    given = list(_given(brought.communities))
    how = Authorship(context.run, SOFTWARE, (), started, context.clock())
    groups = group_communities(given, part_of)
    for parts, own in ((parts, own) for parts, own in groups if parts):
        name = v.digest(*sorted(parts), "", *(one.iri for one in own), "", *brought.documents)
        hierarchy = f"{v.URN}given-hierarchy:{name}"
        if not is_recorded(store, hierarchy):
            context.copy.add(given_quads(how, hierarchy, parts, own, brought.documents))


def _given(communities: Iterable[ImportedCommunity]) -> Iterator[GivenCommunity]:
    placed = {one.key: (one, place) for one in communities if (place := one.place)}
    names = {
        key: v.digest(place.document, str(place.start), str(one.level), *sorted(one.members))
        for key, (one, place) in placed.items()
    }
    iris = {key: f"{v.URN}given-community:{name}" for key, name in names.items()}
    for key, (one, at) in placed.items():
        parent, where = iris.get(one.parent or "", ""), (at.document, at.start, at.end)
        yield GivenCommunity(iris[key], one.level, one.members, parent, *where, one.refers)


def _parts_alone(store: Store, documents: Iterable[str]) -> dict[str, str]:
    """For each name of the texts the digest of the part that it would be in, if there were these
    documents only."""
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
    found = {member: part.digest for part in parts for member in part.members}
    return found | {name: found[to] for name, to in change.merged.items() if to in found}


def _evidence_of(store: Store, documents: Iterable[str]) -> Iterator[Quad]:
    for document in documents:
        for chunk in chunks_of_document(store, document):
            for part in store.match(None, v.prov("wasDerivedFrom"), NamedNode(chunk), None):
                for quad in store.match(part.subject, None, None, v.SOURCE_GRAPH):
                    yield quad
                    if quad.predicate in (v.tg("edge"), v.tg("contains")):
                        assert isinstance(quad.object, NamedNode)
                        yield from store.match(quad.object, v.RDF_REIFIES, None, v.SOURCE_GRAPH)


# --- their reports ---


class GivenReports:
    """A ``ReportWriter`` of what imported graphs say of their communities, word for word.

    A finding cites what it speaks of, and rests on the evidence of that; the report is derived from
    the community as it was given as well.
    """

    agent = Agent("method", "imported-reports", __version__)
    prompts: tuple[Prompt, ...] = ()
    overhead = 0
    key = v.digest(agent.iri)

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
                    self._take(resolved.given, texts)

    def _take(self, given: Mapping[str, GivenCommunity], texts: Texts) -> None:
        for community, one in given.items():
            text = texts.of_page(one.document, None)[one.start : one.end]
            if report := read_report(text):
                self._reports[community] = report, one

    def __contains__(self, community: str) -> bool:
        return community in self._reports

    def _now(self, thing: str) -> str:
        """The entity or edge of the texts under its canonical name."""
        triple = value(self._store, thing, v.RDF_REIFIES)
        if not isinstance(triple, Triple):
            return self._merges.get(thing, thing)
        one, other = map(text_of, (triple.subject, triple.object))
        ends = (NamedNode(self._merges.get(end, end)) for end in (one, other))
        return v.edge_iri(next(ends), triple.predicate, next(ends))

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """As ``ReportWriter.write``, of a community that a report was given for. A finding that
        speaks of nothing that is known cites the first member."""
        report, given = self._reports[context.community.iri]
        ids = {iri: i for i, iri in context.ids().items()}
        first = [ids[entity.iri] for entity in context.entities[:1]]
        findings = []
        for finding, refers in zip(report.findings, given.refers, strict=True):
            cited = [ids[iri] for iri in map(self._now, refers) if iri in ids] or first
            findings.append(DraftFinding(finding.summary, finding.explanation, tuple(cited)))
        return ReportDraft(
            report.title,
            report.summary,
            report.rating,
            report.rating_reason,
            tuple(findings),
            origins=(given.iri,),
        )
