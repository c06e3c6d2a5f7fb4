"""Knowledge differences between two generations: additions, removals, changes and causes.

Differences are read only from the batches in between: the lines added and removed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import chain
from typing import Annotated
from typing import Literal as Choice

from pyoxigraph import Literal, NamedNode, Quad, RdfFormat, parse

from tgraph import vocabulary as v
from tgraph.explain.as_of.names import NamesAsOf
from tgraph.explain.as_of.store import changed_lines
from tgraph.explain.trace.bundle_reader import kind_of, local_name
from tgraph.explain.trace.comparison import Changed
from tgraph.explain.trace.generations import Generation, PointInTime, list_generations
from tgraph.index.sources import document_of_chunk, text_value
from tgraph.index.standing_knowledge import Properties, StandingEvidence
from tgraph.librarian import Librarian
from tgraph.record.activities import names_of
from tgraph.rendering import brief_repr
from tgraph.retrieve.labels import local_name as name_in
from tgraph.store.base import Store, text_of

ChangeKind = Choice["came", "went", "changed"]


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document ingested (``came``) or no longer standing (``went``) under a path."""

    change: ChangeKind
    document: str
    path: str


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A changed entity, fact or claim, added, removed or modified: IRI and label.

    ``values`` lists changed properties, with values of one property separated by ``; ``.
    ``generations`` are the generations making the changes; ``documents`` are documents ingested
    or ended in these generations that mention the item: for an added item the ingested
    documents, for a removed item the ended documents, if any."""

    change: ChangeKind
    item: str
    label: str
    values: tuple[Changed, ...]
    generations: tuple[int, ...]
    documents: tuple[ChangedDocument, ...]


@dataclass(frozen=True, slots=True)
class MergedNames:
    """Two entities merged or separated again: ``name`` stands for ``entity``."""

    name: str
    entity: str
    absorbed: str
    canonical: str


@dataclass(frozen=True, slots=True)
class KnowledgeDiff:
    """Knowledge differences from generation ``before`` to generation ``after``.

    ``generations`` lists the generations in between with their causes, oldest first. ``others``
    counts other additions and removals by kind, such as communities and reports."""

    before: PointInTime
    after: PointInTime
    generations: tuple[Generation, ...]
    entities: tuple[ItemChange, ...]
    facts: tuple[ItemChange, ...]
    claims: tuple[ItemChange, ...]
    merged: tuple[MergedNames, ...]
    unmerged: tuple[MergedNames, ...]
    others: Annotated[Mapping[str, tuple[int, int]], "how many came and how many went"]

    __repr__ = brief_repr

    @property
    def is_same(self) -> bool:
        """Tell whether both generations are equal."""
        compared = (f.name for f in fields(self) if f.name not in _POINTS)
        return not any(getattr(self, name) for name in compared)


_POINTS = ("before", "after", "generations")


def knowledge_diff(
    store: Store, librarian: Librarian, before: PointInTime, after: PointInTime
) -> KnowledgeDiff:
    """Return knowledge differences from ``before`` to ``after``, regardless of chronology.

    Raise ``StoreError`` if a change record is unreadable."""
    first, last = sorted((before.generation, after.generation))
    changes = _NetChanges()
    for batch, added, removed in changed_lines(store, librarian, first, last):
        changes.play(batch.number, added, removed)
    reader = _DiffReader(store, changes, back=before.generation > after.generation)
    between = [g for g in list_generations(store) if first < g.number <= last]
    merged, unmerged = reader.merges()
    return KnowledgeDiff(
        before,
        after,
        tuple(reversed(between)),
        tuple(reader.changes("entity")),
        tuple(reader.changes("edge")),
        tuple(reader.changes("claim")),
        merged,
        unmerged,
        reader.count_other_changes(),
    )


# --- which lines came and went in the end ---

_IN_SOURCES = f"{v.SOURCE_GRAPH} .\n".encode()
_MERGE = f"<{v.URN}merge:".encode()
_KINDS: Mapping[object, str] = {
    v.tg("Entity"): "entity",
    v.tg("Edge"): "edge",
    v.tg("Claim"): "claim",
}
_OTHERS: Mapping[object, str] = {
    v.tg("Community"): "communities",
    v.tg("CommunityReport"): "reports",
    v.tg("Summary"): "summaries",
    v.tg("Relation"): "relations",
    v.tg("EntityType"): "types",
}
_PARTS = frozenset({v.tg("summary"), v.tg("original")})
"""What leads to the record, and says nothing to a reader."""


class _NetChanges:
    """Lines added or removed on balance by a sequence of changes, each with its latest
    generation."""

    def __init__(self) -> None:
        self._lines: dict[bytes, tuple[bool, bool, int]] = {}

    def play(self, generation: int, added: Iterable[bytes], removed: Iterable[bytes]) -> None:
        for lines, there in ((removed, False), (added, True)):
            for line in lines:
                if _is_relevant_line(line):
                    before = self._lines[line][0] if line in self._lines else not there
                    self._lines[line] = before, there, generation

    def quads(self) -> Iterator[tuple[Quad, bool, int]]:
        """Yield changed statements, each with an addition flag and generation."""
        net = [(line, *states) for line, states in self._lines.items() if states[0] != states[1]]
        quads = parse(b"".join(line for line, *_ in net), RdfFormat.N_QUADS)
        for quad, (_, _, there, generation) in zip(quads, net, strict=True):
            yield quad, there, generation


def _is_relevant_line(line: bytes) -> bool:
    return not line.endswith(_IN_SOURCES) or line.startswith(_MERGE)


# --- what that means ---


class _DiffReader:
    """Reader turning statement changes into item changes; ``back`` reverses the direction."""

    def __init__(self, store: Store, changes: _NetChanges, *, back: bool) -> None:
        self._store = store
        self._names = NamesAsOf(store)
        self._stated = StandingEvidence(store, lambda _: True)
        self._quads: defaultdict[str, list[tuple[Quad, bool]]] = defaultdict(list)
        self._generations: defaultdict[str, set[int]] = defaultdict(set)
        for quad, there, generation in changes.quads():
            self._quads[text_of(quad.subject)].append((quad, there is not back))
            self._generations[text_of(quad.subject)].add(generation)
        self._back = back
        self._canonical: defaultdict[str, set[str]] = defaultdict(set)
        for quad in store.match(None, v.tg("absorbed"), None, v.SOURCE_GRAPH):
            for entity in names_of(store, NamedNode(text_of(quad.subject)), "canonical"):
                self._canonical[entity].add(text_of(quad.object))

    def changes(self, kind: str) -> list[ItemChange]:
        """Return item changes of one kind: additions, removals, modifications, each group
        sorted by label."""
        subjects = [s for s in self._quads if kind_of(s) == kind]
        labels = self._read_labels(kind, subjects)
        changes = (self._create_item_change(s, kind, labels.get(s) or name_in(s)) for s in subjects)
        order: list[ChangeKind] = ["came", "went", "changed"]
        return sorted(
            (change for change in changes if change is not None),
            key=lambda c: (order.index(c.change), c.label, c.item),
        )

    def _create_item_change(self, subject: str, kind: str, label: str) -> ItemChange | None:
        quads = self._quads[subject]
        change: ChangeKind = "changed"
        for quad, there in quads:
            if quad.predicate == v.RDF_TYPE and _KINDS.get(quad.object) == kind:
                change = "came" if there else "went"
        values = tuple(self._list_value_changes(quads)) if change == "changed" else ()
        if change == "changed" and not values:
            return None
        generations = tuple(sorted(self._generations[subject]))
        causes = self._find_causes(subject, kind, generations)
        alike = tuple(cause for cause in causes if cause.change == change)
        return ItemChange(change, subject, label, values, generations, alike or causes)

    def _list_value_changes(self, quads: Iterable[tuple[Quad, bool]]) -> Iterator[Changed]:
        """Yield value changes of an item by property."""
        changed_values: defaultdict[str, tuple[list[str], list[str]]] = defaultdict(
            lambda: ([], [])
        )
        for quad, there in quads:
            if quad.predicate not in _PARTS and not v.is_statement(quad.predicate):
                changed_values[local_name(quad.predicate)][there].append(
                    self._format_term(quad.object)
                )
        for name, (before, after) in sorted(changed_values.items()):
            yield Changed(name, "; ".join(sorted(before)), "; ".join(sorted(after)))

    def _format_term(self, term: object) -> str:
        if isinstance(term, Literal):
            return term.value
        iri = text_of(term)
        return (self._names.entity(iri) if kind_of(iri) == "entity" else "") or name_in(iri)

    # --- names ---

    def _read_labels(self, kind: str, subjects: list[str]) -> dict[str, str]:
        if kind == "edge":
            edges = self._names.edges(subjects)
            return {iri: " — ".join(edge.labels) for iri, edge in edges.items()}
        label_predicate = v.RDFS_LABEL if kind == "entity" else v.tg("description")
        return {
            s: self._latest_value(s, label_predicate) or self._recall_label(s, kind)
            for s in subjects
        }

    def _latest_value(self, subject: str, predicate: NamedNode) -> str:
        """Return the label after the changes; for removed items, the label before."""
        values = [
            (there, q.object) for q, there in self._quads[subject] if q.predicate == predicate
        ]
        return max(((there, text_of(term)) for there, term in values), default=(False, ""))[1]

    def _recall_label(self, subject: str, kind: str) -> str:
        return self._names.entity(subject) if kind == "entity" else self._names.claim(subject)

    # --- causes ---

    def _find_causes(
        self, subject: str, kind: str, generations: tuple[int, ...]
    ) -> tuple[ChangedDocument, ...]:
        """Return documents mentioning a subject, ingested or ended in the given generations."""
        moved = {d for number in generations for d in self._documents_by_generation.get(number, ())}
        if not moved:
            return ()
        subject_documents = self._documents_of(subject, kind)
        causes = sorted(
            (d for d in moved if d.document in subject_documents),
            key=lambda d: (d.path, d.change, d.document),
        )
        return tuple(self._reverse_cause(cause) for cause in causes)

    def _reverse_cause(self, cause: ChangedDocument) -> ChangedDocument:
        if not self._back:
            return cause
        return replace(cause, change="went" if cause.change == "came" else "came")

    def _documents_of(self, subject: str, kind: str) -> set[str]:
        return {
            document_of_chunk(item["wasDerivedFrom"][0].value)
            for item in self._find_evidence(subject, kind)
        }

    def _find_evidence(self, subject: str, kind: str) -> Iterator[Properties]:
        evidence_index = self._stated
        if kind == "claim":
            yield from evidence_index.of_claim(subject)
        elif kind == "edge":
            names = (subject, *evidence_index.merged_into(subject))
            yield from chain.from_iterable(map(evidence_index.of_edge, names))
        else:
            names = (subject, *sorted(self._canonical[subject]))
            yield from chain.from_iterable(map(evidence_index.of_entity, names))

    @cached_property
    def _documents_by_generation(self) -> dict[int, list[ChangedDocument]]:
        """Documents ingested and documents ended, by generation."""
        numbers = {g.activity: g.number for g in list_generations(self._store)}
        documents: defaultdict[int, list[ChangedDocument]] = defaultdict(list)
        sides: tuple[tuple[ChangeKind, str], ...] = (
            ("came", "wasGeneratedBy"),
            ("went", "wasInvalidatedBy"),
        )
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Accession"), v.SOURCE_GRAPH):
            accession = text_of(quad.subject)
            document = text_value(self._store, accession, v.prov("specializationOf"))
            path = text_value(self._store, accession, v.tg("path"))
            for change, name in sides:
                if number := numbers.get(text_value(self._store, accession, v.prov(name))):
                    documents[number].append(ChangedDocument(change, document, path))
        return documents

    # --- the rest ---

    def merges(self) -> tuple[tuple[MergedNames, ...], tuple[MergedNames, ...]]:
        """Return names merged into one entity, and names separated again."""
        pairs: Counter[tuple[str, str]] = Counter()
        for merge, quads in self._quads.items():
            if kind_of(merge) == "merge":
                sides = (
                    names_of(self._store, NamedNode(merge), p) for p in ("absorbed", "canonical")
                )
                for pair in zip(*sides, strict=True):
                    pairs[pair] += sum(_merge_change(quad, there) for quad, there in quads)
        names = [self._create_merged_names(pair) for pair, count in pairs.items() if count > 0]
        apart = [self._create_merged_names(pair) for pair, count in pairs.items() if count < 0]
        return tuple(sorted(names, key=_by_name)), tuple(sorted(apart, key=_by_name))

    def _create_merged_names(self, pair: tuple[str, str]) -> MergedNames:
        name, entity = (self._names.entity(iri) or name_in(iri) for iri in pair)
        return MergedNames(name, entity, *pair)

    def count_other_changes(self) -> dict[str, tuple[int, int]]:
        """Return added and removed item counts for every other kind."""
        counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for quads in self._quads.values():
            for quad, there in quads:
                if quad.predicate == v.RDF_TYPE and (kind := _OTHERS.get(quad.object)):
                    counts[kind][not there] += 1
        return {kind: (came, went) for kind, (came, went) in sorted(counts.items())}


def _merge_change(quad: Quad, there: bool) -> int:
    """Return a statement's effect on a merge: beginning (1), ending (-1), otherwise 0."""
    sign = 1 if there else -1
    if quad.predicate == v.tg("absorbed"):
        return sign
    return -sign if quad.predicate == v.prov("invalidatedAtTime") else 0


def _by_name(merged: MergedNames) -> tuple[str, ...]:
    return merged.name, merged.entity, merged.absorbed, merged.canonical
