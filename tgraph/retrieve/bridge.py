"""What sentences are worth together: in a row, or as the two ends of a bridge.

The first end of a bridge says who or what the question describes; the second, in another document,
is about that entity and says the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph.model import Edge
from tgraph.retrieve.inquiry import Inquiry
from tgraph.retrieve.lexical import Frequencies, terms
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

FIRST_ENDS = 8
"""Windows that are tried as the first end of a bridge."""

GAIN = 0.08
"""The share of the question that the second end has to add."""

NESTED_TOLL, PLAIN_TOLL = 0.04, 0.11
"""What a bridge must be worth more than one window, where the question describes something by a
clause of its own, and where it doesn't."""

BRIDGE = 0.08
"""What the rarest name counts as a bridge."""

RARE = 0.4
"""The least inverse document frequency of a name that is a bridge."""

SECOND = 0.86
"""The share of the best window's score from which another one is part of the answer."""

_NESTED = re.compile(r"(?<=\w\s)(?:that|who|whom|whose|which|where)\b|\.\s+\w", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:he|she|it|they|his|her|its|their|him|them)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Bridge:
    score: float
    first: Window
    second: Window
    name: str


def link(
    inquiry: Inquiry,
    passages: Mapping[Place, Passage],
    edges: Mapping[str, Edge],
    frequencies: Frequencies,
) -> Promotions:
    """Scores, with the reason, of sentences that are worth more together with others."""
    ranked = windows(passages.values(), inquiry)
    promoted: Promotions = {}
    for window in ranked[:40]:
        for passage in window.passages:
            if len(window.passages) > 1:
                why = "it stands in a row of sentences that answer together"
                _promote(promoted, passage, window.score, why)
    bridge = _bridge(inquiry, ranked, edges, frequencies)
    ends = (bridge.first, bridge.second) if bridge else tuple(ranked[:1])
    if bridge:
        told = (
            f"it tells of {bridge.name}, the bridge to another sentence",
            f"{bridge.name} is the bridge from another sentence to it",
        )
        for window, why in zip(ends, told, strict=True):
            for passage in window.passages:
                _promote(promoted, passage, bridge.score, why)
    for window in ends:
        score = bridge.score if bridge else window.score
        for passage in _antecedents(window, passages, edges):
            _promote(promoted, passage, score, "it names what the next sentences speak of")
    return promoted


def _promote(promoted: Promotions, passage: Passage, score: float, why: str) -> None:
    if score > max(passage.score, promoted.get(passage.place, (0.0, ""))[0]):
        promoted[passage.place] = score, why


# --- bridges --------------------------------------------------------------------------------------


def _bridge(
    inquiry: Inquiry, ranked: Sequence[Window], edges: Mapping[str, Edge], frequencies: Frequencies
) -> _Bridge | None:
    if not ranked:
        return None
    best: _Bridge | None = None
    seconds = _by_name(ranked, edges)
    least = ranked[0].score + (NESTED_TOLL if _NESTED.search(inquiry.text) else PLAIN_TOLL)
    for first in _first_ends(ranked):
        for name, label in sorted(_names(first, edges).items()):
            rarity = max((frequencies.idf(term) for term in terms(label)), default=0.0)
            if rarity < RARE or set(terms(label)) <= set(inquiry.weights):
                continue
            for second in seconds.get(name, ()):
                score = _together(inquiry, first, second) + BRIDGE * rarity
                if score > (best.score if best else least):
                    best = _Bridge(score, first, second, label)
    return best


def _first_ends(ranked: Sequence[Window]) -> list[Window]:
    """The best windows of one or two sentences that don't overlap."""
    found: list[Window] = []
    taken: set[Place] = set()
    for window in ranked[:80]:
        places = {p.place for p in window.passages}
        if len(places) <= 2 and not places & taken:
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


def _names(window: Window, edges: Mapping[str, Edge]) -> dict[str, str]:
    """The entities that the window's sentences name or speak of, with their labels."""
    return {
        term.value: label
        for passage in window.passages
        for iri in passage.edges
        for term, label in _ends(edges[iri])
        if any(stem in passage.wording.quote for stem in terms(label))
        or edges[iri].predicate_label != "mentions"
    }


def _ends(edge: Edge) -> list[tuple[NamedNode, str]]:
    ends = [(edge.subject, edge.subject_label)]
    if isinstance(edge.object, NamedNode):
        ends.append((edge.object, edge.object_label))
    return ends


def _by_name(ranked: Sequence[Window], edges: Mapping[str, Edge]) -> dict[str, list[Window]]:
    found: dict[str, list[Window]] = {}
    for window in ranked:
        if len(window.passages) <= 2:
            for entity in _names(window, edges):
                found.setdefault(entity, []).append(window)
    return found


# --- whom a pronoun means -------------------------------------------------------------------------


def _antecedents(
    window: Window, passages: Mapping[Place, Passage], edges: Mapping[str, Edge]
) -> list[Passage]:
    """The sentence shortly before the window that names what its pronouns were resolved to."""
    first = window.passages[0]
    if not _PRONOUN.search(first.quote[:60]):
        return []
    meant = {
        stem
        for iri in first.edges
        if edges[iri].predicate_label != "mentions"
        for stem in terms(edges[iri].subject_label)
    } - first.wording.quote
    document, page, start, _ = first.place
    before = [
        p
        for p in passages.values()
        if p.place[:2] == (document, page)
        and start - 600 <= p.place[2] < start
        and p.wording.is_prose
        and meant & p.wording.quote
    ]
    return [max(before, key=lambda p: (p.place[2], p.place[3]))] if before and meant else []
