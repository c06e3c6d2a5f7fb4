"""Ontologies read: OWL, RDFS, SKOS concept schemes and SHACL shapes, in any syntax of RDF.

Nothing is fetched: what a file imports is named, and counts once it is added itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Store, parse

from tgraph import vocabulary as v
from tgraph.errors import IngestError, UsageError
from tgraph.extract.ontology import Ontology, OntologyClass, OntologyProperty, local_name
from tgraph.ingest.base import DEFAULT_LIMITS
from tgraph.ingest.parser_process import read_items
from tgraph.ingest.rdf_statements import PLACE

OWL = "http://www.w3.org/2002/07/owl#"
SHACL = "http://www.w3.org/ns/shacl#"
_SCHEMA = ("https://schema.org/", "http://schema.org/")
MOST_BYTES = 50_000_000
"""Of a file; what is more is a data set rather than an ontology."""

_KNOWN = (v.RDF, v.RDFS, OWL, v.XSD, SHACL, v.SKOS, v.URN, v.PROV, v.OA)
"""Whose terms are those of the languages or of the record, and so no vocabulary."""

Node = NamedNode | BlankNode
_LITERALS = frozenset((f"{v.RDFS}Literal", f"{v.RDF}langString", f"{v.RDF}HTML"))


def triples_of(content: bytes, name: str) -> list[Quad]:
    """Return a file's statements from all graphs; the file extension determines the syntax.

    An .owl file may be RDF/XML or Turtle. Raise ``UsageError`` if unreadable."""
    suffix = PurePath(name).suffix.lower()
    named_syntax = RdfFormat.from_extension(suffix[1:])
    syntaxes = (RdfFormat.RDF_XML, RdfFormat.TURTLE) if suffix == ".owl" else (named_syntax,)
    unread = IngestError(name, "")
    for syntax in syntaxes:
        if syntax is None:
            raise UsageError(
                f"{PurePath(name).name} has no ending that tells its syntax.",
                "Name it .ttl, .trig, .nt, .nq, .rdf, .owl or .jsonld.",
            )
        try:
            lines = list(
                read_items(
                    PLACE,
                    content,
                    name,
                    DEFAULT_LIMITS,
                    str,
                    media_type=syntax.media_type,
                    base=f"urn:x-file:{v.digest_parts(name)}#",
                )
            )
            return list(parse("\n".join(lines), RdfFormat.N_QUADS))
        except IngestError as error:
            unread = error
    raise UsageError(f"{name} can't be read. {unread.message}", unread.remedy)


def read_ontology(content: bytes, name: str) -> Ontology:
    """Return the ontology of a file.

    Raise ``UsageError`` if the file is no ontology or unreadable."""
    if len(content) > MOST_BYTES:
        raise too_large(name)
    quads = triples_of(content, name)
    store = Store()
    store.extend(Quad(q.subject, q.predicate, q.object, DefaultGraph()) for q in quads)
    ontology = _OntologyTerms(store).ontology()
    if not ontology.classes and not ontology.properties:
        raise UsageError(
            f"{name} has no classes and no properties.",
            "An ontology declares them in OWL, RDFS, SKOS (concepts) or SHACL (shapes).",
        )
    return ontology


def too_large(name: str) -> UsageError:
    """Return an error for files exceeding ``MOST_BYTES``."""
    return UsageError(f"{name} is larger than {MOST_BYTES // 1_000_000} MB.", "Add a part of it.")


def _owl_term(name: str) -> NamedNode:
    return NamedNode(OWL + name)


def _rdfs_term(name: str) -> NamedNode:
    return NamedNode(v.RDFS + name)


def _skos_term(name: str) -> NamedNode:
    return NamedNode(v.SKOS + name)


def _shacl_term(name: str) -> NamedNode:
    return NamedNode(SHACL + name)


def _schema_terms(name: str) -> list[NamedNode]:
    return [NamedNode(base + name) for base in _SCHEMA]


_PROPERTIES = (
    *map(_owl_term, ("ObjectProperty", "DatatypeProperty", "FunctionalProperty")),
    *map(_owl_term, ("InverseFunctionalProperty", "SymmetricProperty", "TransitiveProperty")),
    NamedNode(v.RDF + "Property"),
)
_COMMENTS = (
    _rdfs_term("comment"),
    _skos_term("definition"),
    v.dcterms("description"),
    _shacl_term("description"),
    *_schema_terms("description"),
)
_NAMES = (_skos_term("altLabel"), _skos_term("hiddenLabel"), *_schema_terms("alternateName"))
_LABELS = (_skos_term("prefLabel"), _rdfs_term("label"), _shacl_term("name"))


class _OntologyTerms:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._paths = self._property_shapes()

    def ontology(self) -> Ontology:
        properties = {p.value: self._read_property(p) for p in self._property_nodes()}
        classes = {c.value: self._read_class(c) for c in self._class_nodes(properties.values())}
        ontology_nodes = self._nodes_of_type(_owl_term("Ontology"), _skos_term("ConceptScheme"))
        imports = (q.object for q in self._match_quads(None, _owl_term("imports")))
        return Ontology(
            dict(sorted(classes.items())),
            dict(sorted(properties.items())),
            tuple(sorted({n.value for n in ontology_nodes if isinstance(n, NamedNode)})),
            tuple(sorted({i.value for i in imports if isinstance(i, NamedNode)})),
            next(self._match_quads(None, _shacl_term("targetClass")), None) is not None
            or bool(self._nodes_of_type(_shacl_term("NodeShape"), _shacl_term("PropertyShape"))),
        )

    # --- which there are ---

    def _class_nodes(self, properties: Iterable[OntologyProperty]) -> list[NamedNode]:
        class_nodes = self._nodes_of_type(
            _owl_term("Class"), _rdfs_term("Class"), _skos_term("Concept")
        )
        for predicate in (
            _rdfs_term("subClassOf"),
            _owl_term("disjointWith"),
            _owl_term("equivalentClass"),
        ):
            for quad in self._match_quads(None, predicate):
                class_nodes |= {quad.subject, quad.object}
        for predicate in (_shacl_term("targetClass"), _shacl_term("class")):
            class_nodes |= {quad.object for quad in self._match_quads(None, predicate)}
        shapes = self._nodes_of_type(_shacl_term("NodeShape")) & self._nodes_of_type(
            _rdfs_term("Class"), _owl_term("Class")
        )
        ends = (iri for p in properties for c in (*p.domains, *p.ranges) for iri in c)
        return _foreign_nodes([*class_nodes, *shapes, *map(NamedNode, ends)])

    def _property_nodes(self) -> list[NamedNode]:
        property_nodes = self._nodes_of_type(*_PROPERTIES)
        for predicate in (_rdfs_term("domain"), _rdfs_term("range"), _owl_term("inverseOf")):
            property_nodes |= {quad.subject for quad in self._match_quads(None, predicate)}
        for predicate in (*_schema_terms("domainIncludes"), *_schema_terms("rangeIncludes")):
            property_nodes |= {quad.subject for quad in self._match_quads(None, predicate)}
        annotations = self._nodes_of_type(
            _owl_term("AnnotationProperty"), _owl_term("OntologyProperty")
        )
        return _foreign_nodes((property_nodes | set(self._paths)) - annotations)

    def _nodes_of_type(self, *kinds: NamedNode) -> set[object]:
        return {q.subject for kind in kinds for q in self._match_quads(None, v.RDF_TYPE, kind)}

    # --- what is said of one ---

    def _read_class(self, node: NamedNode) -> OntologyClass:
        label, names = self._label_and_names(node)
        same = self._symmetric_iris(node, _owl_term("equivalentClass"))
        above = self._read_iris(node, _rdfs_term("subClassOf")) | self._read_iris(
            node, _skos_term("broader")
        )
        wider = (q.subject for q in self._match_quads(None, _skos_term("narrower"), node))
        above |= {n.value for n in wider if isinstance(n, NamedNode)}
        apart = self._symmetric_iris(node, _owl_term("disjointWith")) | self._all_disjoint(node)
        return OntologyClass(
            node.value,
            label,
            names,
            self._read_comment(node),
            frozenset(above | same) - {node.value},
            frozenset(apart) - {node.value},
        )

    def _all_disjoint(self, node: NamedNode) -> set[str]:
        disjoint_classes: set[str] = set()
        for kind in self._nodes_of_type(_owl_term("AllDisjointClasses")):
            for quad in self._match_quads(kind, _owl_term("members")):
                members = set(self._read_list(quad.object))
                if node.value in members:
                    disjoint_classes |= members
        return disjoint_classes

    def _read_property(self, node: NamedNode) -> OntologyProperty:
        label, names = self._label_and_names(node)
        kinds: set[object] = {q.object for q in self._match_quads(node, v.RDF_TYPE)}
        shapes = self._paths.get(node, ())
        domains = self._read_choices(node, _rdfs_term("domain"), "domainIncludes")
        targets = {c for shape in shapes for c in self._target_classes(shape)}
        ranges = self._read_choices(node, _rdfs_term("range"), "rangeIncludes")
        ranges += [c for s in shapes if (c := frozenset(self._read_iris(s, _shacl_term("class"))))]
        datatypes = {iri for choice in ranges for iri in choice if _is_datatype(iri)}
        datatypes |= {iri for s in shapes for iri in self._read_iris(s, _shacl_term("datatype"))}
        classes = [choice for choice in ranges if not any(map(_is_datatype, choice))]
        is_single_valued = any(self._is_one(shape) for shape in shapes)
        return OntologyProperty(
            node.value,
            label,
            names,
            self._read_comment(node) or next(filter(None, map(self._read_comment, shapes)), ""),
            tuple(domains or ([frozenset(targets)] if targets else [])),
            tuple(dict.fromkeys(classes)),
            frozenset(datatypes),
            _is_literal(kinds, bool(datatypes), bool(classes)),
            frozenset(self._read_iris(node, _rdfs_term("subPropertyOf"))) - {node.value},
            frozenset(self._symmetric_iris(node, _owl_term("inverseOf"))) - {node.value},
            _owl_term("FunctionalProperty") in kinds or is_single_valued,
            _owl_term("InverseFunctionalProperty") in kinds,
            _owl_term("SymmetricProperty") in kinds,
        )

    def _read_choices(
        self, node: NamedNode, predicate: NamedNode, schema: str
    ) -> list[frozenset[str]]:
        """Return class choices, one per statement: a class, or members of a union."""
        choices = []
        for quad in self._match_quads(node, predicate):
            choice = frozenset(self._union_members(quad.object)) - {_owl_term("Thing").value}
            choices += [choice] if choice else []
        either = {i for p in _schema_terms(schema) for i in self._read_iris(node, p)}
        return list(dict.fromkeys([*choices, *([frozenset(either)] if either else [])]))

    def _union_members(self, node: object) -> Iterator[str]:
        if isinstance(node, NamedNode):
            yield node.value
        elif isinstance(node, BlankNode):
            for quad in self._match_quads(node, _owl_term("unionOf")):
                yield from self._read_list(quad.object)

    def _read_list(self, node: object) -> Iterator[str]:
        visited: set[object] = set()
        while isinstance(node, NamedNode | BlankNode) and node not in visited:
            visited.add(node)
            first = next(self._match_quads(node, NamedNode(v.RDF + "first")), None)
            if first is not None and isinstance(first.object, NamedNode):
                yield first.object.value
            rest_quad = next(self._match_quads(node, NamedNode(v.RDF + "rest")), None)
            node = rest_quad.object if rest_quad is not None else None

    # --- shapes ---

    def _property_shapes(self) -> dict[NamedNode, list[Node]]:
        shapes_by_path: dict[NamedNode, list[Node]] = {}
        for quad in self._match_quads(None, _shacl_term("path")):
            if isinstance(quad.object, NamedNode) and isinstance(
                quad.subject, NamedNode | BlankNode
            ):
                shapes_by_path.setdefault(quad.object, []).append(quad.subject)
        return {path: sorted(shapes, key=str) for path, shapes in shapes_by_path.items()}

    def _target_classes(self, shape: Node) -> Iterator[str]:
        owners: list[object] = [
            q.subject for q in self._match_quads(None, _shacl_term("property"), shape)
        ]
        for owner in (shape, *owners):
            yield from self._read_iris(owner, _shacl_term("targetClass"))
            if isinstance(owner, NamedNode) and owner in self._nodes_of_type(
                _rdfs_term("Class"), _owl_term("Class")
            ):
                yield owner.value

    def _is_one(self, shape: Node) -> bool:
        counts = (q.object for q in self._match_quads(shape, _shacl_term("maxCount")))
        return any(isinstance(c, Literal) and c.value == "1" for c in counts)

    # --- words ---

    def _label_and_names(self, node: NamedNode) -> tuple[str, tuple[str, ...]]:
        """Return a label, preferably English or without language, plus alternative names."""
        shapes = self._paths.get(node, ())
        label_literals = [
            t for n in (node, *shapes) for p in _LABELS for t in self._read_literals(n, p)
        ]
        ordered = sorted(label_literals, key=lambda t: not (t.language or "en").startswith("en"))
        name_literals = [t for p in _NAMES for t in sorted(self._read_literals(node, p), key=str)]
        iri_words = local_name(node.value)
        names = [" ".join(t.value.split()) for t in (*ordered, *name_literals)]
        names = [name for name in names if name]
        if not any(character.isdigit() for character in iri_words) or not names:
            names.append(iri_words)  # unless it is a number in a catalogue
        first, *alternative_names = dict.fromkeys(names)
        return first, tuple(alternative_names)

    def _read_comment(self, node: Node) -> str:
        comments = [t for p in _COMMENTS for t in self._read_literals(node, p)]
        best = min(comments, key=lambda t: not (t.language or "en").startswith("en"), default=None)
        return " ".join(best.value.split()) if best else ""

    def _read_literals(self, node: Node, predicate: NamedNode) -> list[Literal]:
        objects = (quad.object for quad in self._match_quads(node, predicate))
        return sorted((t for t in objects if isinstance(t, Literal)), key=str)

    # --- reading ---

    def _read_iris(self, node: object, predicate: NamedNode) -> set[str]:
        objects = (quad.object for quad in self._match_quads(node, predicate))
        return {t.value for t in objects if isinstance(t, NamedNode)}

    def _symmetric_iris(self, node: NamedNode, predicate: NamedNode) -> set[str]:
        back = (q.subject for q in self._match_quads(None, predicate, node))
        return self._read_iris(node, predicate) | {
            n.value for n in back if isinstance(n, NamedNode)
        }

    def _match_quads(
        self, subject: object, predicate: NamedNode, term: object = None
    ) -> Iterator[Quad]:
        return self._store.quads_for_pattern(subject, predicate, term)  # type: ignore[arg-type]


def _foreign_nodes(nodes: Iterable[object]) -> list[NamedNode]:
    """Return sorted named nodes outside the ontology languages' vocabularies."""
    iris = {n.value for n in nodes if isinstance(n, NamedNode)}
    reserved = {iri for iri in iris if iri.startswith(_KNOWN) or v.is_reserved(iri)}
    return [NamedNode(iri) for iri in sorted(iris - reserved)]


def _is_datatype(iri: str) -> bool:
    return iri.startswith(v.XSD) or iri in _LITERALS


def _is_literal(kinds: set[object], has_datatype: bool, has_class: bool) -> bool | None:
    if _owl_term("DatatypeProperty") in kinds:
        return True
    if _owl_term("ObjectProperty") in kinds:
        return False
    return True if has_datatype and not has_class else False if has_class else None
