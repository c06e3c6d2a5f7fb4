"""Entities and their facts, what people decided about them, and anything that has an IRI."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from pyoxigraph import Literal, NamedNode, Quad, Triple
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.trace.entities import EntityMerges
from tgraph.explain.trace.facts import Facts, KnownFact
from tgraph.extensions.server.node_link import facts_of, node_link_svg
from tgraph.extensions.server.workbench.pages import SentForm, Visit, WorkbenchPage, part_of, seen
from tgraph.index.evidence import stored_evidence
from tgraph.index.sources import Texts
from tgraph.model import Evidence
from tgraph.retrieve.entity_matching import entity_names
from tgraph.store.base import Store, text_of

_SHOWN = 500
"""Statements of a resource that its page shows."""
_QUOTES = 3
"""Quotes of a fact that an entity's page shows."""


async def entities(visit: Visit) -> Response:
    """Their names, those that hold a text where one is looked for."""
    sought = visit.asked("text").casefold()

    def work(graph: KnowledgeGraph) -> list[str]:
        found = (name for name in entity_names(graph.read()) if sought in name.casefold())
        return sorted(found, key=lambda n: (not n.casefold().startswith(sought), n.casefold(), n))

    part = part_of(await visit.graph(work), visit.asked("from"), 200)
    rdf = visit.links.listed("page/entities")
    return await visit.page("entities.html", part=part, sought=visit.asked("text"), rdf=rdf)


@dataclass(frozen=True)
class _ShownEntity:
    """An entity with its facts, their quotes, and the names that it goes by."""

    iri: str
    name: str
    types: list[str]
    description: str
    facts: list[tuple[KnownFact, tuple[Evidence, ...]]]
    merged: list[Any]
    apart: list[Any]


async def entity(visit: Visit) -> Response:
    """What is known of it, and on which words that rests."""
    name = visit.asked("iri") or visit.asked("name")
    if not name:
        raise UsageError("No entity was named.", "Choose one from the list of entities.")
    found = await visit.graph(partial(_entity, name))
    part = part_of(found.facts, visit.asked("from"), 50)
    drawn = facts_of([fact for fact, _ in found.facts])
    picture = node_link_svg(drawn, visit.links.resource, f"Facts about {found.name}")
    return await visit.page(
        "entity.html",
        entity=found,
        part=part,
        left_out=drawn.left_out,
        picture=Markup(picture),  # noqa: S704 - tgraph's own, words of others escaped
        rdf=visit.links.described(found.iri),
    )


def _entity(name: str, graph: KnowledgeGraph) -> _ShownEntity:
    store = graph.read()
    facts = Facts(store)
    iri = facts.entity(name)
    known = facts.about(iri)
    reader = stored_evidence(store, Texts(store, graph.librarian), lambda error: None)
    quotes = reader.of_edges([fact.edge for fact in known], _QUOTES)
    merges = EntityMerges(store)
    return _ShownEntity(
        iri,
        facts.label(iri),
        sorted(set(_values(store, iri, v.RDF_TYPE)) - {"tg:Entity"}),
        " ".join(_values(store, iri, v.tg("description"))),
        [(fact, quotes.get(fact.edge, ())) for fact in known],
        [each for each in merges.merges() if each.canonical == iri],
        [each for each in merges.splits() if iri in each.entities],
    )


def _values(store: Store, iri: str, predicate: NamedNode) -> list[str]:
    found = store.match(NamedNode(iri), predicate, None, v.KNOWLEDGE_GRAPH)
    return [_label(store, q.object) if isinstance(q.object, NamedNode) else text_of(q.object)
            for q in found]  # fmt: skip


# --- decisions ---


