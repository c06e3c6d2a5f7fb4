"""What kind of answer a question asks for, and whether a sentence holds one."""

from __future__ import annotations

import pytest

from tgraph.retrieve.text.answer_type import (
    NamedAnswer,
    expected_answer_type,
    kind_of_phrase,
    rate_kind_fit,
)
from tgraph.retrieve.text.lexical import terms


def named(label: str, kind: str) -> NamedAnswer:
    return NamedAnswer(f"urn:{label}", label, frozenset(terms(label)), kind)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did the ship sink?", "time"),
        ("In what year was she built?", "time"),
        ("How many dogs were there?", "number"),
        ("How much money did he give?", "money"),
        ("What latitude was reached?", "angle"),
        ("How far did they walk?", "length"),
        ("How long were they away?", "duration"),
        ("How old was the captain?", "age"),
        ("Who was the captain?", "person"),
        ("Which professor helped them?", "person"),
        ("Which three men climbed it?", "person"),
        ("Which later expedition leader had been there?", "person"),
        ("Where was he born?", "place"),
        ("What city was the band formed in?", "place"),
        ("Why did he turn back?", "reason"),
        ("Which ship was first?", "ship"),
        ("Which was first?", "name"),
        ("What became of the officer who fell?", "fate"),
        ("What happened to the officer?", "fate"),
        ("What is the name of Ada's nephew?", "person"),
        ("How did they escape?", ""),
        ("Il pleut.", ""),
    ],
)
def test_the_question_word_and_its_noun_tell_the_kind(question, kind):
    assert expected_answer_type(question).kind == kind


@pytest.mark.parametrize(
    ("question", "quote", "holds"),
    [
        ("When did she sink?", "She sank on 21 November.", True),
        ("When did she sink?", "She sank slowly.", False),
        ("How many dogs had he?", "He had fifty dogs.", True),
        ("How many dogs had he?", "He had dogs.", False),
        ("How much did it cost?", "The price was £11,000.", True),
        ("How much did it cost?", "In 1907 it was bought.", False),
        ("What latitude was reached?", "They halted at 80 degrees south.", True),
        ("What latitude was reached?", "They halted after 80 days.", False),
        ("What became of her?", "She was wrecked.", True),
        ("What became of her?", "She was built of oak.", False),
        ("Who led Ada's party?", "It was led by Berta.", True),
        ("Who led Ada's party?", "Ada's party was led well.", False),
    ],
)
def test_an_answer_is_of_the_kind_asked_for(question, quote, holds):
    people = [named(word, "person") for word in ("Ada", "Berta") if word in quote]
    held = expected_answer_type(question).held_by(quote, people, set(terms(question)))
    assert (held > 0.5) is holds


def test_the_kind_of_what_is_named_matters():
    sought = expected_answer_type("Where did she go?")
    there = sought.held_by("She went to Riga.", [named("Riga", "place")], {"go"})
    with_whom = sought.held_by("She went to Riga.", [named("Riga", "person")], {"go"})
    assert there > with_whom


def test_as_many_as_are_asked_for():
    sought = expected_answer_type("Which two men went?")
    both = [named("Ada", "person"), named("Berta", "person")]
    assert sought.held_by("Ada and Berta went.", both, {"go"}) == 1.0
    assert sought.held_by("Ada went.", both[:1], {"go"}) < 0.5


def test_a_name_that_is_given_answers_what_something_is_called():
    sought = expected_answer_type("What is the house called?")
    hut = [named("Camp Ridley", "thing")]
    assert sought.held_by("The house was named Camp Ridley.", hut, {"hous"}) == 1.0
    assert sought.held_by("The house stood near Camp Ridley.", hut, {"hous"}) < 1.0


def test_things_fit_descriptions_of_their_kind():
    assert rate_kind_fit("young officer", "person") > rate_kind_fit("young officer", "place")
    assert rate_kind_fit("whatsit", "person") == rate_kind_fit("whatsit", "place")
    assert kind_of_phrase("the larger ship") == "ship"
    assert kind_of_phrase("city of birth") == "place"


@pytest.mark.parametrize(
    ("question", "answer", "fits"),
    [
        ("Who built the Fram?", "Colin Archer", True),
        ("Who built the Fram?", "the Fram", False),
        ("Whom did Nansen marry?", "a countrywoman", False),
        ("What was the house called?", "Framheim", True),
        ("What was the name of his wife?", "wiser", False),
        ("How many dogs did they take?", "fifty-two", True),
        ("How many dogs did they take?", "the dogs", False),
        ("How many dogs were left of the 52?", "of the 52", False),
        ("When did he die?", "in December 1912", True),
        ("When did he die?", "on the ice", False),
        ("How far did they walk?", "180 kilometres", True),
        ("How many cabins were there?", "£159 million", False),
        ("How many holidays must they have?", "four weeks", False),
        ("How many rubles did he get?", "ten or twelve men", False),
        ("How many years old was the bear?", "nearly thirty", True),
        ("How many soldiers were lost?", "3.7 million", True),
        ("What was the duty of the engine?", "how much more it did", False),
        ("What does the page explain?", "how much it costs", True),
        ("What did they eat?", "penguin", True),
        ("What did they eat?", "they", False),
    ],
)
def test_a_short_answer_fits_what_is_asked_for(question, answer, fits):
    expected = expected_answer_type(question)
    assert expected.fits_answer(answer, frozenset(terms(question))) is fits


def test_an_hour_is_no_number_of_things():
    attended = expected_answer_type("How many people attended the dinner?")
    assert not attended.fits_answer("seven", (), "Dinner is served at seven.")
    assert attended.fits_answer("seven", (), "Dinner was laid at seven tables.")
    assert attended.fits_answer("seven", (), "The guests at dinner were seven.")


@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Who is the treasurer?", "treasur"),
        ("Who was the deputy of the Compliance Officer?", "deputy"),
        ("Who was the first chief engineer of the line?", "engin"),
        ("Who led the party of the south?", ""),
        ("When was the treasurer chosen?", ""),
    ],
)
def test_the_office_whose_holder_is_asked_for(question, role):
    assert expected_answer_type(question).role == role
