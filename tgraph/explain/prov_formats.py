"""A record in the formats of the PROV family (W3C, 2013), through the ``prov`` library."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from io import StringIO

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat

from tgraph import vocabulary as v
from tgraph.explain.classic import classic
from tgraph.store.statements import to_bytes

PROV_FORMATS = {"prov-n": "provn", "prov-json": "json", "prov-xml": "xml"}
"""The formats and what the library calls them."""


def to_prov(quads: Iterable[Quad], name: str) -> bytes:
    """The statements of PROV among the quads, with tgraph's own as attributes where the format can
    hold them: what is no relation of PROV-DM (selectors, reified edges) stays in RDF alone."""
    from prov.model import ProvDocument

    data = to_bytes([_readable(quad).triple for quad in classic(quads)], RdfFormat.TURTLE)
    log = logging.getLogger("prov.serializers.provrdf")
    level = log.level
    log.setLevel(logging.ERROR)  # it tells of every statement that is not PROV's
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document = ProvDocument.deserialize(
                content=data.decode(), format="rdf", rdf_format="turtle"
            )
            return _written(document, PROV_FORMATS[name])
    finally:
        log.setLevel(level)


def _written(document: object, name: str) -> bytes:
    out = StringIO()
    document.serialize(out, format=name)  # type: ignore[attr-defined]
    return (out.getvalue().rstrip() + "\n").encode()


_TIMES = (v.prov("startedAtTime"), v.prov("endedAtTime"), v.prov("generatedAtTime"))


def _readable(quad: Quad) -> Quad:
    """The library has a reader for the qualified and the general form of a revision only, and takes
    no time that is a plain string, as TrustGraph writes it."""
    said, value = quad.predicate, quad.object
    if said == v.prov("wasRevisionOf") and isinstance(value, NamedNode | Literal):
        said = v.prov("wasDerivedFrom")
    if said in _TIMES and isinstance(value, Literal):
        value = Literal(value.value, datatype=v.xsd("dateTime"))
    return Quad(quad.subject, said, value, quad.graph_name)
