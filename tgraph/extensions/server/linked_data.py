"""Linked data: statements per IRI, provenance links, data set description.

tgraph IRIs are URNs, independent of graph location. ``/id/IRI`` returns this server's
statements about an IRI (links: PROV-AQ, 2013; data set description: VoID, 2011)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from urllib.parse import quote

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, serialize
from starlette.datastructures import URL
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.extensions.server.access import Declaration
from tgraph.extensions.server.declared import DeclaredRoute
from tgraph.extensions.server.negotiation import choose_media_type
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import access_of
from tgraph.store.base import Store, read_literal

_PROV = "http://www.w3.org/ns/prov#"
_VOID = "http://rdfs.org/ns/void#"
_HTML = "text/html"
_FORMATS = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/trig": RdfFormat.TRIG,
    "application/n-quads": RdfFormat.N_QUADS,
}
_MOST = 10_000
"""Statements that are told of one IRI."""


_READING = Declaration(("read",), ("knowledge", "documents", "sessions"))
_COUNTING = Declaration(("read",), ("status", "collections"))


def linked_data_routes(service: Service) -> list[DeclaredRoute]:
    """Return routes for ``/id/IRI`` (default collection), ``/id/NAME/IRI`` (other collections),
    and VoID."""
    return [
        DeclaredRoute("/.well-known/void", partial(_serve_void, service), _COUNTING),
        DeclaredRoute(
            "/id/{iri:path}", partial(_serve_resource, service), _READING, name="resource"
        ),
    ]


def provenance_links(request: Request, collection: str, session: str) -> str:
    """Return an answer's ``Link`` header: provenance record and query service (PROV-AQ, 3.1)."""
    place = f"/api/v1/collections/{quote(collection)}/sessions/{quote(session)}/export"
    record = _absolute_url(request, place)
    service = _absolute_url(request, f"/sparql/{quote(collection)}")
    return (
        f'<{record}>; rel="{_PROV}has_provenance"; anchor="{session}", '
        f'<{service}>; rel="{_PROV}has_query_service"'
    )


def _absolute_url(request: Request, path: str) -> URL:
    return request.base_url.replace(path=path)


async def _serve_resource(service: Service, request: Request) -> Response:
    access = access_of(request)
    _READING.check(access)
    collection, iri = _split_path(service, str(request.path_params["iri"]))
    _READING.check(access, collection)
    offered = {**{media: media for media in _FORMATS}, _HTML: _HTML}
    media, _ = choose_media_type(request.headers.get("accept", ""), offered)
    if media == _HTML:
        return RedirectResponse(workbench_path(collection, iri), 303)
    quads = await service.run(access, collection, partial(_describe_node, iri))
    if not quads:
        raise HTTPException(404, "The graph has no statements about the resource.")
    headers = {"Link": provenance_links(request, collection, iri)} if _is_session(iri) else {}
    statements = (
        quads if media in ("application/trig", "application/n-quads") else _distinct_triples(quads)
    )
    data = serialize(statements, format=_FORMATS[media], prefixes=v.PREFIXES)
    return Response(data, media_type=media, headers=headers)


def _split_path(service: Service, path: str) -> tuple[str, str]:
    """Return collection and IRI of a path; raise ``UsageError`` without a valid IRI."""
    collection = service.default_collection
    if not path.startswith("urn:") and "/urn:" in path:
        collection, _, path = path.partition("/")
    try:
        return collection, NamedNode(path).value
    except ValueError as error:
        raise UsageError(f"{path[:200]!r} is no IRI.") from error


def _is_session(iri: str) -> bool:
    return iri.startswith(v.session_iri(""))


def workbench_path(collection: str, iri: str) -> str:
    """Return the workbench page path showing an IRI."""
    base = f"/workbench/{quote(collection)}"
    if _is_session(iri):
        return f"{base}/sessions/{iri.removeprefix(v.session_iri(''))}"
    if iri.startswith(v.document_iri("")):
        return f"{base}/documents/{iri.removeprefix(v.document_iri(''))}"
    return f"{base}/resource?iri={quote(iri, safe='')}"


def _describe_node(iri: str, graph: KnowledgeGraph) -> list[Quad]:
    """Return quads with an IRI as subject or object, plus labels of mentioned nodes."""
    store, node = graph.opened.read(), NamedNode(iri)
    outgoing_quads = store.match(node, None, None, None)
    incoming_quads = store.match(None, None, node, None)
    quads = list(islice(chain(outgoing_quads, incoming_quads), _MOST))
    return list(dict.fromkeys(chain(quads, _read_labels(store, quads))))


def _read_labels(store: Store, found: list[Quad]) -> Iterator[Quad]:
    """Yield labels of mentioned nodes, making pages readable."""
    spoken = {
        term
        for quad in found
        for term in (quad.subject, quad.object)
        if isinstance(term, NamedNode)
    }
    for term in sorted(spoken, key=str):
        if label := read_literal(store, term, v.RDFS_LABEL):
            yield Quad(term, v.RDFS_LABEL, Literal(label))


def _distinct_triples(quads: list[Quad]) -> Iterator[Triple]:
    return iter(dict.fromkeys(quad.triple for quad in quads))


async def _serve_void(service: Service, request: Request) -> Response:
    """The data set's description (VoID, 3 and 4)."""
    access, collection = access_of(request), service.default_collection
    _COUNTING.check(access, collection)
    counts = await service.run(access, collection, _count_statements, pool="audit")
    subject = NamedNode(str(_absolute_url(request, "/.well-known/void")))
    void = partial(_build_term, _VOID)
    vocabularies = [NamedNode(vocabulary) for vocabulary in (v.TG, v.PROV, v.OA)]
    properties: list[tuple[NamedNode, NamedNode | Literal]] = [
        (v.RDF_TYPE, void("Dataset")),
        (v.dcterms("title"), Literal(f"tgraph: {collection}")),
        (void("sparqlEndpoint"), NamedNode(str(_absolute_url(request, "/sparql")))),
        (void("uriSpace"), Literal(v.URN)),
        (void("triples"), Literal(counts[0])),
        (void("entities"), Literal(counts[1])),
        *[(void("vocabulary"), vocabulary) for vocabulary in vocabularies],
    ]
    triples = [Triple(subject, predicate, value) for predicate, value in properties]
    prefixes = {**v.PREFIXES, "void": _VOID}
    offered = {media: media for media in ("text/turtle", "application/n-triples")}
    media, _ = choose_media_type(request.headers.get("accept", ""), offered)
    data = serialize(triples, format=_FORMATS[media], prefixes=prefixes)
    return Response(data, media_type=media)


def _build_term(namespace: str, name: str) -> NamedNode:
    return NamedNode(namespace + name)


def _count_statements(graph: KnowledgeGraph) -> tuple[int, int]:
    """Count knowledge statements and subject entities."""
    subjects, count = set(), 0
    for quad in graph.opened.read().match(None, None, None, DefaultGraph()):
        count += 1
        if str(quad.subject).startswith(f"<{v.URN}entity:"):
            subjects.add(quad.subject)
    return count, len(subjects)
