"""Sessions: the record of what was asked, and what can be asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field
from starlette.responses import Response

from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.schemas import replay_shape, session_shape, trace_shape, verification_shape
from tgraph.extensions.server.operations import Operation, Parameters, RestCall

MEDIA_TYPES = {
    "trig": "application/trig",
    "turtle": "text/turtle",
    "nquads": "application/n-quads",
    "json-ld": "application/ld+json",
    "rdf-xml": "application/rdf+xml",
    "prov-n": "text/provenance-notation",
    "prov-json": "application/json",
    "prov-xml": "application/provenance+xml",
    "svg": "image/svg+xml",
    "dot": "text/vnd.graphviz",
}
"""The formats of a record by their names."""

if TYPE_CHECKING:
    RecordFormat = str
else:
    RecordFormat = Literal[tuple(MEDIA_TYPES)]


class Listing(Parameters):
    limit: int = Field(50, ge=1, le=1_000, description="how many, the newest first")


class RecordExport(Parameters):
    format: RecordFormat = Field("trig", description="of RDF or PROV, or a picture")
    vocabulary: Literal["tgraph", "trustgraph"] = "tgraph"
    classic: bool = Field(False, description="edges without triple terms")
    core: bool = Field(False, description="without calls, ratings and what was rejected")


class WhyNotAsked(Parameters):
    text: str = Field(min_length=1, max_length=20_000, description="what was expected")


class Verifying(Parameters):
    """Whether sentences are to be judged by their words."""

    lexical: bool = False


class Replaying(Parameters):
    """Whether the models are to be called again."""

    live: bool = False


async def sessions(call: RestCall) -> Any:
    """The sessions, the newest first."""
    shape = session_shape()
    limit = call.query.limit
    return await call.graph(lambda graph: [shape.plain(each) for each in graph.sessions(limit)])


async def session(call: RestCall) -> Any:
    """One of them."""
    shape, name = session_shape(), call.path("session")
    return await call.graph(lambda graph: shape.plain(graph.find_session(name)))


async def trace(call: RestCall) -> Any:
    """Everything that is on record of it."""
    name = call.path("session")
    return await call.graph(lambda graph: graph.trace(name).as_dict())


async def report(call: RestCall) -> Response:
    """The same as one HTML file."""
    name = call.path("session")
    text = await call.graph(lambda graph: graph.report(name))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-popups"
    return Response(text, media_type="text/html", headers={"Content-Security-Policy": policy})


async def export(call: RestCall) -> Response:
    """The record in a format of others."""
    name, asked = call.path("session"), call.query

    def work(graph: KnowledgeGraph) -> bytes:
        chosen = {"vocabulary": asked.vocabulary, "classic": asked.classic, "core": asked.core}
        return graph.export(name, asked.format, **chosen)

    return Response(await call.graph(work), media_type=MEDIA_TYPES[asked.format])


async def why_not(call: RestCall) -> Any:
    """Why something is not in the answer."""
    name, expected = call.path("session"), call.query.text
    return await call.graph(lambda graph: graph.why_not(name, expected))


async def verify(call: RestCall) -> Any:
    """Whether each sentence is entailed by what it cites."""
    name, lexical = call.path("session"), call.body.lexical
    shape = verification_shape()
    return await call.graph(lambda graph: shape.plain(graph.verify(name, lexical=lexical)), "audit")


async def replay(call: RestCall) -> Any:
    """The session asked once more, and compared."""
    name, live = call.path("session"), call.body.live
    shape = replay_shape()
    return await call.graph(lambda graph: shape.plain(graph.replay(name, live=live)), "audit")


async def diff(call: RestCall) -> Any:
    """What differs between two sessions."""
    from dataclasses import asdict

    names = call.path("session"), call.path("other")

    def work(graph: KnowledgeGraph) -> Any:
        found = graph.compare(*names)
        return {"same": found.same, **asdict(found)}

    return await call.graph(work)


_ALL = "/api/v1/collections/{collection}/sessions"
_ONE = f"{_ALL}/{{session}}"
_TAGS = ("sessions",)
_RDF = tuple(dict.fromkeys(MEDIA_TYPES.values()))
OPERATIONS = (
    Operation(
        "GET", _ALL, "sessions", "List sessions", sessions, answer="sessions", query=Listing,
        tags=_TAGS,
    ),
    Operation(
        "GET", _ONE, "session", "A session", session, answer=session_shape().model(), tags=_TAGS
    ),
    Operation(
        "GET", f"{_ONE}/trace", "trace", "All that is on record of a session", trace,
        answer=trace_shape().model(), tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/report", "report", "The report of a session", report,
        media=("text/html",), tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/export", "export", "The record in formats of RDF and PROV", export,
        query=RecordExport, media=_RDF, tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/why-not", "why_not", "Why something is not in the answer", why_not,
        answer="why-not", query=WhyNotAsked, tags=_TAGS,
    ),
    Operation(
        "GET", f"{_ONE}/diff/{{other}}", "diff", "What differs between two sessions", diff,
        answer="diff", tags=_TAGS,
    ),
    Operation(
        "POST", f"{_ONE}/verify", "verify", "Whether the sentences follow from what they cite",
        verify, "ask", "verify", body=Verifying, tags=_TAGS,
    ),
    Operation(
        "POST", f"{_ONE}/replay", "replay", "Ask a session once more, and compare", replay, "ask",
        "replay", body=Replaying, tags=_TAGS,
    ),
)  # fmt: skip
