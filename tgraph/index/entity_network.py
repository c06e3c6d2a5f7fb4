"""The entities of knowledge and what ties them, as arrays: what communities are made of.

They lie beside the vectors and are derived like them. A run that knows what it changed reads them
and looks at that alone; where they are missing, damaged or of another generation, all of knowledge
is read.
"""

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
    Outline,
    Pair,
    attributes_of,
    has_type,
    instances,
    label,
    read_relationships,
    relations_between,
    relationship_weight,
)
from tgraph.index.communities.partition import DEFAULT_CUTTING, Cutting, Partition, partition
from tgraph.index.data_files import DataFile, DataSet, Head, write_data
from tgraph.index.standing_knowledge import value
from tgraph.index.vectors.files import array_writer, open_array
from tgraph.index.vectors.keys import Keys, ranges
from tgraph.store.base import Store

if TYPE_CHECKING:
    from numpy import float64, int32, uint64
    from numpy.typing import NDArray

FILES = DataSet("network", format=2)
_ARRAYS = "marks", "attributes", "ends", "weights", "counts"


@dataclass(frozen=True, eq=False)
class EntityNetwork:
    """All entities, and the weight that ties each two of them between which there are edges.

    ``ends`` are the ties, two places in ``entities`` each, the smaller first, in order. A tie
    weighs what its edges do together, of which it has ``counts``. ``attributes`` counts the edges
    to literals that each entity has.
    """

    entities: Keys
    marks: NDArray[uint64]
    attributes: NDArray[int32]
    ends: NDArray[int32]
    weights: NDArray[float64]
    counts: NDArray[int32]
    cutting: Cutting

    @cached_property
    def partition(self) -> Partition:
        """The parts of the network, by the places of their first entities."""
        return partition(self.ends, self.weights, self.marks, self.cutting)

    @property
    def isolated(self) -> int:
        """How many entities nothing ties to another."""
        return int((self.partition.parts < 0).sum())

    def largest(self) -> set[int]:
        """The parts of the connected part that has most entities, of several of the first."""
        import numpy as np

        whole = self.cutting._replace(most=len(self.entities))
        connected = partition(self.ends, self.weights, self.marks, whole).parts
        sizes = np.bincount(connected[connected >= 0])
        inside = connected == sizes.argmax() if len(sizes) else connected < 0
        return set(np.unique(self.partition.parts[inside & (connected >= 0)]).tolist())

    def outline(self, entities: Iterable[str]) -> Outline:
        """What is between these entities, and how many attributes they have."""
        import numpy as np

        found = (self.entities.find(entity) for entity in entities)
        places = np.array(sorted({place for place in found if place is not None}), dtype=np.int32)
        low = np.searchsorted(self._first_ends, places)
        sizes = np.searchsorted(self._first_ends, places, side="right") - low
        rows = ranges(low, sizes)
        rows = rows[np.isin(self.ends[rows, 1], places)]
        name = {place: self.entities[place] for place in places.tolist()}
        counted = zip(self.ends[rows].tolist(), self.counts[rows].tolist(), strict=True)
        said = zip(name.values(), self.attributes[places].tolist(), strict=True)
        return Outline(
            {(name[one], name[other]): count for (one, other), count in counted},
            {entity: count for entity, count in said if count},
        )

    @cached_property
    def _first_ends(self) -> NDArray[int32]:
        import numpy as np

        return np.ascontiguousarray(self.ends[:, 0])

    def components(self, store: Store, parts: Iterable[int]) -> Iterator[Component]:
        """These parts, with what their entities are called."""
        return (self._component(store, part) for part in parts)

    @property
    def parts(self) -> list[int]:
        """All parts, in the order of their first entities."""
        import numpy as np

        found = np.unique(self.partition.parts)
        return [int(part) for part in found if part >= 0]

    def _component(self, store: Store, part: int) -> Component:
        import numpy as np

        places = _of_part(part, *self._by_part)
        rows = _of_part(part, *self._ties_by_part)
        local = np.searchsorted(places, self.ends[rows])
        ties = zip(*local.T.tolist(), self.weights[rows].tolist(), strict=True)
        members = tuple(self.entities[int(place)] for place in places)
        groups = self.partition.groups[places]
        cut = np.searchsorted(places, groups).tolist() if len(groups) and groups[0] >= 0 else ()
        labels = tuple(label(store, member) for member in members)
        return Component(members, labels, tuple(ties) if len(rows) else (), tuple(cut))

    @cached_property
    def _by_part(self) -> tuple[Any, Any]:
        """The places of entities, and their parts, part by part."""
        import numpy as np

        order = np.argsort(self.partition.parts, kind="stable")
        return order, self.partition.parts[order]

    @cached_property
    def _ties_by_part(self) -> tuple[Any, Any]:
        """The ties inside parts, part by part, and the parts."""
        import numpy as np

        one, other = self.partition.parts[self.ends].T
        inside = np.flatnonzero(one == other)
        order = inside[np.argsort(one[inside], kind="stable")]
        return order, one[order]

    # --- files ---

    def save(self, folder: Path, generation: int) -> None:
        """Keep it in the folder, atomically and durably, as of a generation of the knowledge.

        Raises ``StoreError`` where the disk fails.
        """
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
    """Those in the order, which goes part by part, that are of the part."""
    import numpy as np

    low, high = np.searchsorted(parts, part), np.searchsorted(parts, part, side="right")
    return order[low:high]


