"""What a state of knowledge says about classes and values while a question is read: the paths that
connect them, and the classes that values are of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.compute.algebra import LONGEST_PATH, Path
from tgraph.compute.printing import print_classes, print_connections, print_members
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object
from tgraph.retrieve.text.lexical import STOP_WORDS
from tgraph.store.base import Solutions, Store

T = TypeVar("T")
Target = KnownClass | tuple[Object, ...]


def choose_computable(catalogue: Catalogue) -> Catalogue:
    """Return the classes and properties of a catalogue that queries may use.

    Left out are tables of which many rows are one member, since a count of rows would be wrong,
    properties of a class with values in several units, and all but one of the classes with the
    same name, members and properties: an import states a class beside the graph's own."""
    merged = [known_class for known_class in catalogue.classes if _merges_rows(known_class)]
    merged_types = {known_class.type for known_class in merged}
    merged_members = frozenset(row for known_class in merged for row in known_class.rows)
    by_members: dict[object, KnownClass] = {}
    for known_class in sorted(catalogue.classes, key=lambda one: one.key):
        if known_class.kind == "name" and known_class.key in STOP_WORDS:
            continue  # "The Lego Movie" is no "the"
        if _merges_rows(known_class) or (known_class.type and known_class.type in merged_types):
            continue
        if known_class.kind == "name" and not merged_members.isdisjoint(known_class.rows):
            continue
        twin = (
            known_class.kind,
            known_class.label.casefold(),
            known_class.members,
            frozenset(known_class.properties),
        )
        by_members.setdefault(twin if known_class.kind == "type" else known_class.key, known_class)
    names = {known_class.key for known_class in by_members.values()}
    classes = (known_class for known_class in catalogue.classes if known_class.key in names)
    return replace(
        catalogue,
        classes=tuple(_with_single_units(known_class, catalogue) for known_class in classes),
    )


def _merges_rows(known_class: KnownClass) -> bool:
    """Return whether the name of a table's rows tells too few of them apart to be a name."""
    return known_class.merged_rows > _MOST_MERGED * (known_class.members + known_class.merged_rows)


_MOST_MERGED = 0.2
"""The share of a table's rows that may be called as others are, and are one member with them."""


def _with_single_units(known_class: KnownClass, catalogue: Catalogue) -> KnownClass:
    units: defaultdict[str, set[str]] = defaultdict(set)
    properties = [catalogue.property_of(iri) for iri, _ in known_class.properties]
    for stated in properties:
        units[stated.name].add(stated.unit)
    mixed = {stated.iri for stated in properties if len(units[stated.name]) > 1}
    if not mixed:
        return known_class
    return replace(
        known_class,
        properties=tuple(pair for pair in known_class.properties if pair[0] not in mixed),
        columns=tuple(column for column in known_class.columns if column.property not in mixed),
    )


@dataclass(frozen=True, slots=True)
class KnowledgeLookup:
    """Look-ups in a state of knowledge, each made once for a question."""

    store: Store
    catalogue: Catalogue
    _memory: dict[object, tuple[object, ...]] = field(default_factory=dict, repr=False)

    def find_connections(self, known_class: KnownClass, target: Target) -> tuple[Path, ...]:
        """Return the shortest paths from members of a class to values, or to members of another
        class: the properties of tables and imported graphs, followed in both directions."""
        key = (known_class.key, target.key if isinstance(target, KnownClass) else target)
        return self._once(("connections", *key), lambda: self._connections(known_class, target))

    def find_paths(self, known_class: KnownClass, values: tuple[Object, ...]) -> tuple[Path, ...]:
        """Return the shortest paths that lead forward from members of a class to values."""
        key = ("paths", known_class.key, values)
        return self._once(key, lambda: self._connections(known_class, values, (False,)))

    def find_members(
        self, known_class: KnownClass, values: tuple[Object, ...]
    ) -> tuple[NamedNode, ...]:
        """Return those of the values that are members of a class."""

        def find() -> Sequence[NamedNode]:
            nodes = [value for value in values if isinstance(value, NamedNode)]
            return self._nodes(print_members(known_class, nodes)) if nodes else ()

        return self._once(("members", known_class.key, values), find)

    def find_sides(
        self, known: KnownProperty, values: tuple[Object, ...]
    ) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
        """Return the values that are subjects of a property, and those that are its objects."""
        graph, relation = v.KNOWLEDGE_GRAPH, known.iri

        def is_stated(subject: NamedNode | None, value: Object | None) -> bool:
            return any(True for _ in self.store.match(subject, relation, value, graph))

        holders = [x for x in values if isinstance(x, NamedNode) and is_stated(x, None)]
        return tuple(holders), tuple(value for value in values if is_stated(None, value))

    def find_values_of(self, known: KnownProperty, known_class: KnownClass) -> tuple[Path, ...]:
        """Return the path from members of a class back to what has them as values of a property."""
        path = Path((known,))
        ends = {end.key for end in self._ends_of(path)}
        return (Path((known,), (0,)),) if known_class.key in ends else ()

    def _ends_of(self, path: Path) -> Iterator[KnownClass]:
        """Yield the classes of the values at the end of a path, from any class."""
        for start in self.catalogue.classes:
            if any(iri == path.last.iri for iri, _ in start.properties):
                yield from self.find_classes(start, path)

    def find_classes(self, known_class: KnownClass, path: Path) -> tuple[KnownClass, ...]:
        """Return the classes of what a path leads to."""

        def find() -> Sequence[KnownClass]:
            types = {node.value for node in self._nodes(print_classes(known_class, path))}
            return [one for one in self.catalogue.classes if one.type in types]

        return self._once(("classes", known_class.key, path), find)

    def _connections(
        self,
        known_class: KnownClass,
        target: Target,
        directions: Sequence[bool] = (False, True),
    ) -> Sequence[Path]:
        structured = [one.iri for one in self.catalogue.properties if one.is_structured]
        for length in range(1, LONGEST_PATH + 1):
            paths = []
            for backward in product(directions, repeat=length):
                positions = tuple(at for at, is_backward in enumerate(backward) if is_backward)
                text = print_connections(known_class, target, structured, backward)
                for iris in self._rows(text):
                    steps = tuple(map(self.catalogue.property_of, iris))
                    paths.append(Path(steps, positions))
            if paths:
                return paths
        return ()

    def _once(self, key: object, find: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        if key not in self._memory:
            self._memory[key] = tuple(find())
        return self._memory[key]  # type: ignore[return-value]

    def _nodes(self, text: str) -> list[NamedNode]:
        return [node for row in self._rows(text) for node in row]

    def _rows(self, text: str) -> list[tuple[NamedNode, ...]]:
        results = self.store.query(text)
        assert isinstance(results, Solutions)
        return [tuple(term for term in row if isinstance(term, NamedNode)) for row in results]
