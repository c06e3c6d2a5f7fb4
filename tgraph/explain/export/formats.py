"""The formats of an export: RDF and PROV's own; pictures come from extensions."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, serialize

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.explain.trace.record_quads import replace_triple_terms
from tgraph.plugins import PICTURES
from tgraph.rendering import Notation, escape_serialised
from tgraph.store.statements import to_bytes

if TYPE_CHECKING:
    from prov.identifier import Identifier
    from prov.model import ProvDocument, ProvRecord, QualifiedName

    from tgraph.store.base import Subject, Term


# --- the PROV family (W3C, 2013), through the ``prov`` library ---

_SPACE = re.compile(r"(.*[#/:])[^#/:]+[#/:]*")
_NUMBERED = re.compile(r"ns\d+(?:_\d+)?")
PROV_FORMATS = {"prov-n": "provn", "prov-json": "json", "prov-xml": "xml"}
"""The formats and what the library calls them."""


def to_prov(quads: Iterable[Quad], name: str) -> bytes:
    """Return the PROV document of quads in a PROV format, with XML-compatible names for XML."""
    document = prov_document(quads)
    if name == "prov-xml":
        document = _with_xml_names(document)
    out = StringIO()
    document.serialize(out, format=PROV_FORMATS[name])
    return (out.getvalue().rstrip() + "\n").encode()


def prov_document(quads: Iterable[Quad]) -> ProvDocument:
    """Return a PROV document: PROV statements among the quads, with tgraph statements as
    attributes where possible.

    Content without a PROV-DM relation (selectors, reified edges) stays in RDF alone."""
    from prov.model import ProvDocument

    triples = list(_readable_triples(quad.triple for quad in replace_triple_terms(quads)))
    head = "".join(
        f"@prefix {name}: <{uri}> .\n" for name, uri in _collect_prefixes(triples).items()
    )
    lines = serialize(triples, format=RdfFormat.N_TRIPLES)  # rdflib can't read all short names
    assert lines is not None  # it is None only when writing to a file
    log = logging.getLogger("prov.serializers.provrdf")
    level = log.level
    log.setLevel(logging.ERROR)  # it tells of every statement that is not PROV's
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            document = ProvDocument.deserialize(
                content=head + lines.decode(), format="rdf", rdf_format="turtle"
            )
    finally:
        log.setLevel(level)
    assert isinstance(document, ProvDocument)
    return _order_document(document)


def _collect_prefixes(triples: Iterable[Triple]) -> dict[str, str]:
    """Return prefixes for all IRIs: the library can't name relation ends without a prefix."""
    terms = {term for triple in triples for term in (triple.subject, triple.object)}
    matches = [_SPACE.match(term.value) for term in terms if isinstance(term, NamedNode)]
    spaces = {match.group(1) for match in matches if match} - set(v.PREFIXES.values())
    return {**v.PREFIXES, **{f"ns{number}": uri for number, uri in enumerate(sorted(spaces), 1)}}


def _order_document(document: ProvDocument) -> ProvDocument:
    """Return the document with records, attributes and prefixes in canonical order, without
    unused prefixes."""
    from prov.model import Namespace, ProvDocument, QualifiedName

    names = [name for record in document.get_records() for name in _names_of(record)]
    prefixes = {name.namespace.uri: name.namespace.prefix for name in names}
    unnamed = sorted(uri for uri, prefix in prefixes.items() if _NUMBERED.fullmatch(prefix))
    prefixes |= {uri: f"ns{number}" for number, uri in enumerate(unnamed, 1)}
    spaces = {uri: Namespace(prefix, uri) for uri, prefix in sorted(prefixes.items())}

    def map_name(name: QualifiedName) -> QualifiedName:
        return QualifiedName(spaces[name.namespace.uri], name.localpart)

    ordered = ProvDocument()
    for space in spaces.values():
        ordered.add_namespace(space)
    for record in sorted(document.get_records(), key=_record_key):
        _add_renamed(ordered, record, map_name, map_name)
    return ordered


def _add_renamed(
    document: ProvDocument,
    record: ProvRecord,
    named: Callable[[QualifiedName], QualifiedName],
    as_value: Callable[[QualifiedName], Identifier],
) -> ProvRecord:
    """Add a record to the document under new names."""
    from prov.model import QualifiedName

    def term(value: Any, by: Callable[[QualifiedName], Identifier] = named) -> Any:
        return by(value) if isinstance(value, QualifiedName) else value

    formal = [(name, term(value)) for name, value in record.formal_attributes]
    extra = [(n, term(x, as_value)) for n, x in sorted(record.extra_attributes, key=_uri_pair)]
    return document.new_record(record.get_type(), term(record.identifier), formal, extra)


def _names_of(record: ProvRecord) -> Iterator[QualifiedName]:
    from prov.model import QualifiedName

    terms = [record.identifier, *(term for pair in record.attributes for term in pair)]
    yield from (term for term in terms if isinstance(term, QualifiedName))


