"""A session's record with everything that it refers to, as RDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from pyoxigraph import NamedNode, Quad, RdfFormat

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.classic import classic
from tgraph.explain.prov_formats import PROV_FORMATS, to_prov
from tgraph.explain.render.picture import Picture, picture, to_dot
from tgraph.explain.xml_text import for_xml
from tgraph.record.bundle import ERASURE, EVALUATION, INFLUENCE, INVALIDATION, VERIFICATION
from tgraph.store.base import Store
from tgraph.store.statements import to_bytes

FORMATS = {
    "trig": RdfFormat.TRIG,
    "turtle": RdfFormat.TURTLE,
    "nquads": RdfFormat.N_QUADS,
    "json-ld": RdfFormat.JSON_LD,
    "rdf-xml": RdfFormat.RDF_XML,
}

_FOLLOWED = (
    v.prov("wasDerivedFrom"),
    v.prov("wasGeneratedBy"),
    v.prov("specializationOf"),
    v.prov("wasRevisionOf"),
    v.prov("wasAssociatedWith"),
    v.prov("qualifiedAssociation"),
    v.prov("agent"),
    v.prov("hadPlan"),
    v.prov("used"),
    v.dcterms("isPartOf"),
    v.tg("edge"),
    v.tg("mergedFrom"),
    v.tg("sentence"),
)


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


def serialise(quads: Iterable[Quad], name: str, *, without_terms: bool = False) -> bytes:
    """The quads in a format; one that has no graphs gets their triples once each.

    ``without_terms`` writes the classic view, which formats that know no triple terms get in any
    case. A character that the format can't hold (XML has none of most control characters) is
    U+FFFD there. ``UsageError`` for a format that there is not.
    """
    known = list(map(for_xml, quads)) if name in _WITHOUT_CONTROLS else list(quads)
    if name in PROV_FORMATS:
        return to_prov(known, name)
    if name in PICTURES:
        return PICTURES[name](picture(known))
    if name not in FORMATS:
        every = ", ".join([*FORMATS, *PROV_FORMATS, *PICTURES])
        raise UsageError(f"There is no format {name!r}.", f"There are: {every}.")
    chosen = FORMATS[name]
    if without_terms or name in _WITHOUT_TERMS:
        known = list(classic(known))
    if chosen.supports_datasets:
        return to_bytes(known, chosen)
    return to_bytes(dict.fromkeys(quad.triple for quad in known), chosen)


def _to_svg(drawn: Picture) -> bytes:
    from tgraph.explain.render.layout import to_svg  # and networkx

    return to_svg(drawn)


PICTURES: Mapping[str, Callable[[Picture], bytes]] = {"dot": to_dot, "svg": _to_svg}
_WITHOUT_TERMS = frozenset({"json-ld", "rdf-xml"})
_WITHOUT_CONTROLS = frozenset({"rdf-xml", "prov-xml", "prov-n", *PICTURES})
