"""Routes that say what they need and what their answers contain, and the list of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.routing import BaseRoute, Route

from tgraph.extensions.server.access import Declaration

OPEN = Declaration((), ("status",))
"""For what anybody may be told: none of it says what a graph holds."""


class DeclaredRoute(Route):
    """A route with its declaration."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], declaration: Declaration, **options: Any
    ) -> None:
        super().__init__(path, endpoint, **options)
        self.declaration = declaration


@dataclass(frozen=True, slots=True)
class DeclaredOperation:
    """A method of a path with its declaration."""

    method: str
    path: str
    declaration: Declaration


def list_operations(routes: Iterable[BaseRoute]) -> Iterator[DeclaredOperation]:
    """Yield the operations of routes; raise ``TypeError`` for a route that declares nothing."""
    for route in routes:
        declaration = getattr(route, "declaration", None)
        path = getattr(route, "path", "")
        if not isinstance(declaration, Declaration):
            raise TypeError(f"The route {path} does not declare what it needs.")
        for method in sorted(set(getattr(route, "methods", None) or {"GET"}) - {"HEAD"}):
            yield DeclaredOperation(method, path, declaration)
