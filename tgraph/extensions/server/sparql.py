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
from urllib.parse import parse_qsl, quote

from pyoxigraph import DefaultGraph, NamedNode, RdfFormat, parse, serialize
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tgraph import vocabulary as v
from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.sparql_results import stream_query_results
from tgraph.errors import QueryError, UsageError
from tgraph.explain.query.sparql import Bounds, Dataset, StoppedQueryError
from tgraph.extensions.server.access import Access, Declaration
from tgraph.extensions.server.declared import DeclaredRoute
from tgraph.extensions.server.negotiation import choose_media_type
from tgraph.extensions.server.requests import read_body
from tgraph.extensions.server.service import Service
from tgraph.extensions.server.sign_in import access_of
from tgraph.store.query_guard import gives_triples

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
_UNWRITABLE = (ValueError, OSError)
"""What pyoxigraph raises for triples that a format has no way to write."""


_READING = Declaration(("read",), ("knowledge", "documents", "sessions"))


def sparql_routes(service: Service) -> list[DeclaredRoute]:
    """Return routes for both SPARQL protocols."""
    queried, read = partial(_serve_sparql, service), partial(_serve_graph, service)
    routes = []
    for base in ("", "/{collection}"):
        routes.append(DeclaredRoute(f"/sparql{base}", queried, _READING, methods=["GET", "POST"]))
        routes.append(DeclaredRoute(f"/graphs{base}", read, _READING, methods=["GET"]))
    return routes


def _requested_collection(service: Service, request: Request) -> str:
    return str(request.path_params.get("collection") or service.default_collection)


class _SparqlRequest:
    """A SPARQL request, in any protocol form."""

    def __init__(
        self, parameters: list[tuple[str, str]], query: str | None, update: str | None
    ) -> None:
        self.query = query if query is not None else _single_parameter(parameters, "query")
        self.update = update if update is not None else _single_parameter(parameters, "update")
        self._parameters = parameters
        if (self.query is None) is (self.update is None):
            raise UsageError(
                "There has to be one query, or one update.", "Send it as the parameter query."
            )

    @property
    def dataset(self) -> Dataset | None:
        """Return graphs named by the request; raise ``UsageError`` for invalid IRIs."""
        default = self._graph_iris("default-graph-uri")
        named_graphs = self._graph_iris("named-graph-uri")
        return Dataset(default, named_graphs) if default or named_graphs else None

    def _graph_iris(self, name: str) -> tuple[str, ...]:
        return tuple(_parse_iri(value) for key, value in self._parameters if key == name)

    @property
    def names_graphs(self) -> bool:
        """Return whether an update names its graphs by parameter, forbidden by tgraph's rules."""
        return any(key.startswith("using-") for key, _ in self._parameters)


def _single_parameter(parameters: list[tuple[str, str]], name: str) -> str | None:
    values = [value for key, value in parameters if key == name]
    if len(values) > 1:
        raise UsageError(f"There is more than one {name}.")
    return values[0] if values else None


def _parse_iri(text: str) -> str:
    try:
        return NamedNode(text).value
    except ValueError as error:
        raise UsageError(f"{text[:200]!r} is no IRI.") from error


async def _read_operation(service: Service, request: Request) -> _SparqlRequest:
    """Read the request operation (SPARQL 1.1 Protocol, 2.1 and 2.2)."""
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


async def _serve_sparql(service: Service, request: Request) -> Response:
    access, collection = access_of(request), _requested_collection(service, request)
    _READING.check(access, collection)
    if request.method == "GET" and not request.query_params:
        return _describe_service(request)
    operation = await _read_operation(service, request)
    if operation.update is not None:
        return await _run_update(service, access, collection, operation, _request_base(request))
    assert operation.query is not None
    offered = TRIPLES if gives_triples(operation.query) else ROWS
    media, name = choose_media_type(request.headers.get("accept", ""), offered)
    bounds = query_bounds(service, base=_request_base(request))
    return await _answer_query(service, access, collection, operation, media, name, bounds)


def query_bounds(service: Service, **more: Any) -> Bounds:
    """Return the bounds of a query within the limits of the server."""
    limits = service.limits
    return Bounds(timeout=limits.query_seconds, size=limits.result_kb * 1024, **more)


def _request_base(request: Request) -> str:
    """What relative IRIs are relative to: where the request went (RFC 3986, 5.1.3)."""
    url = request.url
    return f"{url.scheme}://{url.netloc}{quote(url.path, safe='/:@')}"


