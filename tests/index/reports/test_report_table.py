"""The communities and reports in tables: what was put in is read again, whole or row by row, and a
changed table is as one that is made of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgraph import vocabulary as v
from tgraph.index.reports.report_table import (
    FILES,
    Makers,
    ReportCounts,
    ReportTable,
    _as_row,
    load_reports,
    makers_of,
)
from tgraph.model import Community, CommunityReport, Finding

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.builds(ReportCounts, *[st.integers(0, 10**9)] * 3)
State = tuple[dict[str, Community], dict[str, CommunityReport]]


@st.composite
def states(draw: st.DrawFn) -> State:
    """Communities, some of them with a report, in the order of their levels and IRIs."""
    names = sorted(draw(st.sets(st.sampled_from("abcdefgh"), max_size=6)))
    made = [
        Community(
            name,
            draw(st.integers(0, 3)),
            tuple(sorted(draw(st.sets(st.sampled_from(["x", "y", "z", "ü", ""]))))),
            (),
            draw(st.none() | st.sampled_from(names)),
            tuple(sorted(draw(st.sets(st.sampled_from(names))))),
        )
        for name in names
    ]
    communities = {one.iri: one for one in sorted(made, key=lambda one: (one.level, one.iri))}
    told = draw(st.sets(st.sampled_from(names))) if names else set()
    return communities, {name: draw(reports(name)) for name in communities if name in told}


@st.composite
def reports(draw: st.DrawFn, community: str) -> CommunityReport:
    iri = v.report_iri(community, draw(TEXT))
    said = draw(st.lists(st.tuples(TEXT, TEXT, st.lists(TEXT, max_size=3)), max_size=3))
    findings = [
        Finding(v.finding_iri(iri, n), summary, explanation, tuple(cites))
        for n, (summary, explanation, cites) in enumerate(said)
    ]
    level, rating = draw(st.integers(0, 4)), draw(st.floats(0, 10))
    texts = draw(TEXT), draw(TEXT), rating, draw(TEXT)
    return CommunityReport(iri, community, level, *texts, tuple(findings))


def everything(table: ReportTable) -> tuple[Any, ...]:
    communities, told = table.communities(), table.reports()
    entities = sorted({member for one in communities.values() for member in one.members})
    inside = {entity: sorted(own) for entity, own in table.communities_of(entities).items()}
    counts = {report.iri: table.counts(report.iri) for report in told.values()}
    return [*communities.items()], [*told.items()], inside, counts, table.tokens(), table.encoding


def made(state: State) -> ReportTable:
    return ReportTable.from_reports(state[0].values(), state[1])


@pytest.mark.slow
@given(states())
def test_what_was_put_in_is_read_again(state: State) -> None:
    communities, told = state
    with closing(made(state)) as table:
        assert [*table.communities().items()] == [*communities.items()]
        assert [*table.reports().items()] == [*told.items()]
        outline = [(one.iri, one.level, one.report) for one in table.outline()]
        assert outline == [
            (iri, one.level, told[iri].iri if iri in told else "")
            for iri, one in communities.items()
        ]
        numbers = {one.number: one.iri for one in table.outline()}
        inside = inside_of(communities.values())
        found = sorted(sorted(numbers[n] for n in own) for own in table.memberships())
        assert found == sorted(inside.values())


@pytest.mark.slow
@given(states())
def test_rows_are_those_of_the_whole(state: State) -> None:
    communities, told = state
    with closing(made(state)) as table:
        for iri in [*"abcdefgh"]:
            one = {iri: communities[iri]} if iri in communities else {}
            assert table.communities([iri]) == one
            assert table.reports([iri]) == ({iri: told[iri]} if iri in told else {})
        for report in told.values():
            assert table.reports_called([report.iri, "other"]) == {report.iri: report}
        inside = inside_of(communities.values())
        found = table.communities_of(["x", "y", "z", "ü", "", "nobody"])
        assert {entity: sorted(own) for entity, own in found.items()} == inside


def inside_of(communities: Iterable[Community]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in communities:
        for member in one.members:
            found.setdefault(member, []).append(one.iri)
    return {entity: sorted(own) for entity, own in found.items()}


@pytest.mark.slow
@given(states(), states(), st.data())
def test_a_changed_table_is_one_of_everything(
    before: State, after: State, data: st.DataObject
) -> None:
    """Also where communities are given anew that are as they were."""
    counts = {report.iri: data.draw(COUNTS) for report in before[1].values()}
    gone = before[0].keys() - after[0].keys()
    changed = {iri for iri, one in after[0].items() if before[0].get(iri) != one}
    changed |= data.draw(st.sets(st.sampled_from(sorted(after[0])))) if after[0] else set()
    told: Mapping[str, CommunityReport | None] = {
        iri: after[1].get(iri) for iri in after[0] if before[1].get(iri) != after[1].get(iri)
    }
    with closing(made(before)) as old:
        old.list_uncounted("an encoding")
        old.count(counts)
        was = everything(old)
        communities = [one for iri, one in after[0].items() if iri in changed]
        with (
            closing(old.with_changes(gone, communities, told)) as new,
            closing(made(after)) as fresh,
        ):
            fresh.list_uncounted("an encoding")
            kept = {iri: one for iri, one in after[1].items() if before[1].get(iri) == one}
            fresh.count({one.iri: counts[one.iri] for one in kept.values()})
            assert everything(new) == everything(fresh)
            assert new.list_uncounted("an encoding").keys() == after[1].keys() - kept.keys()
        assert everything(old) == was


@pytest.mark.slow
@given(states(), st.data())
def test_what_is_saved_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, state: State, data: st.DataObject
) -> None:
    folder, makers = tmp_path_factory.mktemp("reports"), Makers(data.draw(TEXT), "b")
    with closing(made(state)) as table:
        assert table.list_uncounted("an encoding").keys() == state[1].keys()
        table.count({report.iri: data.draw(COUNTS) for report in state[1].values()})
        assert not table.list_uncounted("an encoding")
        table.save(folder, 3, makers)
        found = load_reports(folder, 3)
        assert found is not None
        with closing(found):
            assert everything(found) == everything(table)
    assert (makers_of(folder, 3), makers_of(folder, 4)) == (makers, Makers())
    assert load_reports(folder, 4) is None


def test_another_encoding_is_counted_anew(tmp_path: Path) -> None:
    report = CommunityReport("urn:report:1", "a", 0, "T", "S", 5.0, "because")
    with closing(ReportTable.from_reports([Community("a", 0, ("x",), ())], {"a": report})) as table:
        table.list_uncounted("one")
        table.count({report.iri: ReportCounts(1, 2, 3)})
        table.save(tmp_path, 1)
    known = load_reports(tmp_path, 1)
    assert known is not None
    with closing(known), closing(known.with_changes((), (), {})) as table:
        assert table.tokens() == {report.iri: 3}
        assert table.list_uncounted("other") == {"a": report}
        assert table.counts(report.iri) == ReportCounts(1, 2, None)
        assert table.tokens() == {}


def test_reports_of_others_are_left_out() -> None:
    report = CommunityReport("urn:report:1", "gone", 0, "T", "S", 5.0, "because")
    with closing(
        ReportTable.from_reports([Community("a", 0, ("x",), ())], {"gone": report})
    ) as table:
        assert table.reports() == {}
        own = replace(report, community="a")
        with closing(table.with_changes((), (), {"a": own})) as told:
            assert told.reports() == {"a": own}
            with closing(told.with_changes(["a"], (), {})) as bare:
                assert everything(bare)[:3] == ([], [], {})


def test_nothing_of_what_is_gone_is_left_in_the_file(tmp_path: Path) -> None:
    said = {part: f"secret {part} {'of a text ' * 20}" for part in ("title", "summary", "finding")}
    finding = Finding("urn:finding:1:0", "S", said["finding"])
    told = said["title"], said["summary"], 5.0, "because", (finding,)
    report = CommunityReport("urn:report:1", "a", 0, *told)
    communities = [Community(iri, 0, (f"secret-{iri}", "c"), ()) for iri in ("a", "b")]
    with closing(ReportTable.from_reports(communities, {"a": report})) as table:
        table.save(tmp_path, 1)
        before = saved(tmp_path)
        with closing(table.with_changes(["a"], (), {})) as rest:
            rest.save(tmp_path, 2)
    after = saved(tmp_path)
    findings = _as_row(report)[-1]
    assert isinstance(findings, bytes)
    for gone in (b"secret title", b"secret summary", findings, b"secret-a"):
        assert gone in before
        assert gone not in after
    assert b"secret-b" in after


def saved(folder: Path) -> bytes:
    (file,) = (path for path in folder.iterdir() if path.name != FILES.head)
    return file.read_bytes()


@pytest.mark.parametrize("damage", [lambda data: data[:-2], lambda data: b"", lambda data: b"{}"])
@pytest.mark.parametrize("which", ["head", "file"])
def test_what_is_damaged_is_not_read(
    tmp_path: Path, which: str, damage: Callable[[bytes], bytes]
) -> None:
    with closing(ReportTable.from_reports((), {})) as table:
        table.save(tmp_path, 1)
    head = tmp_path / FILES.head
    (other,) = (path for path in tmp_path.iterdir() if path != head)
    file = head if which == "head" else other
    file.write_bytes(damage(file.read_bytes()))
    assert load_reports(tmp_path, 1) is None


def test_a_folder_without_one_has_none(tmp_path: Path) -> None:
    assert load_reports(tmp_path, 1) is None
    assert makers_of(tmp_path, 1) == Makers()
