"""Questions in a conversation: which of them need what was asked before, and what that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.corpora import opened
from tgraph.model import Turn
from tgraph.retrieve.base import Question, in_conversation
from tgraph.retrieve.text.follow_up import stands_alone

TURNS = (Turn("Who designed the ship Belgica?", "The Belgica was designed by Jacobsen."),)


@pytest.mark.parametrize(
    "text",
    [
        "What are the main themes?",
        "What do these documents say about radium?",
        "What did Scrooge say when he saw Marley?",
        "What did Marley tell Scrooge about his fate?",
        "When the canal opened, who paid for it?",
        "How long did it take to build the canal?",
        "Is there a lighthouse in Ostend?",
        "Is it true that Scrooge hated Christmas?",
        "Wann wurde der Leuchtturm gebaut?",
        "¿Quién construyó el faro?",
        "大运河有多长？",
    ],
)
def test_a_question_that_says_all_that_it_asks_stands_alone(text: str) -> None:
    assert stands_alone(text, TURNS)
    assert in_conversation(Question(text, TURNS, stands_alone=True)) == text


@pytest.mark.parametrize(
    "text",
    [
        "And who paid for it?",
        "Who paid for the repairs to it?",
        "How did Marley warn him?",
        "Who designed the ship?",
        "Who was the captain?",
        "What else did Scrooge do?",
        "Which one is older?",
        "What about the crew?",
        "Why?",
        "Tell me more.",
        "Wer bezahlte sie?",
        "Et qui l’a payé ?",
        "¿Y cuándo murió?",
        "它有多长？",
        "Kto zbudował latarnię?",
    ],
)
def test_a_question_that_leans_on_others_needs_them(text: str) -> None:
    assert not stands_alone(text, TURNS)


def test_it_is_on_record_and_replayed(tmp_path: Path) -> None:
    """A question that stands alone retrieves what it retrieves without a conversation."""
    (tmp_path / "mill.txt").write_text("Anna Reiss owned the Brook Mill. Karl Weber bought it.")
    (tmp_path / "inn.txt").write_text("Maria Huber cooked at the Golden Inn in Linz.")
    with opened(tmp_path, create=True) as kg:
        kg.index([tmp_path / "mill.txt", tmp_path / "inn.txt"])
        before = [Turn("Who cooked at the Golden Inn?", "Maria Huber.")]
        alone = kg.ask("Who owned the Brook Mill?", "basic", history=[])
        after = kg.ask("Who owned the Brook Mill?", "basic", history=before)
        leaning = kg.ask("And who bought it?", "basic", history=before)
        told = [kg.trace(each.session).parameters for each in (alone, after, leaning)]
        assert ["stands-alone" in each for each in told] == [False, True, False]
        assert [s.score for s in after.selection] == [s.score for s in alone.selection]
        assert all(kg.replay(each.session).is_same for each in (alone, after, leaning))
