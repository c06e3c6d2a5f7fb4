"""Reasons for missing answer content, determined from session record and store alone, without a
model.

Causes are stages where content can be lost between document and answer; after the why-not
provenance of databases (Chapman and Jagadish 2009). Exactly one stage is the cause."""

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
from tgraph.explain.whynot.computed import describe_missing_query, explain_row
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
from tgraph.rendering import brief_repr, one_line, place_text, render_value
from tgraph.retrieve.orders import CutOff
from tgraph.retrieve.subset import narrow_context
from tgraph.retrieve.text.lexical import terms
from tgraph.store.base import Store

SHOWN = 5
"""Places and carriers that are told."""
_MOST_PLACES = 1000
_EXTRACTED = "The content was extracted after the session; a new session can find the content."


def why_absent(earlier: CorpusAsOf, expected: Expected) -> tuple[str, list[str]]:
    """Return why no standing document contains the expected content, in a sentence or two, plus
    notes on later changes."""
    gone, came = [], []
    for document in _absent_documents(earlier, expected):
        alike = [a for a in earlier.accessions if a.document == document]
        gone += (
            [max(before, key=_ending_key)] if (before := [a for a in alike if _was_gone(a)]) else []
        )
        came += (
            [max(since, key=_ending_key)]
            if (since := [a for a in alike if not _was_gone(a)])
            else []
        )
    return _absence_reason(gone, expected), _change_notes(earlier, expected, came)


def extracted_since(earlier: CorpusAsOf, expected: Expected) -> list[str]:
    """Return a note if standing documents yielded further extractions after the session."""
    now = {a.document for a in earlier.accessions if not a.ended}
    return [_EXTRACTED] if any(earlier.document_of(e) in now for e in expected.later) else []


def check_decidable(earlier: CorpusAsOf, expected: Expected, wanted: str) -> None:
    """Raise ``UsageError`` if a document known to the session was erased later, making its text
    undecidable.

    Expected documents themselves stay on record."""
    if expected.is_place:
        return
    erasures = erasures_since(earlier.store, earlier.started)
    for erasure in reversed(erasures):
        if not erasure.documents.isdisjoint(earlier.documents):
            raise UsageError(
                f"It can't be decided what the session could know of {one_line(wanted, 120)!r}: "
                f"text that it could read was erased on {erasure.time[:10]} ({erasure.reason}).",
                "Erased text can't be restored; ask the question again.",
            )


def _absent_documents(earlier: CorpusAsOf, expected: Expected) -> list[str]:
    """Return documents with the expected content that did not stand."""
    if expected.is_place:
        documents = sorted(expected.documents)
    else:
        documents = sorted({earlier.document_of(item) for item in expected.later})
        documents += [
            place.document
            for place in islice(_find_statement_places(earlier, expected), _MOST_PLACES)
        ]
    return [d for d in dict.fromkeys(documents) if d not in earlier.documents]


def _find_statement_places(earlier: CorpusAsOf, expected: Expected) -> Iterator[DocumentPlace]:
    """Yield places stating the expected content; for facts, sentences naming both ends."""
    first, *further_groups = expected.names or ((expected.label,),)
    for place in earlier.find(first, known=False):
        words = set(terms(earlier.widen_to_sentence(place).quote)) if further_groups else set()
        if all(any(set(terms(name)) <= words for name in group) for group in further_groups):
            yield place


def _was_gone(accession: Accession) -> bool:
    return accession.state in ("superseded", "retracted")


def _ending_key(accession: Accession) -> tuple[bool, str]:
    """Return a sort key ordering accessions by ending time, standing accessions after ended
    accessions."""
    return not accession.ended, accession.ended.removesuffix("Z")


def _absence_reason(gone: list[Accession], expected: Expected) -> str:
    if not gone:
        return f"No document in use at the time of the question states the {expected.kind}."
    says = "" if expected.is_place else f"states the {expected.kind}, but "
    first, *further_accessions = gone
    reason = f"{first.path} {says}had been {_describe_ending(first)} when the question was asked."
    if further_accessions:
        paths = ", ".join(dict.fromkeys(a.path for a in further_accessions[:SHOWN]))
        ellipsis = ", ..." if len(further_accessions) > SHOWN else ""
        reason += (
            f" Other documents with the {expected.kind} were not in use either: {paths}{ellipsis}."
        )
    return reason


