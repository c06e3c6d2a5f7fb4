"""What is installed is what was locked, under licences that are listed."""

from __future__ import annotations

import re
import runpy
import tomllib
from itertools import chain
from typing import Any

from tests.support.paths import REPOSITORY

PAGE = REPOSITORY / "docs" / "reference" / "licences.md"
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def read_toml(name: str) -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / name).read_text("utf-8"))


def test_each_file_of_each_locked_package_has_a_hash() -> None:
    packages = [p for p in read_toml("uv.lock")["package"] if p["name"] != "tgraph-rag"]
    for package in packages:
        files = [*package.get("wheels", ()), *filter(None, [package.get("sdist")])]
        assert files, package["name"]
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"]) for file in files)


def test_the_lock_has_what_the_project_asks_for() -> None:
    project = read_toml("pyproject.toml")["project"]
    (locked,) = (p for p in read_toml("uv.lock")["package"] if p["name"] == "tgraph-rag")
    wanted = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    stated = {
        (entry["name"], frozenset(filter(None, entry.get("specifier", "").split(","))))
        for entry in locked["metadata"]["requires-dist"]
    }
    for requirement in wanted:
        bare = re.sub(r"\[[^]]*\]", "", requirement.partition(";")[0]).strip()
        name = _NAME.match(bare)
        assert name is not None
        key = name[0].lower().replace("_", "-")
        specifiers = frozenset(filter(None, bare[name.end() :].replace(" ", "").split(",")))
        assert key == "tgraph-rag" or (key, specifiers) in stated, "run uv lock"


def test_the_page_of_licences_is_current() -> None:
    made = runpy.run_path(str(REPOSITORY / "docs/licences.py"))["page"]()
    assert made == PAGE.read_text("utf-8"), "run docs/licences.py"
