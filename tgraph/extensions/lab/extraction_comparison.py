"""Two extractions of the same texts side by side: what only one of them found, and what both found
but at other places, in other words, as another type or with another weight.

Documents are the same where their bytes are. What is compared is what was read from a text, under
the names that the text has, before names were merged.
"""

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
    derived,
    document_of_chunk,
    page_of_chunk,
    text_value,
)
from tgraph.index.standing_knowledge import Properties, commonest, distinct, properties_of
from tgraph.librarian import Librarian
from tgraph.rendering import brief
from tgraph.store.base import Store, text_of
from tgraph.store.folder import CollectionFolder, GraphFolder
from tgraph.store.snapshot import Snapshot

Difference = Choice["places", "names", "types", "descriptions", "weight", "status", "dates"]


@dataclass(frozen=True, slots=True, order=True)
class QuotedPlace:
    """Characters of a page (of the document where it has none); those of a whole passage, where
    nothing says where in it, without the quote."""

    page: int | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class FoundItem:
    """What one extraction says of an entity, a fact or a claim. ``weight`` is the sum of the
    strengths of a fact's places; ``status`` and ``dates`` are those of claims."""

    places: tuple[QuotedPlace, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    descriptions: tuple[str, ...]
    weight: float
    status: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedItem:
    """An entity, a fact or a claim of a document: the IRI (of a claim the first one's), what it is
    in words, what each extraction says of it (None where it did not find it), and in what these
    differ."""

    item: str
    label: str
    first: FoundItem | None
    second: FoundItem | None
    differs: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many each extraction found, and how many both did; ``jaccard`` is the share of what
    either found that both found, None where there is nothing."""

    first: int
    second: int
    both: int
    jaccard: float | None = field(init=False)

    def __post_init__(self) -> None:
        either = self.first + self.second - self.both
        object.__setattr__(self, "jaccard", self.both / either if either else None)


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """A document of both collections, with its path in each. In the agreement ``pairs`` are those
    that some fact links, whatever it says of them and in whichever direction."""

    document: str
    title: str
    paths: tuple[str, str]
    entities: tuple[ComparedItem, ...]
    facts: tuple[ComparedItem, ...]
    claims: tuple[ComparedItem, ...]
    agreement: Mapping[str, Agreement]


@dataclass(frozen=True, slots=True)
class ExtractionAgent:
    """Who read how many passages, by which prompts: their names with the first digits of the hash
    of their text."""

    agent: str
    prompts: tuple[str, ...]
    passages: int


@dataclass(frozen=True, slots=True)
class ExtractionComparison:
    """Two extractions, of the collections ``names``. ``only`` are the paths of documents that stand
    in one of them alone. ``agreement`` adds up what the documents have, each counted by itself."""

    names: tuple[str, str]
    readings: tuple[tuple[ExtractionAgent, ...], tuple[ExtractionAgent, ...]]
    documents: tuple[ComparedDocument, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    agreement: Annotated[Mapping[str, Agreement], "entities, pairs, facts and claims"]

    __repr__ = brief


KINDS = ("entities", "pairs", "facts", "claims")


def compare_extractions(
    names: tuple[str, str],
    stores: tuple[Store, Store],
    librarians: tuple[Librarian, Librarian],
    document: str = "",
) -> ExtractionComparison:
    """The extractions in two stores compared; of a ``document`` (named as for ``find_document``)
    alone where it is given.

    ``UsageError`` where the document is not in both, ``EvidenceError`` where a quote is not what
    the stored text says.
    """
    known = [_standing(store) for store in stores]
    both = known[0].keys() & known[1].keys()
    wanted = _wanted(document, stores, names, both) if document else both
    common = sorted(wanted, key=lambda iri: (known[0][iri].path, iri))
    sides = [_Side(*each) for each in zip(stores, librarians, strict=True)]
    documents = tuple(_compared(iri, sides, known) for iri in common)
    one, other = (_sorted(side.readings(set(common))) for side in sides)
    left = [
        () if document else tuple(sorted(d.path for iri, d in mine.items() if iri not in theirs))
        for mine, theirs in (known, reversed(known))
    ]
    total = {kind: _sum(d.agreement[kind] for d in documents) for kind in KINDS}
    return ExtractionComparison(names, (one, other), documents, (left[0], left[1]), total)


def _wanted(
    name: str, stores: Iterable[Store], names: tuple[str, str], both: Collection[str]
) -> set[str]:
    """The document of that name, which must stand in both."""
    found = {find_document(store, name).document for store in stores}
    if len(found) > 1 or not found <= set(both):
        raise UsageError(
            f"{name!r} is no document that stands in both {names[0]} and {names[1]} with the same"
            " content.",
            "The comparison of all documents lists those that do.",
        )
    return found


def _sorted(readings: Iterable[ExtractionAgent]) -> tuple[ExtractionAgent, ...]:
    return tuple(sorted(readings, key=lambda r: (r.agent, r.prompts)))


def _standing(store: Store) -> dict[str, DocumentSummary]:
    return {d.document: d for d in reversed(list_documents(store)) if d.standing}


def _sum(counts: Iterable[Agreement]) -> Agreement:
    every = list(counts)
    return Agreement(
        sum(a.first for a in every), sum(a.second for a in every), sum(a.both for a in every)
    )


def _compared(
    document: str, sides: Sequence[_Side], known: Sequence[Mapping[str, DocumentSummary]]
) -> ComparedDocument:
    one, other = (side.read(document) for side in sides)
    return ComparedDocument(
        document,
        known[0][document].title,
        (known[0][document].path, known[1][document].path),
        tuple(_items(one.entities, other.entities)),
        tuple(_items(one.facts, other.facts)),
        tuple(_items(one.claims, other.claims)),
        {
            "entities": _agreement(one.entities, other.entities),
            "pairs": _agreement(one.pairs, other.pairs),
            "facts": _agreement(one.facts, other.facts),
            "claims": _agreement(one.claims, other.claims),
        },
    )


def _agreement(one: Iterable[object], other: Iterable[object]) -> Agreement:
    first, second = set(one), set(other)
    return Agreement(len(first), len(second), len(first & second))


def _items(one: _Finds, other: _Finds) -> list[ComparedItem]:
    found = [_item(one.get(key), other.get(key)) for key in {**one, **other}]
    return sorted(found, key=lambda item: (item.label, item.item))


def _item(one: _NamedFind | None, other: _NamedFind | None) -> ComparedItem:
    named = one or other
    assert named is not None
    if one is None or other is None:
        first, second = (each.found if each else None for each in (one, other))
        return ComparedItem(named.iri, named.label, first, second)
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
    return ComparedItem(named.iri, named.label, one.found, other.found, tuple(differs))


# --- one extraction ---


@dataclass(frozen=True, slots=True)
class _NamedFind:
    iri: str
    label: str
    found: FoundItem


_Finds = Mapping[object, _NamedFind]


@dataclass(frozen=True, slots=True)
class _DocumentExtraction:
    """What was read from a document, by what makes two of it the same."""

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
        entities, facts, claims = self._grouped(document)
        edges = self._names.edges(sorted(facts))
        ends = (frozenset((edge.subject, edge.object)) for edge in edges.values())
        return _DocumentExtraction(
            {
                iri: _NamedFind(iri, commonest(said, "name"), self._found(said))
                for iri, said in entities.items()
            },
            {
                iri: _NamedFind(iri, " — ".join(edge.labels), self._found(facts[iri]))
                for iri, edge in edges.items()
            },
            {
                key: _NamedFind(
                    min(item["claim"][0].value for item in said),
                    commonest(said, "description"),
                    self._found(said),
                )
                for key, said in claims.items()
            },
            frozenset(ends),
        )

    def _grouped(self, document: str) -> tuple[dict[str, list[Properties]], ...]:
        entities, facts, claims = (defaultdict[str, list[Properties]](list) for _ in range(3))
        for item in self._evidence(document):
            if "entity" in item:
                entities[item["entity"][0].value].append(item)
            elif "edge" in item:
                facts[item["edge"][0].value].append(item)
            elif "claim" in item:
                claims[_claim_key(item)].append(item)
        return entities, facts, claims

    def _evidence(self, document: str) -> Iterator[Properties]:
        for chunk in sorted(chunks_of_document(self._store, document)):
            for evidence in sorted(derived(self._store, chunk, "Evidence")):
                yield properties_of(self._store, NamedNode(evidence))

    def _found(self, said: Sequence[Properties]) -> FoundItem:
        return FoundItem(
            places=tuple(sorted(set(map(self._place, said)), key=_by_place)),
            names=tuple(distinct(said, "name")),
            types=tuple(distinct(said, "entityType") or distinct(said, "claimType")),
            descriptions=tuple(distinct(said, "description")),
            weight=sum(float(term.value) for item in said for term in item.get("strength", ())),
            status=tuple(distinct(said, "claimStatus")),
            dates=tuple(distinct(said, "claimStart") + distinct(said, "claimEnd")),
        )

    def _place(self, item: Properties) -> QuotedPlace:
        chunk = item["wasDerivedFrom"][0].value
        start = int(item["charOffset"][0].value)
        end = start + int(item["charLength"][0].value)
        recorded = item["quote"][0].value if "quote" in item else None
        quote = self._texts.quote(chunk, start, end, recorded)
        return QuotedPlace(page_of_chunk(chunk), start, end, "" if recorded is None else quote)

    # --- who read it ---

    def readings(self, documents: Collection[str]) -> Iterator[ExtractionAgent]:
        """Who read the documents, and by which prompts."""
        passages: defaultdict[tuple[str, tuple[str, ...]], set[str]] = defaultdict(set)
        for activity, chunks in self._activities.items():
            own = {chunk for chunk in chunks if document_of_chunk(chunk) in documents}
            for agent in self._values(activity, v.prov("wasAssociatedWith")) if own else []:
                name = text_value(self._store, agent, v.RDFS_LABEL)
                version = text_value(self._store, agent, v.tg("componentVersion"))
                told = " ".join(filter(None, (name, version)))
                passages[told, tuple(sorted(self._prompts(activity)))] |= own
        for (who, prompts), read in passages.items():
            yield ExtractionAgent(who, prompts, len(read))

    @cached_property
    def _activities(self) -> dict[str, list[str]]:
        """The chunks that each extraction read."""
        found = {}
        for quad in self._store.match(None, v.RDF_TYPE, v.tg("Extraction"), v.SOURCE_GRAPH):
            activity = text_of(quad.subject)
            found[activity] = self._values(activity, v.prov("used"))
        return found

    def _prompts(self, activity: str) -> Iterator[str]:
        for association in self._values(activity, v.prov("qualifiedAssociation")):
            for plan in self._values(association, v.prov("hadPlan")):
                key = text_value(self._store, plan, v.tg("contentHash"))
                yield f"{text_value(self._store, plan, v.RDFS_LABEL)} {key[:8]}"

    def _values(self, subject: str, predicate: NamedNode) -> list[str]:
        return values_of(self._store, subject, predicate, v.SOURCE_GRAPH, NamedNode)


def _claim_key(item: Properties) -> str:
    """What makes two claims the same: who, about whom, and of what sort."""
    parts = (item.get(name, ()) for name in ("subject", "object", "claimType"))
    return v.digest(*(terms[0].value if terms else "" for terms in parts))


def _by_place(place: QuotedPlace) -> tuple[int, int, int]:
    return place.page or 0, place.start, place.end


def compare_collections(
    root: str | Path, first: str, second: str, *, document: str = ""
) -> ExtractionComparison:
    """What was read from the documents that stand in both collections (of the ``document`` alone,
    where one is named) side by side, each collection as it was last published.

    ``UsageError`` where there is no such document in both, or both names are the same;
    ``StoreError`` for no such collection, or one into which nothing has been indexed.
    """
    if first == second:
        raise UsageError("That is one collection.", "Name two; `tgraph collections list` has them.")
    graph = GraphFolder.open(Path(root))
    folders = [graph.collection(name) for name in (first, second)]
    with ExitStack() as opened:
        stores = [opened.enter_context(closing(_indexed(folder))).store for folder in folders]
        librarians = [Librarian(folder.librarian) for folder in folders]
        return compare_extractions(
            (first, second), (stores[0], stores[1]), (librarians[0], librarians[1]), document
        )


def _indexed(folder: CollectionFolder) -> Snapshot:
    snapshot = Snapshot.open(folder)
    if snapshot is None or not snapshot.pointer.generation:
        if snapshot is not None:
            snapshot.close()
        raise NothingIndexedError(
            f"Nothing has been indexed into the collection {folder.name!r} yet.",
            f"Run `tgraph index PATH... -C {folder.name}` first.",
        )
    return snapshot
