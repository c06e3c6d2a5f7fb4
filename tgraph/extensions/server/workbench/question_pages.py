"""Asking: the form, the answer as it comes, and proposals of what to ask."""

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
from tgraph.extensions.server.workbench.pages import SentForm, Visit, WorkbenchPage, seen, sse
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import Filters
from tgraph.retrieve.modes.registry import AUTO, MODES

RECENT = 8
MOST_TURNS = 6
"""Earlier turns of a conversation that a question goes on from."""
_LONGEST = 20_000


@dataclass(frozen=True)
class AskForm:
    """What the form asks; ``after`` are the sessions that the question follows, oldest first."""

    question: str
    mode: str
    after: tuple[str, ...]
    as_of: str | None
    filters: Filters

    @staticmethod
    def read(form: SentForm) -> AskForm:
        """``UsageError`` where the question is missing, or the mode is none."""
        question = form.needed("question", "The question")
        if len(question) > _LONGEST:
            raise UsageError(f"The question has more than {_LONGEST:,} characters.")
        mode = form.get("mode") or AUTO
        if mode not in MODES and mode != AUTO:
            raise UsageError(f"There is no mode {mode!r}.", f"There are: {', '.join(MODES)}.")
        filters = Filters(
            form.all("document"), form.get("since") or None, form.get("until") or None
        )
        after = form.all("after")[-MOST_TURNS:]
        return AskForm(question, mode, after, form.get("as_of") or None, filters)

    def asked(self, graph: KnowledgeGraph) -> dict[str, Any]:
        """The question as the graph takes it, with the turns that it follows."""
        traces = [graph.trace(name) for name in self.after]
        return {
            "question": self.question,
            "mode": self.mode,
            "history": tuple(Turn(trace.question, trace.answer) for trace in traces),
            "filters": self.filters,
            "as_of": self.as_of,
        }


async def ask_page(visit: Visit) -> Response:
    """The form, the last sessions, and what to do where there is nothing yet."""
    return await _ask_page(visit)


async def _ask_page(visit: Visit, **more: Any) -> Response:
    service = visit.service
    found = await service.call(lambda: list_collections(service.root))
    known = [each for each in found if visit.access.admits(each.name)]
    here = next((each for each in known if each.name == visit.collection), None)
    sessions: list[Any] = []
    if here is None or here.generation:
        sessions = list(await visit.graph(lambda graph: graph.sessions(RECENT)))
    values = {"collections": known, "here": here, "sessions": sessions, **form_values(visit)}
    empty = {"suggested": (), "session": "", "as_of": visit.asked("as_of")}
    return await visit.page("ask.html", **{**values, **empty, **more})


def form_values(visit: Visit) -> dict[str, Any]:
    """What the question's form needs."""
    return {"modes": (AUTO, *MODES), "may_ask": visit.may("ask"), "asked": visit.asked("question")}


async def ask(visit: Visit) -> Response:
    """The answer: its page, or for a script what happens on the way."""
    asking = AskForm.read(await visit.form())
    if "text/event-stream" in visit.request.headers.get("accept", ""):
        return event_stream(_events(visit, asking))

    def work(graph: KnowledgeGraph) -> Answer:
        return graph.ask(**asking.asked(graph))

    answer = await visit.graph(work, "ask")
    return seen(visit.links.session(answer.session, after=asking.after))


async def _events(visit: Visit, asking: AskForm) -> AsyncIterator[bytes]:
    """Each stage when it is on record, each sentence when it is written, and where the page of the
    whole is; all as HTML of the same templates."""
    session = ""

    def begin(graph: KnowledgeGraph) -> Any:
        return graph.stream(**asking.asked(graph))

    stream = visit.service.stream(visit.access, visit.collection, begin)
    try:
        async for told in stream:
            if isinstance(told, Answer):
                yield sse("done", visit.links.session(told.session, after=asking.after))
                continue
            assert isinstance(told, Message)
            message = told.value
            session = session or message.explain_id or ""
            if message.explain_id:
                lines = await _stage(visit, session, message.explain_id)
                yield sse("stage", visit.part_of_page("asking.html", "stage", lines))
            elif isinstance(message, SentenceMessage) and message.sentence is not None:
                yield sse("sentence", visit.part_of_page("asking.html", "said", message.sentence))
    except TgraphError as error:
        told_error = problem_of(error)
        shown = visit.part_of_page("asking.html", "failed", error.message, error.remedy or "")
        yield sse("failed", shown if told_error else "")


async def _stage(visit: Visit, session: str, stage: str) -> list[str]:
    return await visit.graph(lambda graph: list(stage_lines(graph.trace_so_far(session), stage)))


async def suggest(visit: Visit) -> Response:
    """Questions that the documents can answer."""
    try:
        answer = await visit.graph(lambda graph: graph.suggest(5, history=()), "ask")
    except NothingIndexedError:
        return seen(visit.links.home)
    return await _ask_page(visit, suggested=answer.sentences, session=answer.session)


PAGES = (
    WorkbenchPage("/", "ask_page", ask_page),
    WorkbenchPage("/ask", "ask", ask, "ask", "POST"),
    WorkbenchPage("/suggest", "suggest", suggest, "ask", "POST"),
)
