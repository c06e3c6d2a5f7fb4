"""Formats that tgraph doesn't read, told by the first bytes of a file."""

from __future__ import annotations

# Offset, bytes, name. A ZIP may be DOCX, so it comes with what it might hold.
_SIGNATURES = (
    (0, b"%PDF-", "a PDF"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"GIF87a", "a GIF image"),
    (0, b"GIF89a", "a GIF image"),
    (8, b"WEBP", "a WebP image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
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
    (0, b"\x7fELF", "a program"),
    (0, b"MZ\x90\0", "a program"),
    (0, b"\xcf\xfa\xed\xfe", "a program"),
    (0, b"\xca\xfe\xba\xbe", "a program"),
    (0, b"\0asm", "a program"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or encrypted Office document"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"PAR1", "a Parquet table"),
    (0, b"wOFF", "a font"),
    (0, b"wOF2", "a font"),
    (0, b"\0\x01\0\0\0", "a font"),
    (0, b"OTTO", "a font"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"{\\rtf", "an RTF document"),
)
LONGEST = 512
# Formats that may begin with nothing but text.
_TEXTUAL = frozenset(("a PDF", "an RTF document"))


def signature(data: bytes) -> str:
    """What the data begins as (``"a PNG image"``), or an empty string for no known format."""
    for offset, mark, name in _SIGNATURES:
        if data.startswith(mark, offset):
            return name if name in _TEXTUAL or not _is_text(data[:LONGEST]) else ""
    return ""


def _is_text(head: bytes) -> bool:
    """Whether a prose that only happens to begin like another format may go on like this."""
    try:
        return "\0" not in head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
