"""Questions as of earlier knowledge: answered, and recorded, as they would have been then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyoxigraph import NamedNode

import tgraph
from tests.engine.test_exactness import read_names
from tests.support.workers import LineParts
from tgraph import vocabulary as v
from tgraph.cli.main import cli
from tgraph.engine.ask.streams import result_of
from tgraph.engine.components import Components
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.published_states import KEPT_PAST
from tgraph.errors import UsageError
from tgraph.explain.audit.shacl import check_shapes
from tgraph.explain.render.wording import knowledge_text
from tgraph.explain.trace.comparison import find_differences, replay_form, replay_hash
from tgraph.explain.trace.recorded_session import read_recorded
from tgraph.extensions.lab import measure_influence
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

QUESTION = "Who led the Fram to the South Pole?"
MODES = {
    "lines": ("graph", "local", "raptor", "contextual"),
    "model": ("graph", "global"),
}
TEXTS = {
    "lines": {
        "pole": "Roald Amundsen = Amundsen\nRoald Amundsen reached Pole.\nOslo lies in Norway.\n",
        "fram": "Amundsen led Fram.\nColin Archer lived in Larvik.\n",
        "scott": "Robert Scott reached South Pole.\nRobert Scott led Terra Nova.\n",
        "changed": "Roald Amundsen led Fram.\nFram reached Bay of Whales.\n",
    },
    "model": {
        "pole": "Roald Amundsen (also called Amundsen) reached the South Pole. He left Oslo.\n",
        "fram": "Amundsen led the Fram. Colin Archer lived in Larvik.\n",
        "scott": "Robert Scott reached the South Pole.\n",
        "changed": "Roald Amundsen led the Fram to the Bay of Whales in 1911.\n",
    },
}
VALUES: dict[str, dict[str, Any]] = {
    "lines": {"raptor.enabled": True, "contextual_search.enabled": True},
    "model": {"claims.enabled": True, "claims.gleanings": 0, "extract.gleanings": 0},
}


def days():
    """A clock that goes on by an hour each time it is read."""
    start, ticks = datetime(2026, 1, 1, tzinfo=UTC), count()
    return lambda: start + timedelta(hours=next(ticks))


class History:
    """A graph with several generations, and what a question came to in each of them."""

    def __init__(self, root: Path, way: str) -> None:
        ids, self.way = count(), way
        values = VALUES[way]
        chat = ScriptedModel({"extract_graph": read_names}) if way == "model" else None
        parts = LineParts if way == "lines" else Components
        self.texts = root / "texts"
        self.texts.mkdir()
        self.graph = tgraph.open(
            root / "graph",
            create=True,
            settings=values,
            parts=parts(
                load_settings(None, values), root / "cache", chat=chat, embedder=HashingEmbedder()
            ),
            clock=days(),
            uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
        )
        self.asked: dict[tuple[int, str], str] = {}
        self.messages: list[str] = []
        self.graph.opened.message = self.messages.append

    def index(self, **texts: str) -> None:
        paths = [self.texts / f"{name}.md" for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text)
        assert not self.graph.index(paths).failed
        self.ask_now()

    def ask_now(self) -> None:
        for mode in MODES[self.way]:
            session = self.graph.ask(QUESTION, mode, history=[]).session
            self.asked[self.graph.context().generation, mode] = session

    def form(self, session: str):
        graph = self.graph
        summary = graph.sessions.find(session)
        found = read_recorded(
            graph.opened.read(), graph.opened.librarian, summary.bundle, summary.explain_id
        )
        return replay_form(found.quads, found.uuid)


@pytest.fixture(scope="module", params=["lines", "model"])
def history(request, tmp_path_factory) -> Iterator[History]:
    found = History(tmp_path_factory.mktemp("history"), request.param)
    graph, texts = found.graph, TEXTS[request.param]
    found.index(pole=texts["pole"])
    found.index(fram=texts["fram"], scott=texts["scott"])
    graph.entities.split("Amundsen", reason="Another one.")
    found.ask_now()
    found.index(fram=texts["changed"])
    graph.retract("scott.md", reason="It is a legend.")
    found.ask_now()
    yield found
    graph.close()


@pytest.mark.slow
def test_a_question_as_of_any_generation_is_the_question_asked_then(history):
    generations = {generation for generation, _ in history.asked}
    assert generations == {1, 2, 3, 4, 5}
    again = {
        (generation, mode): history.graph.ask(QUESTION, mode, history=[], as_of=generation).session
        for generation, mode in history.asked
    }
    for key, session in history.asked.items():
        then, now = history.form(session), history.form(again[key])
        assert list(find_differences(then, now))[:3] == [], key
        assert replay_hash(then) == replay_hash(now)
        trace = history.graph.trace(again[key])
        assert (trace.generation, trace.as_of) == (key[0], str(key[0]))
    assert len(history.graph.opened._states.newest.past) == KEPT_PAST


@pytest.mark.slow
def test_its_session_replays_and_tells_what_it_was_asked_of(history):
    graph = history.graph
    history.messages.clear()
    session = graph.ask(QUESTION, "graph", history=[], as_of=2).session
    published = graph.history.read_generations()[-2].published[:19].replace("T", " ")
    assert history.messages == [f"As of generation 2, of {published} UTC."]
    found = graph.replay(session)
    assert (found.problem, found.differences[:2]) == ("", ())
    assert f"of generation 2 of {published} UTC, asked as of 2" in knowledge_text(graph.trace())
    assert (
        f"Answered from knowledge of generation 2 of {published}"
        in graph.export(session, "html").decode()
    )
    changed = graph.sessions.compare(history.asked[1, "graph"], session).asked
    assert {(c.name, c.before, c.after) for c in changed} >= {("as of", "", "2")}
    store = graph.opened.read()
    summary = graph.sessions.find(session)
    bundle = list(store.match(None, None, None, NamedNode(summary.bundle)))
    assert [q.object.value for q in bundle if q.predicate == v.tg("asOf")] == ["2"]


@pytest.mark.slow
def test_what_was_not_known_then_is_not_in_the_corpus(history):
    graph = history.graph
    session = graph.ask(QUESTION, "graph", history=[], as_of=1).session
    assert graph.why_not(session, "Colin Archer").cause == "not-in-corpus"
    assert graph.why_not(session, "fram.md").cause == "not-in-corpus"
    assert graph.why_not(session, "Oslo").cause != "not-in-corpus"
    later = graph.ask(QUESTION, "graph", history=[], as_of=2).session
    assert graph.why_not(later, "scott.md").cause != "not-in-corpus"  # retracted later
    if history.way == "model":
        assert graph.verify(later).session == later
        assert measure_influence(graph, later).session == later


@pytest.mark.slow
def test_its_record_is_sound(history):
    graph = history.graph
    session = graph.ask(QUESTION, "graph", history=[], as_of=2).session
    graph.close()
    assert not graph.integrity().problems
    assert graph.audit("used-after-retraction").rows == ()
    assert check_shapes(graph.opened.read(), graph.opened.catalogue, session) == ()


@pytest.mark.slow
def test_a_question_under_way_keeps_its_knowledge(history):
    graph = history.graph
    stream = graph.stream(QUESTION, "graph", history=[], as_of=1)
    next(stream)
    for generation in (2, 3):
        graph.ask(QUESTION, "graph", history=[], as_of=generation)
    answer = result_of(stream)
    assert replay_hash(history.form(answer.session)) == replay_hash(
        history.form(history.asked[1, "graph"])
    )
    assert len(graph.opened._states.newest.past) <= KEPT_PAST


# --- points in time ---


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> Iterator[KnowledgeGraph]:
    """Two generations, of two days, and a question of each."""
    root = tmp_path_factory.mktemp("lines")
    values = {"embedding.provider": "hashing"}
    parts = LineParts(load_settings(None, values), root / "cache", embedder=HashingEmbedder())
    times = [datetime(2026, 3, 1, 12, tzinfo=UTC)]
    with tgraph.open(
        root / "graph", create=True, settings=values, parts=parts, clock=lambda: times[0]
    ) as graph:
        for day, text in enumerate(("Amundsen led Fram.\n", "Scott led Discovery.\n")):
            times[0] = datetime(2026, 3, 1 + day, 12, 30, tzinfo=UTC)
            (root / f"{day}.txt").write_text(text)
            graph.index([root / f"{day}.txt"])
            graph.ask("Who led the Fram?", "graph", history=[])
        times[0] = datetime(2026, 3, 5, 12, tzinfo=UTC)
        yield graph


@pytest.mark.parametrize(
    ("point", "generation"),
    [
        ("2026-03-01", 1),
        (date(2026, 3, 1), 1),
        ("2026-03-02", 2),
        ("2026-03-05", 2),
        ("2026-03-02+13:00", 1),
        ("2026-03-01-13:00", 2),
        ("2026-03-02T12:29:59", 1),
        ("2026-03-02T12:30:00", 2),
        ("2026-03-02T12:30", 2),
        ("2026-03-02 13:30:00+01:00", 2),
        (datetime(2026, 3, 2, 12, 29, tzinfo=UTC), 1),
        ("2", 2),
        (1, 1),
        (" now ", 2),
    ],
)
def test_a_point_in_time_is_named_in_many_ways(lines, point, generation):
    assert lines.history.compare(point, point).before.generation == generation
    if isinstance(point, str) and "T" not in point:
        return
    session = lines.ask("Who led the Fram?", "graph", history=[], as_of=point).session
    assert lines.trace(session).generation == generation


def test_a_session_is_what_it_knew(lines):
    first = lines.sessions.summaries()[-1].explain_id
    uuid = first.removeprefix(v.session_iri(""))
    for name in (first, uuid, uuid[:8]):
        trace = lines.trace(lines.ask("Who led?", "graph", history=[], as_of=name).session)
        assert (trace.generation, trace.as_of) == (1, first)


@pytest.mark.parametrize(
    ("point", "problem"),
    [
        ("2026-02-28", "Nothing was known"),
        ("2026-03-01T12:29", "Nothing was known"),
        ("2026-03-06", "still to come"),
        ("2026-13-01", "no point in time"),
        ("2026-03-01T99:00", "no point in time"),
        ("yesterday", "no point in time"),
        ("3", "no generation 3"),
        ("0", "no generation 0"),
        ("-1", "no session"),
        ("99999999", "no session"),
        ("urn:trustgraph:session:ffffffff", "no session"),
        ("\x1b[31m", "no point in time"),
    ],
)
def test_what_is_no_point_in_time_is_an_error(lines, point, problem):
    sessions = len(lines.sessions.summaries())
    with pytest.raises(UsageError, match=problem):
        lines.ask("Who led the Fram?", "graph", as_of=point)
    assert len(lines.sessions.summaries()) == sessions


def test_a_mode_that_lacks_what_it_searches_says_so(lines):
    with pytest.raises(UsageError, match="Generation 1 has no contexts of chunks"):
        lines.ask("Who led the Fram?", "contextual", as_of=1)


def test_the_history_is_listed(lines):
    newest, first = lines.history.read_generations()
    assert (newest.number, first.number) == (2, 1)
    assert (first.what, first.ended) == ("Index run", ())
    assert [path.rpartition("/")[2] for path in first.taken] == ["0.txt"]


def test_the_commands(lines):
    lines.close()
    root = ["--root", str(lines.root)]
    run = CliRunner().invoke(cli, ["history", *root])
    assert run.exit_code == 0
    assert "Index run" in run.stdout
    listed = CliRunner().invoke(cli, ["history", *root, "--json", "--limit", "1"])
    assert [g["number"] for g in json.loads(listed.stdout)] == [2]
    asked_as_of = [
        *("ask", "Who led Fram?", "-m", "graph", "--as-of", "2026-03-01", *root),
        *("--embedding-provider", "hashing"),
    ]
    asked = CliRunner().invoke(cli, asked_as_of)
    assert "retracted" not in asked.stderr
    assert "As of generation 1, of 2026-03-01 12:30:00 UTC." in asked.stderr
    assert "Amundsen led Fram" in asked.stdout
    lines.retract("0.txt", reason="It is out of date.")
    again = CliRunner().invoke(cli, asked_as_of)
    assert "0.txt was retracted or replaced." in again.stderr
    wrong = CliRunner().invoke(cli, ["ask", "Who?", "--as-of", "soon", *root])
    assert (wrong.exit_code, wrong.stdout) == (2, "")


# --- erasure ---


@pytest.mark.slow
def test_what_was_erased_is_not_answered_from_and_that_is_told(tmp_path):
    values = {"embedding.provider": "hashing"}
    parts = LineParts(load_settings(None, values), tmp_path / "cache", embedder=HashingEmbedder())
    files = [tmp_path / "fram.txt", tmp_path / "secret.txt"]
    files[0].write_text("Amundsen led Fram.\nAmundsen reached Oslo.\n")
    files[1].write_text("Amundsen led Xanadu.\nQuimby led Fram.\n")
    said: list[str] = []
    with tgraph.open(
        tmp_path / "graph", create=True, settings=values, parts=parts, message=said.append
    ) as graph:
        graph.index(files)
        graph.purge("secret.txt", reason="It is private.")
        said.clear()
        for mode in ("graph", "local", "basic"):
            answer = graph.ask("Who led the Fram?", mode, history=[], as_of=1)
            told = f"{answer} {graph.trace(answer.session).as_dict()}"
            assert "Quimby" not in told
            assert "Xanadu" not in told
            assert any("erased since" in note.text for note in answer.notes)
            found = graph.replay(answer.session)
            assert (found.problem, found.differences[:2]) == ("", ())
        assert any("erased since" in message for message in said)
        graph.close()
        assert not graph.integrity().problems
