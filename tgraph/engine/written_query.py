"""Queries that a person wrote: made from the query of a recorded session, and asked as a session of
their own."""

from __future__ import annotations

from textwrap import shorten

from tgraph import vocabulary as v
from tgraph.compute.computation import QueryPlan
from tgraph.engine.ask.computing import Computing
from tgraph.engine.ask.conversation import QuestionRequest
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.session_reader import SessionReader
from tgraph.errors import UsageError
from tgraph.explain.trace.values import Trace
from tgraph.models.base import no_sink
from tgraph.retrieve.base import Question
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.sparql import SPARQL

LONGEST_TITLE = 200
"""The characters of a query that stand for the question, where there is none."""


def request_query(
    opened: OpenCollection, query: str, question: str, after: str, filters: Filters, as_of: str
) -> QuestionRequest:
    """Return the request that asks a written query, after the session that it was made from."""
    edited = ""
    if after:
        trace = _read_session(opened, after)
        question = question or trace.question
        uuid = trace.explain_id.removeprefix(v.session_iri(""))
        edited = v.session_part_iri("query", uuid)
    return QuestionRequest(
        question or shorten(query, width=LONGEST_TITLE, placeholder=" ..."),
        SPARQL.name,
        (),
        filters,
        as_of,
        query=query,
        edited=edited,
    )


def write_session_query(opened: OpenCollection, session: str) -> str:
    """As ``KnowledgeGraph.write_query``."""
    return _read_session(opened, session).written_query


def plan_question(opened: OpenCollection, question: str) -> QueryPlan:
    """As ``KnowledgeGraph.plan_query``."""
    method = method_of(SPARQL.name, opened.parts)
    assert isinstance(method, Computing)
    return method.maker.plan(Question(question), opened.context(), no_sink)


def _read_session(opened: OpenCollection, session: str) -> Trace:
    trace = SessionReader(opened).trace(session)
    if not trace.written_query:
        raise UsageError(
            "The session has no query.", f"Name a session that the mode {SPARQL.name} answered."
        )
    return trace
