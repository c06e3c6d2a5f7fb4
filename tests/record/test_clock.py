"""A clock that is set back makes no record that contradicts itself, and puts no session behind an
older one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from tests.support.workers import QUESTION, open_graph
from tgraph import vocabulary as v
from tgraph.record.activities import Activity
from tgraph.store.statements import Statements

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def backwards() -> Iterator[datetime]:
    """Each time it is read it is a minute earlier."""
    return (NOON - timedelta(minutes=number) for number in count())


@pytest.mark.slow
def test_a_clock_set_back_while_a_session_goes_on_breaks_no_shape(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Marie Curie discovered polonium.\n")
    with open_graph(tmp_path / "g") as kg:
        kg.index([tmp_path / "a.txt"])
    with open_graph(tmp_path / "g", clock=backwards().__next__) as kg:
        first, second = (kg.ask(QUESTION, "graph").session for _ in range(2))
        assert kg.audit("shapes").rows == ()
        assert kg.integrity().ok
        assert [session.explain_id for session in kg.sessions.summaries()] == [second, first]
        assert kg.sessions.find("last").explain_id == second
        assert kg.sessions.summaries()[0].started < kg.sessions.summaries()[1].started


def test_an_activity_that_seems_to_end_before_it_began_ended_then() -> None:
    out = Statements(NamedNode("urn:x:graph"))
    Activity("urn:x:call", ("Call",), "A call", NOON, NOON - timedelta(hours=1)).state(out)
    times = {quad.predicate: quad.object for quad in out.quads}
    assert times[v.prov("startedAtTime")] == times[v.prov("endedAtTime")]
