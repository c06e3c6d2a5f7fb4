"""Files that a client sends: multipart/form-data, streamed to a folder."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from collections.abc import AsyncGenerator
from pathlib import Path

from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from tgraph.errors import UsageError
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.jobs import Job, Jobs, Upload
from tgraph.extensions.server.problems import TooLargeError
from tgraph.extensions.server.service import Service
from tgraph.store.files import disk_errors, make_folder, new_file

_LONGEST_NAME = 200
_MOST_FILES = 1_000
_BLOCK = 1 << 20


async def queue_upload(
    service: Service, request: Request, access: Access, collection: str, *, reinstate: bool = False
) -> Job:
    """Receive the files of a request and queue the job that indexes them.

    An upload that is broken off leaves nothing behind."""
    jobs: Jobs = request.app.state.jobs

    def begin() -> Upload:
        service.graph(collection)
        return jobs.begin(collection, access.person, reinstate=reinstate)

    upload = await service.call(begin)
    try:
        files = await receive_files(request, jobs.files(upload.job), service.limits.upload_mb << 20)
        return await service.call(lambda: jobs.queue(upload, files))
    except BaseException:
        await asyncio.shield(asyncio.to_thread(jobs.abandon, upload))
        raise


async def receive_files(request: Request, folder: Path, most: int) -> tuple[str, ...]:
    """Save uploaded files in the folder and return their names.

    Raise ``UsageError`` for missing files or invalid file names; raise ``TooLargeError`` beyond
    ``most`` bytes."""
    if int(request.headers.get("content-length") or 0) > most:
        raise TooLargeError(f"The files have more than {most >> 20:,} MB.")
    form = await _read_form(request, most)
    try:
        sent = [upload for upload in form.getlist("file") if isinstance(upload, UploadFile)]
        if not sent:
            raise UsageError(
                "No file was sent.", "Send multipart/form-data with a part `file` for each."
            )
        names = [safe_name(upload.filename or "") for upload in sent]
        if len({name.casefold() for name in names}) < len(names):
            raise UsageError("Two files have the same name.", "Send them one after the other.")
        with disk_errors():
            make_folder(folder, private=True)
            for name, upload in zip(names, sent, strict=True):
                with new_file(folder / name) as out:
                    while block := await upload.read(_BLOCK):
                        out.write(block)
        return tuple(names)
    finally:
        await form.close()


async def _read_form(request: Request, most: int) -> FormData:
    size = 0

    async def count_bytes() -> AsyncGenerator[bytes, None]:
        nonlocal size
        async for piece in request.stream():
            size += len(piece)
            if size > most:
                raise TooLargeError(f"The files have more than {most >> 20:,} MB.")
            yield piece

    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise UsageError("Files are sent as multipart/form-data.", "Use a part `file` for each.")
    try:
        return await MultiPartParser(
            request.headers, count_bytes(), max_files=_MOST_FILES, max_fields=100
        ).parse()
    except (MultiPartException, KeyError) as error:
        reason = getattr(error, "message", "it is cut off")
        raise UsageError(f"The form can't be read: {reason}") from error


def safe_name(given: str) -> str:
    """Return a safe file name: last path component without terminal control characters.

    Raise ``UsageError`` for empty results."""
    last = given.replace("\\", "/").rpartition("/")[2]
    printable_name = "".join(
        c for c in unicodedata.normalize("NFC", last) if c.isprintable()
    ).strip()
    name = printable_name.lstrip(".-")
    if not name or len(os.fsencode(name)) > _LONGEST_NAME:
        raise UsageError(f"A file can't be called {given[:100]!r}.")
    return name
