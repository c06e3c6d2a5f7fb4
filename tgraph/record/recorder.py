"""What the records of index runs, of questions and of later statements do alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

from pyoxigraph import Quad

from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call
from tgraph.record.agents import agent_quads, prompt_quads
from tgraph.record.calls import call_content, describe_call
from tgraph.store.statements import Writer


class Recorder(ABC):
    """Numbers equal calls, describes agents and prompts once, and keeps what was said whole.

    ``usage`` is what the calls cost as far as they are stated. Calls may come from several threads.
    """

    def __init__(self, uuid: str, subject: str) -> None:
        self.uuid = uuid
        self.subject = subject
        self.usage = Usage()
        self._lock = Lock()
        self._occurrences: Counter[str] = Counter()
        self._known: set[str] = set()

    @abstractmethod
    def keep(self, content: str) -> str:
        """Have the librarian keep a text; returns the hash that it is kept under."""

    def _numbered(self, call: Call) -> Call:
        """The call with its number among equal ones."""
        occurrence = self._occurrences[call.request_hash]
        self._occurrences[call.request_hash] += 1
        return replace(call, occurrence=occurrence)

    def _state_call(self, out: Writer, call: Call) -> str:
        """State a call that has its number, and keep it; its IRI."""
        self.usage += call.usage
        return describe_call(out, self.uuid, self.subject, call, self.keep(call_content(call)))

    def _new(self, agents: Iterable[Agent], prompts: Iterable[Prompt]) -> list[Quad]:
        """Describe those that were not described before, and keep the prompts' texts."""
        quads: list[Quad] = []
        for agent in agents:
            if agent.iri not in self._known:
                self._known.add(agent.iri)
                quads += agent_quads([agent])
        for prompt in prompts:
            if prompt.iri not in self._known:
                self._known.add(prompt.iri)
                quads += prompt_quads([prompt])
                self.keep(prompt.text)
        return quads
