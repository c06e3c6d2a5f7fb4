"""Answers in rows of tables: the cell under the column that a question names."""

from __future__ import annotations

from tgraph.model import Segment
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, rate_match, roots_of


def answer_of_row(inquiry: AnalysedQuestion, row: Segment, answer: str) -> str:
    """Return the answer of a table's row: the cell under the column that the question names, else
    the ``answer`` of a reader without the column's name."""
    if row.row is None or row.row.role != "data":
        return answer
    named = (
        row.text[value[0] : value[1]]
        for key, value in row.pairs
        if row.text[key[0] : value[1]] == answer
    )
    return _find_asked_cell(inquiry, row, row.row.label) or next(named, answer)


def _find_asked_cell(inquiry: AnalysedQuestion, row: Segment, label: tuple[int, ...]) -> str:
    """Return the cell that a question asks for, by naming the row's subject and the column.

    Return empty text where the question doesn't name the subject, or no single column, or where the
    cell itself stands in the question."""
    term_set = inquiry.lexicon.term_set
    asked = frozenset(inquiry.weights)
    values = [row.text[slice(*value)] for _, value in row.pairs]
    subject = frozenset().union(*(term_set(values[at]) for at in label))
    if not subject & asked:
        return ""
    open_terms = asked - subject
    roots = roots_of(open_terms)
    rated: list[tuple[float, str]] = []
    for at, (key, _) in enumerate(row.pairs):
        terms = term_set(row.text[slice(*key)])
        matches = [rate_match(term, open_terms, roots) for term in terms]
        if at not in label and matches and all(matches):
            rated.append((sum(matches), values[at]))
    rated.sort(reverse=True)
    if not rated or (len(rated) > 1 and rated[0][0] == rated[1][0]):
        return ""
    answer = rated[0][1]
    return "" if term_set(answer) and term_set(answer) <= asked else answer
