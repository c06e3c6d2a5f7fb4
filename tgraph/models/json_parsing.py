"""JSON extraction from model output: incremental rows, or a single value, possibly truncated."""

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
    """An incremental reader yielding rows of a growing text as soon as complete.

    Prose, code fences and blank lines between rows are skipped; rows may share a line, extend
    over several lines, or be enclosed in an array or object. ``malformed`` counts unusable text
    resembling rows: broken JSON, a row truncated at the end, a row refused by ``row_model``."""

    def __init__(self, row_model: type[Row]) -> None:
        self.malformed = 0
        self._model = row_model
        self._buffer = ""

    def feed(self, text: str) -> list[Row]:
        """Return rows completed by the new text."""
        self._buffer += text
        return list(self._read_rows(last=False))

    def finish(self) -> list[Row]:
        """Return rows still waiting for more text."""
        rows = list(self._read_rows(last=True))
        self._buffer = ""
        return rows

    def _read_rows(self, *, last: bool) -> Iterator[Row]:
        position = 0
        while (start := self._buffer.find("{", position)) >= 0:
            end = find_closing(self._buffer, start)
            if end is None and not last and not _NEXT_ROW.search(self._buffer, start):
                self._buffer = self._buffer[start:]
                return
            position, rows = self._take_row(start, end)
            yield from rows
        self._buffer = ""

    def _take_row(self, start: int, end: int | None) -> tuple[int, list[Row]]:
        """Return the position following the row opening at ``start``, plus the resulting rows."""
        line = self._buffer.find("\n", start)
        line = len(self._buffer) if line < 0 else line
        if end is not None:
            row_text = self._buffer[start:end]
            rows = self._find_rows(parse_json(row_text) or repair_json(row_text))
            if rows is not None:
                return end, rows
        written = self._buffer[start:line].rstrip(" \t\r,]`")
        rows = self._find_rows(repair_json(written)) if written.endswith("}") else None
        if rows is None:
            self.malformed += 1
            return max(line, start + 1) if end is None else min(line, end), []
        return line, rows

    def _find_rows(self, value: Any, depth: int = 0) -> list[Row] | None:
        """Return rows contained in a value; None if unusable."""
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
        row_lists = [
            self._find_rows(value, depth + 1) for value in values if isinstance(value, dict)
        ]
        usable = [rows for rows in row_lists if rows is not None]
        if not usable:
            return None
        self.malformed += len(row_lists) - len(usable)
        return [row for rows in usable for row in rows]


def read_jsonl(text: str, row_model: type[Row]) -> tuple[list[Row], int]:
    """Return a text's rows and the number of malformed rows; see ``JsonlReader``."""
    reader = JsonlReader(row_model)
    rows = reader.feed(text)
    rows += reader.finish()
    return rows, reader.malformed


def find_brackets(text: str, start: int = 0) -> Iterator[tuple[str, int]]:
    """Yield brackets and commas of a JSON text with positions, ignoring strings."""
    in_string = False
    for match in _MARK.finditer(text, start):
        mark = match.group()
        if mark == '"':
            in_string = not in_string
        elif not in_string and len(mark) == 1:
            yield mark, match.start()


def find_closing(text: str, start: int) -> int | None:
    """Return the position following the bracket that closes the bracket at ``start``; None if
    unclosed."""
    depth = 0
    for mark, position in find_brackets(text, start):
        if mark in "{[":
            depth += 1
            if depth > DEEPEST:
                return None
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return position + 1
    return None


def parse_json(text: str) -> Any:
    """Parse the text as a JSON value; return None if invalid."""
    try:
        return _clean_surrogates(_DECODER.decode(text), text)
    except (ValueError, RecursionError):
        return None


def breaks_off_in_a_string(text: str) -> bool:
    """Return whether a text is valid JSON so far, but ends inside a string."""
    try:
        _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string")
    except RecursionError:
        pass
    return False


def repair_json(text: str) -> Any:
    """Repair a text with ``json_repair``; return None for failures and excessive nesting."""
    import json_repair

    if _is_too_deep(text):  # its running time grows with the square of the depth
        return None
    try:
        return _clean_surrogates(json_repair.loads(text), text)
    except (ValueError, RecursionError):
        return None


