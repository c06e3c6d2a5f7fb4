"""Who may do what: tokens, kept as hashes, each with a person, collections and rights."""

from __future__ import annotations

import hmac
import secrets
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

from tgraph.errors import TgraphError, UsageError
from tgraph.store.files import write_private

Right = Literal["read", "ask", "index", "govern"]
RIGHTS: tuple[Right, ...] = get_args(Right)
ALL = "*"
_PREFIX = "tg_"
_NEEDS = "Each [[token]] needs person, hash (sha256:…), collections and rights."


class UnauthenticatedError(TgraphError):
    """Nobody said who asks, or with a token that there is not."""


class ForbiddenError(TgraphError):
    """Who asks may not do that."""


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody may do; ``collections`` has ``*`` where that is in all of them."""

    person: str | None
    collections: tuple[str, ...] = (ALL,)
    rights: tuple[Right, ...] = RIGHTS

    def admits(self, collection: str) -> bool:
        return ALL in self.collections or collection in self.collections

    def check(self, right: Right, collection: str | None = None) -> None:
        """``ForbiddenError`` where the right, or the collection, is not theirs; whether there is
        such a collection is not said."""
        if collection is not None and not self.admits(collection):
            raise ForbiddenError(
                f"This token is not for the collection {collection!r}.",
                "Ask whoever keeps the server for one.",
            )
        if right not in self.rights:
            raise ForbiddenError(
                f"This token does not have the right to {right}.",
                "Ask whoever keeps the server for one that has.",
            )


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is kept: the SHA-256 of its text in hexadecimal, and what it admits to."""

    hash: str
    access: Access
    expires: date | None = None

    def is_valid(self, today: date) -> bool:
        return self.expires is None or today <= self.expires


def new_token() -> str:
    """A token of 256 random bits."""
    return _PREFIX + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """The tokens are random, so that a plain hash can't be guessed back."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


class Tokens:
    """The tokens of a file, read again when it changes, so that one can be taken back while the
    server runs. A file that can't be read any more admits nobody."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: tuple[Token, ...] = ()
        self._reload()

    def find(self, presented: str) -> Access | None:
        """Whose token that is. It takes the same time whoever's it is, and whether it is any."""
        try:
            self._reload()
        except TgraphError:
            return None
        wanted, found = token_hash(presented), None
        today = datetime.now(UTC).date()
        for token in self._tokens:
            if hmac.compare_digest(token.hash, wanted) and token.is_valid(today):
                found = token.access
        return found

    def _reload(self) -> None:
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
    """The tokens of a file. ``UsageError`` where it says something else."""
    try:
        tables = tomllib.loads(path.read_text("utf-8")).get("token", [])
        return [_token(table) for table in tables]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}.", _NEEDS) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path} has a token that can't be read: {error}.", _NEEDS) from error


def _token(table: Any) -> Token:
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


def write_tokens(path: Path, tokens: Iterable[Token]) -> None:
    """Put the tokens into the file in place of what it has; it is its owner's alone."""
    write_private(path, "\n".join(map(_table, tokens)).encode())


def _table(token: Token) -> str:
    access = token.access
    expires = f"expires = {token.expires.isoformat()}\n" if token.expires else ""
    return (
        "[[token]]\n"
        f"person = {_text(access.person or '')}\n"
        f'hash = "sha256:{token.hash}"\n'
        f"collections = {_array(access.collections)}\n"
        f"rights = {_array(access.rights)}\n{expires}"
    )


def _array(names: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, names))}]"


def _text(text: str) -> str:
    """A TOML string (1.0.0, "Basic strings")."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08X}" for c in escaped) + '"'
