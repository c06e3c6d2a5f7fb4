"""Prints docs/reference/ontology.md from the ontology itself."""

from __future__ import annotations

from collections.abc import Iterator

from rdflib import OWL, RDF, RDFS, SKOS, Graph, Namespace, URIRef
from rdflib.collection import Collection
from rdflib.term import Node

from tgraph.resources import read_text

TG = Namespace("https://trustgraph.ai/ns/")

HEAD = """# The ontology

What tgraph writes into its graphs, in the namespace `https://trustgraph.ai/ns/` (prefix `tg:`).
`ontology/tgraph.ttl` is the OWL file behind this page, and `ontology/shapes.ttl` says what a record
must look like; [conformance.md](conformance.md) says what of PROV is recorded where. This page is
made by `python docs/ontology_reference.py`.
"""


def name(graph: Graph, node: Node) -> str:
    """A term with its prefix, or the members of a union."""
    union = graph.value(node, OWL.unionOf)
    if union is not None:
        return ", ".join(name(graph, member) for member in Collection(graph, union))
    assert isinstance(node, URIRef)
    return f"`{graph.namespace_manager.normalizeUri(node)}`"


def cell(graph: Graph, term: URIRef, path: URIRef) -> str:
    return ", ".join(sorted(name(graph, node) for node in graph.objects(term, path)))


def also_called(graph: Graph, term: URIRef) -> str:
    """TrustGraph's name for it, where it has another."""
    found = {o for path in (SKOS.closeMatch, SKOS.relatedMatch) for o in graph.objects(term, path)}
    others = sorted(name(graph, node) for node in found if str(node).startswith(str(TG)))
    return f" (TrustGraph: {', '.join(others)})" if others else ""


def described(graph: Graph, kind: Node) -> Iterator[tuple[URIRef, str]]:
    for term in sorted(map(str, graph.subjects(RDF.type, kind))):
        if term.startswith(str(TG)):
            said = (graph.value(URIRef(term), path) for path in (RDFS.comment, SKOS.scopeNote))
            yield URIRef(term), " ".join(map(str, filter(None, said))).replace("|", "\\|")


def class_rows(graph: Graph) -> Iterator[str]:
    for term, comment in described(graph, OWL.Class):
        above = cell(graph, term, RDFS.subClassOf)
        yield f"| {name(graph, term)} | {above} | {comment}{also_called(graph, term)} |"


def property_rows(graph: Graph, kind: Node) -> Iterator[str]:
    for term, comment in described(graph, kind):
        domain, values = cell(graph, term, RDFS.domain), cell(graph, term, RDFS.range)
        yield f"| {name(graph, term)} | {domain} | {values} | {comment} |"


def page() -> str:
    graph = Graph().parse(data=read_text("ontology", "tgraph.ttl"), format="turtle")
    properties = "| property | of | value | meaning |\n|---|---|---|---|"
    parts = [
        HEAD,
        "## Classes\n\n| class | is a | meaning |\n|---|---|---|",
        *class_rows(graph),
        f"\n## Properties between resources\n\n{properties}",
        *property_rows(graph, OWL.ObjectProperty),
        f"\n## Properties with values\n\n{properties}",
        *property_rows(graph, OWL.DatatypeProperty),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
