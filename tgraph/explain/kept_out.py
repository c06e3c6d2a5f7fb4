"""Which filter of a question kept something out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit
from tgraph.explain.reached import Search
from tgraph.explain.traced import Trace
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.labels import reified
from tgraph.retrieve.narrowing import narrowed
from tgraph.store.base import Store

Left = Callable[[Store], bool]
"""Whether a store still has what was expected."""


def kept_out(whole: Context, filters: Filters, left: Left, what: str) -> Limit | None:
    """The filter in the way; all of them, where only together they are. None where something is
    left of what the whole state has. ``what`` says how a filter kept it out."""
    if left(narrowed(whole, filters).store) or not left(whole.store):
        return None
    alone = [each for each in _each(filters) if not left(narrowed(whole, each).store)]
    found = alone[:1] or list(_each(filters))
    said = " and ".join(_said(each) for each in found)
    many = "filters" if len(found) > 1 else "filter"
    names = ", ".join(name for each in found for name in each.parameters)
    return Limit(names, None, None, f"{what} the {many} {said}")


def thing_kept_out(
    whole: Context, filters: Filters, expected: Expected, *, by_text: bool
) -> Limit | None:
    """The filter that left nothing of the expected; with ``by_text`` a chunk that says it is
    enough."""
    left = partial(_left, expected=expected, by_text=by_text)
    return kept_out(whole, filters, left, "it was kept out by")


def report_kept_out(
    whole: Context, filters: Filters, expected: Expected, trace: Trace
) -> Limit | None:
    """The filter that left no finding of a report that speaks of the expected."""
    what = "it was kept out with the findings that speak of it, which rest on more than is within"
    return kept_out(whole, filters, partial(_told, expected=expected, trace=trace), what)


def _told(store: Store, expected: Expected, trace: Trace) -> bool:
    search = Search(store, trace, expected)
    kinds = store.match(None, v.RDF_TYPE, v.tg("CommunityReport"), v.KNOWLEDGE_GRAPH)
    reports = (quad.subject.value for quad in kinds if isinstance(quad.subject, NamedNode))
    return any(search.told(report) for report in reports)


def _each(filters: Filters) -> Iterator[Filters]:
    """The filters, each by itself."""
    if filters.documents:
        yield Filters(documents=filters.documents)
    if filters.since:
        yield Filters(since=filters.since)
    if filters.until:
        yield Filters(until=filters.until)
    if filters.types:
        yield Filters(types=filters.types)


def _said(filters: Filters) -> str:
    [(name, _)] = filters.parameters.items()
    values = filters.documents or filters.types or (filters.since or filters.until or "",)
    return f"{name.removeprefix('filter-')} {', '.join(values)}"


def _left(store: Store, expected: Expected, by_text: bool) -> bool:
    """Whether the store has something that carries the expected."""
    found = bool(reified(store, sorted(expected.edges)))
    found = found or _are(store, expected.entities, "Entity")
    found = found or _are(store, expected.claims, "Claim")
    bare = not (expected.edges or expected.entities or expected.claims)
    return found or ((by_text or bare) and _are(store, expected.chunks, "Chunk"))


def _are(store: Store, iris: Iterable[str], kind: str) -> bool:
    return any(
        next(store.match(NamedNode(iri), v.RDF_TYPE, v.tg(kind), None), None) is not None
        for iri in sorted(iris)
    )
