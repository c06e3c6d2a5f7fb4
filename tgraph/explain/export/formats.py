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
from tgraph.explain.trace.record_quads import classic
from tgraph.plugins import PICTURES
from tgraph.rendering import Notation, inert
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
    """What ``prov_document`` makes of the quads, in a format; in XML with names that it has."""
    document = prov_document(quads)
    if name == "prov-xml":
        document = _with_xml_names(document)
    out = StringIO()
    document.serialize(out, format=PROV_FORMATS[name])
    return (out.getvalue().rstrip() + "\n").encode()


def prov_document(quads: Iterable[Quad]) -> ProvDocument:
    """The statements of PROV among the quads, with tgraph's own as attributes where the format can
    hold them: what is no relation of PROV-DM (selectors, reified edges) stays in RDF alone."""
    from prov.model import ProvDocument

    triples = list(_readable(quad.triple for quad in classic(quads)))
    head = "".join(f"@prefix {name}: <{uri}> .\n" for name, uri in _prefixes(triples).items())
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
    return _ordered(document)


def _prefixes(triples: Iterable[Triple]) -> dict[str, str]:
    """Prefixes for all IRIs: the library can't name the end of a relation that has none."""
    terms = {term for triple in triples for term in (triple.subject, triple.object)}
    found = [_SPACE.match(term.value) for term in terms if isinstance(term, NamedNode)]
    spaces = {match.group(1) for match in found if match} - set(v.PREFIXES.values())
    return {**v.PREFIXES, **{f"ns{number}": uri for number, uri in enumerate(sorted(spaces), 1)}}


def _ordered(document: ProvDocument) -> ProvDocument:
    """The same document with its records, attributes and prefixes in an order that depends on
    nothing but these, and without the prefixes that it has no use for."""
    from prov.model import Namespace, ProvDocument, QualifiedName

    names = [name for record in document.get_records() for name in _names_of(record)]
    prefixes = {name.namespace.uri: name.namespace.prefix for name in names}
    unnamed = sorted(uri for uri, prefix in prefixes.items() if _NUMBERED.fullmatch(prefix))
    prefixes |= {uri: f"ns{number}" for number, uri in enumerate(unnamed, 1)}
    spaces = {uri: Namespace(prefix, uri) for uri, prefix in sorted(prefixes.items())}

    def renamed(name: QualifiedName) -> QualifiedName:
        return QualifiedName(spaces[name.namespace.uri], name.localpart)

    ordered = ProvDocument()
    for space in spaces.values():
        ordered.add_namespace(space)
    for record in sorted(document.get_records(), key=_key):
        _add_renamed(ordered, record, renamed, renamed)
    return ordered


def _add_renamed(
    document: ProvDocument,
    record: ProvRecord,
    named: Callable[[QualifiedName], QualifiedName],
    as_value: Callable[[QualifiedName], Identifier],
) -> ProvRecord:
    """Adds the record to the document, what it names under other names."""
    from prov.model import QualifiedName

    def term(value: Any, by: Callable[[QualifiedName], Identifier] = named) -> Any:
        return by(value) if isinstance(value, QualifiedName) else value

    formal = [(name, term(value)) for name, value in record.formal_attributes]
    extra = [(n, term(x, as_value)) for n, x in sorted(record.extra_attributes, key=_said)]
    return document.new_record(record.get_type(), term(record.identifier), formal, extra)


def _names_of(record: ProvRecord) -> Iterator[QualifiedName]:
    from prov.model import QualifiedName

    terms = [record.identifier, *(term for pair in record.attributes for term in pair)]
    yield from (term for term in terms if isinstance(term, QualifiedName))


def _key(record: ProvRecord) -> tuple[str, str, list[tuple[str, str]]]:
    return str(record.get_type()), _uri(record.identifier), sorted(map(_said, record.attributes))


def _said(pair: tuple[object, object]) -> tuple[str, str]:
    return _uri(pair[0]), _uri(pair[1])


