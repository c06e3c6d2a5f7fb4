"""The benchmark of prompts: what it looks for, and a run over a small data set."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from benchmarks.context import as_graph, judge_prompt, run
from benchmarks.context_data import GoldQuestion, find_sentence, read_gold
from benchmarks.peer_stub import reply
from benchmarks.retrieval_data import OpenIEExtractor
from tests.benchmarks.test_retrieval import OPENIE
from tgraph.model import Chunk

BUILT = "The Fram was built by Colin Archer."
BORN = "Archer was born in Larvik."
PARAGRAPHS = [
    ("Fram", f"{BUILT} It was wide.", True),
    ("Colin Archer", f"He drew ships. {BORN}", True),
    ("Bread", "Bread is baked in Paris.", False),
    ("Tea", "Tea is drunk in Oslo.", False),
]
STEPS = [("Who built the Fram?", "Colin Archer"), ("Where was #1 born?", "Larvik")]
MUSIQUE = [
    {
        "question": "Where was the builder of the Fram born?",
        "paragraphs": [
            {"idx": place, "title": title, "paragraph_text": text, "is_supporting": supports}
            for place, (title, text, supports) in enumerate(PARAGRAPHS)
        ],
        "question_decomposition": [
            {"question": question, "answer": answer, "paragraph_support_idx": place}
            for place, (question, answer) in enumerate(STEPS)
        ],
    }
]
SQUAD = {
    "data": [
        {
            "title": "Polar_ships",
            "paragraphs": [
                {
                    "context": f"{BUILT} {BORN}",
                    "qas": [
                        {"question": "Where?", "answers": [{"text": "Larvik", "answer_start": 55}]},
                        {"question": "Why?", "answers": []},
                    ],
                }
            ],
        }
    ]
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "musique"
    data.mkdir()
    (data / "musique.json").write_text(json.dumps(MUSIQUE))
    (data / "musique_corpus.json").write_text("[]")
    (data / "openie.json").write_text(json.dumps(OPENIE))
    return data


def test_gold_are_the_sentences_with_the_steps_answers(folder: Path) -> None:
    data, questions = read_gold(folder, 9, misleading=1)
    assert [passage.title for passage in data.passages] == ["Fram", "Colin Archer", "Bread"]
    assert questions == [GoldQuestion("Where was the builder of the Fram born?", (BUILT, BORN))]
    assert find_sentence("Ann met Bob. Bob met Ann in May.", "Ann", "When was May?").endswith(
        "May."
    )


def test_gold_of_squad_is_the_sentence_with_the_answer(tmp_path: Path) -> None:
    (tmp_path / "ships").mkdir()
    (tmp_path / "ships" / "ships.json").write_text(json.dumps(SQUAD))
    data, questions = read_gold(tmp_path / "ships", 9)
    assert [passage.title for passage in data.passages] == ["Polar ships"]
    assert questions == [GoldQuestion("Where?", (BORN,))]


def test_a_sentence_is_found_however_it_is_escaped() -> None:
    question = GoldQuestion("?", ('He said "Fram,\nahead".', "It ran."))
    prompt = json.dumps({"chunk": 'Then he said "Fram,\nahead". It r\u00fcn.'})
    found = judge_prompt(question, prompt)
    assert (found.recall, found.missing) == (0.5, ("It ran.",))


def test_peers_are_given_the_recorded_extraction(folder: Path) -> None:
    extractor = OpenIEExtractor(folder / "openie.json")
    text = f"Fram\n\n{BUILT}"
    graph = as_graph(extractor.extract(Chunk("c", None, 0, 0, len(text), text, 0), "Fram"))
    limits = "Output at most 9 total rows, at most 9 entity rows, then <|COMPLETE|>"
    asked = f"{limits}\n---Input Text---\n```\n{text}\n```"
    rows = reply("", [{"role": "user", "content": asked}], lambda _: graph).splitlines()
    assert rows[-2].split("<|#|>")[:4] == ["relation", "Fram", "Colin Archer", "built by"]


@pytest.mark.slow
def test_a_run_prints_the_share_of_gold_sentences(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(
        data=folder,
        questions=9,
        misleading=9,
        articles=9,
        budgets="500,2000",
        modes="basic,graph",
        peers_modes="",
        readers="none",
        set=["embedding.provider=hashing"],
        misses=tmp_path / "misses.jsonl",
        **{"graphrag": "", "lightrag-hku": ""},
    )
    run(options, tmp_path / "work")
    [basic] = [line for line in capsys.readouterr().out.splitlines() if "| basic |" in line]
    assert basic.startswith("| basic | tgraph, reader none | 100.0 | 100.0 |")
    [miss] = map(json.loads, options.misses.read_text().splitlines())
    assert all(each.startswith("tgraph, reader none graph") for each in miss["missing"])
