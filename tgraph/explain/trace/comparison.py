"""Two sessions side by side, and the form of one in which two runs of it are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import unified_diff
from hashlib import sha256

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.trace.bundle_reader import kind_of, local_name, numbers
from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.rendering import brief


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
class OneSidedPlace:
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
    citations_removed: tuple[OneSidedPlace, ...]
    citations_added: tuple[OneSidedPlace, ...]

    __repr__ = brief

    @property
    def same(self) -> bool:
        """Whether nothing that is compared differs."""
        compared = (f.name for f in fields(self) if f.name not in ("before", "after"))
        return not any(getattr(self, name) for name in compared)


Items = Mapping[str, TraceItem]


def compare(before: Trace, after: Trace, *, names: tuple[str, str] = ("", "")) -> Comparison:
    """What differs between two sessions. ``names`` are shown above the answers."""
    sessions = (before, after)
    chosen = [_by_item(trace.selected) for trace in sessions]
    known = [_by_item((*trace.selected, *trace.rejected)) for trace in sessions]
    cited = [_cited(trace) for trace in sessions]
    return Comparison(
        before=before.explain_id,
        after=after.explain_id,
        asked=tuple(_asked(before, after)),
        candidates_removed=_only(*known),
        candidates_added=_only(*reversed(known)),
        candidates_moved=tuple(_moved(*known)),
        selected_removed=_only(*chosen),
        selected_added=_only(*reversed(chosen)),
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
            "as of": trace.as_of,
            **{f"parameter {name}": value for name, value in trace.parameters.items()},
        }
        for trace in (before, after)
    ]
    names = dict.fromkeys([*sides[0], *sides[1]])
    pairs = ((name, sides[0].get(name, ""), sides[1].get(name, "")) for name in names)
    return [Changed(*pair) for pair in pairs if pair[1] != pair[2]]


def _by_item(items: Sequence[TraceItem]) -> Items:
    """The items by IRI; points, which are a session's own, by what they say."""
    return {f"point {i.label}" if i.kind == "point" else i.item: i for i in items}


def _only(here: Items, there: Items) -> tuple[OneSided, ...]:
    alone = [item for key, item in here.items() if key not in there]
    alone.sort(key=lambda item: (item.rank, item.item))
    return tuple(OneSided(i.item, i.label, i.rank, i.score, i.reasoning) for i in alone)


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


def _cited(trace: Trace) -> list[OneSidedPlace]:
    places = (
        OneSidedPlace(c.document, c.path, c.page, c.start, c.end, " ".join(c.quote.split()))
        for sentence in trace.sentences
        for c in sentence.citations
    )
    return list(dict.fromkeys(places))


# --- replays (design, section 3.7) ---

FIXED = "00000000-0000-0000-0000-000000000000"
_DROPPED = frozenset(
    {v.prov("startedAtTime"), v.prov("endedAtTime"), v.prov("generatedAtTime")}
) | {v.tg("llmDurationMs"), v.tg("asOf")}
_NUMBERS = frozenset({v.xsd("double"), v.xsd("decimal"), v.xsd("float")})
_ORDER = (
    *("session", "parameter", "concepts", "matches", "match", "retrieval", "candidate"),
    *("selection", "edge", "item", "answer", "sentence", "citation", "step", "call"),
)

Statement = tuple[str, str, str]
"""Subject, property and value, as texts."""


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """Where two records differ: of what, in which property, and the values on either side."""

    subject: str
    property: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]


def replay_form(quads: Iterable[Quad], uuid: str) -> frozenset[Statement]:
    """The statements of a session's bundle as they are compared: the UUID is fixed, times and
    durations are dropped, scores are rounded to six decimals. Left out is too that a question was
    asked as of earlier knowledge: which knowledge it was, its generation says. What the retrieval
    and the selection are called, which was once something else, is not compared. Nor are the orders
    that limits cut off, which earlier sessions have not on record. What is named by a digest of
    names with the UUID in them is named by what is said of it."""
    named = NamedNode(v.retrieval_iri(uuid)), NamedNode(v.selection_iri(uuid))
    orders = NamedNode(v.session_part_iri("orders", uuid))
    said = [
        (_fixed(quad.subject, uuid), quad.predicate.value, _fixed(quad.object, uuid))
        for quad in quads
        if quad.predicate not in _DROPPED
        and quad.subject != orders
        and not (quad.predicate == v.RDFS_LABEL and quad.subject in named)
    ]
    names = _names_by_content(said)
    return frozenset((names.get(s, s), p, names.get(o, o)) for s, p, o in said)


_BY_DIGEST = tuple(f"{v.URN}prov:{kind}:" for kind in ("dropped", "association"))


def _names_by_content(said: Iterable[Statement]) -> dict[str, str]:
    """Names of what is named by a digest of the session's names: whose it is and what is said."""
    about: dict[str, list[str]] = {}
    for subject, predicate, value in said:
        if subject.startswith(_BY_DIGEST):
            about.setdefault(subject, []).append(f"{predicate} {value}")
        elif value.startswith(_BY_DIGEST):
            about.setdefault(value, []).append(f"{subject} {predicate}")
    return {
        name: f"{name.rpartition(':')[0]}:{v.digest(*sorted(told))}" for name, told in about.items()
    }


def replay_hash(form: Iterable[Statement]) -> str:
    """SHA-256 over the sorted statements."""
    lines = sorted("\t".join(statement) for statement in form)
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def differences(
    recorded: frozenset[Statement], replayed: frozenset[Statement]
) -> list[RecordDifference]:
    """Where the two differ, in the order of the stages of a session."""
    sides: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for index, only in enumerate((recorded - replayed, replayed - recorded)):
        for subject, predicate, value in sorted(only):
            sides.setdefault((subject, predicate), ([], []))[index].append(value)
    return [
        RecordDifference(subject, local_name(NamedNode(predicate)), tuple(one), tuple(other))
        for (subject, predicate), (one, other) in sorted(sides.items(), key=_stage_order)
    ]


def _stage_order(item: tuple[tuple[str, str], object]) -> tuple[int, tuple[int, ...], str, str]:
    (subject, predicate), _ = item
    kind = kind_of(subject)
    known = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return known, numbers(subject), subject, predicate


def _fixed(term: object, uuid: str) -> str:
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        return f"{float(term.value):.6f}"
    value = term.value if isinstance(term, NamedNode | Literal) else str(term)
    return value.replace(uuid, FIXED)
