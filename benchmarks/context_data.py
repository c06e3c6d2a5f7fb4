"""Questions with the sentences that their answers stand in: what ``benchmarks.context`` looks for.

- MuSiQue in HippoRAG's layout: of each step's supporting paragraph the sentence that holds the
  step's answer; of several, the one that shares most words with the step's question. The documents
  are the supporting paragraphs of the questions, and the first of those that mislead, so many for
  each question.
- SQuAD: the sentence that holds the first answer, of a sample (fixed seed) of the answerable
  questions; the documents are all paragraphs of the first articles.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.retrieval_data import DataSet, Passage, find_openie
from tgraph.errors import UsageError
from tgraph.ingest.sentences import sentences

_STEP = re.compile(r"#(\d+)")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """A question, and the sentences that it takes to answer it."""

    text: str
    sentences: tuple[str, ...]


def read_gold(
    folder: Path, count: int, misleading: int = 20, articles: int = 100
) -> tuple[DataSet, list[GoldQuestion]]:
    """The documents and the questions of a data set, ``count`` of them, or all where it has less;
    ``misleading`` paragraphs at most stand beside those that support a question, and of so many
    ``articles`` are paragraphs taken.

    Raises ``UsageError`` for a folder in neither format."""
    if corpora := sorted(folder.glob("*_corpus.json")):
        return _musique(corpora[0], count, misleading)
    if (file := folder / f"{folder.name}.json").is_file():
        return _squad(file, count, articles)
    raise UsageError(f"{folder} holds no data set.", "See the head of context_data.py.")


def _musique(corpus: Path, count: int, misleading: int) -> tuple[DataSet, list[GoldQuestion]]:
    file = corpus.with_name(corpus.name.replace("_corpus", ""))
    rows = json.loads(file.read_text("utf-8"))[:count]
    kept = [
        part
        for row in rows
        for supports in (True, False)
        for part in [p for p in row["paragraphs"] if p["is_supporting"] == supports][
            : None if supports else misleading
        ]
    ]
    shown = dict.fromkeys((part["title"], part["paragraph_text"]) for part in kept)
    passages = tuple(
        Passage(f"p{place}", title, text) for place, (title, text) in enumerate(shown) if text
    )
    questions = [GoldQuestion(row["question"], tuple(_step_sentences(row))) for row in rows]
    data = DataSet(corpus.parent.name, passages, (), find_openie(corpus.parent))
    return data, questions


def _step_sentences(row: Mapping[str, Any]) -> list[str]:
    """The sentence of each step, each once."""
    paragraphs = {part["idx"]: part["paragraph_text"] for part in row["paragraphs"]}
    steps = row["question_decomposition"]
    answers = {str(place): step["answer"] for place, step in enumerate(steps, 1)}
    found = []
    for step in steps:
        asked = _STEP.sub(lambda match: answers.get(match[1], ""), step["question"])
        paragraph = paragraphs[step["paragraph_support_idx"]]
        found.append(find_sentence(paragraph, step["answer"], asked))
    return list(dict.fromkeys(found))


def find_sentence(text: str, answer: str, question: str) -> str:
    """The sentence with the answer (any, where none has it) and most words of the question."""
    listed = [text[start:end] for start, end in sentences(text)]
    holding = [sentence for sentence in listed if answer.casefold() in sentence.casefold()]
    asked = set(_WORD.findall(question.casefold()))
    return max(
        holding or listed,
        key=lambda sentence: len(asked & set(_WORD.findall(sentence.casefold()))),
    )


def _squad(file: Path, count: int, articles: int) -> tuple[DataSet, list[GoldQuestion]]:
    passages: list[Passage] = []
    questions: list[GoldQuestion] = []
    for article in json.loads(file.read_text("utf-8"))["data"][:articles]:
        for part in article["paragraphs"]:
            title = article["title"].replace("_", " ")
            passages.append(Passage(f"p{len(passages)}", title, part["context"]))
            questions += [
                GoldQuestion(asked["question"], (_sentence_at(part["context"], asked["answers"]),))
                for asked in part["qas"]
                if asked["answers"]
            ]
    drawn = random.Random(0).sample(questions, min(count, len(questions)))
    return DataSet(file.parent.name, tuple(passages), ()), drawn


def _sentence_at(text: str, answers: list[dict[str, Any]]) -> str:
    at = answers[0]["answer_start"]
    return next(text[start:end] for start, end in sentences(text) if at < end)
