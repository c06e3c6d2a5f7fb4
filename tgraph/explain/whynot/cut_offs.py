"""Limits and filters excluding content from session candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.as_of.names import values_of
from tgraph.explain.as_of.store import StoreAsOf, without_erased
from tgraph.explain.trace.derivation import actions_of
from tgraph.explain.trace.sessions import SessionSummary
from tgraph.explain.trace.values import Trace
from tgraph.explain.whynot.expected import Expected
from tgraph.explain.whynot.pipeline import PipelineSearch
from tgraph.index.sources import Texts
from tgraph.index.stored_graph import StoredGraph
from tgraph.index.summary_tree import is_chunk, standing_tree, summary_title
from tgraph.librarian import Librarian
from tgraph.model import RankedOrder
from tgraph.models.base import Embedder
from tgraph.rendering import collapse_whitespace, one_line
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.labels import labels_of, read_reified_edges
from tgraph.retrieve.modes.base import load_entry
from tgraph.retrieve.modes.registry import mode_named
from tgraph.retrieve.orders import (
    AskedAction,
    CutOff,
    Missing,
    ModeCutOffs,
    OrderReader,
    RatedReport,
    RecordedSearch,
    format_ordinal,
    no_cut_offs,
    orders_from_json,
)
from tgraph.retrieve.search.summary_tree import nodes_above
from tgraph.retrieve.subset import narrow_context
from tgraph.settings import Settings
from tgraph.store.base import Graph, Store, text_of


@dataclass(frozen=True, slots=True)
class SessionParameters:
    """Recorded settings and filters of a session.

    ``embedder`` belongs to the graph; no embedding is computed."""

    settings: Settings
    filters: Filters
    embedder: Embedder


@dataclass(frozen=True)
class SessionBundle:
    """A session's bundle in a store."""

    store: Store
    librarian: Librarian
    summary: SessionSummary

    def complete_list(self) -> list[str]:
        """Return all retrieved IRIs, best rank before lower ranks, if some retrieved items were
        no candidates.

        Return an empty list if all items were candidates, or if the list was erased."""
        text = self._content(v.retrieval_iri(self._session_uuid))
        return text.split("\n") if text else []

    @cached_property
    def orders(self) -> tuple[RankedOrder, ...] | None:
        """Orders cut off by limits; None if erased or unrecorded."""
        text = self._content(v.session_part_iri("orders", self._session_uuid))
        return orders_from_json(text) if text else None

    @property
    def _session_uuid(self) -> str:
        return self.summary.explain_id.removeprefix(v.session_iri(""))

    def _content(self, subject: str) -> str:
        """Return librarian content for a session part; empty without content."""
        graph = NamedNode(self.summary.bundle)
        for key in values_of(self.store, subject, v.tg("contentHash"), graph):
            try:
                return self.librarian.get_text(key)
            except StoreError:
                return ""
        return ""


def reads_text(mode: str) -> bool:
    """Tell whether a mode retrieves chunks directly, independent of extractions."""
    mode_entry = mode_named(mode)
    return mode_entry is not None and mode_entry.reads_text


def context_of(then: StoreAsOf, librarian: Librarian, parameters: SessionParameters) -> Context:
    """What the session retrieved from, filters aside, without any vectors."""
    store = without_erased(then.store)[0] if then.is_past else then.store
    texts = Texts(store, librarian)
    return Context(store, texts, {}, parameters.embedder, parameters.settings)


def cut_off(
    trace: Trace,
    expected: Expected,
    whole: Context,
    filters: Filters,
    bundle: SessionBundle,
) -> CutOff | None:
    """Return the filter or limit excluding the expected item; None if nothing links the item to
    the question.

    ``whole`` is the context read by the session, without filters."""
    mode = mode_named(trace.mode)
    reports = mode.reports if mode else None
    cut_offs: ModeCutOffs = load_entry(mode.cut_offs) if mode and mode.cut_offs else no_cut_offs
    filtered_context = narrow_context(whole, filters)
    has_content = partial(_has_it, expected=expected, by_text=reads_text(trace.mode))
    has_report = partial(_has_report, expected=expected, trace=trace)

    def ways() -> Iterator[CutOff | None]:
        yield _kept_out(whole, filters, has_content, "is excluded by")
        if reports == "only":
            yield _kept_out(whole, filters, has_report, _WITH_FINDINGS)
        yield _find_list_cut(bundle.complete_list(), trace, expected, filtered_context)
        missing, search = (
            _describe_missing(trace, expected, filtered_context),
            _create_recorded_search(trace, bundle),
        )
        for cut in cut_offs(missing, search, filtered_context):
            yield replace(cut, reason=one_line(cut.reason))
        found_by_rank = MissingInOrders(missing, filtered_context, trace).first_cut(search.orders)
        if found_by_rank is not None:
            yield replace(found_by_rank, reason=one_line(found_by_rank.reason))
        if reports == "beside":
            yield _kept_out(whole, filters, has_report, _WITH_FINDINGS)

    return next(filter(None, ways()), None)


