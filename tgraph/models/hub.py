"""Published reader files: a Hugging Face Hub repository, or a folder.

The Hub is accessed through its plain https layout, ``ENDPOINT/NAME/resolve/REVISION/FILE``,
without its library. ``HF_ENDPOINT`` names another server with the same layout."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol
from urllib.parse import quote, unquote, urlsplit

from tgraph.errors import EndpointError, ModelError, UsageError
from tgraph.version import __version__

HUB = "https://huggingface.co"
LATEST = "main"
_WAIT = 30.0
"""Seconds without a byte before giving up."""
_PIECE = 1 << 20
_MOST = 2 << 30
"""Bytes of a file: an ONNX file has no more."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_HASH = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REFS = ("resolve", "blob", "tree")
_ELSEWHERE = (
    "Check the network, or set HF_ENDPOINT to a mirror. Without a network, put its model.onnx and"
    " tokenizer.json into a folder and run: tgraph models pull FOLDER"
)
_AGAIN = "Run the command again."
_NO_FILE = "EntryNotFound"
_LAYOUT = "Name the network's `file`; beside it a tokenizer.json is needed."

OnBytes = Callable[[str, int, int], None]
"""Told of each piece: the file, its bytes so far, and all of them (0: unknown)."""


@dataclass(frozen=True, slots=True)
class Copied:
    """The path and revision of a copied source file; empty if nonexistent."""

    path: str
    revision: str = ""


class ReaderSource(Protocol):
    """A source of published readers; ``where`` is recorded as the reader's origin."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str: ...

    def copy(self, paths: Sequence[str], revision: str, out: BinaryIO, told: OnBytes) -> Copied:
        """Write the leading existing file among ``paths`` to ``out``.

        Raises ``ModelError`` if no file exists, and ``EndpointError`` if the file can't be
        fetched."""


def checked_name(name: str) -> str:
    """Return the reader name if valid; raise ``UsageError`` otherwise."""
    if not _NAME.fullmatch(name) or "--" in name or ".." in name or name in ("embedded", "none"):
        raise UsageError(
            f"{name!r} can't be the name of a reader.",
            "Name a repository as OWNER/NAME, a URL of one, or a folder.",
        )
    return name


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder containing a network and its tokenizer."""

    path: Path

    @property
    def name(self) -> str:
        return checked_name(self.path.resolve().name)

    @property
    def location(self) -> str:
        return str(self.path.resolve())

    def copy(self, paths: Sequence[str], revision: str, out: BinaryIO, told: OnBytes) -> Copied:
        """As ``ReaderSource.copy``."""
        file_path = next((path for path in paths if (self.path / path).is_file()), None)
        if file_path is None:
            raise ModelError(f"{self.path} has no {' or '.join(paths)}.", _LAYOUT)
        try:
            file = (self.path / file_path).open("rb")
        except OSError as error:
            raise ModelError(f"{self.path / file_path} can't be read: {error.strerror}.") from error
        with file:
            _write_pieces(
                _read_pieces(file, file_path), out, file_path, os.fstat(file.fileno()).st_size, told
            )
        return Copied(file_path)


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository on a server with the Hub's layout."""

    endpoint: str
    name: str

    @property
    def location(self) -> str:
        return f"{self.endpoint}/{self.name}"

    def copy(self, paths: Sequence[str], revision: str, out: BinaryIO, told: OnBytes) -> Copied:
        """As ``ReaderSource.copy``."""
        for path in paths:
            reply = self._open_reply(path, revision)
            if reply is None:
                continue
            with reply.body:
                self._save_download(path, reply, out, told)
            commit = reply.said.get("x-repo-commit", "")
            return Copied(path, commit if _COMMIT.fullmatch(commit) else revision)
        raise ModelError(
            f"{self.location} has no {' or '.join(paths)} at the revision {revision}.", _LAYOUT
        )

    def _open_reply(self, path: str, revision: str) -> _Download | None:
        """Return the reply containing the file; None if the file doesn't exist."""
        url = f"{self.location}/resolve/{quote(revision, safe='')}/{quote(path)}"
        redirects = _Redirects()
        request = urllib.request.Request(  # noqa: S310  http or https only, see _check_server
            url, headers={"User-Agent": f"tgraph/{__version__}", "Accept-Encoding": "identity"}
        )
        try:
            body = urllib.request.build_opener(redirects).open(request, timeout=_WAIT)
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 404 and error.headers.get("X-Error-Code", _NO_FILE) == _NO_FILE:
                    return None
                raise self._http_error(error, revision) from error
        except (OSError, HTTPException) as error:
            raise EndpointError(
                f"{url} can't be had: {_error_reason(error)}.", _ELSEWHERE
            ) from error
        return _Download(body, {**_lower_headers(body.headers), **redirects.said})

    def _http_error(self, error: urllib.error.HTTPError, revision: str) -> EndpointError:
        if error.headers.get("X-Error-Code") == "RevisionNotFound":
            return EndpointError(
                f"{self.location} has no revision {revision}.", "Check `revision`."
            )
        if error.code in (401, 403, 404):
            return EndpointError(
                f"{self.location} does not exist, or is not public ({error.code}).",
                "Check the name. What is not public can be pulled from a folder.",
            )
        return EndpointError(f"{self.location} refuses: {error.code} {error.reason}.", _ELSEWHERE)

    def _save_download(self, path: str, reply: _Download, out: BinaryIO, told: OnBytes) -> None:
        """Save the downloaded file; raise ``EndpointError`` if bytes are missing or the hash
        differs from the announced hash."""
        length = reply.body.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else 0
        byte_count, file_hash = _write_pieces(
            _read_pieces(reply.body, path), out, path, total, told
        )
        if total and byte_count != total:
            raise EndpointError(
                f"The download of {path} ended after {byte_count:,} of {total:,} bytes.", _AGAIN
            )
        announced = reply.said.get("x-linked-etag", "").removeprefix("W/").strip('"')
        if _HASH.fullmatch(announced) and announced != file_hash:
            raise EndpointError(
                f"{path} did not arrive as {self.endpoint} announced it: its SHA-256 is"
                f" {file_hash},"
                f" and {announced} was announced.",
                _AGAIN,
            )


