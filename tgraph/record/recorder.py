"""What all recorders do alike: calls, agents, prompts; and the record of an index run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from threading import Lock

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.librarian import Librarian
from tgraph.model import NO_USAGE, Agent, Prompt, StepUsage, Usage
from tgraph.models.base import Call, canonical_json
from tgraph.record.activities import Activity, agent_quads, prompt_quads
from tgraph.record.observer import Ending, Observer
from tgraph.store.statements import Statements, iri_node
from tgraph.store.writer import WorkingCopy


def call_content(call: Call) -> str:
    """Return the librarian's record of a call: request and reply without times, allowing
    replay."""
    fields_json = canonical_json(
        {
            "agent": call.agent.iri,
            "kind": call.kind,
            "occurrence": call.occurrence,
            "prompt": call.prompt.iri if call.prompt else None,
            "reply": call.reply,
        }
    )
    return f'{fields_json[:-1]},"request":{call.request_text}}}'  # in the order of the names


def call_iri(run: str, call: Call) -> str:
    return v.session_part_iri("call", run, call.request_hash[:40], call.occurrence)


def call_activity(run: str, whole: str, call: Call) -> Activity:
    """Return a call activity; session or run ``whole`` contains the activity."""
    return Activity(
        call_iri(run, call),
        ("Call",),
        f"{call.kind} call" + (f": {call.prompt.name}" if call.prompt else ""),
        call.started,
        call.ended,
        (call.agent,),
        (call.prompt,) if call.prompt else (),
        whole,
        error=str(call.reply["error"]) if "error" in call.reply else None,
    )


def describe_call(out: Statements, activity: Activity, call: Call, content_hash: str) -> str:
    """State a call as the given activity, part of a larger activity; return the activity IRI."""
    milliseconds = max(0, round((call.ended - call.started).total_seconds() * 1000))
    activity.state(
        out,
        (v.tg("callKind"), call.kind),
        (v.tg("requestHash"), call.request_hash),
        (v.tg("contentHash"), content_hash),
        (v.tg("occurrence"), call.occurrence),
        (v.tg("inToken"), call.usage.input_tokens),
        (v.tg("outToken"), call.usage.output_tokens),
        (v.tg("reasoningToken"), call.usage.reasoning_tokens or None),
        (v.tg("llmDurationMs"), milliseconds),
        (v.tg("cached"), True if call.cached else None),
        (v.tg("repaired"), True if call.repaired else None),
    )
    out.add(activity.part_of, (v.tg("call"), iri_node(activity.iri)))
    return activity.iri


class Recorder(ABC):
    """Numbers equal calls, describes agents and prompts once, and keeps what was said whole.

    ``usage`` is what the calls cost as far as they are stated. Calls may come from several threads.
    ``observer`` is told what is stated.
    """

    def __init__(self, uuid: str, subject: str) -> None:
        self.uuid = uuid
        self.subject = subject
        self.usage = Usage()
        self.observer = Observer()
        self._spent: dict[tuple[str, str], tuple[int, Usage]] = {}
        self._lock = Lock()
        self._occurrences: Counter[str] = Counter()
        self._known: set[str] = set()

    @abstractmethod
    def keep_content(self, content: str) -> str:
        """Keep a text in the librarian; return the text's hash."""

    def _number_call(self, call: Call) -> Call:
        """Return the call with its occurrence number among equal calls."""
        self._occurrences[call.request_hash] += 1
        return replace(call, occurrence=self._occurrences[call.request_hash] - 1)

    def _state_call(self, out: Statements, activity: Activity, call: Call) -> str:
        """State a numbered call; the librarian keeps request and reply. Return the call IRI."""
        self.usage += call.usage
        return describe_call(out, activity, call, self.keep_content(call_content(call)))

    def _call_activity(self, call: Call) -> Activity:
        """Return a numbered call as an activity belonging to the recorded subject."""
        return call_activity(self.uuid, self.subject, call)

    @property
    def usage_by_step(self) -> tuple[StepUsage, ...]:
        """Return token ``usage`` by step and purpose, ordered by first call."""
        return tuple(
            StepUsage(*key, call_count, usage.calls, usage.input_tokens, usage.output_tokens)
            for key, (call_count, usage) in self._spent.items()
        )

    def _count(self, call: Call, step: str) -> None:
        """Add the call's usage to its step's total."""
        key = (step, call.prompt.name if call.prompt else call.kind)
        call_count, usage = self._spent.get(key, (0, NO_USAGE))
        self._spent[key] = (call_count + 1, usage + call.usage)

    def _new(self, agents: Iterable[Agent], prompts: Iterable[Prompt]) -> list[Quad]:
        """Return descriptions of agents and prompts not described before; keep the texts of new
        prompts."""
        people = {agent.iri: agent for agent in agents if agent.iri not in self._known}
        plans = {prompt.iri: prompt for prompt in prompts if prompt.iri not in self._known}
        for prompt in plans.values():
            self.keep_content(prompt.text)
        self._known |= people.keys() | plans.keys()
        return agent_quads(people.values()) + prompt_quads(plans.values())


class RunRecord(Recorder):
    """A run's record, apart from the run's findings.

    ``content`` contains hashes of everything given to the librarian, ``dropped`` counts
    omissions by reason."""

    def __init__(self, librarian: Librarian, run: str, uuid: str) -> None:
        super().__init__(uuid, run)
        self.dropped: Counter[str] = Counter()
        self.content: set[str] = set()
        self._librarian = librarian
        self._calls: list[Call] = []
        self._ended: datetime | None = None

    def begin(self, label: str, started: datetime) -> None:
        """Notify the observer of the run's start.

        The run is recorded at its end (``run_quads``), if anything changed."""
        self.observer.handle_start(Activity(self.subject, ("IndexRun",), label, started))

    def end(self, ended: datetime) -> None:
        """Note the recorded end time of the run."""
        self._ended = ended

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Run the enclosed block as the run's work; afterwards, notify the observer of the
        ending."""
        try:
            yield
        except BaseException as error:
            self.observer.handle_end(self.subject, Ending.from_error(self._ended, error))
            raise
        status = "completed" if self._ended else "unchanged"
        self.observer.handle_end(self.subject, Ending(self._ended, status))

    def call(self, call: Call) -> None:
        """Note a model call from any thread; ``write_calls`` writes noted calls."""
        with self._lock:
            call = self._number_call(call)
            self._calls.append(call)
        self.observer.handle_call(self._call_activity(call), call)

    def keep_content(self, content: str | bytes) -> str:
        """Keep a text or bytes in the librarian; return the content's hash.

        Content becomes durable with ``sync``, before the commit."""
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        key = self._librarian.store_content(data, durable=False)
        self.content.add(key)
        return key

    def sync(self) -> None:
        """Make kept content durable."""
        self._librarian.sync(sorted(self.content))

    def prompts(self, prompts: Iterable[Prompt]) -> list[Quad]:
        """Keep the prompts' texts; return descriptions of prompts not yet described in this
        run."""
        return self._new((), prompts)

    def write_calls(self, copy: WorkingCopy) -> None:
        """Write model calls noted since the last write: requests and replies, by content."""
        with self._lock:
            calls, self._calls = self._calls, []
        out = Statements(v.SOURCE_GRAPH)
        people: list[Quad] = []
        for call in calls:
            self._state_call(out, self._call_activity(call), call)
            people += self._new([call.agent], [call.prompt] if call.prompt else [])
        copy.note(out.take_quads())
        copy.add(people)
