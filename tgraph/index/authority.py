"""Document authority: weights assigned to paths by a person.

Decisions are on record (``tg:Weighting``); ranking multiplies scores by the weight. Knowledge
is unchanged: a document's statements remain stated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import source_value, text_value
from tgraph.store.base import Store

FULL = 1.0
"""The authority of a document that nobody weighed."""


@dataclass(frozen=True)
class Authorities:
    """Standing weights by path or path pattern."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of", cache(self._find_weight))

    def __bool__(self) -> bool:
        return bool(self.weights)

    def weigh_path(self, path: str) -> float:
        """Return the weight of a path, otherwise of the longest matching pattern (among equals
        the alphabetically earliest), otherwise 1."""
        weight: float = self._of(path)  # type: ignore[attr-defined]
        return weight

    def _find_weight(self, path: str) -> float:
        if path in self.weights:
            return self.weights[path]
        fitting = [pattern for pattern in self.weights if fnmatchcase(path, pattern)]
        closest = min(fitting, key=lambda each: (-len(each), each), default=None)
        return FULL if closest is None else self.weights[closest]


def read_authorities(store: Store) -> Authorities:
    """Return standing weightings."""
    return Authorities(
        {pattern_of(store, node): _read_weight(store, node) for node in standing_weightings(store)}
    )


def standing_weightings(store: Store) -> list[str]:
    """Return weightings not ended, sorted by IRI."""
    quads = store.match(None, v.RDF_TYPE, v.tg("Weighting"), v.SOURCE_GRAPH)
    nodes = [quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)]
    return sorted(n for n in nodes if source_value(store, n, v.prov("invalidatedAtTime")) is None)


def pattern_of(store: Store, weighting: str) -> str:
    """Return the path or path pattern of a weighting."""
    return text_value(store, weighting, v.tg("pathPattern"))


def _read_weight(store: Store, weighting: str) -> float:
    term = source_value(store, weighting, v.tg("authority"))
    return float(term.value) if isinstance(term, Literal) else FULL
