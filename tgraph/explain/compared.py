"""Two sessions side by side: what was asked, retrieved, selected, said and cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import unified_diff

from tgraph.explain.traced import Trace, TracedEvidence, TracedItem


@dataclass(frozen=True, slots=True)
class Changed:
    """A value that both sessions have and that is not the same."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OneSided:
    """Something that one session has alone: its IRI, what it is called, rank and score."""

    item: str
    label: str
    rank: int
    score: float
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """A candidate of both sessions whose rank or score is not the same."""

    item: str
    label: str
    rank_before: int
    rank_after: int
    score_before: float
    score_after: float


@dataclass(frozen=True, slots=True)
class Place:
    """Characters of a document that only one of the sessions cites."""

    document: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Session ``before`` beside session ``after``, by IRI.

    ``asked`` compares question, mode, status, generation and parameters; ``answer`` is a unified
    diff of the sentences, line by line, empty where they are the same.
    """

    before: str
    after: str
    asked: tuple[Changed, ...]
    candidates_removed: tuple[OneSided, ...]
    candidates_added: tuple[OneSided, ...]
    candidates_moved: tuple[Moved, ...]
    selected_removed: tuple[OneSided, ...]
    selected_added: tuple[OneSided, ...]
    answer: tuple[str, ...]
    citations_removed: tuple[Place, ...]
    citations_added: tuple[Place, ...]

    @property
    def same(self) -> bool:
        """Whether nothing that is compared differs."""
        compared = (f.name for f in fields(self) if f.name not in ("before", "after"))
        return not any(getattr(self, name) for name in compared)


Items = Mapping[str, TracedItem]


def compare(before: Trace, after: Trace, *, names: tuple[str, str] = ("", "")) -> Comparison:
    """What differs between two sessions. ``names`` are shown above the answers."""
    chosen = _by_item(before, before.selected), _by_item(after, after.selected)
    known = _candidates(before), _candidates(after)
    cited = _cited(before), _cited(after)
    return Comparison(
        before=before.explain_id,
        after=after.explain_id,
        asked=tuple(_asked(before, after)),
        candidates_removed=_only(*known),
        candidates_added=_only(known[1], known[0]),
        candidates_moved=tuple(_moved(*known)),
        selected_removed=_only(*chosen),
        selected_added=_only(chosen[1], chosen[0]),
        answer=tuple(_answers(before, after, names)),
        citations_removed=tuple(place for place in cited[0] if place not in cited[1]),
        citations_added=tuple(place for place in cited[1] if place not in cited[0]),
    )


def _asked(before: Trace, after: Trace) -> list[Changed]:
    sides = [
        {
            "question": trace.question,
            "mode": trace.mode,
            "status": trace.status,
            "error": trace.error,
            "generation": str(trace.generation),
            **{f"parameter {name}": value for name, value in trace.parameters.items()},
        }
        for trace in (before, after)
    ]
    names = dict.fromkeys([*sides[0], *sides[1]])
    pairs = ((name, sides[0].get(name, ""), sides[1].get(name, "")) for name in names)
    return [Changed(*pair) for pair in pairs if pair[1] != pair[2]]


def _candidates(trace: Trace) -> Items:
    return _by_item(trace, (*trace.selected, *trace.rejected))


def _by_item(trace: Trace, items: Sequence[TracedItem]) -> Items:
    """The items by IRI; points, which are a session's own, by what they say."""
    return {f"point {i.label}" if i.kind == "point" else i.item: i for i in items}


def _only(here: Items, there: Items) -> tuple[OneSided, ...]:
    alone = [item for key, item in here.items() if key not in there]
    return tuple(OneSided(i.item, i.label, i.rank, i.score, i.reasoning) for i in _in_order(alone))


def _in_order(items: Sequence[TracedItem]) -> list[TracedItem]:
    return sorted(items, key=lambda item: (item.rank, item.item))


def _moved(before: Items, after: Items) -> list[Moved]:
    both = [(before[key], after[key]) for key in before if key in after]
    found = [
        Moved(one.item, one.label, one.rank, other.rank, one.score, other.score)
        for one, other in both
        if one.rank != other.rank or round(one.score, 6) != round(other.score, 6)
    ]
    return sorted(found, key=lambda moved: (moved.rank_after, moved.item))


def _answers(before: Trace, after: Trace, names: tuple[str, str]) -> list[str]:
    one, other = ([s.text for s in t.sentences] or [t.answer] for t in (before, after))
    titles = names[0] or before.explain_id, names[1] or after.explain_id
    whole = max(len(one), len(other))
    return list(unified_diff(one, other, titles[0], titles[1], n=whole, lineterm=""))


def _cited(trace: Trace) -> list[Place]:
    places = (_place(c) for sentence in trace.sentences for c in sentence.citations)
    return list(dict.fromkeys(places))


def _place(cited: TracedEvidence) -> Place:
    quote = " ".join(cited.quote.split())
    return Place(cited.document, cited.path, cited.page, cited.start, cited.end, quote)
