"""What sentences are worth together: in a row, or as the two ends of a bridge.

The first end of a bridge says who or what the question describes; the second, in another document,
is about that entity and says the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import NamedNode

from tgraph.model import Edge
from tgraph.retrieve.inquiry import Inquiry, new_names
from tgraph.retrieve.lexical import Frequencies, terms
from tgraph.retrieve.meaning import Meaning
from tgraph.retrieve.passages import (
    ASKED,
    KIND,
    MEANING,
    ROW,
    WORDS,
    Passage,
    coverage,
    likeness,
    support,
)
from tgraph.retrieve.windows import COST, Window, merged, windows

Place = tuple[object, ...]
Promotions = dict[Place, tuple[float, str]]

MANY = 200
"""Windows that are looked through for those that don't overlap."""

FIRST_ENDS = 8
"""Windows that are tried as the first end of a bridge."""

GAIN = 0.08
"""The share of the question that the second end has to add."""

NESTED_TOLL, PLAIN_TOLL = 0.04, 0.11
"""What a bridge must be worth more than one window, where the question describes something by a
clause of its own, and where it doesn't."""

HALVES_TOLL = -0.04
"""The same for a question that was taken apart."""

BRIDGE = 0.08
"""What the rarest name counts as a bridge."""

RARE = 0.4
"""The least inverse document frequency of a name that is a bridge."""


_NESTED = re.compile(r"(?<=\w\s)(?:that|who|whom|whose|which|where)\b|\.\s+\w", re.IGNORECASE)
_PROPER = re.compile(r"(?<=[\w,*_\"“] )[*_\"“]?([^\W\d_a-z]\w+(?:[-'’ ]+[^\W\d_a-z]\w+)*)")
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Bridge:
    score: float
    first: Window
    second: Window
    name: str


@dataclass(frozen=True, slots=True)
class Half:
    """What is asked, or the description of whom it is asked about, with its windows, best first."""

    inquiry: Inquiry
    meaning: Meaning
    ranked: Sequence[Window]


def link(
    inquiry: Inquiry,
    passages: Mapping[Place, Passage],
    edges: Mapping[str, Edge],
    frequencies: Frequencies,
    halves: tuple[Half, Half] | None = None,
) -> Promotions:
    """Scores, with the reason, of sentences that are worth more together with others."""
    ranked = windows(passages.values(), inquiry)
    promoted = _rows(ranked)
    if not ranked:
        return promoted
    bridge = (
        _join(*halves, edges, frequencies, ranked[0].score + HALVES_TOLL)
        if halves
        else _bridge(inquiry, ranked, edges, frequencies)
    )
    if bridge:
        _promote_bridge(promoted, bridge)
    for window in (bridge.first, bridge.second) if bridge else ranked[:1]:
        score = bridge.score if bridge else window.score
        for passage in _antecedents(inquiry, window, passages, edges):
            _promote(promoted, passage, score, "it names what the next sentences speak of")
    return promoted


def _rows(ranked: Sequence[Window]) -> Promotions:
    """The sentences of windows that don't overlap, each worth what its window is."""
    promoted: Promotions = {}
    taken: set[Place] = set()
    for window in ranked[:MANY]:
        places = {passage.place for passage in window.passages}
        if taken.isdisjoint(places):
            taken |= places
            for passage in window.passages:
                why = "it stands in a row of sentences that answer together"
                if window.score > passage.score:
                    _promote(promoted, passage, window.score, why)
    return promoted


def _promote_bridge(promoted: Promotions, bridge: _Bridge) -> None:
    for passage in bridge.first.passages:
        why = f"it tells of {bridge.name}, the bridge to another sentence"
        _promote(promoted, passage, bridge.score, why)
    for passage in bridge.second.passages:
        why = f"{bridge.name} is the bridge from another sentence to it"
        _promote(promoted, passage, bridge.score, why)


def _promote(promoted: Promotions, passage: Passage, score: float, why: str) -> None:
    if score > promoted.get(passage.place, (0.0, ""))[0]:
        promoted[passage.place] = score, why


# --- bridges --------------------------------------------------------------------------------------


def _bridge(
    inquiry: Inquiry, ranked: Sequence[Window], edges: Mapping[str, Edge], frequencies: Frequencies
) -> _Bridge | None:
    if not ranked:
        return None
    best: _Bridge | None = None
    seconds = _by_term(ranked)
    least = ranked[0].score + (NESTED_TOLL if _NESTED.search(inquiry.text) else PLAIN_TOLL)
    for first in first_ends(ranked):
        for label, term, rarity in _entities(first, edges, inquiry.weights, frequencies):
            for second in seconds.get(term, ()):
                score = _together(inquiry, first, second) + BRIDGE * rarity
                if score > (best.score if best else least):
                    best = _Bridge(score, first, second, label)
    return best


def _join(
    main: Half,
    rest: Half,
    edges: Mapping[str, Edge],
    frequencies: Frequencies,
    least: float,
) -> _Bridge | None:
    """The two ends of a question in two halves: each end answers its half, both share a name."""
    best: _Bridge | None = None
    seconds = _by_term(main.ranked)
    known = {**main.inquiry.weights, **rest.inquiry.weights}
    for first in first_ends(rest.ranked):
        for label, term, rarity in _bridges(first, edges, known, frequencies):
            for second in seconds.get(term, ()):
                score = 0.5 * (first.score + _about(main.inquiry, second, rarity))
                apart = first.passages[0].place[0] != second.passages[0].place[0]
                if apart and score > (best.score if best else least):
                    best = _Bridge(score, first, second, label)
    top = least - HALVES_TOLL
    return replace(best, score=max(best.score, top + 0.001)) if best else None


