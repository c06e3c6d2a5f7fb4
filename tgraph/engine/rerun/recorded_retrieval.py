"""Recorded candidates in the place of retrieval, where the knowledge has changed since.

What was retrieved, with rank and score, is as recorded; what the things are in words, and where the
documents state them, is read from what there is now. Evidence is immutable, so a selected candidate
has the places that it was recorded with, as far as their documents stand.
"""

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
from tgraph.index.reports.report import evidence as ways_of
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
from tgraph.retrieve.labels import described, reified
from tgraph.retrieve.reports import evidence_of_parts, item_of, reports_at_hand
from tgraph.retrieve.search.local import claim_item
from tgraph.retrieve.subgraph import weights_of

_LASTING = frozenset({"edge", "entity", "claim", "report", "chunk"})
_MOST_PLACES = 1_000
_PREFIXES = ("Within the budget; ", "Chosen because ")

Known = Mapping[str, tuple[Edge | Item, tuple[Evidence, ...]]]
"""Things by their IRI, each with the places that state it now."""


@dataclass(frozen=True, slots=True)
class RecordedRetrieval:
    """A method whose retrieval is the recorded one; ``notes`` say what of it is gone."""

    method: Method
    notes: tuple[str, ...] = ()


def with_recorded_retrieval(
    method: Method, session: RecordedSession, context: Context, librarian: Librarian
) -> RecordedRetrieval | None:
    """The method with the recorded candidates; None for one that does not retrieve in one go, or
    whose candidates are of a kind that is made anew with each change."""
    said = session.said
    keys = said.all(v.retrieval_iri(session.uuid), "candidate")
    kinds = {kind_of(said.one(key, "edge") or said.one(key, "item")) for key in keys}
    if not isinstance(method, TwoStages) or not kinds <= _LASTING:
        return None
    retrieval, gone = _retrieval(said, session.uuid, context, librarian)
    retriever = RecordedRetriever(method.retriever, retrieval, session, _calls(session, method))
    notes = (f"{gone} of the recorded candidates are no longer there.",) if gone else ()
    sharpens = method.sharpens or session.chat is None  # of an edge the best place isn't known
    return RecordedRetrieval(replace(method, retriever=retriever, sharpens=sharpens), notes)


class RecordedRetriever:
    """Gives the recorded candidates, and the calls that retrieval made."""

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
                self._recorded.give(call, context.sink)
        return self._retrieval


def _calls(session: RecordedSession, method: TwoStages) -> list[Call]:
    """The calls of the steps that retrieve."""
    said, steps = session.said, {v.tg("EntityMatching"), v.tg(method.retriever.step)}
    prefix = v.session_part_iri("step", session.uuid, "")
    return [
        call
        for call in session.calls.calls
        for whole in said.all(call_iri(session.uuid, call), "isPartOf")
        if whole.startswith(prefix) and not steps.isdisjoint(said.nodes(whole, "type"))
    ]


def _retrieval(
    said: BundleReader, uuid: str, context: Context, librarian: Librarian
) -> tuple[Retrieval, int]:
    """What was retrieved, and how many of the candidates are gone."""
    subject = v.retrieval_iri(uuid)
    keys = said.numbered(subject, "candidate")
    items = {key: said.one(key, "edge") or said.one(key, "item") for key in keys}
    known = _known(list(dict.fromkeys(items.values())), context, librarian)
    members = said.all(v.selection_iri(uuid), "hadMember")
    selections = {said.one(member, "candidate"): member for member in members}
    candidates = [
        _candidate(said, key, selections.get(key, ""), *known[items[key]], context)
        for key in keys
        if items[key] in known
    ]
    cut = said.one(subject, "contentHash")
    retrieval = Retrieval(
        candidates=tuple(candidates),
        total=said.number(subject, "edgeCount"),
        items=said.number(subject, "itemCount"),
        matches=_matches(said, uuid),
        cut=tuple(librarian.get_text(cut).split("\n")) if cut else (),
        dropped=said.dropped(subject),
    )
    return retrieval, len(keys) - len(candidates)


def _candidate(
    said: BundleReader,
    key: str,
    selection: str,
    item: Edge | Item,
    places: tuple[Evidence, ...],
    context: Context,
) -> Candidate:
    tokens = said.one(key, "tokenCount")
    return Candidate(
        item=item,
        rank=said.number(key, "rank"),
        score=said.real(key, "score"),
        hop=said.number(key, "hop"),
        evidence=_shown(said.all(selection, "wasDerivedFrom"), places, context)
        if selection
        else places[: context.limits.evidence_limit],
        reasons=_reasons(said.one(selection, "reasoning")) if selection else (),
        tokens=int(tokens) if tokens else None,
        bridge=said.one(key, "bridge"),
    )


