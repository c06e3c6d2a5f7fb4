"""Replay: a recorded session re-executes without a call and comes to the same record."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

import tgraph
from tests.support.examples import examples
from tests.support.paths import EXAMPLES
from tgraph import vocabulary as v
from tgraph.engine.ask.parameters import history_of, record_settings, restore_settings
from tgraph.engine.components import Components
from tgraph.engine.rerun.replay import SessionReplay
from tgraph.errors import EndpointError, UsageError
from tgraph.explain.as_of.vectors import LostVectorsError, PastVectors, VectorsOnRecord
from tgraph.explain.trace.comparison import compare_sessions
from tgraph.explain.trace.recorded_session import read_recorded
from tgraph.librarian import Librarian
from tgraph.model import Turn
from tgraph.models.base import decode_vectors, encode_vectors
from tgraph.models.minilm import MiniLMEmbedder
from tgraph.models.recorded_calls import RecordedCalls
from tgraph.record.session import SessionRecord
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import MODES
from tgraph.retrieve.reasons import FIRST_WORDING, WORDING
from tgraph.settings import load_settings
from tgraph.store.oxigraph import OxigraphStore
from tgraph.testing import HashingEmbedder, ScriptedModel, ticking_clock

TEXTS = {
    "curie.md": "# Marie Curie\n\nMarie Curie discovered Polonium in Paris in 1898. Pierre Curie"
    " worked with Marie Curie at the Sorbonne. Marie Curie taught physics at the Sorbonne.\n",
    "becquerel.txt": "Henri Becquerel discovered radioactivity in Paris. Henri Becquerel shared the"
    " Nobel Prize with Marie Curie and Pierre Curie in 1903.\n",
    "oslo.txt": "Roald Amundsen sailed from Oslo. Roald Amundsen reached the South Pole in 1911."
    " The Fram carried Roald Amundsen to the Bay of Whales.\n",
}
QUESTION = "Where did Marie Curie discover Polonium?"
TURNS = [Turn("Who was Marie Curie?", "A physicist in Paris.")]


@pytest.fixture(scope="module", params=["model", "embedded"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def parts_of(root, way, clock, **settings):
    chat = ScriptedModel(clock=clock) if way == "model" else None
    return Components(
        load_settings(None, settings), root / "cache", chat=chat, embedder=HashingEmbedder()
    )


@pytest.fixture(scope="module")
def graph(way, tmp_path_factory):
    root, ids, clock = tmp_path_factory.mktemp("replay"), count(), ticking_clock()
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    with tgraph.open(
        root / "graph",
        create=True,
        parts=parts_of(root, way, clock),
        clock=clock,
        uuid=lambda: f"00000000-0000-4000-8000-{next(ids):012d}",
    ) as kg:
        assert not kg.index([root / name for name in TEXTS]).failed
        yield kg


@pytest.mark.slow
@pytest.mark.parametrize("mode", [*MODES, "auto"])
def test_a_session_of_any_mode_replays_to_the_same_hash_without_a_call(graph, way, mode):
    if (mode, way) == ("bypass", "embedded"):
        pytest.skip("bypass needs a model")
    answer = graph.ask(QUESTION, mode, history=TURNS)
    before = len(graph.opened.parts.chat.requests) if way == "model" else 0
    first, again = graph.replay(answer.session), graph.replay(answer.session)
    assert (first.problem, first.differences[:3]) == ("", ())
    assert first.is_same
    assert first.recorded_hash == again.replayed_hash == first.replayed_hash
    if way == "model":
        assert len(graph.opened.parts.chat.requests) == before


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["graph", "local", "lightrag-mix", "auto"])
def test_a_session_with_reasons_in_the_first_wording_replays(graph, mode, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(SessionRecord.__init__, "__defaults__", (FIRST_WORDING,))
        earlier.setattr(graph.opened.context(), "wording", FIRST_WORDING)
        answer = graph.ask(QUESTION, mode, history=[])
    recorded = read_session(graph, answer.session)
    assert recorded.wording == FIRST_WORDING
    assert recorded.bundle_reader.read_text(recorded.iri, "wording") == ""
    replay = graph.replay(answer.session)
    assert (replay.is_same, replay.differences) == (True, ())
    later = read_session(graph, graph.ask(QUESTION, mode, history=[]).session)
    assert later.wording == WORDING


def read_session(graph, session):
    summary = graph.sessions.find(session)
    opened = graph.opened
    return read_recorded(opened.read(), opened.librarian, summary.bundle, summary.explain_id)


def test_what_the_model_was_not_asked_is_a_finding(graph, way):
    if way == "embedded":
        pytest.skip("no model is asked")
    answer = graph.ask(QUESTION, "graph", history=[])
    found = replaying(graph, answer.session, lambda calls: [c for c in calls if c.kind != "chat"])
    assert not found.is_same
    assert "No reply to this request of the step" in found.problem


@pytest.mark.slow
def test_any_change_of_a_recorded_reply_changes_the_hash(graph, way):
    answer = graph.ask(QUESTION, "graph", history=[])
    as_recorded = replaying(graph, answer.session, list)
    assert as_recorded.is_same
    count = len(graph.trace(answer.session).calls)
    assert count
    for number in range(count):
        found = replaying(graph, answer.session, lambda calls, n=number: falsified(calls, n))
        assert found.replayed_hash != as_recorded.replayed_hash
        assert not found.is_same


def falsified(calls, number):
    call = calls[number]
    if call.kind == "chat":
        reply = {**call.reply, "text": call.reply["text"] + " "}
    else:
        rows = decode_vectors(call.reply["vectors"], call.reply["dimension"]).copy()
        rows[0, 0] += 1e-6
        reply = {**call.reply, "vectors": encode_vectors(rows)}
    return [*calls[:number], replace(call, reply=reply), *calls[number + 1 :]]


def replaying(graph, session, change):
    """A replay over changed calls."""
    context, store = graph.context(), graph.opened.read()
    summary = graph.sessions.find(session)
    found = read_recorded(store, graph.opened.librarian, summary.bundle, summary.explain_id)
    found = replace(found, calls=RecordedCalls(change(list(found.calls.calls))))
    options = graph.context().generation, graph.opened.parts, graph.settings, graph.opened.librarian
    return SessionReplay(found, context, *options).run()


def test_nothing_of_a_replay_is_recorded(graph):
    answer = graph.ask(QUESTION, "basic", history=[])
    before = graph.sessions.summaries()
    graph.replay(answer.session)
    graph.replay(answer.session, live=True)
    assert graph.sessions.summaries() == before


def test_a_session_replays_with_its_own_parameters(graph, tmp_path):
    limits = {"graph.edge_limit": 2, "graph.max_path_length": 1, "answer.response_type": "a list"}
    chat, embedder = graph.opened.parts.chat, graph.opened.parts.embedder
    parts = Components(load_settings(None, limits), tmp_path, chat=chat, embedder=embedder)
    with tgraph.open(graph.root, settings=limits, parts=parts) as other:
        answer = other.ask(QUESTION, "graph", history=[])
    assert len(answer.selection) <= 2
    assert graph.trace(answer.session).parameters["edge-limit"] == "2"
    assert graph.replay(answer.session).is_same


@pytest.mark.slow
def test_a_question_with_filters_replays(graph):
    for documents in (("curie.md",), ("oslo.txt", "curie.md")):
        filters = Filters(documents=documents)
        answer = graph.ask(QUESTION, "local", history=[], filters=filters)
        found = graph.replay(answer.session)
        assert (found.problem, found.differences[:2]) == ("", ())
        assert found.is_same


def test_proposed_questions_replay(graph):
    assert graph.replay(graph.suggest(2, history=TURNS).session).is_same


def test_a_failed_session_replays_to_its_failure(graph, way, tmp_path):
    if way == "embedded":
        pytest.skip("nothing fails without a model")
    usual = graph.opened.parts
    model = ScriptedModel({"synthesise_answer": EndpointError("The server is on fire.")})
    graph.opened.parts = Components(graph.settings, tmp_path, chat=model, embedder=usual.embedder)
    try:
        with pytest.raises(EndpointError):
            graph.ask(QUESTION, "graph", history=[])
    finally:
        graph.opened.parts = usual
    found = graph.replay("last")
    assert (found.problem, found.is_same) == ("", True)


def test_a_session_whose_calls_are_gone_is_refused(graph, tmp_path):
    answer = graph.ask(QUESTION, "basic", history=[])
    store, summary = graph.opened.read(), graph.sessions.find(answer.session)
    with pytest.raises(UsageError, match="can't be replayed"):
        read_recorded(store, Librarian(tmp_path), summary.bundle, summary.explain_id)


@settings(max_examples=examples(25), deadline=None)
@given(st.data())
def test_settings_come_back_as_they_were_recorded(data):
    mode = data.draw(st.sampled_from([*MODES, "suggest"]))
    words = st.lists(st.text(min_size=1), max_size=3).map(tuple)
    changes = {
        "graph.edge_limit": data.draw(st.integers(1, 99)),
        "graph.max_context_tokens": data.draw(st.integers(2_000, 99_000)),
        "local_search.max_context_tokens": data.draw(st.integers(2_000, 99_000)),
        "local_search.include": data.draw(words),
        "lightrag_search.low_keywords": data.draw(words),
        "answer.response_type": data.draw(st.text()),
        "answer.general_knowledge": data.draw(st.booleans()),
        "chat.temperature": data.draw(st.floats(0, 2)),
    }
    asked_with = load_settings(None, changes)
    turns = data.draw(st.lists(st.builds(Turn, st.text(), st.text()), max_size=3))
    said = record_settings(asked_with, mode, turns)
    written = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in said.items()
    }
    back = restore_settings(load_settings(None), mode, written)
    assert record_settings(back, mode, history_of(written)) == said


def test_sessions_are_compared_in_all_that_people_see(graph):
    one = graph.ask(QUESTION, "graph", history=[])
    same = graph.ask(QUESTION, "graph", history=[])
    other = graph.ask("What did Roald Amundsen reach?", "basic", history=[])
    assert graph.sessions.compare(one.session, same.session).is_same
    found = graph.sessions.compare(one.session, other.session)
    assert not found.is_same
    assert {change.name for change in found.asked} >= {"question", "mode"}
    before, after = graph.trace(one.session), graph.trace(other.session)
    assert {i.item for i in found.selected_removed} == {i.item for i in before.selected}
    assert {i.item for i in found.selected_added} == {i.item for i in after.selected}
    shown = {line[1:] for line in found.answer if line.startswith("+") and line[:3] != "+++"}
    assert shown == {s.text for s in after.sentences} - {s.text for s in before.sentences}
    assert found.citations_added
    back = graph.sessions.compare(other.session, one.session)
    assert back.candidates_added == found.candidates_removed


def test_a_live_replay_shows_what_another_model_says(graph, way, tmp_path):
    if way == "embedded":
        pytest.skip("there is no model to call")
    answer = graph.ask(QUESTION, "graph", history=[])
    usual, model = graph.opened.parts, ScriptedModel({"synthesise_answer": "It is not known."})
    graph.opened.parts = Components(graph.settings, tmp_path, chat=model, embedder=usual.embedder)
    try:
        found = graph.replay(answer.session, live=True)
    finally:
        graph.opened.parts = usual
    assert model.requests
    assert found.trace is not None
    assert found.trace.answer == "It is not known."
    comparison = compare_sessions(graph.trace(answer.session), found.trace)
    assert "+It is not known." in comparison.answer


@pytest.mark.slow
def test_every_mode_replays_alike_after_documents_came_changed_and_went(graph, way, tmp_path):
    modes = [mode for mode in MODES if (mode, way) != ("bypass", "embedded")]
    sessions = {mode: graph.ask(QUESTION, mode, history=[]).session for mode in modes}
    filters = Filters(documents=("curie.md",))
    sessions["local, filtered"] = graph.ask(QUESTION, "local", history=[], filters=filters).session
    other, changed = tmp_path / "letters.txt", graph.root.parent / "oslo.txt"
    other.write_text("Irena Nowak wrote letters to Marie Curie in Warsaw.\n")
    graph.index([other])
    changed.write_text("Roald Amundsen sailed from Oslo to Paris.\n")
    graph.index([changed])
    graph.retract("becquerel.txt", reason="It was forged.")
    calls = len(graph.opened.parts.chat.requests) if way == "model" else 0
    for mode, session in sessions.items():
        found = graph.replay(session)
        assert "the earlier knowledge is rebuilt from the record" in found.notes[0]
        assert (mode, found.problem, found.differences[:3]) == (mode, "", ())
        assert found.is_same
    assert calls == (len(graph.opened.parts.chat.requests) if way == "model" else 0)


def test_without_the_vectors_of_then_recorded_candidates_stand_in(graph, way, monkeypatch):
    if way == "embedded":
        pytest.skip("sentences are ranked by their vectors")
    sessions = {mode: graph.ask(QUESTION, mode, history=[]).session for mode in ("basic", "raptor")}
    other = graph.root.parent / "more.txt"
    other.write_text("Tadeusz Zielinski wrote letters in Warsaw.\n")
    graph.index([other])

    def lost(self, kind):
        raise LostVectorsError("The vectors are on no record.")

    monkeypatch.setattr(PastVectors, "__getitem__", lost)
    stood_in = graph.replay(sessions["basic"])
    assert "The recorded candidates replace the retrieval." in stood_in.notes[-1]
    assert stood_in.is_same
    refused = graph.replay(sessions["raptor"])
    assert "The mode raptor can't retrieve without them." in refused.problem
    assert not refused.is_same


@pytest.mark.slow
@pytest.mark.skipif(not MiniLMEmbedder.is_installed(), reason="needs the extra local")
def test_with_the_embedding_model_of_now_replays_are_alike_after_documents_changed(tmp_path):
    source = EXAMPLES / "antarctica"
    files = [tmp_path / name for name in ("ross-sea-party.txt", "amundsen.md")]
    for file in files:
        file.write_bytes((source / file.name).read_bytes())
    parts = Components(load_settings(None, {}), tmp_path / "cache", embedder=MiniLMEmbedder())
    with tgraph.open(tmp_path / "graph", create=True, parts=parts) as kg:
        kg.index(files)
        question = "What happened to the Aurora in May 1915?"
        modes = ("graph", "basic", "naive", "ppr", "raptor")
        sessions = {mode: kg.ask(question, mode, history=[]).session for mode in modes}
        files[0].write_text(files[0].read_text().replace("1915", "1925"))
        kg.index(files[:1])
        kg.retract("amundsen.md", reason="It was forged.")
        for mode, session in sessions.items():
            found = kg.replay(session)
            assert (mode, found.problem, found.differences[:3]) == (mode, "", ())
            assert found.is_same


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_of_a_text_that_was_embedded_twice_the_later_vector_is_read(names, tmp_path):
    librarian, embedder, store = Librarian(tmp_path), HashingEmbedder(2), OxigraphStore.memory()
    for hour, name in enumerate(names):
        vectors = encode_vectors(np.array([[hour, 0.5]], dtype=np.float32))
        call = {
            "agent": embedder.agent.iri,
            "request": {"input": ["Oslo"]},
            "reply": {"vectors": vectors, "dimension": 2},
        }
        said = {
            v.tg("callKind"): "embedding",
            v.tg("contentHash"): librarian.put_text(json.dumps(call)),
            v.prov("startedAtTime"): f"2026-01-01T0{hour}:00:00+00:00",
        }
        node = NamedNode(f"urn:call:{name}")
        store.fill(Quad(node, p, Literal(text), v.SOURCE_GRAPH) for p, text in said.items())
    known = VectorsOnRecord(embedder.agent, store, librarian, embedder, None)
    assert known.embed(["Oslo"]).tolist() == [[1.0, 0.5]]
