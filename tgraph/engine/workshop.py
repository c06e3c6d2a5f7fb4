"""What the phases of an index run share: the copy they change, the parts, the record, who listens.

A stage is a function of a ``Workshop``. It reads and changes ``copy``, asks the models that
``parts`` gives it, passes their calls to ``record.call``, and shows how far it is.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.engine.parts import Parts
from tgraph.engine.progress import OnMessage, OnProgress, Progress
from tgraph.extract.base import Extractor
from tgraph.index.evidence import EvidenceReader
from tgraph.index.lookup_table import LazyTable, LookupTable
from tgraph.index.sources import Texts
from tgraph.librarian import Librarian
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call, Embedder
from tgraph.record.agents import agent_quads, prompt_quads
from tgraph.record.calls import call_content, describe_call
from tgraph.record.nquads import NQuads
from tgraph.settings import Settings
from tgraph.store.writer import WorkingCopy


class RunRecord:
    """What a run puts on record beside what it finds.

    ``content`` are the hashes of everything it gave the librarian, ``usage`` what its calls cost
    as far as they are written, ``dropped`` what was left out, by reason.
    """

    def __init__(self, librarian: Librarian, run: str, uuid: str) -> None:
        self.usage = Usage()
        self.dropped: Counter[str] = Counter()
        self.content: set[str] = set()
        self._librarian = librarian
        self._run = run
        self._uuid = uuid
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._seen: Counter[str] = Counter()
        self._prompts: set[str] = set()

    def call(self, call: Call) -> None:
        """Note a call, from any thread, until ``write_calls``; equal requests are numbered."""
        with self._lock:
            occurrence = self._seen[call.request_hash]
            self._seen[call.request_hash] += 1
            self._calls.append(replace(call, occurrence=occurrence))

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
        new = [prompt for prompt in prompts if prompt.iri not in self._prompts]
        self._prompts.update(prompt.iri for prompt in new)
        for prompt in new:
            self.keep(prompt.text)
        return prompt_quads(new)

    def write_calls(self, copy: WorkingCopy) -> None:
        """What models were asked since the last time and what they said, by content."""
        with self._lock:
            calls, self._calls = self._calls, []
        agents: dict[str, Agent] = {}
        prompts: dict[str, Prompt] = {}
        out = NQuads(v.SOURCE_GRAPH)
        for call in calls:
            describe_call(out, self._uuid, self._run, call, self.keep(call_content(call)))
            agents[call.agent.iri] = call.agent
            if call.prompt:
                prompts[call.prompt.iri] = call.prompt
            self.usage += call.usage
        copy.note(out.take())
        copy.add([*agent_quads(agents.values()), *self.prompts(prompts.values())])


@dataclass(frozen=True, slots=True)
class Workshop:
    """One run's place of work. ``run`` is the run's IRI, ``uuid`` what hangs on it is named by.

    ``table`` is the evidence of the copy as the first who asks for it finds it: for phases that
    come after all evidence is there.
    """

    run: str
    uuid: str
    copy: WorkingCopy
    table: LazyTable[LookupTable]
    record: RunRecord
    librarian: Librarian
    settings: Settings
    parts: Parts
    extractor: Extractor
    embedder: Embedder
    clock: Callable[[], datetime]
    progress: OnProgress
    message: OnMessage

    @property
    def evidence(self) -> EvidenceReader:
        """The evidence of the ``table``."""
        return EvidenceReader(self.table(), Texts(self.copy.store, self.librarian))

    def show(self, stage: str, done: int, total: int, detail: str = "") -> None:
        """Tell who waits how far a stage is, and what the run has cost."""
        self.progress(Progress(stage, done, total, self.record.usage, detail))
