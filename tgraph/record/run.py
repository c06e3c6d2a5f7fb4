"""The record of an index run, beside what its phases find."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.model import Prompt
from tgraph.models.base import Call
from tgraph.record.recorder import Recorder
from tgraph.store.statements import NQuads
from tgraph.store.writer import WorkingCopy


class RunRecord(Recorder):
    """What a run puts on record beside what it finds.

    ``content`` are the hashes of everything it gave the librarian, ``dropped`` what was left out,
    by reason.
    """

    def __init__(self, librarian: Librarian, run: str, uuid: str) -> None:
        super().__init__(uuid, run)
        self.dropped: Counter[str] = Counter()
        self.content: set[str] = set()
        self._librarian = librarian
        self._calls: list[Call] = []

    def call(self, call: Call) -> None:
        """Note a call, from any thread, until ``write_calls``."""
        with self._lock:
            self._calls.append(self._numbered(call))

    def keep(self, content: str | bytes) -> str:
        """Give the librarian a text or bytes to keep; returns the hash they are kept under.

        They are durable from ``sync`` on, which comes before the commit.
        """
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        key = self._librarian.put(data, durable=False)
        self.content.add(key)
        return key

    def sync(self) -> None:
        """Make durable what was kept."""
        self._librarian.sync(sorted(self.content))

    def prompts(self, prompts: Iterable[Prompt]) -> list[Quad]:
        """Keep the prompts' texts; returns the description of those that have none in this run."""
        return self._new((), prompts)

    def write_calls(self, copy: WorkingCopy) -> None:
        """What models were asked since the last time and what they said, by content."""
        with self._lock:
            calls, self._calls = self._calls, []
        out = NQuads(v.SOURCE_GRAPH)
        people: list[Quad] = []
        for call in calls:
            self._state_call(out, call)
            people += self._new([call.agent], [call.prompt] if call.prompt else [])
        copy.note(out.take())
        copy.add(people)
