"""Knowledge entities and their ties as arrays, the input of community detection.

The arrays are stored beside the vectors and derived like the vectors. An index run with known
changes reads the arrays and looks only at these changes; if the arrays are missing, damaged or
of another generation, all knowledge is read."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.index.communities.communities import (
    Component,
    IriPair,
    Outline,
    attributes_of,
    find_instances,
    has_type,
    read_label,
    read_relationships,
    relations_between,
    relationship_weight,
)
from tgraph.index.communities.partition import DEFAULT_CUTTING, Cutting, Partition, partition_graph
from tgraph.index.data_files import DataFile, DataSet, FileHead, write_data
from tgraph.index.standing_knowledge import term_value
from tgraph.index.vectors.files import array_writer, open_array
from tgraph.index.vectors.keys import Keys, expand_ranges
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import float64, int32, uint64
    from numpy.typing import NDArray

FILES = DataSet("network", format=2)
_ARRAYS = "marks", "attributes", "ends", "weights", "counts"


@dataclass(frozen=True, eq=False)
class EntityNetwork:
    """All entities, and weighted ties connecting entities that share edges.

    ``ends`` contains the ties in order: two places in ``entities`` each, the smaller first. A
    tie's weight is the total weight of the edges; ``counts`` contains the number of edges.
    ``attributes`` counts each entity's edges to literals."""

    entities: Keys
    marks: NDArray[uint64]
    attributes: NDArray[int32]
    ends: NDArray[int32]
    weights: NDArray[float64]
    counts: NDArray[int32]
    cutting: Cutting

    @cached_property
    def partition(self) -> Partition:
        """Network parts, identified by the places of their first entities."""
        return partition_graph(self.ends, self.weights, self.marks, self.cutting)

    @property
    def isolated_count(self) -> int:
        """Number of entities lacking ties to other entities."""
        return int((self.partition.parts < 0).sum())

    def largest(self) -> set[int]:
        """Parts of the connected component with most entities; among equal components, the
        earliest."""
        import numpy as np

        whole_cutting = self.cutting._replace(most=len(self.entities))
        connected = partition_graph(self.ends, self.weights, self.marks, whole_cutting).parts
        sizes = np.bincount(connected[connected >= 0])
        inside = connected == sizes.argmax() if len(sizes) else connected < 0
        return set(np.unique(self.partition.parts[inside & (connected >= 0)]).tolist())

    def outline(self, entities: Iterable[str]) -> Outline:
        """Return ties between the given entities, plus attribute counts by entity."""
        import numpy as np

        lookups = (self.entities.find(entity) for entity in entities)
        places = np.array(sorted({place for place in lookups if place is not None}), dtype=np.int32)
        low = np.searchsorted(self._first_ends, places)
        sizes = np.searchsorted(self._first_ends, places, side="right") - low
        rows = expand_ranges(low, sizes)
        rows = rows[np.isin(self.ends[rows, 1], places)]
        name = {place: self.entities[place] for place in places.tolist()}
        counted = zip(self.ends[rows].tolist(), self.counts[rows].tolist(), strict=True)
        attribute_counts = zip(name.values(), self.attributes[places].tolist(), strict=True)
        return Outline(
            {
                (name[first_place], name[second_place]): count
                for (first_place, second_place), count in counted
            },
            {entity: count for entity, count in attribute_counts if count},
        )

    @cached_property
    def _first_ends(self) -> NDArray[int32]:
        import numpy as np

        return np.ascontiguousarray(self.ends[:, 0])

    def components(self, store: Store, parts: Iterable[int]) -> Iterator[Component]:
        """Yield components for the parts, including entity names."""
        return (self._build_component(store, part) for part in parts)

    @property
    def parts(self) -> list[int]:
        """Return all part numbers, ordered by earliest entity."""
        import numpy as np

        part_numbers = np.unique(self.partition.parts)
        return [int(part) for part in part_numbers if part >= 0]

    def _build_component(self, store: Store, part: int) -> Component:
        import numpy as np

        places = _of_part(part, *self._by_part)
        rows = _of_part(part, *self._ties_by_part)
        local = np.searchsorted(places, self.ends[rows])
        ties = zip(*local.T.tolist(), self.weights[rows].tolist(), strict=True)
        members = tuple(self.entities[int(place)] for place in places)
        groups = self.partition.groups[places]
        cut = np.searchsorted(places, groups).tolist() if len(groups) and groups[0] >= 0 else ()
        labels = tuple(read_label(store, member) for member in members)
        return Component(members, labels, tuple(ties) if len(rows) else (), tuple(cut))

    @cached_property
    def _by_part(self) -> tuple[Any, Any]:
        """Entity places sorted by part, plus the corresponding part numbers."""
        import numpy as np

        order = np.argsort(self.partition.parts, kind="stable")
        return order, self.partition.parts[order]

    @cached_property
    def _ties_by_part(self) -> tuple[Any, Any]:
        """Ties inside parts, sorted by part, plus the corresponding part numbers."""
        import numpy as np

        first_parts, second_parts = self.partition.parts[self.ends].T
        inside = np.flatnonzero(first_parts == second_parts)
        order = inside[np.argsort(first_parts[inside], kind="stable")]
        return order, first_parts[order]

    # --- files ---

    def save(self, folder: Path, generation: int) -> None:
        """Save the network in the folder, atomically and durably, for a knowledge generation.

        Raises ``StoreError`` if the disk fails."""
        arrays: dict[str, NDArray[Any]] = {
            "keys": self.entities.block,
            "key-ends": self.entities.ends,
            **{name: getattr(self, name) for name in _ARRAYS},
            "parts": self.partition.parts,
            "groups": self.partition.groups,
        }
        written = {
            name: write_data(folder, f"{FILES.stem}.{name}", array_writer(array))
            for name, array in arrays.items()
        }
        FILES.write_head(folder, generation, written, cutting=list(self.cutting))


