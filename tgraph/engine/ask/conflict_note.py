"""Notes on documents that answer a question differently."""

from __future__ import annotations

from collections.abc import Iterator

from tgraph.index.sources import read_document_dates
from tgraph.ingest.document_dates import parse_date_span
from tgraph.model import Evidence, Judgement, Note, RivalAnswers
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context


def describe_conflicts(judgement: Judgement | None, context: Context) -> Iterator[Note]:
    """Yield a note for each pair of rival answers: both with their documents and dates, and which
    document is later or has more authority."""
    for rivals in judgement.rivals if judgement is not None else ():
        yield _describe_rivals(rivals, context)


def _describe_rivals(rivals: RivalAnswers, context: Context) -> Note:
    first, second = rivals.place, rivals.other_place
    begins = "The documents disagree" if rivals.is_exact else "The documents answer differently"
    text = (
        f"{begins}: {_describe_answer(rivals.answer, first, context)},"
        f" {_describe_answer(rivals.other_answer, second, context)}."
    )
    return Note(f"{text}{_compare_standing(first, second, context)}", (), (first, second))


def _describe_answer(answer: str, place: Evidence, context: Context) -> str:
    dated = _read_date(place, context)
    return f"“{collapse_whitespace(answer)}” in {place.title}" + (f" ({dated})" if dated else "")


def _compare_standing(first: Evidence, second: Evidence, context: Context) -> str:
    weights = [context.authorities.weigh_path(place.path) for place in (first, second)]
    if weights[0] != weights[1]:
        weightier = first if weights[0] > weights[1] else second
        return f" {weightier.title} has more authority."
    spans = [parse_date_span(_read_date(place, context)) for place in (first, second)]
    if spans[0] is None or spans[1] is None:
        return ""
    if spans[0][1] < spans[1][0]:
        return f" {second.title} is the later document."
    if spans[1][1] < spans[0][0]:
        return f" {first.title} is the later document."
    return ""


def _read_date(place: Evidence, context: Context) -> str:
    """Return the document's own date as YYYY, YYYY-MM or YYYY-MM-DD; "" without a date."""
    dates = read_document_dates(context.store, place.document)
    return next((date for date in dates if parse_date_span(date)), "")
