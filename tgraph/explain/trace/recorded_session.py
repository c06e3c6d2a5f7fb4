"""What a session has on record: its parameters, agents, calls, and the prompts that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal as Choice

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import StoreError, UsageError
from tgraph.explain.trace.bundle_reader import BundleReader, local_name
from tgraph.explain.trace.values import TraceCall, TracePrompt, TraceStep
from tgraph.index.sources import text_value
from tgraph.librarian import Librarian
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call
from tgraph.models.recorded_calls import RecordedCalls, ReplayedReader, recorded_call
from tgraph.store.base import Store

ReadText = Callable[[str], str]
State = Choice["kept", "erased", "missing"]


class CallReader:
    """Reads what one session asked. ``texts`` gives the text of a hash, as the librarian does."""

    def __init__(self, store: Store, texts: ReadText, said: BundleReader, session: str) -> None:
        self._store = store
        self._texts = texts
        self._said = said
        self._session = session
        calls = said.all(session, "call")
        calls.sort(key=lambda c: (v.in_time(said.one(c, "startedAtTime")), c))
        self.calls = tuple(map(self._call, calls))

    def steps(self) -> tuple[TraceStep, ...]:
        """The steps in their order, each with what its calls came to."""
        prefix = v.session_part_iri("step", self._session.removeprefix(v.session_iri("")), "")
        return tuple(map(self._step, self._said.beginning(prefix)))

    def _step(self, step: str) -> TraceStep:
        calls = [call for call in self.calls if call.step == step]
        kinds = (local_name(term) for term in self._said.nodes(step, "type"))
        return TraceStep(
            iri=step,
            kind=next(kind for kind in kinds if kind != "Activity"),
            label=self._said.one(step, "label"),
            started=self._said.one(step, "startedAtTime"),
            ended=self._said.one(step, "endedAtTime"),
            agents=tuple(self._agents(step)),
            prompts=tuple(dict.fromkeys(call.prompt for call in calls if call.prompt)),
            input_tokens=sum(call.input_tokens for call in calls),
            output_tokens=sum(call.output_tokens for call in calls),
        )

    def _call(self, call: str) -> TraceCall:
        steps = [s for s in self._said.all(call, "isPartOf") if s != self._session]
        return TraceCall(
            iri=call,
            label=self._said.one(call, "label"),
            agent=", ".join(self._agents(call)),
            input_tokens=self._said.number(call, "inToken"),
            output_tokens=self._said.number(call, "outToken"),
            milliseconds=self._said.number(call, "llmDurationMs"),
            error=self._said.one(call, "error"),
            step=next(iter(steps), ""),
            prompt=next((self._name(plan) for plan in self._plans(call)), ""),
            content=self._said.one(call, "contentHash"),
        )

    def prompts(self) -> tuple[TracePrompt, ...]:
        """The prompts of the session and its calls by name, each with its text if it is kept."""
        activities = (self._session, *(call.iri for call in self.calls))
        plans = {plan for activity in activities for plan in self._plans(activity)}
        return tuple(sorted(map(self._prompt, plans), key=lambda p: (p.name, p.hash)))

    def _prompt(self, plan: str) -> TracePrompt:
        key = text_value(self._store, plan, v.tg("contentHash"))
        text, state = read_kept(self._store, self._texts, key)
        return TracePrompt(plan, self._name(plan), key, text, state)

    def _name(self, iri: str) -> str:
        return text_value(self._store, iri, v.RDFS_LABEL) or iri

    def _plans(self, activity: str) -> list[str]:
        told = self._said.all(activity, "qualifiedAssociation")
        return [plan for association in told for plan in self._said.all(association, "hadPlan")]

    def _agents(self, activity: str) -> list[str]:
        return list(map(self._name, sorted(self._said.all(activity, "wasAssociatedWith"))))


def read_kept(store: Store, texts: ReadText, key: str) -> tuple[str, State]:
    """The text of a hash, empty where it was erased or is not kept, and which of these it is."""
    try:
        return texts(key), "kept"
    except (StoreError, KeyError):
        removed = store.match(None, v.tg("removedText"), RdfLiteral(key), None)
        return "", "missing" if next(iter(removed), None) is None else "erased"


def read_request(store: Store, texts: ReadText, call: TraceCall) -> tuple[str, State]:
    """What a language model was sent with its prompt filled in, as far as it is kept: the messages
    except the system's, which is the prompt's own part. Empty for a call of anything else."""
    text, state = read_kept(store, texts, call.content)
    if state != "kept":
        return "", state
    try:
        messages = json.loads(text)["request"].get("messages", [])
        said = [str(m["content"]) for m in messages if m["role"] != "system"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", "missing"
    return "\n\n".join(said), "kept"


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session as it was asked: ``chat``, ``embedder`` and ``reader`` are who was called, None for
    nobody; ``prompts`` the texts of the prompts used, by name; ``person`` who asked, where the
    record names somebody."""

    iri: str
    uuid: str
    question: str
    mode: str
    generation: int
    collection: str
    parameters: Mapping[str, str]
    quads: frozenset[Quad]
    calls: RecordedCalls
    chat: Agent | None
    embedder: Agent | None
    reader: Agent | None
    prompts: Mapping[str, str]
    person: str | None

    @property
    def said(self) -> BundleReader:
        return BundleReader(self.quads)

    @property
    def replayed_reader(self) -> ReplayedReader | None:
        """The reader with what it read; None where nothing was read."""
        return ReplayedReader(self.reader, self.calls) if self.reader else None


