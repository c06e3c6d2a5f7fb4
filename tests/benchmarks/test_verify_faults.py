"""Verification blames the step whose reply was falsified, whatever repeats it afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.verify_faults import FAULTS, Fault, later, run
from tgraph.explain.trace.bundle_reader import kind_of

CASES = {(fault.step, fault.blamed, fault.sentence): fault for fault in reversed(FAULTS)}
"""One of each kind; the benchmark runs all of them."""
ITEMS = {
    "extraction": ("evidence",),
    "summary": ("summary",),
    "report": ("report", "finding"),
    "sub-report": ("report", "finding"),
    "point": ("point",),
    "selection": ("edge",),
    "answer": ("sentence",),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", CASES.values(), ids=lambda fault: f"{fault.name}-{fault.mode}")
def test_the_falsified_step_is_blamed(fault: Fault, tmp_path: Path) -> None:
    found = run(fault, tmp_path)
    assert found.sentence is not None, "the answer tells the lie"
    assert found.blamed == fault.blamed, found.sentence.trail
    assert found.sentence.lost is not None
    assert kind_of(found.sentence.lost.item) in ITEMS[fault.blamed]
    assert {other.verdict for other in found.others} <= {"supported"}


def test_there_are_enough_kinds_of_faults() -> None:
    assert len(CASES) >= 12
    assert {fault.blamed for fault in CASES.values()} == set(ITEMS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "entity description"])
def test_what_has_left_knowledge_since_is_still_blamed(name: str, tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == name)
    found = run(fault, tmp_path, changed={"curie.txt": "The Fram sailed to the south.\n"})
    assert found.sentence is not None
    assert found.blamed == fault.blamed, found.sentence.trail


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["summary of descriptions", "reasoning of a selection", "invented sentence"]
)
def test_what_documents_say_since_changes_no_blame(name: str, tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS if fault.name == name)
    found = run(fault, tmp_path, changed=later(fault))
    assert found.sentence is not None
    assert found.blamed == fault.blamed, found.sentence.trail
