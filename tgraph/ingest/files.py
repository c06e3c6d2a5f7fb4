"""File discovery from call arguments, and loading file bytes into a ``Document``."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path, PurePath
from typing import BinaryIO

from tgraph.errors import IngestError, UsageError
from tgraph.ingest.base import DEFAULT_LIMITS, FileLimits, Loader, check_lines
from tgraph.ingest.parser_process import load_reader, parse
from tgraph.model import Document, ReadingReport
from tgraph.plugins import LOADERS
from tgraph.rendering import collapse_whitespace

# Offset, bytes (or several), name. A ZIP may be DOCX, so it comes with what it might hold.
_SIGNATURES = (
    (0, b"%PDF-", "a PDF"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, (b"GIF87a", b"GIF89a"), "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (0, (b"II*\0", b"MM\0*"), "a TIFF image"),
    (0, b"\0\0\x01\0", "an icon"),
    (8, b"WAVE", "a sound"),
    (8, b"AVI ", "a video"),
    (4, b"ftyp", "a video, sound or picture in MP4"),
    (0, b"ID3", "an MP3 sound"),
    (0, b"OggS", "an Ogg sound or video"),
    (0, b"fLaC", "a FLAC sound"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska video"),
    (0, b"PK\x03\x04", "a ZIP archive or an office document"),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"BZh", "a bzip2 archive"),
    (0, b"\xfd7zXZ\0", "an xz archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (257, b"ustar", "a tar archive"),
    (0, (b"\x7fELF", b"MZ\x90\0", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm"), "a program"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted Office document"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"PAR1", "a Parquet table"),
    (0, (b"wOFF", b"wOF2", b"\0\x01\0\0\0", b"OTTO"), "a font"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"{\\rtf", "an RTF document"),
)
STANDARD_INPUT = "-"
STDIN_NAME = "stdin"
_LONGEST = 512
# Formats that may begin with nothing but text.
_TEXTUAL = frozenset(("a PDF", "an RTF document"))
_EPUB = "application/epub+zip"
_ODT = "application/vnd.oasis.opendocument.text"
_ODP = "application/vnd.oasis.opendocument.presentation"
_PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"
_PARQUET = "application/vnd.apache.parquet"
# Media type to the module and function that read it, and its suffixes.
_READERS = {
    "text/plain": ("text", "read_text", ".txt .text"),
    "text/markdown": ("markdown", "read_markdown", ".md .markdown"),
    "text/x-rst": ("rst", "read_rst", ".rst"),
    "text/asciidoc": ("asciidoc", "read_asciidoc", ".adoc .asciidoc"),
    "text/html": ("html", "read_html", ".html .htm .xhtml"),
    "text/csv": ("csv_tables", "read_csv", ".csv .tsv .tab"),
    "application/json": ("records", "read_json", ".json"),
    "application/jsonl": ("records", "read_json_lines", ".jsonl .ndjson"),
    "application/pdf": ("pdf", "read_pdf", ".pdf"),
    _DOCX: ("word", "read_docx", ".docx"),
    _EPUB: ("epub", "read_epub", ".epub"),
    _PPTX: ("pptx", "read_pptx", ".pptx"),
    _ODT: ("odf_text", "read_odt", ".odt"),
    _ODP: ("odf_text", "read_odp", ".odp"),
    _XLSX: ("xlsx", "read_xlsx", ".xlsx .xlsm .xltx"),
    _ODS: ("ods", "read_ods", ".ods .ots"),
    _PARQUET: ("parquet", "read_parquet", ".parquet"),
    "application/xml": ("xml_documents", "read_xml", ".xml .nxml"),
    "application/x-tex": ("latex", "read_latex", ".tex .latex"),
    "message/rfc822": ("mail", "read_eml", ".eml"),
    "application/mbox": ("mail", "read_mbox", ".mbox"),
    "application/vnd.ms-outlook": ("mail", "read_msg", ".msg"),
}
# The version of the reading of each format whose stored text has changed.
_READING_VERSIONS = dict.fromkeys(
    (
        *("text/x-rst", "text/asciidoc", "text/html", "text/csv", "application/json"),
        *("application/jsonl", "application/pdf", "application/xml", "text/markdown", _DOCX, _EPUB),
    ),
    2,
)
# Text that is kept as it is: tgraph's own code reads it, without a native parser and without
# unpacking anything, in memory and time that grow with the file alone. It is segmented in this
# process afterwards anyway.
_PLAIN, _MARKDOWN = "text/plain", "text/markdown"
_READ_HERE = frozenset((_PLAIN, _MARKDOWN))
_MARKDOWN_LINK = re.compile(rb"\[[^\[\]\r\n]{1,200}\]\((?:https?://|mailto:|/|#|\.)[^\s()]*")
_LEAST_LINKS = 3
_SUFFIXES = {suffix: kind for kind, (*_, known) in _READERS.items() for suffix in known.split()}
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html)[\s>]", re.I | re.S
)
_WORDS = re.compile(r"[\s_]+|(?<=\w)-(?=\w)")


def detect_signature(data: bytes) -> str:
    """Return the format that the data's beginning indicates (``"a PNG image"``); empty for
    unknown formats."""
    for offset, mark, name in _SIGNATURES:
        if data.startswith(mark, offset):
            return name if name in _TEXTUAL or not _begins_as_text(data[:_LONGEST]) else ""
    return ""


def _begins_as_text(head: bytes) -> bool:
    """Return whether the data may continue as prose that merely begins like another format."""
    try:
        return "\0" not in head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"


def load(
    source: Path | bytes | BinaryIO, name: str = "", limits: FileLimits = DEFAULT_LIMITS
) -> Document:
    """Load a document from ``source``: a path, bytes, or a binary stream, read to its end.

    ``name`` (default: the path) determines the format by suffix, identifies the file in errors
    and gives the title if the document states none. A file with an unknown suffix is read as
    PDF, DOCX, EPUB or HTML if its first bytes indicate the format, else as plain text.
    ``sha256`` is the hash of the bytes; the text of every page can be stored anywhere (no NUL,
    no lone surrogates). ``metadata`` may have the keys ``author``, ``date``, ``language``,
    ``description`` and ``tags`` (separated by commas). Formats other than plain text and
    Markdown are parsed in a separate process (see ``parser_process``). Raises ``IngestError``,
    including the name, for a file that can't be read, contradicts its format, or exceeds the
    limits."""
    name = name or (str(source) if isinstance(source, Path) else "document")
    data = read_bytes(source, name, limits)
    kind = media_type(name, data)
    if kind.startswith("text/") and (binary_format := detect_signature(data)):
        raise IngestError(
            name,
            f"The file is {binary_format}, not text.",
            "Rename the file with the suffix of the format.",
        )
    place = _place_of_reader(kind)
    read = load_reader(*place) if kind in _READ_HERE else partial(parse, place)
    content = read(data, name, limits)
    for page in content.pages:
        check_lines(page.text, name, limits)
    title = collapse_whitespace(content.title) or readable_stem(name)
    digest = hashlib.sha256(data).hexdigest()
    report = replace(content.report or ReadingReport(), version=reading_version(kind))
    return Document(digest, title, kind, content.pages, content.metadata, report)


def read_bytes(
    source: Path | bytes | BinaryIO, name: str, limits: FileLimits = DEFAULT_LIMITS
) -> bytes:
    """Return a source's bytes, reading no further than the file size limit."""
    byte_limit = limits.file_bytes
    data = source if isinstance(source, bytes) else _read_source(source, name, byte_limit + 1)
    if len(data) > byte_limit:
        raise IngestError(
            name,
            f"The file is larger than the limit of {byte_limit:,} bytes.",
            "Split it, or raise the limit.",
        )
    if not data:
        raise IngestError(name, "The file is empty.")
    return data


