"""Entity names: merges with grounds, and splits made by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal as Choice

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import UnknownNameError, UsageError
from tgraph.explain.as_of.names import NamesAsOf
from tgraph.extract.resolution import describe_same_name, name_key
from tgraph.index.evidence import documents_of
from tgraph.index.sources import document_of_chunk, standing_documents, text_value
from tgraph.index.standing_knowledge import StandingEvidence, commonest_value
from tgraph.record.merges import (
    Parting,
    read_partings,
    standing_merges,
    standing_pairs,
    standing_splits,
)
from tgraph.retrieve.labels import local_name
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class Ground:
    """A ground for merging two names: ``same`` names, ``name`` also called ``alias``,
    ``stated`` by a graph, or merged by ``hand``.

    ``evidence`` lists supporting places, ``paths`` their documents."""

    kind: Choice["same", "alias", "stated", "hand"]
    name: str
    alias: str
    evidence: tuple[str, ...]
    paths: tuple[str, ...]

    @property
    def text(self) -> str:
        if self.kind == "same":
            return describe_same_name(self.name, self.alias)
        if self.kind == "hand":
            return f"{self.name!r} and {self.alias!r} were made one by hand"
        remainder = f" and {len(self.paths) - 1} more" if self.paths[1:] else ""
        relation = "is stated to be" if self.kind == "stated" else "is also called"
        return f"{self.name!r} {relation} {self.alias!r} ({self.paths[0]}{remainder})"


@dataclass(frozen=True, slots=True)
class Merge:
    """A merged name: absorbed entity, canonical entity, merge time and grounds."""

    merge: str
    absorbed: str
    absorbed_name: str
    canonical: str
    canonical_name: str
    merged: str
    grounds: tuple[Ground, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """Two entities split by a user. ``person`` is blank if unconfigured."""

    split: str
    entities: tuple[str, str]
    names: tuple[str, str]
    reason: str
    person: str
    decided: str


@dataclass(frozen=True, slots=True)
class BearerOfName:
    """A bearer of a name that several bear: the name in the texts, the bearer's entity and label,
    paths of the documents that mean the bearer, and reason, person and time of the parting.

    ``person`` is blank where the documents tell the bearers apart; ``evidence`` lists what does."""

    parting: str
    name: str
    entity: str
    label: str
    paths: tuple[str, ...]
    reason: str
    person: str
    by_hand: bool
    decided: str
    evidence: tuple[str, ...]


class EntityMerges:
    """Reader for merges and splits in one store state."""

    def __init__(self, store: Store) -> None:
        standing = standing_documents(store)
        self._store = store
        self._texts = StandingEvidence(store, lambda chunk: document_of_chunk(chunk) in standing)
        self._recalled = NamesAsOf(store)
        self._merges = standing_merges(store)
        self._joins = set(standing_pairs(store, "Join", "together").values())

    def merges(self) -> list[Merge]:
        """Return standing merges, sorted by canonical and absorbed entity names."""
        merges = [
            self._read_merge(quad.subject.value)
            for quad in self._store.match(None, v.RDF_TYPE, v.tg("Merge"), v.SOURCE_GRAPH)
            if isinstance(quad.subject, NamedNode)
            and not text_value(self._store, quad.subject.value, v.prov("invalidatedAtTime"))
        ]
        return sorted(merges, key=lambda m: (m.canonical_name, m.absorbed_name, m.absorbed))

    def splits(self) -> list[Split]:
        """Return standing splits, sorted by entity names."""
        splits = [self._read_split(*item) for item in standing_splits(self._store).items()]
        return sorted(splits, key=lambda s: (s.names, s.split))

    def bearers(self) -> list[BearerOfName]:
        """Return bearers of names that several bear, sorted by name and label."""
        partings = [self._read_bearer(p) for p in read_partings(self._store) if p.stands]
        return sorted(partings, key=lambda b: (b.name, b.label, b.parting))

    def _read_bearer(self, parting: Parting) -> BearerOfName:
        bearer = parting.bearer
        activity = text_value(self._store, parting.iri, v.prov("wasGeneratedBy"))
        quotes = [text_value(self._store, ground, v.tg("quote")) for ground in bearer.grounds]
        told = "; ".join(f"“{quote}”" for quote in dict.fromkeys(quotes))
        return BearerOfName(
            parting=parting.iri,
            name=self._recall_name(bearer.name),
            entity=bearer.iri,
            label=bearer.label,
            paths=tuple(sorted(p for _, p in documents_of(self._store, bearer.documents).values())),
            reason=text_value(self._store, activity, v.tg("reason")) if parting.by_hand else told,
            person=self._read_people(activity),
            by_hand=parting.by_hand,
            decided=text_value(self._store, parting.iri, v.prov("generatedAtTime")),
            evidence=bearer.grounds,
        )

    def find(self, name: str) -> str:
        """Return the text entity matching a name or IRI.

        Raise ``UsageError`` if no entity matches, or if several similar names match and none is
        equal."""
        for iri in filter(v.is_iri, (name, v.entity_iri(name))):
            if self._texts.keys_of(iri):
                return iri
        key = name_key(name)
        alike = sorted(e for e in self._texts.entities_with(key) if name_key(self.name(e)) == key)
        if len(alike) == 1:
            return alike[0]
        if alike:
            names = ", ".join(repr(self.name(entity)) for entity in alike)
            raise UsageError(f"{name!r} may be any of {names}.", "Use one of these names.")
        raise UnknownNameError(
            f"No document names {name!r}.", "`tgraph entities merges` lists all merges."
        )

    def name(self, entity: str) -> str:
        """Return an entity's most frequent name in texts."""
        return commonest_value(self._texts.of_entity(entity), "name") or local_name(entity)

    def canonical(self, entity: str) -> str:
        """Return the canonical entity for a merged name."""
        return self._merges.get(entity, entity)

    def split_of(self, first: str, second: str) -> str:
        """Return the standing split between two entities.

        Raise ``UsageError`` if no split exists."""
        for split, pair in standing_splits(self._store).items():
            if set(pair) == {first, second}:
                return split
        raise UsageError(
            f"{self.name(first)!r} and {self.name(second)!r} have not been split.",
            "`tgraph entities splits` lists all splits.",
        )

    # --- one of them ---

    def _read_merge(self, merge: str) -> Merge:
        absorbed = text_value(self._store, merge, v.tg("absorbed"))
        canonical = text_value(self._store, merge, v.tg("canonical"))
        return Merge(
            merge=merge,
            absorbed=absorbed,
            absorbed_name=self.name(absorbed),
            canonical=canonical,
            canonical_name=self.name(canonical),
            merged=text_value(self._store, merge, v.prov("generatedAtTime")),
            grounds=tuple(self._find_grounds(absorbed, canonical)),
        )

    def _recall_name(self, entity: str) -> str:
        """Return the entity's recorded name, including names found only in superseded or
        retracted documents."""
        name = commonest_value(self._texts.of_entity(entity), "name")
        return name or self._recalled.entity(entity) or local_name(entity)

    def _read_split(self, split: str, pair: tuple[str, str]) -> Split:
        activity = text_value(self._store, split, v.prov("wasGeneratedBy"))
        return Split(
            split=split,
            entities=pair,
            names=(self._recall_name(pair[0]), self._recall_name(pair[1])),
            reason=text_value(self._store, activity, v.tg("reason")),
            person=self._read_people(activity),
            decided=text_value(self._store, split, v.prov("generatedAtTime")),
        )

    def _read_people(self, activity: str) -> str:
        """Return the names of the people who did something, separated by commas."""
        agents = self._store.match(
            NamedNode(activity), v.prov("wasAssociatedWith"), None, v.SOURCE_GRAPH
        )
        prefix = v.agent_iri("person", "", "")
        people = [q.object.value for q in agents if str(q.object).startswith(f"<{prefix}")]  # type: ignore[union-attr]
        return ", ".join(text_value(self._store, p, v.RDFS_LABEL) for p in sorted(people))

    # --- grounds ---

    def _find_grounds(self, absorbed: str, canonical: str) -> Iterable[Ground]:
        """Yield grounds joining an absorbed name to other names sharing its entity."""
        members = [canonical, *(a for a, c in self._merges.items() if c == canonical)]
        for member in sorted(set(members) - {absorbed}):
            if tuple(sorted((member, absorbed))) in self._joins:
                yield Ground("hand", self.name(member), self.name(absorbed), (), ())
            if name_key(self.name(member)) == name_key(self.name(absorbed)):
                yield Ground("same", self.name(member), self.name(absorbed), (), ())
            else:
                yield from self._alias_grounds(member, absorbed)
                yield from self._alias_grounds(absorbed, member)

    def _alias_grounds(self, claimant: str, other: str) -> Iterable[Ground]:
        """Yield grounds from one entity's evidence naming the other entity as an alias."""
        key = name_key(self.name(other))
        yield from self._stated_grounds("alias", claimant, other, "aliasKey", key)
        yield from self._stated_grounds("stated", claimant, other, "same", other)

    def _stated_grounds(
        self, kind: Choice["alias", "stated"], claimant: str, other: str, name: str, wanted: str
    ) -> Iterable[Ground]:
        """Yield a ground if claimant evidence contains the wanted value."""
        claims = [
            item
            for item in self._texts.of_entity(claimant)
            if any(term.value == wanted for term in item.get(name, ()))
        ]
        if claims:
            evidence = tuple(item["evidence"][0].value for item in claims)
            documents = {document_of_chunk(item["wasDerivedFrom"][0].value) for item in claims}
            paths = sorted(path for _, path in documents_of(self._store, documents).values())
            names = self.name(claimant), self.name(other)
            yield Ground(kind, *names, evidence, tuple(paths))
