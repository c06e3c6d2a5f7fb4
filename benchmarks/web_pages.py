"""How well single facts of raw web pages are found without a language model.

    python -m benchmarks.web_pages DIR TOPIC... [--mode graph] [--others N] [--graphs DIR]
        [--json FILE]

DIR is a copy of WildGraphBench (https://github.com/BstWPY/WildGraphBench, arXiv:2602.02053,
licence Apache-2.0), which tgraph doesn't hold: ``git clone`` it. TOPIC is a folder of its
``corpus`` and ``QA``. What is indexed are the web pages that a Wikipedia article refers to, as a
scraper wrote them (Markdown with menus, notices, contents and reference lists); the article itself
is left out. Asked are the questions of the type ``single-fact``.

What is printed for each topic:

- right: the quoted answer contains the fact. The fact is what the gold answer says beyond the
  question: all its numbers, all its names, and at least half of its other words (by stem).
- right first: the same of the first quoted sentence.
- cites: a page is cited that the gold answer was written from, where that page is there.
- refused: no answer.
- furniture: answers that quote a reference list, contents, a menu or a licence.

It is strict with words and lenient with how they are put together, so read the answers
(``--json``) before anything is concluded from a few questions. ``--others N`` indexes beside the
pages that questions are about only N of the others, of at most 100,000 bytes, drawn by the hash of
their names. ``--graphs`` keeps the indexes there and uses them again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tgraph
from benchmarks.answers import part
from tgraph.errors import UsageError
from tgraph.model import Answer
from tgraph.retrieve.text.lexical import STOP_WORDS, stem, words
from tgraph.retrieve.text.sentence_ranking import ASIDE

LEAST_WORDS = 0.5
"""The share of the gold answer's other words that must be quoted."""
_NUMBER = re.compile(r"\d(?:[\d,.  ]*\d)?")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]+")
_COUNTS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_LARGEST = 100_000
_APART = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class SingleFact:
    """A question, its gold answer, and the files of the pages that the answer was written from."""

    text: str
    gold: str
    pages: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Judged:
    """A question's answer, and how it fares; ``missing`` is what the quotes lack of the fact."""

    question: str
    gold: str
    answer: str
    first: str
    short: str
    confidence: float | None
    refused: bool
    right: bool
    right_first: bool
    cites: bool | None
    furniture: bool
    missing: tuple[str, ...] = field(default=())
    documents: tuple[str, ...] = field(default=())
    cpu: float = 0.0
    session: str = ""


# --- the benchmark's files ------------------------------------------------------------------------


def read_topic(data: Path, topic: str) -> tuple[Path, list[SingleFact]]:
    """The folder of a topic's pages, and its questions on single facts."""
    folders = sorted((data / "corpus" / topic).glob("*/reference_pages"))
    if not folders:
        raise UsageError(f"{data} has no pages of {topic}.")
    titles = _page_titles(folders[0].parent / "references.jsonl")
    files = {_APART.sub("", path.stem.casefold()): path.name for path in folders[0].iterdir()}
    questions = []
    for row in _read_rows(data / "QA" / topic / "questions.jsonl"):
        if row["question_type"] == ["single-fact"]:
            keys = [_APART.sub("", titles.get(url, "").casefold()) for url in row["ref_urls"]]
            pages = [name for key in keys for name in _find_files(key, files)]
            questions.append(SingleFact(row["question"], row["answer"], frozenset(pages)))
    return folders[0], questions


def choose_pages(folder: Path, questions: Sequence[SingleFact], others: int | None) -> list[Path]:
    """The pages to index: all, or those of the questions and some others."""
    if others is None:
        return [folder]
    asked = frozenset[str]().union(*(question.pages for question in questions))
    rest = [
        path
        for path in folder.iterdir()
        if path.name not in asked and path.stat().st_size <= _LARGEST
    ]
    rest.sort(key=lambda path: hashlib.sha256(path.name.encode()).digest())
    return [*(folder / name for name in sorted(asked)), *rest[:others]]


def _read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def _page_titles(file: Path) -> dict[str, str]:
    rows = _read_rows(file)
    return {row[key]: row["title"] for row in rows for key in ("url", "archive_url") if row[key]}


def _find_files(title: str, files: dict[str, str]) -> list[str]:
    """The files named after a title, which may be cut."""
    return [name for key, name in files.items() if title and key and title.startswith(key)]


# --- judging --------------------------------------------------------------------------------------