def read_recorded(store: Store, librarian: Librarian, bundle: str, session: str) -> RecordedSession:
    """The session of a bundle.

    ``UsageError`` where it has no end to compare with, or its calls have been erased.
    """
    quads = frozenset(store.match(None, None, None, NamedNode(bundle)))
    said = BundleReader(quads)
    if (status := said.one(session, "status")) in ("interrupted", "aborted"):
        raise UsageError(
            f"The session {session} was {status}: its record is not whole.", "Ask again."
        )
    calls = [_call(store, librarian, said, iri) for iri in sorted(said.all(session, "call"))]
    return RecordedSession(
        iri=session,
        uuid=session.removeprefix(v.session_iri("")),
        question=said.one(session, "query"),
        mode=said.one(session, "mode"),
        generation=said.number(session, "generation"),
        collection=said.one(session, "collection"),
        parameters=said.parameters(session),
        quads=quads,
        calls=RecordedCalls(calls, said.one(session, "error")),
        chat=_chat(store, said, calls),
        embedder=next((call.agent for call in calls if call.kind == "embedding"), None),
        reader=next((call.agent for call in calls if call.kind == "reading"), None),
        prompts={call.prompt.name: call.prompt.text for call in calls if call.prompt},
        person=_person(store, said, session),
    )


def _call(store: Store, librarian: Librarian, said: BundleReader, iri: str) -> Call:
    try:
        content = json.loads(librarian.get_text(said.one(iri, "contentHash")))
        prompt = _prompt(store, librarian, content["prompt"]) if content["prompt"] else None
    except StoreError as error:
        raise UsageError(
            f"The session can't be replayed: a call of it can't be read. {error.message}",
            "What has been erased stays erased; ask the question again.",
        ) from error
    cached = said.one(iri, "cached") == "true"
    tokens = (said.number(iri, name) for name in ("inToken", "outToken", "reasoningToken"))
    sent, got, thought = tokens
    usage = Usage(sent, got, int(not cached), thought)
    started = datetime.fromisoformat(said.one(iri, "startedAtTime"))
    agent = agent_on_record(store, content["agent"])
    call = recorded_call(content, agent, started, usage, cached=cached)
    return replace(call, prompt=prompt, repaired=said.one(iri, "repaired") == "true")


def _prompt(store: Store, librarian: Librarian, iri: str) -> Prompt:
    sha256 = text_value(store, iri, v.tg("contentHash"))
    return Prompt(text_value(store, iri, v.RDFS_LABEL), librarian.get_text(sha256), sha256)


def _person(store: Store, said: BundleReader, session: str) -> str | None:
    agents = (agent_on_record(store, iri) for iri in said.all(session, "wasAssociatedWith"))
    return next((agent.name for agent in agents if agent.kind == "person"), None)


def _chat(store: Store, said: BundleReader, calls: Iterable[Call]) -> Agent | None:
    """The language model, which also may have been there without being asked anything."""
    for call in calls:
        if call.kind == "chat":
            return call.agent
    for subject in sorted(said):
        kinds = {local_name(kind) for kind in said.nodes(subject, "type")}
        if "Synthesising" in kinds or "EdgeSelecting" in kinds:
            agent = agent_on_record(store, said.one(subject, "wasAssociatedWith"))
            if agent.kind == "model":
                return agent
    return None


_KINDS = {"Software": "software", "EmbeddedMethod": "method", "LanguageModel": "model"}


def agent_on_record(store: Store, iri: str) -> Agent:
    """The agent as the record names it."""
    node = NamedNode(iri)
    types = [q.object for q in store.match(node, v.RDF_TYPE, None, v.SOURCE_GRAPH)]
    names = [local_name(t) for t in types if isinstance(t, NamedNode)]
    kind = next((_KINDS[name] for name in names if name in _KINDS), "person")
    return Agent(
        kind,  # type: ignore[arg-type]
        text_value(store, iri, v.RDFS_LABEL),
        text_value(store, iri, v.tg("componentVersion")),
        text_value(store, iri, v.tg("provider")),
    )
