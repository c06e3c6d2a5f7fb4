"""From a value to its JSON, and to the JSON Schema of that: one table for both.

A ``JsonShape`` says which attributes of a value are printed, under which names and in which order.
Types and descriptions are those of the value itself: a description stands beside the field, as
``Annotated[str, "IRI of the chunk"]``. Only making a schema imports pydantic.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, MISSING, asdict, dataclass, field, is_dataclass
from operator import attrgetter
from types import SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from pydantic import BaseModel

_REQUIRED: Any = ...
"""In the place of a default, as pydantic has it."""


@dataclass(frozen=True, slots=True)
class JsonKey:
    """A key that is not just an attribute: its type, its description and how it is read (by
    default as the attribute of its name). With a default it is not required."""

    type: Any
    description: str | None = None
    read: Callable[[Any], Any] | None = None
    default: Any = _REQUIRED


@dataclass(eq=False)
class JsonShape:
    """The JSON object of the values of a class.

    ``keys`` names attributes, in the order in which they are printed; ``name=attribute`` prints an
    attribute under another name. ``given`` are keys that need more than that. ``parts`` are the
    shapes of what the values hold; any other dataclass is printed as it is. With ``defaults`` a key
    is not required whose field has a default.
    """

    name: str
    of: type
    doc: str | None
    keys: str
    parts: tuple[JsonShape, ...] = ()
    given: Mapping[str, JsonKey] = field(default_factory=dict)
    _: KW_ONLY
    defaults: bool = False

    def __post_init__(self) -> None:
        self._attributes = dict(_pairs(self.keys))
        self._parts = {part.of: part for part in self.parts}

    def plain(self, value: object, **known: object) -> dict[str, Any]:
        """The value as plain dictionaries, lists and scalars; ``known`` are keys that the value
        itself can't tell."""
        return {
            key: self._plain(known[key] if key in known else self._reader(key)(value))
            for key in self._attributes
        }

    def _reader(self, key: str) -> Callable[[Any], Any]:
        given = self.given.get(key)
        return (given and given.read) or attrgetter(self._attributes[key])

    def _plain(self, value: Any) -> Any:
        if part := self._parts.get(type(value)):
            return part.plain(value)
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        if isinstance(value, Mapping):
            return {key: self._plain(item) for key, item in value.items()}
        return [self._plain(item) for item in value] if isinstance(value, tuple | list) else value

    def model(self) -> type[BaseModel]:
        """The same shape as a model of pydantic."""
        from pydantic import ConfigDict, create_model

        config = ConfigDict(extra="forbid")
        fields: Any = {key: self._field(key) for key in self._attributes}
        return create_model(self.name, __config__=config, __doc__=self.doc, **fields)

    def _field(self, key: str) -> tuple[Any, Any]:
        from pydantic import Field

        found = self.given.get(key) or self._key_of(self._attributes[key])
        return self._with_parts(found.type), Field(found.default, description=found.description)

    def _key_of(self, attribute: str) -> JsonKey:
        """What the class says of its attribute, be that a field or a property."""
        hint, description = _hint(self.of, attribute), None
        if get_origin(hint) is Annotated:
            hint, description = get_args(hint)[:2]
        own = getattr(self.of, "__dataclass_fields__", {}).get(attribute)
        default = own.default if self.defaults and own else MISSING
        return JsonKey(hint, description, default=_REQUIRED if default is MISSING else default)

    def _with_parts(self, hint: Any) -> Any:
        """The type with the models of the parts in the place of their classes."""
        if hint in self._parts:
            return self._parts[hint].model()
        arguments = tuple(map(self._with_parts, get_args(hint)))
        if arguments == get_args(hint):
            return hint
        if get_origin(hint) in (Union, UnionType):
            return Union[arguments]  # noqa: UP007
        return get_origin(hint)[arguments]


def _pairs(keys: str) -> Iterator[tuple[str, str]]:
    for word in keys.split():
        key, _, attribute = word.partition("=")
        yield key, attribute or key


def _hint(of: type, name: str) -> Any:
    """The type of a field or property; other hints of the class may name what is not imported."""
    for base in of.__mro__:
        scope = vars(inspect.getmodule(base)) if inspect.getmodule(base) else {}
        found = vars(base).get(name)
        known = {name: inspect.get_annotations(base).get(name)}
        if isinstance(found, property) and found.fget:
            known = {name: inspect.get_annotations(found.fget)["return"]}
        if known[name] is not None:
            alone = SimpleNamespace(__annotations__=known)
            return get_type_hints(alone, scope, include_extras=True)[name]
    raise AttributeError(f"{of.__name__} has no {name}")
