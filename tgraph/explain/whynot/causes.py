"""Why something is not in an answer, from a session's record and the store alone, without a model.

The stages are those at which a thing can be lost on its way from a document into an answer; after
the why-not provenance of databases (Chapman and Jagadish 2009). Exactly one of them is the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal as Choice

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.answer.token_budget import GROUPS
from tgraph.errors import UsageError
from tgraph.explain.as_of.corpus import Accession, CorpusAsOf, DocumentPlace
from tgraph.explain.as_of.ontology import OntologyAsOf
from tgraph.explain.as_of.store import StoreAsOf, read_then
from tgraph.explain.integrity.erasures import erasures_since
from tgraph.explain.trace.reader import read_trace
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import Trace
from tgraph.explain.whynot.cut_offs import (
    SessionBundle,
    SessionParameters,
    context_of,
    cut_off,
    reads_text,
)
from tgraph.explain.whynot.expected import Expected, ExpectedFinder
from tgraph.explain.whynot.pipeline import PipelinePosition, PipelinePositions, PipelineSearch
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.rendering import brief, one_line, place_text, render
from tgraph.retrieve.orders import CutOff
from tgraph.retrieve.text.lexical import terms
from tgraph.store.base import Store

SHOWN = 5
"""Places and carriers that are told."""
_MOST_PLACES = 1000
_EXTRACTED = "It has been extracted since; a new session can find it."


def why_absent(earlier: CorpusAsOf, expected: Expected) -> tuple[str, list[str]]:
    """Why no document that stood says it, in a sentence or two, and what has come since."""
    gone, came = [], []
    for document in _documents(earlier, expected):
        alike = [a for a in earlier.accessions if a.document == document]
        gone += [max(before, key=_end)] if (before := [a for a in alike if _was_gone(a)]) else []
        came += [max(since, key=_end)] if (since := [a for a in alike if not _was_gone(a)]) else []
    return _reason(gone, expected), _notes(earlier, expected, came)


def extracted_since(earlier: CorpusAsOf, expected: Expected) -> list[str]:
    """A note where more was extracted of it after the session, of documents that stand now."""
    now = {a.document for a in earlier.accessions if not a.ended}
    return [_EXTRACTED] if any(earlier.document_of(e) in now for e in expected.later) else []


def check_decidable(earlier: CorpusAsOf, expected: Expected, wanted: str) -> None:
    """``UsageError`` where a document that the session could know was erased since, so that nobody
    can tell what it said. Documents themselves stay on record."""
    if expected.is_place:
        return
    erasures = erasures_since(earlier.store, earlier.started)
    for erasure in reversed(erasures):
        if erasure.document in earlier.documents:
            raise UsageError(
                f"It can't be decided what the session could know of {one_line(wanted, 120)!r}: "
                f"text that it could read was erased on {erasure.time[:10]} ({erasure.reason}).",
                "What has been erased stays erased; ask the question again.",
            )


def _documents(earlier: CorpusAsOf, expected: Expected) -> list[str]:
    """The documents that say it and did not stand."""
    if expected.is_place:
        found = sorted(expected.documents)
    else:
        found = sorted({earlier.document_of(item) for item in expected.later})
        found += [place.document for place in islice(_saying(earlier, expected), _MOST_PLACES)]
    return [d for d in dict.fromkeys(found) if d not in earlier.documents]


def _saying(earlier: CorpusAsOf, expected: Expected) -> Iterator[DocumentPlace]:
    """Where they say it; of a fact, sentences that name both its ends."""
    first, *others = expected.names or ((expected.label,),)
    for place in earlier.find(first, known=False):
        words = set(terms(earlier.around(place).quote)) if others else set()
        if all(any(set(terms(name)) <= words for name in group) for group in others):
            yield place


def _was_gone(accession: Accession) -> bool:
    return accession.state in ("superseded", "retracted")


def _end(accession: Accession) -> tuple[bool, str]:
    """The last to end; what stands goes after all that ended."""
    return not accession.ended, accession.ended.removesuffix("Z")


def _reason(gone: list[Accession], expected: Expected) -> str:
    if not gone:
        return "No document that stood when the question was asked says it."
    says = "" if expected.is_place else "says it, but "
    first, *others = gone
    reason = f"{first.path} {says}had been {_ending(first)} when the question was asked."
    if others:
        paths = ", ".join(dict.fromkeys(a.path for a in others[:SHOWN]))
        more = ", ..." if len(others) > SHOWN else ""
        reason += f" Others that say it did not stand either: {paths}{more}."
    return reason


def _notes(earlier: CorpusAsOf, expected: Expected, came: list[Accession]) -> list[str]:
    notes = extracted_since(earlier, expected)
    standing = list(dict.fromkeys(a.path for a in came if not a.ended))[:SHOWN]
    if standing:
        notes.append(f"It is in a document that was taken in since: {', '.join(standing)}.")
    for lost in [a for a in came if a.ended][:SHOWN]:
        notes.append(f"{lost.path} was taken in since, and was {_ending(lost)}.")
    return notes


def _ending(accession: Accession) -> str:
    """How it ceased to stand, and when."""
    day = accession.ended[:10]
    if accession.ending == "superseded":
        return f"replaced by a new version (on {day})"
    return f"retracted (on {day}: {one_line(accession.why)})"


Cause = Choice[
    "used",
    "not-in-corpus",
    "not-extracted",
    "outside-ontology",
    "not-linked",
    "not-recorded",
    "beyond-limit",
    "not-selected",
    "not-used",
]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why ``expected`` is not in the answer of a session, or that it is.

    ``cause`` is the one stage at which it was lost, ``reason`` says it in a sentence. ``limit``,
    ``cutoff`` and ``rank`` are of the cause ``beyond-limit`` (``rank`` also of ``not-selected``).
    ``sentences`` are the numbers, from 1, of those that use it, ``items`` what carried it as far as
    it came, best first, ``places`` where documents say it. ``notes`` tell what is different now.
    """

    session: str
    question: str
    mode: str
    expected: str
    kind: str
    label: str
    cause: Cause
    reason: str
    limit: str | None = None
    cutoff: int | float | None = None
    rank: int | None = None
    sentences: tuple[int, ...] = ()
    items: tuple[PipelinePosition, ...] = ()
    places: tuple[DocumentPlace, ...] = ()
    notes: tuple[str, ...] = ()

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")

    def lines(self) -> Iterator[str]:
        """The cause with what it rests on, as text."""
        yield from (f"{self.kind}: {self.label}", f"cause: {_CAUSES[self.cause]}", self.reason)
        for item in self.items:
            rank = f"rank {item.rank}, " if item.rank else ""
            said = f"{item.kind}: {one_line(item.label, _LONGEST)}"
            yield f"  {said}  ({rank}score {item.score:.2f})"
            if item.reason:
                yield f"    {one_line(item.reason, _LONGEST)}"
        for place in self.places:
            yield f"  “{one_line(place.quote, _LONGEST)}”"
            where = place.path or place.title
            yield f"    {place_text(where, place.page, place.start, place.end)}"
        yield from (f"Note: {note}" for note in self.notes)


