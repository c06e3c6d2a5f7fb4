"""Reading JSON out of what a model wrote: rows as they come, or one value, cut off or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from tgraph.models.thinking import without_thoughts

Row = TypeVar("Row", bound=BaseModel)

_DECODER = json.JSONDecoder(strict=False)  # raw line breaks in strings are common and harmless
_MARK = re.compile(r'\\.|["{}\[\],]', re.DOTALL)
_NEXT_ROW = re.compile(r"\n[\s,\[]*(?=\{)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST_ROW = 8
DEEPEST = 100  # brackets within brackets, beyond which a reply is nonsense


class JsonlReader(Generic[Row]):
    """Gives the rows of a growing text as soon as each is complete.

    Prose, code fences and blank lines between rows are passed over; rows may stand several on a
    line, over several lines, or in an array or an object around them. ``malformed`` counts what
    looked like a row and can't be used: broken JSON, a row cut off at the end, a row that
    ``row_model`` refuses.
    """

    def __init__(self, row_model: type[Row]) -> None:
        self.malformed = 0
        self._model = row_model
        self._buffer = ""

    def feed(self, text: str) -> list[Row]:
        """The rows that this piece of text completes."""
        self._buffer += text
        return list(self._read(last=False))

    def finish(self) -> list[Row]:
        """The rows that were waiting for more text."""
        rows = list(self._read(last=True))
        self._buffer = ""
        return rows

    def _read(self, *, last: bool) -> Iterator[Row]:
        position = 0
        while (start := self._buffer.find("{", position)) >= 0:
            end = closing(self._buffer, start)
            if end is None and not last and not _NEXT_ROW.search(self._buffer, start):
                self._buffer = self._buffer[start:]
                return
            position, rows = self._take(start, end)
            yield from rows
        self._buffer = ""

    def _take(self, start: int, end: int | None) -> tuple[int, list[Row]]:
        """Where to go on after the row that opens at ``start``, and the rows that it gives."""
        line = self._buffer.find("\n", start)
        line = len(self._buffer) if line < 0 else line
        if end is not None:
            whole = self._buffer[start:end]
            rows = self._rows(parsed(whole) or repaired(whole))
            if rows is not None:
                return end, rows
        written = self._buffer[start:line].rstrip(" \t\r,]`")
        rows = self._rows(repaired(written)) if written.endswith("}") else None
        if rows is None:
            self.malformed += 1
            return max(line, start + 1) if end is None else min(line, end), []
        return line, rows

    def _rows(self, value: Any, depth: int = 0) -> list[Row] | None:
        """The rows that a value is or holds, None if it can't be used."""
        if isinstance(value, list):
            return self._all_rows(value, depth)
        if not isinstance(value, dict) or not value or depth > _DEEPEST_ROW:
            return None
        if shares_a_field(value, self._model):
            with suppress(ValidationError):
                return [self._model.model_validate(value)]
        lists = (v for v in value.values() if isinstance(v, list))
        inner = [items for items in lists if any(isinstance(item, dict) for item in items)]
        return self._all_rows(inner[0], depth) if len(inner) == 1 else None

    def _all_rows(self, values: list[Any], depth: int) -> list[Row] | None:
        found = [self._rows(value, depth + 1) for value in values if isinstance(value, dict)]
        usable = [rows for rows in found if rows is not None]
        if not usable:
            return None
        self.malformed += len(found) - len(usable)
        return [row for rows in usable for row in rows]


def read_jsonl(text: str, row_model: type[Row]) -> tuple[list[Row], int]:
    """The rows of a text and the number of malformed ones; see ``JsonlReader``."""
    reader = JsonlReader(row_model)
    rows = reader.feed(text)
    rows += reader.finish()
    return rows, reader.malformed


def brackets(text: str, start: int = 0) -> Iterator[tuple[str, int]]:
    """The brackets and commas of a JSON text with their positions, those in strings left out."""
    in_string = False
    for match in _MARK.finditer(text, start):
        mark = match.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            yield mark, match.start()


def closing(text: str, start: int) -> int | None:
    """The position after the bracket that closes the one at ``start``, None if there is none."""
    depth = 0
    for mark, position in brackets(text, start):
        if mark in "{[":
            depth += 1
            if depth > DEEPEST:
                return None
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None


def parsed(text: str) -> Any:
    """The JSON value that the whole text is, None if it is none."""
    try:
        return _clean(_DECODER.decode(text), text)
    except (ValueError, RecursionError):
        return None


def breaks_off_in_a_string(text: str) -> bool:
    """Whether a text is sound JSON as far as it goes, and ends within a string."""
    try:
        _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string")
    except RecursionError:
        pass
    return False


def repaired(text: str) -> Any:
    """What ``json_repair`` makes of a text, None if nothing or if it is nested beyond reason."""
    import json_repair

    if _is_too_deep(text):  # its running time grows with the square of the depth
        return None
    try:
        return _clean(json_repair.loads(text), text)
    except (ValueError, RecursionError):
        return None


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined, and single ones, which no file can hold, replaced."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _clean(value: Any, text: str) -> Any:
    """The value without surrogates, which only an escape in ``text`` can have brought in."""
    if "\\u" not in text:
        return value
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_clean(item, text) for item in value]
    if isinstance(value, dict):
        return {without_surrogates(name): _clean(item, text) for name, item in value.items()}
    return value


def _is_too_deep(text: str) -> bool:
    depth = 0
    for mark, _ in brackets(text):
        depth += {"{": 1, "[": 1, ",": 0}.get(mark, -1)
        if depth > DEEPEST:
            return True
    return False


def shares_a_field(value: dict[str, Any], model: type[BaseModel]) -> bool:
    """Whether an object has any field of a model: one of defaults only would take any object."""
    fields = model.model_fields
    return any(name in fields for name in value) or any(
        field.alias in value for field in fields.values() if field.alias
    )


T = TypeVar("T", bound=BaseModel)
Path = tuple[int | str, ...]

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
    for value, mended, cut in _values(without_thoughts(text[:_LONGEST])[0]):
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
                found = ((e["loc"], e["msg"]) for e in error.errors()[:5])
                said = [f"{'.'.join(map(str, loc)) or 'the reply'}: {why}" for loc, why in found]
                return "; ".join(said) + "."
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