def _uri(term: object) -> str:
    return str(getattr(term, "uri", term))


_NCNAME_END = re.compile(r"(?<!%)(?<!%[0-9A-Fa-f])[A-Za-z_][A-Za-z0-9_.-]*\Z")
"""In ASCII: which other letters a name may hold depends on the edition of XML."""
_NCNAME_CHARACTERS = re.compile(r"\A[A-Za-z_]|(?<!\A)[A-Za-z0-9_.-]")
_LOOKS_ESCAPED = re.compile(r"_(?=x(?:[0-9A-Fa-f]{4}){1,2}_)")
_SPACE_OF_XML = re.compile(r"[\w:/?#@!$&'()*+,;=.~%-]*", re.ASCII)
"""As much of an IRI as lxml takes for a namespace."""
_DELIMITER = re.compile(r"[#/:]+(?=[^#/:])")


def _with_xml_names(document: ProvDocument) -> ProvDocument:
    """The same document with qualified names that XML has too: their local part is an NCName.

    A namespace ends where the longest NCName at the end of the IRI begins. Where an IRI ends with
    none (with a number, say), its last part is escaped as attributes' names are in ``prov``, with
    ``_xHHHH_`` for a character; the record of such a name says its IRI as ``dcterms:identifier``,
    and where it is the value of an attribute that is the IRI.
    """
    from prov.model import Identifier, ProvDocument

    def as_value(name: QualifiedName) -> Identifier:
        new = _xml_name(name.uri)
        return new if new.uri == name.uri else Identifier(name.uri)

    found = ProvDocument()
    for record in document.get_records():
        added = _add_renamed(found, record, lambda name: _xml_name(name.uri), as_value)
        own = record.identifier
        if own is not None and as_value(own).__class__ is Identifier:
            added.add_attributes({_xml_name(v.dcterms("identifier").value): Identifier(own.uri)})
    return _ordered(found)


def _xml_name(uri: str) -> QualifiedName:
    from prov.model import Namespace, QualifiedName

    space, local = _xml_parts(uri)
    prefix = next((name for name, known in v.PREFIXES.items() if known == space), "ns0")
    return QualifiedName(Namespace(prefix, space), local)


def _xml_parts(uri: str) -> tuple[str, str]:
    """The IRI as a namespace and an NCName that together are it, or its escaped form."""
    match = _SPACE_OF_XML.match(uri)
    room = match.end() if match else 0
    name = _NCNAME_END.search(uri)
    if name and 0 < name.start() <= room and not _LOOKS_ESCAPED.search(name.group()):
        return uri[: name.start()], name.group()
    cut = max(m.end() for m in _DELIMITER.finditer(uri) if m.end() <= room)
    return uri[:cut], _escaped(uri[cut:])


def _escaped(text: str) -> str:
    looks = {match.start() for match in _LOOKS_ESCAPED.finditer(text)}
    fits = {match.start() for match in _NCNAME_CHARACTERS.finditer(text)} - looks
    return "".join(c if at in fits else _code(ord(c)) for at, c in enumerate(text))


def _code(character: int) -> str:
    return f"_x{character:04X}_" if character <= 0xFFFF else f"_x{character:08X}_"


_MADE_BY, _MADE_AT = v.prov("wasGeneratedBy"), v.prov("generatedAtTime")
_REVISES, _DONE_BY = v.prov("wasRevisionOf"), v.prov("wasAssociatedWith")
_TIMES = (v.prov("startedAtTime"), v.prov("endedAtTime"), _MADE_AT)
_TOLD = v.prov("qualifiedAssociation")


