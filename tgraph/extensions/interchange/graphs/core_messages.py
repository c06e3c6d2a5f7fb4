"""TrustGraph's knowledge cores: files of MessagePack as ``tg-get-kg-core`` writes them.

A core is messages one after the other, each a pair of a kind and a map. Its generations differ:

- ``t``: triples. A term is ``{v, e}`` (a value, and whether it is an IRI), since 2026 ``{t, …}``
  with IRIs, blank nodes, typed literals and triple terms; since then a triple may name its graph.
  ``m`` is of what document it is; in the first generation with triples about that.
- ``lm`` and ``lb``: what the librarian has of a document, page or chunk: metadata, and bytes as
  base64.
- ``de``: vectors of chunks; in the first generation with the chunks' texts in place of their ids.
- ``ge``: vectors of entities. Vectors are not read: they are made anew.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from tgraph.errors import IngestError
from tgraph.extensions.interchange.graphs.base import OnSkipped, SkippedRow
from tgraph.ingest.base import FileLimits, error_reason, storable
from tgraph.ingest.parser_process import read_items
from tgraph.ingest.rdf_statements import check_line

_BEGINS = re.compile(rb"\x92(?:\xa1t|\xa2(?:ge|de|lm|lb))[\x80-\x8f\xde\xdf]")
"""How a message begins: a pair, its kind, and a map."""
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_MOST_ITEMS = 100_000
"""Of a list or map: a file that is damaged or made to harm claims any number."""
_MOST_DAMAGE = 1_000
"""Places where a message can't be read, after which the rest is left out."""


def begins_core(head: bytes) -> bool:
    """Tell whether leading file bytes mark a knowledge core."""
    return _BEGINS.match(head) is not None


@dataclass(slots=True)
class LibraryText:
    """A document, page or chunk supplied by the core, with text if textual."""

    id: str
    title: str = ""
    kind: str = ""
    parent: str = ""
    text: str | None = None
    place: tuple[int, int] = (0, 0)
    """The number of the message with its bytes, and where that begins."""


@dataclass(slots=True)
class CoreContent:
    """A core's contents: distinct triples as N-Quads lines, and texts by id."""

    lines: dict[str, None] = field(default_factory=dict)
    texts: dict[str, LibraryText] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _CoreItem:
    """One of a triple's line, a text, and an unusable row."""

    line: str | None = None
    text: LibraryText | None = None
    skipped: SkippedRow | None = None


def read_core_isolated(
    data: bytes, path: str, limits: FileLimits, skipped: OnSkipped
) -> CoreContent:
    """As ``read_core``, in the isolated process."""
    content = CoreContent()
    for item in read_items((__name__, "core_items"), data, path, limits, _CoreItem):
        if item.line is not None:
            content.lines[item.line] = None
        if item.text is not None:
            content.texts[item.text.id] = item.text
        if item.skipped is not None:
            skipped(item.skipped)
    return content


def core_items(data: bytes, name: str, limits: FileLimits) -> Iterator[_CoreItem]:
    """Yield what ``read_core`` reads."""
    rows: list[SkippedRow] = []
    content = read_core(data, name, rows.append)
    yield from (_CoreItem(skipped=row) for row in rows)
    for line in content.lines:
        check_line(line, name)
        yield _CoreItem(line=line)
    yield from (_CoreItem(text=text) for text in content.texts.values())


def read_core(data: bytes, path: str, skipped: OnSkipped) -> CoreContent:
    """Return all messages of a core.

    An unreadable message is reported with its number and position, and reading continues at the
    next readable message. Raise ``IngestError`` if msgpack isn't installed."""
    reader = _CoreReading(path, skipped)
    number = offset = last = damage = 0
    unpacked = _unpack_messages(data, path, offset)
    while offset < len(data):
        number += 1
        try:
            end, message = next(unpacked)
        except _DamageError as error:
            damage += 1
            following = _next_message(data, last, offset) if damage < _MOST_DAMAGE else len(data)
            remark = "; what follows is left out" if following == len(data) else ""
            reader.tell(number, offset, f"{error}{remark}")
            offset = last = following
            unpacked = _unpack_messages(data, path, offset)
            continue
        is_complete = reader.read_message(number, offset, message)
        inner_start = None if is_complete else _BEGINS.search(data, offset + 1, end)
        last, offset = offset, end
        if inner_start is not None:
            offset = inner_start.start()
            unpacked = _unpack_messages(data, path, offset)
    return reader.content


class _DamageError(Exception):
    """An unreadable message."""


def _next_message(data: bytes, last: int, damaged: int) -> int:
    """Return the position of the message following an unreadable message.

    The search starts inside the preceding message, whose end may have been misjudged."""
    match = _BEGINS.search(data, last + 1)
    if match is not None and match.start() == damaged:
        match = _BEGINS.search(data, damaged + 1)
    return match.start() if match else len(data)


def _unpack_messages(data: bytes, path: str, start: int) -> Iterator[tuple[int, Any]]:
    """Yield messages starting at a position, each with end position."""
    msgpack = _import_msgpack(path)
    remaining_size = len(data) - start
    file = BytesIO(data)
    file.seek(start)
    limits = {f"max_{kind}_len": remaining_size for kind in ("str", "bin", "ext")}
    limits |= {f"max_{kind}_len": min(remaining_size, _MOST_ITEMS) for kind in ("array", "map")}
    unpacker = msgpack.Unpacker(file, raw=False, max_buffer_size=max(remaining_size, 1), **limits)
    while True:
        try:
            message = unpacker.unpack()
        except msgpack.OutOfData:
            raise _DamageError("The message has no end") from None
        except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
            raise _DamageError(f"It is no MessagePack: {error_reason(error)}") from None
        if not _is_pair(message):
            raise _DamageError("It is no pair of a kind and a map")
        yield start + unpacker.tell(), message


