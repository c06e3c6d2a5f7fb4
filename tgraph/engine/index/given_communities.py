"""Communities and reports that imported graphs bring: put on record, and taken as the reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.engine.index.phase import IndexContext
from tgraph.extract.graphs.base import ImportedCommunity
from tgraph.extract.graphs.reports import RenderedReport, read_report
from tgraph.index.communities.communities import read_components
from tgraph.index.communities.given import (
    GivenCommunity,
    given_hierarchies,
    group_communities,
    resolve_given,
)
from tgraph.index.knowledge import Derivation, Touched
from tgraph.index.reports.context import ReportContext
from tgraph.index.reports.report import DraftFinding, ReportDraft
from tgraph.index.sources import Texts, chunks_of_document, derived, text_value, value
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
    itself, so that it makes no difference what else is known when it comes."""
    started = context.clock()
    store = context.copy.store
    part_of = _parts_alone(store, brought.documents)
    given = _given(brought.communities)
    how = Authorship(context.run, SOFTWARE, (), started, context.clock())
    for parts, own in group_communities(given, part_of):
        name = v.digest(*sorted(parts), "", *(one.iri for one in own), "", *brought.documents)
        hierarchy = f"{v.URN}given-hierarchy:{name}"
        if not is_recorded(store, hierarchy):
            context.copy.add(given_quads(how, hierarchy, parts, own, brought.documents))


def _given(communities: Iterable[ImportedCommunity]) -> list[GivenCommunity]:
    known = {one.key: one for one in communities if one.chunk}
    names = {
        key: f"{v.URN}given-community:{v.digest(one.chunk, str(one.level), *sorted(one.members))}"
        for key, one in known.items()
    }
    return [
        GivenCommunity(
            names[key], one.level, one.members, names.get(one.parent or "", ""), one.chunk
        )
        for key, one in known.items()
    ]


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
    found = {member: part.digest for part in read_components(alone) for member in part.members}
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


@dataclass(frozen=True, slots=True)
class _GivenReport:
    """A report with what each of its findings speaks of, and the evidence that its text is."""

    report: RenderedReport
    about: tuple[tuple[str, ...], ...]
    places: tuple[str, ...]


class GivenReports:
    """A ``ReportWriter`` of what imported graphs say of their communities, word for word.

    A finding cites what it speaks of, and rests on the evidence of that in the texts; the report
    rests on its own text as well.
    """

    agent = Agent("method", "imported-reports", __version__)
    prompts: tuple[Prompt, ...] = ()
    overhead = 0
    key = v.digest(agent.iri)

    def __init__(self, store: Store, texts: Texts) -> None:
        self._store = store
        self._merges: Mapping[str, str] = {}
        self._reports: dict[str, _GivenReport] = {}
        hierarchies = given_hierarchies(store)
        if not hierarchies:
            return
        self._merges = standing_merges(store)
        standing = standing_hierarchies(store).keys()
        for hierarchy in hierarchies:
            resolved = resolve_given(store, hierarchy, self._merges)
            for community, chunk in resolved.chunks.items() if resolved.key in standing else ():
                if report := read_report(texts.of_chunk(chunk)):
                    self._reports[community] = self._read(report, chunk)
        self._own = {place for each in self._reports.values() for place in each.places}

    def __contains__(self, community: str) -> bool:
        return community in self._reports

    def _read(self, report: RenderedReport, chunk: str) -> _GivenReport:
        places = sorted(derived(self._store, chunk, "Evidence"))
        start = int(chunk.rpartition(":")[2].partition("-")[0])
        about: dict[int, list[str]] = {}
        for place in places:
            at = int(text_value(self._store, place, v.tg("charOffset"))) - start
            about.setdefault(at, []).append(self._speaks_of(place))
        found = (tuple(dict.fromkeys(about.get(each.start, ()))) for each in report.findings)
        return _GivenReport(report, tuple(found), tuple(places))

    def _speaks_of(self, place: str) -> str:
        """The entity or edge that an evidence is for, under its canonical name."""
        if entity := text_value(self._store, place, v.tg("entity")):
            return self._merges.get(entity, entity)
        edge = text_value(self._store, place, v.tg("edge"))
        triple = value(self._store, edge, v.RDF_REIFIES) if edge else None
        if not isinstance(triple, Triple):
            return edge
        ends = (self._canonical(triple.subject), self._canonical(triple.object))
        return v.edge_iri(ends[0], triple.predicate, ends[1])

    def _canonical(self, term: object) -> NamedNode:
        return NamedNode(self._merges.get(text_of(term), text_of(term)))

    def write(self, context: ReportContext, sink: CallSink = no_sink) -> ReportDraft:
        """As ``ReportWriter.write``, of a community that a report was given for."""
        given = self._reports[context.community.iri]
        ids = {iri: i for i, iri in context.ids().items()}
        rests_on = context.sources()
        first = [entity.iri for entity in context.entities[:1]]
        findings = []
        for finding, about in zip(given.report.findings, given.about, strict=True):
            cited = [iri for iri in about if iri in ids] or first
            grounds = {place for iri in cited for place in rests_on[iri]} - self._own
            citations = tuple(ids[iri] for iri in cited)
            findings.append(
                DraftFinding(
                    finding.summary, finding.explanation, citations, tuple(sorted(grounds))
                )
            )
        return ReportDraft(
            given.report.title,
            given.report.summary,
            given.report.rating,
            given.report.rating_reason,
            tuple(findings),
            origins=given.places,
        )
