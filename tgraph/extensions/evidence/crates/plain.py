"""What was retrieved, as JSON and back. What comes back is checked against the types, for it may
be anybody's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, parse

Json = Any


def plain(value: Any) -> Json:
    """The value in JSON's types; a term as N-Triples."""
    if isinstance(value, NamedNode | Literal | Triple):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in _hints(type(value))}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def term(text: Json) -> NamedNode | Literal:
    """The term that N-Triples write so. ``ValueError`` for anything else."""
    if not isinstance(text, str) or text.startswith("<<"):
        raise ValueError("a term of RDF is missing")
    try:
        (quad,) = parse(f"<urn:x:s> <urn:x:p> {text} .".encode(), RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise ValueError(f"no term of RDF: {error}") from error
    if not isinstance(quad.object, NamedNode | Literal):
        raise ValueError("a blank node")
    return quad.object


def made(kind: Any, value: Json) -> Any:
    """A value of the type from what ``plain`` made of one. ``ValueError`` where it is none."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return made(inner[0], value)
    if origin in (Union, UnionType):
        return _one_of(inner, value)
    if is_dataclass(kind):
        return _object(kind, value)
    if kind in (NamedNode, Literal):
        found = term(value)
        return found if isinstance(found, kind) else _wrong(kind)
    if origin is tuple:
        return tuple(made(inner[0], each) for each in _checked(list, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: made(inner[1], each) for key, each in _checked(dict, value).items()}
    if origin is not None:  # one of some words
        return value if value in inner else _wrong(kind)
    if kind is float and type(value) is int:
        return float(value)
    return _checked(kind, value)


def _one_of(kinds: tuple[Any, ...], value: Json) -> Any:
    if value is None and NoneType in kinds:
        return None
    for kind in kinds:
        try:
            return made(kind, value)
        except ValueError:
            continue
    return _wrong(kinds)


def _object(kind: Any, value: Json) -> Any:
    hints = _hints(kind)
    said = _checked(dict, value)
    if said.keys() != hints.keys():
        return _wrong(kind)
    return kind(**{name: made(hint, said[name]) for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    known = get_type_hints(kind, include_extras=True)
    kept = (each.name for each in fields(kind) if each.metadata.get("in_package", True))
    return {name: known[name] for name in kept}


def _checked(kind: Any, value: Json) -> Any:
    return value if type(value) is kind else _wrong(kind)


def _wrong(kind: Any) -> Any:
    raise ValueError(f"a {getattr(kind, '__name__', 'value')} is missing")
