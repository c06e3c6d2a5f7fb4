"""Questions over tables, and the rule by which an answer to one is right.

WikiTableQuestions (Pasupat and Liang 2015, CC BY-SA 4.0) is read from a clone of its repository:
``data/*.tsv`` has the questions with their table and values, ``csv`` the tables, and
``tagged/data/*.tagged`` the amounts of the values. A value is right by the rule of the set's
evaluator: texts are compared without accents, citations, details in brackets and letter case,
numbers by amount, dates by year, month and day, and an answer is right that has as many values as
are asked, each of them among its own."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyoxigraph import NamedNode

import tgraph
from tgraph.compute.algebra import Exists, GroupRows, Query
from tgraph.compute.evaluation import Bindings
from tgraph.compute.results import result_terms
from tgraph.engine.graph import KnowledgeGraph
from tgraph.retrieve.base import Context
from tgraph.retrieve.labels import labels_of, name_rows
from tgraph.settings import load_settings
from tgraph.testing import HashingEmbedder

_DATE = re.compile(r"(\d+|x+)-(\d+|xx)-(\d+|xx)")
_CITATIONS = re.compile(r"(?:(?<!^)\[[^\]]*\]|\[\d+\]|[•♦†‡*#+])*$")
_DETAILS = re.compile(r"(?<!^)(?: \([^)]*\))*$")
_QUOTED = re.compile(r'"([^"]*)"')
_SIGNS = str.maketrans("‘’´`“”‐‑‒–—−", "''''\"\"------")
_ALIKE = 1e-6

Amount = float | tuple[int, int, int] | None


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """A question over a table of a set, with the values that answer it."""

    id: str
    text: str
    table: str
    values: tuple[str, ...]
    amounts: tuple[str, ...] = ()
    """The values as numbers and dates, where the set has them."""


@dataclass(frozen=True, slots=True)
class AnswerValue:
    """A value as it is compared: its text, and the number or date that it is."""

    text: str
    amount: Amount


def read_questions(folder: Path, name: str) -> list[TableQuestion]:
    """Return the questions of a file of WikiTableQuestions."""
    with (folder / "data" / f"{name}.tsv").open(encoding="utf-8", newline="\n") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    tagged = folder / "tagged" / "data" / f"{name}.tagged"
    amounts: dict[str, tuple[str, ...]] = {}
    if tagged.exists():
        with tagged.open(encoding="utf-8", newline="\n") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                amounts[row["id"]] = tuple(map(_unescape, row["targetCanon"].split("|")))
    return [
        TableQuestion(
            row["id"],
            _unescape(row["utterance"]),
            row["context"],
            tuple(map(_unescape, row["targetValue"].split("|"))),
            amounts.get(row["id"], ()),
        )
        for row in rows
    ]


def _unescape(text: str) -> str:
    return text.replace(r"\n", "\n").replace(r"\p", "|").replace(r"\\", "\\")


def open_table(folder: Path, table: str, cache: Path) -> KnowledgeGraph:
    """Return the graph of a table, which is indexed at the first use and kept in ``cache``."""
    root = cache / table.replace("/", "-")
    graph = open_indexed(root, create=not (root / "ready").exists())
    if not (root / "ready").exists():
        graph.index([folder / table])
        (root / "ready").touch()
    return graph


def open_indexed(root: Path, *, create: bool = False) -> KnowledgeGraph:
    """Return a graph without a model, with hashed vectors."""
    root.mkdir(parents=True, exist_ok=True)
    from tgraph.engine.components import Components

    parts = Components(
        load_settings(None, {}), root / "cache", chat=None, embedder=HashingEmbedder()
    )
    return tgraph.open(root / "graph", create=create, settings={}, parts=parts)


# --- the rule ---------------------------------------------------------------------------------


def is_right(question: TableQuestion, values: Iterable[str]) -> bool:
    """Return whether values answer a question."""
    amounts = question.amounts or question.values
    asked = {
        AnswerValue(normalise_text(text), _amount(amount))
        for text, amount in zip(question.values, amounts, strict=True)
    }
    given = {_value(text) for text in values}
    return len(asked) == len(given) and all(
        any(_are_alike(one, other) for other in given) for one in asked
    )


def _value(text: str) -> AnswerValue:
    return AnswerValue(normalise_text(text), _amount(text))


def normalise_text(text: str) -> str:
    """Return a text as it is compared."""
    decomposed = unicodedata.normalize("NFKD", text)
    text = "".join(c for c in decomposed if unicodedata.category(c) != "Mn").translate(_SIGNS)
    before = None
    while before != text:
        before = text
        text = _DETAILS.sub("", _CITATIONS.sub("", text.strip()).strip()).strip()
        if match := _QUOTED.fullmatch(text):
            text = match[1]
    return " ".join(text.removesuffix(".").lower().split())


def _amount(text: str) -> Amount:
    """Return the number or date that a text is: a number of digits, or year, month and day, of
    which each but one may be unknown; a date of a year alone is a number."""
    plain = text.strip().lower().replace(",", "")
    try:
        number = float(plain)
    except ValueError:
        pass
    else:
        return number if abs(number) != float("inf") and number == number else None
    if match := _DATE.fullmatch(plain):
        year, month, day = (-1 if "x" in part else int(part) for part in match.groups())
        return float(year) if month == day == -1 else (year, month, day)
    return None


def _are_alike(one: AnswerValue, other: AnswerValue) -> bool:
    if one.text == other.text:
        return True
    if isinstance(one.amount, float) and isinstance(other.amount, float):
        return abs(one.amount - other.amount) < _ALIKE
    return one.amount is not None and one.amount == other.amount


# --- results ----------------------------------------------------------------------------------


def values_of(query: Query, bindings: Sequence[Bindings], context: Context) -> list[str]:
    """Return the values that a result answers with: rows by name, values as they are written."""
    if isinstance(query, Exists):
        return ["yes" if bindings[0]["is"].value == "true" else "no"]
    if isinstance(query, GroupRows) and query.place is None:
        return []
    terms = result_terms(query, bindings)
    labels = labels_of(context.graph, [term for term in terms if isinstance(term, NamedNode)])
    labels = name_rows(labels, terms)
    return [labels[t] if isinstance(t, NamedNode) else t.value for t in terms]
