"""Knowledge derived from evidence: what the default graph says, and nothing else writes it.

Knowledge is a function of the standing evidence and of nothing else: not of the order in which it
came, nor of what stood before. A change recomputes what it touches: the entities and edges whose
evidence or whose canonical name changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode, Quad, Triple

from tgraph import vocabulary as v
from tgraph.errors import ErasedTextError, EvidenceError
from tgraph.extract.resolution import Name, resolve
from tgraph.index.decisions import NO_DECISIONS, Decisions, amends
from tgraph.index.evidence import OnDoubt, documents_of, evidence_of_row, raise_doubt, row_of
from tgraph.index.sources import Texts, document_of_chunk, text_value
from tgraph.index.standing_knowledge import (
    Properties,
    StandingEvidence,
    Weigh,
    commonest,
    distinct,
    type_of,
    value,
)
from tgraph.model import Claim, ClaimStatus, Evidence
from tgraph.store.base import Store, Term, select, text_of
from tgraph.store.statements import Pair, Statements, edge_of, iri, reifier, stated

_ABOUT = ("subject", "object")
_STATUSES: dict[str, ClaimStatus] = {"TRUE": "TRUE", "FALSE": "FALSE", "SUSPECTED": "SUSPECTED"}


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


def claims_of(
    store: Store, texts: Texts, entities: Sequence[str], doubt: OnDoubt = raise_doubt
) -> dict[str, tuple[Claim, ...]]:
    """For each entity the claims about it, as subject or object, with their standing evidence.

    ``entities`` are canonical IRIs, and keep their order; those without claims are left out. Claims
    about the entity itself come first, then by where they are first stated (document path, page,
    position). One query, however many entities. ``doubt`` is told of evidence that is not what the
    stored text says, without which a claim stands, if it has other.
    """
    if not entities:
        return {}
    rows = select(store, "retrieve/claims", {"entities": [NamedNode(e) for e in entities]})
    documents = documents_of(store, {document_of_chunk(text_of(row["chunk"])) for row in rows})
    places: defaultdict[str, dict[str, Evidence]] = defaultdict(dict)
    said: dict[str, Mapping[str, Term | None]] = {}
    about: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        named = documents.get(document_of_chunk(text_of(row["chunk"])))
        if named is None:
            continue
        try:
            evidence = evidence_of_row(row_of(row, "claim"), named, texts)
        except ErasedTextError:
            continue
        except EvidenceError as error:
            doubt(error)
            continue
        claim = text_of(row["claim"])
        said[claim] = row
        about[text_of(row["entity"])].add(claim)
        places[claim][evidence.iri] = evidence
    claims = {claim: _claim(row, list(places[claim].values())) for claim, row in said.items()}
    return {
        entity: tuple(sorted((claims[c] for c in about[entity]), key=lambda c: _order(c, entity)))
        for entity in entities
        if entity in about
    }


def _claim(row: Mapping[str, Term | None], evidence: list[Evidence]) -> Claim:
    started, ended = row["started"], row["ended"]
    return Claim(
        iri=text_of(row["claim"]),
        subject=text_of(row["subject"]),
        subject_label=text_of(row["subject_label"]),
        object=text_of(row["object"]),
        object_label=text_of(row["object_label"]),
        type=text_of(row["type"]),
        status=_STATUSES[text_of(row["status"])],
        description=text_of(row["description"]),
        started=started if isinstance(started, Literal) else None,
        ended=ended if isinstance(ended, Literal) else None,
        evidence=tuple(sorted(evidence, key=_place)),
    )


def _place(evidence: Evidence) -> tuple[str, int, int, str]:
    return evidence.path, evidence.page or 0, evidence.start, evidence.iri


def _order(claim: Claim, entity: str) -> tuple[object, ...]:
    return claim.subject != entity, *_place(claim.evidence[0]), claim.iri


Progress = Callable[[int, int], None]
Describe = Callable[[str, Sequence[Properties]], list[Pair]]
"""What knowledge says of a subject with this evidence, to describe it."""


@dataclass(slots=True)
class Touched:
    """The entities, edges and claims, as named in the texts, whose evidence has changed."""

    entities: set[str] = field(default_factory=set)
    edges: dict[str, Triple] = field(default_factory=dict)
    claims: set[str] = field(default_factory=set)


@dataclass(slots=True)
class KnowledgeChange:
    """Quads to add to and to remove from the store, and the merges that were made and undone."""

    added: list[Quad] = field(default_factory=list)
    removed: list[Quad] = field(default_factory=list)
    merged: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, str] = field(default_factory=dict)


class Derivation:
    """Recomputes knowledge in a store whose source graph is already up to date."""

    def __init__(
        self,
        store: Store,
        merges: Mapping[str, str],
        stands: Callable[[str], bool],
        decisions: Decisions = NO_DECISIONS,
        describe: Describe | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        """``merges`` maps absorbed entities to canonical ones as of now; ``stands`` tells whether a
        chunk's document still stands; ``decisions`` are those of people; ``describe``
        says how a subject is described, by default in every way that the texts have; ``weigh``
        tells what evidence counts for that does not count as it is."""
        self._store = store
        self._texts = StandingEvidence(store, stands, weigh)
        self._old = dict(merges)
        self._decisions = decisions
        self._describe = describe or Descriptions(store, None).of
        self._new: dict[str, str] = {}
        self._denied: set[str] = set()
        self._change = KnowledgeChange()
        self._relation_names: dict[str, set[str]] = {}

    def run(
        self, touched: Touched, progress: Progress = lambda done, total: None
    ) -> KnowledgeChange:
        """The change that brings the default graph up to date with the touched evidence."""
        around = self._neighbourhood(touched.entities)  # the merges of others stay as they are
        kept = {k: c for k, c in self._old.items() if k not in around}
        named = [name for entity in sorted(around) if (name := self._name(entity)) is not None]
        self._new = {**kept, **resolve(named, self._decisions.splits, self._decisions.joins)}
        self._denied = {edge_of(_under(self._new, t)) for t in self._decisions.denied}
        self._change.merged = {k: c for k, c in self._new.items() if self._old.get(k) != c}
        self._change.unmerged = {k: c for k, c in self._old.items() if self._new.get(k) != c}
        renamed = set(self._change.merged) | set(self._change.unmerged)
        originals = dict(touched.edges)
        for entity in sorted(renamed):
            originals.update(self._texts.edges_naming(entity))
            originals.update((edge_of(t), t) for t in self._decisions.denied_naming(entity))
        names = touched.entities | renamed
        entities = {mapping.get(e, e) for e in names for mapping in (self._old, self._new)}
        edges = self._refresh_edges(originals, len(entities), progress)
        absorbed = _inverted(self._new)
        for entity in sorted(entities):
            self._refresh_entity(entity, absorbed.get(entity, ()))
        self._forget_types()
        for claim in sorted(touched.claims.union(*map(self._texts.claims_naming, sorted(renamed)))):
            existing = self._store.match(NamedNode(claim), None, None, v.KNOWLEDGE_GRAPH)
            desired = claim_quads(claim, self._claimed(claim), self._new)
            self._replace(existing, desired)
        progress(len(edges) + len(entities), len(edges) + len(entities))
        return self._change

    # --- resolution ---

    def _neighbourhood(self, entities: set[str]) -> set[str]:
        """Every entity that shares a key or an alias with these, directly or through others."""
        found: set[str] = set()
        keys: set[str] = set()
        queue = set(entities)
        absorbed = _inverted(self._old)
        while queue:
            entity = queue.pop()
            if entity in found:
                continue
            found.add(entity)
            canonical = self._old.get(entity, entity)
            queue |= {canonical, *absorbed.get(canonical, ()), *self._decisions.partners(entity)}
            for key in self._texts.keys_of(entity) - keys:
                keys.add(key)
                queue |= self._texts.entities_with(key)
        return found

    def _name(self, entity: str) -> Name | None:
        evidence = self._of_entity(entity)
        if not evidence:
            return None
        stated = [item for item in self._texts.of_entity(entity) if not amends(item)]
        return Name(
            entity,
            commonest(stated, "name"),
            type_of(evidence),
            frozenset(term.value for item in evidence for term in item.get("aliasKey", ())),
        )

    # --- what people decided ---

    def _of_entity(self, *members: str) -> list[Properties]:
        """The evidence of an entity under these names as it counts; none of names denied."""
        kept = [member for member in members if not self._decisions.drops(member)]
        stated = (item for member in kept for item in self._texts.of_entity(member))
        return self._decisions.prevailing(list(stated))

    def _of_edge(self, original: str) -> list[Properties]:
        """The evidence of an edge of the texts, unless one of its ends is denied."""
        triple = self._texts.triple(original)
        ends = (triple.subject, triple.object) if triple else ()
        return [] if any(map(self._decisions.drops, ends)) else self._texts.of_edge(original)

    def _claimed(self, claim: str) -> list[Properties]:
        """The evidence of a claim, unless it is about what is denied."""
        evidence = self._texts.of_claim(claim)
        about = (term for item in evidence for p in _ABOUT for term in item.get(p, ()))
        return [] if any(map(self._decisions.drops, about)) else evidence

    # --- edges ---

    def _refresh_edges(
        self, originals: Mapping[str, Triple], more: int, progress: Progress
    ) -> dict[str, Triple]:
        """Bring the edges that the originals were, and are now, up to date; returns those."""
        edges: dict[str, Triple] = {}
        sources: dict[str, dict[str, Triple]] = {}
        for original, triple in originals.items():
            for mapping in (self._old, self._new):
                canonical = _under(mapping, triple)
                edges[edge_of(canonical)] = canonical
                sources.setdefault(edge_of(canonical), {})[original] = triple
        for done, (edge, triple) in enumerate(sorted(edges.items()), 1):
            self._refresh_edge(edge, triple, sources[edge])
            progress(done, len(edges) + more)
        for relation in sorted({triple.predicate.value for triple in edges.values()}):
            self._name_relation(NamedNode(relation), edges)
        return edges

    def _refresh_edge(self, edge: str, triple: Triple, known: Mapping[str, Triple]) -> None:
        originals = self._originals(edge, known)
        stated = {original: self._of_edge(original) for original in originals}
        evidence = [item for items in stated.values() for item in items]
        desired: list[Quad] = []
        if evidence and edge in self._denied:
            self._link(edge, triple, originals)  # found again once it is denied no more
            evidence = []
        evidence = self._decisions.prevailing(evidence)
        if evidence and triple.subject != triple.object:
            desired = [Quad(triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH)]
            others = [original for original in originals if stated[original] and original != edge]
            desired += _edge_attributes(edge, evidence, others, self._describe(edge, evidence))
            self._link(edge, triple, originals)
            names = self._relation_names.setdefault(triple.predicate.value, set())
            names.add(commonest(evidence, "name"))
        existing = list(self._store.match(NamedNode(edge), None, None, v.KNOWLEDGE_GRAPH))
        existing += self._store.match(
            triple.subject, triple.predicate, triple.object, v.KNOWLEDGE_GRAPH
        )
        self._replace(existing, desired)

    def _originals(self, edge: str, known: Mapping[str, Triple]) -> list[str]:
        """The edges of the texts that are this edge under the new names, sorted."""
        candidates = dict(known)
        for original in (edge, *self._texts.merged_into(edge)):
            triple = self._texts.triple(original)
            if triple is not None:
                candidates[original] = triple
        return sorted(e for e, t in candidates.items() if edge_of(_under(self._new, t)) == edge)

    def _link(self, edge: str, triple: Triple, originals: Sequence[str]) -> None:
        """A canonical edge that the texts know by other names: its reifier, and whence it comes."""
        others = [original for original in originals if original != edge]
        if not others:
            return
        out = Statements(v.SOURCE_GRAPH)
        out.add(edge, (v.tg("mergedFrom"), map(iri, others)))
        out.quads.append(reifier(edge, triple))
        for original in others:
            node = NamedNode(original)
            for quad in self._store.match(None, v.tg("contains"), node, v.SOURCE_GRAPH):
                out.add(value(quad.subject), (v.tg("contains"), iri(edge)))
        self._change.added += out.quads

    # --- relations ---

    def _name_relation(self, relation: NamedNode, refreshed: Mapping[str, Triple]) -> None:
        """The relation's label: of the names that its edges have, the first without capitals."""
        existing = list(self._store.match(relation, None, None, v.KNOWLEDGE_GRAPH))
        names = set(self._relation_names.get(relation.value, ()))
        for label in [value(q.object) for q in existing if q.predicate == v.RDFS_LABEL]:
            if label not in names:
                names |= self._names_elsewhere(relation, label, refreshed)
        out = Statements(v.KNOWLEDGE_GRAPH)
        if names:
            label = min(names, key=lambda name: (name != name.lower(), name))
            out.add(relation.value, (v.RDF_TYPE, v.tg("Relation")), (v.RDFS_LABEL, label))
        self._replace(existing, out.quads)

    def _names_elsewhere(
        self, relation: NamedNode, label: str, refreshed: Mapping[str, Triple]
    ) -> set[str]:
        """The names that edges which did not change give the relation; only the label where one of
        them gives it, for then it is still the first of all."""
        names = set()
        for quad in self._store.match(None, relation, None, v.KNOWLEDGE_GRAPH):
            edge = edge_of(quad.triple)
            if edge not in refreshed:
                originals = self._originals(edge, {})
                evidence = [item for text in originals for item in self._of_edge(text)]
                evidence = self._decisions.prevailing(evidence)
                names.add(commonest(evidence, "name"))
                if label in names:
                    return {label}
        return names

    # --- entities ---

    def _refresh_entity(self, entity: str, absorbed: Iterable[str]) -> None:
        members = sorted({entity, *absorbed})
        evidence = self._of_entity(*members)
        existing = [
            quad
            for quad in self._store.match(NamedNode(entity), None, None, v.KNOWLEDGE_GRAPH)
            if not is_statement(quad.predicate)
        ]
        known = evidence and entity not in self._new
        described = self._describe(entity, evidence) if known else []
        self._replace(existing, _entity_quads(entity, evidence, described) if known else [])

    def _forget_types(self) -> None:
        """Types that no entity is of any more leave knowledge."""
        removed = set(self._change.removed)
        left = {quad.object for quad in removed if quad.predicate == v.RDF_TYPE}
        kept = {quad.object for quad in self._change.added if quad.predicate == v.RDF_TYPE}
        for kind in sorted(left - kept, key=str):
            if not isinstance(kind, NamedNode) or not kind.value.startswith(v.type_iri("")):
                continue
            users = self._store.match(None, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)
            if all(quad in removed for quad in users):
                self._replace(self._store.match(kind, None, None, v.KNOWLEDGE_GRAPH), [])

    # --- changes ---

    def _replace(self, existing: Iterable[Quad], desired: Iterable[Quad]) -> None:
        """Shared descriptions (types) are kept: only what is about the subject is removed."""
        before, after = set(existing), list(desired)
        self._change.removed += sorted(before - set(after), key=str)
        self._change.added += [quad for quad in after if quad not in before]


