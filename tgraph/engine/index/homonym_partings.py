"""Bearers of one name, told apart in a run by what the standing documents say, or by hand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tgraph.engine.index.document_ingest import touch_document
from tgraph.engine.index.phase import IndexContext
from tgraph.index.bearers import RESTATES, BearerAssignment
from tgraph.index.homonyms import Bearer, HomonymFinder, is_distinguishing
from tgraph.index.sources import document_of_chunk, standing_documents
from tgraph.index.standing_knowledge import Properties, StandingEvidence, Weigh, term_value
from tgraph.index.touched import Touched
from tgraph.record.merges import read_partings
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class PartingChange:
    """Bearers that are told apart from now on, IRIs of partings that end, and how evidence counts
    therefore."""

    weigh: Weigh | None = None
    new: list[Bearer] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)


def update_partings(context: IndexContext, touched: Touched) -> PartingChange:
    """Find the bearers of touched names, state evidence under their names, and touch what changes.

    The bearers are a function of the standing evidence and of the partings by hand."""
    store = context.copy.store
    partings = read_partings(store)
    by_hand = [parting.bearer for parting in partings if parting.by_hand and parting.stands]
    before = {p.iri: p.bearer for p in partings if p.stands and not p.by_hand}
    candidates = {
        term_value(triple.subject) for triple in touched.edges.values() if is_distinguishing(triple)
    }
    candidates |= {b.name for b in (*before.values(), *by_hand) if b.name in touched.entities}
    if not partings and not candidates:
        return PartingChange()
    found = _find_bearers(store, sorted(candidates), by_hand)
    known = set(before.values())
    new = [bearer for bearer in found if bearer not in known]
    ended = {i: b for i, b in before.items() if b.name in candidates and b not in found}
    kept = [bearer for iri, bearer in before.items() if iri not in ended]
    assignment = BearerAssignment(store, (*by_hand, *kept, *new))
    changed = {document for b in (*new, *ended.values()) for document in b.documents}
    named = {d for d, bearers in assignment.bearers.items() if bearers.keys() & touched.entities}
    for document in sorted(changed | named):
        context.copy.add(list(dict.fromkeys(assignment.restate(document))))
        touch_document(store, document, touched)
    return PartingChange(assignment.weigh, new, sorted(ended))


def _find_bearers(
    store: Store, candidates: Iterable[str], by_hand: Iterable[Bearer]
) -> list[Bearer]:
    standing, hand = standing_documents(store), list(by_hand)
    texts = StandingEvidence(
        store, lambda chunk: document_of_chunk(chunk) in standing, _leave_restated_out
    )
    finder = HomonymFinder(store, texts)
    return [
        bearer
        for name in candidates
        for bearer in finder.find_bearers(
            name, [document for b in hand if b.name == name for document in b.documents]
        )
    ]


def _leave_restated_out(item: Properties) -> Properties | None:
    return None if RESTATES in item else item