def _change_notes(earlier: CorpusAsOf, expected: Expected, came: list[Accession]) -> list[str]:
    notes = extracted_since(earlier, expected)
    standing = list(dict.fromkeys(a.path for a in came if not a.ended))[:SHOWN]
    if standing:
        notes.append(f"A document indexed later states the {expected.kind}: {', '.join(standing)}.")
    for lost in [a for a in came if a.ended][:SHOWN]:
        notes.append(f"{lost.path} was indexed later, and was {_describe_ending(lost)}.")
    return notes


def _describe_ending(accession: Accession) -> str:
    """Return text explaining an accession's ending, with date."""
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
    "kept-out-by-query",
    "not-selected",
    "not-used",
]


@dataclass(frozen=True, slots=True)
class WhyNot:
    """A why-not result: reasons why ``expected`` is missing from a session's answer, or proof
    of presence.

    ``cause`` is the stage of loss, ``reason`` explains it in a sentence. ``limit``, ``cutoff``
    and ``rank`` belong to the cause ``beyond-limit`` (``rank`` also to ``not-selected``).
    ``sentences`` are numbers, from 1, of sentences using the expected content, ``items`` its
    carriers at the furthest stage, best first, ``places`` the document places stating it.
    ``notes`` describe later changes."""

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

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")

    def lines(self) -> Iterator[str]:
        """Yield text lines: cause with supporting items, places and notes."""
        yield from (f"{self.kind}: {self.label}", f"cause: {_CAUSES[self.cause]}", self.reason)
        for item in self.items:
            rank = f"rank {item.rank}, " if item.rank else ""
            item_text = f"{item.kind}: {one_line(item.label, _LONGEST)}"
            yield f"  {item_text}  ({rank}score {item.score:.2f})"
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
    "not-recorded": "extracted but left out at an unrecorded step",
    "beyond-limit": "linked but beyond a limit",
    "kept-out-by-query": "in the table but kept out of the result by the query",
    "not-selected": "retrieved but not selected",
    "not-used": "selected but not used in the answer",
}


@dataclass(frozen=True, slots=True)
class _Case:
    """A why-not question about one session, examined in store state ``then`` (read during the
    session); ``earlier`` reads present data."""

    wanted: str
    trace: Trace
    earlier: CorpusAsOf
    then: StoreAsOf
    expected: Expected
    reached: PipelinePositions

    @property
    def subject(self) -> str:
        """The expected content as the subject of a sentence, such as ``The entity``."""
        return f"The {self.expected.kind}"

    def conclude(self, cause: Cause, reason: str, *notes: str, **more: object) -> WhyNot:
        trace, expected = self.trace, self.expected
        stopped = f"The session has no answer: the status is {trace.status or 'open'}."
        if trace.status in ("completed", "no-evidence"):
            stopped = ""
        elif trace.status == "context-only":
            stopped = "The session has no answer: only the context was requested."
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
        case = _create_case(wanted, trace, earlier, then, librarian, summary)
        if trace.computed is not None and (
            result := _check_computed(case, librarian, read_parameters)
        ):
            return result
        for way in (
            _check_used,
            _check_unused,
            _check_unselected,
            _check_absent,
            _check_unextracted,
            _check_ontology,
        ):
            if (result := way(case)) is not None:
                if result.cause in ("not-in-corpus", "not-extracted"):
                    check_decidable(earlier, case.expected, wanted)
                return result
        parameters = read_parameters(trace)
        bundle = SessionBundle(then.store, librarian, summary)
        context = context_of(then, librarian, parameters)
        limit = cut_off(case.trace, case.expected, context, parameters.filters, bundle)
        if limit is not None:
            return _explain_limit(case, limit)
        return _explain_unlinked(case) if bundle.orders is not None else _explain_unrecorded(case)


