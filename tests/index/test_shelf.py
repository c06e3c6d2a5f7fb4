"""The communities and reports in one file: what is saved is read again, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph.index.reports.report_cache import (
    FILE,
    ReportCache,
    load_report_cache,
    save_report_cache,
)
from tgraph.model import Community, CommunityReport, Finding

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.dictionaries(TEXT, st.integers(0, 10**9), max_size=3)


@st.composite
def shelves(draw: st.DrawFn) -> ReportCache:
    names = sorted(draw(st.sets(TEXT, max_size=5)))
    communities = tuple(
        Community(
            name,
            draw(st.integers(0, 4)),
            tuple(sorted(draw(st.sets(TEXT, max_size=4)))),
            (),
            draw(st.none() | st.sampled_from(names)),
            tuple(sorted(draw(st.sets(st.sampled_from(names))))),
        )
        for name in names
    )
    findings = st.builds(Finding, TEXT, TEXT, TEXT, st.lists(TEXT, max_size=3).map(tuple))
    reports = {
        name: CommunityReport(
            draw(TEXT),
            name,
            draw(st.integers(0, 4)),
            draw(TEXT),
            draw(TEXT),
            draw(st.floats(0, 10)),
            draw(TEXT),
            tuple(draw(st.lists(findings, max_size=3))),
        )
        for name in names
    }
    return ReportCache(
        communities, reports, draw(COUNTS), draw(COUNTS), draw(st.dictionaries(TEXT, COUNTS))
    )


@given(shelves())
def test_what_is_saved_is_read_again(tmp_path_factory, shelf):
    folder = tmp_path_factory.mktemp("shelf")
    save_report_cache(folder, 3, shelf)
    assert load_report_cache(folder, 3) == shelf
    assert load_report_cache(folder, 4) is None


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: b"{}"])
def test_what_is_damaged_is_not_read(tmp_path, damage):
    save_report_cache(tmp_path, 1, ReportCache((), {}))
    file = tmp_path / FILE
    file.write_bytes(damage(file.read_bytes()))
    assert load_report_cache(tmp_path, 1) is None


def test_a_folder_without_one_has_none(tmp_path):
    assert load_report_cache(tmp_path, 1) is None
