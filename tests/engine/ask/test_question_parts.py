"""Comparisons and questions that ask several things: each side or part is asked by itself, decided
or named where nothing answers it, and on record."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tests.engine.ask.test_modes import CATALOGUE
from tests.support.corpora import opened, write
from tests.support.small_reader import NONE, small_reader
from tgraph.engine.components import Components
from tgraph.explain.audit.shacl import check_shapes
from tgraph.models.reader import OnnxReader
from tgraph.retrieve.text.coordination import split_apart
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder, ScriptedModel

TEXTS = {
    "alba.md": "# Alba\n\nAlba was released in Oslo in 1931. Ada Kern directed Alba.\n",
    "nora.md": "# Nora\n\nNora was released in Bergen in 1945. Olaf Brun directed Nora.\n",
    "kern.md": "# Ada Kern\n\nAda Kern was born in Norway on 12 May 1890. Ada Kern liked cats.\n",
    "brun.md": "# Olaf Brun\n\nOlaf Brun was born in Sweden on 3 June 1901. He painted boats.\n",
    "acme.md": "# Acme\n\nAcme Corp has 1,200 employees. Acme Corp opened in Bergen in 1911.\n",
    "zenith.md": "# Zenith\n\nZenith Ltd has 300 employees. Zenith Ltd makes clocks.\n",
    "lille.md": "# Lille Bridge\n\nThe Lille Bridge is 120 metres long and 8 metres wide.\n",
    "store.md": "# Store Bridge\n\nThe Store Bridge is 0.5 kilometres long.\n",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("parts")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


@pytest.mark.parametrize(
    ("question", "short"),
    [
        ("Which film was released first, Alba or Nora?", "Alba – 1931 before 1945"),
        ("Which film was released later, Alba or Nora?", "Nora – 1945 after 1931"),
        ("Was Alba released before Nora?", "Yes – 1931 before 1945"),
        ("Who is older, Olaf Brun or Ada Kern?", "Ada Kern – 12 May 1890 before 3 June 1901"),
        ("Were Ada Kern and Olaf Brun born in the same country?", "No – Norway and Sweden"),
        ("Were Alba and Nora released in different cities?", "Yes – Oslo and Bergen"),
        ("Were Alba and Nora released in the same city?", "No – Oslo and Bergen"),
        (
            "Did Acme Corp or Zenith Ltd have more employees?",
            "Acme Corp – 1,200 employees more than 300 employees",
        ),
        (
            "Is the Lille Bridge longer than the Store Bridge?",
            "No – 120 metres less than 0.5 kilometres",
        ),
    ],
)
def test_a_comparison_is_decided_and_both_sides_are_cited(home, question, short):
    with opened(home) as graph:
        answer = graph.ask(question, history=[])
        trace = graph.trace(answer.session)
    assert answer.short == short
    assert len(answer.sentences) == 2
    assert len({c.document for s in answer.sentences for c in s.citations}) == 2
    assert trace.short == short
    assert answer.confidence is None


@pytest.mark.slow
def test_both_sides_and_the_decision_are_steps_on_record(home):
    with opened(home) as graph:
        answer = graph.ask("Which film was released later, Alba or Nora?", history=[])
        trace = graph.trace(answer.session)
        assert [(step.question, step.answer) for step in trace.step_answers] == [
            ("When was Alba released?", "1931"),
            ("When was Nora released?", "1945"),
            ("Which film was released later, Alba or Nora?", "Nora – 1945 after 1931"),
        ]
        assert answer.sentences[0].text.startswith("Nora")
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        assert graph.replay(answer.session).is_same


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "graph", "basic", "bm25", "lightrag-mix"])
def test_every_mode_without_a_model_decides(home, mode):
    with opened(home) as graph:
        answer = graph.ask("Was Alba released before Nora?", mode, history=[])
        assert answer.short == "Yes – 1931 before 1945"
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        assert graph.replay(answer.session).is_same


@pytest.mark.slow
def test_a_side_without_a_value_is_named_and_nothing_is_decided(home):
    with opened(home) as graph:
        answer = graph.ask("Which opened first, Acme Corp or Zenith Ltd?", history=[])
        assert answer.no_evidence
        assert not answer.short
        assert "Nothing found on: when Zenith Ltd opened." in [n.text for n in answer.notes]
        assert any("1911" in note.text for note in answer.notes)
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        assert graph.replay(answer.session).is_same


def test_each_part_of_a_question_is_answered(home):
    with opened(home) as graph:
        answer = graph.ask("When was Alba released and who directed it?", history=[])
        told = " ".join(sentence.text for sentence in answer.sentences)
        steps = graph.trace(answer.session).step_answers
    assert "1931" in told
    assert "Ada Kern directed" in told
    assert [s.question for s in steps] == ["When was Alba released?", "Who directed Alba?"]
    assert not [note for note in answer.notes if "Nothing found" in note.text]


PARTS = "When was Alba released and how did it earn money?"
SCORES = {NONE: 0.0, "1931": 9.0, "Kern": 9.0}


def read(home, scores, question, **settings):
    reader = OnnxReader.of_folder(small_reader(home / f"reader-{len(scores)}", scores))
    values = {"answer.least_confidence": 0.55, **settings}
    parts = Components(
        load_settings(None, values),
        home / "cache",
        embedder=HashingEmbedder(),
        reader=reader,
    )
    with tgraph.open(home / "graph", settings=values, parts=parts) as graph:
        answer = graph.ask(question, "graph", history=())
        assert graph.replay(answer.session).is_same
        assert not check_shapes(graph.opened.read(), CATALOGUE, answer.session)
        return answer, graph.trace(answer.session)


@pytest.mark.slow
def test_a_part_that_the_reader_finds_no_answer_to_is_named(home):
    answer, trace = read(home, {NONE: 9.0, "1931": 9.0}, PARTS)
    assert answer.sentences[0].text == "Alba was released in Oslo in 1931."
    assert [note.text for note in answer.notes] == ["Nothing found on: how did it earn money."]
    assert answer.short == "1931"
    assert [step.answer for step in trace.step_answers] == ["1931", ""]


@pytest.mark.slow
def test_where_no_part_has_an_answer_all_are_named(home):
    answer, _ = read(home, {NONE: 9.0, "1931": 8.0}, PARTS, **{"answer.least_confidence": 1.0})
    assert answer.no_evidence
    told = [note.text for note in answer.notes]
    assert told[:2] == [
        "Nothing found on: when was Alba released.",
        "Nothing found on: how did it earn money.",
    ]
    assert told[2].startswith("The nearest passage: ")


READ = {NONE: 0.0, "1931": 9.0, "1945": 9.0}


def product_of(home, *questions):
    """That both are answered, each asked by itself."""
    one, other = (read(home, READ, question)[0].confidence for question in questions)
    assert one is not None
    assert other is not None
    return pytest.approx(one * other, abs=1e-6)


@pytest.mark.slow
def test_a_comparison_that_is_read_is_as_sure_as_both_sides_are(home):
    answer, trace = read(home, READ, "Which film was released first, Alba or Nora?")
    assert answer.short == "Alba – 1931 before 1945"
    assert trace.confidence == answer.confidence
    assert answer.confidence == product_of(
        home, "When was Alba released?", "When was Nora released?"
    )


@pytest.mark.slow
def test_questions_asked_at_once_are_as_sure_as_all_of_them_are(home):
    answer, _ = read(home, READ, "When was Alba released and when was Nora released?")
    assert answer.short == "1931; 1945"
    assert answer.confidence == product_of(
        home, "When was Alba released?", "When was Nora released?"
    )


def test_with_a_model_the_model_reads_what_is_retrieved(home):
    with opened(home, ScriptedModel()) as graph:
        answer = graph.ask("Was Alba released before Nora?", "ppr", history=[])
        assert not graph.trace(answer.session).step_answers


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("When were the Fram and the Nimrod built?", ["the Fram", "the Nimrod"]),
        ("What is the climate of Paris and of Oslo like?", ["of Paris", "of Oslo"]),
        ("Where was Amundsen born? And where did he die?", ["born", "did Amundsen die"]),
        ("When did Amundsen and Scott meet?", []),
        ("What is the distance between Paris and Oslo?", []),
        ("I like ships. Where was the Fram built?", []),
    ],
)
def test_what_is_asked_of_two_names_or_in_two_sentences_is_split(question, parts):
    split = split_apart(question).parts
    assert len(split) == len(parts)
    assert all(part in step.text for part, step in zip(parts, split, strict=True))


def test_each_of_two_names_is_answered_or_named_as_missing(home):
    with opened(home) as graph:
        answer = graph.ask("When were Ada Kern and Olaf Brun born?", history=[])
        quoted = {cited.title for s in answer.sentences for cited in s.citations}
        assert {"Ada Kern", "Olaf Brun"} <= quoted
        assert graph.replay(answer.session).is_same
        half = graph.ask("When were Ada Kern and Nils Dahl born?", history=[])
        assert "Nothing found on: when was Nils Dahl born." in [n.text for n in half.notes]


def test_a_sentence_of_two_documents_is_quoted_once_and_cites_both(tmp_path):
    said = "Ada Kern directed Alba and was born in Norway.\n"
    texts = {"a.md": f"# Films\n\n{said}", "b.md": f"# Directors\n\n{said}"}
    with opened(tmp_path / "g", create=True) as graph:
        graph.index(write(tmp_path, texts))
        answer = graph.ask("Who directed Alba, and where was Ada Kern born?")
    assert answer.text.count(said.strip()) == 1
    assert {source.title for source in answer.sources} == {"Films", "Directors"}
