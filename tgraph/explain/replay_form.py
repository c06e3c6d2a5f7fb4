"""The form of a session in which two runs of it can be compared (design, section 3.7).

The UUID is fixed, times and durations are dropped, scores are rounded to six decimals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.said import kind_of, local_name, numbers

FIXED = "00000000-0000-0000-0000-000000000000"
_DROPPED = frozenset(
    {v.prov("startedAtTime"), v.prov("endedAtTime"), v.prov("generatedAtTime")}
) | {v.tg("llmDurationMs")}
_NUMBERS = frozenset({v.xsd("double"), v.xsd("decimal"), v.xsd("float")})
_ORDER = (
    *("session", "parameter", "concepts", "matches", "match", "retrieval", "candidate"),
    *("selection", "edge", "item", "answer", "sentence", "citation", "step", "call"),
)

Statement = tuple[str, str, str]
"""Subject, property and value, as texts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two records differ: of what, in which property, and the values on either side."""

    subject: Annotated[str, "IRI of what is spoken of, with the session's UUID fixed"]
    property: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]


def replay_form(quads: Iterable[Quad], uuid: str) -> frozenset[Statement]:
    """The statements of a session's bundle as they are compared."""
    return frozenset(
        (_fixed(quad.subject, uuid), quad.predicate.value, _fixed(quad.object, uuid))
        for quad in quads
        if quad.predicate not in _DROPPED
    )


def replay_hash(form: Iterable[Statement]) -> str:
    """SHA-256 over the sorted statements."""
    lines = sorted("\t".join(statement) for statement in form)
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def differences(recorded: frozenset[Statement], replayed: frozenset[Statement]) -> list[Difference]:
    """Where the two differ, in the order of the stages of a session."""
    sides: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for index, only in enumerate((recorded - replayed, replayed - recorded)):
        for subject, predicate, value in sorted(only):
            sides.setdefault((subject, predicate), ([], []))[index].append(value)
    return [
        Difference(subject, local_name(NamedNode(predicate)), tuple(one), tuple(other))
        for (subject, predicate), (one, other) in sorted(sides.items(), key=_place)
    ]


def _place(item: tuple[tuple[str, str], object]) -> tuple[int, tuple[int, ...], str, str]:
    (subject, predicate), _ = item
    kind = kind_of(subject)
    known = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return known, numbers(subject), subject, predicate


def _fixed(term: object, uuid: str) -> str:
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        return f"{float(term.value):.6f}"
    value = term.value if isinstance(term, NamedNode | Literal) else str(term)
    return value.replace(uuid, FIXED)
