"""Installed packages that bring weights: found and compared before any of their code is run."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tgraph.errors import ModelError


def find_package(name: str) -> Path | None:
    """Return the folder of an installed package without importing it; None without one."""
    spec = find_spec(name)
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def import_checked(name: str, digest: str, published: str) -> Any:
    """Import a package whose files are those of the published version (``NAME==VERSION``).

    Raises ``ImportError`` if it isn't installed, ``ModelError`` if a file differs."""
    folder = find_package(name)
    if folder is None:
        raise ImportError(name)
    check_package(folder, digest, published)
    return import_module(name)


@cache
def check_package(folder: Path, digest: str, published: str) -> None:
    """Raise ``ModelError`` if a package's files differ from those of the published version."""
    if digest_of(folder) != digest:
        raise ModelError(
            f"The files in {folder} aren't those of {published.replace('==', ' ')}.",
            f"Run: pip install --force-reinstall {published}",
        )


def digest_of(folder: Path) -> str:
    """Return a SHA-256 of all file paths and contents below a folder, except compiled Python
    files."""
    digest = sha256()
    files = (path for path in folder.rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: path.relative_to(folder).as_posix()):
        if path.parent.name != "__pycache__":
            content = sha256(path.read_bytes()).hexdigest()
            digest.update(f"{content}  {path.relative_to(folder).as_posix()}\n".encode())
    return digest.hexdigest()
