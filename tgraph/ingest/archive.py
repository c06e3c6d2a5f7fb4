"""ZIP archives that documents come in, with limits on what they unpack to."""

from __future__ import annotations

import zipfile
from io import BytesIO

from tgraph.errors import IngestError
from tgraph.ingest.base import FileLimits

_MAX_ENTRIES = 10_000
_LARGE = 10_000_000
_BLOCK = 1 << 20


def open_archive(data: bytes, name: str, limits: FileLimits, kind: str) -> zipfile.ZipFile:
    """The archive of a document of a kind such as ``DOCX``.

    Raises ``IngestError`` for what is no archive, or unpacks to more than the limits; what a part
    declares is what it unpacks to, and no other library is trusted to see to it.
    """
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise broken(name, kind, f"it isn't a ZIP archive, as every {kind} is") from None
    entries = archive.infolist()
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > limits.unpacked_bytes or len(entries) > _MAX_ENTRIES:
        raise IngestError(
            name,
            f"The {kind} unpacks to {unpacked:,} bytes in {len(entries):,} parts, more than"
            " allowed.",
            f"The limit is {limits.unpacked_bytes:,} bytes.",
        )
    for entry in entries:
        _check(entry, name, limits, kind)
    return archive


def _check(entry: zipfile.ZipInfo, name: str, limits: FileLimits, kind: str) -> None:
    """Raise ``IngestError`` for a part that is packed as no document's is."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise broken(name, kind, f"its part {entry.filename!r} is packed as no {kind} may be")
    if entry.file_size > max(_LARGE, limits.part_ratio * entry.compress_size):
        raise IngestError(
            name,
            f"The {kind} unpacks to more than allowed: its part {entry.filename!r} to"
            f" {entry.file_size:,} bytes from {entry.compress_size:,}.",
            f"Save it again as {kind}.",
        )


def read_part(archive: zipfile.ZipFile, path: str, name: str, kind: str) -> bytes:
    """The bytes of a part, never more than it declares, nor unpacked further than that. Raises
    ``IngestError`` where it is missing, damaged or encrypted."""
    try:
        with archive.open(path) as part:  # in blocks: at once, all of it would be unpacked
            return b"".join(iter(lambda: part.read(_BLOCK), b""))
    except MemoryError:
        raise
    except KeyError:
        raise broken(name, kind, f"its part {path!r} is missing") from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError):
        raise broken(name, kind, f"its part {path!r} can't be unpacked") from None
    except Exception as error:  # zlib.error and its like
        raise broken(name, kind, f"its part {path!r} is damaged: {type(error).__name__}") from None


def unpacked(data: bytes, name: str, limits: FileLimits, kind: str) -> BytesIO:
    """The archive with its parts as ``read_part`` gives them, unpacked, for a library that would
    unpack without a limit. Raises as ``open_archive`` and ``read_part`` do."""
    plain = BytesIO()
    with (
        open_archive(data, name, limits, kind) as archive,
        zipfile.ZipFile(plain, "w", zipfile.ZIP_STORED) as target,
    ):
        for entry in archive.infolist():
            target.writestr(entry.filename, read_part(archive, entry.filename, name, kind))
    plain.seek(0)
    return plain


def broken(name: str, kind: str, reason: str) -> IngestError:
    """The error for a document of an archive that can't be read."""
    return IngestError(name, f"The {kind} can't be read: {reason}.", f"Save it again as {kind}.")
