"""SPARQL 1.1 Protocol, and the reading half of the SPARQL 1.1 Graph Store HTTP Protocol.

``/sparql`` and ``/graphs`` are of the collection of the settings, ``/sparql/NAME`` and
``/graphs/NAME`` of another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from tempfile import SpooledTemporaryFile
from typing import IO, Any
from urllib.parse import parse_qsl

from pyoxigraph import DefaultGraph, NamedNode, RdfFormat, parse, serialize
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import QueryError, UsageError
from tgraph.explain.query.guard import gives_triples
from tgraph.explain.query.sparql import Bounds, Dataset
from tgraph.extensions.server.access import Access
from tgraph.extensions.server.negotiation import negotiated
from tgraph.extensions.server.requests import read_body
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import access_of

ROWS = {
    "application/sparql-results+json": "json",
    "application/sparql-results+xml": "xml",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/json": "json",
    "application/xml": "xml",
}
TRIPLES = {
    "text/turtle": "turtle",
    "application/n-triples": "ntriples",
    "application/trig": "turtle",
    "application/n-quads": "ntriples",
    "application/ld+json": "json-ld",
    "application/rdf+xml": "rdf-xml",
}
_CONVERTED = {"json-ld": RdfFormat.JSON_LD, "rdf-xml": RdfFormat.RDF_XML}
_WRITTEN = {
    "text/turtle": RdfFormat.TURTLE,
    "application/n-triples": RdfFormat.N_TRIPLES,
    "application/trig": RdfFormat.TRIG,
    "application/n-quads": RdfFormat.N_QUADS,
    "application/ld+json": RdfFormat.JSON_LD,
    "application/rdf+xml": RdfFormat.RDF_XML,
}
_FORM = "application/x-www-form-urlencoded"
_QUERY, _UPDATE = "application/sparql-query", "application/sparql-update"
_BLOCK = 1 << 16
_IN_MEMORY = 1 << 22


def sparql_routes(service: Service) -> list[Route]:
    """The routes of both protocols."""
    queried, read = partial(_sparql, service), partial(_graph, service)
    routes = []
    for base in ("", "/{collection}"):
        routes.append(Route(f"/sparql{base}", queried, methods=["GET", "POST"]))
        routes.append(Route(f"/graphs{base}", read, methods=["GET"]))
    return routes


def _collection(service: Service, request: Request) -> str:
    return str(request.path_params.get("collection") or service.default_collection)


class _SparqlRequest:
    """What a request asks for, in whichever of the protocol's ways."""

    def __init__(
        self, parameters: list[tuple[str, str]], query: str | None, update: str | None
    ) -> None:
        self.query = query if query is not None else _one(parameters, "query")
        self.update = update if update is not None else _one(parameters, "update")
        self._parameters = parameters
        if (self.query is None) is (self.update is None):
            raise UsageError(
                "There has to be one query, or one update.", "Send it as the parameter query."
            )

    @property
    def dataset(self) -> Dataset | None:
        """The graphs that the request names; ``UsageError`` where one is no IRI."""
        default = self._all("default-graph-uri")
        named = self._all("named-graph-uri")
        return Dataset(default, named) if default or named else None

    def _all(self, name: str) -> tuple[str, ...]:
        return tuple(_iri(value) for key, value in self._parameters if key == name)

    @property
    def names_graphs(self) -> bool:
        """Whether an update says which graphs it is of, which tgraph's rules leave no room for."""
        return any(key.startswith("using-") for key, _ in self._parameters)


def _one(parameters: list[tuple[str, str]], name: str) -> str | None:
    found = [value for key, value in parameters if key == name]
    if len(found) > 1:
        raise UsageError(f"There is more than one {name}.")
    return found[0] if found else None


def _iri(text: str) -> str:
    try:
        return NamedNode(text).value
    except ValueError as error:
        raise UsageError(f"{text[:200]!r} is no IRI.") from error


async def _read(service: Service, request: Request) -> _SparqlRequest:
    """The operation of a request (SPARQL 1.1 Protocol, 2.1 and 2.2)."""
    parameters = list(request.query_params.multi_items())
    if request.method == "GET":
        if any(key == "update" for key, _ in parameters):
            raise UsageError("An update is sent by POST.")
        return _SparqlRequest(parameters, None, None)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    data = await read_body(request, service.limits.request_kb * 1024)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError("The request is not in UTF-8.") from error
    if kind == _FORM:
        return _SparqlRequest(parameters + parse_qsl(text, keep_blank_values=True), None, None)
    if kind not in (_QUERY, _UPDATE):
        raise HTTPException(415, f"Send {_FORM}, {_QUERY} or {_UPDATE}.")
    if any(key in ("query", "update") for key, _ in parameters):
        raise UsageError("The query is in the body already.")
    return _SparqlRequest(
        parameters, text if kind == _QUERY else None, text if kind == _UPDATE else None
    )