def _of_part(part: int, order: NDArray[Any], parts: NDArray[Any]) -> NDArray[Any]:
    """Return places belonging to the part, given places sorted by part."""
    import numpy as np

    low, high = np.searchsorted(parts, part), np.searchsorted(parts, part, side="right")
    return order[low:high]


def load_network(folder: Path, generation: int, cutting: Cutting) -> EntityNetwork | None:
    """Return the network stored in the folder.

    Returns None if the network is missing, damaged, of another generation or cut otherwise."""

    def open_arrays(files: Mapping[str, DataFile], head: FileHead) -> EntityNetwork:
        arrays = {name: open_array(folder, file) for name, file in files.items()}
        keys = Keys(arrays["keys"], arrays["key-ends"])
        columns = {name: arrays[name] for name in _ARRAYS}
        network = EntityNetwork(entities=keys, cutting=cutting, **columns)
        network.__dict__["partition"] = Partition(arrays["parts"], arrays["groups"])
        return network

    return FILES.load(folder, generation, open_arrays, cutting=list(cutting))


def read_network(store: Store, cutting: Cutting = DEFAULT_CUTTING) -> EntityNetwork:
    """Read the network of all knowledge from the store."""
    import numpy as np

    names = sorted(term_value(node) for node in find_instances(store, "Entity"))
    place = {name: number for number, name in enumerate(names)}
    attributes = np.zeros(len(names), dtype=np.int32)
    between: dict[tuple[int, int], list[float]] = {}
    for edge in read_relationships(store):
        here = place[edge.subject]
        if edge.object is None:
            attributes[here] += 1
            continue
        there = place[edge.object]
        between.setdefault((min(here, there), max(here, there)), []).append(edge.weight)
    ties = sorted(
        _Tie(*ends, math.fsum(edge_weights), len(edge_weights))
        for ends, edge_weights in between.items()
    )
    return EntityNetwork(
        Keys.from_iris(names), _hash_names(names), attributes, *_build_tie_arrays(ties), cutting
    )


class _Tie(NamedTuple):
    """Two entity places, with total weight and number of connecting edges."""

    one: int
    other: int
    weight: float
    edges: int


def _build_tie_arrays(
    ties: Sequence[_Tie],
) -> tuple[NDArray[int32], NDArray[float64], NDArray[int32]]:
    import numpy as np

    ends = np.array([(tie.one, tie.other) for tie in ties], dtype=np.int32).reshape(-1, 2)
    weights = np.array([tie.weight for tie in ties], dtype=np.float64)
    return ends, weights, np.array([tie.edges for tie in ties], dtype=np.int32)


def _hash_names(names: Iterable[str]) -> NDArray[uint64]:
    import numpy as np

    digests = b"".join(sha256(name.encode()).digest()[:8] for name in names)
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


# --- what changed ---


@dataclass(frozen=True, slots=True)
class ChangedNetwork:
    """A network, plus possibly changed parts before and after, identified by their earliest
    entities' places."""

    network: EntityNetwork
    parts: Collection[int]
    parts_before: Collection[int]


