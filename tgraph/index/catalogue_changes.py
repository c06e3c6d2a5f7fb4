"""Counts of a catalogue after a change: those of before, with what the changed subjects and the
changed tables contribute now in place of what they contributed.

Each count but that of tables is a sum over subjects, so that only the statements of subjects with
changed names, types or statements are read, as they are and as they were."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TypeVar

from pyoxigraph import BlankNode, Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.index.catalogue import (
    LONGEST_VALUE,
    MOST_VALUES,
    VAGUE,
    CatalogueCounts,
    PropertyValues,
    count_values,
    first_word,
    is_structured,
    most_frequent_values,
    read_rows_of,
    read_tables,
)
from tgraph.index.sources import (
    chunks_of_document,
    document_of_accession,
    document_of_chunk,
    parts_of_page,
    source_value,
)
from tgraph.model import Object
from tgraph.store.base import Store, select_rows, text_of
from tgraph.store.statements import edge_of

MOST_SUBJECTS = 20_000
"""Changed subjects from which on counting all is no dearer."""

_ENTITY_TYPE, _RELATION = v.tg("EntityType"), v.tg("Relation")
_ACCESSION = f"{v.URN}accession:"
_OF_DOCUMENTS = v.document_iri(""), f"{v.URN}page:"


def revise_counts(
    before: CatalogueCounts, store: Store, quads: Iterable[Quad], edges: Iterable[str]
) -> CatalogueCounts | None:
    """Return the counts of a store after ``quads`` were added or removed; ``edges`` are those with
    changed evidence. None where so much has changed that all is better counted."""
    flipped = {quad for quad, times in Counter(quads).items() if times % 2}
    if any(isinstance(quad.subject, BlankNode) for quad in flipped):
        return None
    change = _ChangedStore(store, {q for q in flipped if q.graph_name == v.KNOWLEDGE_GRAPH})
    documents = _documents_of(store, flipped) | change.find_row_documents(edges)
    tables = [t for t in before.tables if t.key.partition("#")[0] not in documents]
    chunks = [chunk for document in documents for chunk in chunks_of_document(store, document)]
    tables += read_tables(store, read_rows_of(store, chunks))
    after = CatalogueCounts(
        dict(before.members),
        dict(before.domains),
        dict(before.kinds),
        dict(before.values),
        {word: dict(group) for word, group in before.namesakes.items()},
        tuple(sorted(tables, key=lambda table: table.key)),
    )
    revision = _Revision(change, before, after)
    subjects = revision.find_subjects()
    if len(subjects) > MOST_SUBJECTS:
        return None
    revision.revise(subjects)
    return after


def _documents_of(store: Store, quads: Iterable[Quad]) -> set[str]:
    """Return the documents whose accessions, pages or properties changed."""
    documents = set()
    for subject in {quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)}:
        if subject.startswith(_ACCESSION):
            documents.add(document_of_accession(store, subject))
        elif subject.startswith(_OF_DOCUMENTS):
            documents.add(parts_of_page(subject)[0])
    return documents - {""}


class _ChangedStore:
    """A store after a change of its knowledge; ``flipped`` are the quads added or removed."""

    def __init__(self, store: Store, flipped: Collection[Quad]) -> None:
        self.store = store
        self.flipped = flipped
        self.by_subject: defaultdict[NamedNode, set[Quad]] = defaultdict(set)
        for quad in flipped:
            if isinstance(quad.subject, NamedNode):
                self.by_subject[quad.subject].add(quad)

    def has(self, subject: NamedNode, kind: NamedNode, *, before: bool) -> bool:
        """Return whether a subject has a type now, or had the type ``before`` the change."""
        quad = Quad(subject, v.RDF_TYPE, kind, v.KNOWLEDGE_GRAPH)
        is_there = next(self.store.match(*quad), None) is not None
        return is_there != (before and quad in self.flipped)

    def quads_of(self, subject: NamedNode, *, before: bool) -> Collection[Quad]:
        """Return a subject's quads after the change, or ``before`` the change."""
        quads = set(self.store.match(subject, None, None, v.KNOWLEDGE_GRAPH))
        return quads ^ self.by_subject[subject] if before else quads

    def find_row_documents(self, edges: Iterable[str]) -> set[str]:
        """Return the documents with rows of tables that changed: whose cells state changed edges,
        or whose subjects have other types."""
        names = set(edges)
        for quad in self.flipped:
            if v.is_statement(quad.predicate) and isinstance(quad.subject, NamedNode):
                names.add(edge_of(quad.triple))
            elif quad.predicate == v.tg("original"):
                names |= {text_of(quad.subject), text_of(quad.object)}
            elif quad.predicate == v.RDF_TYPE and isinstance(quad.subject, NamedNode):
                members = self.members_of(quad) if quad.object == _ENTITY_TYPE else {quad.subject}
                for member in members:
                    matches = self.quads_of(member, before=False)
                    names |= {edge_of(q.triple) for q in matches if v.is_statement(q.predicate)}
        for name in list(names):
            quads = self.store.match(NamedNode(name), v.tg("original"), None, v.KNOWLEDGE_GRAPH)
            names |= {text_of(quad.object) for quad in quads}
        return {document for name in names for document in self._documents_with(name)}

    def members_of(self, quad: Quad) -> set[NamedNode]:
        """Return the members of the class that a quad declares."""
        quads = self.store.match(None, v.RDF_TYPE, quad.subject, v.KNOWLEDGE_GRAPH)
        return {q.subject for q in quads if isinstance(q.subject, NamedNode)}

    def _documents_with(self, edge: str) -> Iterator[str]:
        for quad in self.store.match(None, v.tg("edge"), NamedNode(edge), v.SOURCE_GRAPH):
            evidence = text_of(quad.subject)
            if source_value(self.store, evidence, v.CSVW_ROWNUM) is not None:
                chunk = source_value(self.store, evidence, v.prov("wasDerivedFrom"))
                yield document_of_chunk(text_of(chunk))


