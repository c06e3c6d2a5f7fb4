"""A conversation: successive questions, question options, and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tgraph.cli.answer_output import AnswerForm, AnswerOutput, is_laid_out, note_idle
from tgraph.cli.running import open_call_graph
from tgraph.errors import UsageError
from tgraph.model import Answer, Turn
from tgraph.retrieve.filters import NO_FILTERS, Filters

if TYPE_CHECKING:
    from tgraph.explain.trace.values import TraceQuotation, TraceSentence

EMBEDDED = "embedded"
"""In place of a model's name: that none is asked."""


class Conversation:
    """Successive questions to one graph, open until ``close``.

    Each question knows earlier ``turns``, and uses the current ``mode``, ``filters`` and
    ``as_of``."""

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
        self.graph = self._stack.enter_context(open_call_graph(self._settings))
        note_idle(self.graph, given, mode)

    def close(self) -> None:
        """Close the graph; asked questions stay on record."""
        self._stack.close()

    def ask(self, question: str) -> int:
        """Ask a question, print the arriving answer, remember the answer, and return the exit
        code."""
        stream = self.graph.stream(
            question, self.mode, history=self.turns, filters=self.filters, as_of=self.as_of
        )
        output = AnswerOutput(self.graph, self.form)
        answer = output.answer(stream, dated=self.as_of is not None)
        self.answers.append(answer)
        self.turns.append(Turn(question, answer.text))
        self._session = answer.session
        return output.choose_exit_code(answer)

    @property
    def session(self) -> str:
        """The last answered session, or else the graph's last session."""
        return self._session or "last"

    def begin_anew(self) -> None:
        """Forget earlier questions; keep question options."""
        self.turns, self.answers, self._session = [], [], ""

    def go_on_from(self, session: str) -> None:
        """Continue the conversation of an earlier session, after the session's answer.

        Raises ``UsageError`` if the session has no answer."""
        from tgraph.engine.ask.parameters import history_of

        trace = self.graph.trace(session)
        if not trace.answer:
            raise UsageError("The session has no answer, so the conversation can't be continued.")
        self.begin_anew()
        self.turns = [*history_of(trace.parameters), Turn(trace.question, trace.answer)]
        self._session = trace.explain_id

    def use_model(self, name: str) -> None:
        """Switch to another language model; ``embedded`` switches models off.

        Raises ``UsageError`` if no endpoint is set for a model; nothing changes then."""
        chat = self.graph.settings.chat
        if name != EMBEDDED and chat.base_url is None and chat.api_key is None:
            raise UsageError(
                "No endpoint of a language model is set.",
                "Leave the chat, and start again with --base-url URL, or with OPENAI_API_KEY set.",
            )
        chat_settings = {"chat.provider": EMBEDDED}
        if name != EMBEDDED:
            chat_settings = {"chat.provider": "openai", "chat.model": name}
        settings, stack = {**self._settings, **chat_settings}, ExitStack()
        graph = stack.enter_context(open_call_graph(settings))
        self.close()
        self.graph, self._settings, self._stack = graph, settings, stack

    @property
    def model(self) -> str:
        """The name of the answering model."""
        settings = self.graph.settings
        return settings.chat.model if settings.uses_model() else EMBEDDED

    def toggle_steps(self) -> bool:
        """Toggle display of recorded steps; return the new state."""
        self.form = replace(self.form, explained=not self.form.explained)
        return self.form.explained

    def places(self) -> Sequence[tuple[TraceSentence, Sequence[TraceQuotation]]]:
        """Return sentences of the last answer with cited places, numbered as displayed."""
        from tgraph.explain.render.answer import quote_groups

        sentences = self.graph.trace(self.session).sentences
        if is_laid_out(self.graph, self.form):
            shown_quotes = [quote for group in quote_groups(sentences) for quote in group.quotes]
            if shown_quotes:
                return [
                    (sentence, [c for c in sentence.citations if c is quotation])
                    for _, sentence, quotation in shown_quotes
                ]
        return [(sentence, sentence.citations) for sentence in sentences]
