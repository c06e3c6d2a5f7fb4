"""Terms as N-Triples, and so N-Quads and TriG, have them: written down, not made first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.store.statements import Statable, literal

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]')
_INTEGER = '"^^<http://www.w3.org/2001/XMLSchema#integer>'


def terms(value: Statable) -> Sequence[str]:
    """Each of the terms that ``Statements`` makes of the value, in their order."""
    kind = type(value)
    if kind is NamedNode:
        return (str(value),)
    if kind is str:
        return (_text(value),)  # type: ignore[arg-type]
    if kind is int:
        return (f'"{value}{_INTEGER}',)
    if kind is float and value:  # 0.0 and -0.0 are one key, and two literals
        return (_number(value),)  # type: ignore[arg-type]
    if isinstance(value, str | int | float | datetime):
        return (str(literal(value)),)
    if isinstance(value, Literal):
        return (str(v.canonical(value)),)
    assert not isinstance(value, NamedNode)  # which has no subclasses
    return [term for item in value or () for term in terms(item)]


def _text(value: str) -> str:
    """Most texts have nothing to escape."""
    return f'"{value}"' if _ESCAPED.search(value) is None else str(literal(value))


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    return str(literal(value))
