"""ZIP archives containing documents, with limits on the unpacked size."""

from __future__ import annotations

import zipfile
from io import BytesIO

from tgraph.errors import IngestError
from tgraph.ingest.base import FileLimits

_MAX_ENTRIES = 10_000
_LARGE = 1_000_000
_BLOCK = 1 << 20


def open_archive(data: bytes, name: str, limits: FileLimits, kind: str) -> zipfile.ZipFile:
    """Open the archive of a document of a kind such as ``DOCX``.

    Raises ``IngestError`` if the data is no archive, or unpacks to more than the limits. The
    declared size of a part limits its unpacking; other libraries are not trusted to check the
    limits."""
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise unreadable_error(name, kind, f"it isn't a ZIP archive, as every {kind} is") from None
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
        _check_entry(entry, name, limits, kind)
    if unpacked > max(_LARGE, limits.part_ratio * len(data)):
        raise IngestError(
            name,
            f"The {kind} unpacks to {unpacked:,} bytes from {len(data):,}, more than"
            f" {limits.part_ratio} times its size.",
            f"Save it again as {kind}.",
        )
    return archive


def _check_entry(entry: zipfile.ZipInfo, name: str, limits: FileLimits, kind: str) -> None:
    """Raise ``IngestError`` for a part compressed unlike document parts."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise unreadable_error(
            name, kind, f"its part {entry.filename!r} is packed as no {kind} may be"
        )
    if entry.file_size > max(_LARGE, limits.part_ratio * entry.compress_size):
        raise IngestError(
            name,
            f"The {kind} unpacks to more than allowed: its part {entry.filename!r} to"
            f" {entry.file_size:,} bytes from {entry.compress_size:,}, more than"
            f" {limits.part_ratio} times its size.",
            f"Save it again as {kind}.",
        )


def read_part(archive: zipfile.ZipFile, path: str, name: str, kind: str) -> bytes:
    """Return a part's bytes, limited to the declared size.

    Nothing is unpacked beyond the declared size. Raises ``IngestError`` if the part is missing,
    damaged or encrypted."""
    try:
        with archive.open(path) as part:  # in blocks: at once, all of it would be unpacked
            return b"".join(iter(lambda: part.read(_BLOCK), b""))
    except MemoryError:
        raise
    except KeyError:
        raise unreadable_error(name, kind, f"its part {path!r} is missing") from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError):
        raise unreadable_error(name, kind, f"its part {path!r} can't be unpacked") from None
    except Exception as error:  # zlib.error and its like
        raise unreadable_error(
            name, kind, f"its part {path!r} is damaged: {type(error).__name__}"
        ) from None


def unpack_archive(data: bytes, name: str, limits: FileLimits, kind: str) -> BytesIO:
    """Return the archive with unpacked parts, for libraries that unpack without limits.

    The parts are read by ``read_part``. Raises errors as in ``open_archive`` and ``read_part``."""
    plain = BytesIO()
    with (
        open_archive(data, name, limits, kind) as archive,
        zipfile.ZipFile(plain, "w", zipfile.ZIP_STORED) as target,
    ):
        for entry in archive.infolist():
            target.writestr(entry.filename, read_part(archive, entry.filename, name, kind))
    plain.seek(0)
    return plain


def unreadable_error(name: str, kind: str, reason: str) -> IngestError:
    """Return an error for an unreadable archive document."""
    return IngestError(name, f"The {kind} can't be read: {reason}.", f"Save it again as {kind}.")
