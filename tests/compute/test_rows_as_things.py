"""Tables whose rows share names, and heads that say more than a name: counted row by row, cited,
the same after a change of other documents, and erased."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import QuerySolutions

from tests.support.corpora import Corpus
from tests.support.pumps import PUMPS_CSV
from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph

MATCHES_CSV = """round,date,home,away,goals,derby,cards_85_99,cards_00_14
1,Fri Aug 9 2019,Norden FC,Berg FC,4,1,3,7
1,Fri Aug 9 2019,Norden FC,Ask FC,1,0,2,9
2,Sat Aug 17 2019,Berg FC,Ask FC,0,0,5,1
2,Sun Aug 18 2019,Ask FC,Norden FC,2,0,4,6
3,Sun Aug 18 2019,Norden FC,Berg FC,3,1,1,2
"""

ANSWERS = {
    "How many matches are there?": "There are 5 matches",
    "How many goals are there in total?": "of the 5 matches is 10: 2 + 0 + 4 + 1 + 3",
    "What is the average goals for each home?": "Norden FC 2.6667, Ask FC 2 and Berg FC 0",
    "How many matches are derbies?": "2 of the 5 matches",
    "Which match has the most cards from 1985 to 1999?": "Berg FC has the greatest cards 85 99",
    "Which match has the most cards 00-14?": "Norden FC (row 2) has the greatest cards 00 14",
    "Which matches were on 18 August 2019?": "2 of the 5 matches",
}


def rows_of(graph: KnowledgeGraph) -> set[str]:
    found = graph.sparql("SELECT DISTINCT ?row WHERE { ?row a <urn:trustgraph:type:match> }")
    assert isinstance(found, QuerySolutions)
    return {solution["row"].value for solution in found}


@pytest.mark.slow
def test_rows_that_share_names_are_computed_with(tmp_path: Path):
    corpus = Corpus(tmp_path)
    corpus.index({"matches.csv": MATCHES_CSV})
    with corpus.open() as graph:
        rows = rows_of(graph)
        answers = {question: graph.ask(question, "sparql", history=[]) for question in ANSWERS}
        for question, said in ANSWERS.items():
            assert said in answers[question].text
        total = answers["How many goals are there in total?"]
        quotes = {c.quote for sentence in total.sentences for c in sentence.citations}
        assert "3 | Sun Aug 18 2019 | Norden FC | Berg FC | 3 | 1 | 1 | 2" in quotes
    assert len(rows) == 5
    assert all(map(v.is_row_iri, rows))
    other = MATCHES_CSV.replace("4,1,3,7", "5,1,3,7")
    corpus.index({"pumps.csv": PUMPS_CSV, "more-matches.csv": other})
    with corpus.open() as graph:
        assert rows < rows_of(graph)
        assert len(rows_of(graph)) == 10
        graph.purge(str(tmp_path / "matches.csv"), reason="a request")
        assert rows.isdisjoint(rows_of(graph))
        assert len(rows_of(graph)) == 5