def media_type(name: str, data: bytes) -> str:
    """Return the media type for reading a file, by suffix, else by leading bytes; text with links
    in Markdown is Markdown."""
    kind = media_type_of_suffix(name) or _detect_media_type(data)
    return _MARKDOWN if kind == _PLAIN and _is_markdown(data) else kind


def _detect_media_type(data: bytes) -> str:
    if data.startswith(b"%PDF-"):
        return "application/pdf"
    if data.startswith(b"PK\x03\x04") and _EPUB.encode() in data[:100]:
        return _EPUB
    if data.startswith(b"PAR1"):
        return _PARQUET
    if data.startswith(b"PK\x03\x04"):
        for kind in (_ODT, _ODP, _ODS):
            if kind.encode() in data[:200]:
                return kind
        for folder, kind in ((b"word/", _DOCX), (b"ppt/", _PPTX), (b"xl/", _XLSX)):
            if folder in data:
                return kind
    return "text/html" if _HTML_START.match(data[:4096]) else _PLAIN


def _is_markdown(data: bytes) -> bool:
    """Return whether a text without a suffix of its own, such as a scraped web page, has links as
    Markdown writes them."""
    return len(list(islice(_MARKDOWN_LINK.finditer(data), _LEAST_LINKS))) == _LEAST_LINKS


