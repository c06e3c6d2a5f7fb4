"""Linked data: what there is of an IRI, where its provenance is, and what the data set is.

tgraph's IRIs are URNs, the same wherever a graph lies. ``/id/IRI`` is where this server tells what
it knows of one (PROV-AQ, 2013, for the links; VoID, 2011, for the description of the whole).
"""

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
from starlette.routing import Route

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.extensions.server.negotiation import negotiated
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import access_of
from tgraph.store.base import Store

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


def linked_data_routes(service: Service) -> list[Route]:
    """``/id/IRI`` for the collection of the settings, ``/id/NAME/IRI`` for others, and VoID."""
    return [
        Route("/.well-known/void", partial(_void, service)),
        Route("/id/{iri:path}", partial(_resource, service), name="resource"),
    ]


def provenance_links(request: Request, collection: str, session: str) -> str:
    """The ``Link`` header of an answer: its record, and where to ask for more (PROV-AQ, 3.1)."""
    place = f"/api/v1/collections/{quote(collection)}/sessions/{quote(session)}/export"
    record = _absolute(request, place)
    service = _absolute(request, f"/sparql/{quote(collection)}")
    return (
        f'<{record}>; rel="{_PROV}has_provenance"; anchor="{session}", '
        f'<{service}>; rel="{_PROV}has_query_service"'
    )


def _absolute(request: Request, path: str) -> URL:
    return request.base_url.replace(path=path)


async def _resource(service: Service, request: Request) -> Response:
    access = access_of(request)
    access.check("read")
    collection, iri = _named(service, str(request.path_params["iri"]))
    access.check("read", collection)
    offered = {**{media: media for media in _FORMATS}, _HTML: _HTML}
    media, _ = negotiated(request.headers.get("accept", ""), offered)
    if media == _HTML:
        return RedirectResponse(workbench_path(collection, iri), 303)
    found = await service.run(access, collection, partial(_described, iri))
    if not found:
        raise HTTPException(404, "Nothing is known of it here.")
    headers = {"Link": provenance_links(request, collection, iri)} if _is_session(iri) else {}
    statements = found if media in ("application/trig", "application/n-quads") else _triples(found)
    data = serialize(statements, format=_FORMATS[media], prefixes=v.PREFIXES)
    return Response(data, media_type=media, headers=headers)


def _named(service: Service, path: str) -> tuple[str, str]:
    """The collection and the IRI of a path. ``UsageError`` where it has none."""
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
    """The page of the workbench that shows it."""
    base = f"/workbench/{quote(collection)}"
    if _is_session(iri):
        return f"{base}/sessions/{iri.removeprefix(v.session_iri(''))}"
    if iri.startswith(v.document_iri("")):
        return f"{base}/documents/{iri.removeprefix(v.document_iri(''))}"
    return f"{base}/resource?iri={quote(iri, safe='')}"


def _described(iri: str, graph: KnowledgeGraph) -> list[Quad]:
    """What is said of it, and where it is named."""
    store, node = graph.read(), NamedNode(iri)
    said = store.match(node, None, None, None)
    named = store.match(None, None, node, None)
    found = list(islice(chain(said, named), _MOST))
    return list(dict.fromkeys(chain(found, _parts(store, found))))


def _parts(store: Store, found: list[Quad]) -> Iterator[Quad]:
    """The labels of what is spoken of, so that a page of it can be read."""
    spoken = {
        term
        for quad in found
        for term in (quad.subject, quad.object)
        if isinstance(term, NamedNode)
    }
    for term in sorted(spoken, key=str):
        yield from islice(store.match(term, v.RDFS_LABEL, None, None), 1)


def _triples(quads: list[Quad]) -> Iterator[Triple]:
    return iter(dict.fromkeys(quad.triple for quad in quads))


async def _void(service: Service, request: Request) -> Response:
    """The data set's description (VoID, 3 and 4)."""
    access, collection = access_of(request), service.default_collection
    access.check("read", collection)
    counts = await service.run(access, collection, _counts, pool="audit")
    subject = NamedNode(str(_absolute(request, "/.well-known/void")))
    void = partial(_term, _VOID)
    vocabularies = [NamedNode(each) for each in (v.TG, v.PROV, v.OA)]
    said: list[tuple[NamedNode, NamedNode | Literal]] = [
        (v.RDF_TYPE, void("Dataset")),
        (v.dcterms("title"), Literal(f"tgraph: {collection}")),
        (void("sparqlEndpoint"), NamedNode(str(_absolute(request, "/sparql")))),
        (void("uriSpace"), Literal(v.URN)),
        (void("triples"), Literal(counts[0])),
        (void("entities"), Literal(counts[1])),
        *[(void("vocabulary"), each) for each in vocabularies],
    ]
    triples = [Triple(subject, predicate, value) for predicate, value in said]
    prefixes = {**v.PREFIXES, "void": _VOID}
    offered = {media: media for media in ("text/turtle", "application/n-triples")}
    media, _ = negotiated(request.headers.get("accept", ""), offered)
    data = serialize(triples, format=_FORMATS[media], prefixes=prefixes)
    return Response(data, media_type=media)


def _term(namespace: str, name: str) -> NamedNode:
    return NamedNode(namespace + name)


def _counts(graph: KnowledgeGraph) -> tuple[int, int]:
    """The statements of knowledge, and the entities that they are about."""
    subjects, count = set(), 0
    for quad in graph.read().match(None, None, None, DefaultGraph()):
        count += 1
        if str(quad.subject).startswith(f"<{v.URN}entity:"):
            subjects.add(quad.subject)
    return count, len(subjects)
