"""Session records as RDF: complete with all references, or reduced for reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from pyoxigraph import DefaultGraph, NamedNode, Quad, RdfFormat, Triple, serialize

from tgraph import vocabulary as v
from tgraph.record.bundle import ERASURE, EVALUATION, INFLUENCE, INVALIDATION, VERIFICATION
from tgraph.store.base import Store

_PROV = (
    "wasDerivedFrom wasGeneratedBy specializationOf wasRevisionOf wasAssociatedWith"
    " qualifiedAssociation agent hadPlan used wasInvalidatedBy wasInformedBy"
)
_FOLLOWED = frozenset(
    (*map(v.prov, _PROV.split()), *map(v.tg, ("edge", "mergedFrom", "sentence", "deniedEdge")))
) | {v.dcterms("isPartOf")}
_RECORDS = (VERIFICATION, INFLUENCE, EVALUATION, INVALIDATION, ERASURE)


def session_quads(store: Store, bundle: str) -> list[Quad]:
    """The quads of a bundle and, from the source graph, of all that they refer to: agents, plans,
    reifiers, evidence, chunks, pages, documents, extractions."""
    graph = NamedNode(bundle)
    bundle_quads = list(store.match(None, None, None, graph))
    described = {quad.subject for quad in bundle_quads}
    queue = [
        term for quad in bundle_quads for term in (quad.object,) if isinstance(term, NamedNode)
    ]
    referenced_quads: list[Quad] = []
    visited: set[NamedNode] = set()
    while queue:
        node = queue.pop()
        if node in visited or node in described:
            continue
        visited.add(node)
        for quad in store.match(node, None, None, v.SOURCE_GRAPH):
            if quad.predicate == v.tg("call"):
                continue  # the thousands of an index run, none of which is described here
            referenced_quads.append(quad)
            if quad.predicate in _FOLLOWED and isinstance(quad.object, NamedNode):
                queue.append(quad.object)
    return sorted(bundle_quads, key=str) + sorted(referenced_quads, key=str)


def catalogue_quads(store: Store, bundle: str, catalogue: str) -> list[Quad]:
    """Return catalogue statements about a bundle."""
    return sorted(store.match(NamedNode(bundle), None, None, NamedNode(catalogue)), key=str)


def bundle_of(store: Store, catalogue: str, name: str) -> str | None:
    """Return the bundle IRI for a record other than sessions: verification, influence analysis
    or similar.

    Return None if no record has the IRI."""
    for kind in _RECORDS:
        if name.startswith(kind.subject_iri("")):
            with suppress(ValueError):  # what a person types need not be an IRI
                subject_node = NamedNode(name)
                for quad in store.match(
                    None, kind.subject_property, subject_node, NamedNode(catalogue)
                ):
                    assert isinstance(quad.subject, NamedNode)
                    return quad.subject.value
    return None


def replace_triple_terms(quads: Iterable[Quad]) -> Iterator[Quad]:
    """Yield equivalent quads without triple terms, for RDF engines and libraries lacking
    support.

    ``edge rdf:reifies <<( s p o )>>`` becomes ``edge a rdf:Statement`` with subject, predicate
    and object; a triple term as object of any other predicate is replaced by its edge IRI. All
    quads belong to the default graph."""
    for quad in dict.fromkeys(quads):
        term = quad.object
        if not isinstance(term, Triple):
            yield Quad(quad.subject, quad.predicate, term, DefaultGraph())
            continue
        edge = quad.subject
        if quad.predicate != v.RDF_REIFIES:
            edge = NamedNode(v.edge_iri(*term))
            yield Quad(quad.subject, quad.predicate, edge, DefaultGraph())
        yield Quad(edge, v.RDF_TYPE, NamedNode(v.RDF + "Statement"), DefaultGraph())
        for name, part in zip(("subject", "predicate", "object"), term, strict=True):
            yield Quad(edge, NamedNode(v.RDF + name), part, DefaultGraph())


# An export holds whatever the session refers to, and what that rests on in turn. Where hundreds of
# community reports were seen this is most of the graph. A report is for readers of one answer: of
# what was seen and not used it says what it is.

_LEADS = _FOLLOWED | {v.prov("hadMember"), v.tg("citation"), v.tg("note")}
"""Where the proof of an answer goes on."""
_WHO = frozenset((v.prov("wasAssociatedWith"), v.prov("agent"), v.prov("hadPlan")))
_WHAT = frozenset(
    (v.RDF_TYPE, v.RDFS_LABEL, v.RDF_REIFIES, v.dcterms("title"), v.tg("text"), v.tg("quote"))
)
"""What says of a thing what it is."""
WIDE = frozenset(
    v.tg(name) for name in ("CommunityReport", "ReportRecord", "DescriptionSummary", "Retrieval")
)
"""What rests on far more than a sentence cites of it: the citations lead on from there."""
_OWN_NAMES = ("candidate", "match", "step", "item", "edge", "point", "citation", "sentence", "call")
_NAMES = ("evidence", "edge", "report", "finding", "chunk", "document", "entity", "relation")

NOTE = (
    "# The session's own record, and what its answer rests on. Of what was only seen it says what\n"
    "# it is; `tgraph export ID --format trig` writes what that rests on as well.\n"
)


def report_quads(store: Store, bundle: str, session: str) -> list[Quad]:
    """Return a session's report quads: the complete bundle, plus supporting source quads.

    From the source graph come all quads leading from the answer, by citations and selections,
    to documents; quads of agents and prompts; and type, label and similar properties of
    everything else the bundle mentions. Reports and summaries derive only from resources
    included in the result."""
    bundle_quads: dict[NamedNode, list[Quad]] = {}
    for quad in store.match(None, None, None, NamedNode(bundle)):
        if isinstance(quad.subject, NamedNode):
            bundle_quads.setdefault(quad.subject, []).append(quad)
    answer = NamedNode(v.answer_iri(session.removeprefix(v.session_iri(""))))
    every = [quad for quads in bundle_quads.values() for quad in quads]
    agents = [q.object for q in every if q.predicate in _WHO and isinstance(q.object, NamedNode)]
    quads_by_node = _collect_reachable([answer, *agents], bundle_quads, store)
    source_quads = [
        q
        for node, quads in quads_by_node.items()
        if node not in bundle_quads
        for q in _filter_quads(quads, quads_by_node)
    ]
    objects = dict.fromkeys(quad.object for quad in every)
    mentioned_nodes = [
        node
        for node in objects
        if isinstance(node, NamedNode) and node not in {*bundle_quads, *quads_by_node}
    ]
    source_quads += [
        quad
        for node in mentioned_nodes
        for quad in store.match(node, None, None, v.SOURCE_GRAPH)
        if quad.predicate in _WHAT
    ]
    return sorted(every, key=str) + sorted(source_quads, key=str)


def _collect_reachable(
    starts: Iterable[NamedNode], own: dict[NamedNode, list[Quad]], store: Store
) -> dict[NamedNode, list[Quad]]:
    """Return nodes reachable from starting nodes, with their quads."""
    reachable: dict[NamedNode, list[Quad]] = {}
    queue = list(starts)
    while queue:
        node = queue.pop()
        if node in reachable:
            continue
        quads = own.get(node) or list(store.match(node, None, None, v.SOURCE_GRAPH))
        reachable[node] = quads
        leads = _LEADS - _SPREADS if is_wide(quads) else _LEADS
        ends = [quad.object for quad in quads if quad.predicate in leads]
        queue += [end for end in ends if isinstance(end, NamedNode)]
    return reachable


_SPREADS = frozenset((v.prov("wasDerivedFrom"), v.tg("sentence")))


def is_wide(quads: Iterable[Quad]) -> bool:
    """Tell whether quads describe a wide resource, supported by more sources than cited."""
    return any(q.predicate == v.RDF_TYPE and q.object in WIDE for q in quads)


def _filter_quads(quads: list[Quad], said: dict[NamedNode, list[Quad]]) -> Iterator[Quad]:
    """Yield a resource's quads, except index run calls and links from wide resources to omitted
    resources."""
    spread = _SPREADS if is_wide(quads) else ()
    for quad in quads:
        lost = quad.predicate in spread and quad.object not in said
        if quad.predicate != v.tg("call") and not lost:
            yield quad


_ASIDE = (v.tg("Call"), v.tg("Rating"), v.tg("EntityMatch"))
_BESIDE = frozenset((v.prov("used"), v.tg("candidate")))
"""What says of a step what it saw, beside the way from the answer to the documents."""


def core_quads(store: Store, bundle: str, session: str) -> list[Quad]:
    """Return core session quads for PROV-CONSTRAINTS checkers: stages according to the
    specification, paths from answer to documents, and agents with times.

    The result is ``report_quads`` without calls, ratings, matches and unused candidates. Every
    resource that these quads derive from, use or are generated by is included."""
    quads_by_subject: dict[object, list[Quad]] = {}
    for quad in report_quads(store, bundle, session):
        quads_by_subject.setdefault(quad.subject, []).append(quad)
    relevant_quads = {
        node: quads for node, quads in quads_by_subject.items() if not any(map(_is_aside, quads))
    }
    answer = NamedNode(v.answer_iri(session.removeprefix(v.session_iri(""))))
    queue = [node for node, quads in relevant_quads.items() if _is_begun(quads, bundle)]
    queue += [answer] if answer in relevant_quads else relevant_quads
    reached: set[object] = set()
    while queue:
        node = queue.pop()
        if node in relevant_quads and node not in reached:
            reached.add(node)
            queue += [quad.object for quad in relevant_quads[node] if quad.predicate not in _BESIDE]
    return [
        quad
        for node in relevant_quads
        if node in reached
        for quad in relevant_quads[node]
        if (quad.object in reached or quad.object not in quads_by_subject)
        and not (quad.predicate == v.prov("used") and _is_seen(relevant_quads[quad.object], bundle))
    ]


def _is_own(quads: Sequence[Quad], bundle: str) -> bool:
    return quads[0].graph_name == NamedNode(bundle)


def _is_seen(quads: Sequence[Quad], bundle: str) -> bool:
    """Tell whether quads describe input shown to a step, rather than another step's result."""
    return not _is_own(quads, bundle) or any(quad.object == v.tg("Candidate") for quad in quads)


def _is_aside(quad: Quad) -> bool:
    kind = quad.predicate == v.RDF_TYPE and quad.object in _ASIDE
    return kind or quad.predicate == v.tg("rejectionReason")


def _is_begun(quads: Sequence[Quad], bundle: str) -> bool:
    """Tell whether quads describe an activity of the record itself."""
    return _is_own(quads, bundle) and any(
        quad.predicate == v.prov("startedAtTime") for quad in quads
    )


def report_trig(quads: Iterable[Quad], session: str) -> bytes:
    """Return quads as TriG with an explanatory note.

    Short prefixes stand for session resources and for resources identified by hash."""
    uuid = session.removeprefix(v.session_iri(""))
    short = {f"{name}-of": f"{v.URN}prov:{name}:{uuid}:" for name in _OWN_NAMES}
    prefixes = v.PREFIXES | {name: f"{v.URN}{name}:" for name in _NAMES} | short
    data = serialize(quads, format=RdfFormat.TRIG, prefixes=prefixes)
    assert data is not None  # it is None only when writing to a file
    return NOTE.encode() + data
