"""How well a question is answered that comes after others in a conversation.

    python -m benchmarks.conversations --corpus DIR --questions FILE.toml
        [--mode auto --mode local ...] [--graph DIR] [--seed 0] [--turns 2]

The questions are those of ``benchmarks.answers``. Each is asked alone, and then after others of the
same set, drawn by the seed, with the answers that these had. What it loses by that, it should not:
it says all that it asks. ``answered`` counts the questions on the whole that get an answer.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import tgraph
from benchmarks.answers import Judged, QuestionSet, judge, part, read_questions
from tgraph.model import Turn

MODES = ("auto", "local", "ppr")
COLUMNS = ("right", "wrongly refused", "whole answered", "unanswerable refused")


def both(
    questions: QuestionSet, kg: tgraph.KnowledgeGraph, mode: str, turns: int, seed: int
) -> tuple[list[Judged], list[Judged]]:
    """How each question fares alone, and after others."""
    drawn = random.Random(seed)
    alone, after, told = [], [], {}
    for asked in questions.questions:
        answer = kg.ask(asked.text, mode, history=())
        told[asked.text] = Turn(asked.text, answer.text)
        alone.append(judge(asked, answer, questions.documents))
    for asked in questions.questions:
        others = [turn for text, turn in told.items() if text != asked.text]
        answer = kg.ask(asked.text, mode, history=drawn.sample(others, min(turns, len(others))))
        after.append(judge(asked, answer, questions.documents))
    return alone, after


def figures(judged: Sequence[Judged]) -> tuple[str, ...]:
    """The columns."""
    gold = [each for each in judged if each.kind == "answerable"]
    return (
        part(each.right for each in gold),
        part(each.refused for each in gold),
        part(not each.refused for each in judged if each.kind == "whole"),
        part(each.refused for each in judged if each.kind in ("near", "far")),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument("--mode", action="append", dest="modes")
    parser.add_argument("--graph", type=Path, help="where the index is kept and found again")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    questions = read_questions(options.questions.stem, options.corpus, options.questions)
    print(f"| mode | asked | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 2)}|")
    with contextlib.ExitStack() as stack:
        root = options.graph or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kg = stack.enter_context(tgraph.open(root, create=True))
        kg.index([questions.documents])
        for mode in options.modes or MODES:
            found = both(questions, kg, mode, options.turns, options.seed)
            for how, judged in zip(("alone", f"after {options.turns}"), found, strict=True):
                print(f"| {mode} | {how} | {' | '.join(figures(judged))} |", flush=True)


if __name__ == "__main__":
    main()
