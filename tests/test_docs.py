"""What the documents say works: commands and code are run, links lead somewhere."""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: Path, language: str) -> list[str]:
    return [body for name, body in _BLOCK.findall(page.read_text("utf-8")) if name == language]


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a checkout, with the example corpus indexed as the README does.

    It is made once, whoever of several test processes comes first; each has a copy of it.
    """
    base = tmp_path_factory.getbasetemp()
    made = base.parent / f"docs-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}"
    with (base.parent / f"{made.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (made / "done").exists():
            made.mkdir(exist_ok=True)
            (made / "examples").symlink_to(REPOSITORY / "examples")
            first = blocks(REPOSITORY / "README.md", "bash")[0].splitlines()
            run("\n".join(line for line in first if line.startswith(("tgraph ", "tg-"))), made)
            (made / "done").touch()
    return shutil.copytree(made, base / "docs", symlinks=True)


def run(script: str, folder: Path) -> str:
    bin_folder = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"export PATH={bin_folder}:$PATH\n{script}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def test_the_readme_begins_with_the_two_commands():
    first, second = blocks(REPOSITORY / "README.md", "bash")[:2]
    assert "tgraph index examples/antarctica" in first
    assert "tg-invoke-graph-rag" in first
    assert "pytest" in second


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name != "README.md" and blocks(p, "bash")], ids=lambda p: p.name
)
def test_commands_of_a_page_run(page: Path, workplace: Path):
    for script in blocks(page, "bash"):
        run(script, workplace)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_of_a_page_runs(page: Path, workplace: Path):
    for code in blocks(page, "python"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=workplace,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, f"{code}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(REPOSITORY)))
def test_links_of_a_page_lead_somewhere(page: Path):
    for target in _LINK.findall(page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_reference_of_commands_is_current():
    made = runpy.run_path(str(REPOSITORY / "docs/cli_reference.py"))["page"]()
    assert (REPOSITORY / "docs/reference/cli.md").read_text("utf-8") == made
