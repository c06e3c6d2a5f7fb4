"""The formats of an export: RDF, PROV's own, and pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from pyoxigraph import Literal, Quad, RdfFormat

from tgraph.errors import UsageError
from tgraph.explain.prov_formats import PROV_FORMATS, to_prov
from tgraph.explain.record_quads import classic
from tgraph.explain.render.picture import Picture, picture, to_dot
from tgraph.store.statements import to_bytes

FORMATS = {
    "trig": RdfFormat.TRIG,
    "turtle": RdfFormat.TURTLE,
    "nquads": RdfFormat.N_QUADS,
    "json-ld": RdfFormat.JSON_LD,
    "rdf-xml": RdfFormat.RDF_XML,
}


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

_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""What XML 1.0 has no way to write, not even as a reference (section 2.2)."""


def for_xml(quad: Quad) -> Quad:
    """The quad with U+FFFD for each character of its literal that XML can't hold."""
    value = quad.object
    if not isinstance(value, Literal) or not _UNFIT.search(value.value):
        return quad
    text = _UNFIT.sub("\ufffd", value.value)
    kind = None if value.language else value.datatype
    changed = Literal(text, datatype=kind, language=value.language)
    return Quad(quad.subject, quad.predicate, changed, quad.graph_name)