def _record_key(record: ProvRecord) -> tuple[str, str, list[tuple[str, str]]]:
    return (
        str(record.get_type()),
        _term_uri(record.identifier),
        sorted(map(_uri_pair, record.attributes)),
    )


def _uri_pair(pair: tuple[object, object]) -> tuple[str, str]:
    return _term_uri(pair[0]), _term_uri(pair[1])


def _term_uri(term: object) -> str:
    return str(getattr(term, "uri", term))


_NCNAME_END = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])[A-Za-z_][A-Za-z0-9_.-]*\Z")
"""In ASCII: which other letters a name may hold depends on the edition of XML."""
_NCNAME_CHARACTERS = re.compile(r"\A[A-Za-z_]|(?<!\A)[A-Za-z0-9_.-]")
_LOOKS_ESCAPED = re.compile(r"_(?=x(?:[0-9A-Fa-f]{4}){1,2}_)")
_SPACE_OF_XML = re.compile(r"[\w:/?#@!$&'()*+,;=.~%-]*", re.ASCII)
"""As much of an IRI as lxml takes for a namespace."""
_DELIMITER = re.compile(r"[#/:]+(?=[^#/:])")


def _with_xml_names(document: ProvDocument) -> ProvDocument:
    """Return the document with XML-compatible qualified names: local parts are NCNames.

    A namespace ends where the longest NCName at the end of the IRI begins. If an IRI ends
    without an NCName (for example with a number), its last part is escaped like attribute names
    in ``prov``, with ``_xHHHH_`` for a character; the record of such a name has its IRI as
    ``dcterms:identifier``, and as an attribute value the IRI itself is used."""
    from prov.model import Identifier, ProvDocument

    def as_value(name: QualifiedName) -> Identifier:
        new = _xml_name(name.uri)
        return new if new.uri == name.uri else Identifier(name.uri)

    xml_document = ProvDocument()
    for record in document.get_records():
        added = _add_renamed(xml_document, record, lambda name: _xml_name(name.uri), as_value)
        identifier = record.identifier
        if identifier is not None and as_value(identifier).__class__ is Identifier:
            added.add_attributes(
                {_xml_name(v.dcterms("identifier").value): Identifier(identifier.uri)}
            )
    return _order_document(xml_document)


def _xml_name(uri: str) -> QualifiedName:
    from prov.model import Namespace, QualifiedName

    space, local = _xml_parts(uri)
    prefix = next((name for name, namespace in v.PREFIXES.items() if namespace == space), "ns0")
    return QualifiedName(Namespace(prefix, space), local)


def _xml_parts(uri: str) -> tuple[str, str]:
    """Return namespace and NCName that together form the IRI, or its escaped form."""
    match = _SPACE_OF_XML.match(uri)
    room = match.end() if match else 0
    name = _NCNAME_END.search(uri)
    if name and 0 < name.start() <= room and not _LOOKS_ESCAPED.search(name.group()):
        return uri[: name.start()], name.group()
    cut = max(m.end() for m in _DELIMITER.finditer(uri) if m.end() <= room)
    return uri[:cut], _escape_name(uri[cut:])


def _escape_name(text: str) -> str:
    looks = {match.start() for match in _LOOKS_ESCAPED.finditer(text)}
    fits = {match.start() for match in _NCNAME_CHARACTERS.finditer(text)} - looks
    return "".join(c if at in fits else _escape_code(ord(c)) for at, c in enumerate(text))


def _escape_code(character: int) -> str:
    return f"_x{character:04X}_" if character <= 0xFFFF else f"_x{character:08X}_"


_MADE_BY, _MADE_AT = v.prov("wasGeneratedBy"), v.prov("generatedAtTime")
_REVISES, _DONE_BY = v.prov("wasRevisionOf"), v.prov("wasAssociatedWith")
_TIMES = (v.prov("startedAtTime"), v.prov("endedAtTime"), _MADE_AT)
_TOLD = v.prov("qualifiedAssociation")


def _readable_triples(triples: Iterable[Triple]) -> Iterator[Triple]:
    """Yield triples in a form that the library reads completely.

    The library reads revisions and generation times only in PROV-O's qualified form (others
    would be lost, or become an attribute unknown to PROV-DM); for an activity with a qualified
    association it confuses that association with unqualified ones; and it rejects times in
    plain strings, as TrustGraph writes them."""
    dated_triples = [_with_time(triple) for triple in dict.fromkeys(triples)]
    makers, agents = _generating_activities(dated_triples), _qualified_agents(dated_triples)
    for number, triple in enumerate(dated_triples):
        subject, predicate, value = triple
        if predicate == _MADE_AT:
            by = [(v.prov("activity"), makers[subject])] if subject in makers else []
            yield from _qualified_relation(
                subject, "Generation", number, [(v.prov("atTime"), value), *by]
            )
        elif predicate == _REVISES:
            yield from _qualified_relation(subject, "Revision", number, [(v.prov("entity"), value)])
        elif predicate == _DONE_BY and value not in agents.get(subject, [value]):
            yield from _qualified_relation(
                subject, "Association", number, [(v.prov("agent"), value)]
            )
        elif predicate != _MADE_BY or subject not in makers:
            yield triple


