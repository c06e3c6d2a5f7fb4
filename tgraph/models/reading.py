"""Reading one JSON value out of what a model wrote, when it is wrapped, slipped or cut off."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tgraph.models.jsonl import (
    DEEPEST,
    brackets,
    breaks_off_in_a_string,
    closing,
    parsed,
    repaired,
    shares_a_field,
)

T = TypeVar("T", bound=BaseModel)
Path = tuple[int | str, ...]

_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```[\w-]*[^\S\n]*\n(.*?)(?:\n\s*```|\Z)", re.DOTALL)
_OPEN = re.compile(r"[{\[]")
_ENDED = re.compile(r"""(?<!\\)["\d\]}]\s*[}\]]\Z""")
_QUOTE = re.compile(r'(?<!\\)"')
_MOST_STARTS = 40
_LONGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """What a text says, and what had to be done to read it."""

    value: T
    repaired: bool
    dropped: int
    truncated: bool


def read_reply(text: str, schema: type[T]) -> Read[T] | str:
    """The text as a ``schema``, or one sentence on why it is none.

    Reads through code fences and prose around the JSON, trailing commas and other slips; of a text
    that was cut off it keeps the complete items of its outermost lists. Items of lists that don't
    fit the schema are dropped and counted.
    """
    problem = "it holds no JSON."
    for value, mended, cut in _values(_THOUGHT.sub("", text[:_LONGEST])):
        read = _validated(_shaped(value, schema), schema)
        if isinstance(read, str):
            problem = f"it was cut off; {read}" if cut else read
        elif _is_nothing(value, read[1], cut):
            problem = "it holds no usable item."
        else:
            found, dropped, changed = read
            return Read(found, mended or changed, dropped + cut, cut)
    return problem


def _is_nothing(value: Any, dropped: int, cut: bool) -> bool:
    """Whether it is a list of which no item fits, or was cut off before anything was said."""
    if isinstance(value, list):
        return bool(dropped) and dropped >= len(value)
    return cut and not any(value.values())


# --- where the JSON is --------------------------------------------------------------------------


def _values(text: str) -> Iterator[tuple[Any, bool, bool]]:
    """The JSON values that a text may stand for, likeliest first: value, mended, cut off."""
    plain = parsed(text.strip())
    if isinstance(plain, dict | list):
        yield plain, False, False
        return
    for part in [*_FENCE.findall(text), text]:
        yield from _within(part)


def _within(text: str) -> Iterator[tuple[Any, bool, bool]]:
    position = 0
    for match in islice(_OPEN.finditer(text), _MOST_STARTS):
        start = match.start()
        if start < position:
            continue
        end = closing(text, start)
        if end is None:
            yield from _unclosed(text[start:])
            return
        position = end
        whole = text[start:end]
        value = parsed(whole) or repaired(whole)
        if isinstance(value, dict | list) and value:
            yield value, True, False


def _unclosed(text: str) -> Iterator[tuple[Any, bool, bool]]:
    """Values of a text whose end was not seen: it was cut off, or its quotes are out of step."""
    ended = text.rstrip("` \t\r\n")
    out_of_step = _ENDED.search(ended) and len(_QUOTE.findall(ended)) % 2
    if out_of_step and not breaks_off_in_a_string(text):
        yield repaired(text), True, False
    part = complete_part(text)
    if part:
        value = parsed(part) or repaired(part)
        if value:
            yield value, True, True


def complete_part(text: str) -> str:
    """A JSON text that was cut off, cut back to its last complete item and closed.

    Complete are the items of an outermost list that have ended, and the members of objects around
    such lists. Empty if nothing is complete.
    """
    stack: list[str] = []
    end, closers = 0, ""
    for mark, start in brackets(text):
        if mark in "{[":
            stack.append("}" if mark == "{" else "]")
        elif mark != "," and stack:
            stack.pop()
        if len(stack) > DEEPEST:
            break
        lists = stack.count("]")
        in_outermost = lists == 1 and stack[-1] == "]"
        if in_outermost or (lists == 0 and mark not in "{["):
            end, closers = start if mark == "," else start + 1, "".join(reversed(stack))
    return text[:end] + closers


# --- whether it fits ----------------------------------------------------------------------------


def _shaped(value: Any, schema: type[BaseModel]) -> Any:
    """A bare list as the object whose only list it must be."""
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], dict) and set(value[0]) & set(schema.model_fields):
        return value[0]
    properties = schema.model_json_schema().get("properties", {})
    lists = [name for name, sub in properties.items() if sub.get("type") == "array"]
    return {lists[0]: value} if len(lists) == 1 else value


def _validated(value: Any, schema: type[T]) -> tuple[T, int, bool] | str:
    """The value, how many items were left out and whether anything was; or what is wrong."""
    if isinstance(value, dict) and not shares_a_field(value, schema):
        return f"none of {', '.join(schema.model_fields)} is in it."
    original, dropped = value, 0
    while True:
        try:
            return schema.model_validate(value), dropped, value is not original
        except ValidationError as error:
            bad = {path for e in error.errors() if (path := _left_out(e["loc"], e))}
            smaller = _without(value, bad)
            if smaller == value:
                return _said(error)
            value = smaller
            dropped += sum(isinstance(path[-1], int) for path in bad)


def _left_out(location: Path, error: Any) -> Path | None:
    """The path of what to leave out: a null, or else the innermost list item with the error."""
    if error["input"] is None and location and isinstance(location[-1], str):
        return location
    items = [index for index, part in enumerate(location) if isinstance(part, int)]
    return location[: items[-1] + 1] if items else None


def _without(value: Any, bad: set[Path], path: Path = ()) -> Any:
    if isinstance(value, list):
        kept = [(i, item) for i, item in enumerate(value) if (*path, i) not in bad]
        return [_without(item, bad, (*path, i)) for i, item in kept]
    if isinstance(value, dict):
        kept_names = [(n, item) for n, item in value.items() if (*path, n) not in bad]
        return {n: _without(item, bad, (*path, n)) for n, item in kept_names}
    return value


def _said(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(map(str, e['loc'])) or 'the reply'}: {e['msg']}" for e in error.errors()[:5]
    ]
    return "; ".join(problems) + "."