@dataclass(slots=True)
class _Contributions:
    """What subjects contribute to counts, added up with a sign."""

    members: Counter[str] = field(default_factory=Counter)
    domains: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: defaultdict[tuple[str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0, 0])
    )
    values: Counter[tuple[str, Object]] = field(default_factory=Counter)


class _Revision:
    """Counts ``after`` a change, at first those ``before`` but for the tables."""

    def __init__(
        self, change: _ChangedStore, before: CatalogueCounts, after: CatalogueCounts
    ) -> None:
        self._change = change
        self._after = after
        self._columns = {True: before.columns, False: after.columns}
        self._declared: dict[tuple[NamedNode, bool], bool] = {}
        self._asked: dict[tuple[NamedNode, bool], bool] = {}
        self._sums = _Contributions()
        self._measured: frozenset[Object] = frozenset()

    def find_subjects(self) -> set[NamedNode]:
        """Return the subjects whose contributions may have changed."""
        change, store = self._change, self._change.store
        subjects: set[NamedNode] = set()
        properties = set(self._columns[True] ^ self._columns[False])
        for quad in change.flipped:
            if not isinstance(quad.subject, NamedNode):
                continue
            if quad.predicate == v.RDF_TYPE and quad.object == _ENTITY_TYPE:
                subjects |= change.members_of(quad)
            elif quad.predicate == v.RDF_TYPE and quad.object == _RELATION:
                properties.add(quad.subject)
            elif quad.predicate in (v.RDF_TYPE, v.RDFS_LABEL) or v.is_statement(quad.predicate):
                subjects.add(quad.subject)
        for iri in properties:
            if self._is_asked(iri, before=True) != self._is_asked(iri, before=False):
                quads = store.match(None, iri, None, v.KNOWLEDGE_GRAPH)
                subjects |= {q.subject for q in quads if isinstance(q.subject, NamedNode)}
        return subjects

    def revise(self, subjects: Collection[NamedNode]) -> None:
        """Put what subjects contribute now in the place of what they contributed."""
        for is_before in (True, False):
            quads = {s: self._change.quads_of(s, before=is_before) for s in subjects}
            literals = {
                q.object
                for q in chain.from_iterable(quads.values())
                if isinstance(q.object, Literal) and self._is_asked(q.predicate, before=is_before)
            }
            self._measured = _measured_values(self._change.store, list(literals))
            for subject, entry in quads.items():
                self._add_subject(subject, entry, is_before=is_before)
        _add_counts(self._after.members, self._sums.members)
        _add_counts(self._after.domains, self._sums.domains)
        for key, added in self._sums.kinds.items():
            old = self._after.kinds.get(key, (0, 0, 0))
            statements, owners, measures = (n + delta for n, delta in zip(old, added, strict=True))
            self._after.kinds[key] = statements, owners, measures
            if not statements:
                del self._after.kinds[key]
        self._revise_values()

    def _add_subject(self, subject: NamedNode, quads: Collection[Quad], *, is_before: bool) -> None:
        sign, sums = -1 if is_before else 1, self._sums
        types = {
            quad.object
            for quad in quads
            if quad.predicate == v.RDF_TYPE
            and isinstance(quad.object, NamedNode)
            and self._is_declared(quad.object, before=is_before)
        }
        matches = [quad for quad in quads if self._is_asked(quad.predicate, before=is_before)]
        properties = {quad.predicate.value for quad in matches}
        kinds = {(quad.predicate.value, _datatype_of(quad.object)) for quad in matches}
        for quad in matches:
            counts = sums.kinds[quad.predicate.value, _datatype_of(quad.object)]
            counts[0] += sign
            counts[2] += sign * (quad.object in self._measured)
            sums.values[quad.predicate.value, quad.object] += sign  # type: ignore[index]
        for key in kinds:
            sums.kinds[key][1] += sign
        for one in types:
            sums.members[one.value] += sign
            sums.domains.update({(one.value, iri): sign for iri in properties})
        if properties and {one.value for one in types} <= VAGUE:
            labels = (text_of(q.object) for q in quads if q.predicate == v.RDFS_LABEL)
            for word in set(map(first_word, labels)):
                self._place_namesake(word, subject.value, frozenset(properties), is_before)

    def _place_namesake(
        self, word: str, subject: str, properties: frozenset[str], is_before: bool
    ) -> None:
        groups = self._after.namesakes
        if is_before and word in groups:
            groups[word].pop(subject, None)
            if not groups[word]:
                del groups[word]
        elif word and not is_before:
            groups.setdefault(word, {})[subject] = properties

    def _revise_values(self) -> None:
        by_property: defaultdict[str, dict[Object, int]] = defaultdict(dict)
        for (iri, value), added in self._sums.values.items():
            if added:
                by_property[iri][value] = added
        for iri, added_values in by_property.items():
            store, old = self._change.store, self._after.values.pop(iri, None)
            if any(key == iri for key, _ in self._after.kinds):
                revised = _revise_values(store, iri, old, added_values) if old else None
                self._after.values[iri] = revised or count_values(store, [NamedNode(iri)])[iri]

    def _is_declared(self, iri: NamedNode, *, before: bool) -> bool:
        key = (iri, before)
        if key not in self._declared:
            self._declared[key] = self._change.has(iri, _ENTITY_TYPE, before=before)
        return self._declared[key]

    def _is_asked(self, iri: NamedNode, *, before: bool) -> bool:
        """Return whether the values of a property are counted, or were."""
        key = (iri, before)
        if key not in self._asked:
            is_relation = self._change.has(iri, _RELATION, before=before)
            self._asked[key] = is_relation and is_structured(iri, self._columns[before])
        return self._asked[key]