def _create_case(
    wanted: str,
    trace: Trace,
    earlier: CorpusAsOf,
    then: StoreAsOf,
    librarian: Librarian,
    summary: SessionSummary,
) -> _Case:
    """Return a case describing expected content as the session knew it, otherwise as known now."""
    expected = ExpectedFinder(earlier).find(wanted)
    if then.is_past:
        texts = Texts(then.store, librarian)
        trace = read_trace(then.store, texts, summary, "")
        corpus = CorpusAsOf(then.store, texts, trace.generation, trace.started)
        past_expected = ExpectedFinder(corpus).find(wanted)
        if past_expected.is_known:
            expected = replace(past_expected, later=expected.later)
    reached = PipelineSearch(then.store, trace, expected).find_positions()
    return _Case(wanted, trace, earlier, then, expected, reached)


# --- the causes, the furthest stage first ---


def _check_computed(
    case: _Case, librarian: Librarian, read_parameters: Callable[[Trace], SessionParameters]
) -> WhyNot | None:
    """Return the part of a computed session's query that keeps an expected row out."""
    computed, parameters = case.trace.computed, read_parameters(case.trace)
    if computed is None or not computed.sparql:
        return None
    whole = context_of(case.then, librarian, parameters)
    context = narrow_context(whole, parameters.filters)
    if (absence := explain_row(case.trace, case.expected, context)) is None:
        return None
    reason = f"{absence.reason[:1].upper()}{absence.reason[1:]}."
    if not absence.is_row:
        check_decidable(case.earlier, case.expected, case.wanted)
        return case.conclude("not-in-corpus", reason)
    edges = [v.edge_iri(*statement) for statement in absence.statements]
    evidence = context.evidence.of_edges(edges, SHOWN)
    places = (
        DocumentPlace(e.document, e.title, e.path, e.page, e.start, e.end, e.quote)
        for edge in edges
        for e in evidence.get(edge, ())
    )
    items = tuple(item for item in case.reached.selected if item.item in edges)
    distinct = tuple(dict.fromkeys(places))[:SHOWN]
    return case.conclude("kept-out-by-query", reason, items=items[:SHOWN], places=distinct)


def _check_used(case: _Case) -> WhyNot | None:
    if not (numbers := case.reached.sentences):
        return None
    sentence_list = f"sentence{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
    return case.conclude(
        "used",
        f"{case.subject} is in the answer after all: {sentence_list}.",
        sentences=numbers,
        items=case.reached.selected[:SHOWN],
    )


def _check_unused(case: _Case) -> WhyNot | None:
    if not (positions := case.reached.selected):
        return None
    best = positions[0]
    usage_text = (
        "the answer is empty"
        if not case.trace.sentences
        else "no sentence of the answer uses the selected item"
    )
    return case.conclude(
        "not-used",
        f"{case.subject} was selected ({_position_text(best)}), but {usage_text}.",
        rank=best.rank or None,
        items=positions[:SHOWN],
    )


def _check_unselected(case: _Case) -> WhyNot | None:
    if not (positions := case.reached.rejected):
        return None
    best = positions[0]
    rank = f" with rank {best.rank}" if best.rank else ""
    why = best.reason or "no reason is on record, since the session ended before the selection"
    why += _token_cost(case.trace, best)
    return case.conclude(
        "not-selected",
        f"{case.subject} was retrieved ({_position_text(best)}{rank}), but not selected:"
        f" {one_line(why)}.",
        rank=best.rank or None,
        items=positions[:SHOWN],
    )


def _token_cost(trace: Trace, carrier: PipelinePosition) -> str:
    """Return an item's token cost and tokens already taken, if a token budget was exceeded."""
    cost = next((item.tokens for item in trace.rejected if item.iri == carrier.iri), 0)
    if "token budget" not in carrier.reason or not cost:
        return ""
    alike = trace.selected
    if any(name in carrier.reason for name in ("of its kind", "for the kind")):
        group = GROUPS.get(carrier.kind, carrier.kind)
        alike = tuple(item for item in alike if GROUPS.get(item.kind, item.kind) == group)
    token_total = sum(item.tokens for item in alike)
    selected = f"{len(alike)} selected items cost {token_total:,}"
    return f"; the candidate costs {cost:,} tokens, and {selected}"


