"""Ontologies read: OWL, RDFS, SKOS concept schemes and SHACL shapes, in any syntax of RDF.

Nothing is fetched: what a file imports is named, and counts once it is added itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import PurePath

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, parse

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.extract.ontology import Ontology, OntologyClass, OntologyProperty, local_name

OWL = "http://www.w3.org/2002/07/owl#"
SHACL = "http://www.w3.org/ns/shacl#"
_SCHEMA = ("https://schema.org/", "http://schema.org/")
MOST_BYTES = 50_000_000
"""Of a file; what is more is a data set rather than an ontology."""

_KNOWN = (v.RDF, v.RDFS, OWL, v.XSD, SHACL, v.SKOS, v.TG, v.URN, v.PROV, v.OA)
"""Whose terms are those of the languages, or of tgraph's record, and so no vocabulary."""

Node = NamedNode | BlankNode
_LITERALS = frozenset((f"{v.RDFS}Literal", f"{v.RDF}langString", f"{v.RDF}HTML"))


def triples_of(content: bytes, name: str) -> list[Quad]:
    """The statements of a file, in whatever graphs they stand; its name tells the syntax. An .owl
    file may be RDF/XML or Turtle. ``UsageError`` where it can't be read."""
    suffix = PurePath(name).suffix.lower()
    known = RdfFormat.from_extension(suffix[1:])
    syntaxes = (RdfFormat.RDF_XML, RdfFormat.TURTLE) if suffix == ".owl" else (known,)
    why = ""
    for syntax in syntaxes:
        if syntax is None:
            raise UsageError(
                f"{PurePath(name).name} has no ending that tells its syntax.",
                "Name it .ttl, .trig, .nt, .nq, .rdf, .owl or .jsonld.",
            )
        try:
            return list(parse(BytesIO(content), syntax, base_iri=f"urn:x-file:{v.digest(name)}#"))
        except (SyntaxError, ValueError) as error:
            why = f"{name} is not the {syntax.name} that it should be: {error}."
    raise UsageError(why)


def read_ontology(content: bytes, name: str) -> Ontology:
    """The ontology of a file. ``UsageError`` where it is none, or can't be read."""
    if len(content) > MOST_BYTES:
        raise too_large(name)
    quads = triples_of(content, name)
    store = Store()
    store.extend(Quad(q.subject, q.predicate, q.object, DefaultGraph()) for q in quads)
    found = _OntologyTerms(store).ontology()
    if not found.classes and not found.properties:
        raise UsageError(
            f"{name} has no classes and no properties.",
            "An ontology declares them in OWL, RDFS, SKOS (concepts) or SHACL (shapes).",
        )
    return found


def too_large(name: str) -> UsageError:
    """The error for a file of more than ``MOST_BYTES``."""
    return UsageError(f"{name} is larger than {MOST_BYTES // 1_000_000} MB.", "Add a part of it.")


def _owl(name: str) -> NamedNode:
    return NamedNode(OWL + name)


def _rdfs(name: str) -> NamedNode:
    return NamedNode(v.RDFS + name)


def _skos(name: str) -> NamedNode:
    return NamedNode(v.SKOS + name)


def _sh(name: str) -> NamedNode:
    return NamedNode(SHACL + name)


def _schema(name: str) -> list[NamedNode]:
    return [NamedNode(base + name) for base in _SCHEMA]


_PROPERTIES = (
    *map(_owl, ("ObjectProperty", "DatatypeProperty", "FunctionalProperty")),
    *map(_owl, ("InverseFunctionalProperty", "SymmetricProperty", "TransitiveProperty")),
    NamedNode(v.RDF + "Property"),
)
_COMMENTS = (
    _rdfs("comment"),
    _skos("definition"),
    v.dcterms("description"),
    _sh("description"),
    *_schema("description"),
)
_NAMES = (_skos("altLabel"), _skos("hiddenLabel"), *_schema("alternateName"))
_LABELS = (_skos("prefLabel"), _rdfs("label"), _sh("name"))