def load_network(folder: Path, generation: int, cutting: Cutting) -> EntityNetwork | None:
    """The folder's network; None where it is missing, damaged, of another generation or cut
    otherwise."""

    def open_arrays(files: Mapping[str, DataFile], head: Head) -> EntityNetwork:
        arrays = {name: open_array(folder, file) for name, file in files.items()}
        keys = Keys(arrays["keys"], arrays["key-ends"])
        columns = {name: arrays[name] for name in _ARRAYS}
        network = EntityNetwork(entities=keys, cutting=cutting, **columns)
        network.__dict__["partition"] = Partition(arrays["parts"], arrays["groups"])
        return network

    return FILES.load(folder, generation, open_arrays, cutting=list(cutting))


def read_network(store: Store, cutting: Cutting = DEFAULT_CUTTING) -> EntityNetwork:
    """The network of all knowledge in the store."""
    import numpy as np

    names = sorted(value(node) for node in instances(store, "Entity"))
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
    ties = sorted(_Tie(*ends, math.fsum(each), len(each)) for ends, each in between.items())
    return EntityNetwork(Keys.of(names), _marks(names), attributes, *_arrays(ties), cutting)


class _Tie(NamedTuple):
    """Two places, what the edges between them weigh, and how many they are."""

    one: int
    other: int
    weight: float
    edges: int


def _arrays(
    ties: Sequence[_Tie],
) -> tuple[NDArray[int32], NDArray[float64], NDArray[int32]]:
    import numpy as np

    ends = np.array([(tie.one, tie.other) for tie in ties], dtype=np.int32).reshape(-1, 2)
    weights = np.array([tie.weight for tie in ties], dtype=np.float64)
    return ends, weights, np.array([tie.edges for tie in ties], dtype=np.int32)


def _marks(names: Iterable[str]) -> NDArray[uint64]:
    import numpy as np

    digests = b"".join(sha256(name.encode()).digest()[:8] for name in names)
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64)


# --- what changed ---


@dataclass(frozen=True, slots=True)
class ChangedNetwork:
    """A network, and the parts of it and of the one before that may not be in the other, by the
    places of their first entities."""

    network: EntityNetwork
    parts: Collection[int]
    parts_before: Collection[int]


