"""Session pages: list, and answers with complete proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from tgraph.answer.support import PROVEN
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import UsageError
from tgraph.explain.render import shown_session as shown
from tgraph.explain.render.wording import (
    agents_text,
    elapsed_seconds,
    item_text,
    knowledge_text,
    origin_text,
    verdict_text,
    way_lines,
)
from tgraph.explain.trace.values import Trace
from tgraph.extensions.server.node_link import node_link_svg, used_by
from tgraph.extensions.server.rest.sessions import MEDIA_TYPES
from tgraph.extensions.server.workbench.pages import Visit, WorkbenchPage, part_of, redirect_to
from tgraph.extensions.server.workbench.question_pages import (
    LONGEST,
    MOST_ALSO,
    MOST_TURNS,
    form_values,
)
from tgraph.plugins import FUNCTIONS


async def show_sessions(visit: Visit) -> Response:
    """Show sessions, newest first, filtered by a search word."""
    summaries = await visit.graph(lambda graph: list(graph.sessions.summaries()))
    sought = visit.read_parameter("text").casefold()
    rows = [summary for summary in summaries if sought in summary.question.casefold()]
    part = part_of(rows, visit.read_parameter("from"))
    rdf = visit.links.address_listing("page/sessions")
    return await visit.page(
        "sessions.html", part=part, sought=visit.read_parameter("text"), rdf=rdf
    )


@dataclass(frozen=True)
class _ShownSession:
    """A session prepared for display."""

    trace: Trace
    sentences: list[shown.ShownSentence]
    earlier: list[tuple[str, str]]
    why_not: Any
    picture: str


async def show_session(visit: Visit) -> Response:
    """Show an answer with its proof; ``expected`` adds an explanation of missing content."""
    name, expected = visit.part("session"), visit.read_parameter("expected").strip()[:20_000]
    after = tuple(visit.request.query_params.getlist("after"))[-MOST_TURNS:]

    def work(graph: KnowledgeGraph) -> _ShownSession:
        trace = graph.trace(name)
        sentences = shown.shown_sentences(trace, graph.documents.read_text)
        turns = [graph.sessions.find(session_name) for session_name in after]
        earlier = [(turn.explain_id, turn.question) for turn in turns]
        why_not = graph.why_not(name, expected) if expected else None
        return _ShownSession(trace, sentences, earlier, why_not, graph.export(name, "svg").decode())

    shown_session = await visit.graph(work)
    trace, used = shown_session.trace, used_by(shown_session.trace)
    return await visit.page(
        "session.html",
        trace=trace,
        uuid=trace.explain_id.rpartition(":")[2],
        sentences=shown_session.sentences,
        groups=shown.quoted_groups(shown_session.sentences),
        earlier=shown_session.earlier,
        after=(*after, trace.explain_id),
        also=visit.request.query_params.getlist("also")[:MOST_ALSO],
        why_not=shown_session.why_not,
        expected=expected,
        picture=Markup(shown_session.picture),  # noqa: S704 - tgraph's own, words of others escaped
        used=Markup(node_link_svg(used, visit.links.resource, "What the answer used")),  # noqa: S704
        left_out=used.left_out,
        glance=list(shown.at_a_glance(trace, shown_session.sentences))
        if shown_session.sentences
        else [],
        way=list(way_lines(trace)),
        uses=shown.uses_of(trace),
        influential=shown.influential_items(trace),
        idle=shown.idle_items(trace),
        knowledge=knowledge_text(trace),
        agents=agents_text(trace),
        formats=MEDIA_TYPES,
        label=lambda item: item_text(item) if item.kind == "edge" else item.label,
        origin=origin_text,
        verdict=verdict_text,
        seconds=elapsed_seconds,
        proven=PROVEN,
        most_rows=shown.MOST_ROWS,
        verified=visit.read_parameter("verified"),
        rdf=f"{visit.links.api}/sessions/{trace.explain_id}/export?format=trig",
        **form_values(visit),
    )


async def verify_session(visit: Visit) -> Response:
    """Verify sentences against citations, then show the session with verdicts."""
    name = visit.part("session")
    await visit.graph(lambda graph: graph.verify(name), "audit")
    return redirect_to(visit.links.session(name, verified="yes") + "#answer")


async def measure_influence(visit: Visit) -> Response:
    """Measure answer dependencies, where measurement needs no model calls."""
    name = visit.part("session")

    def work(graph: KnowledgeGraph) -> None:
        estimate = FUNCTIONS.require("estimate_influence", "lab")(graph, name)
        if estimate.calls:
            raise UsageError(
                f"Measuring would take {estimate.calls:,} calls to the model.",
                f"Run `tgraph influence {name}`, which says what they cost and can stop between.",
            )
        FUNCTIONS.require("measure_influence", "lab")(graph, name)

    await visit.graph(work, "audit")
    return redirect_to(visit.links.session(name) + "#influence")


async def ask_again(visit: Visit) -> Response:
    """Ask a session's question again by the query of the form, then show the new session."""
    name = visit.part("session")
    sparql = (await visit.form()).require_field("sparql", "The query")
    if len(sparql) > LONGEST:
        raise UsageError(f"The query has more than {LONGEST:,} characters.")
    answer = await visit.graph(lambda graph: graph.ask_query(sparql, after=name), "ask")
    return redirect_to(visit.links.session(answer.session) + "#computed")


async def replay_session(visit: Visit) -> Response:
    """Replay a session against its original state and compare results."""
    name = visit.part("session")
    replay_result = await visit.graph(lambda graph: graph.replay(name), "audit")
    return await visit.page("replay.html", found=replay_result, rdf="")


PAGES = (
    WorkbenchPage("/sessions", "sessions", show_sessions, ("sessions",)),
    WorkbenchPage(
        "/sessions/{session}", "session", show_session, ("sessions", "documents", "knowledge")
    ),
    WorkbenchPage(
        "/sessions/{session}/verify",
        "verify",
        verify_session,
        ("sessions",),
        ("ask", "read"),
        "POST",
    ),
    WorkbenchPage(
        "/sessions/{session}/again",
        "again",
        ask_again,
        ("sessions", "answer"),
        ("ask", "read"),
        "POST",
    ),
    WorkbenchPage(
        "/sessions/{session}/influence",
        "influence",
        measure_influence,
        ("sessions",),
        ("ask", "read"),
        "POST",
    ),
    WorkbenchPage(
        "/sessions/{session}/replay",
        "replay",
        replay_session,
        ("sessions", "answer"),
        ("ask", "read"),
        "POST",
    ),
)
