"""The main faults of ``python -m benchmarks.faults``: named, bounded, nothing lost, healed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.faults import prepare, try_work

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    prepare(folder)
    return folder


@pytest.mark.parametrize(
    ("fault", "work"),
    [
        ("full disk", "index"),
        ("full disk", "serve: upload"),
        ("read-only folder", "index"),
        ("read-only folder", "serve: ask"),
        ("no descriptors", "serve: ask"),
        ("no threads", "index"),
        ("little memory", "serve: start"),
        ("lowered memory", "serve: ask many"),
        ("damaged snapshot", "serve: ask"),
    ],
)
def test_a_fault_is_named_and_healed(base: Path, tmp_path: Path, fault: str, work: str) -> None:
    trial = try_work(fault, work, base, tmp_path / "place")
    assert not trial.failures, trial
