"""Question pages: form, live answer, suggested questions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from tgraph.engine.ask.question_run import SentenceMessage
from tgraph.engine.collections import list_collections
from tgraph.engine.graph import KnowledgeGraph
from tgraph.errors import NothingIndexedError, TgraphError, UsageError
from tgraph.explain.render.wording import stage_lines
from tgraph.extensions.server.events import event_stream
from tgraph.extensions.server.problems import problem_of
from tgraph.extensions.server.service import Message
from tgraph.extensions.server.workbench.pages import (
    Links,
    SentForm,
    Visit,
    WorkbenchPage,
    format_page_event,
    redirect_to,
)
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import AUTO, MODES

RECENT = 8
MOST_TURNS = 6
"""Earlier turns of a conversation that a question goes on from."""
LONGEST = 20_000
MOST_ALSO = 2
"""Other questions that are proposed beside the answer of the first."""


@dataclass(frozen=True)
class AskForm:
    """A submitted question form; ``after`` lists preceding sessions, oldest first, ``also`` other
    questions that are proposed beside the answer."""

    question: str
    mode: str
    after: tuple[str, ...]
    as_of: str | None
    filters: Filters
    also: tuple[str, ...]

    @staticmethod
    def read(form: SentForm) -> AskForm:
        """Parse the form; raise ``UsageError`` for missing questions or unknown modes."""
        question = form.require_field("question", "The question")
        if len(question) > LONGEST:
            raise UsageError(f"The question has more than {LONGEST:,} characters.")
        mode = form.read_field("mode") or AUTO
        if mode not in MODES and mode != AUTO:
            raise UsageError(f"There is no mode {mode!r}.", f"There are: {', '.join(MODES)}.")
        filters = Filters(
            form.read_fields("document"),
            form.read_field("since") or None,
            form.read_field("until") or None,
        )
        after = form.read_fields("after")[-MOST_TURNS:]
        also = tuple(each[:LONGEST] for each in form.read_fields("also")[:MOST_ALSO])
        return AskForm(question, mode, after, form.read_field("as_of") or None, filters, also)

    def locate_answer(self, links: Links, session: str) -> str:
        """Return the address of the answer's page."""
        return links.session(session, after=self.after, also=self.also)

    def to_arguments(self, graph: KnowledgeGraph) -> dict[str, Any]:
        """Return question arguments for the graph, including preceding turns."""
        traces = [graph.trace(name) for name in self.after]
        return {
            "question": self.question,
            "mode": self.mode,
            "history": tuple(Turn(trace.question, trace.answer) for trace in traces),
            "filters": self.filters,
            "as_of": self.as_of,
        }


async def ask_page(visit: Visit) -> Response:
    """Show the question form, recent sessions, and first steps for empty collections."""
    return await _ask_page(visit)


async def _ask_page(visit: Visit, **more: Any) -> Response:
    service = visit.service
    summaries = await service.call(lambda: list_collections(service.root))
    visible_collections = [summary for summary in summaries if visit.access.admits(summary.name)]
    here = next(
        (summary for summary in visible_collections if summary.name == visit.collection), None
    )
    sessions: list[Any] = []
    if here is None or here.generation:
        sessions = list(await visit.graph(lambda graph: graph.sessions.summaries(RECENT)))
    values = {
        "collections": visible_collections,
        "here": here,
        "sessions": sessions,
        **form_values(visit),
    }
    empty = {"suggested": (), "session": "", "also": (), "begins": False}
    return await visit.page(
        "ask.html", **{**values, **empty, "as_of": visit.read_parameter("as_of"), **more}
    )


def form_values(visit: Visit) -> dict[str, Any]:
    """What the question's form needs."""
    return {
        "modes": (AUTO, *MODES),
        "may_ask": visit.has_right("ask"),
        "asked": visit.read_parameter("question"),
    }


async def ask_question(visit: Visit) -> Response:
    """Answer a question: redirect to the answer page, or stream events for scripts."""
    asking = AskForm.read(await visit.form())
    if "text/event-stream" in visit.request.headers.get("accept", ""):
        return event_stream(_stream_events(visit, asking))

    def work(graph: KnowledgeGraph) -> Answer:
        return graph.ask(**asking.to_arguments(graph))

    answer = await visit.graph(work, "ask")
    return redirect_to(asking.locate_answer(visit.links, answer.session))


async def _stream_events(visit: Visit, asking: AskForm) -> AsyncIterator[bytes]:
    """Yield recorded stages, written sentences and finally the answer page address, as HTML
    from page templates."""
    session = ""

    def begin(graph: KnowledgeGraph) -> Any:
        return graph.stream(**asking.to_arguments(graph))

    stream = visit.service.stream(visit.access, visit.collection, begin)
    try:
        async for stream_item in stream:
            if isinstance(stream_item, Answer):
                address = asking.locate_answer(visit.links, stream_item.session)
                yield format_page_event("done", address)
                continue
            assert isinstance(stream_item, Message)
            message = stream_item.value
            session = session or message.explain_id or ""
            if message.explain_id:
                lines = await _read_stage(visit, session, message.explain_id)
                yield format_page_event("stage", visit.part_of_page("asking.html", "stage", lines))
            elif isinstance(message, SentenceMessage) and message.sentence is not None:
                yield format_page_event(
                    "sentence", visit.part_of_page("asking.html", "said", message.sentence)
                )
    except TgraphError as error:
        told_error = problem_of(error)
        error_html = visit.part_of_page("asking.html", "failed", error.message, error.remedy or "")
        yield format_page_event("failed", error_html if told_error else "")


async def _read_stage(visit: Visit, session: str, stage: str) -> list[str]:
    return await visit.graph(
        lambda graph: list(stage_lines(graph.sessions.trace_running(session), stage))
    )


async def suggest_questions(visit: Visit) -> Response:
    """Show suggested questions answerable from the documents; a form whose ``begin`` is set has the
    page ask the first of three."""
    begins = bool((await visit.form()).read_field("begin"))
    count = MOST_ALSO + 1 if begins else 5
    try:
        answer = await visit.graph(lambda graph: graph.suggest(count, history=()), "ask")
    except NothingIndexedError:
        return redirect_to(visit.links.home)
    shown: dict[str, Any] = {"suggested": answer.sentences, "session": answer.session}
    if begins and answer.sentences:
        first, *others = (sentence.text for sentence in answer.sentences)
        shown |= {"asked": first, "also": others, "begins": True}
    return await _ask_page(visit, **shown)


PAGES = (
    WorkbenchPage("/", "ask_page", ask_page, ("collections", "sessions")),
    WorkbenchPage("/ask", "ask", ask_question, ("answer", "sessions"), ("ask", "read"), "POST"),
    WorkbenchPage(
        "/suggest",
        "suggest",
        suggest_questions,
        ("answer", "sessions", "collections"),
        ("ask", "read"),
        "POST",
    ),
)
