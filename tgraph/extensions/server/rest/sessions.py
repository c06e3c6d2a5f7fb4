"""Session operations: question records, and analyses of records."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from tgraph.engine.graph import KnowledgeGraph
from tgraph.engine.json_judgements import (
    ReplayOut,
    VerificationOut,
    replay_json,
    verification_json,
)
from tgraph.engine.json_sessions import ComparisonOut, SessionOut, SessionTraceOut, session_json
from tgraph.explain.whynot.causes import WhyNot
from tgraph.extensions.server.requests import BodyParameters, QueryParameters
from tgraph.extensions.server.rest.routes import (
    CollectionCall,
    PathName,
    json_response,
    media,
    needs,
    rest_router,
)

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


class Listing(QueryParameters):
    limit: int = Field(50, ge=1, le=1_000, description="how many, the newest first")


class RecordExport(QueryParameters):
    format: RecordFormat = Field("trig", description="of RDF or PROV, or a picture")
    vocabulary: Literal["tgraph", "trustgraph"] = "tgraph"
    classic: bool = Field(False, description="edges without triple terms")
    core: bool = Field(False, description="without calls, ratings and what was rejected")


class WhyNotAsked(QueryParameters):
    text: str = Field(min_length=1, max_length=20_000, description="what was expected")


class Verifying(BodyParameters):
    """Whether sentences are to be judged by their words."""

    lexical: bool = False


class Replaying(BodyParameters):
    """Whether the models are to be called again."""

    live: bool = False


router = rest_router("sessions")
_SESSIONS = "/collections/{collection}/sessions"
_SESSION = f"{_SESSIONS}/{{session}}"


@router.get(
    _SESSIONS,
    summary="List sessions",
    response_model=Annotated[tuple[SessionOut, ...], Field(title="Sessions")],
    dependencies=needs("read", gives="sessions"),
)
async def sessions(call: CollectionCall, listing: Annotated[Listing, Query()]) -> Response:
    """Return the sessions, the newest first."""
    return json_response(
        await call.graph(
            lambda graph: list(map(session_json, graph.sessions.summaries(listing.limit)))
        )
    )


@router.get(
    _SESSION,
    summary="A session",
    response_model=SessionOut,
    dependencies=needs("read", gives="sessions"),
)
async def session(call: CollectionCall, session: PathName) -> Response:
    """Return a session."""
    return json_response(await call.graph(lambda graph: session_json(graph.sessions.find(session))))


@router.get(
    f"{_SESSION}/trace",
    summary="The whole record of a session",
    response_model=SessionTraceOut,
    dependencies=needs("read", gives=("sessions", "documents")),
)
async def trace(call: CollectionCall, session: PathName) -> Response:
    """Return the whole record of a session."""
    return json_response(await call.graph(lambda graph: graph.trace(session).as_dict()))


@router.get(
    f"{_SESSION}/report",
    summary="The report of a session",
    response_class=Response,
    responses=media("text/html"),
    dependencies=needs("read", gives=("sessions", "documents")),
)
async def report(call: CollectionCall, session: PathName) -> Response:
    """Return the record of a session as one HTML file."""
    page = await call.graph(lambda graph: graph.export(session, "html"))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox allow-popups"
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})


@router.get(
    f"{_SESSION}/export",
    summary="The record in formats of RDF and PROV",
    response_class=Response,
    responses=media(*dict.fromkeys(MEDIA_TYPES.values())),
    dependencies=needs("read", gives=("sessions", "documents")),
)
async def export(
    call: CollectionCall, session: PathName, asked: Annotated[RecordExport, Query()]
) -> Response:
    """Return the record of a session in a format of others."""

    def work(graph: KnowledgeGraph) -> bytes:
        return graph.export(
            session,
            asked.format,
            vocabulary=asked.vocabulary,
            classic=asked.classic,
            core=asked.core,
        )

    return Response(await call.graph(work), media_type=MEDIA_TYPES[asked.format])


@router.get(
    f"{_SESSION}/why-not",
    summary="Why something is not in the answer",
    response_model=WhyNot,
    dependencies=needs("read", gives=("sessions", "documents", "knowledge")),
)
async def why_not(
    call: CollectionCall, session: PathName, asked: Annotated[WhyNotAsked, Query()]
) -> Response:
    """Return the step at which something was lost on the way to the answer."""
    return json_response(await call.graph(lambda graph: graph.why_not(session, asked.text)))


@router.get(
    f"{_SESSION}/diff/{{other}}",
    summary="What differs between two sessions",
    response_model=ComparisonOut,
    dependencies=needs("read", gives="sessions"),
)
async def diff(call: CollectionCall, session: PathName, other: PathName) -> Response:
    """Return what differs between two sessions."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        comparison = graph.sessions.compare(session, other)
        return {"same": comparison.is_same, **asdict(comparison)}

    return json_response(await call.graph(work))


@router.post(
    f"{_SESSION}/verify",
    summary="Whether the cited quotes entail the sentences",
    response_model=VerificationOut,
    dependencies=needs("ask", "read", gives=("sessions", "answer")),
)
async def verify(call: CollectionCall, session: PathName, asked: Verifying) -> Response:
    """Judge whether each sentence is entailed by what it cites."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        return verification_json(graph.verify(session, lexical=asked.lexical))

    return json_response(await call.graph(work, "audit"))


@router.post(
    f"{_SESSION}/replay",
    summary="Replay a session, and compare the records",
    response_model=ReplayOut,
    dependencies=needs("ask", "read", gives=("sessions", "answer")),
)
async def replay(call: CollectionCall, session: PathName, asked: Replaying) -> Response:
    """Ask the question of a session once more, and compare the records."""

    def work(graph: KnowledgeGraph) -> dict[str, Any]:
        return replay_json(graph.replay(session, live=asked.live))

    return json_response(await call.graph(work, "audit"))
