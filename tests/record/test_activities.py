"""Activities are stated by one function, and calls numbered by one recorder."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call
from tgraph.record.activities import (
    Activity,
    Authorship,
    find_standing,
    state_entity,
    state_invalidation,
)
from tgraph.record.recorder import RunRecord
from tgraph.store.oxigraph import OxigraphStore
from tgraph.store.statements import Statements

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ENDED = BEGAN + timedelta(seconds=1)
MODEL = Agent("model", "scripted", "1")
PROMPT = Prompt("summarise", "Summarise.", "0" * 64)
RUN = f"{v.URN}run:00000000-0000-4000-8000-000000000000"


def said(out: Statements) -> dict[str, set[str]]:
    """What is said of each subject, by the ends of the properties' names."""
    found: dict[str, set[str]] = {}
    for quad in out.quads:
        name = quad.predicate.value.rpartition("#")[2].rpartition("/")[2]
        assert isinstance(quad.subject, NamedNode)
        found.setdefault(quad.subject.value, set()).add(name)
    return found


def test_an_activity_is_stated_with_its_agent_plan_and_what_was_left_out() -> None:
    out = Statements(v.SOURCE_GRAPH)
    how = Authorship(RUN, MODEL, (PROMPT,), BEGAN, ENDED, "The reply holds no JSON.")
    activity = how.activity(
        "reporting",
        ("Reporting",),
        "Report",
        "urn:x:report",
        used=("urn:x:chunk",),
        dropped={"a": 2},
    )
    activity.state(out, (v.tg("community"), NamedNode("urn:x:community")))
    names = said(out)
    assert activity.iri == f"{v.URN}reporting:{how.uuid}:{v.digest_parts('urn:x:report')}"
    assert names.pop(activity.iri) == {
        *("type", "label", "isPartOf", "startedAtTime", "endedAtTime", "used", "error"),
        *("community", "wasAssociatedWith", "qualifiedAssociation", "dropped"),
    }
    assert sorted(map(sorted, names.values())) == [
        ["agent", "hadPlan", "type"],
        ["count", "reason", "type"],
    ]


def test_an_activity_says_nothing_of_what_it_has_not() -> None:
    out = Statements(v.SOURCE_GRAPH)
    Activity("urn:x:1", ("Update",), "Update", BEGAN).state(out)
    assert said(out) == {"urn:x:1": {"type", "label", "startedAtTime"}}


def test_what_was_ended_stands_no_more() -> None:
    out = Statements(v.SOURCE_GRAPH)
    for name in ("urn:x:1", "urn:x:2"):
        state_entity(out, name, "Merge", by="urn:x:run")
    state_invalidation(out, "urn:x:1", "urn:x:later", ENDED)
    assert [node.value for node in find_standing(OxigraphStore.memory(out.quads), "Merge")] == [
        "urn:x:2"
    ]


class Copy:
    """Takes what a working copy would be given."""

    def __init__(self) -> None:
        self.quads: list[Quad] = []

    def add(self, quads: Iterator[Quad]) -> None:
        self.quads += quads

    def note(self, quads: list[Quad]) -> None:
        self.quads += quads


@pytest.fixture
def record(tmp_path: Any) -> RunRecord:
    return RunRecord(Librarian(tmp_path), RUN, "00000000-0000-4000-8000-000000000000")


def test_equal_calls_are_numbered_and_who_made_them_is_described_once(record: RunRecord) -> None:
    copy: Any = Copy()
    for text in ("A", "B", "A"):
        asked, reply, cost = {"question": text}, {"text": text}, Usage(1, 2, 1)
        call = Call("chat", asked, reply, MODEL, BEGAN, ENDED, cost, PROMPT)
        record.call(call)
        record.write_calls(copy)
    numbers = [q.object.value for q in copy.quads if q.predicate == v.tg("occurrence")]
    assert numbers == ["0", "0", "1"]
    described = [q for q in copy.quads if q.predicate == v.RDFS_LABEL]
    assert sum(q.subject == NamedNode(MODEL.iri) for q in described) == 1
    assert sum(q.subject == NamedNode(PROMPT.iri) for q in described) == 1
    assert record.usage.calls == 3
    assert record.prompts([PROMPT]) == []
