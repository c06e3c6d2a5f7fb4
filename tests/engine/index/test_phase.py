"""A phase of an index run: order, what is told, and what a reply that can't be used costs."""

from collections import Counter
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from tgraph.engine.index.phase import Phase
from tgraph.errors import EndpointError, ModelError
from tgraph.model import Agent


class Maker:
    prompts = ()

    def __init__(self, kind: Any) -> None:
        self.agent = Agent(kind, kind)


class Doubling(Phase[int, int, Any]):
    stage = "Doubling"
    unusable = "number whose double can't be used"

    def produce_result(self, item, maker, sink):
        if maker is self.maker and item == 2:
            raise ModelError("No double.")
        if item == 9:
            raise EndpointError("Gone.")
        return 2 * item

    def stand_in(self):
        return Maker("method")

    def complaint(self, item, made):
        return f"{item}: {made.error}"

    def record(self, item, made, began):
        context: Any = self.context
        context.told.append(("record", item, made.result, made.by.agent.kind))


def context() -> Any:
    told: list[Any] = []
    dropped: Counter[str] = Counter()
    ticks = count()
    return SimpleNamespace(
        told=told,
        copy=None,
        settings=SimpleNamespace(chat=SimpleNamespace(concurrency=3)),
        cancel=lambda: told.append("cancelled"),
        workers=None,
        clock=lambda: next(ticks),
        message=told.append,
        report_progress=lambda stage, done, total: told.append((stage, done, total)),
        record=SimpleNamespace(
            call=None, dropped=dropped, write_calls=lambda copy: told.append("calls")
        ),
    )


@pytest.mark.parametrize("kind", ["method", "model"])
def test_items_are_recorded_in_their_order_and_a_bad_reply_costs_its_item(kind):
    given = context()
    Doubling(given, Maker(kind)).run([1, 2])
    assert given.told == [
        ("Doubling", 0, 2),
        "calls",
        ("record", 1, 2, kind),
        ("Doubling", 1, 2),
        "calls",
        ("record", 2, 4, "method"),
        "2: No double.",
        ("Doubling", 2, 2),
    ]
    assert given.record.dropped == {Doubling.unusable: 1}


def test_an_endpoint_that_fails_ends_the_phase():
    given = context()
    with pytest.raises(EndpointError):
        Doubling(given, Maker("model")).run([1, 9, 3])
    assert given.told[-1] == "cancelled"
    assert ("Doubling", 1, 3) in given.told
    assert ("Doubling", 2, 3) not in given.told


@pytest.mark.parametrize("kind", ["method", "model"])
def test_calls_end_where_recording_is_interrupted(kind, monkeypatch):
    """Else the program would wait at its end for replies that nobody reads."""
    given = context()

    def interrupted(self, item, made, began):
        raise KeyboardInterrupt

    monkeypatch.setattr(Doubling, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Doubling(given, Maker(kind)).run([1, 3])
    assert given.told[-1] == ("cancelled" if kind == "model" else "calls")