def without_surrogates(text: str) -> str:
    """The text with surrogate pairs joined, and single ones, which no file can hold, replaced."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _clean_surrogates(value: Any, text: str) -> Any:
    """Return the value with surrogates removed; surrogates arise only from escapes in ``text``."""
    if "\\u" not in text:
        return value
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_clean_surrogates(item, text) for item in value]
    if isinstance(value, dict):
        return {
            without_surrogates(name): _clean_surrogates(item, text) for name, item in value.items()
        }
    return value


def _is_too_deep(text: str) -> bool:
    depth = 0
    for mark, _ in find_brackets(text):
        depth += {"{": 1, "[": 1, ",": 0}.get(mark, -1)
        if depth > DEEPEST:
            return True
    return False


def shares_a_field(value: dict[str, Any], model: type[BaseModel]) -> bool:
    """Return whether an object has any model field: models with only defaults would accept any
    object."""
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
    """A value read from text, with details of the repairs."""

    value: T
    repaired: bool
    dropped: int
    truncated: bool


def read_reply(text: str, schema: type[T]) -> Read[T] | str:
    """Read text as a ``schema`` value, or return a sentence explaining the failure.

    Code fences, surrounding prose, trailing commas and other slips are tolerated; from a
    truncated text the complete items of the outermost lists are kept. List items that don't fit
    the schema are dropped and counted."""
    problem = "it holds no JSON."
    for value, mended, cut in _candidate_values(without_thoughts(text[:_LONGEST])[0]):
        read = _validate_value(_wrap_list(value, schema), schema)
        if isinstance(read, str):
            problem = f"it was cut off; {read}" if cut else read
        elif _is_nothing(value, read[1], cut):
            problem = "it holds no usable item."
        else:
            reply_value, dropped, changed = read
            return Read(reply_value, mended or changed, dropped + cut, cut)
    return problem


def _is_nothing(value: Any, dropped: int, cut: bool) -> bool:
    """Return whether a value lacks content: a list without fitting items, or an object
    truncated before any value."""
    if isinstance(value, list):
        return bool(dropped) and dropped >= len(value)
    return cut and not any(value.values())


def _candidate_values(text: str) -> Iterator[tuple[Any, bool, bool]]:
    """The JSON values that a text may stand for, likeliest first: value, mended, cut off."""
    plain = parse_json(text.strip())
    if isinstance(plain, dict | list):
        yield plain, False, False
        return
    for part in [*_FENCE.findall(text), text]:
        yield from _embedded_values(part)


def _embedded_values(text: str) -> Iterator[tuple[Any, bool, bool]]:
    position = 0
    for match in islice(_OPEN.finditer(text), _MOST_STARTS):
        start = match.start()
        if start < position:
            continue
        end = find_closing(text, start)
        if end is None:
            yield from _unclosed_values(text[start:])
            return
        position = end
        json_text = text[start:end]
        value = parse_json(json_text) or repair_json(json_text)
        if isinstance(value, dict | list) and value:
            yield value, True, False


def _unclosed_values(text: str) -> Iterator[tuple[Any, bool, bool]]:
    """Yield values of a text without visible end, either truncated or with unbalanced quotes."""
    ended = text.rstrip("` \t\r\n")
    out_of_step = _ENDED.search(ended) and len(_QUOTE.findall(ended)) % 2
    if out_of_step and not breaks_off_in_a_string(text):
        yield repair_json(text), True, False
    part = complete_part(text)
    if part:
        value = parse_json(part) or repair_json(part)
        if value:
            yield value, True, True


def complete_part(text: str) -> str:
    """Return truncated JSON text, cut back to the last complete item and closed.

    Complete items are finished items of an outermost list, and members of the objects around
    such lists. Returns an empty text if nothing is complete."""
    stack: list[str] = []
    end, closers = 0, ""
    for mark, start in find_brackets(text):
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


def _wrap_list(value: Any, schema: type[BaseModel]) -> Any:
    """Wrap a bare list in the schema's object, if the schema has a single list."""
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], dict) and set(value[0]) & set(schema.model_fields):
        return value[0]
    properties = schema.model_json_schema().get("properties", {})
    lists = [name for name, sub in properties.items() if sub.get("type") == "array"]
    return {lists[0]: value} if len(lists) == 1 else value


def _validate_value(value: Any, schema: type[T]) -> tuple[T, int, bool] | str:
    """Return the validated value, number of dropped items and whether anything changed; or an
    error text."""
    if isinstance(value, dict) and not shares_a_field(value, schema):
        return f"none of {', '.join(schema.model_fields)} is in it."
    original, dropped = value, 0
    while True:
        try:
            return schema.model_validate(value), dropped, value is not original
        except ValidationError as error:
            bad = {path for e in error.errors() if (path := _left_out(e["loc"], e))}
            smaller = _remove_paths(value, bad)
            if smaller == value:
                error_details = ((e["loc"], e["msg"]) for e in error.errors()[:5])
                problems = [
                    f"{'.'.join(map(str, loc)) or 'the reply'}: {why}" for loc, why in error_details
                ]
                return "; ".join(problems) + "."
            value = smaller
            dropped += sum(isinstance(path[-1], int) for path in bad)


def _left_out(location: Path, error: Any) -> Path | None:
    """Return the path to drop: a null value, or else the innermost list item containing the
    error."""
    if error["input"] is None and location and isinstance(location[-1], str):
        return location
    items = [index for index, part in enumerate(location) if isinstance(part, int)]
    return location[: items[-1] + 1] if items else None


def _remove_paths(value: Any, bad: set[Path], path: Path = ()) -> Any:
    if isinstance(value, list):
        kept_items = [(i, item) for i, item in enumerate(value) if (*path, i) not in bad]
        return [_remove_paths(item, bad, (*path, i)) for i, item in kept_items]
    if isinstance(value, dict):
        kept_names = [(n, item) for n, item in value.items() if (*path, n) not in bad]
        return {n: _remove_paths(item, bad, (*path, n)) for n, item in kept_names}
    return value