def _is_pair(message: Any) -> bool:
    match message:
        case [str(), dict()]:
            return True
    return False


def _import_msgpack(path: str) -> Any:
    try:
        import msgpack
    except ModuleNotFoundError as error:
        why = "msgpack, which reads knowledge cores, isn't installed."
        remedy = 'Install it with `pip install "tgraph-rag[cores]"`.'
        raise IngestError(path, why, remedy) from error
    return msgpack


class _CoreReading:
    """Reader for successive core messages."""

    def __init__(self, path: str, skipped: OnSkipped) -> None:
        self.content = CoreContent()
        self._path = path
        self._skipped = skipped
        self._nodes: dict[str, BlankNode] = {}
        self._chunks: set[str] = set()
        self._place = (0, 0)
        self._whole = True

    def tell(self, number: int, offset: int, why: str) -> None:
        self._skipped(SkippedRow(self._path, number, f"at byte {offset:,}: {why}"))

    def read_message(self, number: int, offset: int, message: Any) -> bool:
        """Read a message; return whether all parts of the message were usable."""
        kind, payload = message
        self._place, self._whole = (number, offset), True
        if kind == "t":
            self._take_triples(payload)
        elif kind == "de":
            self._take_chunks(_read_list(payload, "c"))
        elif kind in ("lm", "lb"):
            self._take_library(kind, payload)
        elif kind not in ("ge", "eos"):
            self._skip_item(f"There is no kind of message {kind[:20]!r}")
        return self._whole

    def _skip_item(self, why: str) -> None:
        self._whole = False
        self.tell(*self._place, why)

    def _take_triples(self, told: Mapping[Any, Any]) -> None:
        metadata = told.get("m")
        described = _read_list(metadata, "m") if isinstance(metadata, dict) else []
        if not isinstance(told.get("t"), list):
            self._skip_item("It has no list of triples")
        for index, triple in enumerate((*described, *_read_list(told, "t")), 1):
            try:
                self.content.lines[storable(f"{self._read_quad(triple)} .")] = None
            except (ValueError, TypeError) as error:
                self._skip_item(f"triple {index}: {error_reason(error)}")

    def _read_quad(self, told: Any) -> Quad:
        graph = told.get("g") if isinstance(told, dict) else None
        subject, predicate, obj = self._read_triple(told)
        graph_node = NamedNode(graph) if graph else DefaultGraph()
        return Quad(subject, predicate, obj, graph_node)

    def _read_triple(self, told: Any) -> Triple:
        match told:
            case {"s": subject, "p": predicate, "o": obj}:
                return Triple(*map(self._read_term, (subject, predicate, obj)))
        raise ValueError("it lacks a subject, predicate or object")

    def _read_term(self, told: Any) -> Any:
        match told:
            case {"t": "i", "i": str(iri)} | {"v": str(iri), "e": True}:
                return NamedNode(iri)
            case {"t": "b", "d": str(label)}:
                return self._nodes.setdefault(label, BlankNode(f"b{len(self._nodes)}"))
            case {"t": "t", "tr": triple}:
                return self._read_triple(triple)
            case {"t": "l", "v": str(value)} | {"v": str(value), "e": False}:
                return _create_literal(value, told.get("ln"), told.get("dt"))
        raise ValueError("a term is of no known kind")

    def _take_chunks(self, chunks: list[Any]) -> None:
        """Read texts supplied by chunks; chunk ids are ignored."""
        for chunk in chunks:
            text = chunk.get("c") if isinstance(chunk, dict) else None
            if not isinstance(text, str) or text in self._chunks or _IRI.fullmatch(text):
                continue
            self._chunks.add(text)
            name = f"chunk {len(self._chunks)}"
            self.content.texts[name] = LibraryText(name, text=storable(text))

    def _take_library(self, kind: str, told: Mapping[Any, Any]) -> None:
        name = told.get("i")
        if not isinstance(name, str) or not name:
            self._skip_item("It has no id")
            return
        entry = self.content.texts.setdefault(name, LibraryText(name))
        if kind == "lm":
            entry.title, entry.kind, entry.parent = (_read_field(told, key) for key in "tkp")
        else:
            entry.place, text = self._place, _decode_blob(told.get("d"))
            entry.text = None if text is None else storable(text)


def _read_list(told: Mapping[Any, Any], key: str) -> list[Any]:
    items = told.get(key)
    return items if isinstance(items, list) else []


def _read_field(told: Mapping[Any, Any], key: str) -> str:
    return storable(str(told.get(key) or ""))


def _create_literal(value: str, language: object, datatype: object) -> Literal:
    if language:
        return Literal(value, language=str(language))
    return Literal(value, datatype=NamedNode(str(datatype))) if datatype else Literal(value)


def _decode_blob(data: object) -> str | None:
    """Return the text of a base64 blob, or None for binary data."""
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    if not isinstance(content, bytes):
        return None
    with suppress(binascii.Error):  # a client may have decoded it
        content = b64decode(content, validate=True)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
