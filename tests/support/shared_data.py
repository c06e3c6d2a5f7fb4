"""Real texts and figures that are too large for the repository, where they are at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

FOLDER = Path(os.environ.get("TGRAPH_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
REASON = "the shared data (TGRAPH_SHARED_DATA) is not there"


def shared(name: str) -> Path:
    """The file or folder; a test is left out only where there is no shared data at all."""
    if not FOLDER.is_dir():
        pytest.skip(REASON)
    return FOLDER / name
