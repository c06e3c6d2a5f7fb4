"""From a file's bytes to a ``Document``: choose the reader, check the limits, find a title."""

from __future__ import annotations

import hashlib
import re
from importlib import import_module
from pathlib import Path, PurePath
from typing import BinaryIO, cast

from tgraph.errors import IngestError
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits, Reader, check_lines, one_line
from tgraph.ingest.signatures import signature
from tgraph.model import Document

_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
# Media type to the module and function that read it; a reader is imported when it is needed.
_READERS = {
    "text/plain": ("text", "read_text"),
    "text/markdown": ("markdown", "read_markdown"),
    "text/html": ("html", "read_html"),
    "text/csv": ("tables", "read_csv"),
    "application/json": ("tables", "read_json"),
    "application/jsonl": ("tables", "read_json_lines"),
    "application/pdf": ("pdf", "read_pdf"),
    _DOCX: ("office", "read_docx"),
}
_SUFFIXES = {
    ".txt": "text/plain",
    ".text": "text/plain",
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".csv": "text/csv",
    ".tsv": "text/csv",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".ndjson": "application/jsonl",
    ".pdf": "application/pdf",
    ".docx": _DOCX,
}
_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)[\s>]", re.I | re.S
)
_WORDS = re.compile(r"[\s_]+|(?<=\w)-(?=\w)")


def load(
    source: Path | bytes | BinaryIO, name: str = "", limits: FileLimits = DEFAULT_LIMITS
) -> Document:
    """The document in ``source``: a path, bytes, or a binary stream that is read to its end.

    ``name`` (default: the path) tells the format by its suffix, names the file in errors and gives
    the title where the document states none. A file of an unknown suffix is read as PDF, DOCX or
    HTML if its first bytes say so, else as plain text. Its ``sha256`` is that of the bytes; the
    text of every page can be stored anywhere (no NUL, no lone surrogates). ``metadata`` may have
    the keys ``author``, ``date``, ``language`` and ``description``. Raises ``IngestError``, which
    carries the name, for a file that can't be read, isn't what it says, or is beyond the limits.
    """
    name = name or (str(source) if isinstance(source, Path) else "document")
    data = read_bytes(source, name, limits)
    kind = media_type(name, data)
    if kind.startswith("text/") and (found := signature(data)):
        raise IngestError(
            name, f"The file is {found}, not text.", "Give it the suffix of its format."
        )
    module, function = _READERS[kind]
    reader = cast(Reader, getattr(import_module(f"tgraph.ingest.{module}"), function))
    content = reader(data, name, limits)
    for page in content.pages:
        check_lines(page.text, name, limits)
    title = one_line(content.title) or readable_stem(name)
    digest = hashlib.sha256(data).hexdigest()
    return Document(digest, title, kind, content.pages, content.metadata)


def read_bytes(
    source: Path | bytes | BinaryIO, name: str, limits: FileLimits = DEFAULT_LIMITS
) -> bytes:
    """The bytes of a source, read only as far as the limit on the file's size allows."""
    most = limits.file_bytes
    data = source if isinstance(source, bytes) else _read(source, name, most + 1)
    if len(data) > most:
        raise IngestError(
            name,
            f"The file is larger than the limit of {most:,} bytes.",
            "Split it, or raise the limit.",
        )
    if not data:
        raise IngestError(name, "The file is empty.")
    return data


def media_type(name: str, data: bytes) -> str:
    """The media type that a file is read as: by its suffix, else by its first bytes."""
    known = _SUFFIXES.get(PurePath(name).suffix.lower())
    if known:
        return known
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    if data.startswith(b"PK\x03\x04") and b"word/" in data:
        return _DOCX
    return "text/html" if _HTML.match(data[:4096]) else "text/plain"


def has_known_suffix(name: str) -> bool:
    """Whether the suffix of a file's name tells its format."""
    return PurePath(name).suffix.lower() in _SUFFIXES


def readable_stem(name: str) -> str:
    """A title made of a file's name: ``annual_report-2024.txt`` gives ``Annual report 2024``."""
    path = PurePath(name)
    stem = path.stem if has_known_suffix(name) else path.name
    words = one_line(_WORDS.sub(" ", stem))
    return words[:1].upper() + words[1:] or name


def _read(source: Path | BinaryIO, name: str, most: int) -> bytes:
    try:
        if not isinstance(source, Path):
            return source.read(most)
        with source.open("rb") as stream:
            return stream.read(most)
    except IsADirectoryError:
        raise IngestError(name, "It is a folder, not a file.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IngestError(name, f"The file can't be read: {reason}.") from None
