"""The prompts of a session: by step, with their texts, and what becomes of them in a report."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

import tgraph
from tgraph.engine.components import Components
from tgraph.explain.render.shown_session import MOST_ASKED, MOST_OF_ALL, shown_calls, shown_prompts
from tgraph.explain.trace.recorded_session import read_request
from tgraph.resources import read_text
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

EVIL = "</pre><script>alert(1)</script>"
TEXT = f"Marie Curie discovered Polonium in Paris. Pierre Curie met {EVIL} in Paris.\n"
QUESTION = f"What did Marie Curie discover? {EVIL}"


@pytest.fixture
def graph(tmp_path: Path):
    (tmp_path / "curie.md").write_text(TEXT)
    chat, embedder = ScriptedModel(), HashingEmbedder()
    parts = Components(load_settings(None), tmp_path / "cache", chat=chat, embedder=embedder)
    with tgraph.open(tmp_path / "graph", create=True, parts=parts) as kg:
        kg.index([tmp_path / "curie.md"])
        yield kg


def test_steps_have_the_prompts_and_tokens_of_their_calls(graph):
    answer = graph.ask(QUESTION, history=[])
    trace = graph.trace()
    by_label = {step.label: step for step in trace.steps}
    assert by_label["Edge selecting"].prompts == ("select_edges",)
    assert by_label["Synthesising"].prompts == ("synthesise_answer",)
    assert sum(step.input_tokens for step in trace.steps) == answer.usage.input_tokens
    assert sum(step.output_tokens for step in trace.steps) == answer.usage.output_tokens
    assert {call.prompt for call in trace.calls} - {""} == {p.name for p in trace.prompts}
    for prompt in trace.prompts:
        assert prompt.text == read_text("prompts", f"{prompt.name}.md")
        assert prompt.hash == sha256(prompt.text.encode()).hexdigest()
    page = graph.export(format="html").decode()
    assert EVIL not in page
    assert all(prompt.text in unescape(page) for prompt in trace.prompts)
    assert "What the model was asked" in page
    assert unescape(page).count(QUESTION) > 2, "the calls show what was filled in"

    graph.purge("curie.md", reason="A request.")
    after = graph.trace()
    assert [call.prompt for call in after.calls] == [call.prompt for call in trace.calls]
    texts = graph.opened.librarian.get_text
    states = {read_request(graph.opened.read(), texts, c)[1] for c in after.calls if c.prompt}
    assert "erased" in states
    assert "The text was erased" in graph.export(format="html").decode()
    assert "Polonium" not in graph.export(format="html").decode()


def test_a_report_has_room_for_so_much(graph):
    graph.ask(QUESTION, history=[])
    trace = graph.trace()
    call = next(call for call in trace.calls if call.prompt)
    long = "".join(f"{n:07d}," for n in range(10_000))
    (shown,) = shown_calls(replace(trace, calls=(call,)), lambda _: (long, "kept"))
    assert shown.asked is not None
    assert len(shown.asked.before) + len(shown.asked.after) == MOST_ASKED
    assert long.startswith(shown.asked.before)
    assert long.endswith(shown.asked.after)
    assert shown.asked.left_out == len(long) - MOST_ASKED
    many = shown_calls(replace(trace, calls=(call,) * 99), lambda _: (long, "kept"))
    parts = [one.asked for one in many if one.asked]
    assert sum(len(part.before) + len(part.after) for part in parts) == MOST_OF_ALL
    assert all(part.left_out for part in parts)
    (gone,) = shown_calls(replace(trace, calls=(call,)), lambda _: ("", "missing"))
    assert gone.asked is not None
    assert "does not have the text" in gone.asked.gone
    missing = replace(trace.prompts[0], text="", state="missing")
    (prompt,) = shown_prompts(replace(trace, prompts=(missing,)))
    assert "does not have the text" in prompt.text.gone
