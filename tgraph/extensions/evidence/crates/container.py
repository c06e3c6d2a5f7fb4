"""Evidence package files: a zip of uncompressed members in fixed order, with one possible byte
form.

Nothing is compressed and nothing is unpacked to disk, so that zip bombs, links and unsafe paths
can't occur. Repacking the read content reproduces the file's bytes, unless the file was
changed."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from tgraph.errors import StoreError, UsageError

MANIFEST = "manifest-sha256.txt"
MOST_BYTES = 512 << 20
MOST_FILES = 20_000

_NAME = re.compile(
    r"(?:ro-crate-metadata\.json|crate\.json|method\.json|answer\.txt|README\.md|report\.html|record\.nq"
    r"|knowledge\.nq|reads\.json|manifest-sha256\.txt"
    r"|calls/[0-9a-f]{64}\.json|prompts/[0-9a-f]{64}\.md|(?:pages|texts)/[0-9a-f]{64}\.txt)"
)
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ODD = (zipfile.BadZipFile, struct.error, ValueError, NotImplementedError, EOFError, OSError)


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Return a package of files and their manifest; identical files yield identical bytes."""
    return zip_files({**files, MANIFEST: format_manifest(files)})


def zip_files(files: Mapping[str, bytes]) -> bytes:
    """Return files as a zip archive with one possible byte form."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(files.items()):
            member = zipfile.ZipInfo(name)  # of 1980, as a zip without times is
            member.create_system, member.external_attr = 3, 0o100600 << 16
            archive.writestr(member, data)
    return out.getvalue()


def format_manifest(files: Mapping[str, bytes]) -> bytes:
    """Return a manifest readable by ``sha256sum -c``, covering all files except the manifest
    itself."""
    listed = sorted((name, data) for name, data in files.items() if name != MANIFEST)
    return "".join(f"{sha256(data).hexdigest()}  {name}\n" for name, data in listed).encode()


def read_package(path: Path) -> tuple[dict[str, bytes], bytes]:
    """Return package files by name, and the complete package bytes.

    Raise ``UsageError`` if the file is unreadable, ``StoreError`` if the file is not a tgraph
    evidence package."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise StoreError(f"{path} is too large for an evidence package.")
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from error
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
        files = _read_members(data, members)
    except _ODD as error:
        raise StoreError(f"{path} is no evidence package: {error}.") from error
    return files, data


def _read_members(data: bytes, members: list[zipfile.ZipInfo]) -> dict[str, bytes]:
    """Return stored member data; the manifest verifies completeness later."""
    if len(members) > MOST_FILES or sum(info.file_size for info in members) > len(data):
        raise ValueError("its directory lists more than there is")
    files: dict[str, bytes] = {}
    for member in members:
        if not _NAME.fullmatch(member.filename) or member.filename in files:
            raise ValueError("it holds a file that is not part of one")
        if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
            raise ValueError("its files are not stored as they are; was it packed anew?")
        header = _LOCAL_HEADER.unpack_from(data, member.header_offset)
        start = member.header_offset + _LOCAL_HEADER.size + header[-2] + header[-1]
        files[member.filename] = data[start : start + member.file_size]
    return files
