"""What a model knows itself: only where it is asked for, marked, and never as if it were proven."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import tgraph
from tests.support.corpora import write
from tgraph import vocabulary as v
from tgraph.answer.base import Notes
from tgraph.answer.model import UNASKED, UNMARKED, VERIFY, ModelSynthesiser
from tgraph.cli.main import cli
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.shacl import check_shapes
from tgraph.model import Selection
from tgraph.models.base import no_sink
from tgraph.retrieve.base import Question
from tgraph.testing import Fault, ScriptedModel, ScriptedServer
from tgraph.testing.script import parse_blocks

TEXT = """# Marie Curie

Marie Curie discovered Polonium in Paris. Pierre Curie worked with Marie Curie at the Sorbonne.
Henri Becquerel shared the Nobel Prize with Marie Curie.
"""
QUESTION = "What did Marie Curie discover?"
CATALOGUE = v.collection_iri("explainability")
MODES = ("local", "global", "drift", "basic", "graph")
KEPT = "sentence from general knowledge, to be verified"
OWN = {"sentence": "Polonium decays.", "general_knowledge": True}


@contextmanager
def opened(root: Path, server: ScriptedServer, *, allowed: bool) -> Iterator[KnowledgeGraph]:
    values = {
        "chat.base_url": server.base_url,
        "chat.api_key": "k",
        "chat.model": "scripted",
        "chat.concurrency": 1,
        "embedding.provider": "hashing",
        "extract.gleanings": 0,
        "answer.general_knowledge": allowed,
    }
    with tgraph.open(root / "graph", create=True, settings=values) as kg:
        yield kg


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("general")
    with ScriptedServer() as server, opened(folder, server, allowed=False) as kg:
        kg.index(write(folder, {"curie.md": TEXT}))
    return folder


def written(*rows: Any) -> str:
    return "\n".join(json.dumps(row) for row in rows)


def proven_and_own(request: Any) -> str:
    """A sentence that cites what it was shown, and one that the model knows itself."""
    (first, *_) = parse_blocks(request.body["messages"])["EVIDENCE"].splitlines()
    return written({"sentence": "She did.", "citations": [json.loads(first)["id"]]}, OWN)


# --- over HTTP ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_the_model_adds_is_marked_and_cites_nothing(root):
    with ScriptedServer() as server, opened(root, server, allowed=True) as kg:
        for mode in MODES:
            answer = kg.ask(QUESTION, mode, history=[])
            trace = kg.trace(answer.session)
            assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
            *proven, last = answer.sentences
            assert proven
            assert all(s.citations and VERIFY not in s.text for s in proven)
            assert (last.text, last.citations) == (f"I believe so. {VERIFY}", ())
            assert answer.dropped[KEPT] == trace.dropped[KEPT] == 1
            assert (trace.sentences[-1].text, trace.sentences[-1].citations) == (last.text, ())
            assert trace.answer.endswith(VERIFY)
        assert kg.replay(answer.session).is_same


@pytest.mark.slow
def test_what_was_not_asked_for_is_dropped_and_counted(root):
    with (
        ScriptedServer({"synthesise_answer": proven_and_own}) as server,
        opened(root, server, allowed=False) as kg,
    ):
        for mode in MODES:
            answer = kg.ask(QUESTION, mode, history=[])
            assert answer.text == kg.trace(answer.session).answer == "She did."
            assert answer.dropped[UNASKED] == kg.trace(answer.session).dropped[UNASKED] == 1
            assert "general_knowledge" not in json.dumps(server.requests[-1].body["messages"])


STEPS = ("map_points", "select_edges", "drift_primer", "drift_action")
FAULTS = [Fault("unknown_ids", step) for step in STEPS]
"""So that global and DRIFT search have no point, and the mode graph no edge."""


@pytest.mark.slow
def test_where_nothing_was_selected_the_model_is_asked_what_it_knows(root):
    replies = {"synthesise_answer": written(OWN, {"sentence": "It is sure.", "citations": ["x"]})}
    with (
        ScriptedServer(replies, faults=FAULTS) as server,
        opened(root, server, allowed=True) as kg,
    ):
        for mode in ("global", "drift", "graph"):
            answer = kg.ask(QUESTION, mode, history=[])
            trace = kg.trace(answer.session)
            assert not check_shapes(kg.opened.read(), CATALOGUE, answer.session)
            assert server.requests[-1].step == "synthesise_answer"
            assert parse_blocks(server.requests[-1].body["messages"])["EVIDENCE"] == ""
            assert not answer.selection
            assert answer.text == trace.answer == f"Polonium decays. {VERIFY}"
            assert (answer.no_evidence, trace.status) == (False, "completed")
            assert trace.dropped[UNMARKED] == trace.dropped[KEPT] == 1


def test_without_the_switch_it_is_not_asked_at_all(root):
    with ScriptedServer(faults=FAULTS) as server, opened(root, server, allowed=False) as kg:
        for mode in ("global", "drift", "graph"):
            assert kg.ask(QUESTION, mode, history=[]).no_evidence
        assert server.count("synthesise_answer") == 0


def test_the_command_says_it_and_the_trace_too(root, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with ScriptedServer(faults=FAULTS) as server:
        options = ["--base-url", server.base_url, "--embedding-provider", "hashing"]
        place = ["-r", str(root / "graph")]
        asked = ["ask", *place, "-m", "global", "-q", QUESTION, "--general-knowledge", *options]
        result = CliRunner().invoke(cli, asked)
        shown = CliRunner().invoke(cli, ["trace", *place, "last"])
    assert result.exit_code == 0, result.output
    assert f"I believe so. {VERIFY}" in result.stdout
    assert f"I believe so. {VERIFY} [no citation]" in " ".join(shown.stdout.split())


# --- what is read -------------------------------------------------------------------------------


def nothing_selected(reply: str, *, allowed: bool = True) -> tuple[list[str], dict[str, int], int]:
    model, notes = ScriptedModel({"synthesise_answer": reply}), Notes()
    writer = ModelSynthesiser(model, general_knowledge=allowed)
    drafts = list(writer.synthesise(Question(QUESTION), Selection(()), notes, no_sink))
    assert not any(draft.selections for draft in drafts)
    return [draft.text for draft in drafts], notes.dropped, len(model.requests)


def test_the_mark_stands_once_however_the_model_writes_it():
    rows = [
        {"sentence": "A [LLM: verify]."},
        {"sentence": "B. [LLM: verify]", "general_knowledge": True},
        {"sentence": "C.", "general_knowledge": True, "start": "paragraph"},
        {"sentence": "[LLM: verify]", "general_knowledge": True},
    ]
    said, dropped, _ = nothing_selected(written(*rows))
    assert said == [f"{letter}. {VERIFY}" for letter in "ABC"]
    assert dropped == {KEPT: 3, "malformed row": 1}


def test_in_prose_a_mark_counts_for_the_sentence_before_it():
    said, dropped, _ = nothing_selected(f"It is so. It decays. {VERIFY} It is old {VERIFY}. Yes.")
    assert said == [f"It decays. {VERIFY}", f"It is old {VERIFY}"]
    assert dropped == {"reply in prose instead of rows": 1, UNMARKED: 2, KEPT: 2}


def test_a_model_that_knows_nothing_either_gives_no_answer():
    assert nothing_selected('{"no_evidence": true}') == ([], {}, 1)
    assert nothing_selected(written(OWN), allowed=False) == ([], {}, 0)


@pytest.mark.slow
@given(st.text(max_size=60), st.booleans(), st.lists(st.text(max_size=9), max_size=2))
def test_nothing_unmarked_comes_where_nothing_was_selected(text, own, cited):
    row = {"sentence": text, "general_knowledge": own, "citations": cited}
    said, _, _ = nothing_selected(written(row))
    assert all(sentence.endswith(VERIFY) and sentence != VERIFY for sentence in said)
    assert bool(said) == (bool(text.split()) and (own or VERIFY in text))