def _find_list_cut(
    every: list[str], trace: Trace, expected: Expected, context: Context
) -> CutOff | None:
    """Return the cut-off if the expected content appears on the complete retrieval list, after
    the candidates."""
    rank = next((n for n, iri in enumerate(every, 1) if iri in expected.in_items), 0)
    if not rank:
        return None
    name, cutoff = "max-subgraph-size", context.limits.max_subgraph_size
    if rank <= cutoff:  # the mode counts otherwise
        cutoff = len(_candidate_iris(trace).intersection(every))
        name = "edge-score-limit" if cutoff == context.limits.edge_score_limit else name
    place = f"{format_ordinal(rank)} of {len(every)}"
    why = f"the edge is the {place} retrieved edges, and the first {cutoff} are candidates"
    return CutOff(name, cutoff, rank, f"{why} ({name})")


_ASKED = [each.name for each in fields(AskedAction)]


def _describe_missing(trace: Trace, e: Expected, context: Context) -> Missing:
    search = PipelineSearch(context.store, trace, e)
    return Missing(
        e.kind,
        e.entities,
        e.edges,
        e.chunks,
        e.evidence,
        tells=search.mentions_expected,
        names=search.names,
    )


def _create_recorded_search(trace: Trace, bundle: SessionBundle) -> RecordedSearch:
    return RecordedSearch(
        trace.mode,
        trace.matches,
        _candidate_iris(trace),
        trace.dropped,
        {r.report: RatedReport(r.label, r.score, r.relevant) for r in trace.ratings},
        [AskedAction(**{n: getattr(a, n) for n in _ASKED}) for a in actions_of(trace)],
        bundle.orders or (),
    )


def _candidate_iris(trace: Trace) -> frozenset[str]:
    return frozenset(item.item for item in (*trace.selected, *trace.rejected))


# --- orders ---

_FIRST: Mapping[str, tuple[str, ...]] = {
    "entity": ("entity", "edge", "chunk", "report"),
    "fact": ("edge", "chunk", "report", "entity"),
}
_OTHERS = ("chunk", "edge", "report", "entity")
"""In which sequence the orders of local search are looked through for an expectation of a kind;
those of others are in the sequence in which something can be lost in them."""

_LIKE = {
    "start": "edge",
    "excluded": "entity",
    "reached": "entity",
    "node": "chunk",
    "layer": "chunk",
}
"""Kinds of items that are looked for as others are."""

_NAMES = {
    **dict.fromkeys(("edge of chunks", "entity of chunks"), "chunk"),
    **dict.fromkeys(("node", "layer"), "node of the tree"),
    "start": "edge",
    "excluded": "entity",
}
"""Names of kinds of items in a reason, if different from the kind."""


