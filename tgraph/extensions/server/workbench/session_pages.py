"""Sessions: the list, and an answer with everything that proves it."""

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
    item_text,
    knowledge_text,
    origin_text,
    seconds,
    verdict_text,
    way_lines,
)
from tgraph.explain.trace.values import Trace
from tgraph.extensions.server.node_link import node_link_svg, used_by
from tgraph.extensions.server.rest.sessions import MEDIA_TYPES
from tgraph.extensions.server.workbench.pages import Visit, WorkbenchPage, part_of, seen
from tgraph.extensions.server.workbench.question_pages import MOST_TURNS, form_values
from tgraph.plugins import FUNCTIONS


async def sessions(visit: Visit) -> Response:
    """All of them, the newest first, those that hold a word where one is looked for."""
    found = await visit.graph(lambda graph: list(graph.sessions()))
    sought = visit.asked("text").casefold()
    rows = [each for each in found if sought in each.question.casefold()]
    part = part_of(rows, visit.asked("from"))
    rdf = visit.links.listed("page/sessions")
    return await visit.page("sessions.html", part=part, sought=visit.asked("text"), rdf=rdf)


@dataclass(frozen=True)
class _ShownSession:
    """A session as its page shows it."""

    trace: Trace
    sentences: list[shown.ShownSentence]
    earlier: list[tuple[str, str]]
    why_not: Any
    picture: str


async def session(visit: Visit) -> Response:
    """The answer and its proof; with ``expected``, why something is not in it."""
    name, expected = visit.part("session"), visit.asked("expected").strip()[:20_000]
    after = tuple(visit.request.query_params.getlist("after"))[-MOST_TURNS:]

    def work(graph: KnowledgeGraph) -> _ShownSession:
        trace = graph.trace(name)
        sentences = shown.shown_sentences(trace, graph.source_text)
        turns = [graph.find_session(each) for each in after]
        earlier = [(turn.explain_id, turn.question) for turn in turns]
        why_not = graph.why_not(name, expected) if expected else None
        return _ShownSession(trace, sentences, earlier, why_not, graph.export(name, "svg").decode())

    found = await visit.graph(work)
    trace, used = found.trace, used_by(found.trace)
    return await visit.page(
        "session.html",
        trace=trace,
        uuid=trace.explain_id.rpartition(":")[2],
        sentences=found.sentences,
        groups=shown.quoted_groups(found.sentences),
        earlier=found.earlier,
        after=(*after, trace.explain_id),
        why_not=found.why_not,
        expected=expected,
        picture=Markup(found.picture),  # noqa: S704 - tgraph's own, words of others escaped
        used=Markup(node_link_svg(used, visit.links.resource, "What the answer used")),  # noqa: S704
        left_out=used.left_out,
        glance=list(shown.at_a_glance(trace, found.sentences)) if found.sentences else [],
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
        seconds=seconds,
        proven=PROVEN,
        verified=visit.asked("verified"),
        rdf=f"{visit.links.api}/sessions/{trace.explain_id}/export?format=trig",
        **form_values(visit),
    )


async def verify(visit: Visit) -> Response:
    """Judge each sentence by what it cites, and show the session with the verdicts."""
    name = visit.part("session")
    await visit.graph(lambda graph: graph.verify(name), "audit")
    return seen(visit.links.session(name, verified="yes") + "#answer")


async def influence(visit: Visit) -> Response:
    """Measure on what the answer depends, where that needs no calls to a model."""
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
    return seen(visit.links.session(name) + "#influence")


async def replay(visit: Visit) -> Response:
    """Ask it once more of what it was asked of, and compare."""
    name = visit.part("session")
    found = await visit.graph(lambda graph: graph.replay(name), "audit")
    return await visit.page("replay.html", found=found, rdf="")


PAGES = (
    WorkbenchPage("/sessions", "sessions", sessions),
    WorkbenchPage("/sessions/{session}", "session", session),
    WorkbenchPage("/sessions/{session}/verify", "verify", verify, "ask", "POST"),
    WorkbenchPage("/sessions/{session}/influence", "influence", influence, "ask", "POST"),
    WorkbenchPage("/sessions/{session}/replay", "replay", replay, "ask", "POST"),
)