@dataclass(frozen=True, slots=True)
class _Download:
    """A running file download with its headers, preceded by redirect headers."""

    body: Any
    said: Mapping[str, str]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that refuses https-to-http redirects and collects file headers."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        self.said = {**_lower_headers(headers), **self.said}
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            raise urllib.error.URLError("it leads to an address without https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _lower_headers(headers: HTTPMessage) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _error_reason(error: Exception) -> object:
    return getattr(error, "reason", None) or str(error) or type(error).__name__


def _read_pieces(file: Any, name: str) -> Iterator[bytes]:
    """Yield the file in pieces.

    Raises ``EndpointError`` if the file breaks off, and ``ModelError`` for more bytes than an
    ONNX file can have."""
    byte_count = 0
    while True:
        try:
            piece = file.read(_PIECE)
        except (OSError, HTTPException) as error:
            message = f"{name} broke off after {byte_count:,} bytes: {_error_reason(error)}."
            raise EndpointError(message, _AGAIN) from error
        if not piece:
            return
        byte_count += len(piece)
        if byte_count > _MOST:
            raise ModelError(f"{name} is larger than {_MOST:,} bytes, which no ONNX file is.")
        yield piece


def _write_pieces(
    pieces: Iterable[bytes], out: BinaryIO, name: str, total: int, told: OnBytes
) -> tuple[int, str]:
    """Write the pieces; return byte count and SHA-256."""
    byte_count, digest = 0, sha256()
    for piece in pieces:
        out.write(piece)
        digest.update(piece)
        byte_count += len(piece)
        told(name, byte_count, total)
    return byte_count, digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Published:
    """A publication named by a command: source, revision and, if given, network file."""

    source: ReaderSource
    revision: str
    file: str


def locate_reader(named: str, revision: str = "", file: str = "") -> Published:
    """Return the publication denoted by a Hub name, a repository or file URL, or a folder.

    Raises ``UsageError`` for anything else."""
    if "://" in named:
        return _of_url(named, revision, file)
    if (folder := Path(named).expanduser()).is_dir():
        if revision:
            raise UsageError("A folder has no revisions.", "Leave `revision` out.")
        return Published(FolderSource(folder), "", file)
    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or HUB
    _check_server(endpoint)
    return Published(HubSource(endpoint, checked_name(named)), revision or LATEST, file)


def _of_url(url: str, revision: str, file: str) -> Published:
    _check_server(url)
    parts = urlsplit(url)
    path = [unquote(part) for part in parts.path.strip("/").split("/")]
    name_length = next(
        (n for n, part in enumerate(path[:3]) if n and part in _REFS), min(2, len(path))
    )
    source = HubSource(
        f"{parts.scheme}://{parts.netloc}", checked_name("/".join(path[:name_length]))
    )
    ref_path = path[name_length + 1 :]
    url_revision = revision or (ref_path[0] if ref_path else LATEST)
    return Published(source, url_revision, file or "/".join(ref_path[1:]))


def _check_server(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http") or not parts.hostname or "@" in parts.netloc:
        raise UsageError(
            f"{url} is no address that readers can be pulled from.",
            "It begins with https:// or http://, and holds no password.",
        )
