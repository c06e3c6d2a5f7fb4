"""Recorded candidates as replacement for retrieval after knowledge changes.

Retrieved items, ranks and scores come from the record; labels and document positions come from
current knowledge. Evidence is immutable, so a selected candidate keeps its recorded evidence as
long as the documents stand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tgraph import vocabulary as v
from tgraph.engine.ask.methods import Method, TwoStages
from tgraph.errors import StoreError
from tgraph.explain.trace.bundle_reader import BundleReader, kind_of
from tgraph.explain.trace.recorded_session import RecordedSession
from tgraph.index.claims import claims_of
from tgraph.index.reports.report import report_evidence as ways_of
from tgraph.index.sources import text_value
from tgraph.librarian import Librarian
from tgraph.model import (
    Candidate,
    CommunityReport,
    Edge,
    EntityMatch,
    Evidence,
    Finding,
    Item,
    Retrieval,
)
from tgraph.models.base import Call
from tgraph.record.recorder import call_iri
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.candidates import chunk_evidence, chunk_item, known_entities
from tgraph.retrieve.labels import add_description, read_reified_edges
from tgraph.retrieve.reasons import parse_selection
from tgraph.retrieve.reports import evidence_of_parts, item_of, reports_at_hand
from tgraph.retrieve.search.surroundings import claim_item
from tgraph.retrieve.subgraph import weights_of

_LASTING = frozenset({"edge", "entity", "claim", "report", "chunk"})
_MOST_PLACES = 1_000

RecordedItems = Mapping[str, tuple[Edge | Item, tuple[Evidence, ...]]]
"""Things by their IRI, each with the places that state it now."""


@dataclass(frozen=True, slots=True)
class RecordedRetrieval:
    """A method with recorded retrieval; ``notes`` describe missing candidates."""

    method: Method
    notes: tuple[str, ...] = ()


def with_recorded_retrieval(
    method: Method, session: RecordedSession, context: Context, librarian: Librarian
) -> RecordedRetrieval | None:
    """Return a method with recorded candidates, or None for methods without single-stage
    retrieval or with candidate kinds rebuilt after each change."""
    reader = session.bundle_reader
    keys = reader.read_texts(v.retrieval_iri(session.uuid), "candidate")
    kinds = {
        kind_of(reader.read_text(key, "edge") or reader.read_text(key, "item")) for key in keys
    }
    if not isinstance(method, TwoStages) or not kinds <= _LASTING:
        return None
    retrieval, gone = _read_retrieval(reader, session.uuid, context, librarian)
    retriever = RecordedRetriever(
        method.retriever, retrieval, session, _retrieval_calls(session, method)
    )
    notes = (f"{gone} of the recorded candidates no longer exist.",) if gone else ()
    sharpens = method.sharpens or session.chat is None  # of an edge the best place isn't known
    return RecordedRetrieval(replace(method, retriever=retriever, sharpens=sharpens), notes)


class RecordedRetriever:
    """A retriever that returns recorded candidates and recorded retrieval calls."""

    def __init__(
        self,
        retriever: Retriever,
        retrieval: Retrieval,
        session: RecordedSession,
        calls: Sequence[Call],
    ) -> None:
        self.step = retriever.step
        self.matches_entities = retriever.matches_entities
        self._retrieval = retrieval
        self._recorded = session.calls
        self._calls = calls

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        for call in self._calls:
            if call.kind == "embedding" and "error" not in call.reply:
                context.embed(call.request["input"])
            else:
                self._recorded.pass_call(call, context.sink)
        return self._retrieval


def _retrieval_calls(session: RecordedSession, method: TwoStages) -> list[Call]:
    """Return recorded calls of retrieval steps."""
    reader, steps = session.bundle_reader, {v.tg("EntityMatching"), v.tg(method.retriever.step)}
    prefix = v.session_part_iri("step", session.uuid, "")
    return [
        call
        for call in session.calls.calls
        for step_iri in reader.read_texts(call_iri(session.uuid, call), "isPartOf")
        if step_iri.startswith(prefix) and not steps.isdisjoint(reader.nodes(step_iri, "type"))
    ]


def _read_retrieval(
    said: BundleReader, uuid: str, context: Context, librarian: Librarian
) -> tuple[Retrieval, int]:
    """Return the recorded retrieval, and the number of missing candidates."""
    subject = v.retrieval_iri(uuid)
    keys = said.read_numbered_iris(subject, "candidate")
    items = {key: said.read_text(key, "edge") or said.read_text(key, "item") for key in keys}
    known_items = _find_known_items(list(dict.fromkeys(items.values())), context, librarian)
    members = said.read_texts(v.selection_iri(uuid), "hadMember")
    selections = {said.read_text(member, "candidate"): member for member in members}
    candidates = [
        _read_candidate(said, key, selections.get(key, ""), *known_items[items[key]], context)
        for key in keys
        if items[key] in known_items
    ]
    cut = said.read_text(subject, "contentHash")
    retrieval = Retrieval(
        candidates=tuple(candidates),
        total=said.number(subject, "edgeCount"),
        items=said.number(subject, "itemCount"),
        matches=_read_matches(said, uuid),
        cut=tuple(librarian.get_text(cut).split("\n")) if cut else (),
        dropped=said.read_dropped_counts(subject),
    )
    return retrieval, len(keys) - len(candidates)


def _read_candidate(
    said: BundleReader,
    key: str,
    selection: str,
    item: Edge | Item,
    places: tuple[Evidence, ...],
    context: Context,
) -> Candidate:
    tokens = said.read_text(key, "tokenCount")
    return Candidate(
        item=item,
        rank=said.number(key, "rank"),
        score=said.real(key, "score"),
        hop=said.number(key, "hop"),
        evidence=_order_evidence(said.read_texts(selection, "wasDerivedFrom"), places, context)
        if selection
        else places[: context.limits.evidence_limit],
        reasons=parse_selection(said.read_text(selection, "reasoning")) if selection else (),
        tokens=int(tokens) if tokens else None,
        bridge=said.read_text(key, "bridge"),
    )


def _order_evidence(
    origins: Sequence[str], places: tuple[Evidence, ...], context: Context
) -> tuple[Evidence, ...]:
    """Return recorded evidence in its current retrieval order."""
    current_evidence = [place for place in places if place.iri in origins]
    missing = sorted(set(origins) - {place.iri for place in current_evidence})
    other_evidence = context.evidence.by_iri([iri for iri in missing if kind_of(iri) == "evidence"])
    return (*current_evidence, *other_evidence.values())


def _read_matches(said: BundleReader, uuid: str) -> tuple[EntityMatch, ...]:
    members = said.read_numbered_iris(v.session_part_iri("matches", uuid), "hadMember")
    return tuple(
        EntityMatch(
            said.read_text(m, "entity"),
            "",
            said.read_text(m, "concept"),
            said.real(m, "score"),
            said.read_text(m, "matchMethod"),
        )
        for m in members
    )


def _find_known_items(iris: Sequence[str], context: Context, librarian: Librarian) -> RecordedItems:
    """Return items and evidence that still exist, by IRI."""
    kinds: dict[str, list[str]] = {}
    for iri in iris:
        kinds.setdefault(kind_of(iri), []).append(iri)
    entities = kinds.get("entity", [])
    return {
        **_find_edges(kinds.get("edge", []), context),
        **_find_chunks(kinds.get("chunk", []), context),
        **_find_entities(entities, context),
        **_find_reports(kinds.get("report", []), context, librarian),
        **(_find_claims(entities, context) if "claim" in kinds else {}),
    }


def _find_edges(iris: Sequence[str], context: Context) -> RecordedItems:
    if not iris:
        return {}
    places = context.evidence.of_edges(iris, _MOST_PLACES)
    weights = weights_of(context, iris)
    return {
        iri: (add_description(edge, *weights.get(iri, (1.0, ""))), places[iri])
        for iri, edge in read_reified_edges(context.graph, iris).items()
        if places.get(iri)
    }


def _find_chunks(iris: Sequence[str], context: Context) -> RecordedItems:
    return {
        iri: (chunk_item(chunk, context), (chunk,))
        for iri, chunk in chunk_evidence(context, iris).items()
    }


def _find_entities(iris: Sequence[str], context: Context) -> RecordedItems:
    return {
        iri: (entity.item, entity.places) for iri, entity in known_entities(context, iris).items()
    }


def _find_reports(iris: Sequence[str], context: Context, librarian: Librarian) -> RecordedItems:
    """Return reports from knowledge, and recorded reports replaced since."""
    current_reports = reports_at_hand(context) if iris else None
    by_iri = current_reports.by_iri if current_reports else {}
    grounds = evidence_of_parts([iri for iri in iris if iri in by_iri], context)
    results: dict[str, tuple[Edge | Item, tuple[Evidence, ...]]] = {
        iri: (item_of(by_iri[iri]), grounds.get(iri, ())) for iri in iris if iri in by_iri
    }
    for iri in iris:
        report = None if iri in results else _former_report(iri, context, librarian)
        if report is not None:
            results[iri] = item_of(report), _report_evidence(iri, context)
    return results


def _former_report(iri: str, context: Context, librarian: Librarian) -> CommunityReport | None:
    key = text_value(context.store, iri, v.tg("contentHash"))
    with suppress(StoreError, KeyError, TypeError, ValueError):
        report_fields = json.loads(librarian.get_text(key))["report"]
        findings = tuple(
            Finding(**{**f, "cites": tuple(f["cites"])}) for f in report_fields["findings"]
        )
        return CommunityReport(**{**report_fields, "findings": findings})
    return None


def _report_evidence(report: str, context: Context) -> tuple[Evidence, ...]:
    """Return standing evidence of a report with derivation paths; identical spans count once."""
    ways = ways_of(context.store, report)
    spans: dict[object, Evidence] = {}
    for iri, place in context.evidence.by_iri(sorted(ways)).items():
        via = tuple(dict.fromkeys([report, *ways[iri], place.statement]))
        span = (place.document, place.page, place.start, place.end)
        spans.setdefault(span, replace(place, via=via))
    order = {iri: number for number, iri in enumerate(ways)}
    return tuple(sorted(spans.values(), key=lambda place: order[place.iri]))


def _find_claims(entities: Sequence[str], context: Context) -> RecordedItems:
    entity_claims = claims_of(context.store, context.texts, entities, context.doubt)
    return {
        claim.iri: (claim_item(claim), claim.evidence)
        for claims in entity_claims.values()
        for claim in claims
    }
