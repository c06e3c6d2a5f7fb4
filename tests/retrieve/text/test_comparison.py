"""Comparisons: what is asked of each side, and which value decides."""

from __future__ import annotations

import pytest

from tgraph.retrieve.text.comparison import comparison_of
from tgraph.retrieve.text.question_form import form_of


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        (
            "Which film was released first, Alba or Nora?",
            "When was Alba released?",
            "When was Nora released?",
        ),
        (
            "Who is older, Ada Kern or Olaf Brun?",
            "When was Ada Kern born?",
            "When was Olaf Brun born?",
        ),
        (
            "Which party reached the coast first, Kern's or Brun's?",
            "When did Kern reach the coast?",
            "When did Brun reach the coast?",
        ),
        (
            "Which did Ada Kern visit first, Rome or Oslo?",
            "When did Ada Kern visit Rome?",
            "When did Ada Kern visit Oslo?",
        ),
        (
            "Between Oslo and Bergen, which was founded earlier?",
            "When was Oslo founded?",
            "When was Bergen founded?",
        ),
        (
            "Which of Oslo and Bergen was founded earlier?",
            "When was Oslo founded?",
            "When was Bergen founded?",
        ),
        (
            "Which of the two films, Alba or Nora, was released last?",
            "When was Alba released?",
            "When was Nora released?",
        ),
        (
            "Did Acme Corp or Zenith Ltd have more employees?",
            "How many employees did Acme Corp have?",
            "How many employees did Zenith Ltd have?",
        ),
        (
            "Does Oslo have a larger population than Bergen?",
            "What is the population of Oslo?",
            "What is the population of Bergen?",
        ),
        (
            "Is the Lille Bridge longer than the Store Bridge?",
            "How long is the Lille Bridge?",
            "How long is the Store Bridge?",
        ),
        (
            "Was Alba released before Nora?",
            "When was Alba released?",
            "When was Nora released?",
        ),
        (
            "Are Ada Kern and Olaf Brun both from the same country?",
            "From which country is Ada Kern?",
            "From which country is Olaf Brun?",
        ),
        (
            "Do Alba and Nora have the same director?",
            "Who is the director of Alba?",
            "Who is the director of Nora?",
        ),
    ],
)
def test_each_side_is_a_question(question, one, other):
    found = comparison_of(question)
    assert found is not None
    assert [step.text for step in found.steps] == [one, other]
    told = form_of(question, [])
    assert told.form == "compared"
    assert " and ".join(found.sides) in told.reason


@pytest.mark.parametrize(
    "question",
    [
        "Which is better, Oslo or Bergen?",
        "Is Oslo the capital of Norway or Sweden?",
        "Was Alba released before 1950?",
        "Was Ada Kern born before the war?",
        "Were Ada Kern and Olaf Brun friends?",
        "Is it better than Oslo?",
        "Who led the party or sailed the Fram?",
        "What is more important than money?",
        "Who directed Alba?",
        "¿Quién es mayor, Ada o Olaf?",
        "",
    ],
)
def test_what_compares_nothing_that_can_be_decided(question):
    assert comparison_of(question) is None


@pytest.mark.parametrize(
    ("question", "kind", "least"),
    [
        ("Who died first, Ada Kern or Olaf Brun?", "time", True),
        ("Who is younger, Ada Kern or Olaf Brun?", "time", False),
        ("Who had fewer dogs, Ada Kern or Olaf Brun?", "count", True),
        ("Which city is more populous, Oslo or Bergen?", "count", False),
        ("Which is shorter, the Lille Bridge or the Store Bridge?", "measure", True),
    ],
)
def test_which_value_is_asked_for(question, kind, least):
    found = comparison_of(question)
    assert found is not None
    assert (found.kind, found.least) == (kind, least)
