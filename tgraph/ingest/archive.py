"""ZIP archives that documents come in, with limits on what they unpack to."""

from __future__ import annotations

import zipfile
from io import BytesIO

from tgraph.errors import IngestError
from tgraph.ingest.base import FileLimits

_MAX_ENTRIES = 10_000


def open_archive(data: bytes, name: str, limits: FileLimits, kind: str) -> zipfile.ZipFile:
    """The archive of a document of a kind such as ``DOCX``.

    Raises ``IngestError`` for what is no archive, or unpacks to more than the limit.
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
    return archive


def read_part(archive: zipfile.ZipFile, path: str, name: str, kind: str) -> bytes:
    """The bytes of a part. Raises ``IngestError`` where it is missing, damaged or encrypted."""
    try:
        return archive.read(path)
    except KeyError:
        raise broken(name, kind, f"its part {path!r} is missing") from None
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError, NotImplementedError):
        raise broken(name, kind, f"its part {path!r} can't be unpacked") from None
    except Exception as error:  # zlib.error and its like
        raise broken(name, kind, f"its part {path!r} is damaged: {type(error).__name__}") from None


def broken(name: str, kind: str, reason: str) -> IngestError:
    """The error for a document of an archive that can't be read."""
    return IngestError(name, f"The {kind} can't be read: {reason}.", f"Save it again as {kind}.")