def _generating_activities(triples: Iterable[Triple]) -> dict[Subject, Term]:
    """Return generating activities of entities with known time, if unique."""
    times: set[Subject] = set()
    makers: dict[Subject, list[Term]] = {}
    for subject, predicate, value in triples:
        if predicate == _MADE_AT:
            times.add(subject)
        elif predicate == _MADE_BY:
            makers.setdefault(subject, []).append(value)
    return {subject: by[0] for subject, by in makers.items() if subject in times and len(by) == 1}


def _qualified_agents(triples: Sequence[Triple]) -> dict[Subject, list[Term]]:
    """Return agents of qualified associations by activity."""
    agent_of = {node: value for node, predicate, value in triples if predicate == v.prov("agent")}
    agents: dict[Subject, list[Term]] = {}
    for activity, predicate, node in triples:
        if predicate == _TOLD and not isinstance(node, Literal) and node in agent_of:
            agents.setdefault(activity, []).append(agent_of[node])
    return agents


def _with_time(triple: Triple) -> Triple:
    if triple.predicate in _TIMES and isinstance(triple.object, Literal):
        time = Literal(triple.object.value, datatype=v.xsd("dateTime"))
        return Triple(triple.subject, triple.predicate, time)
    return triple


def _qualified_relation(
    subject: Subject, kind: str, number: int, said: Iterable[tuple[NamedNode, Term]]
) -> Iterator[Triple]:
    """Yield triples of a qualified PROV relation with its properties."""
    node = BlankNode(f"{kind.lower()}{number}")
    yield Triple(subject, v.prov(f"qualified{kind}"), node)
    yield Triple(node, v.RDF_TYPE, v.prov(kind))
    yield from (Triple(node, predicate, value) for predicate, value in said)


# --- every format ---

FORMATS = {
    "trig": RdfFormat.TRIG,
    "turtle": RdfFormat.TURTLE,
    "nquads": RdfFormat.N_QUADS,
    "json-ld": RdfFormat.JSON_LD,
    "rdf-xml": RdfFormat.RDF_XML,
}


def serialise_quads(quads: Iterable[Quad], name: str, *, without_terms: bool = False) -> bytes:
    """Return quads in a format; formats without graphs get each triple once.

    ``without_terms`` writes the classic view, always used for formats without triple terms. A
    character impossible in the format (most control characters in XML) becomes U+FFFD; terminal
    control characters become escapes of the format, or remain text if the format has no
    escapes. Raise ``UsageError`` for unknown formats."""
    written = _serialise_format(quads, name, without_terms).decode()
    return escape_serialised(written, _NOTATIONS.get(name, "u")).encode()


def _serialise_format(quads: Iterable[Quad], name: str, without_terms: bool) -> bytes:
    draw = draw_picture(name)
    output_quads = list(map(for_xml, quads)) if draw or name in _WITHOUT_CONTROLS else list(quads)
    if name in PROV_FORMATS:
        return to_prov(output_quads, name)
    if draw:
        return draw(output_quads, None)
    if name not in FORMATS:
        every = ", ".join([*FORMATS, *PROV_FORMATS, *PICTURES.names()])
        raise UsageError(f"There is no format {name!r}.", f"There are: {every}.")
    chosen = FORMATS[name]
    if without_terms or name in _WITHOUT_TERMS:
        output_quads = list(replace_triple_terms(output_quads))
    if chosen.supports_datasets:
        return to_bytes(output_quads, chosen)
    return to_bytes(dict.fromkeys(quad.triple for quad in output_quads), chosen)


Names = Callable[[str], str]
"""The name of a resource, empty where none is known."""
PictureWriter = Callable[[Sequence[Quad], Names | None], bytes]
"""Draws statements, with the names of resources where they are known."""


def draw_picture(name: str) -> PictureWriter | None:
    """Return what draws pictures in a format; None for a format that is no picture. Raise
    ``UsageError`` where the extension that draws is not installed."""
    return PICTURES.require(name, "evidence") if name in DRAWN else PICTURES.find_contribution(name)


DRAWN = ("dot", "svg")
"""The pictures that tgraph's own extension draws."""
_NOTATIONS: Mapping[str, Notation] = {
    **dict.fromkeys(("rdf-xml", "prov-xml", "svg"), "xml"),
    "prov-n": "quoted",
}
_WITHOUT_TERMS = frozenset({"json-ld", "rdf-xml"})
_WITHOUT_CONTROLS = frozenset({"rdf-xml", "prov-xml", "prov-n"})

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