async def _answer_query(
    service: Service,
    access: Access,
    collection: str,
    operation: _SparqlRequest,
    media: str,
    name: str,
    bounds: Bounds,
) -> Response:
    query, dataset = operation.query, operation.dataset
    result_format = "ntriples" if name in _CONVERTED else name

    def begin(graph: KnowledgeGraph) -> Iterator[bytes]:
        assert query is not None
        return stream_query_results(graph.opened, query, result_format, bounds, dataset)

    if name in _CONVERTED:
        content = await service.run(
            access,
            collection,
            lambda graph: _convert_triples(b"".join(begin(graph)), name),
            pool="audit",
        )
        return Response(content, media_type=media)
    pieces = service.pieces(access, collection, begin, pool="audit")
    first = await anext(pieces, b"")  # what is wrong with the query is told by the status
    return StreamingResponse(_prepend_piece(first, pieces), media_type=media)


def _convert_triples(triples: bytes, name: str) -> bytes:
    """Convert triples into a format without triple terms."""
    try:
        data = serialize(
            (quad.triple for quad in parse(triples, RdfFormat.N_TRIPLES)),
            format=_CONVERTED[name],
            prefixes=v.PREFIXES,
        )
    except _UNWRITABLE as error:
        raise QueryError(
            f"The result can't be written so: {error}.", "Ask for text/turtle."
        ) from error
    return data or b""


async def _prepend_piece(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for piece in pieces:
        yield piece


async def _run_update(
    service: Service, access: Access, collection: str, operation: _SparqlRequest, base: str
) -> Response:
    """Run an update under ``tgraph sparql --update`` rules, recording the person."""
    access.check("govern", collection)
    if operation.names_graphs:
        raise UsageError("An update names its graphs itself.", "Leave using-graph-uri out.")
    text = operation.update or ""
    bounds = query_bounds(service, base=base)
    await service.run(access, collection, lambda graph: graph.update(text, bounds), pool="audit")
    return Response(status_code=204)


def _describe_service(request: Request) -> Response:
    """What the service is (SPARQL 1.1 Service Description)."""
    sd = "http://www.w3.org/ns/sparql-service-description#"
    formats = "http://www.w3.org/ns/formats/"
    results = ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "Turtle")
    format_iris = ", ".join(f"<{formats}{format_name}>" for format_name in results)
    endpoint = NamedNode(_request_base(request))
    text = (
        f"@prefix sd: <{sd}> .\n"
        f"[] a sd:Service ; sd:endpoint {endpoint} ;\n"
        "  sd:supportedLanguage sd:SPARQL11Query, sd:SPARQL11Update ;\n"
        f"  sd:feature sd:UnionDefaultGraph ; sd:resultFormat {format_iris} .\n"
    )
    return Response(text, media_type="text/turtle")


# --- graphs ---


async def _serve_graph(service: Service, request: Request) -> Response:
    """The triples of a graph (Graph Store HTTP Protocol, 5.2)."""
    access, collection = access_of(request), _requested_collection(service, request)
    _READING.check(access, collection)
    names = list(request.query_params.keys())
    if names == ["default"]:
        name = ""
    elif names == ["graph"]:
        name = _parse_iri(request.query_params["graph"])
    else:
        raise UsageError("Name the graph: ?default, or ?graph=IRI.")
    media, _ = choose_media_type(request.headers.get("accept", ""), {m: m for m in _WRITTEN})
    most = service.limits.result_kb * 1024
    file = await service.run(
        access, collection, partial(_save_graph, name, media, most), pool="audit"
    )
    if file is None:
        raise HTTPException(404, "There is no such graph.")
    return StreamingResponse(_send_file(file), media_type=media)


def _save_graph(name: str, media: str, most: int, graph: KnowledgeGraph) -> IO[bytes] | None:
    """Write graph triples into a file; return None for unknown graphs.

    The default graph, containing knowledge, always exists. Raise ``StoppedQueryError`` beyond
    ``most`` bytes."""
    node = NamedNode(name) if name else DefaultGraph()
    quads = graph.opened.read().match(None, None, None, node)
    first = next(quads, None)
    if first is None and name:
        return None
    file: IO[bytes] = BoundedFile(most)
    every: Any = (
        quad.triple for quad_group in ([first] if first else [], quads) for quad in quad_group
    )
    try:
        serialize(every, file, format=_WRITTEN[media], prefixes=v.PREFIXES)
    except _UNWRITABLE as error:
        file.close()
        if getattr(error, "errno", None) is not None:  # the disk's, not the format's
            raise
        raise HTTPException(406, f"It can't be written so: {error}.") from error
    except StoppedQueryError:
        file.close()
        raise
    file.seek(0)
    return file


class BoundedFile(SpooledTemporaryFile[bytes]):
    """A temporary file that takes so many bytes, and then raises ``StoppedQueryError``."""

    def __init__(self, most: int) -> None:
        super().__init__(_IN_MEMORY)
        self._most = most

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self._most:
            raise StoppedQueryError(
                f"The result has more than {self._most >> 10:,} kB.", "Ask for a part by SPARQL."
            )
        return super().write(data)


async def _send_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while piece := await asyncio.to_thread(file.read, _BLOCK):
            yield piece
    finally:
        file.close()