def is_statement(predicate: NamedNode) -> bool:
    """Whether triples with the predicate are statements of the corpus, not tgraph's about them."""
    return not predicate.value.startswith((v.TG, v.RDF, v.RDFS, v.SKOS, v.PROV, v.DCTERMS))


def _inverted(merges: Mapping[str, str]) -> dict[str, list[str]]:
    """For each canonical entity, those that it has absorbed."""
    found: dict[str, list[str]] = {}
    for absorbed, canonical in merges.items():
        found.setdefault(canonical, []).append(absorbed)
    return found


def _under(mapping: Mapping[str, str], triple: Triple) -> Triple:
    """The triple with canonical names."""
    subject, obj = triple.subject, triple.object
    assert isinstance(subject, NamedNode)
    subject = NamedNode(mapping.get(subject.value, subject.value))
    if isinstance(obj, NamedNode):
        obj = NamedNode(mapping.get(obj.value, obj.value))
    return Triple(subject, triple.predicate, obj)


def _edge_attributes(
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


def _entity_quads(
    entity: str, evidence: Sequence[Properties], description: Sequence[Pair]
) -> list[Quad]:
    own = [e for e in evidence if e["entity"][0].value == entity] or evidence
    label = commonest(own, "name") or commonest(evidence, "name")
    kind = v.type_iri(type_of(evidence) or "concept")
    names = {t.value for e in evidence for p in ("name", "alias") for t in e.get(p, ())}
    out = Statements(v.KNOWLEDGE_GRAPH)
    out.add(
        entity,
        (v.RDF_TYPE, [v.tg("Entity"), iri(kind)]),
        (v.RDFS_LABEL, label),
        (v.SKOS_ALT_LABEL, sorted(names - {label})),
        *description,
    )
    # a type's label comes from its IRI, so that all who write it write the same
    of_type = unquote(kind.removeprefix(v.type_iri(""))).replace("-", " ")
    out.add(kind, (v.RDF_TYPE, v.tg("EntityType")), (v.RDFS_LABEL, of_type))
    return out.quads


@dataclass(frozen=True, slots=True)
class Original:
    """One description as the texts have it, and the evidence that carries it, by IRI."""

    text: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Described:
    """An entity or an edge with several descriptions, in the order of their texts."""

    subject: str
    originals: tuple[Original, ...]

    def summary(self, key: str) -> str:
        """The IRI of the summary that a summariser with the key makes of this."""
        parts = ((original.text, *original.evidence) for original in self.originals)
        return v.summary_iri(self.subject, key, (part for item in parts for part in item))


class Descriptions:
    """Says what knowledge says of a subject; ``pending`` are those whose summary is missing.

    ``key`` is the summariser's; without one every description stands for itself. A summary is known
    by what it was made from: the subject, the descriptions with the evidence that carries each, and
    the summariser. So knowledge stays a function of the standing evidence and of the summaries on
    record, and what did not change is not summarised again.
    """

    def __init__(self, store: Store, key: str | None) -> None:
        self.pending: dict[str, Described] = {}
        self._store = store
        self._key = key

    def of(self, subject: str, evidence: Sequence[Properties]) -> list[Pair]:
        """The description of the subject, and the summary that it is; nothing while that is
        pending."""
        said = distinct(evidence, "description")
        if self._key is None or len(said) < 2:
            return [(v.tg("description"), said)]
        described = Described(subject, _originals(evidence))
        summary = described.summary(self._key)
        text = text_value(self._store, summary, v.tg("text"))
        if not text:
            self.pending[subject] = described
            return []
        return described_by(summary, text)


def described_by(summary: str, text: str) -> list[Pair]:
    """What knowledge says of a subject that has a summary."""
    return [(v.tg("description"), text), (v.tg("summary"), NamedNode(summary))]


def touch_unsummarised(store: Store, touched: Touched) -> None:
    """Touch what has several descriptions side by side: it was derived without a summariser."""
    texts = StandingEvidence(store, lambda chunk: True)
    for row in select(store, "index/several-descriptions", union=False):
        subject = row["subject"]
        assert isinstance(subject, NamedNode)
        triple = texts.triple(subject.value)
        if triple is not None:
            touched.edges[subject.value] = triple
        else:
            touched.entities.add(subject.value)


def _originals(evidence: Sequence[Properties]) -> tuple[Original, ...]:
    found: dict[str, set[str]] = {}
    for item in evidence:
        for term in item.get("description", ()):
            found.setdefault(term.value, set()).add(item["evidence"][0].value)
    return tuple(Original(text, tuple(sorted(found[text]))) for text in sorted(found))
