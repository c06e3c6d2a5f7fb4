"""Questions as of earlier knowledge: answered, and recorded, as they would have been then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

import tgraph
from tests.test_exactness import read_names
from tgraph.engine.components import Components
from tgraph.explain.trace.comparison import differences, replay_form, replay_hash
from tgraph.explain.trace.recorded_session import read_recorded
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

QUESTION = "Who sailed the Fram to the South Pole?"
MODES = ("graph", "local", "global", "drift", "lightrag-mix", "ppr", "raptor", "contextual")
TEXTS = {
    "pole.md": "# Pole\n\nRoald Amundsen (also called Amundsen) reached the South Pole in 1911."
    " Roald Amundsen left Oslo.\n",
    "fram.md": "# Fram\n\nAmundsen sailed the Fram. The Fram was built by Colin Archer.\n",
    "scott.md": "# Scott\n\nRobert Scott reached the South Pole. Robert Scott sailed the Terra"
    " Nova.\n",
}
CHANGED = "# Fram\n\nRoald Amundsen sailed the Fram to the Bay of Whales in 1911.\n"
VALUES = {
    "embedding.provider": "hashing",
    "raptor.enabled": True,
    "contextual_search.enabled": True,
}


def days():
    """A clock that goes on by an hour each time it is read."""
    start, ticks = datetime(2026, 1, 1, tzinfo=UTC), count()
    return lambda: start + timedelta(hours=next(ticks))


class History:
    """A graph with several generations, and what a question came to in each of them."""

    def __init__(self, root: Path, way: str) -> None:
        ids, self.way = count(), way
        values = VALUES if way == "embedded" else {**VALUES, "claims.enabled": True}
        chat = ScriptedModel({"extract_graph": read_names}) if way == "model" else None
        self.folder, self.texts = root, root / "texts"
        self.texts.mkdir()
        self.graph = tgraph.open(
            root / "graph",
            create=True,
            settings=values,
            parts=Components(
                load_settings(None, values), root / "cache", chat=chat, embedder=HashingEmbedder()
            ),
            clock=days(),
            uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        )
        self.asked: dict[tuple[int, str], str] = {}
        self.messages: list[str] = []
        self.graph._opened.message = self.messages.append

    def index(self, **texts: str) -> None:
        paths = [self.texts / f"{name}.md" for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
        assert not self.graph.index(paths).failed
        self.ask_now()

    def ask_now(self) -> None:
        for mode in MODES:
            session = self.graph.ask(QUESTION, mode, history=[]).session
            self.asked[self.graph._opened.generation, mode] = session

    def form(self, session: str):
        graph = self.graph
        summary = graph.find_session(session)
        found = read_recorded(graph.read(), graph.librarian, summary.bundle, summary.explain_id)
        return replay_form(found.quads, found.uuid)


@pytest.fixture(scope="module", params=["embedded", "model"])
def history(request, tmp_path_factory) -> Iterator[History]:
    found = History(tmp_path_factory.mktemp("history"), request.param)
    graph, texts = found.graph, {name.removesuffix(".md"): text for name, text in TEXTS.items()}
    found.index(pole=texts["pole"])
    found.index(fram=texts["fram"], scott=texts["scott"])
    if graph.merges():
        graph.split("Amundsen", reason="Another one.")
        found.ask_now()
    found.index(fram=CHANGED)
    graph.retract("scott.md", reason="It is a legend.")
    found.ask_now()
    yield found
    graph.close()


def test_a_question_as_of_any_generation_is_the_question_asked_then(history):
    generations = {generation for generation, _ in history.asked}
    assert len(generations) >= 4
    for (generation, mode), session in history.asked.items():
        again = history.graph.ask(QUESTION, mode, history=[], as_of=generation)
        then, now = history.form(session), history.form(again.session)
        assert list(differences(then, now))[:3] == [], (generation, mode)
        assert replay_hash(then) == replay_hash(now)
        trace = history.graph.trace(again.session)
        assert (trace.generation, trace.as_of) == (generation, str(generation))
