"""Signatures: chain entries certifying the chain's head with a key (design, section 3.7).

Anybody able to write the store can recompute a chain; signing again requires the private key.
Signatures use Ed25519 (RFC 8032), a deterministic scheme, over the catalogue, entry count and
head. The entry names the key as an agent; the private key stays in place."""

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
from tgraph.store.statements import build_statements, iri_node

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
    """A public key checking signatures: 32 bytes."""

    raw: bytes

    @property
    def id(self) -> str:
        """The key's SHA-256 in hexadecimal."""
        return sha256(self.raw).hexdigest()

    @property
    def agent(self) -> str:
        """The key's IRI as an agent."""
        return f"{_AGENT}{self.id}"

    @property
    def text(self) -> str:
        """The key bytes in base64, as recorded."""
        return base64.b64encode(self.raw).decode()

    def verify_signature(self, statement: bytes, signature: str) -> bool:
        """Return whether the base64 signature over the statement comes from this key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        with suppress(InvalidSignature, ValueError):
            signature_bytes = base64.b64decode(signature, validate=True)
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature_bytes, statement)
            return True
        return False


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key pair; the private key is never shown."""

    public: PublicKey
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    def sign(self, statement: bytes) -> str:
        """Return the signature over the statement, in base64."""
        return base64.b64encode(self._private.sign(statement)).decode()


def statement_of(catalogue: str, head: Head) -> bytes:
    """Return the statement to sign: catalogue, entry count of the chain, and head hash."""
    return f"tgraph chain 1\n{catalogue}\n{head.sequence}\n{head.hash}\n".encode()


def is_signed(store: Store, chain: Chain) -> bool:
    """Return whether signing is unnecessary: chain empty, or signature at chain end."""
    if not chain.head.sequence:
        return True
    number = Literal(str(chain.head.sequence), datatype=v.xsd("integer"))
    entries = store.match(None, v.tg("sequence"), number, chain.catalogue)
    return any(text_of(quad.subject).startswith(_PREFIX) for quad in entries)


def key_quads(key: PublicKey) -> list[Quad]:
    """Return quads describing the key as an agent, for the source graph."""
    return build_statements(
        v.SOURCE_GRAPH,
        key.agent,
        (v.RDF_TYPE, [v.prov("Agent"), v.tg("SigningKey")]),
        (v.RDFS_LABEL, f"Ed25519 key {key.id[:16]}"),
        (v.tg("publicKey"), key.text),
    )


def signature_quads(chain: Chain, key: SigningKey) -> list[Quad]:
    """Return the next chain entry: a signature over the chain's head."""
    head = chain.head
    signature = key.sign(statement_of(chain.catalogue.value, head))
    return chain.entry(
        f"{_PREFIX}{v.digest_parts(chain.catalogue.value, key.public.id, head.hash)}",
        KIND,
        sha256(signature.encode()).hexdigest(),
        (v.tg("signature"), signature),
        (v.prov("wasAttributedTo"), iri_node(key.public.agent)),
    )


def make_keys(file: Path) -> tuple[PublicKey, Path]:
    """Create a key pair: private key in ``file`` (PEM, PKCS #8, readable only by the owner),
    public key beside, suffixed ``.pub`` (PEM).

    Raise ``UsageError`` if either file exists already."""
    ed25519, serialization = _import_cryptography()
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
    return _make_public_key(private.public_key()), beside


def load_signing_key(file: Path) -> SigningKey:
    """Load a private key file, in PEM or OpenSSH format.

    Raise ``UsageError`` if no key exists, the key has another type, or a passphrase protects
    the key."""
    ed25519, serialization = _import_cryptography()
    data = _read_key(file, _NAMED)
    is_ssh = b"OPENSSH PRIVATE KEY" in data
    load = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
    key = _parse_key(lambda: load(data, None), file, "private")
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise UsageError(f"{file} holds no Ed25519 private key.", _MAKE)
    return SigningKey(_make_public_key(key.public_key()), key)


def load_public_key(file: Path) -> PublicKey:
    """Load a public key file, in PEM format or as an OpenSSH line.

    Raise ``UsageError`` if no key exists or the key has another type."""
    ed25519, serialization = _import_cryptography()
    data = _read_key(file, "The public key is in FILE.pub beside the private key.")
    is_ssh = data.startswith(b"ssh-")
    load = serialization.load_ssh_public_key if is_ssh else serialization.load_pem_public_key
    key = _parse_key(lambda: load(data), file, "public")
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise UsageError(f"{file} holds no Ed25519 public key.", "Name the FILE.pub of the pair.")
    return _make_public_key(key)


def _parse_key(load: Callable[[], object], file: Path, sort: str) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load()
    except TypeError as error:
        raise UsageError(
            f"The key in {file} is protected by a passphrase, which tgraph does not ask for.",
            "Remove the passphrase with `ssh-keygen -p`, and protect the key by the mode of the "
            "file.",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file} holds no Ed25519 {sort} key.", _MAKE) from error


def _read_key(file: Path, remedy: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"The key {file} can't be read: {error.strerror}.", remedy) from error


def _write_new(file: Path, data: bytes, mode: int) -> None:
    """Write a new file, created with the given mode; existing files cause an error."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        message = f"{file} can't be written: {error.strerror}."
        raise UsageError(message, "A key is never overwritten; name another file.") from error
    with os.fdopen(handle, "wb") as out:
        out.write(data)
        os.fsync(out.fileno())


def _make_public_key(key: Ed25519PublicKey) -> PublicKey:
    return PublicKey(key.public_bytes_raw())


def _import_cryptography() -> tuple[Any, Any]:
    """Return the required modules of the ``cryptography`` package.

    Raise ``UsageError`` if the package is missing."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError("Signatures need the package cryptography.", _EXTRA) from error
    return ed25519, serialization
