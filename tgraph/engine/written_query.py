"""Queries that a person wrote: made from the query of a recorded session, and asked as a session of
their own."""

from __future__ import annotations

from textwrap import shorten

from tgraph.compute.computation import QueryPlan
from tgraph.engine.ask.computing import Computing
from tgraph.engine.ask.conversation import QuestionRequest
from tgraph.engine.ask.method_factory import method_of
from tgraph.engine.open_collection import OpenCollection
from tgraph.engine.session_reader import SessionReader
from tgraph.errors import UsageError
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
    revises = ""
    if after:
        trace = SessionReader(opened).trace(after)
        if trace.computed is None:
            raise UsageError(
                "The session has no query: its answer was not computed.",
                f"Name a session that the mode {SPARQL.name} answered.",
            )
        question, revises = question or trace.question, trace.explain_id
    return QuestionRequest(
        question or shorten(query, width=LONGEST_TITLE, placeholder=" ..."),
        SPARQL.name,
        (),
        filters,
        as_of,
        sparql=query,
        revises=revises,
    )


def plan_question(opened: OpenCollection, question: str) -> QueryPlan:
    """As ``KnowledgeGraph.plan_query``."""
    method = method_of(SPARQL.name, opened.parts)
    assert isinstance(method, Computing)
    return method.maker.plan(Question(question), opened.context(), no_sink)
