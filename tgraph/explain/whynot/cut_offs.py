"""Which limit or filter kept something from the candidates of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.as_of.names import values_of
from tgraph.explain.as_of.store import RecordedParameters
from tgraph.explain.trace.derivation import actions_of
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import Trace
from tgraph.explain.whynot.expected import Expected
from tgraph.explain.whynot.pipeline import PipelineSearch
from tgraph.index.stored_graph import StoredGraph
from tgraph.librarian import Librarian
from tgraph.model import EntityMatch
from tgraph.rendering import one_line
from tgraph.retrieve.base import Context, Keywords
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.labels import reified
from tgraph.retrieve.modes.base import load
from tgraph.retrieve.modes.registry import mode_named
from tgraph.retrieve.orders import (
    AskedAction,
    CutOff,
    Missing,
    ModeOrders,
    RatedReport,
    RecordedSearch,
    first_cut,
    no_orders,
    nth,
)
from tgraph.retrieve.subset import narrowed
from tgraph.retrieve.text.word_vectors import by_words_if_foreign
from tgraph.store.base import Store, text_of


@dataclass(frozen=True, slots=True)
class SessionBundle:
    """The bundle of one session in a store."""

    store: Store
    librarian: Librarian
    summary: SessionSummary

    def complete_list(self) -> list[str]:
        """All that was retrieved, best first, by IRI, where some of it was no candidate; nothing
        where all of it was, or the list was erased."""
        for key in self._texts(v.retrieval_iri(self._uuid), v.tg("contentHash")):
            try:
                return self.librarian.get_text(key).split("\n")
            except StoreError:
                return []
        return []

    def embedding_calls(self, trace: Trace) -> list[str]:
        """The content hashes of the calls of embedders, in their order."""
        return [
            key
            for call in trace.calls
            if call.label.startswith("embedding")
            for key in self._texts(call.iri, v.tg("contentHash"))
        ]

    def hypothesis(self) -> str:
        """The question as DRIFT search put it as an answer; empty where none did."""
        subject = v.session_part_iri("hypothesis", self._uuid)
        return next(iter(self._texts(subject, v.tg("text"))), "")

    @property
    def _uuid(self) -> str:
        return self.summary.explain_id.removeprefix(v.session_iri(""))

    def _texts(self, subject: str, predicate: NamedNode) -> list[str]:
        return values_of(self.store, subject, predicate, NamedNode(self.summary.bundle))


def reads_text(mode: str) -> bool:
    """Whether a mode retrieves chunks as they stand, whatever was extracted from them."""
    found = mode_named(mode)
    return found is not None and found.reads_text


def cut_off(
    trace: Trace,
    expected: Expected,
    whole: Context,
    asked: RecordedParameters,
    bundle: SessionBundle,
) -> CutOff | None:
    """The filter or limit that the expected is beyond; None where nothing links it to the question.
    ``whole`` is what the session read, filters aside.

    Where a vector is needed that is on no record, the limit is named without a rank."""
    mode = mode_named(trace.mode)
    reports = mode.reports if mode else None
    orders: ModeOrders = load(mode.orders) if mode and mode.orders else no_orders
    left = by_words_if_foreign(asked.question.text, narrowed(whole, asked.filters))
    own = partial(_has_it, expected=expected, by_text=reads_text(trace.mode))
    told = partial(_has_report, expected=expected, trace=trace)

    def ways() -> Iterator[CutOff | None]:
        yield _kept_out(whole, asked.filters, own, "it was kept out by")
        if reports == "only":
            yield _kept_out(whole, asked.filters, told, _WITH_FINDINGS)
        yield _listed(bundle.complete_list(), trace, expected, left)
        missing, search = _missing(trace, expected, left), _recorded(trace, asked, bundle)
        found = first_cut(orders(missing, search, left))
        yield replace(found, reason=one_line(found.reason)) if found else None
        if reports == "beside":
            yield _kept_out(whole, asked.filters, told, _WITH_FINDINGS)

    return next(filter(None, ways()), None)


def _listed(every: list[str], trace: Trace, expected: Expected, context: Context) -> CutOff | None:
    """It is on the complete list of what was retrieved, after the candidates."""
    rank = next((n for n, iri in enumerate(every, 1) if iri in expected.in_items), 0)
    if not rank:
        return None
    name, cutoff = "max-subgraph-size", context.limits.max_subgraph_size
    if rank <= cutoff:  # the mode counts otherwise
        cutoff = len(_candidates(trace).intersection(every))
        name = "edge-score-limit" if cutoff == context.limits.edge_score_limit else name
    why = f"it came {nth(rank)} of {len(every)} that were retrieved, and the first {cutoff} became"
    return CutOff(name, cutoff, rank, f"{why} candidates ({name})")


_ASKED = [each.name for each in fields(AskedAction)]


def _missing(trace: Trace, e: Expected, context: Context) -> Missing:
    search = PipelineSearch(context.store, trace, e)
    return Missing(
        e.kind, e.entities, e.edges, e.chunks, e.evidence, tells=search.told, names=search.names
    )


def _recorded(trace: Trace, asked: RecordedParameters, bundle: SessionBundle) -> RecordedSearch:
    words = Keywords(trace.keywords.get("low", ()), trace.keywords.get("high", ()))
    return RecordedSearch(
        trace.mode,
        replace(asked.question, keywords=words),
        [EntityMatch(m.entity, m.label, "", 0.0, m.method) for m in trace.matches],
        _candidates(trace),
        trace.item_count,
        [call.label for call in trace.calls],
        trace.dropped,
        asked.rank,
        {r.report: RatedReport(r.label, r.score, r.relevant) for r in trace.ratings},
        [AskedAction(**{n: getattr(a, n) for n in _ASKED}) for a in actions_of(trace)],
        bundle.hypothesis(),
    )


def _candidates(trace: Trace) -> frozenset[str]:
    return frozenset(item.item for item in (*trace.selected, *trace.rejected))


# --- filters ---

_WITH_FINDINGS = (
    "it was kept out with the findings that speak of it, which rest on more than is within"
)


def _kept_out(
    whole: Context, filters: Filters, left: Callable[[Store], bool], what: str
) -> CutOff | None:
    """The filter in the way; all of them, where only together they are. None where something is
    left of what the whole state has. ``what`` says how a filter kept it out."""
    if not filters or left(narrowed(whole, filters).store) or not left(whole.store):
        return None
    values = {each.name: getattr(filters, each.name) for each in fields(Filters)}
    each = [Filters(**{name: value}) for name, value in values.items() if value]
    found = [one for one in each if not left(narrowed(whole, one).store)][:1] or each
    said = " and ".join(_said(one) for one in found)
    names = ", ".join(name for one in found for name in one.parameters)
    many = "filters" if len(found) > 1 else "filter"
    return CutOff(names, None, None, f"{what} the {many} {said}")


def _said(filters: Filters) -> str:
    [(name, _)] = filters.parameters.items()
    date = filters.since or filters.until or filters.valid_at or ""
    values = filters.documents or filters.types or filters.languages or (date,)
    return f"{name.removeprefix('filter-')} {', '.join(values)}"


def _has_it(store: Store, expected: Expected, by_text: bool) -> bool:
    """Whether a store has something that carries the expected; with ``by_text`` a chunk that says
    it is enough."""
    bare = not (expected.edges or expected.entities or expected.claims)
    kinds = {"Entity": expected.entities, "Claim": expected.claims}
    kinds |= {"Chunk": expected.chunks} if by_text or bare else {}
    return bool(reified(StoredGraph(store), sorted(expected.edges))) or any(
        next(store.match(NamedNode(iri), v.RDF_TYPE, v.tg(kind), None), None) is not None
        for kind, iris in kinds.items()
        for iri in sorted(iris)
    )


def _has_report(store: Store, expected: Expected, trace: Trace) -> bool:
    """Whether a store has a report that speaks of the expected."""
    search = PipelineSearch(store, trace, expected)
    reports = store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
    return any(search.told(text_of(quad.subject)) for quad in reports)
