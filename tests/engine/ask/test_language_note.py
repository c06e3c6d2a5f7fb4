"""A question in another language than the documents is told so, where no model reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tgraph
from tgraph.record.session import SessionRecord
from tgraph.retrieve.reasons import THIRD_WORDING

ENGLISH = "The Sorvik bridge was designed by Ingrid Holm. It was opened in 1931."


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory):
    folder: Path = tmp_path_factory.mktemp("languages")
    (folder / "bridge.txt").write_text(ENGLISH, "utf-8")
    with tgraph.open(folder / "graph", create=True) as opened:
        opened.index([folder / "bridge.txt"])
        yield opened


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Wer hat die Brücke von Sorvik entworfen?", ("auf Deutsch", "auf Englisch")),
        ("Qui a conçu le pont qui est à Sorvik ?", ("en français", "en anglais")),
        ("¿Quién diseñó el puente de Sorvik?", ("en español", "en inglés")),
        ("索尔维克大桥是谁设计的？", ("用中文", "英语")),
        ("橋はいつ完成しましたか?", ("in Japanese", "in English")),
        ("Kto zaprojektował ten most?", ("in another language", "in English")),
        ("Кто построил мост?", ("in a language in Cyrillic script", "in English")),
    ],
)
def test_the_note_names_both_languages_and_what_to_do(graph, question, words):
    answer = graph.ask(question, "bm25", history=[])
    assert answer.no_evidence
    note = answer.notes[0].text
    assert all(word in note for word in (*words, "chat.base_url"))
    assert graph.trace(answer.session).notes[0].text == note


@pytest.mark.parametrize("question", ["Who painted the ceiling of the chapel?", "Zzyzx 77?"])
def test_a_question_in_the_documents_language_has_no_such_note(graph, question):
    answer = graph.ask(question, "bm25", history=[])
    assert not any("chat.base_url" in note.text for note in answer.notes)


def test_a_session_from_before_such_notes_replays(graph, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(SessionRecord.__init__, "__defaults__", (THIRD_WORDING - 1,))
        answer = graph.ask("Кто построил мост?", "bm25", history=[])
    assert not any("chat.base_url" in note.text for note in answer.notes)
    assert graph.replay(answer.session).is_same
    later = graph.ask("Кто построил мост?", "bm25", history=[])
    assert graph.replay(later.session).is_same
