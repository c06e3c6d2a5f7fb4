"""Values that are compared: how they are read of sentences, and what they decide."""

from __future__ import annotations

import pytest

from tgraph.answer.compared_values import bare_value, decide_comparison, value_in
from tgraph.retrieve.text.comparison import comparison_of

OLDER = "Who is older, Ada Kern or Olaf Brun?"
DIED = "Who died first, Ada Kern or Olaf Brun?"
LONGER = "Which is longer, the Lille Bridge or the Store Bridge?"
DOGS = "Who had more dogs, Ada Kern or Olaf Brun?"
COUNTRY = "Are Ada Kern and Olaf Brun from the same country?"
YEAR = "Were Alba and Nora released in the same year?"
ELSEWHERE = "Are Ada Kern and Olaf Brun from different countries?"
DEARER = "Which is more expensive, Alba or Nora?"


def compared(question):
    found = comparison_of(question)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("question", "text", "value"),
    [
        (OLDER, "She was born on 12 May 1890 and died in 1945.", "12 May 1890"),
        (DIED, "She was born on 12 May 1890 and died in 1945.", "1945"),
        (OLDER, "Ada Kern (12 May 1890 – 3 June 1945) painted.", "12 May 1890"),
        (DIED, "Ada Kern (12 May 1890 – 3 June 1945) painted.", "3 June 1945"),
        (DIED, "Ada Kern (1890–1945) painted.", "1945"),
        (OLDER, "Ada Kern liked cats.", None),
        (LONGER, "It is 120 metres long and 8 metres wide.", "120 metres"),
        (LONGER, "It weighs 120 tons.", None),
        (DOGS, "The party took ninety-seven dogs and 1,200 tins.", "ninety-seven dogs"),
        (DOGS, "Dogs: 12; Men: 30", "12"),
        (DOGS, "There were 30 men.", None),
        (COUNTRY, "Ada Kern was a Norwegian painter.", "Norway"),
        (COUNTRY, "He came from the United States.", "United States"),
        (DEARER, "It cost £2.5 million.", "£2.5 million"),
    ],
)
def test_the_value_of_a_sentence(question, text, value):
    found = value_in(text, compared(question))
    assert (found.text if found else None) == value


@pytest.mark.parametrize(
    ("question", "one", "other", "text"),
    [
        (OLDER, "1890", "3 June 1901", "Ada Kern – 1890 before 3 June 1901"),
        (DIED, "1950", "1945", "Olaf Brun – 1945 before 1950"),
        (OLDER, "1890", "1890", "Both – 1890"),
        (OLDER, "1890", "3 June 1890", None),
        (LONGER, "120 m", "0.5 km", "The Store Bridge – 0.5 km more than 120 m"),
        (DOGS, "two dozen", "thirty-six", "Olaf Brun – thirty-six more than two dozen"),
        (DOGS, "two hundred and five", "1,200", "Olaf Brun – 1,200 more than two hundred and five"),
        (COUNTRY, "Norwegian", "Norway", "Yes – both Norway"),
        (COUNTRY, "Scottish", "Sweden", "No – United Kingdom and Sweden"),
        (YEAR, "May 1931", "2 June 1931", "Yes – both 1931"),
        (YEAR, "May 1931", "1932", "No – 1931 and 1932"),
        (DEARER, "£200", "300 dollars", None),
        (ELSEWHERE, "Norwegian", "Sweden", "Yes – Norway and Sweden"),
    ],
)
def test_what_two_values_decide(question, one, other, text):
    comparison = compared(question)
    values = [bare_value(each, comparison) for each in (one, other)]
    assert values[0] is not None
    assert values[1] is not None
    found = decide_comparison(comparison, values[0], values[1])
    assert (found.text if found else None) == text
