"""Labels for people and models, and the way back to IRIs (specification, "URI retention")."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    """Return an edge id computed from labels: the first eight hexadecimal SHA-256 digits."""
    return sha256(f"{subject}|{predicate}|{obj}".encode("utf-8", "surrogatepass")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class LabelGraph:
    """Edges as a model sees them: ``labeled_edges[i]`` has the id ``ids[i]``; ids are unique."""

    labeled_edges: tuple[tuple[str, str, str], ...]
    ids: tuple[str, ...]
    uri_map: Mapping[str, Triple]
    edge_map: Mapping[str, Edge]


def get_labelgraph(edges: Sequence[Edge]) -> LabelGraph:
    """Return edge labels and ids, plus a map from each id back to its triple.

    An id is ``edge_id`` of the labels. If two different edges share an id, each gets the
    beginning of its own IRI's digest appended; equal labels of different things are told apart."""
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
        for term, label in zip(_edge_terms(edge), edge.labels, strict=True):
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
        for (s, p, o), (a, b, c) in [(_edge_terms(edge), edge.labels)]
    ]


def _edge_terms(edge: Edge) -> Triple:
    return edge.subject, edge.predicate, edge.object


def local_name(iri: str) -> str:
    """Return an IRI's last part in readable form: the label for resources without label."""
    tail = iri.rpartition("#")[2].rpartition("/")[2]
    return unquote(tail.rpartition(":")[2] or tail) or iri


def name_rows(labels: Mapping[NamedNode, str], shown: Iterable[Object]) -> dict[NamedNode, str]:
    """Return the labels, those of table rows that their place identifies without the place where it
    isn't needed to tell apart the resources that are ``shown``."""
    plain = {
        node: label.rpartition(" (")[0] or label
        for node, label in labels.items()
        if v.is_row_iri(node.value)
    }
    nodes = {term for term in shown if isinstance(term, NamedNode)}
    counts = Counter(plain.get(node, labels.get(node, "")) for node in nodes)
    return dict(labels) | {node: name for node, name in plain.items() if counts[name] < 2}


def labels_of(graph: GraphSource, items: Iterable[NamedNode]) -> dict[NamedNode, str]:
    """Return item labels; items without label get the local name."""
    item_iris = sorted({node.value for node in items})
    labels_by_iri = graph.statements.labels(item_iris)
    return {NamedNode(iri): labels_by_iri.get(iri) or local_name(iri) for iri in item_iris}


def object_label(term: Object, labels: Mapping[NamedNode, str]) -> str:
    return term.value if isinstance(term, Literal) else labels[term]


def with_labels(graph: GraphSource, triples: Sequence[Triple]) -> list[Edge]:
    """Return the triples as labelled edges."""
    nodes = {term for triple in triples for term in triple if isinstance(term, NamedNode)}
    labels = labels_of(graph, nodes)
    return [Edge(s, p, o, labels[s], labels[p], object_label(o, labels)) for s, p, o in triples]


def read_reified_edges(graph: GraphSource, edges: Iterable[str]) -> dict[str, Edge]:
    """Return labelled edges reified by the edge IRIs; IRIs reifying nothing are omitted."""
    edge_iris = [edge for edge in dict.fromkeys(edges) if v.is_iri(edge)]
    triples = graph.statements.triples(edge_iris)
    triples_by_edge = {edge: triples[edge] for edge in edge_iris if edge in triples}
    return dict(
        zip(triples_by_edge, with_labels(graph, list(triples_by_edge.values())), strict=True)
    )


def add_description(edge: Edge, weight: float, description: str) -> Edge:
    return replace(edge, weight=weight, description=description)