_LONGEST = 160
_CAUSES = {
    "used": "used in the answer after all",
    "not-in-corpus": "not in the corpus",
    "not-extracted": "in the corpus but not extracted",
    "outside-ontology": "extracted but kept out by the ontology",
    "not-linked": "extracted but not linked to the question",
    "not-recorded": "extracted but left out, it is not on record where",
    "beyond-limit": "linked but beyond a limit",
    "not-selected": "retrieved but not selected",
    "not-used": "selected but not used in the answer",
}


@dataclass(frozen=True, slots=True)
class _Case:
    """One question about one session, looked at in what that read ``then``; ``earlier`` reads what
    is there now."""

    wanted: str
    trace: Trace
    earlier: CorpusAsOf
    then: StoreAsOf
    expected: Expected
    reached: PipelinePositions

    def because(self, cause: Cause, reason: str, *notes: str, **more: object) -> WhyNot:
        trace, expected = self.trace, self.expected
        stopped = f"The session did not complete: it is {trace.status or 'open'}."
        if trace.status in ("completed", "no-evidence"):
            stopped = ""
        elif trace.status == "context-only":
            stopped = "No answer was written: only the context was asked for."
        return WhyNot(
            session=trace.explain_id,
            question=trace.question,
            mode=trace.mode,
            expected=self.wanted,
            kind=expected.kind,
            label=expected.label,
            cause=cause,
            reason=reason,
            notes=tuple(filter(None, (self.then.note, *notes, stopped))),
            **more,  # type: ignore[arg-type]
        )