def _check_absent(case: _Case) -> WhyNot | None:
    expected = case.expected
    if expected.is_place:
        is_present = bool(expected.documents & case.earlier.documents.keys())
    else:
        is_present = bool(expected.evidence or expected.iris or _find_places(case))
    if is_present:
        return None
    reason, notes = why_absent(case.earlier, expected)
    return case.conclude("not-in-corpus", reason, *notes)


def _check_unextracted(case: _Case) -> WhyNot | None:
    expected = case.expected
    by_text = reads_text(case.trace.mode) and expected.chunks
    if expected.evidence or expected.iris or by_text:
        return None
    places = _find_places(case)
    where = f", as in {places[0].path}" if places else ""
    return case.conclude(
        "not-extracted",
        f"Documents state the {expected.kind}{where}, but the extraction made no edge of the text.",
        *extracted_since(case.earlier, expected),
        places=places,
    )


def _check_ontology(case: _Case) -> WhyNot | None:
    """Return a result if a strict ontology kept all expected content outside knowledge."""
    expected, ontology = case.expected, OntologyAsOf(case.then.store)
    iris = {"entity": expected.entities, "fact": expected.edges}.get(expected.kind, frozenset())
    reasons = sorted({reason for iri in iris if (reason := ontology.outside(iri))})
    rejected_iris = [iri for iri in iris if ontology.outside(iri)]
    if not reasons or not all(map(ontology.is_left_out, rejected_iris)) or _is_known(case, iris):
        return None
    return case.conclude(
        "outside-ontology",
        f"{case.subject} was extracted, but excluded from knowledge by the ontology:"
        f" {', '.join(reasons)}.",
        places=_find_places(case),
    )


def _is_known(case: _Case, about: frozenset[str]) -> bool:
    """Tell whether knowledge contains any of the IRIs."""
    match = case.then.store.match
    return any(
        next(match(NamedNode(iri), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH), None) for iri in about
    )


def _explain_limit(case: _Case, limit: CutOff) -> WhyNot:
    reason = f"{case.subject} is linked to the question, but beyond a limit: {limit.reason}."
    if limit.limit.startswith("filter-"):
        reason = f"{case.subject} {limit.reason}."
    return case.conclude(
        "beyond-limit",
        reason,
        limit=limit.limit,
        cutoff=limit.cutoff,
        rank=limit.rank,
        places=_find_places(case),
    )


def _explain_unlinked(case: _Case) -> WhyNot:
    trace = case.trace
    if trace.computed is not None and not trace.computed.sparql:
        reason = f"{case.subject} was extracted, but {describe_missing_query(trace.computed)}."
        return case.conclude("not-linked", reason, places=_find_places(case))
    considered = len(trace.selected) + len(trace.rejected)
    explanation = (
        f"none of the {considered} candidates of the question contains the {case.expected.kind}"
    )
    if matched := len(trace.matches):
        explanation = (
            f"no edge or text connects it to any of the {matched} entities matched to the question"
        )
    return case.conclude(
        "not-linked", f"{case.subject} was extracted, but {explanation}.", places=_find_places(case)
    )


def _explain_unrecorded(case: _Case) -> WhyNot:
    """Return the cause for sessions whose ranked orders are not on record."""
    return case.conclude(
        "not-recorded",
        f"{case.subject} was extracted, and is not among the candidates. The limit that excluded"
        f" the {case.expected.kind} is unknown: the session was recorded by an earlier version,"
        " which did not record rankings, or the rankings were erased with a document. Ask the"
        " question again to see the limit.",
        places=_find_places(case),
    )


# --- what they rest on ---


def _find_places(case: _Case) -> tuple[DocumentPlace, ...]:
    """Return document places with the expected content, widened to sentences."""
    expected = case.expected
    places = iter(expected.places)
    if not expected.places and expected.kind in ("entity", "fact"):
        group = expected.names[0] if expected.names else (expected.label,)
        places = case.earlier.find(group) if expected.kind == "entity" else iter(())
    wide = (case.earlier.widen_to_sentence(place) for place in islice(places, 4 * SHOWN))
    return tuple(dict.fromkeys(wide))[:SHOWN]


def _position_text(carrier: PipelinePosition) -> str:
    return one_line(f"{carrier.kind} “{carrier.label}”", 120)
