"""The quads of knowledge about an entity, an edge or a claim with some evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.standing_knowledge import Properties, commonest_value, distinct_values, type_of
from tgraph.store.statements import Pair, Statements, build_statements, iri_node


def claim_quads(
    claim: str, evidence: Sequence[Properties], merges: Mapping[str, str]
) -> list[Quad]:
    """Return knowledge quads of the claim, with canonical entity names; no quads if no evidence
    stands.

    All evidence of a claim agrees, because the claim IRI is a digest of the content."""
    if not evidence:
        return []
    properties = evidence[0]
    return build_statements(
        v.KNOWLEDGE_GRAPH,
        claim,
        (v.RDF_TYPE, v.tg("Claim")),
        (v.tg("subject"), _canonical_nodes(properties["subject"], merges)),
        (v.tg("object"), _canonical_nodes(properties.get("object", ()), merges)),
        (v.tg("claimType"), properties["claimType"]),
        (v.tg("claimStatus"), properties["claimStatus"]),
        (v.tg("claimStart"), properties.get("claimStart", ())),
        (v.tg("claimEnd"), properties.get("claimEnd", ())),
        (v.tg("description"), properties["description"]),
    )


def _canonical_nodes(
    entities: Sequence[NamedNode | Literal], merges: Mapping[str, str]
) -> list[NamedNode]:
    return [NamedNode(merges.get(entity.value, entity.value)) for entity in entities]


def edge_quads(
    edge: str,
    evidence: Sequence[Properties],
    originals: Sequence[str],
    description: Sequence[Pair],
) -> list[Quad]:
    strengths = [float(item["strength"][0].value) for item in evidence if "strength" in item]
    return build_statements(
        v.KNOWLEDGE_GRAPH,
        edge,
        (v.RDF_TYPE, v.tg("Edge")),
        (v.tg("weight"), float(sum(strengths))),
        *description,
        (v.tg("keyword"), distinct_values(evidence, "keyword")),
        (v.tg("original"), map(iri_node, originals)),
    )


def outside_quads(subject: str, reason: str) -> list[Quad]:
    """Return quads stating why the entity or edge lies outside the ontology; no quads without a
    reason."""
    return build_statements(v.KNOWLEDGE_GRAPH, subject, (v.tg("outsideOntology"), reason or None))


def relation_label(names: Iterable[str]) -> str:
    """Return a relation label chosen from the names, preferring lower-case names, then
    alphabetical order."""
    return min(names, key=lambda name: (name != name.lower(), name))


class KnownTerms(NamedTuple):
    """Look-ups for types: whether a type is also an entity, sharing the entity's label, and the
    type's ontology label."""

    is_entity: Callable[[str], bool]
    label: Callable[[str], str] = lambda kind: ""


def entity_quads(
    entity: str,
    evidence: Sequence[Properties],
    description: Sequence[Pair],
    terms: KnownTerms,
    meant: str = "",
) -> list[Quad]:
    """Return knowledge quads of an entity and its types, given the evidence.

    ``meant`` is an ontology class that replaces the type."""
    entity_evidence = [e for e in evidence if e["entity"][0].value == entity] or evidence
    label = commonest_value(entity_evidence, "name") or commonest_value(evidence, "name")
    kinds = [meant or v.type_iri(type_of(evidence) or "concept")]
    kinds += [kind for kind in distinct_values(evidence, "entityClass") if kind not in kinds]
    names = {t.value for e in evidence for p in ("name", "alias") for t in e.get(p, ())}
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        entity,
        (v.RDF_TYPE, [v.tg("Entity"), *map(iri_node, kinds)]),
        (v.RDFS_LABEL, label),
        (v.SKOS_ALT_LABEL, sorted(names - {label})),
        *description,
    )
    for kind in kinds:
        out.quads += type_quads(kind, terms.label(kind))[: 1 if terms.is_entity(kind) else 2]
    return out.quads


@lru_cache(maxsize=1024)
def type_quads(kind: str, known: str = "") -> Sequence[Quad]:
    """Return quads for a type and its label, taken from the ontology, else from the IRI.

    All writers therefore produce equal labels."""
    minted = unquote(kind.removeprefix(v.type_iri(""))).replace("-", " ")
    label = known or (minted if kind.startswith(v.type_iri("")) else v.local_words(kind))
    pairs = (v.RDF_TYPE, v.tg("EntityType")), (v.RDFS_LABEL, label)
    return build_statements(v.KNOWLEDGE_GRAPH, kind, *pairs)
