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
from tgraph.ingest.base import reason, storable

_BEGINS = re.compile(rb"\x92(?:\xa1t|\xa2(?:ge|de|lm|lb))[\x80-\x8f\xde\xdf]")
"""How a message begins: a pair, its kind, and a map."""
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_MOST_ITEMS = 100_000
"""Of a list or map: a file that is damaged or made to harm claims any number."""
_MOST_DAMAGE = 1_000
"""Places where a message can't be read, after which the rest is left out."""


def begins_core(head: bytes) -> bool:
    """Whether a file that begins like this is a core."""
    return _BEGINS.match(head) is not None


@dataclass(slots=True)
class LibraryText:
    """A document, page or chunk that the core brings: its text, as far as it is one."""

    id: str
    title: str = ""
    kind: str = ""
    parent: str = ""
    text: str | None = None
    place: tuple[int, int] = (0, 0)
    """The number of the message with its bytes, and where that begins."""


@dataclass(slots=True)
class CoreContent:
    """What a core holds: its triples as lines of N-Quads, each once, and the texts by their ids."""

    lines: dict[str, None] = field(default_factory=dict)
    texts: dict[str, LibraryText] = field(default_factory=dict)


def read_core(data: bytes, path: str, skipped: OnSkipped) -> CoreContent:
    """All messages of a core. One that can't be read is told with its number and where it begins,
    and the next one that can is searched for. ``IngestError`` where msgpack isn't installed."""
    reader = _CoreReading(path, skipped)
    number = offset = last = damage = 0
    unpacked = _unpacked(data, path, offset)
    while offset < len(data):
        number += 1
        try:
            end, message = next(unpacked)
        except _DamageError as error:
            damage += 1
            following = _next(data, last, offset) if damage < _MOST_DAMAGE else len(data)
            rest = "; what follows is left out" if following == len(data) else ""
            reader.tell(number, offset, f"{error}{rest}")
            offset = last = following
            unpacked = _unpacked(data, path, offset)
            continue
        whole = reader.take(number, offset, message)
        within = None if whole else _BEGINS.search(data, offset + 1, end)
        last, offset = offset, end
        if within is not None:
            offset = within.start()
            unpacked = _unpacked(data, path, offset)
    return reader.content


class _DamageError(Exception):
    """A message that can't be read."""


def _next(data: bytes, last: int, damaged: int) -> int:
    """Where a message begins after one that can't be read: it may be in the one before that, whose
    end is then not where it seemed to be."""
    found = _BEGINS.search(data, last + 1)
    if found is not None and found.start() == damaged:
        found = _BEGINS.search(data, damaged + 1)
    return found.start() if found else len(data)


def _unpacked(data: bytes, path: str, start: int) -> Iterator[tuple[int, Any]]:
    """The messages from a place on, each with where it ends."""
    msgpack = _msgpack(path)
    left = len(data) - start
    file = BytesIO(data)
    file.seek(start)
    limits = {f"max_{kind}_len": left for kind in ("str", "bin", "ext")}
    limits |= {f"max_{kind}_len": min(left, _MOST_ITEMS) for kind in ("array", "map")}
    unpacker = msgpack.Unpacker(file, raw=False, max_buffer_size=max(left, 1), **limits)
    while True:
        try:
            message = unpacker.unpack()
        except msgpack.OutOfData:
            raise _DamageError("The message has no end") from None
        except (ValueError, TypeError, OverflowError, msgpack.UnpackException) as error:
            raise _DamageError(f"It is no MessagePack: {reason(error)}") from None
        if not _is_pair(message):
            raise _DamageError("It is no pair of a kind and a map")
        yield start + unpacker.tell(), message


def _is_pair(message: Any) -> bool:
    match message:
        case [str(), dict()]:
            return True
    return False


def _msgpack(path: str) -> Any:
    try:
        import msgpack
    except ModuleNotFoundError as error:
        why = "msgpack, which reads knowledge cores, isn't installed."
        remedy = 'Install it with `pip install "tgraph-rag[cores]"`.'
        raise IngestError(path, why, remedy) from error
    return msgpack


class _CoreReading:
    """Takes messages in, one after the other."""

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

    def take(self, number: int, offset: int, message: Any) -> bool:
        """Take a message in; whether all of it could be."""
        kind, told = message
        self._place, self._whole = (number, offset), True
        if kind == "t":
            self._take_triples(told)
        elif kind == "de":
            self._take_chunks(_listed(told, "c"))
        elif kind in ("lm", "lb"):
            self._take_library(kind, told)
        elif kind not in ("ge", "eos"):
            self._skip(f"There is no kind of message {kind[:20]!r}")
        return self._whole

    def _skip(self, why: str) -> None:
        self._whole = False
        self.tell(*self._place, why)

    def _take_triples(self, told: Mapping[Any, Any]) -> None:
        about = told.get("m")
        described = _listed(about, "m") if isinstance(about, dict) else []
        if not isinstance(told.get("t"), list):
            self._skip("It has no list of triples")
        for index, triple in enumerate((*described, *_listed(told, "t")), 1):
            try:
                self.content.lines[storable(f"{self._quad(triple)} .")] = None
            except (ValueError, TypeError) as error:
                self._skip(f"triple {index}: {reason(error)}")

    def _quad(self, told: Any) -> Quad:
        graph = told.get("g") if isinstance(told, dict) else None
        subject, predicate, obj = self._triple(told)
        named = NamedNode(graph) if graph else DefaultGraph()
        return Quad(subject, predicate, obj, named)

    def _triple(self, told: Any) -> Triple:
        match told:
            case {"s": subject, "p": predicate, "o": obj}:
                return Triple(*map(self._term, (subject, predicate, obj)))
        raise ValueError("it lacks a subject, predicate or object")

    def _term(self, told: Any) -> Any:
        match told:
            case {"t": "i", "i": str(iri)} | {"v": str(iri), "e": True}:
                return NamedNode(iri)
            case {"t": "b", "d": str(label)}:
                return self._nodes.setdefault(label, BlankNode(f"b{len(self._nodes)}"))
            case {"t": "t", "tr": triple}:
                return self._triple(triple)
            case {"t": "l", "v": str(value)} | {"v": str(value), "e": False}:
                return _literal(value, told.get("ln"), told.get("dt"))
        raise ValueError("a term is of no known kind")

    def _take_chunks(self, chunks: list[Any]) -> None:
        """The texts that chunks are told by; ids tell nothing."""
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
            self._skip("It has no id")
            return
        entry = self.content.texts.setdefault(name, LibraryText(name))
        if kind == "lm":
            entry.title, entry.kind, entry.parent = (_said(told, key) for key in "tkp")
        else:
            entry.place, text = self._place, _text(told.get("d"))
            entry.text = None if text is None else storable(text)


def _listed(told: Mapping[Any, Any], key: str) -> list[Any]:
    found = told.get(key)
    return found if isinstance(found, list) else []


def _said(told: Mapping[Any, Any], key: str) -> str:
    return storable(str(told.get(key) or ""))


def _literal(value: str, language: object, datatype: object) -> Literal:
    if language:
        return Literal(value, language=str(language))
    return Literal(value, datatype=NamedNode(str(datatype))) if datatype else Literal(value)


def _text(data: object) -> str | None:
    """The text of a blob, which is base64; None where it is no text."""
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
