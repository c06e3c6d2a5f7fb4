"""How well questions are answered without a language model, as a table.

    python benchmarks/answers.py [--data DIR] [--questions N]

The example corpus's own questions; with ``--data`` also N questions of MuSiQue (DIR holds
``musique_train.json``) over the paragraphs that belong to them, and as many questions of others,
whose paragraphs are left out, as unanswerable ones. An answer is right if it states every fact (for
MuSiQue the answer or an alias) and cites a document that it must.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tgraph

EXAMPLES = Path(__file__).parents[1] / "examples"


@dataclass(frozen=True, slots=True)
class Set:
    """Questions, those that have no answer, and the folder of documents to ask."""

    name: str
    documents: Path
    questions: list[dict[str, Any]]
    unanswerable: list[str]


def examples() -> Set:
    data = tomllib.loads((EXAMPLES / "questions.toml").read_text("utf-8"))
    unanswerable = [question["text"] for question in data["unanswerable"]]
    return Set("examples", EXAMPLES / "antarctica", data["question"], unanswerable)


def musique(file: Path, count: int, folder: Path) -> Set:
    """Every third question with its paragraphs, a file each."""
    data = json.loads(file.read_text("utf-8"))
    chosen = data[::3][:count]
    ids = {item["id"] for item in chosen}
    others = [item["question"] for item in data if item["id"] not in ids][:count]
    names: dict[str, str] = {}
    questions = []
    for item in chosen:
        gold = []
        for paragraph in item["paragraphs"]:
            text = f"# {paragraph['title']}\n\n{paragraph['paragraph_text']}\n"
            if text not in names:
                title = re.sub(r"\W+", "-", paragraph["title"])[:50].strip("-")
                names[text] = f"{title}-{len(names)}.md"
                (folder / names[text]).write_text(text, "utf-8")
            if paragraph["is_supporting"]:
                gold.append(names[text])
        facts = [[item["answer"], *item["answer_aliases"]]]
        questions.append({"text": item["question"], "facts": facts, "documents": gold})
    return Set("MuSiQue", folder, questions, others)


def states(question: dict[str, Any], text: str) -> bool:
    low = " ".join(text.split()).casefold()
    return all(any(fact.casefold() in low for fact in facts) for facts in question["facts"])


def cites(question: dict[str, Any], cited: set[str]) -> bool:
    some, every = set(question.get("documents", [])), set(question.get("documents_all", []))
    return every <= cited and (not some or bool(some & cited))


def measure(questions: Set) -> str:
    with tempfile.TemporaryDirectory() as folder, tgraph.open(folder, create=True) as kg:
        kg.index([questions.documents])
        stated = placed = right = 0
        began = time.process_time()
        for question in questions.questions:
            answer = kg.ask(question["text"], history=())
            fact = states(question, answer.text)
            place = cites(question, {Path(source.path).name for source in answer.sources})
            stated, placed, right = stated + fact, placed + place, right + (fact and place)
        admitted = sum(kg.ask(text, history=()).no_evidence for text in questions.unanswerable)
        asked = len(questions.questions) + len(questions.unanswerable)
        seconds = (time.process_time() - began) / asked
    total = len(questions.questions)
    return (
        f"| {questions.name} | {right}/{total} | {stated}/{total} | {placed}/{total}"
        f" | {admitted}/{len(questions.unanswerable)} | {seconds:.3f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--questions", type=int, default=32)
    arguments = parser.parse_args()
    print("| set | right | fact stated | place cited | no evidence said | CPU s a question |")
    print("|---|---|---|---|---|---|")
    print(measure(examples()), flush=True)
    if arguments.data:
        with tempfile.TemporaryDirectory() as folder:
            file = arguments.data / "musique_train.json"
            print(measure(musique(file, arguments.questions, Path(folder))))


if __name__ == "__main__":
    main()
