"""Audits asked for in words: found with their arguments, or refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.corpora import indexed
from tests.support.pumps import PUMPS_CSV
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError


@pytest.fixture(scope="module")
def pumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with indexed(tmp_path_factory.mktemp("pumps"), {"pumps.csv": PUMPS_CSV}) as graph:
        yield graph


ASKED = {
    "Which answers used document pumps.csv?": ("answers-on-document", "pumps.csv"),
    "Which answers rest on “Pumps”?": ("answers-on-document", "Pumps"),
    "Which documents does the last answer rest on?": ("documents-of-answer", "last"),
    "Which documents were never used?": ("unused-documents",),
    "Which sessions failed?": ("failures",),
    "Which questions had no answer?": ("unanswered", "100"),
    "Which answers were never verified?": ("unverified",),
    "Which sentences have no citation?": ("uncited",),
    "Which facts contradict each other?": ("contradictions", ""),
    "Which answers rest on one document only?": ("single-source",),
    "What are the 3 most used documents?": ("influential-documents", "3"),
    "Who asked what since 2026-11-01?": ("sessions", "", "2026-11-01", "9999-12-31"),
    "How much did the models cost until 2026-12-01?": ("costs", "0001-01-01", "2026-12-01"),
}


@pytest.mark.parametrize("question", ASKED)
def test_a_question_finds_its_audit(pumps: KnowledgeGraph, question: str):
    assert pumps.find_audit(question) == ASKED[question]


@pytest.mark.parametrize(
    "question",
    [
        "Who is the king of France?",
        "Which answers used document valves.csv?",
        "Which answers did not use pumps.csv?",
        "Which answers are there?",
        "Which answers contradict the weather?",
        "",
    ],
)
def test_what_no_audit_answers_is_refused(pumps: KnowledgeGraph, question: str):
    with pytest.raises(UsageError):
        pumps.find_audit(question)


def test_the_audit_that_is_found_runs(pumps: KnowledgeGraph):
    session = pumps.ask("How many pumps does Norden make?", history=[]).session
    result = pumps.audit(*pumps.find_audit("Which answers used document pumps.csv?"))
    assert session in {row[0] for row in result.rows}
