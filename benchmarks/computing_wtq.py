"""Questions over tables that the mode ``sparql`` answers by a query, without a model.

Of WikiTableQuestions each table is indexed as a graph of its own, which a folder keeps for the next
run. An answer is right by the set's rule. Printed are how many of all questions are answered
rightly, with the best reading of each and with those that are likely enough; how many of the
likeliest half are right; and the figures by form.

    python -m benchmarks.computing wtq CLONE CACHE [--tables N] [--sample N] [--seed 1]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.computing_data import (
    TableQuestion,
    is_right,
    open_table,
    read_questions,
    values_of,
)
from tgraph.compute.computation import plan_query
from tgraph.compute.evaluation import read_result
from tgraph.compute.printing import print_query
from tgraph.errors import QueryError
from tgraph.retrieve.base import Context

SHARES = (0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: the likelihood of the best query, its form, whether its values are
    right, the CPU seconds of the plan, and whether the query is likely enough to be answered by."""

    likelihood: float
    form: str
    is_right: bool
    seconds: float
    is_answered: bool = False


def ask_question(question: TableQuestion, context: Context) -> Outcome:
    """Return the outcome of a question: of no query where none can be made."""
    start = time.process_time()
    plan = plan_query(question.text, context)
    seconds = time.process_time() - start
    if not plan.ranked:
        return Outcome(0.0, "none", False, seconds)
    best = plan.ranked[0]
    query = best.candidate.query
    try:
        values = values_of(query, read_result(context.store, print_query(query)), context)
    except QueryError:
        values = []
    is_answered = plan.chosen is not None
    form = type(query).__name__
    return Outcome(best.likelihood, form, is_right(question, values), seconds, is_answered)


def ask_tables(questions: Sequence[TableQuestion], folder: Path, cache: Path) -> Iterator[Outcome]:
    """Yield the outcome of each question, table by table."""
    ordered = sorted(questions, key=lambda question: question.table)
    for table, asked in groupby(ordered, key=lambda question: question.table):
        with open_table(folder, table, cache) as graph:
            context = graph.opened.context()
            graph.catalogue()
            for question in asked:
                yield ask_question(question, context)


def print_figures(outcomes: Sequence[Outcome]) -> None:
    """Print the figures of a set."""
    total = len(outcomes)
    right = sum(outcome.is_right for outcome in outcomes)
    print(f"{total} questions; the best reading is right of {right / total:.1%}")
    answered = [outcome for outcome in outcomes if outcome.is_answered]
    sure = sum(outcome.is_right for outcome in answered)
    print(
        f"answered: {len(answered) / total:.1%};"
        f" right of all asked {sure / total:.1%}, of those {sure / max(1, len(answered)):.1%}"
    )
    ordered = sorted(outcomes, key=lambda outcome: -outcome.likelihood)
    for share in SHARES:
        kept = ordered[: max(1, int(total * share))]
        rate = sum(outcome.is_right for outcome in kept) / len(kept)
        print(f"  likeliest {share:.0%}: {rate:.1%} right, from {kept[-1].likelihood:.2f}")
    forms: defaultdict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        forms[outcome.form].append(outcome)
    for form, group in sorted(forms.items(), key=lambda pair: -len(pair[1])):
        rate = sum(outcome.is_right for outcome in group) / len(group)
        print(f"  {form}: {len(group)}, {rate:.0%} right")
    seconds = sorted(outcome.seconds for outcome in outcomes)
    print(f"CPU s a plan: median {seconds[total // 2]:.3f}, greatest {seconds[-1]:.3f}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the set is asked with."""
    parser.add_argument("clone", type=Path, help="a clone of its repository")
    parser.add_argument("cache", type=Path, help="a folder for the graphs of tables")
    parser.add_argument("--split", default="pristine-unseen-tables")
    parser.add_argument("--tables", type=int, default=None, help="of so many tables")
    parser.add_argument("--sample", type=int, default=None, help="so many questions")
    parser.add_argument("--seed", type=int, default=1)


def run(given: argparse.Namespace) -> None:
    """Ask the questions of a split of WikiTableQuestions, or of a sample."""
    questions = read_questions(given.clone, given.split)
    chance = random.Random(given.seed)
    names = sorted({question.table for question in questions})
    chance.shuffle(names)
    kept = set(names[: given.tables])
    questions = [question for question in questions if question.table in kept]
    chance.shuffle(questions)
    questions = questions[: given.sample]
    print(f"{given.split}, {len(kept)} tables, seed {given.seed}")
    print_figures(list(ask_tables(questions, given.clone, given.cache)))
