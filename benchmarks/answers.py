"""How well questions are answered without a language model: rightness, refusals and confidence.

    python -m benchmarks.answers examples
    python -m benchmarks.answers squad_dev --data DIR [--articles odd|even|all] [--count 150]
    python -m benchmarks.answers musique_train --data DIR [--count 32]
    python -m benchmarks.answers --corpus DIR --questions FILE.toml
        [--mode graph] [--graph DIR] [--json FILE] [--seed 0]

A corpus is a folder; its questions are a TOML file like ``examples/questions.toml``:

- ``[[question]]`` has an answer: ``text``, ``facts`` (each inner list has one string that must be
  stated), ``documents`` (one must be cited) or ``documents_all`` (all must), ``hops`` (how many
  places must be put together).
- ``[[unanswerable]]`` has none: ``text`` and ``kind``; near names what the corpus knows and asks
  what it does not say, far is of another subject (the same as no kind).
- ``[[whole]]`` is about all of it: ``text`` and ``topics`` (inner lists, as facts).

What is printed:

- right: every fact is in the answer, and what must be cited is cited; right first: the same, with
  every fact in the first quoted sentence; two places: right, of the questions with ``hops`` over 1.
- cites: what must be cited is cited; wrongly refused: no answer where there is one.
- near, far: refused, of the unanswerable ones of that kind.
- refused at 10 %: of all unanswerable ones, how many are refused by the confidence at which no more
  than a tenth of the answerable ones is refused (a refusal has confidence 0).
- whole: answers that state at least half of the topics, and the share of topics that they state.
- the calibration of confidence: where an answer says how sure it is, the Brier score of that
  against being right (an answer to an unanswerable question never is), and a table of five bins.
- CPU seconds of this process, for the index and for a question.

``--graph`` keeps the index there and uses it again. ``squad_dev`` has one document for each article
of SQuAD 2.0's development set (DIR holds ``squad_dev.json``), a sample of N answerable and of N
unanswerable questions, which are near; odd are titles[1::2]. ``musique_train`` is every third
question of MuSiQue (``musique_train.json``) with its paragraphs, a file each, and as many questions
of others, whose paragraphs are left out, so far.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import statistics
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import tgraph
from tgraph.errors import UsageError
from tgraph.model import Answer

EXAMPLES = Path(__file__).parents[1] / "examples"
HISTORY: tuple[Any, ...] = ()
LOST = 0.1
"""The share of the answerable questions that a threshold may refuse."""
BINS = 5


# --- questions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A question; ``kind`` is answerable, near, far or whole. ``facts`` are the topics of a whole
    one."""

    text: str
    kind: str
    facts: tuple[tuple[str, ...], ...] = ()
    some: frozenset[str] = frozenset()
    every: frozenset[str] = frozenset()
    hops: int = 1

    @property
    def gold(self) -> bool:
        """Whether there is an answer to be judged by its facts."""
        return self.kind == "answerable"


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions and the folder of documents that they are put to."""

    name: str
    documents: Path
    questions: tuple[Asked, ...]


def read_questions(name: str, documents: Path, file: Path) -> QuestionSet:
    """The questions of a TOML file. ``UsageError`` where one names a document that is not there."""
    data = tomllib.loads(file.read_text("utf-8"))
    questions = [
        *(_asked(question, "answerable", "facts") for question in data.get("question", ())),
        *(_asked(q, q.get("kind", "far"), "facts") for q in data.get("unanswerable", ())),
        *(_asked(question, "whole", "topics") for question in data.get("whole", ())),
    ]
    for missing in sorted({d for q in questions for d in q.some | q.every}):
        if not (documents / missing).is_file():
            raise UsageError(f"{file} names {missing}, which is not in {documents}.")
    return QuestionSet(name, documents, tuple(questions))


def _asked(question: dict[str, Any], kind: str, facts: str) -> Asked:
    return Asked(
        question["text"],
        kind,
        tuple(tuple(alternatives) for alternatives in question.get(facts, ())),
        frozenset(question.get("documents", ())),
        frozenset(question.get("documents_all", ())),
        question.get("hops", 1),
    )


def examples() -> QuestionSet:
    """The example corpus and its own questions."""
    return read_questions("examples", EXAMPLES / "antarctica", EXAMPLES / "questions.toml")


def squad_dev(
    data: Path, folder: Path, articles: str = "odd", count: int = 150, seed: int = 0
) -> QuestionSet:
    """Questions of SQuAD 2.0, drawn by the seed; each article becomes a file of the folder."""
    parts = {"odd": slice(1, None, 2), "even": slice(0, None, 2), "all": slice(None)}
    chosen = json.loads((data / "squad_dev.json").read_text("utf-8"))["data"][parts[articles]]
    found: list[Asked] = []
    for article in chosen:
        name = f"{_file_name(article['title'])}.md"
        paragraphs = [paragraph["context"] for paragraph in article["paragraphs"]]
        title = article["title"].replace("_", " ")
        (folder / name).write_text("\n\n".join([f"# {title}", *paragraphs]) + "\n", "utf-8")
        for question in (qa for paragraph in article["paragraphs"] for qa in paragraph["qas"]):
            if question["is_impossible"]:
                found.append(Asked(question["question"], "near"))
            else:
                facts = tuple(dict.fromkeys(answer["text"] for answer in question["answers"]))
                some = frozenset([name])
                found.append(Asked(question["question"], "answerable", (facts,), some))
    generator = random.Random(seed)
    drawn = [
        asked
        for gold in (True, False)
        for asked in _drawn(generator, [asked for asked in found if asked.gold is gold], count)
    ]
    return QuestionSet(f"squad_dev {articles}", folder, tuple(drawn))


def musique_train(data: Path, folder: Path, count: int = 32) -> QuestionSet:
    """Every third question of MuSiQue; its paragraphs become files of the folder."""
    rows = json.loads((data / "musique_train.json").read_text("utf-8"))
    chosen = rows[::3][:count]
    ids = {row["id"] for row in chosen}
    others = [row["question"] for row in rows if row["id"] not in ids][:count]
    names: dict[str, str] = {}
    found = []
    for row in chosen:
        gold = []
        for paragraph in row["paragraphs"]:
            text = f"# {paragraph['title']}\n\n{paragraph['paragraph_text']}\n"
            if text not in names:
                names[text] = f"{_file_name(paragraph['title'])}-{len(names)}.md"
                (folder / names[text]).write_text(text, "utf-8")
            if paragraph["is_supporting"]:
                gold.append(names[text])
        facts = ((row["answer"], *row["answer_aliases"]),)
        found.append(
            Asked(row["question"], "answerable", facts, frozenset(gold), hops=len(gold) or 1)
        )
    return QuestionSet("musique_train", folder, (*found, *(Asked(q, "far") for q in others)))


def _file_name(title: str) -> str:
    return re.sub(r"\W+", "-", title)[:50].strip("-")


def _drawn(generator: random.Random, asked: Sequence[Asked], count: int) -> list[Asked]:
    return generator.sample(list(asked), min(count, len(asked)))


# --- answers ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """A question's answer, and how it fares; ``topics`` is the share of them that it states."""

    question: str
    kind: str
    hops: int
    answer: str
    first: str
    short: str
    confidence: float | None
    refused: bool
    states: bool
    states_first: bool
    cites: bool
    topics: float
    documents: tuple[str, ...] = field(default=())
    cpu: float = 0.0
    session: str = ""

    @property
    def right(self) -> bool:
        return self.states and self.cites

    @property
    def right_first(self) -> bool:
        return self.states_first and self.cites


