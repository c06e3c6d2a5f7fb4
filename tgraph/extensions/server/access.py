"""Access control: hashed tokens with person, collections and rights."""

from __future__ import annotations

import hmac
import secrets
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from tgraph.errors import TgraphError, UsageError
from tgraph.store.files import hold_lock, write_private

Right = Literal["read", "ask", "index", "govern"]
RIGHTS: tuple[Right, ...] = get_args(Right)
Content = Literal[
    "status", "collections", "documents", "knowledge", "sessions", "jobs", "job", "answer", "done"
]
"""What an answer may contain: counts and descriptions that are no secret; names of collections
that the token is for; documents; knowledge and its history; sessions, of whomever; all jobs; the
job that was named or begun; the answer to what was asked, with its quotes; what was done."""
RIGHTS_BY_CONTENT: dict[Content, tuple[Right, ...]] = {
    "status": (),
    "collections": (),
    "documents": ("read",),
    "knowledge": ("read",),
    "sessions": ("read",),
    "jobs": ("read",),
    "job": ("index",),
    "answer": ("ask",),
    "done": ("govern",),
}
"""The rights that it takes to be told a content."""
ALL = "*"
_PREFIX = "tg_"
_PATIENCE = 30.0
_NEEDS = "Each [[token]] needs person, hash (sha256:…), collections and rights."


class UnauthenticatedError(TgraphError):
    """Missing credentials or an unknown token."""


class ForbiddenError(TgraphError):
    """A request exceeding its access rights."""


@dataclass(frozen=True, slots=True)
class Access:
    """Access rights of a requester; ``*`` in ``collections`` admits every collection."""

    person: str | None
    collections: tuple[str, ...] = (ALL,)
    rights: tuple[Right, ...] = RIGHTS

    def admits(self, collection: str) -> bool:
        return ALL in self.collections or collection in self.collections

    def check(self, right: Right, collection: str | None = None) -> None:
        """Raise ``ForbiddenError`` for missing rights or collections, without revealing whether
        a collection exists."""
        if collection is not None and not self.admits(collection):
            raise ForbiddenError(
                "This token is not for the collection.",
                "Ask the operator of the server for a token.",
            )
        if right not in self.rights:
            raise ForbiddenError(
                f"This token does not have the right to {right}.",
                "Ask the operator of the server for a token with the right.",
            )


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the requests of a route need, and what its answers contain."""

    rights: tuple[Right, ...]
    contents: tuple[Content, ...]

    def check(self, access: Access, collection: str | None = None) -> None:
        """Raise ``ForbiddenError`` for missing rights or collections."""
        for right in self.rights:
            access.check(right, collection)


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token: hexadecimal SHA-256 of the token text, plus granted access."""

    hash: str
    access: Access
    expires: date | None = None

    def is_valid(self, today: date) -> bool:
        return self.expires is None or today <= self.expires


def new_token() -> str:
    """A token of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the SHA-256 hash of a token in hexadecimal.

    Tokens are random; plain hashes resist guessing."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


class Tokens:
    """Tokens from a file, reloaded after changes, permitting revocation while the server runs.

    An unreadable file admits nobody."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._reload_tokens()

    def find(self, presented: str) -> Access | None:
        """Return access granted by a token, or None.

        Lookup time is independent of token owner and token existence."""
        return self.find_by_hash(token_hash(presented))

    def find_by_hash(self, digest: str) -> Access | None:
        """Return access granted by the token that has a hash, or None."""
        try:
            self._reload_tokens()
        except TgraphError:
            return None
        access = None
        today = datetime.now(UTC).date()
        for token in self._tokens:
            if hmac.compare_digest(token.hash, digest) and token.is_valid(today):
                access = token.access
        return access

    def _reload_tokens(self) -> None:
        try:
            stat = self.path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp != self._stamp:
                self._tokens, self._stamp = (), None
                self._tokens, self._stamp = tuple(read_tokens(self.path)), stamp
        except OSError as error:
            raise UsageError(
                f"The tokens in {self.path} can't be read: {error.strerror}.",
                "`tgraph tokens create` makes the file.",
            ) from error


def read_tokens(path: Path) -> list[Token]:
    """Read tokens from a file; raise ``UsageError`` for invalid contents."""
    try:
        tables = tomllib.loads(path.read_text("utf-8")).get("token", [])
        return [_parse_token(table) for table in tables]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}.", _NEEDS) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} has a token that can't be read: {error}.", _NEEDS) from error


def _parse_token(table: Any) -> Token:
    collections, rights = tuple(table["collections"]), tuple(table["rights"])
    kind, _, digest = str(table["hash"]).partition(":")
    if kind != "sha256" or len(bytes.fromhex(digest)) != 32:
        raise ValueError("its hash is not sha256:…")
    if unknown := set(rights) - set(RIGHTS):
        raise ValueError(f"there is no right {', '.join(sorted(unknown))}")
    if not all(isinstance(name, str) for name in collections):
        raise ValueError("its collections are no names")
    expires = table.get("expires")
    if expires is not None and type(expires) is not date:
        raise ValueError("expires is no date")
    return Token(digest.lower(), Access(str(table["person"]), collections, rights), expires)


@contextmanager
def edit_tokens(path: Path) -> Iterator[list[Token]]:
    """Yield the tokens of a file to be changed in place; write the list on success.

    Two commands that change a file queue, so that neither brings back what the other revoked. The
    file is readable only by its owner; a missing file has no tokens. Raises ``UsageError`` for
    invalid contents and ``StoreError`` where another command holds the file for too long."""
    with hold_lock(path.with_name(f".{path.name}.lock"), timeout=_PATIENCE):
        tokens = read_tokens(path) if path.exists() else []
        yield tokens
        write_private(path, "\n".join(map(_format_table, tokens)).encode())


def _format_table(token: Token) -> str:
    access = token.access
    expires = f"expires = {token.expires.isoformat()}\n" if token.expires else ""
    return (
        "[[token]]\n"
        f"person = {_format_string(access.person or '')}\n"
        f'hash = "sha256:{token.hash}"\n'
        f"collections = {_format_array(access.collections)}\n"
        f"rights = {_format_array(access.rights)}\n{expires}"
    )


def _format_array(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_format_string, names))}]"


def _format_string(text: str) -> str:
    """A TOML string (1.0.0, "Basic strings")."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