def _shown(
    origins: Sequence[str], places: tuple[Evidence, ...], context: Context
) -> tuple[Evidence, ...]:
    """The places that were recorded, in the order in which they are found now."""
    found = [place for place in places if place.iri in origins]
    missing = sorted(set(origins) - {place.iri for place in found})
    other = context.evidence.by_iri([iri for iri in missing if kind_of(iri) == "evidence"])
    return (*found, *other.values())


def _reasons(reasoning: str) -> tuple[str, ...]:
    """What a method without a model gave as reasons, from what it wrote."""
    for prefix in _PREFIXES:
        if reasoning.startswith(prefix):
            return (reasoning.removeprefix(prefix).removesuffix("."),)
    return ()


def _matches(said: BundleReader, uuid: str) -> tuple[EntityMatch, ...]:
    members = said.numbered(v.session_part_iri("matches", uuid), "hadMember")
    return tuple(
        EntityMatch(
            said.one(m, "entity"),
            "",
            said.one(m, "concept"),
            said.real(m, "score"),
            said.one(m, "matchMethod"),
        )
        for m in members
    )


def _known(iris: Sequence[str], context: Context, librarian: Librarian) -> Known:
    """Those of the things that there still are."""
    kinds: dict[str, list[str]] = {}
    for iri in iris:
        kinds.setdefault(kind_of(iri), []).append(iri)
    entities = kinds.get("entity", [])
    return {
        **_edges(kinds.get("edge", []), context),
        **_chunks(kinds.get("chunk", []), context),
        **_entities(entities, context),
        **_reports(kinds.get("report", []), context, librarian),
        **(_claims(entities, context) if "claim" in kinds else {}),
    }


def _edges(iris: Sequence[str], context: Context) -> Known:
    if not iris:
        return {}
    places = context.evidence.of_edges(iris, _MOST_PLACES)
    weights = weights_of(context, iris)
    return {
        iri: (described(edge, *weights.get(iri, (1.0, ""))), places[iri])
        for iri, edge in reified(context.graph, iris).items()
        if places.get(iri)
    }


def _chunks(iris: Sequence[str], context: Context) -> Known:
    return {
        iri: (chunk_item(whole, context), (whole,))
        for iri, whole in chunk_evidence(context, iris).items()
    }


def _entities(iris: Sequence[str], context: Context) -> Known:
    return {
        iri: (entity.item, entity.places) for iri, entity in known_entities(context, iris).items()
    }


def _reports(iris: Sequence[str], context: Context, librarian: Librarian) -> Known:
    """Reports that knowledge holds, and those that others have taken the place of since."""
    known = reports_at_hand(context) if iris else None
    by_iri = known.by_iri if known else {}
    grounds = evidence_of_parts([iri for iri in iris if iri in by_iri], context)
    found: dict[str, tuple[Edge | Item, tuple[Evidence, ...]]] = {
        iri: (item_of(by_iri[iri]), grounds.get(iri, ())) for iri in iris if iri in by_iri
    }
    for iri in iris:
        report = None if iri in found else _former_report(iri, context, librarian)
        if report is not None:
            found[iri] = item_of(report), _grounds(iri, context)
    return found


def _former_report(iri: str, context: Context, librarian: Librarian) -> CommunityReport | None:
    key = text_value(context.store, iri, v.tg("contentHash"))
    with suppress(StoreError, KeyError, TypeError, ValueError):
        kept = json.loads(librarian.get_text(key))["report"]
        findings = tuple(Finding(**{**f, "cites": tuple(f["cites"])}) for f in kept["findings"])
        return CommunityReport(**{**kept, "findings": findings})
    return None


def _grounds(report: str, context: Context) -> tuple[Evidence, ...]:
    """The standing evidence that a report rests on, with the way to it; a span counts once."""
    ways = ways_of(context.store, report)
    spans: dict[object, Evidence] = {}
    for iri, place in context.evidence.by_iri(sorted(ways)).items():
        via = tuple(dict.fromkeys([report, *ways[iri], place.statement]))
        span = (place.document, place.page, place.start, place.end)
        spans.setdefault(span, replace(place, via=via))
    order = {iri: number for number, iri in enumerate(ways)}
    return tuple(sorted(spans.values(), key=lambda place: order[place.iri]))


def _claims(entities: Sequence[str], context: Context) -> Known:
    found = claims_of(context.store, context.texts, entities, context.doubt)
    return {
        claim.iri: (claim_item(claim), claim.evidence)
        for claims in found.values()
        for claim in claims
    }
