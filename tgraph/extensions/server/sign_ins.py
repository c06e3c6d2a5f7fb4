"""Sign-ins of the workbench: sessions that the server ends, in place of tokens in cookies.

``sign-ins/HASH.json`` in the graph's folder is a sign-in, named by the hash of the session id that
the cookie holds, with the hash of its token: all server processes read them, and nobody who reads
them can sign in."""

from __future__ import annotations

import re
import secrets
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tgraph.extensions.server.access import Access, Tokens, token_hash
from tgraph.store.files import make_folder, read_json, write_json

LIFETIME = 12 * 3600.0
"""Seconds from signing in to signing in again."""
_MOST = 20
"""Sign-ins of a token at once; the oldest end."""
_NAME = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class _StoredSession:
    token: str
    began: float

    @property
    def has_ended(self) -> bool:
        return not 0 <= time.time() - self.began < LIFETIME


class SignIns:
    """The sign-ins of a graph folder, which end by signing out, by time, and with their token."""

    def __init__(self, root: Path, tokens: Tokens) -> None:
        self._folder = root / "sign-ins"
        self._tokens = tokens

    def begin(self, token: str) -> str | None:
        """Return the id of a new session; None for an unknown token."""
        if self._tokens.find(token) is None:
            return None
        digest, session = token_hash(token), secrets.token_urlsafe(32)
        make_folder(self._folder, private=True)
        self._remove_ended(digest)
        write_json(self._path(session), asdict(_StoredSession(digest, time.time())))
        return session

    def find(self, session: str) -> Access | None:
        """Return the access of a session's token, or None where either has ended."""
        sign_in = self._read_session(self._path(session))
        if sign_in is None or sign_in.has_ended:
            return None
        return self._tokens.find_by_hash(sign_in.token)

    def end(self, session: str) -> None:
        """End a session."""
        self._path(session).unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        return self._folder / f"{token_hash(session)}.json"

    def _read_session(self, path: Path) -> _StoredSession | None:
        values = read_json(path)
        with suppress(TypeError):
            return None if values is None else _StoredSession(**values)
        return None

    def _remove_ended(self, token: str) -> None:
        """Remove what has ended, and so many of a token's that there is room for another."""
        own: list[tuple[float, Path]] = []
        for path in self._folder.iterdir():
            if not _NAME.fullmatch(path.stem):
                continue
            sign_in = self._read_session(path)
            if sign_in is None or sign_in.has_ended:
                path.unlink(missing_ok=True)
            elif sign_in.token == token:
                own.append((sign_in.began, path))
        for _, path in sorted(own)[: 1 - _MOST or None]:
            path.unlink(missing_ok=True)
