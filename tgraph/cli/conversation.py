"""A conversation: questions that follow each other, how they are asked, and what was answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tgraph.cli.answer_output import AnswerForm, AnswerOutput, is_laid_out, note_idle
from tgraph.cli.running import NO_EVIDENCE, opened
from tgraph.errors import UsageError
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import NO_FILTERS, Filters

if TYPE_CHECKING:
    from tgraph.explain.trace.values import TraceQuotation, TraceSentence

EMBEDDED = "embedded"
"""In place of a model's name: that none is asked."""


class Conversation:
    """What is asked one after the other of a graph, which is open until ``close``.

    Each question knows the ``turns`` before it, and is asked in the ``mode``, within the
    ``filters`` and ``as_of``, as they are set when it is asked.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        mode: str = "auto",
        filters: Filters = NO_FILTERS,
        as_of: str | None = None,
        form: AnswerForm | None = None,
        given: Sequence[str] = (),
    ) -> None:
        self._settings = dict(settings)
        self.mode = mode
        self.filters = filters
        self.as_of = as_of
        self.form = form or AnswerForm()
        self.turns: list[Turn] = []
        self.answers: list[Answer] = []
        self._session = ""
        self.is_over = False
        self._stack = ExitStack()
        self.graph = self._stack.enter_context(opened(self._settings))
        note_idle(self.graph, given, mode)

    def close(self) -> None:
        """Let go of the graph; what was asked is on record."""
        self._stack.close()

    def ask(self, question: str) -> int:
        """Ask, print the answer as it comes and remember it; the exit code that it would have."""
        stream = self.graph.stream(
            question, self.mode, history=self.turns, filters=self.filters, as_of=self.as_of
        )
        answer = AnswerOutput(self.graph, self.form).answer(stream, dated=self.as_of is not None)
        self.answers.append(answer)
        self.turns.append(Turn(question, answer.text))
        self._session = answer.session
        return NO_EVIDENCE if answer.no_evidence else 0

    @property
    def session(self) -> str:
        """The session that was answered last, else the graph's last one."""
        return self._session or "last"

    def begin_anew(self) -> None:
        """Forget what was asked; how it is asked stays."""
        self.turns, self.answers, self._session = [], [], ""

    def go_on_from(self, session: str) -> None:
        """Take up the conversation that a session was part of, after its answer. ``UsageError``
        where it has none."""
        from tgraph.engine.ask.parameters import history_of

        trace = self.graph.trace(session)
        if not trace.answer:
            raise UsageError("That session has no answer to go on from.")
        self.begin_anew()
        self.turns = [*history_of(trace.parameters), Turn(trace.question, trace.answer)]
        self._session = trace.explain_id

    def use_model(self, name: str) -> None:
        """Ask another model from now on, or none (``embedded``). ``UsageError`` where no endpoint
        is set for one; then nothing changes."""
        chat = self.graph.settings.chat
        if name != EMBEDDED and chat.base_url is None and chat.api_key is None:
            raise UsageError(
                "No endpoint is set for a model.",
                "Leave, and start with --base-url URL, or set OPENAI_API_KEY.",
            )
        asked = {"chat.provider": EMBEDDED}
        if name != EMBEDDED:
            asked = {"chat.provider": "openai", "chat.model": name}
        settings, stack = {**self._settings, **asked}, ExitStack()
        graph = stack.enter_context(opened(settings))
        self.close()
        self.graph, self._settings, self._stack = graph, settings, stack

    @property
    def model(self) -> str:
        """Who answers."""
        settings = self.graph.settings
        return settings.chat.model if settings.uses_model() else EMBEDDED

    def toggle_steps(self) -> bool:
        """Whether each step is shown as it is recorded, which was not so before."""
        self.form = replace(self.form, explained=not self.form.explained)
        return self.form.explained

    def places(self) -> Sequence[tuple[TraceSentence, Sequence[TraceQuotation]]]:
        """The sentences of the last answer with the places that each cites, by the numbers under
        which they were shown."""
        from tgraph.explain.render.answer import quote_groups

        sentences = self.graph.trace(self.session).sentences
        if is_laid_out(self.graph, self.form):
            shown = [quote for group in quote_groups(sentences) for quote in group.quotes]
            if shown:
                return [(said, [c for c in said.citations if c is it]) for _, said, it in shown]
        return [(said, said.citations) for said in sentences]