def _about(inquiry: Inquiry, window: Window, rarity: float) -> float:
    """The window's score as if the question had named the bridge, which the window does."""
    named = WORDS * (rarity * (1 - coverage(inquiry, window.matches))) / (inquiry.total + rarity)
    return window.score + named


def first_ends(ranked: Sequence[Window]) -> list[Window]:
    """The best windows that don't overlap."""
    found: list[Window] = []
    taken: set[Place] = set()
    for window in ranked[:80]:
        places = {p.place for p in window.passages}
        if taken.isdisjoint(places):
            found.append(window)
            taken |= places
        if len(found) == FIRST_ENDS:
            break
    return found


def _together(inquiry: Inquiry, first: Window, second: Window) -> float:
    """What both ends are worth; nothing where the second adds too little of the question."""
    if first.passages[0].place[0] == second.passages[0].place[0]:
        return -1.0
    covered = coverage(inquiry, merged([first.strict, second.strict]))
    alone = max(coverage(inquiry, first.strict), coverage(inquiry, second.strict))
    if covered - alone < GAIN:
        return -1.0
    similar = 0.7 * max(first.similar, second.similar) + 0.3 * min(first.similar, second.similar)
    asked = max(first.asked, second.asked)
    points = MEANING * likeness(similar) + ASKED * likeness(asked) + WORDS * covered
    points += KIND * second.kind - COST * (len(first.passages) + len(second.passages) - 2)
    rows = sum(window.passages[0].wording.is_row for window in (first, second))
    both = merged([first.strict, second.strict])
    return points * ROW**rows * support(inquiry, both, asked)


def _bridges(
    window: Window, edges: Mapping[str, Edge], known: Mapping[str, float], frequencies: Frequencies
) -> list[tuple[str, str, float]]:
    """What the window names beyond the question: the name, its rarest term and how rare it is."""
    found: dict[str, tuple[str, str, float]] = {}
    title = set(terms(window.passages[0].evidence.title))
    for name in sorted(_names(window, edges)):
        stems = terms(name)
        if stems and not title <= set(stems) and not any(stem in known for stem in stems):
            rarity, term = max((frequencies.idf(stem), stem) for stem in stems)
            if rarity >= RARE:
                found.setdefault(term, (name, term, rarity))
    return list(found.values())


def _entities(
    window: Window, edges: Mapping[str, Edge], known: Mapping[str, float], frequencies: Frequencies
) -> list[tuple[str, str, float]]:
    """The entities of the window whose rarest term the question doesn't have, as ``_bridges``."""
    found = []
    for passage in window.passages:
        for label in sorted({e for iri in passage.edges for e in _ends(edges[iri])}):
            stems = terms(label)
            if passage.wording.quote.isdisjoint(stems):
                continue
            rarity, term = max((frequencies.idf(stem), stem) for stem in stems)
            if rarity >= RARE and term not in known:
                found.append((label, term, rarity))
    return found


def _names(window: Window, edges: Mapping[str, Edge]) -> set[str]:
    """What the window's sentences name, or speak of by a pronoun."""
    spoken = {
        label
        for passage in window.passages
        for iri in passage.edges
        for label in _ends(edges[iri])
        if edges[iri].predicate_label != "mentions"
    }
    return spoken | {name for p in window.passages for name in _PROPER.findall(p.quote)}


def _ends(edge: Edge) -> list[str]:
    labels = [edge.subject_label]
    if isinstance(edge.object, NamedNode):
        labels.append(edge.object_label)
    return [label for label in labels if any(map(str.isupper, label))]


def _by_term(ranked: Sequence[Window]) -> dict[str, list[Window]]:
    """The windows by the terms of their sentences and titles."""
    found: dict[str, list[Window]] = {}
    for window in ranked:
        if len(window.passages) <= 2:
            wordings = [passage.wording for passage in window.passages]
            for term in frozenset().union(*(w.quote | w.title | w.labels for w in wordings)):
                found.setdefault(term, []).append(window)
    return found


# --- whom a pronoun means -------------------------------------------------------------------------


def _antecedents(
    inquiry: Inquiry, window: Window, passages: Mapping[Place, Passage], edges: Mapping[str, Edge]
) -> list[Passage]:
    """The sentence shortly before the window that names what its pronouns were resolved to."""
    first = window.passages[0]
    if not _PRONOUN.search(first.quote[:60]):
        return []
    spoken = {
        edges[iri].subject_label for iri in first.edges if edges[iri].predicate_label != "mentions"
    }
    meant = {
        stem
        for label in spoken
        if not any(word in first.quote for word in label.split())
        for stem in terms(label)
    }
    document, page, start, _ = first.place
    before = [
        p
        for p in passages.values()
        if p.place[:2] == (document, page)
        and start - 600 <= p.place[2] < start
        and p.wording.is_prose
    ]
    before.sort(key=lambda p: (-p.place[2], p.place[3]))
    resolved = [p for p in before if meant & p.wording.quote]
    named = [
        p for p in before[:3] if new_names(inquiry, p.quote) and not _PRONOUN.search(p.quote[:60])
    ]
    return (resolved or named)[:1]