def changed_network(
    before: EntityNetwork, store: Store, entities: Collection[str], pairs: Collection[Pair]
) -> ChangedNetwork:
    """The network of the store, which differs from ``before`` at most in whether these are
    entities, in what they are called, and in the ties of these pairs."""
    import numpy as np

    known = {each for each in entities if before.entities.find(each) is not None}
    there = {each for each in entities if _is_entity(store, each)}
    asked = {*pairs, *(pair for new in there - known for pair in _pairs_of(store, new))}
    keys, moved = before.entities.changed(known - there, there - known)
    new = np.setdiff1d(np.arange(len(keys)), moved)
    marks = np.empty(len(keys), dtype=np.uint64)
    marks[moved[moved >= 0]] = before.marks[moved >= 0]
    marks[new] = _marks(keys[int(place)] for place in new)
    attributes = np.zeros(len(keys), dtype=np.int32)
    attributes[moved[moved >= 0]] = before.attributes[moved >= 0]
    for entity in there:
        attributes[keys.find(entity)] = len(attributes_of(store, entity))
    ends = moved[before.ends]
    kept = (ends >= 0).all(axis=1) & ~_among(ends, keys, asked)
    added, weights, counts = _arrays(list(_read_ties(store, keys, asked)))
    ends = np.concatenate([ends[kept], added])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    network = EntityNetwork(
        keys,
        marks,
        attributes,
        ends[order].astype(np.int32),
        np.concatenate([before.weights[kept], weights])[order],
        np.concatenate([before.counts[kept], counts])[order],
        before.cutting,
    )
    touched = {*entities, *(end for pair in asked for end in pair)}
    return ChangedNetwork(network, *_changed_parts(before, network, moved, touched))


def _is_entity(store: Store, name: str) -> bool:
    return has_type(store, NamedNode(name), "Entity")


def _pairs_of(store: Store, entity: str) -> Iterator[Pair]:
    """The pairs of an entity and what knowledge says something of with it."""
    node = NamedNode(entity)
    for quad in store.match(node, None, None, v.KNOWLEDGE_GRAPH):
        if isinstance(quad.object, NamedNode):
            yield pair_of(entity, quad.object.value)
    for quad in store.match(None, None, node, v.KNOWLEDGE_GRAPH):
        if isinstance(quad.subject, NamedNode):
            yield pair_of(entity, quad.subject.value)


def pair_of(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)


def _read_ties(store: Store, keys: Keys, pairs: Iterable[Pair]) -> Iterator[_Tie]:
    """The ties of those pairs that have edges, by the places of their ends."""
    for one, other in pairs:
        here, there = keys.find(one), keys.find(other)
        if here is None or there is None or here == there:
            continue
        weights = [*_weights(store, one, other), *_weights(store, other, one)]
        if weights:
            yield _Tie(min(here, there), max(here, there), math.fsum(weights), len(weights))


def _weights(store: Store, subject: str, obj: str) -> Iterator[float]:
    """What the edges from one to the other weigh."""
    for triple in relations_between(store, subject, obj):
        weight = relationship_weight(store, triple)
        if weight is not None:
            yield weight


def _among(ends: NDArray[Any], keys: Keys, pairs: Iterable[Pair]) -> NDArray[Any]:
    """Which of the ties are those of the pairs."""
    import numpy as np

    places = ((keys.find(one), keys.find(other)) for one, other in pairs)
    known = [sorted((a, b)) for a, b in places if a is not None and b is not None]
    size = len(keys)
    codes = np.array([one * size + other for one, other in known], dtype=np.int64)
    return np.isin(ends[:, 0].astype(np.int64) * size + ends[:, 1], codes)


def _changed_parts(
    before: EntityNetwork, now: EntityNetwork, moved: NDArray[Any], touched: Iterable[str]
) -> tuple[list[int], list[int]]:
    """The parts now and before that have any of the touched entities, or others than before."""
    import numpy as np

    old, new = before.partition, now.partition
    known = np.flatnonzero(moved >= 0)
    there = moved[known]
    differs = np.ones(len(now.entities), dtype=bool)
    differs[there] = (_moved(old.parts[known], moved) != new.parts[there]) | (
        _moved(old.groups[known], moved) != new.groups[there]
    )
    differed = np.ones(len(before.entities), dtype=bool)
    differed[known] = differs[there]
    for name in touched:
        for network, marked in ((now, differs), (before, differed)):
            if (place := network.entities.find(name)) is not None:
                marked[place] = True
    # what a changed part was, or became a part of, has changed too
    differed = np.isin(old.parts, old.parts[differed])
    differs[moved[differed & (moved >= 0)]] = True
    differs = np.isin(new.parts, new.parts[differs])
    differed[known] |= differs[there]
    return _parts(new, differs), _parts(old, differed)


def _moved(firsts: NDArray[int32], moved: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.where(firsts < 0, -1, moved[np.maximum(firsts, 0)])


def _parts(found: Partition, marked: NDArray[Any]) -> list[int]:
    import numpy as np

    return [int(part) for part in np.unique(found.parts[marked]) if part >= 0]
