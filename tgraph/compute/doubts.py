"""Doubts: what makes a reading unlikely to be meant, or its result to be right, in words.

Each is of a kind that was wrong far more often than right on tables that nobody tuned to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pyoxigraph import Literal, NamedNode

from tgraph.compute.algebra import (
    Aggregate,
    Compares,
    CompareTwo,
    Count,
    Differs,
    Equals,
    Exists,
    Extreme,
    GroupRows,
    Lacks,
    ListRows,
    Path,
    Query,
    totalled_path,
)
from tgraph.compute.linking import BY_SYNONYM, PropertyLink, QuestionLinks, stem
from tgraph.index.catalogue import KnownClass
from tgraph.model import Object
from tgraph.resources import word_set
from tgraph.vocabulary import entity_iri

_TIMES = ("year", "date")
_TOKEN = re.compile(r"\d+(?:[-–:./]\d+)+|\w+")
_BEFORE_HEADS = ("is", "was", "are", "were", "the")


MOST_DOUBTED = 10_000
"""The members of a class from which on a result is too dear to be known twice."""


def find_doubt(query: Query, links: QuestionLinks) -> str:
    """Return why a question hardly means a query, empty where nothing speaks against it."""
    doubts = (
        _doubt_rows,
        _doubt_bounds,
        _doubt_order,
        _doubt_count,
        _doubt_shown,
        _doubt_choice,
        _doubt_truth,
    )
    return next((text for doubt in doubts for text in doubt(query, links)), "")


def may_doubt_result(query: Query, links: QuestionLinks) -> bool:
    """Return whether the result of a query may speak against it. To evaluate a query twice is dear,
    and the values of all members, that the catalogue counts, are some."""
    if "or" in _lowers(links):
        return True
    known_class = query.rows.known_class
    if known_class is not None and known_class.members > MOST_DOUBTED:
        return False
    if isinstance(query, Extreme) and query.path and query.path.kind == "year":
        return True
    is_chosen = bool(query.rows.conditions or query.rows.only)
    return is_chosen and isinstance(query, Aggregate | CompareTwo | Extreme | ListRows)


def doubt_result(query: Query, terms: Sequence[Object], links: QuestionLinks) -> str:
    """Return why a result is hardly an answer, empty where nothing speaks against it."""
    is_zero = isinstance(query, Aggregate) and all(not float(_text(term)) for term in terms)
    if is_zero or (isinstance(query, CompareTwo | Extreme) and not terms):
        return "nothing has a value to compute with"
    is_of_year = isinstance(query, Extreme) and query.path and query.path.kind == "year"
    if is_of_year and len(terms) > getattr(query, "places", 1):
        return "several are of the same year"
    given = {value for c in query.rows.conditions for value in getattr(c, "values", ())}
    if isinstance(query, ListRows) and terms and given.union(query.rows.only).issuperset(terms):
        return "its result is what the question names"
    if not terms and "or" in _lowers(links):
        return "the question offers a choice, of which nothing is the result"
    return ""


def _lowers(links: QuestionLinks) -> list[str]:
    return [word.lower for word in links.words]


def _doubt_rows(query: Query, links: QuestionLinks) -> Iterator[str]:
    rows = query.rows
    if len(set(rows.only)) < len(rows.only):
        yield "it compares a thing with itself"
    known_class = rows.known_class
    is_named = (
        any(link.known.key == known_class.key for link in links.classes) if known_class else True
    )
    if known_class and known_class.kind == "name" and not is_named:
        yield f"the question doesn't name “{known_class.label}”"
    superlatives = {links.words[min(e.span)].lower for e in links.extremes if len(e.span) == 1}
    if any(getattr(condition, "label", "") in superlatives for condition in rows.conditions):
        yield "a word for a place in an order is read as a value"
    if known_class and known_class.kind == "table":
        yield from _doubt_table(query, known_class)


def _doubt_table(query: Query, known_class: KnownClass) -> Iterator[str]:
    """Doubt totals, cells of several values, and cells that say that there is none."""
    if not isinstance(query, ListRows) and any(map(_is_total, known_class.rows)):
        yield "the table has a row of totals"
    for condition in query.rows.conditions:
        if isinstance(condition, Lacks):
            values = {value.label.casefold() for value in condition.path.last.values}
            if not values.isdisjoint(("0", "none", "no", "nil")):
                yield "what has none may have a value that says so"
        if isinstance(condition, Equals):
            words = _stems(condition.label)
            others = (v for v in condition.path.last.values if v.value not in condition.values)
            if label := next((v.label for v in others if words < _stems(v.label)), ""):
                yield f"“{label}” in {condition.path.last.label} has “{condition.label}” in it"


def _is_total(row: NamedNode) -> bool:
    first, *others = row.value.removeprefix(entity_iri("")).partition(":")[0].split("-")
    is_short = len(others) < 2 or first.startswith(("total", "subtotal"))  # All Nippon Airways
    return is_short and first in word_set("computing", "total_rows")


def _text(term: Object) -> str:
    return term.value if isinstance(term, Literal) else ""


def _stems(text: str) -> set[str]:
    return set(map(stem, _TOKEN.findall(text.casefold())))


def _doubt_bounds(query: Query, links: QuestionLinks) -> Iterator[str]:
    """Doubt a year that bounds what is no time."""
    lowers = _lowers(links)
    in_time = word_set("computing", "in_time")
    years = {
        bound.number
        for bound in links.bounds
        if bound.is_year and any(lowers[at] in in_time for at in bound.span)
    }
    for condition in query.rows.conditions:
        if isinstance(condition, Compares):
            if condition.bound in years and not is_time(condition.path):
                yield f"{condition.path.last.label} is no time"
            if isinstance(query, Count) and len(_kinds(condition.path)) > 1:
                yield f"the values of {condition.path.last.label} are of several kinds"


def _kinds(path: Path) -> set[str]:
    return {"time" if kind in _TIMES else kind for kind, _ in path.last.kinds}


def is_time(path: Path) -> bool:
    """Return whether what a path leads to is a time, by its kind or its name."""
    heads = path.last.name.lower().replace("-", " ").split()
    return path.kind in _TIMES or not word_set("computing", "time_heads").isdisjoint(heads)


def _doubt_order(query: Query, links: QuestionLinks) -> Iterator[str]:
    if isinstance(query, GroupRows) and query.place and query.by.kind == "number":
        yield f"{query.by.last.label} is a number, and no group"
    path = totalled_path(query)
    if path is None:
        return
    if isinstance(query, Aggregate) and query.total == "sum" and _numbers_rows(path):
        yield f"{path.last.label} only numbers the rows"
    is_ordered = isinstance(query, Extreme | CompareTwo) or bool(getattr(query, "place", None))
    if is_ordered and not word_set("computing", "ranks").isdisjoint(path.last.name.lower().split()):
        yield f"the greatest of {path.last.label} may be the last"


def _numbers_rows(path: Path) -> bool:
    """Return whether the values at the end of a path are row numbers: 1, 2, 3 and so on."""
    column = path.last
    places = {str(place) for place in range(1, column.distinct + 1)}
    return column.distinct == column.statements > 4 and {v.label for v in column.values} <= places


def _doubt_count(query: Query, links: QuestionLinks) -> Iterator[str]:
    if not isinstance(query, Count):
        return
    if query.distinct and len(query.rows.only) == 1:
        yield "a row has one value, which may name several"
    yield from _doubt_topic(query, links)
    lowers = _lowers(links)
    if query.distinct and word_set("computing", "different").isdisjoint(lowers):
        known_class = query.rows.known_class
        if known_class and known_class.kind != "type" and not known_class.type_label:
            yield f"rows may be meant, or different values of {query.distinct.last.label}"
    counts = [span for kind, spans in links.cues.items() if kind == "count" for span in spans]
    for link in _asked_properties(query, links):
        is_counted = any(min(link.span) == max(span) + 1 for span in counts)
        if is_counted and link.score > BY_SYNONYM and link.known.kind == "number":
            yield f"{link.known.label} is a number itself"


def _doubt_topic(query: Count, links: QuestionLinks) -> Iterator[str]:
    """Doubt the number of what only the end of a table's title names, of rows that are called
    otherwise and that no value chooses: of "Car crashes" each row may be a state."""
    known_class = query.rows.known_class
    if (
        known_class is None
        or not known_class.type
        or any(isinstance(c, Equals) for c in query.rows.conditions)
    ):
        return
    called = _stems(known_class.type_label) | _stems(known_class.type.rpartition(":")[2])
    keys = (known_class.key, known_class.type)
    texts = [links.text(link.span) for link in links.classes if link.known.key in keys]
    title = _stems(known_class.label)
    if texts and all(title >= _stems(text) and called.isdisjoint(_stems(text)) for text in texts):
        yield f"“{texts[0]}” may be a topic, and no row"


def _asked_properties(query: Query, links: QuestionLinks) -> list[PropertyLink]:
    """Return the links to properties that the question may ask for: not to those whose yes chooses
    rows, as in "chocolate candies"."""
    conditions = query.rows.conditions
    chosen = {c.path.last.iri for c in conditions if isinstance(c, Equals) and c.path.last.truth}
    return [link for link in links.properties if link.known.iri not in chosen]


def _doubt_shown(query: Query, links: QuestionLinks) -> Iterator[str]:
    """Doubt rows where the word that is asked for names a column."""
    if not isinstance(query, ListRows | Extreme | GroupRows | CompareTwo):
        return
    target = query.by if isinstance(query, GroupRows) else getattr(query, "shown", None)
    lowers = _lowers(links)
    if lowers[:1] == ["when"]:
        if target is None or not is_time(target):
            yield "the question asks for a time"
        return
    is_somebody = target is None or (target.kind in ("entity", "text") and not is_time(target))
    if lowers[:1] == ["who"] and not is_somebody:
        yield "the question asks for somebody"
    at = next((n for n, word in enumerate(lowers) if word in ("what", "which")), None)
    if at is None:
        return
    at += 1
    ordering: frozenset[int] = frozenset().union(*(link.span for link in links.extremes))
    while at < len(lowers) and (at in ordering or lowers[at] in _BEFORE_HEADS):
        at += 1
    if any(at in link.span for link in links.classes):
        return
    properties = _asked_properties(query, links)
    heads = [link for link in properties if at in link.span and link.score > BY_SYNONYM]
    known_class = query.rows.known_class
    stated = {iri for iri, _ in known_class.properties} if known_class else set()
    if heads and target is None and all(link.known.iri in stated for link in heads):
        yield f"the question asks for {heads[0].known.label}"


def _doubt_choice(query: Query, links: QuestionLinks) -> Iterator[str]:
    lowers = set(_lowers(links))
    are_several = (
        len({c.path for c in query.rows.conditions if isinstance(c, Equals | Differs)}) > 1
    )
    if (isinstance(query, Exists) and "or" in lowers) or (
        are_several and not lowers.isdisjoint(("or", "either", "neither", "nor"))
    ):
        yield "the question offers a choice"


def _doubt_truth(query: Query, links: QuestionLinks) -> Iterator[str]:
    """Doubt a list of yes and no, and groups by a value that all rows were chosen by."""
    if (
        isinstance(query, ListRows)
        and query.shown
        and query.shown.last.truth
        and not query.rows.only
    ):
        yield f"{query.shown.last.label} says yes or no, and is hardly what is asked for"
    chosen = [c.path for c in query.rows.conditions if isinstance(c, Equals)]
    if isinstance(query, GroupRows) and query.by in chosen:
        yield f"all rows have one {query.by.last.label}"
