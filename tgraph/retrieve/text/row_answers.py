"""Answers in rows of tables: the cell that a question asks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from tgraph.extract.literals import parse_literal
from tgraph.extract.table_facts import class_of_title
from tgraph.model import Segment
from tgraph.resources import load_tables, word_list, word_set
from tgraph.retrieve.text.answer_type import MEASURES
from tgraph.retrieve.text.lexical import words
from tgraph.retrieve.text.property_words import can_mean_same
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, rate_match, roots_of

_SCALES = load_tables("comparisons")["greater"] | load_tables("comparisons")["smaller"]
_TIMES = word_set("computing", "earliest") | word_set("computing", "latest")
_EXTREMES = (
    frozenset(word for word in _SCALES.keys() | _TIMES if word.endswith("est"))
    | word_set("computing", "greatest")
    | word_set("computing", "least")
)
"""Words that ask for the one of several rows that has the most or the least of something."""
_TOTALS = frozenset(
    word
    for name in ("sum", "average", "share")
    for word in word_list("computing", name)
    if "_" not in word
)
"""Words that ask for what follows from several rows."""
_UNNAMED_COLUMNS = frozenset({"person", "place"})
"""What may be asked for without a word for it: "Who", "Where"."""
_TIME_HEADS = word_set("computing", "time_heads")
"""Heads of columns of times that don't say of which event."""

_DIGIT_KINDS = frozenset({"number", *MEASURES})


def answer_of_row(inquiry: AnalysedQuestion, row: Segment, title: str, answer: str) -> str:
    """Return the answer of a row of a table under a title.

    The answer is the cell under the column that the question names, or the row's name where the
    question asks for it, else the ``answer`` of a reader, without the column's name."""
    if row.row is None or row.row.role != "data":
        return answer
    cells = _RowCells(inquiry, row)
    headings = row.headings[-1:] or (title,)
    kind = row.row.subject or class_of_title(headings[0])
    named_cells = (
        row.text[slice(*value)] for key, value in row.pairs if row.text[key[0] : value[1]] == answer
    )
    cell = cells.find_time() if inquiry.sought.kind == "time" else cells.find_asked()
    return cell or cells.find_name(kind) or next(named_cells, answer)


def lacks_asked(inquiry: AnalysedQuestion, row: Segment, title: str) -> bool:
    """Return whether a row of a table under a title has no word of what is asked for: of the most
    or the least of the rows, or of a property or a number of things.

    That a row is the highest, or how many rows there are, follows from all rows, not from one."""
    if row.row is None or row.row.role != "data":
        return False
    text = " ".join((row.text, row.row.subject, title, *row.headings))
    if not (_EXTREMES | _TOTALS).intersection(words(inquiry.text)) <= frozenset(words(text)):
        return True
    asks_count = ("how", "many") in pairwise(words(inquiry.text))
    if asks_count and not _counts_asked(inquiry, row):
        return True
    if inquiry.sought.kind in _UNNAMED_COLUMNS:
        return False
    if inquiry.sought.kind == "time":
        return not _RowCells(inquiry, row).find_time()
    stated = inquiry.lexicon.term_set(row.text if inquiry.sought.kind == "number" else text)
    roots = roots_of(stated)
    question_terms = (inquiry.sought.focus or frozenset(inquiry.weights)) - inquiry.names
    return bool(question_terms) and not any(
        rate_match(term, stated, roots) for term in question_terms
    )


def _counts_asked(inquiry: AnalysedQuestion, row: Segment) -> bool:
    """Return whether a cell with digits stands under a head that a question names, or names what
    the question counts: "3 masts"."""
    question_terms = frozenset(inquiry.weights)
    for key, value in row.pairs:
        head, cell = row.text[slice(*key)], row.text[slice(*value)]
        terms = inquiry.lexicon.term_set(f"{head} {cell}")
        is_number = any(map(str.isdigit, cell)) and parse_literal(cell.split()[0]) is not None
        if is_number and question_terms & terms:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _RowCells:
    """The cells of a row beside a question."""

    inquiry: AnalysedQuestion
    row: Segment

    @property
    def _label(self) -> tuple[int, ...]:
        return self.row.row.label if self.row.row is not None else ()

    def _terms(self, text: str) -> frozenset[str]:
        return self.inquiry.lexicon.term_set(text)

    def _value(self, at: int) -> str:
        return self.row.text[slice(*self.row.pairs[at][1])]

    def _name_terms(self) -> frozenset[str]:
        return frozenset().union(*(self._terms(self._value(at)) for at in self._label))

    def find_asked(self) -> str:
        """Return the cell that a question asks for by naming the row's subject and the column.

        Return empty text where the question doesn't name the subject, or no single column, or where
        the cell itself stands in the question, or has no digit where a number is asked for.
        """
        question_terms, subject = frozenset(self.inquiry.weights), self._name_terms()
        if not subject & question_terms:
            return ""
        rated = self._named_columns(question_terms - subject, self._label)
        if not rated or (len(rated) > 1 and rated[0][0] == rated[1][0]):
            return ""
        answer = self._value(rated[0][1])
        terms = self._terms(answer)
        lacks_digits = self.inquiry.sought.kind in _DIGIT_KINDS and not any(
            map(str.isdigit, answer)
        )
        return "" if lacks_digits or (terms and terms <= question_terms) else answer

    def find_time(self) -> str:
        """Return the cell with digits that says when the event of a question was: under a column
        whose name means a word of the question, else the one under a head such as "Year"; empty
        text where there is none, or several."""
        question_terms = frozenset(self.inquiry.weights) - self._name_terms()
        named_cells, unnamed = [], []
        for at, (key, _) in enumerate(self.row.pairs):
            value = self._value(at)
            if at in self._label or not any(map(str.isdigit, value)):
                continue
            head = self.row.text[slice(*key)]
            if any(can_mean_same(*pair) for pair in product(self._terms(head), question_terms)):
                named_cells.append(value)
            elif _TIME_HEADS.intersection(words(head)):
                unnamed.append(value)
        times = named_cells or unnamed
        return times[0] if len(times) == 1 else ""

    def find_name(self, kind: str) -> str:
        """Return the name of the row where a question names the class of the rows and other cells,
        and asks for this class or names no other column; empty text otherwise."""
        question_terms, classes = frozenset(self.inquiry.weights), self._terms(kind)
        if (
            not self._label
            or not classes
            or not classes <= question_terms
            or self._name_terms() & question_terms
        ):
            return ""
        stated = [
            at
            for at in range(len(self.row.pairs))
            if at not in self._label
            and (terms := self._terms(self._value(at)))
            and terms <= question_terms
        ]
        stated_terms = classes.union(*(self._terms(self._value(at)) for at in stated))
        is_sought = classes <= self.inquiry.sought.focus
        others = self._named_columns(question_terms - stated_terms, (*stated, *self._label))
        if not stated or (others and not is_sought):
            return ""
        return " ".join(self._value(at) for at in self._label)

    def _named_columns(
        self, terms: frozenset[str], without: Sequence[int]
    ) -> list[tuple[float, int]]:
        """Return the columns whose names consist of some terms, best first, each with how many of
        the terms its name has."""
        roots = roots_of(terms)
        rated = []
        for at, (key, _) in enumerate(self.row.pairs):
            name = self._terms(self.row.text[slice(*key)])
            matches = [rate_match(term, terms, roots) for term in name]
            if at not in without and matches and all(matches):
                rated.append((sum(matches), at))
        return sorted(rated, key=lambda pair: -pair[0])
