"""Computed answers over a table, an imported graph and the example's ships: right, cited to the
characters, refused where a word has no account, and the same again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import QuerySolutions

from tests.support.asked import ask, check_imported
from tests.support.corpora import Corpus, indexed, opened
from tests.support.paths import EXAMPLES
from tests.support.pumps import PUMPS_CSV, PUMPS_TTL
from tgraph.compute.linking import QuestionLinks, link_question
from tgraph.engine.graph import KnowledgeGraph
from tgraph.explain.audit.shacl import check_shapes
from tgraph.extensions.interchange import import_graph


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as kg:
        yield kg


@pytest.fixture(scope="module")
def ships(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("ships")
    shutil.copy(EXAMPLES / "antarctica" / "ships.csv", folder / "ships.csv")
    with opened(folder, create=True) as kg:
        assert not kg.index([folder / "ships.csv"]).failed
        yield kg


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("imported")
    (folder / "pumps.ttl").write_text(PUMPS_TTL)
    with opened(folder, create=True) as kg:
        import_graph(kg, [folder / "pumps.ttl"])
        yield kg


OF_PUMPS = {
    "How many pumps does Norden make?": "3 of the 5 pumps in “Pumps” have the maker Norden:"
    " Pump P1, Pump P2 and Pump P4.",
    "Which pump is the heaviest?": "Pump P2 has the greatest weight of the 5 pumps: 42 kg.",
    "Which pumps cost less than 400 euros?": "3 of the 5 pumps in “Pumps” have a price of less"
    " than 400 EUR: Pump P1, Pump P4 and Pump P5.",
    "Which are not made by Norden?": "2 of the 5 pumps in “Pumps” have a maker other than Norden:"
    " Pump P3 and Pump P5.",
    "What is the total weight of the pumps of Norden?": "The total weight of the 3 pumps that have"
    " the maker Norden is 62 kg: 11 + 42 + 9.",
    "What is the average price of the pumps?": "The average price of the 5 pumps is 410 EUR.",
    "Is P2 heavier than P3?": "Yes: the weight of Pump P2 is 42 kg, that of Pump P3 27 kg.",
    "Which is lighter, P2 or P3?": "Pump P3: the weight of Pump P2 is 42 kg, that of Pump P3 27"
    " kg.",
    "What is the difference in weight between P2 and P3?": "They differ by 15 kg:",
    "What are the two cheapest pumps?": "Pump P4 (250 EUR) and Pump P1 (300 EUR) have the least"
    " price of the 5 pumps.",
    "How many pumps does each maker make?": "Pumps by maker: Norden 3 and Berg 2.",
    "Which pumps weigh less than 20000 g?": "2 of the 5 pumps in “Pumps” have a weight of less"
    " than 20 kg: Pump P1 and Pump P4.",
    "Which pumps of Berg weigh more than 100 kg?": "None of the 5 pumps in “Pumps” has the maker"
    " Berg and a weight of more than 100 kg.",
    "Which maker has the most pumps?": "Norden has the most pumps of the 2 values of maker: 3, Pump"
    " P1, Pump P2 and Pump P4. It was compared with Berg 2.",
    "Which maker makes the fewest pumps?": "Berg has the fewest pumps of the 2 values of maker: 2",
    "Which maker's pumps are heaviest on average?": "Berg has the greatest average weight of the 2"
    " values of maker: 29 kg. It was compared with Norden 20.6667 kg.",
    "Which maker has the greatest total price?": "Norden has the greatest total price of the 2"
    " values of maker: 1,250 EUR.",
    "What is the average weight for each maker?": "Average of weight by maker: Berg 29 kg and"
    " Norden 20.6667 kg.",
    "What is the maximum price per maker?": "Maximum of price by maker: Norden 700 EUR (Pump P2)"
    " and Berg 410 EUR (Pump P3).",
    "Which pumps are heavier than P3?": "2 of the 5 pumps in “Pumps” have a weight of more than 27"
    " kg: Pump P2 and Pump P5. The weight of Pump P3 is 27 kg.",
    "Which pumps cost more than P1?": "3 of the 5 pumps in “Pumps” have a price of more than 300"
    " EUR:",
    "Does Norden make more pumps than Berg?": "Yes: Norden has 3 pumps (Pump P1, Pump P2 and Pump"
    " P4), Berg 2 (Pump P3 and Pump P5).",
    "How many more pumps does Norden make than Berg?": "The difference is 1: Norden has 3 pumps",
    "Which makes more pumps, Norden or Berg?": "Norden: Norden has 3 pumps",
    "What share of the pumps does Norden make?": "3 of 5 pumps have the maker Norden, that is 60 %:"
    " Pump P1, Pump P2 and Pump P4.",
    "How many different makers are there?": "There are 5 pumps in “Pumps”; they name 2 different"
    " values of maker: Norden (3 times) and Berg (2 times).",
    "Which pumps have no maker?": "None of the 5 pumps in “Pumps” has no value of “maker”.",
    "What is the price of the heaviest pump?": "The price of Pump P2 is 700 EUR. Pump P2 has the"
    " greatest weight of the 5 pumps: 42 kg.",
    "Does Norden make a pump heavier than 40 kg?": "Yes: 1 of the 5 pumps in “Pumps” has the maker"
    " Norden and a weight of more than 40 kg: Pump P2.",
}


@pytest.mark.parametrize("question", OF_PUMPS)
def test_a_question_over_a_table_is_computed(pumps: KnowledgeGraph, question: str):
    assert ask(pumps, question).startswith(OF_PUMPS[question])


OF_SHIPS = {
    "Which ship was built first?": "Nimrod was launched earliest of the 15 ships: 1866. 1 of the"
    " 16 ships has no value of launched.",
    "How many ships were British?": "7 of the 16 ships in “Ships” have the nationality British:",
    "How many expeditions were British?": "7 of the 16 ships in “Ships” have the nationality"
    " British; they name 5 different values of expedition: British Antarctic Expedition (3 times),",
    "Which ships were launched before 1880?": "4 of the 16 ships in “Ships” were launched before"
    " 1880: Antarctic, Aurora, Nimrod and Scotia.",
    "Which ships were built in Dundee?": "4 of the 16 ships in “Ships” were built at Dundee"
    " (Scotland): Aurora, Discovery, Nimrod and Terra Nova.",
}


@pytest.mark.parametrize("question", OF_SHIPS)
def test_a_question_over_the_example_s_ships_is_computed(ships: KnowledgeGraph, question: str):
    assert ask(ships, question).startswith(OF_SHIPS[question])


OF_IMPORTED = {
    "How many pumps does Norden make?": "There are 4 pumps that have the maker Norden:",
    "Which pump is the heaviest?": "Pump P2 has the greatest weight of the 6 pumps: 42.",
    "What is the total weight of the pumps of Norden?": "The total weight of the 4 pumps that have"
    " the maker Norden is 75:",
    "Which pumps are not made by Norden?": "There are 2 pumps that have a maker other than Norden:"
    " Pump P5 and Pump P6.",
}


@pytest.mark.parametrize("question", OF_IMPORTED)
def test_a_question_over_an_imported_graph_is_computed(imported: KnowledgeGraph, question: str):
    assert ask(imported, question).startswith(OF_IMPORTED[question])


@pytest.mark.parametrize(
    "question",
    [
        "What is the colour of the pumps?",
        "How many pumps are blue?",
        "Which pump is the longest?",
        "How many pumps does Siemens make?",
        "Which pumps were sold in Norway?",
        "How many litres do the pumps of Norden move?",
        "Which pumps cost less than 400 kg?",
        "Which country has the most pumps?",
        "Which maker has the most valves?",
        "Which maker's pumps are longest on average?",
        "What is the average length for each maker?",
        "Which pumps are heavier than P9?",
        "Which pumps are longer than P2?",
        "Does Norden make more pumps than Siemens?",
        "What share of the pumps does Siemens make?",
        "Which pumps have no colour?",
        "What is the colour of the heaviest pump?",
    ],
)
def test_a_near_miss_is_refused(pumps: KnowledgeGraph, question: str):
    assert pumps.ask(question, "sparql", history=[]).verdict == "no_evidence"


BRIDGES = "bridge,opened,length_m\nNordbro,1911,210\nSørbro,1934,145\nGamlebro,1887,98\n"


@pytest.fixture(scope="module")
def bridges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("bridges"), {"bridges.csv": BRIDGES}) as graph:
        yield graph


def test_another_quantity_in_the_same_unit_is_not_the_one_asked_for(bridges: KnowledgeGraph):
    for question in ("Which bridge is the widest?", "Which bridges are wider than 100 m?"):
        assert bridges.ask(question, "sparql", history=[]).verdict == "no_evidence", question
    assert ask(bridges, "Which bridge is the longest?").startswith("Nordbro has the greatest")
    longer = "2 of the 3 bridges in “Bridges” have a length of more than 100 m"
    assert ask(bridges, "Which bridges are longer than 100 m?").startswith(longer)


OF_DAYS = {
    "Which bridges were opened after 3 May 1911?": "2 of the 4 bridges in “Bridges” were opened"
    " after 1911-05-03: Nybro and Sørbro.",
    "Which bridges opened in June 1911?": "1 of the 4 bridges in “Bridges” was opened from"
    " 1911-06-01 until 1911-06-30: Nybro.",
    "Which bridges were opened on 11 June 1887?": "1 of the 4 bridges in “Bridges” was opened on"
    " 1887-06-11: Gamlebro.",
    "Which bridge was opened first?": "Gamlebro was opened earliest of the 4 bridges: 1887-06-11.",
    "Was Nordbro opened before Sørbro?": "Yes: Nordbro was opened 1911-05-03, Sørbro 1934-06-20.",
    "Was Nordbro opened after Sørbro?": "No: Nordbro was opened 1911-05-03,",
    "Which bridges were opened before Nybro?": "2 of the 4 bridges in “Bridges” were opened before"
    " 1911-06-09: Gamlebro and Nordbro.",
}
OPENED = (
    "bridge,opened\nNordbro,1911-05-03\nSørbro,1934-06-20\nGamlebro,1887-06-11\nNybro,1911-06-09\n"
)


def test_days_and_months_are_compared_and_no_other_dates(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"bridges.csv": OPENED})
    with corpus.open() as graph:
        for question, expected in OF_DAYS.items():
            assert ask(graph, question).startswith(expected), question
        for question in ("Which bridges closed in June 1911?", "Was Nordbro closed before Sørbro?"):
            assert graph.ask(question, "sparql", history=[]).verdict == "no_evidence", question


def test_a_bound_that_contradicts_itself_is_shown_and_not_compared_with(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"pumps.csv": PUMPS_CSV, "pumps-of-today.csv": "name,weight_kg\nPump P3,43\n"})
    with corpus.open() as graph:
        text = ask(graph, "Which pumps of Norden are heavier than Pump P3?")
    assert text.startswith("None of the 5 pumps")
    assert "Pump P3 has 2 values of weight, 27 kg and 43 kg, and is left out." in text


RIVERS = """\
@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:a a ex:Region ; rdfs:label "Asker" ; ex:area 90 ; ex:borders ex:b , ex:c ; ex:capital ex:t .
ex:b a ex:Region ; rdfs:label "Berg" ; ex:area 40 ; ex:borders ex:a .
ex:c a ex:Region ; rdfs:label "Dal" ; ex:area 60 ; ex:borders ex:a .
ex:r1 a ex:River ; rdfs:label "Glomma" ; ex:length 621 ; ex:runsThrough ex:a , ex:b .
ex:r2 a ex:River ; rdfs:label "Lågen" ; ex:length 359 ; ex:runsThrough ex:c .
ex:r3 a ex:River ; rdfs:label "Otra" ; ex:length 245 ; ex:runsThrough ex:a .
ex:t a ex:Town ; rdfs:label "Bru" ; ex:inhabitants 900 ; ex:locatedIn ex:a .
ex:u a ex:Town ; rdfs:label "Vik" ; ex:inhabitants 400 ; ex:locatedIn ex:b .
"""

OF_RIVERS = {
    "Which rivers run through regions that border Asker?": ("Glomma and Lågen",),
    "Which regions does the Glomma run through?": ("Asker and Berg",),
    "Which region has the most rivers?": ("Asker has the most rivers", "2, Glomma and Otra"),
    "What is the longest river in the largest region?": ("Glomma has the greatest length",),
    "How many inhabitants does the capital of the largest region have?": ("900",),
    "Which rivers are longer than the Lågen?": ("Glomma", "The length of Lågen is 359."),
    "How long is the Otra?": ("245",),
    "Which regions have no capital?": ("Berg and Dal",),
    "Which towns are in the regions that the longest river runs through?": ("Bru and Vik",),
}


def test_what_connects_classes_is_followed_in_both_directions(tmp_path: Path):
    refused = (
        "Which rivers run through regions that border Sweden?",
        "Which lakes are in the largest region?",
        "Which region has the most bridges?",
        "Which rivers flood regions that border Asker?",
        "Which rivers are wider than the Lågen?",
    )
    check_imported(tmp_path, RIVERS, OF_RIVERS, refused)


def test_each_row_is_cited_by_its_characters(pumps: KnowledgeGraph):
    answer = pumps.ask("Which pump is the heaviest?", "sparql", history=[])
    winner, compared = answer.sentences
    assert {c.quote for c in winner.citations} == {"P2 | Pump P2 | Norden | 42 | 700"}
    assert len({c.quote for c in compared.citations}) == 4
    reasons = {selected.reasoning for selected in answer.selection}
    assert "Selected: the result rests on the statement (Pump P2)." in reasons
    assert "Selected: the result was compared with the statement (Pump P5)." in reasons


def test_auto_takes_what_asks_for_a_computation_and_nothing_else(pumps: KnowledgeGraph):
    modes = {
        question: pumps.ask(question, history=[]).mode
        for question in (
            "How many pumps does Norden make?",
            "Who makes Pump P3?",
            "How many pumps are blue?",
        )
    }
    assert [mode == "sparql" for mode in modes.values()] == [True, False, False]


def test_contradicting_values_of_an_imported_graph_and_of_merged_entities_are_left_out(
    tmp_path: Path,
):
    corpus = Corpus(tmp_path)
    (tmp_path / "pumps.ttl").write_text(f"{PUMPS_TTL}ex:P2 ex:weight 43 .\n")
    with corpus.open() as graph:
        import_graph(graph, [tmp_path / "pumps.ttl"])
        total = ask(graph, "What is the total weight of the pumps?")
    assert "weight of the 5 pumps is 91" in total
    assert "Pump P2 has 2 values of weight, 42 and 43, and is left out." in total
    merged = Corpus(tmp_path / "merged")
    merged.index({"pumps.csv": PUMPS_CSV, "new-pumps.csv": "name,weight_kg\nPump 2,43\nPump 9,5\n"})
    with merged.open() as graph:
        graph.entities.merge("Pump 2", "Pump P2", reason="They are one.")
        heaviest = ask(graph, "Which pump is the heaviest?")
    assert heaviest.startswith("Pump P5 has the greatest weight of the 5 pumps: 31 kg.")
    assert "Pump P2 has 2 values of weight, 42 kg and 43 kg, and is left out." in heaviest


def test_values_in_several_units_are_converted_or_not_computed_with(tmp_path: Path):
    corpus = Corpus(tmp_path / "converted")
    corpus.index({"pumps.csv": "name,weight\nAqua,3 kg\nDelta,200 g\nVega,1 kg\n"})
    with corpus.open() as graph:
        total = ask(graph, "What is the total weight of the pumps?")
        assert total.startswith("The total weight of the 3 pumps is 4.2 kg: 3 + 0.2 + 1.")
    corpus = Corpus(tmp_path)
    corpus.index({"pumps.csv": "name,weight\nAqua,3 kg\nDelta,200 m\nVega,1 kg\n"})
    with corpus.open() as graph:
        for question in (
            "What is the total weight of the pumps?",
            "Which pump is the lightest?",
            "Which pumps weigh less than 2 kg?",
        ):
            assert "no evidence" in ask(graph, question)


SYNONYMS = """
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
ex:weight a owl:DatatypeProperty ; rdfs:label "weight"@en, "Gewicht"@de ; skos:altLabel "mass"@en .
ex:Pump a owl:Class ; rdfs:label "pump"@en ; skos:altLabel "water lifter"@en .
ex:P1 a ex:Pump . ex:P2 a ex:Pump . ex:P3 a ex:Pump .
"""


def test_synonyms_of_an_ontology_name_classes_and_properties(tmp_path: Path):
    corpus = Corpus(tmp_path)
    (tmp_path / "pumps.ttl").write_text(PUMPS_TTL + SYNONYMS)
    with corpus.open() as graph:
        import_graph(graph, [tmp_path / "pumps.ttl"])
        assert "name 3 pumps" in ask(graph, "How many water lifters are there?")
        assert "Pump P2 has the greatest weight" in ask(graph, "Which pump has the greatest mass?")
        assert "Pump P2 has" in ask(graph, "Which pump has the greatest Gewicht?")
        assert "no evidence" in ask(graph, "How many fire lifters are there?")


def test_auto_plans_a_question_once(pumps: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch):
    planned: list[str] = []

    def link(question: str, *rest: Any) -> QuestionLinks:
        planned.append(question)
        return link_question(question, *rest)

    monkeypatch.setattr("tgraph.compute.computation.link_question", link)
    assert pumps.ask("How many pumps does Berg make?", history=[]).mode == "sparql"
    assert planned == ["How many pumps does Berg make?"]


def test_what_is_not_read_is_computed_with(tmp_path: Path):
    """Beyond the rows that are read as witnesses a result is still that of all."""
    corpus = Corpus(tmp_path, sparql_search__most_rows=2)
    corpus.index({"pumps.csv": PUMPS_CSV + "P2,Pump P2,Norden,43,\n"})
    with corpus.open() as graph:
        counted = ask(graph, "How many pumps are there?")
        heaviest = ask(graph, "Which pump is the heaviest?")
        total = ask(graph, "What is the total weight of the pumps?")
    assert "There are 5 pumps" in counted
    assert "and 3 more" in counted
    assert "Pump P5 has the greatest weight" in heaviest
    assert "Pump P2" not in heaviest.split(".")[0]
    assert "the 4 pumps is" in total
    assert "Only the first 2 solutions" in counted


def test_the_record_has_the_query_its_result_and_what_was_not_chosen(pumps: KnowledgeGraph):
    answer = pumps.ask("How many pumps does Norden make?", "sparql", history=[])
    results = pumps.sparql(
        "SELECT ?sparql ?algebra ?result (COUNT(?other) AS ?others) WHERE { GRAPH ?bundle {"
        f" ?step dcterms:isPartOf <{answer.session}> ."
        " ?query prov:wasGeneratedBy ?step ; tg:sparql ?sparql ; tg:algebra ?algebra ;"
        " tg:result ?result . OPTIONAL { ?query tg:candidateQuery ?other } } }"
        " GROUP BY ?sparql ?algebra ?result"
    )
    assert isinstance(results, QuerySolutions)
    rows = list(results)
    assert len(rows) == 1
    assert "COUNT(DISTINCT ?row)" in rows[0]["sparql"].value
    assert rows[0]["algebra"].value.startswith("Count(rows=Rows(")
    assert '"3' in rows[0]["result"].value.replace("\\", "")


def test_it_is_computed_again_in_the_same_way(pumps: KnowledgeGraph):
    for mode in ("sparql", "auto"):
        answer = pumps.ask("Which are not made by Norden?", mode, history=[])
        assert pumps.replay(answer.session).is_same


def test_verification_runs_the_query_again(pumps: KnowledgeGraph):
    answer = pumps.ask("Which pump is the heaviest?", "sparql", history=[])
    verified = pumps.verify(answer.session)
    assert verified.judge == "query-grammar"
    assert {sentence.verdict for sentence in verified.sentences} == {"supported"}
    assert len(verified.sentences) == 2


def test_verification_reads_the_knowledge_of_the_session_and_no_later_one(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"pumps.csv": PUMPS_CSV})
    with corpus.open() as graph:
        answer = graph.ask("How many pumps does Norden make?", "sparql", history=[])
        assert answer.text.startswith("3 of the 5 pumps")
    corpus.index({"pumps.csv": PUMPS_CSV + "P6,Pump P6,Berg,5,100\n"})
    with corpus.open() as graph:
        assert ask(graph, "How many pumps does Norden make?").startswith("3 of the 6 pumps")
        verified = graph.verify(answer.session)
    assert {sentence.verdict for sentence in verified.sentences} == {"supported"}


def test_a_session_conforms_to_the_shapes(pumps: KnowledgeGraph):
    for question, mode in (
        ("How many pumps are blue?", "sparql"),
        ("How many pumps are there?", "sparql"),
        ("Which pump is the heaviest?", "auto"),
    ):
        session = pumps.ask(question, mode, history=[]).session
        assert not check_shapes(pumps.opened.read(), pumps.opened.catalogue, session)


def test_what_contradicts_itself_is_shown_and_not_added_up(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index(
        {
            "pumps.csv": PUMPS_CSV,
            "pumps-of-today.csv": "name,weight_kg\nPump P2,43\nPump P9,5\nPump P8,6\n",
        }
    )
    with corpus.open() as graph:
        text = ask(graph, "What is the total weight of the pumps of Norden?")
    assert "is 20 kg: 11 + 9." in text
    assert "Pump P2 has 2 values of weight, 42 kg and 43 kg, and is left out." in text


COSTS = "name,cost_million_eur,visitors (thousands)\nNordbro,3.5,40\nSørbro,7.2,5\nLangbro,88,900\n"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which bridges cost more than 5 million euros?", "more than 5 million EUR: Langbro"),
        ("How many bridges cost less than 4000000 euros?", "less than 4 million EUR: Nordbro."),
        ("Which bridges have more than 30,000 visitors?", "more than 30 thousand: Langbro"),
        ("Which bridges have less than 30 visitors?", "less than 30 thousand: Sørbro"),
        ("What is the total cost of the bridges?", "is 98.7 million EUR"),
    ],
)
def test_bounds_are_converted_to_the_scale_of_a_column(tmp_path: Path, question: str, answer: str):
    corpus = Corpus(tmp_path)
    corpus.index({"bridges.csv": COSTS})
    with corpus.open() as graph:
        assert answer in ask(graph, question)


RESULTS = """race,driver,team,points,place
Oslo Cup,Ann Lee,Falcons,12,3
Oslo Cup,Bo Ray,Herons,9,4
Oslo Cup,Cy Dow,Falcons,2,6
Bergen Cup,Ann Lee,Falcons,4,9
Bergen Cup,Bo Ray,Herons,15,1
Bergen Cup,Cy Dow,Falcons,1,7
"""


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many points did Ann Lee score?", "2 results that have the driver Ann Lee is 16"),
        ("How many points did Ann Lee score in the Bergen Cup?", "the race Bergen Cup is 4."),
        ("Which team has the most points?", "Herons has the greatest total points"),
        ("Which driver has the fewest points?", "Cy Dow has the least total points"),
        ("How many places did Ann Lee score?", "no evidence"),
    ],
)
def test_amounts_of_several_rows_add_up(results: KnowledgeGraph, question: str, answer: str):
    assert answer in ask(results, question)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("results"), {"results.csv": RESULTS}) as graph:
        yield graph


COUNCILS = """Authority Name,Wards,Electors per Councillor,Authority Type,County,Date of last review
Adur,14,1631,District,Essex,2002-07-09
Arun,23,2135,District,Essex,2015-05-12
Essex,70,13947,County,,2004-02-03
Kent,72,12857,County,,2015-05-01
Hart,11,2152,District,Kent,2013-02-26
"""


@pytest.fixture(scope="module")
def councils(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("councils"), {"registry.csv": COUNCILS}) as graph:
        yield graph


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How many authorities are there of each authority type?", "District 3 and County 2"),
        ("How many councillors does Kent have?", "no evidence"),
        ("Which authorities were last reviewed in May 2015?", "Arun and Kent"),
    ],
)
def test_rows_that_other_columns_name_count_and_parts_of_heads_mean_no_other(
    councils: KnowledgeGraph, question: str, answer: str
):
    assert answer in ask(councils, question)
