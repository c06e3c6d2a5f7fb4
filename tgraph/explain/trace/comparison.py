"""Session comparison, plus a normalised session form for comparing runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import unified_diff
from hashlib import sha256

from pyoxigraph import Literal, NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.explain.trace.bundle_reader import iri_numbers, kind_of, local_name
from tgraph.explain.trace.values import Trace, TraceItem
from tgraph.rendering import brief_repr


@dataclass(frozen=True, slots=True)
class Changed:
    """A value different between sessions."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class OneSided:
    """An item present in only one session: IRI, label, rank, score."""

    item: str
    label: str
    rank: int
    score: float
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """A shared candidate with a changed rank or score."""

    item: str
    label: str
    rank_before: int
    rank_after: int
    score_before: float
    score_after: float


@dataclass(frozen=True, slots=True)
class OneSidedPlace:
    """Document characters cited by only one session."""

    document: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison between session ``before`` and session ``after``, by IRI.

    ``asked`` compares question, mode, status, generation and parameters; ``answer`` is a
    unified diff of sentences, line by line, blank if both answers are equal."""

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

    __repr__ = brief_repr

    @property
    def is_same(self) -> bool:
        """Tell whether no compared value differs."""
        compared = (f.name for f in fields(self) if f.name not in ("before", "after"))
        return not any(getattr(self, name) for name in compared)


TraceItems = Mapping[str, TraceItem]


def compare_sessions(
    before: Trace, after: Trace, *, names: tuple[str, str] = ("", "")
) -> Comparison:
    """Return differences between two sessions. ``names`` are shown above the answers."""
    sessions = (before, after)
    chosen = [_by_item(trace.selected) for trace in sessions]
    candidates = [_by_item((*trace.selected, *trace.rejected)) for trace in sessions]
    cited = [_list_cited_places(trace) for trace in sessions]
    return Comparison(
        before=before.explain_id,
        after=after.explain_id,
        asked=tuple(_compare_requests(before, after)),
        candidates_removed=_find_one_sided(*candidates),
        candidates_added=_find_one_sided(*reversed(candidates)),
        candidates_moved=tuple(_find_moved_candidates(*candidates)),
        selected_removed=_find_one_sided(*chosen),
        selected_added=_find_one_sided(*reversed(chosen)),
        answer=tuple(_diff_answers(before, after, names)),
        citations_removed=tuple(place for place in cited[0] if place not in cited[1]),
        citations_added=tuple(place for place in cited[1] if place not in cited[0]),
    )


def _compare_requests(before: Trace, after: Trace) -> list[Changed]:
    sides = [
        {
            "question": trace.question,
            "mode": trace.mode,
            "status": trace.status,
            "error": trace.error,
            "generation": str(trace.generation),
            "as of": trace.as_of,
            "query": " ".join(trace.computed.sparql.split()) if trace.computed else "",
            **{f"parameter {name}": value for name, value in trace.parameters.items()},
        }
        for trace in (before, after)
    ]
    names = dict.fromkeys([*sides[0], *sides[1]])
    pairs = ((name, sides[0].get(name, ""), sides[1].get(name, "")) for name in names)
    return [Changed(*pair) for pair in pairs if pair[1] != pair[2]]


def _by_item(items: Sequence[TraceItem]) -> TraceItems:
    """Return items by IRI; points, which belong to a single session, are keyed by their text."""
    return {f"point {i.label}" if i.kind == "point" else i.item: i for i in items}


def _find_one_sided(here: TraceItems, there: TraceItems) -> tuple[OneSided, ...]:
    alone = [item for key, item in here.items() if key not in there]
    alone.sort(key=lambda item: (item.rank, item.item))
    return tuple(OneSided(i.item, i.label, i.rank, i.score, i.reasoning) for i in alone)


def _find_moved_candidates(before: TraceItems, after: TraceItems) -> list[Moved]:
    pairs = [(before[key], after[key]) for key in before if key in after]
    moves = [
        Moved(earlier.item, earlier.label, earlier.rank, later.rank, earlier.score, later.score)
        for earlier, later in pairs
        if earlier.rank != later.rank or round(earlier.score, 6) != round(later.score, 6)
    ]
    return sorted(moves, key=lambda moved: (moved.rank_after, moved.item))


def _diff_answers(before: Trace, after: Trace, names: tuple[str, str]) -> list[str]:
    before_lines, after_lines = (
        [s.text for s in t.sentences] or [t.answer] for t in (before, after)
    )
    titles = names[0] or before.explain_id, names[1] or after.explain_id
    context_lines = max(len(before_lines), len(after_lines))
    return list(
        unified_diff(before_lines, after_lines, titles[0], titles[1], n=context_lines, lineterm="")
    )


def _list_cited_places(trace: Trace) -> list[OneSidedPlace]:
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

StatementTexts = tuple[str, str, str]
"""Subject, property and value, as texts."""


@dataclass(frozen=True, slots=True)
class RecordDifference:
    """A record difference: subject, property, recorded and replayed values."""

    subject: str
    property: str
    recorded: tuple[str, ...]
    replayed: tuple[str, ...]


def replay_form(quads: Iterable[Quad], uuid: str) -> frozenset[StatementTexts]:
    """The statements of a session's bundle as they are compared: the UUID is fixed, times and
    durations are dropped, scores are rounded to six decimals. Left out is too that a question was
    asked as of earlier knowledge: which knowledge it was, its generation says. What the retrieval
    and the selection are called, which was once something else, is not compared. Nor are the orders
    that limits cut off, which earlier sessions have not on record. What is named by a digest of
    names with the UUID in them is named by what is said of it."""
    label_subjects = NamedNode(v.retrieval_iri(uuid)), NamedNode(v.selection_iri(uuid))
    orders = NamedNode(v.session_part_iri("orders", uuid))
    statements = [
        (
            _normalise_term(quad.subject, uuid),
            quad.predicate.value,
            _normalise_term(quad.object, uuid),
        )
        for quad in quads
        if quad.predicate not in _DROPPED
        and quad.subject != orders
        and not (quad.predicate == v.RDFS_LABEL and quad.subject in label_subjects)
    ]
    names = _names_by_content(statements)
    return frozenset((names.get(s, s), p, names.get(o, o)) for s, p, o in statements)


_BY_DIGEST = tuple(f"{v.URN}prov:{kind}:" for kind in ("dropped", "association"))


def _names_by_content(said: Iterable[StatementTexts]) -> dict[str, str]:
    """Return content-based names for resources named by digests of session names: owner and
    statements."""
    descriptions: dict[str, list[str]] = {}
    for subject, predicate, value in said:
        if subject.startswith(_BY_DIGEST):
            descriptions.setdefault(subject, []).append(f"{predicate} {value}")
        elif value.startswith(_BY_DIGEST):
            descriptions.setdefault(value, []).append(f"{subject} {predicate}")
    return {
        name: f"{name.rpartition(':')[0]}:{v.digest_parts(*sorted(statements))}"
        for name, statements in descriptions.items()
    }


def replay_hash(form: Iterable[StatementTexts]) -> str:
    """SHA-256 over the sorted statements."""
    lines = sorted("\t".join(statement) for statement in form)
    return sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def find_differences(
    recorded: frozenset[StatementTexts], replayed: frozenset[StatementTexts]
) -> list[RecordDifference]:
    """Return record differences, ordered by session stage."""
    sides: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for index, only in enumerate((recorded - replayed, replayed - recorded)):
        for subject, predicate, value in sorted(only):
            sides.setdefault((subject, predicate), ([], []))[index].append(value)
    return [
        RecordDifference(
            subject,
            local_name(NamedNode(predicate)),
            tuple(recorded_values),
            tuple(replayed_values),
        )
        for (subject, predicate), (recorded_values, replayed_values) in sorted(
            sides.items(), key=_stage_order
        )
    ]


def _stage_order(item: tuple[tuple[str, str], object]) -> tuple[int, tuple[int, ...], str, str]:
    (subject, predicate), _ = item
    kind = kind_of(subject)
    stage_index = _ORDER.index(kind) if kind in _ORDER else len(_ORDER)
    return stage_index, iri_numbers(subject), subject, predicate


def _normalise_term(term: object, uuid: str) -> str:
    if isinstance(term, Literal) and term.datatype in _NUMBERS:
        return f"{float(term.value):.6f}"
    value = term.value if isinstance(term, NamedNode | Literal) else str(term)
    return value.replace(uuid, FIXED)