async def _sparql(service: Service, request: Request) -> Response:
    access, collection = access_of(request), _collection(service, request)
    access.check("read", collection)
    if request.method == "GET" and not request.query_params:
        return _described(request)
    operation = await _read(service, request)
    if operation.update is not None:
        return await _update(service, access, collection, operation, _base(request))
    assert operation.query is not None
    offered = TRIPLES if gives_triples(operation.query) else ROWS
    media, name = negotiated(request.headers.get("accept", ""), offered)
    bounds = Bounds(timeout=service.limits.query_seconds, base=_base(request))
    return await _answer(service, access, collection, operation, media, name, bounds)


def _base(request: Request) -> str:
    """What relative IRIs are relative to: where the request went (RFC 3986, 5.1.3)."""
    return str(request.url).partition("?")[0]


async def _answer(
    service: Service,
    access: Access,
    collection: str,
    operation: _SparqlRequest,
    media: str,
    name: str,
    bounds: Bounds,
) -> Response:
    query, dataset = operation.query, operation.dataset
    asked = "ntriples" if name in _CONVERTED else name

    def begin(graph: KnowledgeGraph) -> Iterator[bytes]:
        assert query is not None
        return graph.sparql_stream(query, asked, bounds, dataset)

    if name in _CONVERTED:
        whole = await service.run(
            access,
            collection,
            lambda graph: _converted(b"".join(begin(graph)), name),
            pool="audit",
        )
        return Response(whole, media_type=media)
    pieces = service.pieces(access, collection, begin, pool="audit")
    first = await anext(pieces, b"")  # what is wrong with the query is told by the status
    return StreamingResponse(_after(first, pieces), media_type=media)


def _converted(triples: bytes, name: str) -> bytes:
    """The triples in a format that has no triple terms."""
    try:
        data = serialize(
            (quad.triple for quad in parse(triples, RdfFormat.N_TRIPLES)),
            format=_CONVERTED[name],
            prefixes=v.PREFIXES,
        )
    except ValueError as error:
        raise QueryError(
            f"The result can't be written so: {error}.", "Ask for text/turtle."
        ) from error
    return data or b""


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


async def _update(
    service: Service, access: Access, collection: str, operation: _SparqlRequest, base: str
) -> Response:
    """Under the rules of ``tgraph sparql --update``; recorded, with who it was."""
    access.check("govern", collection)
    if operation.names_graphs:
        raise UsageError("An update names its graphs itself.", "Leave using-graph-uri out.")
    text = operation.update or ""
    bounds = Bounds(timeout=service.limits.query_seconds, base=base)
    await service.run(access, collection, lambda graph: graph.update(text, bounds), pool="audit")
    return Response(status_code=204)


def _described(request: Request) -> Response:
    """What the service is (SPARQL 1.1 Service Description)."""
    sd = "http://www.w3.org/ns/sparql-service-description#"
    formats = "http://www.w3.org/ns/formats/"
    results = ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "Turtle")
    told = ", ".join(f"<{formats}{each}>" for each in results)
    endpoint = NamedNode(_base(request))
    text = (
        f"@prefix sd: <{sd}> .\n"
        f"[] a sd:Service ; sd:endpoint {endpoint} ;\n"
        "  sd:supportedLanguage sd:SPARQL11Query, sd:SPARQL11Update ;\n"
        f"  sd:feature sd:UnionDefaultGraph ; sd:resultFormat {told} .\n"
    )
    return Response(text, media_type="text/turtle")


# --- graphs ---


async def _graph(service: Service, request: Request) -> Response:
    """The triples of a graph (Graph Store HTTP Protocol, 5.2)."""
    access, collection = access_of(request), _collection(service, request)
    access.check("read", collection)
    names = list(request.query_params.keys())
    if names == ["default"]:
        name = ""
    elif names == ["graph"]:
        name = _iri(request.query_params["graph"])
    else:
        raise UsageError("Say which graph: ?default, or ?graph=IRI.")
    media, _ = negotiated(request.headers.get("accept", ""), {m: m for m in _WRITTEN})
    file = await service.run(access, collection, partial(_saved, name, media), pool="audit")
    if file is None:
        raise HTTPException(404, "There is no such graph.")
    return StreamingResponse(_sent(file), media_type=media)


def _saved(name: str, media: str, graph: KnowledgeGraph) -> IO[bytes] | None:
    """The graph's triples in a file; None where there is no such graph. The default graph, which
    is knowledge, is always there."""
    node = NamedNode(name) if name else DefaultGraph()
    quads = graph.read().match(None, None, None, node)
    first = next(quads, None)
    if first is None and name:
        return None
    file: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - whoever sends it closes it
    every: Any = (quad.triple for each in ([first] if first else [], quads) for quad in each)
    try:
        serialize(every, file, format=_WRITTEN[media], prefixes=v.PREFIXES)
    except ValueError as error:
        file.close()
        raise HTTPException(406, f"It can't be written so: {error}.") from error
    file.seek(0)
    return file


async def _sent(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(file.read, _BLOCK):
            yield piece
    finally:
        file.close()
