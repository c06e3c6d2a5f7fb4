"""Questions that ask each document: one document a line, the silent ones in a note, on record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import opened, write
from tgraph.model import Answer
from tgraph.record.session import SessionRecord
from tgraph.retrieve.reasons import THIRD_WORDING
from tgraph.retrieve.text.document_questions import subject_for_documents

TEXTS = {
    "oslo.md": "# Oslo\n\nOslo is a town of ships. Two rivers cross Oslo, and:\n\nRivers freeze.\n",
    "bergen.md": "# Bergen\n\nNo part of Bergen lies far from the River Nid. It rains a lot.\n",
    "vik.md": "# Vik\n\n## Rivers of Vik\n\nVik is a village. The mill of Vik was built in 1820.\n",
    "narvik.md": "# Narvik\n\nNarvik has a port. Ore leaves Narvik by sea.\n",
}
QUESTION = "What does each document say about rivers?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("documents")
    with opened(root, create=True) as graph:
        assert not graph.index(write(root, TEXTS)).failed
    return root


def ask(home: Path, question: str) -> Answer:
    with opened(home) as graph:
        return graph.ask(question, history=())


def test_each_document_is_told_in_a_line_with_its_citation(home):
    answer = ask(home, QUESTION)
    lines = answer.text.split("\n")
    assert len(lines) == len(answer.sentences) == 3
    assert "- Oslo: Two rivers cross Oslo, and:" not in lines
    assert "- Bergen: No part of Bergen lies far from the River Nid." in lines
    for sentence, line in zip(answer.sentences, lines, strict=True):
        [cited] = {(c.title, c.path, c.start, c.end, c.quote) for c in sentence.citations}
        title, path, start, end, quote = cited
        assert line == f"- {title}: {sentence.text}"
        text = Path(path).read_text()
        assert text[start:end] == quote


def test_documents_that_do_not_mention_it_are_counted(home):
    assert [note.text for note in ask(home, QUESTION).notes] == [
        "1 of 4 documents does not mention “rivers”: Narvik."
    ]
    answer = ask(home, "Which documents mention volcanoes, and what do they say?")
    assert answer.no_evidence
    assert [note.text for note in answer.notes] == ["No document mentions “volcanoes”."]


def test_the_way_is_on_record_and_replays(home):
    with opened(home) as graph:
        answer = graph.ask(QUESTION, history=())
        trace = graph.trace(answer.session)
        assert "asks what each document says on rivers" in trace.choice_text
        assert next(step.question for step in trace.step_answers).startswith("What does “")
        assert graph.verify(answer.session).is_supported
        why_not = graph.why_not(answer.session, "Ore leaves Narvik by sea.")
        assert "no sentence of its document mentions “rivers”" in why_not.reason
        assert graph.replay(answer.session).is_same


def test_a_session_of_an_earlier_wording_replays_as_it_was(home, monkeypatch):
    with opened(home) as graph:
        with monkeypatch.context() as earlier:
            earlier.setattr(SessionRecord.__init__, "__defaults__", (THIRD_WORDING - 1,))
            earlier.setattr(graph.opened.context(), "wording", THIRD_WORDING - 1)
            answer = graph.ask(QUESTION, "graph", history=())
        assert "\n- " not in answer.text
        assert graph.replay(answer.session).is_same


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What do all documents say on environment variables?", "environment variables"),
        ("What do the reports each say about the tide?", "the tide"),
        ("Which documents mention systemd, and what do they say?", "systemd"),
        ("Which books speak of Amundsen and what do they say about him?", "Amundsen"),
        ("Please list all documents that mention the Fram.", "the Fram"),
        ("Tell me what every report says on the budget, please", "the budget"),
        ("What is said about the climate in each article?", "the climate"),
        ("What do the documents say about rivers?", ""),
        ("What do all documents say?", ""),
        ("What does each document say about it?", ""),
        ("Which notes mention who built the Fram?", ""),
        ("What books did Amundsen write?", ""),
        ("Which ship carried all documents?", ""),
    ],
)
def test_the_subject_of_such_a_question(question, subject):
    assert subject_for_documents(question) == subject
