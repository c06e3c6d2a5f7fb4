"""How much documents are to be believed: weights that a person gave to paths.

What is decided is on record (``tg:Weighting``); ranking multiplies scores by it. It changes no
knowledge: what a document says stays said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.index.sources import text_value, value
from tgraph.store.base import Store

FULL = 1.0
"""The authority of a document that nobody weighed."""


@dataclass(frozen=True)
class Authorities:
    """The weights that stand, by the path or pattern of paths that they are for."""

    weights: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of", cache(self._find))

    def __bool__(self) -> bool:
        return bool(self.weights)

    def of(self, path: str) -> float:
        """The weight of the path itself, else of the longest pattern that it matches (of equals the
        first in the alphabet), else 1."""
        found: float = self._of(path)  # type: ignore[attr-defined]
        return found

    def _find(self, path: str) -> float:
        if path in self.weights:
            return self.weights[path]
        fitting = [pattern for pattern in self.weights if fnmatchcase(path, pattern)]
        closest = min(fitting, key=lambda each: (-len(each), each), default=None)
        return FULL if closest is None else self.weights[closest]


def read_authorities(store: Store) -> Authorities:
    """The weightings that stand."""
    return Authorities(
        {pattern_of(store, node): _number(store, node) for node in standing_weightings(store)}
    )


def standing_weightings(store: Store) -> list[str]:
    """The weightings that nothing has ended, in the order of their IRIs."""
    quads = store.match(None, v.RDF_TYPE, v.tg("Weighting"), v.SOURCE_GRAPH)
    nodes = [quad.subject.value for quad in quads if isinstance(quad.subject, NamedNode)]
    return sorted(n for n in nodes if value(store, n, v.prov("invalidatedAtTime")) is None)


def pattern_of(store: Store, weighting: str) -> str:
    """The path, or the pattern of paths, that the weighting is for."""
    return text_value(store, weighting, v.tg("pathPattern"))


def _number(store: Store, weighting: str) -> float:
    term = value(store, weighting, v.tg("authority"))
    return float(term.value) if isinstance(term, Literal) else FULL