def reading_version(media_type: str) -> int:
    """Return the version of the reading of a format, of which another may store another text."""
    return _READING_VERSIONS.get(media_type, 1)


def has_known_suffix(name: str) -> bool:
    """Return whether a file name's suffix determines the format."""
    return bool(media_type_of_suffix(name))


def media_type_of_suffix(name: str) -> str:
    """Return the media type that the suffix of a name tells; empty for an unknown suffix."""
    suffix = PurePath(name).suffix.lower()
    return _SUFFIXES.get(suffix) or _added_suffixes().get(suffix, "")


@cache
def _added_loaders() -> Mapping[str, Loader]:
    return LOADERS.call_all(reserved=_READERS)


@cache
def _added_suffixes() -> Mapping[str, str]:
    """Return the media type of each suffix that extensions load. Raise ``UsageError`` where a
    suffix is taken twice."""
    added: dict[str, str] = {}
    for media_type, loader in _added_loaders().items():
        for suffix in loader.suffixes:
            if owner := _SUFFIXES.get(suffix) or added.get(suffix):
                raise UsageError(
                    f"The loaders of {owner} and {media_type} both read {suffix}.",
                    "Uninstall one of the packages.",
                )
            added[suffix] = media_type
    return added


def _place_of_reader(media_type: str) -> tuple[str, str]:
    """Return the module and the name of the function that reads a media type."""
    if media_type in _READERS:
        module, function, _ = _READERS[media_type]
        return f"tgraph.ingest.{module}", function
    read = _added_loaders()[media_type].read
    return read.__module__, read.__name__


def readable_stem(name: str) -> str:
    """A title made of a file's name: ``annual_report-2024.txt`` gives ``Annual report 2024``."""
    path = PurePath(name)
    stem = path.stem if has_known_suffix(name) else path.name
    words = collapse_whitespace(_WORDS.sub(" ", stem))
    return words[:1].upper() + words[1:] or name


