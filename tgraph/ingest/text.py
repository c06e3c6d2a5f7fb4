"""Decoding of unknown encodings, and the reader of plain text.

The stored text is the decoded file without a byte order mark, and nothing else is changed.
"""

from __future__ import annotations

import codecs
import logging
import re
from contextlib import suppress

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, check_lines
from tgraph.ingest.blocks import report_whole
from tgraph.model import Page
from tgraph.rendering import collapse_whitespace

# Longest first: a UTF-32 mark begins with a UTF-16 one.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 262_144
# The encodings that the web still uses (WHATWG Encoding Standard, 4.2), by Python's names.
_WESTERN = "cp1252"
_LATIN = ("cp1250", "cp1254", "cp1257", "iso8859_2", "mac_roman")
_IN_USE = (
    *(_WESTERN, *_LATIN, "cp1251", "cp1253", "cp1255", "cp1256", "iso8859_5", "iso8859_7"),
    *("koi8_r", "koi8_u", "cp866", "gb18030", "big5", "cp932", "euc_jp", "cp949"),
)
_CONTROLS = re.compile(r"[\x01-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MAX_CONTROLS = 0.01
_log = logging.getLogger(__name__)

_FIELD = re.compile(
    r"^([A-Za-z][A-Za-z ]{0,30}):[ \t]+([^ \t\r\n](?:[^\r\n]*[^ \t\r\n])?)[ \t]*\r?$", re.MULTILINE
)
_NOTE = re.compile(r"(?<!\s)\s*\[[^\[\]]*\]$")  # as in "May 5, 2007 [eBook #1234]"
_HEAD = 4000
_FIELDS = {key: key for key in ("title", "author", "date", "language", "description")}
_FIELDS |= {"authors": "author", "release date": "date", "lang": "language"}


def decode_text(data: bytes, name: str, limits: FileLimits, declared: str = "") -> str:
    """Decode a file's bytes, removing the byte order mark and changing nothing else.

    The encoding is determined by a byte order mark; else UTF-8 if valid; else the ``declared``
    encoding; else the likeliest encoding according to charset-normalizer. Raises
    ``IngestError`` for an empty file, for bytes that aren't text and for a line beyond the
    limit."""
    text = _decode_bytes(data, name, declared)
    sample = text[:_SAMPLE]
    if "\0" in text:
        raise _not_text(name, "it holds NUL characters")
    if len(_CONTROLS.findall(sample)) > max(2, _MAX_CONTROLS * len(sample)):
        raise _not_text(name, "it is full of control characters")
    if not text.strip():
        raise IngestError(name, "The file holds only white space.")
    check_lines(text, name, limits)
    return text


def _decode_bytes(data: bytes, name: str, declared: str) -> str:
    if not data:
        raise IngestError(name, "The file is empty.")
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return data[len(mark) :].decode(encoding)
            except UnicodeDecodeError as error:
                why = f"The file is marked as {encoding.upper()}, but byte {error.start} breaks it."
                raise IngestError(name, why, "Save it as UTF-8.") from None
    if not (b"\0" in data[:_SAMPLE] and _guess_utf16(data)):
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8")
    return _guess_text(data, name, declared)


def _not_text(name: str, why: str) -> IngestError:
    return IngestError(
        name,
        f"The file is binary, not text: {why}.",
        "tgraph reads text, Markdown, reStructuredText, AsciiDoc, LaTeX, HTML, EPUB, XML, PDF,"
        " DOCX, PPTX, XLSX, ODT, ODP, ODS, Parquet, CSV, JSON, JSON Lines and e-mail.",
    )


def _guess_text(data: bytes, name: str, declared: str) -> str:
    for encoding in filter(None, (declared, *_guess_utf16(data), *_likely_encodings(data))):
        with suppress(LookupError, UnicodeError):
            text = data.decode(encoding)
            _log.info("%s is read as %s, which is a guess", name, encoding)
            return text
    raise _not_text(name, "no encoding fits its bytes")


def _guess_utf16(data: bytes) -> tuple[str, ...]:
    """UTF-16 without a mark, told by the zero bytes of its Latin characters and spaces."""
    even, odd = data[:4096:2], data[1:4096:2]
    forms = (("utf-16-le", odd, even), ("utf-16-be", even, odd))
    return tuple(n for n, high, low in forms if 4 * high.count(0) > len(high) and 0 not in low)


def _likely_encodings(data: bytes) -> tuple[str, ...]:
    """charset-normalizer's candidates for a sample, likeliest first, none for binary data.

    Among encodings of Latin letters it can't tell apart, Western European is the commonest by far.
    """
    from charset_normalizer import from_bytes

    if b"\0" in data[:_SAMPLE]:
        return ()
    matches = list(from_bytes(_whole_lines(data), cp_isolation=list(_IN_USE)))
    if not matches:
        return ()
    best = matches[0]
    western = best.encoding in _LATIN and any(
        _WESTERN in (match.encoding, *match.could_be_from_charset)
        and match.chaos <= best.chaos + 0.1
        and match.coherence >= best.coherence - 0.05
        for match in matches
    )
    return (*((_WESTERN,) if western else ()), *(match.encoding for match in matches))


def _whole_lines(data: bytes) -> bytes:
    """A sample that doesn't end inside a character, as far as a line end can tell."""
    if len(data) <= _SAMPLE:
        return data
    end = data.rfind(b"\n", 0, _SAMPLE)
    return data[: end + 1] if end > 0 else data[:_SAMPLE]


def read_text(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read plain text as a single page; leading fields such as ``Title:`` become metadata."""
    text = decode_text(data, name, limits)
    metadata = header_fields(text[:_HEAD]) if _FIELD.search(text[:_HEAD]) else {}
    title = metadata.pop("title", "")
    # Without a title such lines are just text: somebody's minutes, a list of addresses.
    fields = metadata if title else {}
    return FileContent((Page(None, text),), title, fields, report_whole("plain text", text))


def metadata_key(name: str) -> str:
    """Return the metadata key for a document field name; empty for unknown names."""
    return _FIELDS.get(name.strip().lower(), "")


def header_fields(text: str) -> dict[str, str]:
    """Return the first value of each known field, under metadata keys."""
    values: dict[str, str] = {}
    for match in _FIELD.finditer(text):
        if key := metadata_key(match[1]):
            values.setdefault(key, collapse_whitespace(_NOTE.sub("", match[2]).strip("\"'")))
    return values
