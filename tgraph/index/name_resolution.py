"""Which names of the texts are merged into which, before a change and after it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyoxigraph import NamedNode, Triple

from tgraph.extract.resolution import Name, resolve_entities
from tgraph.index.counted_evidence import CountedEvidence
from tgraph.index.decisions import Decisions


@dataclass(frozen=True)
class Merges:
    """Absorbed entities with their canonical ones, ``before`` a change and ``now``."""

    before: Mapping[str, str]
    now: Mapping[str, str]

    @cached_property
    def new_merges(self) -> dict[str, str]:
        """The merges that are new."""
        return {k: c for k, c in self.now.items() if self.before.get(k) != c}

    @cached_property
    def removed_merges(self) -> dict[str, str]:
        """The merges that are gone."""
        return {k: c for k, c in self.before.items() if self.now.get(k) != c}

    @cached_property
    def _absorbed_names(self) -> Mapping[str, Collection[str]]:
        return _absorbed_by_canonical(self.now)

    def names(self, entity: str) -> list[str]:
        """The entity and the entities that it has absorbed now, sorted."""
        return sorted({entity, *self._absorbed_names.get(entity, ())})

    def names_before(self, entity: str) -> set[str]:
        """The entity and all that were the same as it before."""
        canonical = self.before.get(entity, entity)
        return {entity, canonical, *(k for k, c in self.before.items() if c == canonical)}


def resolve_names(
    evidence: CountedEvidence,
    decisions: Decisions,
    before: Mapping[str, str],
    entities: Collection[str],
) -> Merges:
    """The merges once the evidence of the entities has changed. Entities that share no key and no
    alias with these, directly or through others, keep their merges."""
    neighbourhood = _neighbourhood(evidence, decisions, before, entities)
    unaffected = {k: c for k, c in before.items() if k not in neighbourhood}
    names = [name for _, name in sorted(neighbourhood.items()) if name is not None]
    return Merges(
        before, {**unaffected, **resolve_entities(names, decisions.splits, decisions.joins)}
    )


def _neighbourhood(
    evidence: CountedEvidence,
    decisions: Decisions,
    before: Mapping[str, str],
    entities: Collection[str],
) -> dict[str, Name | None]:
    """Every entity that shares a key or an alias with these, directly or through others, with its
    name; None where no evidence of it counts."""
    names: dict[str, Name | None] = {}
    keys: set[str] = set()
    queue, texts = set(entities), evidence.texts
    absorbed = _absorbed_by_canonical(before)
    while queue:
        entity = queue.pop()
        if entity in names:
            continue
        names[entity] = evidence.name(entity)
        canonical = before.get(entity, entity)
        queue |= {canonical, *absorbed.get(canonical, ()), *texts.same_as(entity)}
        queue.update(decisions.partners(entity))
        for key in texts.keys_of(entity) - keys:
            keys.add(key)
            queue |= texts.entities_with(key)
    return names


def _absorbed_by_canonical(merges: Mapping[str, str]) -> dict[str, list[str]]:
    """Return absorbed entities by canonical entity."""
    absorbed: dict[str, list[str]] = {}
    for name, canonical in merges.items():
        absorbed.setdefault(canonical, []).append(name)
    return absorbed


def rename_ends(mapping: Mapping[str, str], triple: Triple) -> Triple:
    """The triple with the names of the mapping; itself where it has these."""
    subject, obj = triple.subject, triple.object
    assert isinstance(subject, NamedNode)
    new_subject = mapping.get(subject.value)
    new_object = mapping.get(obj.value) if isinstance(obj, NamedNode) else None
    if new_subject is None and new_object is None:
        return triple
    ends = (
        NamedNode(new_subject) if new_subject else subject,
        NamedNode(new_object) if new_object else obj,
    )
    return Triple(ends[0], triple.predicate, ends[1])