def why_not(
    store: Store,
    texts: Texts,
    summary: SessionSummary,
    wanted: str,
    read_parameters: Callable[[Trace], SessionParameters],
) -> WhyNot:
    """Why ``wanted`` (a name, an IRI, a path, a fact or words of a document) is not in the answer
    of the session. ``read_parameters`` tells how the session was asked.

    ``UsageError`` where ``wanted`` is empty, or where text was erased since that may have said it.
    """
    if not wanted.strip():
        raise UsageError("What was expected is empty.", "Name an entity, a fact or a document.")
    librarian, trace = texts.librarian, read_trace(store, texts, summary, "")
    earlier = CorpusAsOf(store, texts, trace.generation, trace.started)
    generations = trace.generation, earlier.current
    with read_then(store, librarian, generations, trace.started) as then:
        case = _case(wanted, trace, earlier, then, librarian, summary)
        for way in (_used, _unused, _unselected, _absent, _unextracted, _outside):
            if (found := way(case)) is not None:
                if found.cause in ("not-in-corpus", "not-extracted"):
                    check_decidable(earlier, case.expected, wanted)
                return found
        parameters = read_parameters(trace)
        bundle = SessionBundle(then.store, librarian, summary)
        whole = context_of(then, librarian, parameters)
        limit = cut_off(case.trace, case.expected, whole, parameters.filters, bundle)
        if limit is not None:
            return _beyond(case, limit)
        return _unlinked(case) if bundle.orders is not None else _unrecorded(case)


def _case(
    wanted: str,
    trace: Trace,
    earlier: CorpusAsOf,
    then: StoreAsOf,
    librarian: Librarian,
    summary: SessionSummary,
) -> _Case:
    """What is expected, as it was known to the session; what was not known then, as it is now."""
    expected = ExpectedFinder(earlier).find(wanted)
    if then.is_past:
        texts = Texts(then.store, librarian)
        trace = read_trace(then.store, texts, summary, "")
        corpus = CorpusAsOf(then.store, texts, trace.generation, trace.started)
        known = ExpectedFinder(corpus).find(wanted)
        if known.is_known:
            expected = replace(known, later=expected.later)
    reached = PipelineSearch(then.store, trace, expected).reached()
    return _Case(wanted, trace, earlier, then, expected, reached)


# --- the causes, the furthest stage first ---


def _used(case: _Case) -> WhyNot | None:
    if not (numbers := case.reached.sentences):
        return None
    which = f"sentence{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return case.because(
        "used",
        f"It is in the answer after all: {which}.",
        sentences=numbers,
        items=case.reached.selected[:SHOWN],
    )


def _unused(case: _Case) -> WhyNot | None:
    if not (found := case.reached.selected):
        return None
    best = found[0]
    said = "the answer says nothing" if not case.trace.sentences else "no sentence rests on it"
    return case.because(
        "not-used",
        f"It was selected ({_named(best)}), but {said}.",
        rank=best.rank or None,
        items=found[:SHOWN],
    )


def _unselected(case: _Case) -> WhyNot | None:
    if not (found := case.reached.rejected):
        return None
    best = found[0]
    rank = f" with rank {best.rank}" if best.rank else ""
    why = best.reason or "no reason is on record, for the session ended before it selected"
    why += _tokens(case.trace, best)
    return case.because(
        "not-selected",
        f"It was retrieved ({_named(best)}{rank}), but not selected: {one_line(why)}.",
        rank=best.rank or None,
        items=found[:SHOWN],
    )


