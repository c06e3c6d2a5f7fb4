"""Signatures: entries of the chain that say, with a key, what its head was (design, section 3.7).

A chain can be computed again by whoever can write the store; a signature can't be made again
without the private key. It is Ed25519 (RFC 8032), which is deterministic, over the catalogue, the
number of entries and the head. The entry names the key as an agent; the private key stays where it
is.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Literal, Quad

from tgraph import vocabulary as v
from tgraph.errors import UsageError
from tgraph.record.chain import Chain, Head
from tgraph.store.base import Store, text_of
from tgraph.store.statements import iri, stated

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

KIND = "signature"
"""The kind of an entry that signs the chain before it."""

_AGENT = f"{v.URN}agent:key:"
_PREFIX = f"{v.URN}signature:"
_EXTRA = "Install the extra: pip install 'tgraph-rag[signatures]'."
_MAKE = "Make a pair with `tgraph config signing-key FILE`."
_NAMED = f"The setting integrity.signing_key names it. {_MAKE}"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that signatures can be checked with: its 32 bytes."""

    raw: bytes

    @property
    def id(self) -> str:
        """SHA-256 of the bytes, in hexadecimal."""
        return sha256(self.raw).hexdigest()

    @property
    def agent(self) -> str:
        """The IRI of the key as an agent."""
        return f"{_AGENT}{self.id}"

    @property
    def text(self) -> str:
        """The bytes in base64, as the record has them."""
        return base64.b64encode(self.raw).decode()

    def signed(self, statement: bytes, signature: str) -> bool:
        """Whether the signature, in base64, is by this key over the statement."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        with suppress(InvalidSignature, ValueError):
            made = base64.b64decode(signature, validate=True)
            Ed25519PublicKey.from_public_bytes(self.raw).verify(made, statement)
            return True
        return False


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A pair of keys, of which the private one is never shown."""

    public: PublicKey
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    def sign(self, statement: bytes) -> str:
        """The signature over the statement, in base64."""
        return base64.b64encode(self._private.sign(statement)).decode()


def statement_of(catalogue: str, head: Head) -> bytes:
    """What is signed: the catalogue, how many entries its chain has, and the head over them."""
    return f"tgraph chain 1\n{catalogue}\n{head.sequence}\n{head.hash}\n".encode()


def is_signed(store: Store, chain: Chain) -> bool:
    """Whether there is nothing to sign: the chain is empty, or ends with a signature."""
    if not chain.head.sequence:
        return True
    number = Literal(str(chain.head.sequence), datatype=v.xsd("integer"))
    entries = store.match(None, v.tg("sequence"), number, chain.catalogue)
    return any(text_of(quad.subject).startswith(_PREFIX) for quad in entries)


def key_quads(key: PublicKey) -> list[Quad]:
    """The key as an agent, for the source graph."""
    return stated(
        v.SOURCE_GRAPH,
        key.agent,
        (v.RDF_TYPE, [v.prov("Agent"), v.tg("SigningKey")]),
        (v.RDFS_LABEL, f"Ed25519 key {key.id[:16]}"),
        (v.tg("publicKey"), key.text),
    )


def signature_quads(chain: Chain, key: SigningKey) -> list[Quad]:
    """The next entry of the chain: the signature over its head."""
    head = chain.head
    signature = key.sign(statement_of(chain.catalogue.value, head))
    return chain.entry(
        f"{_PREFIX}{v.digest(chain.catalogue.value, key.public.id, head.hash)}",
        KIND,
        sha256(signature.encode()).hexdigest(),
        (v.tg("signature"), signature),
        (v.prov("wasAttributedTo"), iri(key.public.agent)),
    )


def make_keys(file: Path) -> tuple[PublicKey, Path]:
    """Make a pair: the private key in ``file`` (PEM, PKCS #8, for its owner alone), the public one
    beside it with ``.pub`` (PEM). ``UsageError`` where one of the two is there already."""
    ed25519, serialization = _cryptography()
    beside = file.with_name(f"{file.name}.pub")
    private = ed25519.Ed25519PrivateKey.generate()
    _write_new(
        file,
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        0o600,
    )
    pem = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    try:
        _write_new(beside, pem, 0o644)
    except UsageError:
        file.unlink()
        raise
    return _public(private.public_key()), beside


def load_signing_key(file: Path) -> SigningKey:
    """The private key of a file, in PEM or OpenSSH's form. ``UsageError`` where there is none, it
    is of another sort, or a passphrase protects it."""
    ed25519, serialization = _cryptography()
    data = _read(file, _NAMED)
    is_ssh = b"OPENSSH PRIVATE KEY" in data
    load = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
    key = _parsed(lambda: load(data, None), file, "private")
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError(f"{file} holds no Ed25519 private key.", _MAKE)
    return SigningKey(_public(key.public_key()), key)


def load_public_key(file: Path) -> PublicKey:
    """The public key of a file, in PEM or as a line of OpenSSH's. ``UsageError`` where there is
    none, or it is of another sort."""
    ed25519, serialization = _cryptography()
    data = _read(file, "It was made beside the private key, as FILE.pub.")
    is_ssh = data.startswith(b"ssh-")
    load = serialization.load_ssh_public_key if is_ssh else serialization.load_pem_public_key
    key = _parsed(lambda: load(data), file, "public")
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError(f"{file} holds no Ed25519 public key.", "Name the FILE.pub of the pair.")
    return _public(key)


def _parsed(load: Callable[[], object], file: Path, sort: str) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load()
    except TypeError as error:
        raise UsageError(
            f"The key in {file} is protected by a passphrase, which tgraph does not ask for.",
            "Take it off with `ssh-keygen -p`, and let the file's mode protect the key.",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file} holds no Ed25519 {sort} key.", _MAKE) from error


def _read(file: Path, remedy: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"The key {file} can't be read: {error.strerror}.", remedy) from error


def _write_new(file: Path, data: bytes, mode: int) -> None:
    """Write a file that must not be there yet, with its mode from the beginning."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        said = f"{file} can't be written: {error.strerror}."
        raise UsageError(said, "A key is never overwritten; name another file.") from error
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        os.fsync(out.fileno())


def _public(key: Ed25519PublicKey) -> PublicKey:
    return PublicKey(key.public_bytes_raw())


def _cryptography() -> tuple[Any, Any]:
    """The modules of the package ``cryptography`` that are needed. ``UsageError`` without it."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("Signatures need the package cryptography.", _EXTRA) from error
    return ed25519, serialization
