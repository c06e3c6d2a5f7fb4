"""Prints docs/reference/licences.md: the licence of each package in uv.lock.

A licence is what an installed package's metadata says, or that of a wheel in ``--wheels FOLDER``
(``pip download --no-deps NAME==VERSION``), or, for a package that is on neither, what the page has
for its version. A package without any is an error: look it up, and name it in ``STATED``."""

from __future__ import annotations

import argparse
import email
import re
import tomllib
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "licences.md"
PROJECT = "tgraph-rag"
STATED = {
    "chroma-hnswlib": "Apache-2.0",  # its LICENSE; the metadata say nothing
    "hnswlib": "Apache-2.0",  # the LICENSE of its repository; there are no wheels
}
DEVELOPMENT = ("dev", "docs", "frameworks")
_LONGEST = 60
_HEAD = """# Licences

What tgraph may bring, by `uv.lock`: each package with its versions and its licence as its metadata
state it. tgraph itself is under Apache-2.0. *core* comes with `pip install tgraph-rag`, *extra*
with one of its extras, *development* with `dev`, `docs` and `frameworks` alone. Printed by
`python docs/licences.py`.

| package | versions | licence | for |
|---|---|---|---|
"""
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", re.M)

Known = Mapping[tuple[str, str], str]


def read_lock() -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]
    return packages


def page(wheels: Path | None = None) -> str:
    """The page; raise ``SystemExit`` naming packages without a licence."""
    lock = read_lock()
    uses = _find_uses(lock)
    known = {**dict(_read_page()), **dict(_read_wheels(wheels)), **dict(_read_installed())}
    versions: dict[str, list[str]] = defaultdict(list)
    for package in lock:
        if package["name"] != PROJECT:
            versions[package["name"]].append(package["version"])
    rows = [(name, versions[name], _find_licence(name, versions[name], known)) for name in versions]
    if missing := [name for name, _, licence in rows if not licence]:
        raise SystemExit(f"No licence is known of {', '.join(missing)}.")
    lines = (
        f"| {name} | {', '.join(each)} | {licence} | {uses[name]} |\n"
        for name, each, licence in sorted(rows)
    )
    return _HEAD + "".join(lines)


def _find_licence(name: str, versions: Sequence[str], known: Known) -> str:
    found = (known.get((name, version), "") for version in versions)
    return STATED.get(name) or "; ".join(dict.fromkeys(filter(None, found)))


def _find_uses(lock: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return for each package what it is for."""
    needs: dict[str, set[str]] = defaultdict(set)
    optional: dict[str, Mapping[str, Any]] = {}
    for package in lock:
        needs[package["name"]] |= _names(package.get("dependencies", ()))
        optional[package["name"]] = package.get("optional-dependencies", {})
        if package["name"] != PROJECT:
            for extra in optional[package["name"]].values():
                needs[package["name"]] |= _names(extra)
    extras = optional[PROJECT]
    runtime = (_names(each) for extra, each in extras.items() if extra not in DEVELOPMENT)
    core = _reach(needs, needs[PROJECT])
    used = _reach(needs, set().union(*runtime))
    return {
        name: "core" if name in core else "extra" if name in used else "development"
        for name in needs
    }


def _names(dependencies: Iterable[Mapping[str, Any]]) -> set[str]:
    return {dependency["name"] for dependency in dependencies}


def _reach(needs: Mapping[str, set[str]], start: Iterable[str]) -> set[str]:
    reached: set[str] = set()
    waiting = set(start)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= needs.get(name, set()) - reached
    return reached


# --- where licences are read ----------------------------------------------------------------------


def _read_page() -> Iterator[tuple[tuple[str, str], str]]:
    text = PAGE.read_text("utf-8") if PAGE.is_file() else ""
    for name, versions, licence in _ROW.findall(text):
        for version in versions.split(", "):
            yield (name, version), licence


def _read_installed() -> Iterator[tuple[tuple[str, str], str]]:
    for distribution in metadata.distributions():
        yield from _read_message(distribution.metadata)  # type: ignore[arg-type]


def _read_wheels(folder: Path | None) -> Iterator[tuple[tuple[str, str], str]]:
    for path in folder.glob("*.whl") if folder is not None else ():
        with zipfile.ZipFile(path) as wheel:
            (name,) = (n for n in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            yield from _read_message(email.message_from_bytes(wheel.read(name)))


def _read_message(message: Message) -> Iterator[tuple[tuple[str, str], str]]:
    if (name := message.get("Name")) and (licence := _state_licence(message)):
        yield (re.sub(r"[-_.]+", "-", name).lower(), message.get("Version")), licence


def _state_licence(message: Message) -> str:
    """Return the licence in metadata: as an expression, in words, or by its classifiers."""
    words = (message.get("License") or "").strip().split("\n")[0].replace("|", "/")
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in message.get_all("Classifier") or ()
        if each.startswith("License ::") and not each.endswith("OSI Approved")
    ]
    stated = words if 0 < len(words) <= _LONGEST and words != "UNKNOWN" else ""
    return message.get("License-Expression") or stated or "; ".join(classifiers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path)
    print(page(parser.parse_args().wheels), end="")