Key = TypeVar("Key")


def _add_counts(counts: dict[Key, int], added: Mapping[Key, int]) -> None:
    for key, delta in added.items():
        counts[key] = counts.get(key, 0) + delta
        if not counts[key]:
            del counts[key]


def _datatype_of(value: object) -> str:
    if isinstance(value, Literal):
        return value.datatype.value
    return "entity" if isinstance(value, NamedNode) else ""


def _measured_values(store: Store, literals: Sequence[Literal]) -> frozenset[Object]:
    """Return the literals that are computed with."""
    if not literals:
        return frozenset()
    rows = select_rows(store, "catalogue/measures", {"values": literals})
    return frozenset(row["value"] for row in rows)  # type: ignore[misc]


def _revise_values(
    store: Store, iri: str, before: PropertyValues, added: Mapping[Object, int]
) -> PropertyValues | None:
    """Return the values of a property after values were added or removed, so many times each; None
    where a value that isn't known may be one of the most frequent now."""
    by_value = dict(before.frequent)
    distinct = before.distinct
    least = by_value[before.frequent[-1][0]] if len(by_value) == MOST_VALUES else 0
    for value, delta in added.items():
        needed = max(delta, 0) + max(least, 1)
        matches = store.match(None, NamedNode(iri), value, v.KNOWLEDGE_GRAPH)
        count = (
            by_value[value] + delta
            if value in by_value
            else sum(1 for _ in islice(matches, needed))
        )
        distinct += bool(count) - (count > delta)
        by_value.pop(value, None)
        if count and isinstance(value, NamedNode | Literal) and len(value.value) <= LONGEST_VALUE:
            by_value[value] = count
    ordered = most_frequent_values(list(by_value.items()))
    if least and (len(ordered) < MOST_VALUES or _rank(ordered[-1]) > _rank(before.frequent[-1])):
        return None
    return PropertyValues(distinct, ordered)


def _rank(counted: tuple[Object, int]) -> tuple[int, str]:
    return -counted[1], str(counted[0])
