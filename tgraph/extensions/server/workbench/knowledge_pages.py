"""Knowledge pages: entities, facts, human decisions, and any IRI."""

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
from tgraph.extensions.server.workbench.pages import (
    SentForm,
    Visit,
    WorkbenchPage,
    part_of,
    redirect_to,
)
from tgraph.index.evidence import stored_evidence
from tgraph.index.sources import Texts
from tgraph.model import Evidence
from tgraph.retrieve.entity_matching import entity_names
from tgraph.store.base import Store, read_literal, text_of

_SHOWN = 500
"""Statements of a resource that its page shows."""
_QUOTES = 3
"""Quotes of a fact that an entity's page shows."""


async def show_entities(visit: Visit) -> Response:
    """Show entity names, filtered by a search text."""
    sought = visit.read_parameter("text").casefold()

    def work(graph: KnowledgeGraph) -> list[str]:
        matches = (name for name in entity_names(graph.opened.read()) if sought in name.casefold())
        return sorted(matches, key=lambda n: (not n.casefold().startswith(sought), n.casefold(), n))

    part = part_of(await visit.graph(work), visit.read_parameter("from"), 200)
    rdf = visit.links.address_listing("page/entities")
    return await visit.page(
        "entities.html", part=part, sought=visit.read_parameter("text"), rdf=rdf
    )


@dataclass(frozen=True)
class _ShownEntity:
    """An entity with facts, quotes and merged names."""

    iri: str
    name: str
    types: list[str]
    description: str
    facts: list[tuple[KnownFact, tuple[Evidence, ...]]]
    merged: list[Any]
    apart: list[Any]


async def show_entity(visit: Visit) -> Response:
    """Show known facts about an entity with supporting quotes."""
    name = visit.read_parameter("iri") or visit.read_parameter("name")
    if not name:
        raise UsageError("No entity was named.", "Choose one from the list of entities.")
    shown_entity = await visit.graph(partial(_read_entity, name))
    part = part_of(shown_entity.facts, visit.read_parameter("from"), 50)
    drawn = facts_of([fact for fact, _ in shown_entity.facts])
    picture = node_link_svg(drawn, visit.links.resource, f"Facts about {shown_entity.name}")
    return await visit.page(
        "entity.html",
        entity=shown_entity,
        part=part,
        left_out=drawn.left_out,
        picture=Markup(picture),  # noqa: S704 - tgraph's own, words of others escaped
        rdf=visit.links.address_description(shown_entity.iri),
    )


def _read_entity(name: str, graph: KnowledgeGraph) -> _ShownEntity:
    store = graph.opened.read()
    facts = Facts(store)
    iri = facts.entity(name)
    known_facts = facts.read_facts_about(iri)
    reader = stored_evidence(store, Texts(store, graph.opened.librarian), lambda error: None)
    quotes = reader.of_edges([fact.edge for fact in known_facts], _QUOTES)
    merges = EntityMerges(store)
    return _ShownEntity(
        iri,
        facts.label(iri),
        sorted(set(_read_values(store, iri, v.RDF_TYPE)) - {"tg:Entity"}),
        " ".join(_read_values(store, iri, v.tg("description"))),
        [(fact, quotes.get(fact.edge, ())) for fact in known_facts],
        [merge_entry for merge_entry in merges.merges() if merge_entry.canonical == iri],
        [merge_entry for merge_entry in merges.splits() if iri in merge_entry.entities],
    )


def _read_values(store: Store, iri: str, predicate: NamedNode) -> list[str]:
    quads = store.match(NamedNode(iri), predicate, None, v.KNOWLEDGE_GRAPH)
    return [_read_label(store, q.object) if isinstance(q.object, NamedNode) else text_of(q.object)
            for q in quads]  # fmt: skip


# --- decisions ---


