"""The scripted model that peers are measured with: its replies have the peers' formats."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.overhead import FailedError
from benchmarks.peer_stub import reply
from benchmarks.peers import offline, piped, version
from tests.support.paths import REPOSITORY

EXTRACT = """
Output the list, then <|COMPLETE|>
Example 1:
Text:
Ann met Bob.
######################
Output: none
-Real Data-
######################
Entity_types: person
Text: Scrooge met Jacob Marley ## in London. <|>
######################
Output:"""


def asked(text: str, *more: tuple[str, str]) -> list[dict[str, str]]:
    messages = [{"role": "user", "content": text}]
    return [*messages, *({"role": role, "content": said} for role, said in more)]


def records(text: str) -> list[list[str]]:
    """The tuples, split as GraphRAG splits them."""
    parts = [re.sub(r"^\(|\)$", "", part.strip()) for part in text.split("##")]
    return [part.split("<|>") for part in parts]


def test_extraction_is_in_tuples_of_the_text_asked_about() -> None:
    *found, last = records(reply("", asked(EXTRACT)).removesuffix("<|COMPLETE|>") + "##")
    assert last == [""]
    assert [row[:2] for row in found if row[0] == '"entity"'] == [
        ['"entity"', "Scrooge"],
        ['"entity"', "Jacob Marley"],
        ['"entity"', "London"],
    ]
    links = [row for row in found if row[0] == '"relationship"']
    assert [(row[1], row[2], float(row[-1])) for row in links] == [
        ("Scrooge", "Jacob Marley", 7.0),
        ("Jacob Marley", "London", 7.0),
    ]
    assert {len(row) for row in found} == {4, 5}


def test_a_second_turn_finds_nothing_more() -> None:
    more = asked(EXTRACT, ("assistant", "..."), ("user", "Some were missed."))
    assert reply("", more) == "<|COMPLETE|>"


def test_a_summary_is_made_of_the_descriptions() -> None:
    listed = json.dumps(["He is old.", "He is mean.", "He is old."])
    prompt = f'Entities: "SCROOGE"\nDescription List: {listed}\n#######\nOutput:\n'
    assert reply("", asked(prompt)) == "He is old. He is mean."


def test_a_community_report_fits_its_format_and_its_data() -> None:
    rows = "Entities\n\nhuman_readable_id,title,description\n5,SCROOGE,A miser\n6,MARLEY,A ghost\n"
    prompt = (
        f"Text:\n1,EXAMPLE,None\n\nOutput:\n# Real Data\n\nText:\n{rows}\nThe report should include"
    )
    made = json.loads(reply("CommunityReportResponse", asked(prompt)))
    assert made["title"] == "SCROOGE and MARLEY"
    assert made["findings"][0]["explanation"] == "A miser [Data: Entities (5)]"
    assert isinstance(made["rating"], float)
    assert made["summary"]
    assert made["rating_explanation"]


def test_points_are_of_the_reports_and_their_scores_of_the_question() -> None:
    prompt = '{"points": []}\nid|title|content|rank\n3|SCROOGE and MARLEY|...|5\n4|FEZZIWIG|...|5\n'
    made = json.loads(reply("", asked(prompt, ("user", "Who is Scrooge?"))))["points"]
    assert [point["score"] for point in made] == [20, 10]
    assert "Reports (3)" in made[0]["description"]


@pytest.mark.parametrize(
    ("step", "key"), [("PrimerResponse", "intermediate_answer"), ("", "response")]
)
def test_drift_gets_an_answer_a_score_and_five_follow_ups(step: str, key: str) -> None:
    names = "Scrooge Marley Cratchit Fezziwig Belle Martha Peter"
    made = json.loads(reply(step, asked(f"'follow_up_queries': List[str]\n{names}")))
    assert made[key]
    assert 0 <= made["score"] <= 100
    assert len(set(made["follow_up_queries"])) == 5


LIGHTRAG = """
End with <|COMPLETE|>.
Output at most {total} total rows and at most {entity} entity rows.

---Input Text---
```
Scrooge met Jacob Marley in London. Belle left.
```

---Output---
"""


@pytest.mark.parametrize(
    ("total", "entity", "rows"),
    [
        (9, 4, ["Scrooge", "Jacob Marley", "London", "Belle", "Scrooge", "Jacob Marley"]),
        (9, 2, ["Scrooge", "Jacob Marley", "Scrooge"]),
        (3, 3, ["Scrooge", "Jacob Marley", "London"]),
    ],
)
def test_lightrag_gets_no_more_rows_than_it_asks_for(
    total: int, entity: int, rows: list[str]
) -> None:
    text = LIGHTRAG.format(total=total, entity=entity)
    *found, end = (row.split("<|#|>") for row in reply("", asked(text)).split("\n"))
    assert end == ["<|COMPLETE|>"]
    assert [row[1] for row in found] == rows
    assert {(row[0], len(row)) for row in found} <= {("entity", 4), ("relation", 5)}


def test_keywords_of_both_levels_are_those_of_the_question() -> None:
    prompt = "high_level_keywords, low_level_keywords\nUser Query: Why did Scrooge change?\n"
    made = json.loads(reply("", asked(prompt)))
    assert made == {"high_level_keywords": ["change"], "low_level_keywords": ["Scrooge"]}


def test_a_summary_for_lightrag_is_made_of_its_rows() -> None:
    rows = "\n".join(json.dumps({"Description": text}) for text in ("Old.", "Mean.", "Old."))
    assert reply("", asked(f"Description List:\n\n```\n{rows}\n```\n")) == "Old. Mean."


@pytest.mark.parametrize("package", ["graphrag", "lightrag-hku"])
def test_a_python_without_a_peer_is_named(package: str, tmp_path: Path) -> None:
    with pytest.raises(FailedError, match=f"import {package}: install it there with pip"):
        version(str(tmp_path / "python"), package)


@pytest.mark.slow
def test_the_environment_needs_no_network_and_no_profiling(tmp_path: Path) -> None:
    environment = offline(tmp_path / "offline")
    asked = (
        "import tiktoken, tracemalloc; tracemalloc.start(); print(tracemalloc.is_tracing(),"
        " tiktoken.get_encoding('o200k_base').encode('Scrooge') != [])"
    )
    command = [sys.executable, "-c", asked]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_server_counts_what_it_was_asked() -> None:
    from openai import OpenAI

    command = [sys.executable, "-m", "benchmarks.peer_stub", "3072"]
    with piped(command, {**os.environ, "PYTHONPATH": str(REPOSITORY)}) as server:
        url = server.line()
        with OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            client.chat.completions.create(
                model="any", messages=[{"role": "user", "content": "x" * 40}]
            )
            vectors = client.embeddings.create(model="any", input=["a", "b"]).data
        assert server.ask() == [1, 1, 11]
        assert server.ask() == [0, 0, 0]
    assert {len(row.embedding) for row in vectors} == {3072}