def changed_network(
    before: EntityNetwork, store: Store, entities: Collection[str], pairs: Collection[IriPair]
) -> ChangedNetwork:
    """Return the store's network by updating ``before``.

    The network differs from ``before`` at most in the existence and names of ``entities``, and
    in ties between ``pairs``."""
    import numpy as np

    known_entities = {
        entity_iri for entity_iri in entities if before.entities.find(entity_iri) is not None
    }
    there = {entity_iri for entity_iri in entities if _is_entity(store, entity_iri)}
    changed_pairs = {
        *pairs,
        *(pair for new in there - known_entities for pair in _pairs_of(store, new)),
    }
    keys, moved = before.entities.with_changes(known_entities - there, there - known_entities)
    new = np.setdiff1d(np.arange(len(keys)), moved)
    marks = np.empty(len(keys), dtype=np.uint64)
    marks[moved[moved >= 0]] = before.marks[moved >= 0]
    marks[new] = _hash_names(keys[int(place)] for place in new)
    attributes = np.zeros(len(keys), dtype=np.int32)
    attributes[moved[moved >= 0]] = before.attributes[moved >= 0]
    for entity in there:
        attributes[keys.find(entity)] = len(attributes_of(store, entity))
    ends = moved[before.ends]
    tie_mask = (ends >= 0).all(axis=1) & ~_match_pairs(ends, keys, changed_pairs)
    added, weights, counts = _build_tie_arrays(list(_read_ties(store, keys, changed_pairs)))
    ends = np.concatenate([ends[tie_mask], added])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    network = EntityNetwork(
        keys,
        marks,
        attributes,
        ends[order].astype(np.int32),
        np.concatenate([before.weights[tie_mask], weights])[order],
        np.concatenate([before.counts[tie_mask], counts])[order],
        before.cutting,
    )
    touched = {*entities, *(end for pair in changed_pairs for end in pair)}
    return ChangedNetwork(network, *_changed_parts(before, network, moved, touched))


def _is_entity(store: Store, name: str) -> bool:
    return has_type(store, NamedNode(name), "Entity")


def _pairs_of(store: Store, entity: str) -> Iterator[IriPair]:
    """Yield pairs of the entity with every resource connected by a knowledge statement."""
    node = NamedNode(entity)
    for quad in store.match(node, None, None, v.KNOWLEDGE_GRAPH):
        if isinstance(quad.object, NamedNode):
            yield pair_of(entity, quad.object.value)
    for quad in store.match(None, None, node, v.KNOWLEDGE_GRAPH):
        if isinstance(quad.subject, NamedNode):
            yield pair_of(entity, quad.subject.value)


def pair_of(one: str, other: str) -> IriPair:
    return (one, other) if one <= other else (other, one)


def _read_ties(store: Store, keys: Keys, pairs: Iterable[IriPair]) -> Iterator[_Tie]:
    """Yield ties, with end places, for all pairs connected by edges."""
    for first_entity, second_entity in pairs:
        here, there = keys.find(first_entity), keys.find(second_entity)
        if here is None or there is None or here == there:
            continue
        weights = [
            *_read_weights(store, first_entity, second_entity),
            *_read_weights(store, second_entity, first_entity),
        ]
        if weights:
            yield _Tie(min(here, there), max(here, there), math.fsum(weights), len(weights))


def _read_weights(store: Store, subject: str, obj: str) -> Iterator[float]:
    """Yield weights of edges leading from subject to object."""
    for triple in relations_between(store, subject, obj):
        weight = relationship_weight(store, triple)
        if weight is not None:
            yield weight


def _match_pairs(ends: NDArray[Any], keys: Keys, pairs: Iterable[IriPair]) -> NDArray[Any]:
    """Return a boolean mask selecting ties between the given pairs."""
    import numpy as np

    places = ((keys.find(first_end), keys.find(second_end)) for first_end, second_end in pairs)
    place_pairs = [sorted((a, b)) for a, b in places if a is not None and b is not None]
    size = len(keys)
    codes = np.array(
        [first_end * size + second_end for first_end, second_end in place_pairs], dtype=np.int64
    )
    return np.isin(ends[:, 0].astype(np.int64) * size + ends[:, 1], codes)


def _changed_parts(
    before: EntityNetwork, now: EntityNetwork, moved: NDArray[Any], touched: Iterable[str]
) -> tuple[list[int], list[int]]:
    """Return current and previous parts that contain touched entities or changed membership."""
    import numpy as np

    old, new = before.partition, now.partition
    previous_places = np.flatnonzero(moved >= 0)
    there = moved[previous_places]
    differs = np.ones(len(now.entities), dtype=bool)
    differs[there] = (_move_places(old.parts[previous_places], moved) != new.parts[there]) | (
        _move_places(old.groups[previous_places], moved) != new.groups[there]
    )
    differed = np.ones(len(before.entities), dtype=bool)
    differed[previous_places] = differs[there]
    for name in touched:
        for network, marked in ((now, differs), (before, differed)):
            if (place := network.entities.find(name)) is not None:
                marked[place] = True
    # what a changed part was, or became a part of, has changed too
    differed = np.isin(old.parts, old.parts[differed])
    differs[moved[differed & (moved >= 0)]] = True
    differs = np.isin(new.parts, new.parts[differs])
    differed[previous_places] |= differs[there]
    return _marked_parts(new, differs), _marked_parts(old, differed)


def _move_places(firsts: NDArray[int32], moved: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.where(firsts < 0, -1, moved[np.maximum(firsts, 0)])


def _marked_parts(found: Partition, marked: NDArray[Any]) -> list[int]:
    import numpy as np

    return [int(part) for part in np.unique(found.parts[marked]) if part >= 0]
