"""The quads of knowledge about an entity, an edge or a claim with some evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.standing_knowledge import Properties, commonest, distinct, type_of
from tgraph.store.statements import Pair, Statements, iri, stated


def claim_quads(
    claim: str, evidence: Sequence[Properties], merges: Mapping[str, str]
) -> list[Quad]:
    """The claim in the knowledge graph, under the canonical names of whom it is about; nothing
    where no evidence stands. All evidence of a claim says the same: the IRI is a digest of it."""
    if not evidence:
        return []
    said = evidence[0]
    return stated(
        v.KNOWLEDGE_GRAPH,
        claim,
        (v.RDF_TYPE, v.tg("Claim")),
        (v.tg("subject"), _canonical(said["subject"], merges)),
        (v.tg("object"), _canonical(said.get("object", ()), merges)),
        (v.tg("claimType"), said["claimType"]),
        (v.tg("claimStatus"), said["claimStatus"]),
        (v.tg("claimStart"), said.get("claimStart", ())),
        (v.tg("claimEnd"), said.get("claimEnd", ())),
        (v.tg("description"), said["description"]),
    )


def _canonical(
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
    return stated(
        v.KNOWLEDGE_GRAPH,
        edge,
        (v.RDF_TYPE, v.tg("Edge")),
        (v.tg("weight"), float(sum(strengths))),
        *description,
        (v.tg("keyword"), distinct(evidence, "keyword")),
        (v.tg("original"), map(iri, originals)),
    )


def outside_quads(subject: str, reason: str) -> list[Quad]:
    """Why the entity or edge is outside the ontology; nothing where it is not."""
    return stated(v.KNOWLEDGE_GRAPH, subject, (v.tg("outsideOntology"), reason or None))


def relation_label(names: Iterable[str]) -> str:
    """What a relation is called that has these names: the first without capitals."""
    return min(names, key=lambda name: (name != name.lower(), name))


class KnownTerms(NamedTuple):
    """Tells of a type whether it is an entity too, whose label it then has, and what an ontology
    calls it."""

    is_entity: Callable[[str], bool]
    label: Callable[[str], str] = lambda kind: ""


def entity_quads(
    entity: str,
    evidence: Sequence[Properties],
    description: Sequence[Pair],
    terms: KnownTerms,
    meant: str = "",
) -> list[Quad]:
    """What knowledge says of an entity with this evidence, and of its types. ``meant`` is the class
    of an ontology that takes the place of the type."""
    own = [e for e in evidence if e["entity"][0].value == entity] or evidence
    label = commonest(own, "name") or commonest(evidence, "name")
    kinds = [meant or v.type_iri(type_of(evidence) or "concept")]
    kinds += [kind for kind in distinct(evidence, "entityClass") if kind not in kinds]
    names = {t.value for e in evidence for p in ("name", "alias") for t in e.get(p, ())}
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        entity,
        (v.RDF_TYPE, [v.tg("Entity"), *map(iri, kinds)]),
        (v.RDFS_LABEL, label),
        (v.SKOS_ALT_LABEL, sorted(names - {label})),
        *description,
    )
    for kind in kinds:
        out.quads += type_quads(kind, terms.label(kind))[: 1 if terms.is_entity(kind) else 2]
    return out.quads


@lru_cache(maxsize=1024)
def type_quads(kind: str, known: str = "") -> Sequence[Quad]:
    """A type, and its label: as an ontology has it, else it comes from its IRI, so that all who
    write it write the same."""
    minted = unquote(kind.removeprefix(v.type_iri(""))).replace("-", " ")
    label = known or (minted if kind.startswith(v.type_iri("")) else v.local_words(kind))
    about = (v.RDF_TYPE, v.tg("EntityType")), (v.RDFS_LABEL, label)
    return stated(v.KNOWLEDGE_GRAPH, kind, *about)
