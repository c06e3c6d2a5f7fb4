"""What is known of a candidate query and its question, as numbers that a ranking weighs.

No feature is of a rare word: only of words that shape questions, of forms, of links and kinds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from tgraph.compute.algebra import (
    Compares,
    Condition,
    Contains,
    Count,
    Differs,
    Equals,
    Extreme,
    GroupRows,
    ListRows,
    Path,
    Query,
    measured_path,
)
from tgraph.compute.linking import PropertyLink, QuestionLinks, Span
from tgraph.compute.parts import CandidateQuery
from tgraph.model import Object
from tgraph.resources import word_set

Features = Mapping[str, float]

_LEAST_SCORE = 1e-3
_MOST = 4
"""Above so many, words of a kind count no more."""

_HEADS = ("who", "what", "which", "when", "where", "how", "name")


def features_of(candidate: CandidateQuery, links: QuestionLinks, cues: Sequence[str]) -> Features:
    """Return the features of a candidate; ``cues`` are those of its question."""
    features: dict[str, float] = {}
    for name, value in _features(candidate, links, cues):
        features[name] = features.get(name, 0.0) + value
    return features


def question_cues(links: QuestionLinks) -> tuple[str, ...]:
    """Return the names of what shapes a question: words that ask, and words for forms."""
    lowers = [word.lower for word in links.words]
    question_word = next((lower for lower in lowers if lower in _HEADS), "none")
    if question_word == "how":
        question_word = f"how_{lowers[lowers.index('how') + 1]}" if lowers[-1] != "how" else "how"
        question_word = (
            question_word
            if question_word in ("how_many", "how_much", "how_long", "how_old")
            else "how_other"
        )
    cues = [f"asks_{question_word}", *(f"cue_{kind}" for kind in links.cues)]
    cues += [
        f"word_{name}"
        for name in _cue_lists()
        if not word_set("computing", name).isdisjoint(lowers)
    ]
    cues += [f"saying_{word}" for word in sorted(word_set("computing", "saying") & set(lowers))]
    if any(not link.is_comparative for link in links.extremes):
        cues.append("superlative")
    if any(link.is_comparative for link in links.extremes):
        cues.append("comparative")
    if links.bounds:
        cues.append("bound")
    return tuple(cues)


@cache
def _cue_lists() -> tuple[str, ...]:
    return (
        "following",
        "preceding",
        "listed_first",
        "listed_last",
        "common",
        "more",
        "joining",
        "totals",
        "times",
    )


def _features(
    candidate: CandidateQuery, links: QuestionLinks, cues: Sequence[str]
) -> Iterator[tuple[str, float]]:
    query = candidate.query
    form = form_of(query)
    yield f"form:{form}", 1.0
    yield "prior", math.log(max(_LEAST_SCORE, math.prod(candidate.scores)))
    for cue in cues:
        yield f"{cue}&{form}", 1.0
    yield from _missing_features(candidate, links)
    yield from _condition_features(query, links)
    yield from _path_features(query, links, cues)


def form_of(query: Query) -> str:
    """Return the form of a query, for features and for tables of figures."""
    name = type(query).__name__
    path = measured_path(query)
    if query.rows.step:
        return "next" if query.rows.step > 0 else "previous"
    if isinstance(query, Extreme):
        ordered = "listed" if query.path is None else "measured"
        return f"{ordered}_{'last' if query.is_most else 'first'}"
    if isinstance(query, ListRows):
        return "look_up" if path else "list"
    if isinstance(query, Count):
        return "count_values" if path else "count"
    if isinstance(query, GroupRows):
        return f"group_{query.place}" if query.place else "group"
    return name.lower()


def _missing_features(
    candidate: CandidateQuery, links: QuestionLinks
) -> Iterator[tuple[str, float]]:
    missing = links.content - candidate.span
    of_properties: Span = frozenset().union(*(link.span for link in links.properties))
    of_values: Span = frozenset().union(*(link.span for link in (*links.values, *links.parts)))
    of_bounds: Span = frozenset().union(*(link.span for link in links.bounds))
    of_extremes: Span = frozenset().union(*(link.span for link in links.extremes))
    counts = {
        "property": 0,
        "value": 0,
        "bound": 0,
        "extreme": 0,
        "number": 0,
        "name": 0,
        "word": 0,
    }
    for at in missing:
        word = links.words[at]
        kind = "word"
        if at in of_values:
            kind = "value"
        elif at in of_bounds:
            kind = "bound"
        elif at in of_extremes:
            kind = "extreme"
        elif at in of_properties:
            kind = "property"
        elif any(map(str.isdigit, word.lower)):
            kind = "number"
        elif at and word.text[:1].isupper():
            kind = "name"
        counts[kind] += 1
    for kind, count in counts.items():
        if count:
            yield f"missing:{kind}", float(min(count, _MOST))
            yield f"missing_any:{kind}", 1.0
    yield "missing", float(min(len(missing), 2 * _MOST))
    yield "share", len(missing) / max(1, len(links.content))


def _condition_features(query: Query, links: QuestionLinks) -> Iterator[tuple[str, float]]:
    conditions = query.rows.conditions
    yield f"conditions:{min(len(conditions), 3)}&only:{min(len(query.rows.only), 2)}", 1.0
    for condition in conditions:
        yield f"condition:{type(condition).__name__}", 1.0
        if isinstance(condition, Equals | Differs | Contains) and condition.path:
            yield from _value_features(condition, links)
        if isinstance(condition, Compares):
            yield f"compares:{_naming(condition.path, links)}&{condition.path.kind}", 1.0
    if query.rows.only:
        scores = [
            link.score
            for link in (*links.values, *links.parts)
            if set(query.rows.only) & set(link.values)
        ]
        yield "row_score", 1 - max(scores, default=0.0)


def _value_features(condition: Condition, links: QuestionLinks) -> Iterator[tuple[str, float]]:
    path: Path = condition.path  # type: ignore[assignment,union-attr]
    yield f"value_in:{_naming(path, links)}", 1.0
    yield f"value_kind:{path.kind}", 1.0
    label = getattr(condition, "label", getattr(condition, "text", ""))
    linked = [link for link in (*links.values, *links.parts) if link.label == label]
    if linked:
        yield "value_score", 1 - max(link.score for link in linked)
        yield "value_words", math.log(len(linked[0].span))
        rivals = {p for link in linked for p in link.properties}
        yield "value_rivals", math.log(max(1, len(rivals)))
    if isinstance(condition, Equals | Differs):
        yield "value_several", math.log(max(1, len(condition.values)))


def _naming(path: Path | None, links: QuestionLinks) -> str:
    """Return how surely the question names the first property of a path."""
    if path is None:
        return "row"
    link = _link_of(path, links)
    if link is None:
        return "unnamed"
    return "named" if link.score > 0.9 else "in_part"


def _link_of(path: Path, links: QuestionLinks) -> PropertyLink | None:
    links_to = [link for link in links.properties if link.known.iri == path.properties[-1].iri]
    return max(links_to, key=lambda link: (link.score, -min(link.span)), default=None)


def _path_features(
    query: Query, links: QuestionLinks, cues: Sequence[str]
) -> Iterator[tuple[str, float]]:
    shown = query.shown if isinstance(query, ListRows | Extreme) else None
    target = shown or getattr(query, "by", None)
    if isinstance(query, ListRows | Extreme) or target is not None:
        yield from _target_features(target, query, links, cues[0])
    if isinstance(query, Extreme):
        measure = query.path
    else:
        measure = None if isinstance(query, ListRows) else measured_path(query)
    if measure is None:
        return
    reads = "reads" if measure.reads_number else measure.kind
    yield f"measure:{_naming(measure, links)}", 1.0
    yield f"measure:{reads}&{form_of(query)}", 1.0
    if target is not None and target.last == measure.last:
        yield f"shows_measure&{cues[0]}", 1.0
    if _is_named_beside_extreme(measure, links):
        yield "measure_beside", 1.0


def _target_features(
    target: Path | None, query: Query, links: QuestionLinks, asked: str
) -> Iterator[tuple[str, float]]:
    """Yield the features of what is shown: a column, or the rows themselves."""
    naming = _target_naming(target, query, links)
    yield f"shown:{naming}", 1.0
    yield f"shown:{naming}&{form_of(query)}", 1.0
    yield f"{asked}&shows:{target.kind if target else 'row'}", 1.0
    if target is not None:
        heads = target.last.name.lower().split()
        for name in ("time_heads", "person_heads", "place_heads", "number_heads"):
            if not word_set("computing", name).isdisjoint(heads):
                yield f"{asked}&shows_{name}", 1.0
        if any(path == target for path in _condition_paths(query)):
            yield f"shows_condition&{form_of(query)}", 1.0
        yield f"shown_position:{_position(target, query)}", 1.0
    distance = _distance(target, query, links)
    if distance is not None:
        yield "head_distance", float(min(distance, 6))
        yield f"head_distance:{min(distance, 3)}", 1.0


def _target_naming(target: Path | None, query: Query, links: QuestionLinks) -> str:
    if target is not None:
        return _naming(target, links)
    known = query.rows.known_class
    has_name = known is not None and any(link.known.key == known.key for link in links.classes)
    return "row_named" if has_name else "row"


def _condition_paths(query: Query) -> Iterator[Path | None]:
    for condition in query.rows.conditions:
        yield getattr(condition, "path", None)


def _position(target: Path, query: Query) -> str:
    known = query.rows.known_class
    columns = [column.property for column in known.columns] if known else []
    if target.properties[0].iri not in columns:
        return "none"
    at = columns.index(target.properties[0].iri)
    return str(min(at, 2))


def _distance(target: Path | None, query: Query, links: QuestionLinks) -> int | None:
    """Return how many words the name of what is shown stands after the word that asks."""
    if target is not None:
        link = _link_of(target, links)
        spans = [link.span] if link else []
    else:
        known = query.rows.known_class
        spans = [c.span for c in links.classes if known and c.known.key == known.key]
    heads = [at for at, word in enumerate(links.words) if word.lower in _HEADS]
    start = heads[0] if heads else -1
    after = [min(span) - start for span in spans if min(span) > start]
    return min(after) - 1 if after else None


def _is_named_beside_extreme(measure: Path, links: QuestionLinks) -> bool:
    link = _link_of(measure, links)
    return link is not None and any(
        min(link.span) - max(extreme.span) == 1 for extreme in links.extremes
    )


def result_features(
    query: Query, terms: Sequence[Object], cues: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """Yield the features of a result: the number of terms, and whether the question has them."""
    many = ("none", "one", "two")[min(len(terms), 2)]
    is_zero = len(terms) == 1 and terms[0].value in ("0", "0.0")
    yield f"results:{'zero' if is_zero else many}", 1.0
    yield f"results:{'zero' if is_zero else many}&{form_of(query)}", 1.0
    yield f"results:{many}&{cues[0]}", 1.0
    conditioned = {value for c in query.rows.conditions for value in getattr(c, "values", ())}
    if terms and conditioned.union(query.rows.only).issuperset(terms):
        yield f"answer_given&{'joining' if 'word_joining' in cues else 'single'}", 1.0
