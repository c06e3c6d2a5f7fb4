"""Which filter of a question kept something out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit
from tgraph.retrieve.base import Context
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.labels import reified
from tgraph.retrieve.narrowing import narrowed
from tgraph.store.base import Store


def kept_out(
    whole: Context, filters: Filters, expected: Expected, *, by_text: bool
) -> Limit | None:
    """The filter in the way; all of them, where only together they are. None where something of
    the expected is left: with ``by_text`` a chunk that says it is enough."""
    if not _left(narrowed(whole, filters).store, expected, by_text):
        alone = [
            each
            for each in _each(filters)
            if not _left(narrowed(whole, each).store, expected, by_text)
        ]
        found = alone[:1] or list(_each(filters))
        said = " and ".join(_said(each) for each in found)
        many = "filters" if len(found) > 1 else "filter"
        names = ", ".join(name for each in found for name in each.parameters)
        if _left(whole.store, expected, by_text):
            return Limit(names, None, None, f"it was kept out by the {many} {said}")
    return None


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
