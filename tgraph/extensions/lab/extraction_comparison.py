"""Comparison of two extractions from the same texts: items found by only one extraction, and
items found by both with different places, wording, types or weights.

Documents are equal if their bytes are equal. Compared is everything read from a text, under
names used in the text, before name merges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated
from typing import Literal as Choice

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import NothingIndexedError, UsageError
from tgraph.explain.as_of.names import NamesAsOf, values_of
from tgraph.explain.trace.documents import DocumentSummary, find_document, list_documents
from tgraph.index.sources import (
    Texts,
    chunks_of_document,
    derived_items,
    document_of_chunk,
    page_of_chunk,
    text_value,
)
from tgraph.index.standing_knowledge import (
    Properties,
    commonest_value,
    distinct_values,
    properties_of,
)
from tgraph.librarian import Librarian
from tgraph.rendering import brief_repr
from tgraph.store.base import Store, text_of
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.snapshot import Snapshot

Difference = Choice["places", "names", "types", "descriptions", "weight", "status", "dates"]


@dataclass(frozen=True, slots=True, order=True)
class QuotedPlace:
    """Page characters (or document characters without pages).

    Without a recorded position: a whole passage, without quote."""

    page: int | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An extraction's view of an entity, fact or claim.

    ``weight`` sums the strengths of a fact's places; ``status`` and ``dates`` belong to claims."""

    places: tuple[QuotedPlace, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    descriptions: tuple[str, ...]
    weight: float
    status: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """A compared entity, fact or claim: IRI (for claims the first extraction's), label,
    contents found by each extraction (None if not found), and differences."""

    item: str
    label: str
    first: FoundItem | None
    second: FoundItem | None
    differs: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """Item counts found by each extraction and by both.

    ``jaccard`` is the shared fraction of all items found, None if nothing was found."""

    first: int
    second: int
    both: int
    jaccard: float | None = field(init=False)

    def __post_init__(self) -> None:
        either = self.first + self.second - self.both
        object.__setattr__(self, "jaccard", self.both / either if either else None)


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """A document present in both collections, with both paths.

    In the agreement, ``pairs`` are entity pairs linked by any fact, regardless of relation and
    direction."""

    document: str
    title: str
    paths: tuple[str, str]
    entities: tuple[ComparedItem, ...]
    facts: tuple[ComparedItem, ...]
    claims: tuple[ComparedItem, ...]
    agreement: Mapping[str, Agreement]


@dataclass(frozen=True, slots=True)
class ExtractionAgent:
    """An extraction agent, with its passage count and prompts: prompt names plus leading digits
    of their text hashes."""

    agent: str
    prompts: tuple[str, ...]
    passages: int


@dataclass(frozen=True, slots=True)
class ExtractionComparison:
    """Comparison between extractions from the collections ``names``.

    ``only`` lists paths of documents standing in a single collection. ``agreement`` sums the
    agreements of documents, each counted separately."""

    names: tuple[str, str]
    readings: tuple[tuple[ExtractionAgent, ...], tuple[ExtractionAgent, ...]]
    documents: tuple[ComparedDocument, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    agreement: Annotated[Mapping[str, Agreement], "entities, pairs, facts and claims"]

    __repr__ = brief_repr


KINDS = ("entities", "pairs", "facts", "claims")


def compare_extractions(
    names: tuple[str, str],
    stores: tuple[Store, Store],
    librarians: tuple[Librarian, Librarian],
    document: str = "",
) -> ExtractionComparison:
    """Return a comparison of extractions in two stores, restricted to ``document`` (named as
    for ``find_document``) if given.

    Raise ``UsageError`` if the document is missing from either store, ``EvidenceError`` if a
    quote differs from the stored text."""
    standing = [_standing_documents(store) for store in stores]
    shared = standing[0].keys() & standing[1].keys()
    chosen = _find_shared_document(document, stores, names, shared) if document else shared
    common = sorted(chosen, key=lambda iri: (standing[0][iri].path, iri))
    sides = [_Side(*store_pair) for store_pair in zip(stores, librarians, strict=True)]
    documents = tuple(_compare_document(iri, sides, standing) for iri in common)
    first_readings, second_readings = (_sort_readings(side.readings(set(common))) for side in sides)
    unshared_paths = [
        () if document else tuple(sorted(d.path for iri, d in mine.items() if iri not in theirs))
        for mine, theirs in (standing, reversed(standing))
    ]
    total = {kind: _sum_agreements(d.agreement[kind] for d in documents) for kind in KINDS}
    return ExtractionComparison(
        names,
        (first_readings, second_readings),
        documents,
        (unshared_paths[0], unshared_paths[1]),
        total,
    )


def _find_shared_document(
    name: str, stores: Iterable[Store], names: tuple[str, str], both: Collection[str]
) -> set[str]:
    """Return the IRI of a named document, required to stand in both collections."""
    document_iris = {find_document(store, name).document for store in stores}
    if len(document_iris) > 1 or not document_iris <= set(both):
        raise UsageError(
            f"{name!r} is no document that stands in both {names[0]} and {names[1]} with the same"
            " content.",
            "The comparison of all documents lists those that do.",
        )
    return document_iris


def _sort_readings(readings: Iterable[ExtractionAgent]) -> tuple[ExtractionAgent, ...]:
    return tuple(sorted(readings, key=lambda r: (r.agent, r.prompts)))


def _standing_documents(store: Store) -> dict[str, DocumentSummary]:
    return {d.document: d for d in reversed(list_documents(store)) if d.standing}


def _sum_agreements(counts: Iterable[Agreement]) -> Agreement:
    every = list(counts)
    return Agreement(
        sum(a.first for a in every), sum(a.second for a in every), sum(a.both for a in every)
    )


def _compare_document(
    document: str, sides: Sequence[_Side], known: Sequence[Mapping[str, DocumentSummary]]
) -> ComparedDocument:
    first, second = (side.read(document) for side in sides)
    return ComparedDocument(
        document,
        known[0][document].title,
        (known[0][document].path, known[1][document].path),
        tuple(_compare_items(first.entities, second.entities)),
        tuple(_compare_items(first.facts, second.facts)),
        tuple(_compare_items(first.claims, second.claims)),
        {
            "entities": _count_agreement(first.entities, second.entities),
            "pairs": _count_agreement(first.pairs, second.pairs),
            "facts": _count_agreement(first.facts, second.facts),
            "claims": _count_agreement(first.claims, second.claims),
        },
    )


def _count_agreement(one: Iterable[object], other: Iterable[object]) -> Agreement:
    first, second = set(one), set(other)
    return Agreement(len(first), len(second), len(first & second))


def _compare_items(one: _Finds, other: _Finds) -> list[ComparedItem]:
    items = [_compare_item(one.get(key), other.get(key)) for key in {**one, **other}]
    return sorted(items, key=lambda item: (item.label, item.item))


def _compare_item(one: _NamedFind | None, other: _NamedFind | None) -> ComparedItem:
    present = one or other
    assert present is not None
    if one is None or other is None:
        first, second = (find.found if find else None for find in (one, other))
        return ComparedItem(present.iri, present.label, first, second)
    names: list[Difference] = [
        "places",
        "names",
        "types",
        "descriptions",
        "weight",
        "status",
        "dates",
    ]
    differs = (n for n in names if getattr(one.found, n) != getattr(other.found, n))
    return ComparedItem(present.iri, present.label, one.found, other.found, tuple(differs))


# --- one extraction ---


@dataclass(frozen=True, slots=True)
class _NamedFind:
    iri: str
    label: str
    found: FoundItem


_Finds = Mapping[object, _NamedFind]


@dataclass(frozen=True, slots=True)
class _DocumentExtraction:
    """Document contents read by an extraction, grouped by identity keys."""

    entities: _Finds
    facts: _Finds
    claims: _Finds
    pairs: frozenset[object]


class _Side:
    """Reads one extraction."""

    def __init__(self, store: Store, librarian: Librarian) -> None:
        self._store = store
        self._texts = Texts(store, librarian)
        self._names = NamesAsOf(store)

    def read(self, document: str) -> _DocumentExtraction:
        entities, facts, claims = self._group_evidence(document)
        edges = self._names.edges(sorted(facts))
        ends = (frozenset((edge.subject, edge.object)) for edge in edges.values())
        return _DocumentExtraction(
            {
                iri: _NamedFind(iri, commonest_value(evidence, "name"), self._create_item(evidence))
                for iri, evidence in entities.items()
            },
            {
                iri: _NamedFind(iri, " — ".join(edge.labels), self._create_item(facts[iri]))
                for iri, edge in edges.items()
            },
            {
                key: _NamedFind(
                    min(item["claim"][0].value for item in evidence),
                    commonest_value(evidence, "description"),
                    self._create_item(evidence),
                )
                for key, evidence in claims.items()
            },
            frozenset(ends),
        )

    def _group_evidence(self, document: str) -> tuple[dict[str, list[Properties]], ...]:
        entities, facts, claims = (defaultdict[str, list[Properties]](list) for _ in range(3))
        for item in self._read_evidence(document):
            if "entity" in item:
                entities[item["entity"][0].value].append(item)
            elif "edge" in item:
                facts[item["edge"][0].value].append(item)
            elif "claim" in item:
                claims[_claim_key(item)].append(item)
        return entities, facts, claims

    def _read_evidence(self, document: str) -> Iterator[Properties]:
        for chunk in sorted(chunks_of_document(self._store, document)):
            for evidence in sorted(derived_items(self._store, chunk, "Evidence")):
                yield properties_of(self._store, NamedNode(evidence))

    def _create_item(self, said: Sequence[Properties]) -> FoundItem:
        return FoundItem(
            places=tuple(sorted(set(map(self._quoted_place, said)), key=_by_place)),
            names=tuple(distinct_values(said, "name")),
            types=tuple(distinct_values(said, "entityType") or distinct_values(said, "claimType")),
            descriptions=tuple(distinct_values(said, "description")),
            weight=sum(float(term.value) for item in said for term in item.get("strength", ())),
            status=tuple(distinct_values(said, "claimStatus")),
            dates=tuple(distinct_values(said, "claimStart") + distinct_values(said, "claimEnd")),
        )

    def _quoted_place(self, item: Properties) -> QuotedPlace:
        chunk = item["wasDerivedFrom"][0].value
        start = int(item["charOffset"][0].value)
        end = start + int(item["charLength"][0].value)
        recorded = item["quote"][0].value if "quote" in item else None
        quote = self._texts.quote(chunk, start, end, recorded)
        return QuotedPlace(page_of_chunk(chunk), start, end, "" if recorded is None else quote)

    # --- who read it ---

    def readings(self, documents: Collection[str]) -> Iterator[ExtractionAgent]:
        """Yield agents that read the documents, with their prompts and passage counts."""
        passages: defaultdict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
        for activity, chunks in self._extraction_chunks.items():
            document_chunks = {chunk for chunk in chunks if document_of_chunk(chunk) in documents}
            for agent in (
                self._read_iris(activity, v.prov("wasAssociatedWith")) if document_chunks else []
            ):
                name = text_value(self._store, agent, v.RDFS_LABEL)
                version = text_value(self._store, agent, v.tg("componentVersion"))
                agent_text = " ".join(filter(None, (name, version)))
                passages[agent_text, tuple(sorted(self._prompt_names(activity)))] |= document_chunks
        for (agent_name, prompts), read in passages.items():
            yield ExtractionAgent(agent_name, prompts, len(read))

    @cached_property
    def _extraction_chunks(self) -> dict[str, list[str]]:
        """Return chunks read by each extraction."""
        chunks_by_activity = {}
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Extraction"), v.SOURCE_GRAPH):
            activity = text_of(quad.subject)
            chunks_by_activity[activity] = self._read_iris(activity, v.prov("used"))
        return chunks_by_activity

    def _prompt_names(self, activity: str) -> Iterator[str]:
        for association in self._read_iris(activity, v.prov("qualifiedAssociation")):
            for plan in self._read_iris(association, v.prov("hadPlan")):
                key = text_value(self._store, plan, v.tg("contentHash"))
                yield f"{text_value(self._store, plan, v.RDFS_LABEL)} {key[:8]}"

    def _read_iris(self, subject: str, predicate: NamedNode) -> list[str]:
        return values_of(self._store, subject, predicate, v.SOURCE_GRAPH, NamedNode)


def _claim_key(item: Properties) -> str:
    """Return a claim's identity key: subject, object and type."""
    parts = (item.get(name, ()) for name in ("subject", "object", "claimType"))
    return v.digest_parts(*(terms[0].value if terms else "" for terms in parts))


def _by_place(place: QuotedPlace) -> tuple[int, int, int]:
    return place.page or 0, place.start, place.end


def compare_collections(
    root: str | Path, first: str, second: str, *, document: str = ""
) -> ExtractionComparison:
    """Compare extractions from documents standing in both collections, as last published.

    ``document`` limits the comparison to a single document. Raises ``UsageError`` if there is
    no such document in both, or if both names are the same; ``StoreError`` for an unknown
    collection, or a collection without an indexed document."""
    if first == second:
        raise UsageError("That is one collection.", "Name two; `tgraph collections list` has them.")
    graph = GraphFolder.open(Path(root))
    folders = [graph.collection(name) for name in (first, second)]
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(_open_indexed(folder))).store for folder in folders]
        librarians = [Librarian(folder.librarian) for folder in folders]
        return compare_extractions(
            (first, second), (stores[0], stores[1]), (librarians[0], librarians[1]), document
        )


def _open_indexed(folder: CollectionFolder) -> Snapshot:
    snapshot = Snapshot.open(folder)
    if snapshot is None or not snapshot.pointer.generation:
        if snapshot is not None:
            snapshot.close()
        raise NothingIndexedError(
            f"Nothing has been indexed into the collection {folder.name!r} yet.",
            f"Run `tgraph index PATH... -C {folder.name}` first.",
        )
    return snapshot
