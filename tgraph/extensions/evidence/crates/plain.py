"""Retrieval results as JSON, and back.

Parsed values are checked against their types, because packages may come from anyone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pyoxigraph import Literal, NamedNode, Triple

from tgraph.model import parse_term

Json = Any


def to_json_types(value: Any) -> Json:
    """The value in JSON's types; a term as N-Triples."""
    if isinstance(value, NamedNode | Literal | Triple):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: to_json_types(getattr(value, name)) for name in _field_hints(type(value))}
    if isinstance(value, Mapping):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_types(item) for item in value]
    return value


def read_term(text: Json) -> NamedNode | Literal:
    """Return an RDF term parsed from N-Triples. Raise ``ValueError`` for invalid input."""
    if not isinstance(text, str) or text.startswith("<<"):
        raise ValueError("a term of RDF is missing")
    return parse_term(text)


def build_value(kind: Any, value: Json) -> Any:
    """Return a typed value rebuilt from ``plain`` output. Raise ``ValueError`` for invalid
    input."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return build_value(inner[0], value)
    if origin in (Union, UnionType):
        return _one_of(inner, value)
    if is_dataclass(kind):
        return _build_object(kind, value)
    if kind in (NamedNode, Literal):
        rdf_term = read_term(value)
        return rdf_term if isinstance(rdf_term, kind) else _raise_missing(kind)
    if origin is tuple:
        return tuple(build_value(inner[0], item) for item in _check_type(list, value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: build_value(inner[1], item) for key, item in _check_type(dict, value).items()}
    if origin is not None:  # one of some words
        return value if value in inner else _raise_missing(kind)
    if kind is float and type(value) is int:
        return float(value)
    return _check_type(kind, value)


def _one_of(kinds: tuple[Any, ...], value: Json) -> Any:
    if value is None and NoneType in kinds:
        return None
    for kind in kinds:
        try:
            return build_value(kind, value)
        except ValueError:
            continue
    return _raise_missing(kinds)


def _build_object(kind: Any, value: Json) -> Any:
    hints = _field_hints(kind)
    attributes = _check_type(dict, value)
    if attributes.keys() != hints.keys():
        return _raise_missing(kind)
    return kind(**{name: build_value(hint, attributes[name]) for name, hint in hints.items()})


@cache
def _field_hints(kind: Any) -> Mapping[str, Any]:
    type_hints = get_type_hints(kind, include_extras=True)
    field_names = (
        field_info.name
        for field_info in fields(kind)
        if field_info.metadata.get("in_package", True)
    )
    return {name: type_hints[name] for name in field_names}


def _check_type(kind: Any, value: Json) -> Any:
    return value if type(value) is kind else _raise_missing(kind)


def _raise_missing(kind: Any) -> Any:
    raise ValueError(f"a {getattr(kind, '__name__', 'value')} is missing")