def _read_source(source: Path | BinaryIO, name: str, most: int) -> bytes:
    try:
        if not isinstance(source, Path):
            return source.read(most)
        with source.open("rb") as stream:
            return stream.read(most)
    except IsADirectoryError:
        raise IngestError(name, "The path is a folder, not a file.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise IngestError(name, f"The file can't be read: {reason}.") from None


# --- discovery ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to ingest; ``path`` is None for standard input, named ``stdin``, and for ``data`` in
    memory.

    ``name`` is the path as reached from the call, with characters outside UTF-8 escaped."""

    name: str
    path: Path | None
    data: bytes | None = None

    def read(self, limits: FileLimits = DEFAULT_LIMITS) -> bytes:
        """Return the file's bytes; raise ``IngestError`` if unreadable or too large."""
        source = self.data if self.data is not None else self.path
        return read_bytes(sys.stdin.buffer if source is None else source, self.name, limits)


@dataclass(frozen=True, slots=True)
class Unread:
    """A path yielding no document, with the reason.

    ``skipped`` is True for a file found in a folder that is plainly no document (a picture, an
    archive): worth a note. All other cases are failures of the call."""

    name: str
    reason: str
    skipped: bool = False


FoundFile = SourceFile | Unread


def discover_files(paths: Sequence[str], *, follow_links: bool = False) -> Iterator[FoundFile]:
    """Yield files denoted by the paths, in path order, sorted within each folder.

    A path is a file, a folder (with all contents, except hidden files and folders containing a
    tgraph graph), a glob (``**`` crosses folders) or ``-`` for standard input. A file is
    yielded once, however many paths or links lead to the file; loops of links end. A symbolic
    link leading out of the named folder is followed only with ``follow_links``. Missing,
    unreadable or unfollowed paths are yielded as ``Unread`` in place and don't stop the rest."""
    walk = _Discovery(follow_links)
    for place, path in enumerate(paths):
        if path != STANDARD_INPUT:
            yield from walk.argument(path)
        elif place == paths.index(path):
            yield SourceFile(STDIN_NAME, None)


def is_graph_folder(path: Path) -> bool:
    """Return whether a folder holds a tgraph graph."""
    return (path / "graph.json").is_file() and (path / "collections").is_dir()


class _Discovery:
    """A search for files denoted by paths, yielding each file once."""

    def __init__(self, follow_links: bool) -> None:
        self._follow_links = follow_links
        self._seen: set[tuple[int, int]] = set()

    def argument(self, path: str) -> Iterator[FoundFile]:
        if has_magic(path) and not os.path.lexists(path):
            matches = sorted(glob(path, recursive=True))  # noqa: PTH207 (Path.glob takes no absolute pattern)
            if not matches:
                yield Unread(_printable_path(path), "The pattern matches no file.")
            fixed = Path(path[: re.search(r"[*?\[]", path).start()] + "_").parent  # type: ignore[union-attr]
            for match in matches:
                yield from self._visit_path(Path(match), fixed.resolve(), asked=False)
        else:
            yield from self._visit_path(Path(path), Path(path).resolve(), asked=True)

    def _visit_path(self, path: Path, within: Path, asked: bool) -> Iterator[FoundFile]:
        """Yield files found at a path.

        ``asked`` means that the user named the path; otherwise the path was found below the
        folder ``within``."""
        try:
            status = path.stat()
            leads_out = not (asked or self._follow_links) and _leads_out(path, within)
        except OSError as error:
            yield Unread(_printable_path(path), _failure_reason(path, error))
            return
        if leads_out:
            yield Unread(_printable_path(path), _LEADS_OUT, skipped=True)
            return
        key = (status.st_dev, status.st_ino)
        if key in self._seen:
            return
        self._seen.add(key)
        if stat.S_ISDIR(status.st_mode):
            yield from self._visit_folder(path, within, asked)
        elif stat.S_ISREG(status.st_mode):
            yield _check_file(path, asked)
        elif asked and stat.S_ISFIFO(status.st_mode):
            yield SourceFile(_printable_path(path), path)
        else:
            yield Unread(
                _printable_path(path), "The path is neither a file nor a folder.", skipped=not asked
            )

    def _visit_folder(self, path: Path, within: Path, asked: bool) -> Iterator[FoundFile]:
        try:
            if is_graph_folder(path):
                if asked:
                    reason = "The folder is a tgraph graph, not documents."
                    yield Unread(_printable_path(path), reason)
                return
            entries = sorted(path.iterdir())
        except OSError as error:
            yield Unread(_printable_path(path), _failure_reason(path, error))
            return
        visible = [entry for entry in entries if not entry.name.startswith(".")]
        empty = True
        below = (self._visit_path(entry, within, asked=False) for entry in visible)
        for found_file in chain.from_iterable(below):
            empty = False
            yield found_file
        if empty and asked:
            qualifier = " that aren't taken in already" if visible else ""
            yield Unread(_printable_path(path), f"The folder holds no documents{qualifier}.")


_LEADS_OUT = (
    "The file is a link that leads out of the given folder; `tgraph index --follow-links` "
    "follows such links."
)


def _leads_out(path: Path, within: Path) -> bool:
    return path.is_symlink() and not path.resolve(strict=True).is_relative_to(within)


def _check_file(path: Path, asked: bool) -> FoundFile:
    """Return the file, unless leading bytes indicate a format never used for documents."""
    try:
        with path.open("rb") as stream:
            head = stream.read(_LONGEST)
    except OSError as error:
        return Unread(_printable_path(path), _failure_reason(path, error))
    # The loader tells a PDF, an archive or a table without a known suffix by its content.
    readable = has_known_suffix(path.name) or head.startswith((b"%PDF-", b"PK\x03\x04", b"PAR1"))
    if not readable and (kind := detect_signature(head)):
        return Unread(
            _printable_path(path), f"It is {kind}, which tgraph doesn't read.", skipped=not asked
        )
    return SourceFile(_printable_path(path), path)


def _failure_reason(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "The link leads nowhere." if path.is_symlink() else "There is no such file."
    return f"It can't be read: {(error.strerror or str(error)).lower()}."


def _printable_path(path: str | Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")
