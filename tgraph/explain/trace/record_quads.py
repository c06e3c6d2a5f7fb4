"""A session's record as RDF: with all that it refers to, or as much as a report carries."""

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
    own = list(store.match(None, None, None, graph))
    described = {quad.subject for quad in own}
    queue = [term for quad in own for term in (quad.object,) if isinstance(term, NamedNode)]
    found: list[Quad] = []
    seen: set[NamedNode] = set()
    while queue:
        node = queue.pop()
        if node in seen or node in described:
            continue
        seen.add(node)
        for quad in store.match(node, None, None, v.SOURCE_GRAPH):
            if quad.predicate == v.tg("call"):
                continue  # the thousands of an index run, none of which is described here
            found.append(quad)
            if quad.predicate in _FOLLOWED and isinstance(quad.object, NamedNode):
                queue.append(quad.object)
    return sorted(own, key=str) + sorted(found, key=str)


def catalogue_quads(store: Store, bundle: str, catalogue: str) -> list[Quad]:
    """What the catalogue says of the bundle."""
    return sorted(store.match(NamedNode(bundle), None, None, NamedNode(catalogue)), key=str)


def bundle_of(store: Store, catalogue: str, name: str) -> str | None:
    """The bundle of the verification, influence analysis or other record that has the IRI and is
    no session; None where there is none."""
    for kind in _RECORDS:
        if name.startswith(kind.subject_iri("")):
            with suppress(ValueError):  # what a person types need not be an IRI
                named = NamedNode(name)
                for quad in store.match(None, kind.subject_property, named, NamedNode(catalogue)):
                    assert isinstance(quad.subject, NamedNode)
                    return quad.subject.value
    return None


def classic(quads: Iterable[Quad]) -> Iterator[Quad]:
    """The same quads without triple terms, for engines and libraries that have none.

    ``edge rdf:reifies <<( s p o )>>`` becomes ``edge a rdf:Statement`` with subject, predicate and
    object; where a triple term is the object of anything else, the IRI of its edge stands for it.
    Everything is in the default graph.
    """
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
    """The quads of a session's bundle whole; from the source graph those of everything that leads
    from the answer, by what it cites and by what was selected, to documents; of the agents and
    prompts; and of whatever else the bundle refers to the type, the label and the like.

    A report or summary is derived here only from what is here too.
    """
    own: dict[NamedNode, list[Quad]] = {}
    for quad in store.match(None, None, None, NamedNode(bundle)):
        if isinstance(quad.subject, NamedNode):
            own.setdefault(quad.subject, []).append(quad)
    answer = NamedNode(v.answer_iri(session.removeprefix(v.session_iri(""))))
    every = [quad for quads in own.values() for quad in quads]
    who = [q.object for q in every if q.predicate in _WHO and isinstance(q.object, NamedNode)]
    said = _behind([answer, *who], own, store)
    told = [q for node, quads in said.items() if node not in own for q in _kept(quads, said)]
    named = dict.fromkeys(quad.object for quad in every)
    seen = [node for node in named if isinstance(node, NamedNode) and node not in {*own, *said}]
    told += [
        quad
        for node in seen
        for quad in store.match(node, None, None, v.SOURCE_GRAPH)
        if quad.predicate in _WHAT
    ]
    return sorted(every, key=str) + sorted(told, key=str)


def _behind(
    starts: Iterable[NamedNode], own: dict[NamedNode, list[Quad]], store: Store
) -> dict[NamedNode, list[Quad]]:
    """What the starts lead to, with the quads of each."""
    found: dict[NamedNode, list[Quad]] = {}
    queue = list(starts)
    while queue:
        node = queue.pop()
        if node in found:
            continue
        quads = own.get(node) or list(store.match(node, None, None, v.SOURCE_GRAPH))
        found[node] = quads
        leads = _LEADS - _SPREADS if is_wide(quads) else _LEADS
        ends = [quad.object for quad in quads if quad.predicate in leads]
        queue += [end for end in ends if isinstance(end, NamedNode)]
    return found


_SPREADS = frozenset((v.prov("wasDerivedFrom"), v.tg("sentence")))


def is_wide(quads: Iterable[Quad]) -> bool:
    """Whether the thing that the quads describe rests on more than is cited of it."""
    return any(q.predicate == v.RDF_TYPE and q.object in WIDE for q in quads)


def _kept(quads: list[Quad], said: dict[NamedNode, list[Quad]]) -> Iterator[Quad]:
    """What is said of a thing, without the calls of a whole index run and without links of a wide
    thing to what is left out."""
    spread = _SPREADS if is_wide(quads) else ()
    for quad in quads:
        lost = quad.predicate in spread and quad.object not in said
        if quad.predicate != v.tg("call") and not lost:
            yield quad


_ASIDE = (v.tg("Call"), v.tg("Rating"), v.tg("EntityMatch"))
_BESIDE = frozenset((v.prov("used"), v.tg("candidate")))
"""What says of a step what it saw, beside the way from the answer to the documents."""


def core_quads(store: Store, bundle: str, session: str) -> list[Quad]:
    """The stages of a session as the specification has them, what leads from its answer to
    documents, and who did what when, few enough for a program that checks PROV-CONSTRAINTS:
    ``report_quads`` without calls, ratings and matches, and without what was seen and not used.
    All that these quads derive from, are generated by or use is among them."""
    said: dict[object, list[Quad]] = {}
    for quad in report_quads(store, bundle, session):
        said.setdefault(quad.subject, []).append(quad)
    told = {node: quads for node, quads in said.items() if not any(map(_is_aside, quads))}
    answer = NamedNode(v.answer_iri(session.removeprefix(v.session_iri(""))))
    queue = [node for node, quads in told.items() if _is_begun(quads, bundle)]
    queue += [answer] if answer in told else told
    reached: set[object] = set()
    while queue:
        node = queue.pop()
        if node in told and node not in reached:
            reached.add(node)
            queue += [quad.object for quad in told[node] if quad.predicate not in _BESIDE]
    return [
        quad
        for node in told
        if node in reached
        for quad in told[node]
        if (quad.object in reached or quad.object not in said)
        and not (quad.predicate == v.prov("used") and _is_seen(told[quad.object], bundle))
    ]


def _is_own(quads: Sequence[Quad], bundle: str) -> bool:
    return quads[0].graph_name == NamedNode(bundle)


def _is_seen(quads: Sequence[Quad], bundle: str) -> bool:
    """Whether the quads are about something that a step was shown, not about another's result."""
    return not _is_own(quads, bundle) or any(quad.object == v.tg("Candidate") for quad in quads)


def _is_aside(quad: Quad) -> bool:
    kind = quad.predicate == v.RDF_TYPE and quad.object in _ASIDE
    return kind or quad.predicate == v.tg("rejectionReason")


def _is_begun(quads: Sequence[Quad], bundle: str) -> bool:
    """Whether the quads are about an activity of the record itself."""
    return _is_own(quads, bundle) and any(
        quad.predicate == v.prov("startedAtTime") for quad in quads
    )


def report_trig(quads: Iterable[Quad], session: str) -> bytes:
    """The quads as TriG with short names for what belongs to the session and for what is named by
    a hash, and a note that says what they are."""
    uuid = session.removeprefix(v.session_iri(""))
    short = {f"{name}-of": f"{v.URN}prov:{name}:{uuid}:" for name in _OWN_NAMES}
    prefixes = v.PREFIXES | {name: f"{v.URN}{name}:" for name in _NAMES} | short
    data = serialize(quads, format=RdfFormat.TRIG, prefixes=prefixes)
    assert data is not None  # it is None only when writing to a file
    return NOTE.encode() + data