def judge(asked: Asked, answer: Answer, documents: Path, cpu: float = 0.0) -> Judged:
    """How an answer fares; an unanswerable question is never right."""
    cited = _cited(answer, documents)
    first = answer.sentences[0].text if answer.sentences else ""
    share = _share(asked.facts, answer.text) if answer.sentences else 0.0
    return Judged(
        question=asked.text,
        kind=asked.kind,
        hops=asked.hops,
        answer=answer.text,
        first=first,
        short=answer.short,
        confidence=answer.confidence,
        refused=answer.no_evidence,
        states=asked.gold and share == 1.0,
        states_first=asked.gold and _share(asked.facts, first) == 1.0,
        cites=asked.gold and asked.every <= cited and (not asked.some or bool(asked.some & cited)),
        topics=share if asked.kind == "whole" else 0.0,
        documents=tuple(sorted(cited)),
        cpu=cpu,
        session=answer.session,
    )


def _cited(answer: Answer, documents: Path) -> frozenset[str]:
    """The documents that an answer cites, relative to the folder."""
    root = documents.resolve()
    paths = [Path(source.path).resolve() for source in answer.sources]
    return frozenset(
        path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        for path in paths
    )


def _share(facts: Sequence[Sequence[str]], text: str) -> float:
    low = " ".join(text.split()).casefold()
    stated = [any(fact.casefold() in low for fact in alternatives) for alternatives in facts]
    return sum(stated) / len(stated) if stated else 1.0


def ask_all(questions: QuestionSet, kg: tgraph.KnowledgeGraph, mode: str) -> Iterator[Judged]:
    """Each question's answer, judged, as it comes. The first is asked twice, for it opens what the
    others find open."""
    for place, asked in enumerate((*questions.questions[:1], *questions.questions)):
        began = time.process_time()
        answer = kg.ask(asked.text, mode, history=HISTORY)
        spent = time.process_time() - began
        if place:
            yield judge(asked, answer, questions.documents, spent)


# --- figures ------------------------------------------------------------------------------------


def part(found: Iterable[bool]) -> str:
    """How many hold, of how many; empty where there are none."""
    held = list(found)
    return f"{sum(held)}/{len(held)}" if held else ""