def find_missing(asked: SingleFact, quoted: str) -> list[str]:
    """What a quoted text lacks of the fact; empty where it states the fact."""
    question, gold, text = (_Words(each) for each in (asked.text, asked.gold, quoted))
    exact = [*sorted(gold.numbers - question.numbers), *sorted(gold.names - question.stems)]
    missing = [each for each in exact if each not in text.numbers | text.stems]
    told = sorted(gold.stems - question.stems - gold.names - set(exact)) or sorted(gold.stems)
    lacking = [each for each in told if each not in text.stems]
    return missing + (lacking if len(told) - len(lacking) < LEAST_WORDS * len(told) else [])


class _Words:
    """The numbers, stems and stems of names of a text."""

    def __init__(self, text: str) -> None:
        low = [word for word in words(text) if not word[0].isdigit()]
        self.numbers = {re.sub(r"[,  ]", "", number) for number in _NUMBER.findall(text)}
        self.numbers |= {str(_COUNTS.index(word)) for word in low if word in _COUNTS}
        said = [word for word in low if word not in STOP_WORDS and word not in _COUNTS]
        self.stems = {stem(word) for word in said if len(word) > 1}
        self.names = {stem(word) for name in _NAME.findall(text) for word in words(name)}
        self.names &= self.stems


def judge(asked: SingleFact, answer: Answer, cpu: float = 0.0) -> Judged:
    """How an answer fares."""
    first = answer.sentences[0].text if answer.sentences else ""
    text = "" if answer.no_evidence else answer.text
    cited = {Path(source.path).name for source in answer.sources}
    missing = find_missing(asked, text)
    return Judged(
        question=asked.text,
        gold=asked.gold,
        answer=answer.text,
        first=first,
        short=answer.short,
        confidence=answer.confidence,
        refused=answer.no_evidence,
        right=not missing,
        right_first=bool(text) and not find_missing(asked, first),
        cites=bool(asked.pages & cited) if asked.pages else None,
        furniture=any(
            citation.segment_kind in ASIDE
            for sentence in answer.sentences
            for citation in sentence.citations
        ),
        missing=tuple(missing),
        documents=tuple(sorted(cited)),
        cpu=cpu,
        session=answer.session,
    )


def ask_all(
    questions: Sequence[SingleFact], kg: tgraph.KnowledgeGraph, mode: str
) -> Iterator[Judged]:
    """Each question's answer, judged, as it comes."""
    for asked in questions:
        began = time.process_time()
        answer = kg.ask(asked.text, mode, history=())
        yield judge(asked, answer, time.process_time() - began)


def figures(topic: str, judged: Sequence[Judged]) -> dict[str, str]:
    """The table's row, by column."""
    return {
        "topic": topic,
        "right": part(each.right for each in judged),
        "right first": part(each.right_first for each in judged),
        "cites": part(each.cites for each in judged if each.cites is not None),
        "refused": part(each.refused for each in judged),
        "furniture": part(each.furniture for each in judged),
        "CPU s a question": f"{sum(each.cpu for each in judged) / max(1, len(judged)):.2f}",
    }


def measure(
    data: Path, topic: str, mode: str, root: Path, others: int | None = None
) -> list[Judged]:
    """The answers to a topic's questions."""
    folder, questions = read_topic(data, topic)
    pages = choose_pages(folder, questions, others)
    with tgraph.open(root, create=True) as kg:
        report = kg.index(pages)
        if report.failed:
            raise report.failed[0]
        return list(ask_all(questions, kg, mode))


def print_table(rows: Iterable[dict[str, str]]) -> None:
    """Print rows under their columns, as Markdown."""
    for place, row in enumerate(rows):
        if not place:
            print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
        print("| " + " | ".join(row.values()) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("topics", nargs="+")
    parser.add_argument("--mode", default="graph")
    parser.add_argument("--others", type=int, help="pages beside those asked about; without, all")
    parser.add_argument("--graphs", type=Path, help="where the indexes are kept and found again")
    parser.add_argument("--json", type=Path, help="where all answers are written")
    options = parser.parse_args()
    answers: dict[str, list[Judged]] = {}
    with contextlib.ExitStack() as stack:
        graphs = options.graphs or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for topic in options.topics:
            answers[topic] = measure(
                options.data, topic, options.mode, graphs / topic, options.others
            )
    print_table(figures(topic, judged) for topic, judged in answers.items())
    if options.json is not None:
        rows = {topic: list(map(asdict, judged)) for topic, judged in answers.items()}
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    main()
