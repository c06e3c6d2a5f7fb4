"""PDF pages, read exclusively by PDFium.

Two libraries put spaces in different places, so that a file would have other offsets, and other
IRIs, on a machine with another library. pypdfium2 5.0, 5.8 and 5.15, each with another PDFium,
gave the same text on 56 pages of three files."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence

from tgraph.errors import IngestError
from tgraph.ingest.base import FileContent, FileLimits, error_reason, storable
from tgraph.model import Page
from tgraph.rendering import collapse_whitespace

# PDFium is not thread-safe.
_lock = threading.Lock()
# PDFium marks a hyphen at a line's end with U+0002 or U+FFFE; both hide a word that goes on.
_HIDDEN_HYPHEN = re.compile("[\x02\ufffe](?:\r\n|\n)?")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d{2})?(\d{2})?")
_NO_TITLE = re.compile(
    r"(?i)untitled|microsoft word|powerpoint|^slide \d|^document\d*$|[\\/]"
    r"|\.(?:docx?|odt|rtf|tex|dvi|indd|pptx?|xlsx?|html?|txt|pdf|eps|qxd)$"
)

_PLACEHOLDERS = frozenset(("(unspecified)", "(anonymous)", "anonymous", "unspecified", "unknown"))


def read_pdf(data: bytes, name: str, limits: FileLimits) -> FileContent:
    """Read the text of each PDF page, numbered from 1, plus the file's metadata.

    Raises ``IngestError`` for a file that needs a password, is damaged or contains only
    pictures."""
    if b"%PDF-" not in data[:1024]:
        raise IngestError(
            name, "The file is called a PDF but isn't one.", "Check where it is from."
        )
    texts, info = _read_pages(data, name)
    pages = tuple(Page(number, _clean_text(text)) for number, text in enumerate(texts, 1))
    if not any(page.text.strip() for page in pages):
        raise IngestError(
            name,
            f"The PDF holds no text on its {len(pages)} pages; it may be a scan.",
            "Run text recognition (OCR) on it first, for example with ocrmypdf.",
        )
    title = _clean_value(info.get("Title"))
    return FileContent(pages, title if _is_title(title) else "", _read_metadata(info))


def _clean_text(text: str) -> str:
    joined = _HIDDEN_HYPHEN.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return storable(joined).strip("\n")


def _damage_error(name: str, error: Exception) -> IngestError:
    why = f"The PDF is damaged: {error_reason(error)}."
    return IngestError(name, why, "Get or print it to PDF again.")


def _read_pages(data: bytes, name: str) -> tuple[Sequence[str], Mapping[str, str]]:
    import pypdfium2

    with _lock:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if "assword" not in str(error):
                raise _damage_error(name, error) from None
            raise IngestError(
                name,
                "The PDF is encrypted and can't be read without its password.",
                "Save a copy without a password, for example with `qpdf --decrypt`.",
            ) from None
        try:
            texts = []
            for page in document:
                textpage = page.get_textpage()
                texts.append(textpage.get_text_bounded())
                textpage.close()
                page.close()
            return texts, document.get_metadata_dict()
        except pypdfium2.PdfiumError as error:
            raise _damage_error(name, error) from None
        finally:
            document.close()


def _clean_value(value: str | None) -> str:
    text = collapse_whitespace(storable(value or ""))
    return "" if text.lower() in _PLACEHOLDERS else text


def _is_title(title: str) -> bool:
    """Return whether a PDF's title is genuine, rather than left by a word processor."""
    letters = sum(character.isalpha() for character in title)
    return letters >= 3 and len(title) <= 300 and not _NO_TITLE.search(title)


def _read_metadata(info: Mapping[str, str]) -> dict[str, str]:
    metadata = {
        "author": _clean_value(info.get("Author")),
        "description": _clean_value(info.get("Subject")),
    }
    date = _DATE.match(info.get("CreationDate") or "")
    if date:
        metadata["date"] = "-".join(part for part in date.groups() if part)
    return {key: value for key, value in metadata.items() if value}