def _edit_entity(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    changes = {
        key: form.read_field(key)
        for key in ("label", "type", "description")
        if form.read_field(key)
    }
    if aliases := form.read_field("aliases"):
        changes["aliases"] = [alias.strip() for alias in aliases.split(",") if alias.strip()]  # type: ignore[assignment]
    if not changes:
        raise UsageError("The form is empty.", "Fill in the values to change.")
    graph.entities.edit(name, reason=reason, **changes)


def _split_entity(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.entities.split(form.require_field("other", "The other name"), name, reason=reason)


def _rejoin_entity(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.entities.rejoin(name, form.require_field("other", "The other name"), reason=reason)


def _merge_entity(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.entities.merge(name, form.require_field("other", "The other name"), reason=reason)


def _delete_entity(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.entities.delete(name, reason=reason)


def _deny_fact(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    graph.entities.deny_fact(form.require_field("fact", "The fact"), reason=reason)


def _add_fact(graph: KnowledgeGraph, name: str, form: SentForm, reason: str) -> None:
    words = (
        form.require_field("predicate", "The relation"),
        form.require_field("object", "The object"),
    )
    graph.entities.add_fact(name, *words, reason=reason)


_DECISIONS = {
    "edit": _edit_entity,
    "split": _split_entity,
    "rejoin": _rejoin_entity,
    "merge": _merge_entity,
    "delete": _delete_entity,
    "deny": _deny_fact,
    "state": _add_fact,
}


async def record_decision(visit: Visit) -> Response:
    """Correct an entity, or a fact about an entity, recording reason and person."""
    decision = _DECISIONS.get(visit.part("decision"))
    if decision is None:
        raise HTTPException(404, "There is no such decision.")
    form = await visit.form()
    name = form.require_field("name", "The entity")
    reason = form.require_field("reason", "The reason")
    await visit.graph(lambda graph: decision(graph, name, form, reason), "audit")
    return redirect_to(visit.links.build_address("curations"))


async def show_curations(visit: Visit) -> Response:
    """Show human decisions, latest first."""
    decisions = await visit.graph(lambda graph: graph.history.read_curations())
    part = part_of(decisions, visit.read_parameter("from"))
    return await visit.page(
        "curations.html", part=part, rdf=visit.links.address_listing("page/curations")
    )


async def undo_decision(visit: Visit) -> Response:
    """Undo a human decision."""
    form = await visit.form()
    name, reason = (
        form.require_field("curation", "The decision"),
        form.require_field("reason", "The reason"),
    )
    await visit.graph(lambda graph: graph.history.undo_curation(name, reason=reason), "audit")
    return redirect_to(visit.links.build_address("curations"))


# --- anything ---


@dataclass(frozen=True)
class _ShownTerm:
    """A displayed term; ``iri`` is the link target, empty for literals."""

    words: str
    iri: str = ""


async def show_resource(visit: Visit) -> Response:
    """Show RDF statements mentioning an IRI, as subject or object."""
    iri = visit.read_parameter("iri")
    try:
        node = NamedNode(iri)
    except ValueError as error:
        raise UsageError(f"{iri[:200]!r} is no IRI.") from error

    def work(graph: KnowledgeGraph) -> tuple[list[Any], list[Any], str]:
        store = graph.opened.read()
        outgoing_rows = [
            _build_row(store, q) for q in islice(store.match(node, None, None, None), _SHOWN)
        ]
        incoming_rows = [
            _build_row(store, q) for q in islice(store.match(None, None, node, None), _SHOWN)
        ]
        return outgoing_rows, incoming_rows, _read_label(store, node)

    outgoing_rows, incoming_rows, label = await visit.graph(work)
    if not outgoing_rows and not incoming_rows:
        raise HTTPException(404, "The graph has no statements about the resource.")
    rdf = visit.links.address_description(iri)
    return await visit.page(
        "resource.html", iri=iri, label=label, said=outgoing_rows, named=incoming_rows,
        most=_SHOWN, rdf=rdf,
        identifier=f"/id/{quote(visit.collection, safe='')}/{quote(iri, safe=':')}",
    )  # fmt: skip


def _build_row(store: Store, quad: Quad) -> tuple[_ShownTerm, _ShownTerm, _ShownTerm, str]:
    terms = (_display_term(store, term) for term in (quad.subject, quad.predicate, quad.object))
    subject, predicate, obj = terms
    graph = quad.graph_name
    return subject, predicate, obj, graph.value if isinstance(graph, NamedNode) else ""


def _display_term(store: Store, term: Any) -> _ShownTerm:
    if isinstance(term, NamedNode):
        return _ShownTerm(_read_label(store, term), term.value)
    if isinstance(term, Triple):
        parts = (term.subject, term.predicate, term.object)
        return _ShownTerm(" — ".join(_display_term(store, part).words for part in parts))
    if isinstance(term, Literal):
        return _ShownTerm(term.value)
    return _ShownTerm(str(term))


def _read_label(store: Store, node: NamedNode) -> str:
    return read_literal(store, node, v.RDFS_LABEL) or short_iri(node.value)


def short_iri(iri: str) -> str:
    """Abbreviate an IRI using query prefixes."""
    for prefix, space in v.PREFIXES.items():
        if iri.startswith(space) and iri != space:
            return f"{prefix}:{iri.removeprefix(space)}"
    return iri


PAGES = (
    WorkbenchPage("/entities", "entities", show_entities, ("knowledge",)),
    WorkbenchPage("/entity", "entity", show_entity, ("knowledge", "documents")),
    WorkbenchPage("/entity/{decision}", "decide", record_decision, ("done",), ("govern",), "POST"),
    WorkbenchPage("/curations", "curations", show_curations, ("knowledge",)),
    WorkbenchPage("/curations/undo", "undo", undo_decision, ("done",), ("govern",), "POST"),
    WorkbenchPage("/resource", "resource", show_resource, ("knowledge", "documents", "sessions")),
)