def _tokens(trace: Trace, carrier: PipelinePosition) -> str:
    """What it costs, and what was taken, where a budget of tokens was in the way."""
    cost = next((item.tokens for item in trace.rejected if item.iri == carrier.iri), 0)
    if "token budget" not in carrier.reason or not cost:
        return ""
    alike = trace.selected
    if "of its kind" in carrier.reason:
        group = GROUPS.get(carrier.kind, carrier.kind)
        alike = tuple(item for item in alike if GROUPS.get(item.kind, item.kind) == group)
    taken = sum(item.tokens for item in alike)
    return f"; it costs {cost:,} tokens, and {taken:,} were taken by {len(alike)} others"


def _absent(case: _Case) -> WhyNot | None:
    expected = case.expected
    if expected.is_place:
        known = bool(expected.documents & case.earlier.documents.keys())
    else:
        known = bool(expected.evidence or expected.iris or _places(case))
    if known:
        return None
    reason, notes = why_absent(case.earlier, expected)
    return case.because("not-in-corpus", reason, *notes)


def _unextracted(case: _Case) -> WhyNot | None:
    expected = case.expected
    by_text = reads_text(case.trace.mode) and expected.chunks
    if expected.evidence or expected.iris or by_text:
        return None
    places = _places(case)
    where = f", as in {places[0].path}" if places else ""
    return case.because(
        "not-extracted",
        f"Documents say it{where}, but no extraction made an edge of it.",
        *extracted_since(case.earlier, expected),
        places=places,
    )


def _outside(case: _Case) -> WhyNot | None:
    """The ontology, which was strict, kept all of it out of knowledge."""
    expected, ontology = case.expected, OntologyAsOf(case.then.store)
    about = {"entity": expected.entities, "fact": expected.edges}.get(expected.kind, frozenset())
    reasons = sorted({reason for iri in about if (reason := ontology.outside(iri))})
    named = [iri for iri in about if ontology.outside(iri)]
    if not reasons or not all(map(ontology.is_left_out, named)) or _is_known(case, about):
        return None
    return case.because(
        "outside-ontology",
        f"It was extracted, but the ontology keeps it out of knowledge: {', '.join(reasons)}.",
        places=_places(case),
    )


def _is_known(case: _Case, about: frozenset[str]) -> bool:
    """Whether knowledge has some of it."""
    match = case.then.store.match
    return any(
        next(match(NamedNode(iri), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH), None) for iri in about
    )


def _beyond(case: _Case, limit: CutOff) -> WhyNot:
    reason = f"It is linked to the question, but beyond a limit: {limit.reason}."
    if limit.limit.startswith("filter-"):
        reason = f"I{limit.reason[1:]}."
    return case.because(
        "beyond-limit",
        reason,
        limit=limit.limit,
        cutoff=limit.cutoff,
        rank=limit.rank,
        places=_places(case),
    )


def _unlinked(case: _Case) -> WhyNot:
    trace = case.trace
    considered = len(trace.selected) + len(trace.rejected)
    said = f"it is in none of the {considered} candidates of the question"
    if matched := len(trace.matches):
        said = f"none of the {matched} entities that the question led to leads to it"
    return case.because("not-linked", f"It was extracted, but {said}.", places=_places(case))


def _unrecorded(case: _Case) -> WhyNot:
    """The orders are not on record in which it may have been ranked."""
    return case.because(
        "not-recorded",
        "It was extracted, and is not among the candidates. Where it was cut can't be told: the"
        " session was recorded by an earlier version, which did not keep the orders in which it"
        " ranked, or they were erased with a document. Ask the question again to learn it.",
        places=_places(case),
    )


# --- what they rest on ---


def _places(case: _Case) -> tuple[DocumentPlace, ...]:
    """Where documents say it, each place with its sentence."""
    expected = case.expected
    found = iter(expected.places)
    if not expected.places and expected.kind in ("entity", "fact"):
        group = expected.names[0] if expected.names else (expected.label,)
        found = case.earlier.find(group) if expected.kind == "entity" else iter(())
    wide = (case.earlier.around(place) for place in islice(found, 4 * SHOWN))
    return tuple(dict.fromkeys(wide))[:SHOWN]


def _named(carrier: PipelinePosition) -> str:
    return one_line(f"{carrier.kind} “{carrier.label}”", 120)
