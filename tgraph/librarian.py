"""The librarian keeps bytes by their hash: documents, texts of pages, answers, calls, batches.

What it holds is truth, never a cache: content goes in before anything refers to it and comes out
checked against its hash.
"""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path

from tgraph.errors import StoreError
from tgraph.store.files import write_atomic
from tgraph.store.oxigraph import disk_errors

_GZIP_FROM = 512


class Librarian:
    """A folder of content-addressed files, the larger ones compressed; hashes are of contents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Keep the content, durably, and return its SHA-256 in hexadecimal."""
        key = sha256(content).hexdigest()
        if self._existing(key) is None:
            packed = gzip.compress(content, 5, mtime=0) if len(content) >= _GZIP_FROM else content
            suffix = ".gz" if packed is not content else ""
            with disk_errors():
                write_atomic(self._path(key, suffix), packed)
        return key

    def put_text(self, text: str) -> str:
        return self.put(text.encode("utf-8", "surrogatepass"))

    def get(self, key: str) -> bytes:
        """The content of the hash, checked. ``StoreError`` where it is missing or damaged."""
        path = self._existing(key)
        if path is None:
            raise StoreError(f"The librarian does not hold {key}.", "Was it erased?")
        with disk_errors():
            data = path.read_bytes()
        try:
            content = gzip.decompress(data) if path.suffix == ".gz" else data
        except (OSError, EOFError) as error:
            raise StoreError(f"The librarian's copy of {key} is damaged.") from error
        if sha256(content).hexdigest() != key:
            raise StoreError(f"The librarian's copy of {key} is damaged.")
        return content

    def get_text(self, key: str) -> str:
        return self.get(key).decode("utf-8", "surrogatepass")

    def has(self, key: str) -> bool:
        return self._existing(key) is not None

    def _path(self, key: str, suffix: str) -> Path:
        if len(key) != 64 or not set(key) <= set("0123456789abcdef"):
            raise StoreError(f"{key!r} is not a content hash.")
        return self.folder / key[:2] / f"{key}{suffix}"

    def _existing(self, key: str) -> Path | None:
        for suffix in (".gz", ""):
            path = self._path(key, suffix)
            if path.exists():
                return path
        return None
