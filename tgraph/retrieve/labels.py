"""Labels for people and models, and the way back to IRIs (specification, "URI retention")."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.graph_source import GraphSource, Statement
from tgraph.model import Edge, Object

Triple = Statement


def edge_id(subject: str, predicate: str, obj: str) -> str:
    """The id of an edge by its labels: the first eight hexadecimal digits of a SHA-256."""
    return sha256(f"{subject}|{predicate}|{obj}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class LabelGraph:
    """Edges as a model sees them: ``labeled_edges[i]`` has the id ``ids[i]``; ids are unique."""

    labeled_edges: tuple[tuple[str, str, str], ...]
    ids: tuple[str, ...]
    uri_map: Mapping[str, Triple]
    edge_map: Mapping[str, Edge]


def get_labelgraph(edges: Sequence[Edge]) -> LabelGraph:
    """Labels and ids of the edges, and the map from each id back to its triple.

    An id is ``edge_id`` of the labels. Where that would name two different edges, each of them gets
    the beginning of its own IRI's digest added; equal labels of different things are told apart.
    """
    labels = _told_apart(edges)
    by_id: defaultdict[str, set[str]] = defaultdict(set)
    for edge, label in zip(edges, labels, strict=True):
        by_id[edge_id(*label)].add(edge.iri)
    ids = []
    for edge, label in zip(edges, labels, strict=True):
        short = edge_id(*label)
        shared = len(by_id[short]) > 1
        ids.append(f"{short}-{edge.iri.rpartition(':')[2][:12]}" if shared else short)
    pairs = list(zip(ids, edges, strict=True))
    return LabelGraph(
        tuple(labels),
        tuple(ids),
        {key: (edge.subject, edge.predicate, edge.object) for key, edge in pairs},
        dict(pairs),
    )


def _told_apart(edges: Sequence[Edge]) -> list[tuple[str, str, str]]:
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for edge in edges:
        for term, label in zip(_terms(edge), edge.labels, strict=True):
            meanings[label].add(str(term))

    def tell(term: Object, label: str) -> str:
        if len(meanings[label]) == 1:
            return label
        if isinstance(term, NamedNode):
            kind = local_name(term.value)
        else:
            kind = term.language or local_name(term.datatype.value)
        return f"{label} ({kind})"

    return [
        (tell(s, a), tell(p, b), tell(o, c))
        for edge in edges
        for (s, p, o), (a, b, c) in [(_terms(edge), edge.labels)]
    ]


def _terms(edge: Edge) -> Triple:
    return edge.subject, edge.predicate, edge.object


def local_name(iri: str) -> str:
    """The last part of an IRI, readable: the label of a resource that has none."""
    tail = iri.rpartition("#")[2].rpartition("/")[2]
    return unquote(tail.rpartition(":")[2] or tail) or iri


def labels_of(graph: GraphSource, items: Iterable[NamedNode]) -> dict[NamedNode, str]:
    """The labels of the items; the local name of what has none."""
    wanted = sorted({node.value for node in items})
    found = graph.statements.labels(wanted)
    return {NamedNode(iri): found.get(iri) or local_name(iri) for iri in wanted}


def object_label(term: Object, labels: Mapping[NamedNode, str]) -> str:
    return term.value if isinstance(term, Literal) else labels[term]


def with_labels(graph: GraphSource, triples: Sequence[Triple]) -> list[Edge]:
    """The triples as edges with their labels."""
    nodes = {term for triple in triples for term in triple if isinstance(term, NamedNode)}
    labels = labels_of(graph, nodes)
    return [Edge(s, p, o, labels[s], labels[p], object_label(o, labels)) for s, p, o in triples]


def reified(graph: GraphSource, edges: Iterable[str]) -> dict[str, Edge]:
    """What the edge IRIs reify, with labels; an IRI that reifies nothing is left out."""
    wanted = [edge for edge in dict.fromkeys(edges) if v.is_iri(edge)]
    found = graph.statements.triples(wanted)
    known = {edge: found[edge] for edge in wanted if edge in found}
    return dict(zip(known, with_labels(graph, list(known.values())), strict=True))


def described(edge: Edge, weight: float, description: str) -> Edge:
    return replace(edge, weight=weight, description=description)
