"""Words that questions have and a graph has not: verbs, names in parts and with signs, relations
without a class, second questions. Each has an account, or the question is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.asked import ask, check_imported, refuses
from tests.support.corpora import indexed
from tgraph.engine.graph import KnowledgeGraph

BRIDGES = """\
bridge,river,city,builder,length_m,truck lanes,opened,visits
"Nordbro, East",Ask,Oslo,Hansen,210,2,1911,0
Vestbro (new),Ask,Hamar,Berg,340,4,1932,12
Sørbro,Lua,Big Two,Hansen,95,1,1950,7
Austbro,Lua,Oslo,Lie,410,6,1977,0
"""


@pytest.fixture(scope="module")
def bridges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("bridges"), {"bridges.csv": BRIDGES}) as graph:
        yield graph


OF_BRIDGES = {
    "How many bridges cross the Ask?": "2 of the 4 bridges in “Bridges” have the river Ask:",
    "Which bridges carry more than 3 truck lanes?": "2 of the 4 bridges in “Bridges” have a truck",
    "Which bridges carry more than 3 lanes of truck?": "2 of the 4 bridges in “Bridges” have a tru",
    "Which bridges have 4 truck lanes?": "1 of the 4 bridges in “Bridges” has a truck lanes of",
    "What is the highest visits score?": "Vestbro (new) has the greatest visits",
    "How long is Nordbro, East?": "The length of Nordbro, East is 210 m.",
    "What is the river of Vestbro (new)?": "The river of Vestbro (new) is Ask.",
    "Which bridges are in Big Two?": "1 of the 4 bridges in “Bridges” has the city Big Two:",
    "How many bridges have no visits?": "2 of the 4 bridges in “Bridges” have a visits of exactly",
    "How many truck lanes are there in total?": "The total truck lanes of the 4 bridges is 13:",
    "What is the combined length of Sørbro and Austbro?": "The total length of the 2 bridges is",
    "How many more visits does Sørbro have than Austbro?": "They differ by 7:",
    "Does Sørbro have more visits than Austbro?": "Yes: the visits of Sørbro are 7, that of",
    "Which bridges have more visits than Sørbro?": "1 of the 4 bridges in “Bridges” has a visits",
    "List the top two by length.": "Austbro (410 m) and Vestbro (new) (340 m) have the greatest",
    "What is the average length in m?": "The average length of the 4 bridges is 263.75 m.",
    "Which river is the most common?": "Ask and Lua share the most bridges",
    "Which bridge is the longest and when was it opened?": "Austbro has the greatest length of the"
    " 4 bridges: 410 m. The opened of Austbro is 1977.",
    "What is the length of the bridge that crosses the Ask and opened before 1920?": "The length of"
    " Nordbro, East is 210 m.",
    "Which bridge carries the most truck lanes?": "Austbro has the greatest truck lanes",
    "Which bridge has the most truck lanes and how long is it?": "Austbro has the greatest truck"
    " lanes of the 4 bridges: 6. The length of Austbro is 410 m.",
    "What is the longest bridge of each river?": "Maximum of length by river: Lua 410 m (Austbro)"
    " and Ask 340 m (Vestbro (new)).",
}


@pytest.mark.parametrize("question", OF_BRIDGES)
def test_each_word_of_a_question_over_a_table_has_an_account(
    bridges: KnowledgeGraph, question: str
):
    assert ask(bridges, question).startswith(OF_BRIDGES[question])


@pytest.mark.parametrize(
    "question",
    [
        "How many bridges avoid the Ask?",
        "How many ships cross the Ask?",
        "How many bridges were painted in Oslo?",
        "Which bridges did Hansen repair?",
        "Which bridge owners live in Oslo?",
        "Which bridges need more than 3 truck lanes?",
        "Which bridges carry more than 3 trains?",
        "Which bridges have 4 trains?",
        "What is the highest toll score?",
        "How many more tolls does Sørbro have than Austbro?",
        "Does Sørbro have more tolls than Austbro?",
        "What is the average length in feet?",
        "Which bridge is the longest and what does it cost?",
        "What is the longest tunnel of each river?",
        "What is the combined length of Sørbro and Midtbro?",
        "How long is Nordbro, West?",
    ],
)
def test_a_word_without_an_account_is_no_answer(bridges: KnowledgeGraph, question: str):
    assert refuses(bridges, question)


PEOPLE = """\
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:p1 a ex:Person ; ex:first-name "Rose" ; ex:last-name "Lund" ; ex:birth-year "1890" ;
  ex:birth-place ex:o ; ex:trade ex:smith ; ex:has-child ex:p2 , ex:p3 .
ex:p2 a ex:Person ; ex:first-name "Ada" ; ex:last-name "Lund" ; ex:birth-year "1915" ;
  ex:birth-place ex:o ; ex:trade ex:smith ; ex:memberOf ex:band .
ex:p3 a ex:Person ; ex:first-name "Bo" ; ex:last-name "Lund" ; ex:birth-year "1917" ;
  ex:birth-place ex:d ; ex:trade ex:baker ; ex:memberOf ex:band .
ex:o a ex:Place ; rdfs:label "Oslo" ; ex:state "Viken" .
ex:d a ex:Place ; rdfs:label "Dal" ; ex:state "Troms" .
ex:smith rdfs:label "smith" . ex:baker rdfs:label "baker" .
ex:band a ex:Band ; rdfs:label "The Foxes" ; ex:sings ex:s1 , ex:s2 .
ex:solo a ex:Band ; rdfs:label "Hares" ; ex:sings ex:s3 .
ex:s1 a ex:Song ; rdfs:label "Blue" ; ex:hasLength 200 .
ex:s2 a ex:Song ; rdfs:label "Red (1990)" ; ex:hasLength 100 .
ex:s3 a ex:Song ; rdfs:label "Green" ; ex:hasLength 300 .
"""

OF_PEOPLE = {
    "When was Rose Lund born?": ("1890",),
    "Where was Rose Lund born?": ("Oslo",),
    "How many children did Rose Lund have?": ("name 2 things",),
    "How many persons were born in Viken?": ("name 2 persons",),
    "How many members does The Foxes have?": ("name 2 things",),
    "Who is a member of The Foxes?": ("p2", "p3"),
    "Who sings Red (1990)?": ("The Foxes",),
    "Who sings the most songs?": ("The Foxes has the most songs",),
    "How many songs does The Foxes sing?": ("2 songs",),
    "What is the longest song of The Foxes?": ("Blue has the greatest",),
    "Which trade is the most common?": ("Smith has the most",),
    "Which persons with the last name Lund were born in Dal?": ("p3",),
}


def test_relations_of_an_imported_graph_are_asked_without_a_class(tmp_path: Path):
    refused = (
        "When was Rose Berg born?",
        "When did Rose Lund die?",
        "How many pets did Rose Lund have?",
        "How many songs did The Foxes write?",
        "Who is the manager of The Foxes?",
        "Who sings Red (1991)?",
        "How many members does Hares have?",
    )
    check_imported(tmp_path, PEOPLE, OF_PEOPLE, refused)


@pytest.mark.parametrize("question", ["???", "…", "?"])
def test_a_question_without_words_asks_for_no_computation(bridges: KnowledgeGraph, question: str):
    assert refuses(bridges, question)