@dataclass(frozen=True)
class MissingInOrders:
    """The missing item during its search in recorded orders of a session."""

    missing: Missing
    context: Context
    trace: Trace

    def first_cut(self, orders: Sequence[RankedOrder]) -> CutOff | None:
        """Return the limit excluding the missing item from the orders.

        Among several searches, for the question and follow-up questions, the closest search
        counts."""
        reader = OrderReader(self._is_missing, self._describe, self._label, self._may_have)
        is_local = any(order.limit == "top-k-entities" for order in orders)
        kinds = _FIRST.get(self.missing.kind, _OTHERS) if is_local else ()
        places = {kind: place for place, kind in enumerate(kinds)}
        last = len(kinds)
        searches: dict[str, list[RankedOrder]] = {}
        for order in sorted(orders, key=lambda o: places.get(_LIKE.get(o.kind, o.kind), last)):
            searches.setdefault(order.query, []).append(order)
        cuts = [
            cut for search in searches.values() if (cut := reader.first_cut(search)) is not None
        ]
        first = min(cuts, key=lambda cut: cut.distance, default=None)
        starts = {order.limit for order in orders if order.kind == "start"}
        chunks = [order for order in orders if order.kind == "chunk"]
        if first and first.limit in starts and (chunk := reader.first_cut(chunks)):
            return replace(first, reason=f"{first.reason}; and its chunk: {chunk.reason}")
        return first

    @cached_property
    def _leading(self) -> set[str]:
        """The entities that lead to the missing."""
        missing, store = self.missing, self.context.store
        return missing.ends(store) | (set() if missing.entities else missing.spoken_of(store))

    @cached_property
    def _ancestor_nodes(self) -> set[str]:
        """Return summary tree nodes containing the missing item, and their ancestors."""
        tree = standing_tree(self.context.store)
        telling = {iri for iri in tree if self.missing.tells(iri)}
        return nodes_above(tree, self.missing.chunks | telling)

    def _is_missing(self, order: RankedOrder, item: str) -> bool:
        missing = self.missing
        match order.kind:
            case "chunk":
                return item in missing.chunks
            case "edge" | "edge of chunks":
                return item in missing.edges
            case "start":
                return missing.kind == "fact" and item in missing.edges
            case "entity" | "reached":
                return item in self._leading
            case "excluded":
                return item in self._leading and self._leading <= set(order.items)
            case "entity of chunks":
                return bool(missing.chunks) and item in missing.spoken_of(self.context.store)
            case "node":
                return item in missing.chunks if is_chunk(item) else missing.tells(item)
            case "layer":
                return item in self._ancestor_nodes
        return missing.tells(item)  # a report

    def _may_have(self, order: RankedOrder) -> bool:
        missing = self.missing
        matched = {match.entity for match in self.trace.matches}
        is_linked = not matched.isdisjoint(missing.ends(self.context.store) | self._leading)
        match order.kind:
            case "chunk":
                return bool(missing.chunks) and (order.limit != "most-chunks" or is_linked)
            case "node" | "layer":
                return bool(missing.chunks)
            case "start":
                return missing.kind == "fact" and bool(missing.edges)
            case "edge" if order.limit == "top-k":
                return bool(missing.edges)
            case "edge":
                return bool(missing.edges) and order.limit == "top-k-relationships" and is_linked
            case "entity":
                return bool(self._leading)
        return False

    def _describe(self, order: RankedOrder, item: str) -> str:
        """Return words for an item in a reason; items without IRIs are not on record."""
        if order.kind in ("report", "primer"):
            return f"the report on the {self.missing.kind}"
        if order.kind == "layer" and item and not is_chunk(item):
            title = summary_title(self.context.store, item)
            return f"the summary “{title}” above the {self.missing.kind}"
        if order.kind not in ("entity", "reached") or item in self.missing.entities:
            return f"the {_NAMES.get(order.kind, order.kind)}"
        if not item and self.missing.entities:
            return "the entity"
        nearest = f"the nearest entity named by the {self.missing.kind}"
        return f"{self._label(item)}, {nearest}," if item else nearest

    def _label(self, entity: str) -> str:
        [label] = labels_of(self.context.graph, [NamedNode(entity)]).values()
        return collapse_whitespace(label)


# --- filters ---

_WITH_FINDINGS = (
    "is excluded together with the report findings about it, whose documents are not all within"
)


def _kept_out(
    whole: Context, filters: Filters, left: Callable[[Store], bool], what: str
) -> CutOff | None:
    """Return the excluding filter, or all filters if only their combination excludes.

    Return None if any content of the whole state is left. ``what`` describes how a filter
    excludes."""
    if not filters or left(narrow_context(whole, filters).store) or not left(whole.store):
        return None
    values = {
        single_filters.name: getattr(filters, single_filters.name)
        for single_filters in fields(Filters)
    }
    single_filters = [Filters(**{name: value}) for name, value in values.items() if value]
    excluding_filters = [
        filter_choice
        for filter_choice in single_filters
        if not left(narrow_context(whole, filter_choice).store)
    ][:1] or single_filters
    filter_texts = " and ".join(_filter_text(filter_choice) for filter_choice in excluding_filters)
    names = ", ".join(
        name for filter_choice in excluding_filters for name in filter_choice.parameters
    )
    many = "filters" if len(excluding_filters) > 1 else "filter"
    return CutOff(names, None, None, f"{what} the {many} {filter_texts}")


def _filter_text(filters: Filters) -> str:
    [(name, _)] = filters.parameters.items()
    date = filters.since or filters.until or filters.valid_at or ""
    values = filters.documents or filters.types or filters.languages or (date,)
    return f"{name.removeprefix('filter-')} {', '.join(values)}"


def _has_it(store: Store, expected: Expected, by_text: bool) -> bool:
    """Tell whether a store contains a carrier of the expected content; with ``by_text``, a
    chunk stating it suffices."""
    bare = not (expected.edges or expected.entities or expected.claims)
    known: Graph = v.KNOWLEDGE_GRAPH
    recorded: Graph = v.SOURCE_GRAPH
    kinds = {("Entity", known): expected.entities, ("Claim", known): expected.claims}
    kinds |= {("Chunk", recorded): expected.chunks} if by_text or bare else {}
    return bool(read_reified_edges(StoredGraph(store), sorted(expected.edges))) or any(
        next(store.match(NamedNode(iri), v.RDF_TYPE, v.tg(kind), graph), None) is not None
        for (kind, graph), iris in kinds.items()
        for iri in sorted(iris)
    )


def _has_report(store: Store, expected: Expected, trace: Trace) -> bool:
    """Tell whether a store contains a report mentioning the expected content."""
    search = PipelineSearch(store, trace, expected)
    reports = store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
    return any(search.mentions_expected(text_of(quad.subject)) for quad in reports)