class _OntologyTerms:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._paths = self._property_shapes()

    def ontology(self) -> Ontology:
        properties = {p.value: self._property(p) for p in self._property_nodes()}
        classes = {c.value: self._class(c) for c in self._class_nodes(properties.values())}
        own = self._typed(_owl("Ontology"), _skos("ConceptScheme"))
        imports = (q.object for q in self._match(None, _owl("imports")))
        return Ontology(
            dict(sorted(classes.items())),
            dict(sorted(properties.items())),
            tuple(sorted({n.value for n in own if isinstance(n, NamedNode)})),
            tuple(sorted({i.value for i in imports if isinstance(i, NamedNode)})),
            next(self._match(None, _sh("targetClass")), None) is not None
            or bool(self._typed(_sh("NodeShape"), _sh("PropertyShape"))),
        )

    # --- which there are ---

    def _class_nodes(self, properties: Iterable[OntologyProperty]) -> list[NamedNode]:
        found = self._typed(_owl("Class"), _rdfs("Class"), _skos("Concept"))
        for predicate in (_rdfs("subClassOf"), _owl("disjointWith"), _owl("equivalentClass")):
            for quad in self._match(None, predicate):
                found |= {quad.subject, quad.object}
        for predicate in (_sh("targetClass"), _sh("class")):
            found |= {quad.object for quad in self._match(None, predicate)}
        shapes = self._typed(_sh("NodeShape")) & self._typed(_rdfs("Class"), _owl("Class"))
        ends = (iri for p in properties for c in (*p.domains, *p.ranges) for iri in c)
        return _own([*found, *shapes, *map(NamedNode, ends)])

    def _property_nodes(self) -> list[NamedNode]:
        found = self._typed(*_PROPERTIES)
        for predicate in (_rdfs("domain"), _rdfs("range"), _owl("inverseOf")):
            found |= {quad.subject for quad in self._match(None, predicate)}
        for predicate in (*_schema("domainIncludes"), *_schema("rangeIncludes")):
            found |= {quad.subject for quad in self._match(None, predicate)}
        annotations = self._typed(_owl("AnnotationProperty"), _owl("OntologyProperty"))
        return _own((found | set(self._paths)) - annotations)

    def _typed(self, *kinds: NamedNode) -> set[object]:
        return {q.subject for kind in kinds for q in self._match(None, v.RDF_TYPE, kind)}

    # --- what is said of one ---

    def _class(self, node: NamedNode) -> OntologyClass:
        label, names = self._called(node)
        same = self._around(node, _owl("equivalentClass"))
        above = self._iris(node, _rdfs("subClassOf")) | self._iris(node, _skos("broader"))
        wider = (q.subject for q in self._match(None, _skos("narrower"), node))
        above |= {n.value for n in wider if isinstance(n, NamedNode)}
        apart = self._around(node, _owl("disjointWith")) | self._all_disjoint(node)
        return OntologyClass(
            node.value,
            label,
            names,
            self._comment(node),
            frozenset(above | same) - {node.value},
            frozenset(apart) - {node.value},
        )

    def _all_disjoint(self, node: NamedNode) -> set[str]:
        found: set[str] = set()
        for kind in self._typed(_owl("AllDisjointClasses")):
            for quad in self._match(kind, _owl("members")):
                members = set(self._list(quad.object))
                if node.value in members:
                    found |= members
        return found

    def _property(self, node: NamedNode) -> OntologyProperty:
        label, names = self._called(node)
        kinds: set[object] = {q.object for q in self._match(node, v.RDF_TYPE)}
        shapes = self._paths.get(node, ())
        domains = self._choices(node, _rdfs("domain"), "domainIncludes")
        targets = {c for shape in shapes for c in self._targets(shape)}
        ranges = self._choices(node, _rdfs("range"), "rangeIncludes")
        ranges += [c for s in shapes if (c := frozenset(self._iris(s, _sh("class"))))]
        datatypes = {iri for choice in ranges for iri in choice if _is_datatype(iri)}
        datatypes |= {iri for s in shapes for iri in self._iris(s, _sh("datatype"))}
        classes = [choice for choice in ranges if not any(map(_is_datatype, choice))]
        one = any(self._is_one(shape) for shape in shapes)
        return OntologyProperty(
            node.value,
            label,
            names,
            self._comment(node) or next(filter(None, map(self._comment, shapes)), ""),
            tuple(domains or ([frozenset(targets)] if targets else [])),
            tuple(dict.fromkeys(classes)),
            frozenset(datatypes),
            _is_literal(kinds, bool(datatypes), bool(classes)),
            frozenset(self._iris(node, _rdfs("subPropertyOf"))) - {node.value},
            frozenset(self._around(node, _owl("inverseOf"))) - {node.value},
            _owl("FunctionalProperty") in kinds or one,
            _owl("InverseFunctionalProperty") in kinds,
            _owl("SymmetricProperty") in kinds,
        )

    def _choices(self, node: NamedNode, predicate: NamedNode, schema: str) -> list[frozenset[str]]:
        """What each statement lets choose from: a class, or the members of a union."""
        found = []
        for quad in self._match(node, predicate):
            choice = frozenset(self._members(quad.object)) - {_owl("Thing").value}
            found += [choice] if choice else []
        either = {i for p in _schema(schema) for i in self._iris(node, p)}
        return list(dict.fromkeys([*found, *([frozenset(either)] if either else [])]))

    def _members(self, node: object) -> Iterator[str]:
        if isinstance(node, NamedNode):
            yield node.value
        elif isinstance(node, BlankNode):
            for quad in self._match(node, _owl("unionOf")):
                yield from self._list(quad.object)

    def _list(self, node: object) -> Iterator[str]:
        seen: set[object] = set()
        while isinstance(node, NamedNode | BlankNode) and node not in seen:
            seen.add(node)
            first = next(self._match(node, NamedNode(v.RDF + "first")), None)
            if first is not None and isinstance(first.object, NamedNode):
                yield first.object.value
            rest = next(self._match(node, NamedNode(v.RDF + "rest")), None)
            node = rest.object if rest is not None else None

    # --- shapes ---

    def _property_shapes(self) -> dict[NamedNode, list[Node]]:
        found: dict[NamedNode, list[Node]] = {}
        for quad in self._match(None, _sh("path")):
            if isinstance(quad.object, NamedNode) and isinstance(
                quad.subject, NamedNode | BlankNode
            ):
                found.setdefault(quad.object, []).append(quad.subject)
        return {path: sorted(shapes, key=str) for path, shapes in found.items()}

    def _targets(self, shape: Node) -> Iterator[str]:
        owners: list[object] = [q.subject for q in self._match(None, _sh("property"), shape)]
        for owner in (shape, *owners):
            yield from self._iris(owner, _sh("targetClass"))
            if isinstance(owner, NamedNode) and owner in self._typed(_rdfs("Class"), _owl("Class")):
                yield owner.value

    def _is_one(self, shape: Node) -> bool:
        counts = (q.object for q in self._match(shape, _sh("maxCount")))
        return any(isinstance(c, Literal) and c.value == "1" for c in counts)

    # --- words ---

    def _called(self, node: NamedNode) -> tuple[str, tuple[str, ...]]:
        """The label, English or without a language if there is one, and the other names."""
        shapes = self._paths.get(node, ())
        said = [t for n in (node, *shapes) for p in _LABELS for t in self._texts(n, p)]
        ordered = sorted(said, key=lambda t: not (t.language or "en").startswith("en"))
        others = [t for p in _NAMES for t in sorted(self._texts(node, p), key=str)]
        own = local_name(node.value)
        names = [" ".join(t.value.split()) for t in (*ordered, *others)]
        names = [name for name in names if name]
        if not any(character.isdigit() for character in own) or not names:
            names.append(own)  # unless it is a number in a catalogue
        first, *rest = dict.fromkeys(names)
        return first, tuple(rest)

    def _comment(self, node: Node) -> str:
        said = [t for p in _COMMENTS for t in self._texts(node, p)]
        best = min(said, key=lambda t: not (t.language or "en").startswith("en"), default=None)
        return " ".join(best.value.split()) if best else ""

    def _texts(self, node: Node, predicate: NamedNode) -> list[Literal]:
        found = (quad.object for quad in self._match(node, predicate))
        return sorted((t for t in found if isinstance(t, Literal)), key=str)

    # --- reading ---

    def _iris(self, node: object, predicate: NamedNode) -> set[str]:
        found = (quad.object for quad in self._match(node, predicate))
        return {t.value for t in found if isinstance(t, NamedNode)}

    def _around(self, node: NamedNode, predicate: NamedNode) -> set[str]:
        back = (q.subject for q in self._match(None, predicate, node))
        return self._iris(node, predicate) | {n.value for n in back if isinstance(n, NamedNode)}

    def _match(self, subject: object, predicate: NamedNode, term: object = None) -> Iterator[Quad]:
        return self._store.quads_for_pattern(subject, predicate, term)  # type: ignore[arg-type]


def _own(nodes: Iterable[object]) -> list[NamedNode]:
    """The names among the nodes that are no terms of the languages, in order."""
    found = {n.value for n in nodes if isinstance(n, NamedNode)}
    return [NamedNode(iri) for iri in sorted(found) if not iri.startswith(_KNOWN)]


def _is_datatype(iri: str) -> bool:
    return iri.startswith(v.XSD) or iri in _LITERALS


def _is_literal(kinds: set[object], has_datatype: bool, has_class: bool) -> bool | None:
    if _owl("DatatypeProperty") in kinds:
        return True
    if _owl("ObjectProperty") in kinds:
        return False
    return True if has_datatype and not has_class else False if has_class else None