def figures(judged: Sequence[Judged]) -> dict[str, str]:
    """The table's row, by column."""
    gold = [each for each in judged if each.kind == "answerable"]
    whole = [each for each in judged if each.kind == "whole"]
    mean = f" ({statistics.fmean(each.topics for each in whole):.0%})" if whole else ""
    return {
        "right": part(each.right for each in gold),
        "right first": part(each.right_first for each in gold),
        "two places": part(each.right for each in gold if each.hops > 1),
        "cites": part(each.cites for each in gold),
        "wrongly refused": part(each.refused for each in gold),
        "near": part(each.refused for each in judged if each.kind == "near"),
        "far": part(each.refused for each in judged if each.kind == "far"),
        "refused at 10 %": refused_at(judged),
        "whole": part(each.topics >= 0.5 for each in whole) + mean,
        "CPU s a question": f"{statistics.fmean(each.cpu for each in judged):.3f}",
    }


def sureness(each: Judged) -> float | None:
    """The confidence that counts: 0 of a refusal, None where nobody says."""
    return 0.0 if each.refused else each.confidence


def refused_at(judged: Sequence[Judged]) -> str:
    """Of the unanswerable ones, how many a threshold refuses that costs a tenth of the others;
    empty where an answer has no confidence."""
    gold = [sureness(each) for each in judged if each.kind == "answerable"]
    none = [sureness(each) for each in judged if each.kind in ("near", "far")]
    if not gold or not none or None in gold or None in none:
        return ""
    least = sorted(value for value in gold if value is not None)[int(len(gold) * LOST)]
    return part(value is not None and value < least for value in none)


def calibration(judged: Sequence[Judged]) -> str:
    """The Brier score of the answers' confidence and a table of five bins; empty where none has
    one. Answers to whole questions have no right and wrong, so they are left out."""
    said = [
        (each.confidence, each.right)
        for each in judged
        if each.confidence is not None and not each.refused and each.kind != "whole"
    ]
    if not said:
        return ""
    brier = statistics.fmean((confidence - right) ** 2 for confidence, right in said)
    lines = [
        f"Confidence of {len(said)} answers: Brier score {brier:.3f}",
        "",
        "| confidence | answers | mean confidence | right |",
        "|---|---|---|---|",
    ]
    for low in range(BINS):
        held = [(c, r) for c, r in said if min(int(c * BINS), BINS - 1) == low]
        if held:
            mean = statistics.fmean(confidence for confidence, _ in held)
            right = statistics.fmean(right for _, right in held)
            span = f"{low / BINS:.1f} to {(low + 1) / BINS:.1f}"
            lines.append(f"| {span} | {len(held)} | {mean:.2f} | {right:.2f} |")
    return "\n".join(lines)


def table(name: str, mode: str, judged: Sequence[Judged], index: float) -> str:
    """One row of figures under its heading, as Markdown, and what is known of confidence."""
    cells = {"set": name, "mode": mode, **figures(judged), "CPU s index": f"{index:.1f}"}
    lines = [" | ".join(cells), "|".join("---" for _ in cells), " | ".join(cells.values())]
    row = "\n".join([f"| {lines[0]} |", f"|{lines[1]}|", f"| {lines[2]} |"])
    return "\n\n".join(filter(None, [row, calibration(judged)]))


# --- the command --------------------------------------------------------------------------------


def measure(questions: QuestionSet, mode: str, root: Path) -> tuple[list[Judged], float]:
    """The answers, and the CPU seconds of the index (0: it was there)."""
    began = time.process_time()
    with tgraph.open(root, create=True) as kg:
        report = kg.index([questions.documents])
        if report.failed:
            raise report.failed[0]
        spent = time.process_time() - began if report.indexed else 0.0
        return list(ask_all(questions, kg, mode)), spent


def chosen_set(options: argparse.Namespace, folder: Path) -> QuestionSet:
    """The set that the options name. ``UsageError`` where they name none, or half of one."""
    if options.set == "examples":
        return examples()
    if options.set is not None:
        if options.data is None:
            raise UsageError(f"{options.set} needs --data DIR.")
        documents = folder / options.set
        documents.mkdir(parents=True, exist_ok=True)
        if options.set == "squad_dev":
            count = options.count or 150
            return squad_dev(options.data, documents, options.articles, count, options.seed)
        return musique_train(options.data, documents, options.count or 32)
    if options.corpus is None or options.questions is None:
        raise UsageError("Name a set, or give --corpus DIR and --questions FILE.")
    return read_questions(options.corpus.resolve().parent.name, options.corpus, options.questions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("set", nargs="?", choices=("examples", "squad_dev", "musique_train"))
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--questions", type=Path)
    parser.add_argument("--data", type=Path, help="where the set's file is")
    parser.add_argument("--articles", choices=("odd", "even", "all"), default="odd")
    parser.add_argument("--count", type=int, help="questions of each kind")
    parser.add_argument("--mode", default="graph")
    parser.add_argument("--graph", type=Path, help="where the index is kept and found again")
    parser.add_argument("--json", type=Path, help="where all answers are written")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if options.graph is None:
            options.graph = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        questions = chosen_set(options, options.graph / "documents")
        judged, index = measure(questions, options.mode, options.graph / "graph")
    print(table(questions.name, options.mode, judged, index))
    if options.json is not None:
        rows = [asdict(each) | {"right": each.right, "right_first": each.right_first}
                for each in judged]  # fmt: skip
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1), "utf-8")


if __name__ == "__main__":
    main()