def _readable(triples: Iterable[Triple]) -> Iterator[Triple]:
    """The triples in the form in which the library reads the whole of them.

    It reads revisions and times of generation in PROV-O's qualified form only (the others would be
    lost, or an attribute that PROV-DM does not have); of an activity with one qualified association
    it confuses that with those that are not; and it takes no time that is a plain string, as
    TrustGraph writes it.
    """
    known = [_with_time(triple) for triple in dict.fromkeys(triples)]
    makers, agents = _makers(known), _agents(known)
    for number, triple in enumerate(known):
        made, said, value = triple
        if said == _MADE_AT:
            by = [(v.prov("activity"), makers[made])] if made in makers else []
            yield from _qualified(made, "Generation", number, [(v.prov("atTime"), value), *by])
        elif said == _REVISES:
            yield from _qualified(made, "Revision", number, [(v.prov("entity"), value)])
        elif said == _DONE_BY and value not in agents.get(made, [value]):
            yield from _qualified(made, "Association", number, [(v.prov("agent"), value)])
        elif said != _MADE_BY or made not in makers:
            yield triple


def _makers(triples: Iterable[Triple]) -> dict[Subject, Term]:
    """What made each thing whose time is known, where that is one activity."""
    times: set[Subject] = set()
    makers: dict[Subject, list[Term]] = {}
    for made, said, value in triples:
        if said == _MADE_AT:
            times.add(made)
        elif said == _MADE_BY:
            makers.setdefault(made, []).append(value)
    return {made: by[0] for made, by in makers.items() if made in times and len(by) == 1}


def _agents(triples: Sequence[Triple]) -> dict[Subject, list[Term]]:
    """For each activity with qualified associations the agents of these."""
    agent_of = {node: value for node, said, value in triples if said == v.prov("agent")}
    found: dict[Subject, list[Term]] = {}
    for activity, said, node in triples:
        if said == _TOLD and not isinstance(node, Literal) and node in agent_of:
            found.setdefault(activity, []).append(agent_of[node])
    return found


def _with_time(triple: Triple) -> Triple:
    if triple.predicate in _TIMES and isinstance(triple.object, Literal):
        time = Literal(triple.object.value, datatype=v.xsd("dateTime"))
        return Triple(triple.subject, triple.predicate, time)
    return triple


def _qualified(
    subject: Subject, kind: str, number: int, said: Iterable[tuple[NamedNode, Term]]
) -> Iterator[Triple]:
    """A relation of PROV with what is said of it."""
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


def serialise(quads: Iterable[Quad], name: str, *, without_terms: bool = False) -> bytes:
    """The quads in a format; one that has no graphs gets their triples once each.

    ``without_terms`` writes the classic view, which formats that know no triple terms get in any
    case. A character that the format can't hold (XML has none of most control characters) is
    U+FFFD there; what could command a terminal is an escape of the format, or part of the text
    where it has none. ``UsageError`` for a format that there is not.
    """
    written = _serialise(quads, name, without_terms).decode()
    return inert(written, _NOTATIONS.get(name, "u")).encode()


def _serialise(quads: Iterable[Quad], name: str, without_terms: bool) -> bytes:
    draw = draw_picture(name)
    known = list(map(for_xml, quads)) if draw or name in _WITHOUT_CONTROLS else list(quads)
    if name in PROV_FORMATS:
        return to_prov(known, name)
    if draw:
        return draw(known, None)
    if name not in FORMATS:
        every = ", ".join([*FORMATS, *PROV_FORMATS, *PICTURES.names()])
        raise UsageError(f"There is no format {name!r}.", f"There are: {every}.")
    chosen = FORMATS[name]
    if without_terms or name in _WITHOUT_TERMS:
        known = list(classic(known))
    if chosen.supports_datasets:
        return to_bytes(known, chosen)
    return to_bytes(dict.fromkeys(quad.triple for quad in known), chosen)


Names = Callable[[str], str]
"""The name of a resource, empty where none is known."""
PictureWriter = Callable[[Sequence[Quad], Names | None], bytes]
"""Draws statements, with the names of resources where they are known."""


def draw_picture(name: str) -> PictureWriter | None:
    """Return what draws pictures in a format; None for a format that is no picture. Raise
    ``UsageError`` where the extension that draws is not installed."""
    return PICTURES.require(name, "evidence") if name in DRAWN else PICTURES.get(name)


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
