"""Questions of an analyst over twelve public files, computed without a model.

    python -m benchmarks.computing own --data DIR [--questions FILE] [--mode auto] [--graphs DIR]

The questions, their gold answers and where the files come from are in ``computing_questions.toml``,
others over ten other files in ``computing_paraphrases.toml``; the data are not in this repository.
DIR holds each file under its ``name`` there. A table is indexed, an RDF graph imported, each in a
graph of its own, which ``--graphs`` keeps for the next run; in the mode ``sparql``, which needs
none, vectors are hashed. ``--misses`` prints what was not right.

A question is right whose computed result has the gold answer: a number within a thousandth, all
names of a list and no other, yes or no, or each group with its number. An answer that was not
computed (the mode ``auto`` may quote passages) is quoted, or uncertain where it says that the
documents may not answer, and isn't judged further. Of an unanswerable question right is a refusal
alone. Printed are the verdicts for each form, for each file, and for the ten questions that stand
for all.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tgraph
from benchmarks.computing_data import open_indexed
from tgraph.engine.graph import KnowledgeGraph
from tgraph.extensions.interchange import import_graph

QUESTIONS = Path(__file__).with_name("computing_questions.toml")
VERDICTS = ("right", "wrong", "refused", "quoted", "uncertain")


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question with its gold answer; an unanswerable one has none."""

    file: str
    text: str
    form: str
    gold: float | tuple[str, ...] | None
    is_of_ten: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What a question was answered with: the table of the result, where one was computed."""

    text: str
    verdict: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    places: int = 1


def read_questions(path: Path) -> list[OwnQuestion]:
    """Return the questions of a file."""
    return [
        OwnQuestion(
            entry["file"],
            entry["text"],
            entry["form"],
            read_gold(entry),
            entry.get("ten", False),
        )
        for entry in tomllib.loads(path.read_text("utf-8"))["question"]
    ]


def read_gold(entry: dict[str, Any]) -> float | tuple[str, ...] | None:
    """Return the gold answer of an entry; raise ``KeyError`` where an answerable one has none."""
    if entry.get("unanswerable"):
        return None
    gold = entry["gold"]
    return tuple(gold) if isinstance(gold, list) else float(gold)


# --- asking -----------------------------------------------------------------------------------


def open_file(path: Path, graphs: Path, mode: str) -> KnowledgeGraph:
    """Return the graph of a file, which is made at the first use."""
    root = graphs / mode / path.name
    done = root.with_name(f"{path.name}.done")
    root.parent.mkdir(parents=True, exist_ok=True)
    open_root = open_indexed if mode == "sparql" else tgraph.open
    if done.exists():
        return open_root(root)
    graph = open_root(root, create=True)
    if path.suffix != ".ttl":
        graph.index([path])
    else:
        import_graph(graph, [path])
    done.touch()
    return graph


def ask_question(graph: KnowledgeGraph, text: str, mode: str) -> Result:
    """Return what a question is answered with."""
    answer = graph.ask(text, mode)
    computed = None if answer.no_evidence else graph.trace(answer.session).computed
    if computed is None:
        return Result(answer.text, answer.verdict, (), ())
    rows = tuple(tuple(cell.text for cell in row.cells) for row in computed.rows)
    asked = re.search(r"places=(\d+)", computed.algebra)
    places = int(asked[1]) if asked else 1
    return Result(answer.text, answer.verdict, tuple(computed.columns), rows, places)


# --- the rule ---------------------------------------------------------------------------------


def judge(question: OwnQuestion, result: Result) -> str:
    """Return the verdict on a result."""
    if result.verdict == "no_evidence":
        return "right" if question.gold is None else "refused"
    if not result.columns:
        return "uncertain" if result.verdict == "uncertain" else "quoted"
    if question.gold is None:
        return "wrong"
    if isinstance(question.gold, float):
        return "right" if has_number(question, result, question.gold) else "wrong"
    gold = {normalise(text) for text in question.gold}
    return "right" if any(gold == said for said in readings(question, result)) else "wrong"


def has_number(question: OwnQuestion, result: Result, gold: float) -> bool:
    """Return whether the only or first row has the number. Of different values it is the last, of a
    share that of the two, of a difference that between two rows."""
    cells = result.rows[0] if result.rows else ()
    if question.form == "count of different":
        cells = cells[-1:]
    found = [number for text in cells if (number := read_number(text)) is not None]
    if question.form == "share" and len(found) == 2 and found[1]:
        found.append(found[0] / found[1])
    if question.form == "difference" and len(result.rows) == 2:
        one, other = (read_number(row[-1]) for row in result.rows)
        found += [abs(one - other)] if one is not None and other is not None else []
    scale = (1.0, 100.0) if question.form == "share" else (1.0,)
    return any(math.isclose(n * k, gold, rel_tol=1e-3, abs_tol=1e-6) for n in found for k in scale)


def readings(question: OwnQuestion, result: Result) -> Iterator[set[str]]:
    """Yield what a table can be read as: its first or its last column, or both as groups.

    Of the most and the least only the rows count that share the values of the places asked."""
    rows = result.rows
    if question.gold in (("yes",), ("no",)):
        yield {normalise(result.text.split(":")[0].split(".")[0])}
        return
    if question.form == "group":
        yield {normalise(f"{row[0]}: {write_number(row[-1])}") for row in rows}
        return
    if question.form in ("most", "least", "group with the most", "earliest", "latest", "top"):
        values = list(dict.fromkeys(row[1:] for row in rows))[: result.places]
        rows = tuple(row for row in rows if row[1:] in values)
    yield {normalise(row[0]) for row in rows}
    yield {normalise(row[-1]) for row in rows}


def read_number(text: str) -> float | None:
    """Return the number that a text begins with as a whole word."""
    try:
        return float(text.replace(",", "").removesuffix("%").strip())
    except ValueError:
        return None


def write_number(text: str) -> str:
    """Return a number to six digits; another text unchanged."""
    number = read_number(text)
    return text if number is None else f"{number:.6g}"


def normalise(text: str) -> str:
    """Return a text as it is compared."""
    return " ".join(text.casefold().replace("-", " ").split())


# --- what is printed --------------------------------------------------------------------------


def print_counts(title: str, counted: Iterable[tuple[str, str]]) -> None:
    """Print a line of verdicts for each key."""
    counts = Counter(counted)
    print(f"\n{title:32}" + "".join(f"{verdict:>10}" for verdict in VERDICTS))
    for key in dict.fromkeys(key for key, _ in counts):
        print(f"{key:32}" + "".join(f"{counts[key, verdict]:10}" for verdict in VERDICTS))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the set is asked with."""
    parser.add_argument("--data", type=Path, required=True, help="the folder of the files")
    parser.add_argument("--graphs", type=Path, help="keep the graphs here")
    parser.add_argument("--mode", default="sparql", help="sparql or auto")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="the file of questions")
    parser.add_argument("--misses", action="store_true")


def run(options: argparse.Namespace) -> None:
    """Ask all questions, and print the verdicts."""
    questions = read_questions(options.questions)
    verdicts: dict[OwnQuestion, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        graphs = options.graphs or Path(folder)
        for name in dict.fromkeys(question.file for question in questions):
            with open_file(options.data / name, graphs, options.mode) as graph:
                for question in (q for q in questions if q.file == name):
                    result = ask_question(graph, question.text, options.mode)
                    verdict = verdicts[question] = judge(question, result)
                    if options.misses and verdict != "right":
                        print(f"{verdict}: {question.text} [{name}]\n    {result.text[:300]}")
                        print(f"    gold: {str(question.gold)[:200]}")
    judged = verdicts.items()
    print_counts("form", ((question.form, verdict) for question, verdict in judged))
    print_counts("file", ((question.file, verdict) for question, verdict in judged))
    print_counts("the ten", (("", verdict) for question, verdict in judged if question.is_of_ten))
    figures = {
        kind: dict(Counter(v for q, v in judged if (q.gold is None) == (kind == "unanswerable")))
        for kind in ("answerable", "unanswerable")
    }
    print(f"\n{json.dumps(figures)}")