def _edited(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    given = {key: form.get(key) for key in ("label", "type", "description") if form.get(key)}
    if aliases := form.get("aliases"):
        given["aliases"] = [each.strip() for each in aliases.split(",") if each.strip()]  # type: ignore[assignment]
    if not given:
        raise UsageError("Nothing was filled in.", "Say what is to be different.")
    graph.edit_entity(name, reason=reason, **given)


def _split(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.split(form.needed("other", "The other name"), name, reason=reason)


def _rejoined(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.rejoin(name, form.needed("other", "The other name"), reason=reason)


def _merged(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.merge_entities(name, form.needed("other", "The other name"), reason=reason)


def _deleted(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.delete_entity(name, reason=reason)


def _denied(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.deny_fact(form.needed("fact", "The fact"), reason=reason)


def _stated(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    words = form.needed("predicate", "The relation"), form.needed("object", "The object")
    graph.add_fact(name, *words, reason=reason)


_DECISIONS = {
    "edit": _edited,
    "split": _split,
    "rejoin": _rejoined,
    "merge": _merged,
    "delete": _deleted,
    "deny": _denied,
    "state": _stated,
}


async def decide(visit: Visit) -> Response:
    """Correct the entity, or a fact about it; recorded with the reason and who it was."""
    decision = _DECISIONS.get(visit.part("decision"))
    if decision is None:
        raise HTTPException(404, "There is no such decision.")
    form = await visit.form()
    name = form.needed("name", "The entity")
    reason = form.needed("reason", "The reason")
    await visit.graph(lambda graph: decision(graph, name, form, reason), "audit")
    return seen(visit.links.to("curations"))


async def curations(visit: Visit) -> Response:
    """What people decided, the last first."""
    found = await visit.graph(lambda graph: graph.curations())
    part = part_of(found, visit.asked("from"))
    return await visit.page("curations.html", part=part, rdf=visit.links.listed("page/curations"))


async def undo(visit: Visit) -> Response:
    """Take a decision back."""
    form = await visit.form()
    name, reason = form.needed("curation", "The decision"), form.needed("reason", "The reason")
    await visit.graph(lambda graph: graph.undo(name, reason=reason), "audit")
    return seen(visit.links.to("curations"))


# --- anything ---


@dataclass(frozen=True)
class _ShownTerm:
    """A term as a page shows it; ``iri`` is where a click leads, empty for a literal."""

    words: str
    iri: str = ""


async def resource(visit: Visit) -> Response:
    """What is said of an IRI, and where it is named."""
    iri = visit.asked("iri")
    try:
        node = NamedNode(iri)
    except ValueError as error:
        raise UsageError(f"{iri[:200]!r} is no IRI.") from error

    def work(graph: KnowledgeGraph) -> tuple[list[Any], list[Any], str]:
        store = graph.read()
        said = [_row(store, q) for q in islice(store.match(node, None, None, None), _SHOWN)]
        named = [_row(store, q) for q in islice(store.match(None, None, node, None), _SHOWN)]
        return said, named, _label(store, node)

    said, named, label = await visit.graph(work)
    if not said and not named:
        raise HTTPException(404, "Nothing is known of it here.")
    rdf = visit.links.described(iri)
    return await visit.page(
        "resource.html", iri=iri, label=label, said=said, named=named, most=_SHOWN, rdf=rdf,
        identifier=f"/id/{quote(visit.collection, safe='')}/{quote(iri, safe=':')}",
    )  # fmt: skip


def _row(store: Store, quad: Quad) -> tuple[_ShownTerm, _ShownTerm, _ShownTerm, str]:
    terms = (_term(store, each) for each in (quad.subject, quad.predicate, quad.object))
    subject, predicate, obj = terms
    graph = quad.graph_name
    return subject, predicate, obj, graph.value if isinstance(graph, NamedNode) else ""


def _term(store: Store, term: Any) -> _ShownTerm:
    if isinstance(term, NamedNode):
        return _ShownTerm(_label(store, term), term.value)
    if isinstance(term, Triple):
        parts = (term.subject, term.predicate, term.object)
        return _ShownTerm(" — ".join(_term(store, each).words for each in parts))
    if isinstance(term, Literal):
        return _ShownTerm(term.value)
    return _ShownTerm(str(term))


def _label(store: Store, node: NamedNode) -> str:
    for quad in islice(store.match(node, v.RDFS_LABEL, None, None), 1):
        return text_of(quad.object)
    return short_iri(node.value)


def short_iri(iri: str) -> str:
    """The IRI with the prefix that queries have for it."""
    for prefix, space in v.PREFIXES.items():
        if iri.startswith(space) and iri != space:
            return f"{prefix}:{iri.removeprefix(space)}"
    return iri


PAGES = (
    WorkbenchPage("/entities", "entities", entities),
    WorkbenchPage("/entity", "entity", entity),
    WorkbenchPage("/entity/{decision}", "decide", decide, "govern", "POST"),
    WorkbenchPage("/curations", "curations", curations),
    WorkbenchPage("/curations/undo", "undo", undo, "govern", "POST"),
    WorkbenchPage("/resource", "resource", resource),
)
