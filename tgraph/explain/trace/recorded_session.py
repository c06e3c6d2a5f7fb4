"""Recorded session contents: parameters, agents, calls, and kept prompts."""

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
from tgraph.retrieve.reasons import FIRST_WORDING
from tgraph.store.base import Store, match_record

ReadText = Callable[[str], str]
ContentState = Choice["kept", "erased", "missing"]


class CallReader:
    """Reader for a session's calls. ``texts`` returns text by hash, like the librarian."""

    def __init__(self, store: Store, texts: ReadText, said: BundleReader, session: str) -> None:
        self._store = store
        self._texts = texts
        self._said = said
        self._session = session
        calls = said.read_texts(session, "call")
        calls.sort(key=lambda c: (v.in_time(said.read_text(c, "startedAtTime")), c))
        self.calls = tuple(map(self._read_call, calls))

    def steps(self) -> tuple[TraceStep, ...]:
        """Return steps in order, each with call totals."""
        prefix = v.session_part_iri("step", self._session.removeprefix(v.session_iri("")), "")
        return tuple(map(self._read_step, self._said.beginning(prefix)))

    def _read_step(self, step: str) -> TraceStep:
        calls = [call for call in self.calls if call.step == step]
        kinds = (local_name(term) for term in self._said.nodes(step, "type"))
        return TraceStep(
            iri=step,
            kind=next(kind for kind in kinds if kind != "Activity"),
            label=self._said.read_text(step, "label"),
            started=self._said.read_text(step, "startedAtTime"),
            ended=self._said.read_text(step, "endedAtTime"),
            agents=tuple(self._agent_labels(step)),
            prompts=tuple(dict.fromkeys(call.prompt for call in calls if call.prompt)),
            input_tokens=sum(call.input_tokens for call in calls),
            output_tokens=sum(call.output_tokens for call in calls),
        )

    def _read_call(self, call: str) -> TraceCall:
        steps = [s for s in self._said.read_texts(call, "isPartOf") if s != self._session]
        return TraceCall(
            iri=call,
            label=self._said.read_text(call, "label"),
            agent=", ".join(self._agent_labels(call)),
            input_tokens=self._said.number(call, "inToken"),
            output_tokens=self._said.number(call, "outToken"),
            milliseconds=self._said.number(call, "llmDurationMs"),
            error=self._said.read_text(call, "error"),
            step=next(iter(steps), ""),
            prompt=next((self._read_label(plan) for plan in self._prompt_plans(call)), ""),
            content=self._said.read_text(call, "contentHash"),
        )

    def prompts(self) -> tuple[TracePrompt, ...]:
        """Return prompts of the session and its calls, sorted by name, with kept prompt texts."""
        activities = (self._session, *(call.iri for call in self.calls))
        plans = {plan for activity in activities for plan in self._prompt_plans(activity)}
        return tuple(sorted(map(self._read_prompt, plans), key=lambda p: (p.name, p.hash)))

    def _read_prompt(self, plan: str) -> TracePrompt:
        key = text_value(self._store, plan, v.tg("contentHash"))
        text, state = read_content(self._store, self._texts, key)
        return TracePrompt(plan, self._read_label(plan), key, text, state)

    def _read_label(self, iri: str) -> str:
        return text_value(self._store, iri, v.RDFS_LABEL) or iri

    def _prompt_plans(self, activity: str) -> list[str]:
        associations = self._said.read_texts(activity, "qualifiedAssociation")
        return [
            plan
            for association in associations
            for plan in self._said.read_texts(association, "hadPlan")
        ]

    def _agent_labels(self, activity: str) -> list[str]:
        return list(
            map(self._read_label, sorted(self._said.read_texts(activity, "wasAssociatedWith")))
        )


def read_content(store: Store, texts: ReadText, key: str) -> tuple[str, ContentState]:
    """Return a content by hash with its state: kept, erased or missing.

    Erased and missing texts are blank."""
    try:
        return texts(key), "kept"
    except (StoreError, KeyError):
        removed = match_record(store, None, v.tg("removedText"), RdfLiteral(key))
        return "", "missing" if next(removed, None) is None else "erased"


def read_request(store: Store, texts: ReadText, call: TraceCall) -> tuple[str, ContentState]:
    """Return the kept request of a language model call, prompt filled in: all messages except
    the system message, which belongs to the prompt.

    The text is blank for any other kind of call."""
    text, state = read_content(store, texts, call.content)
    if state != "kept":
        return "", state
    try:
        messages = json.loads(text)["request"].get("messages", [])
        messages_text = [str(m["content"]) for m in messages if m["role"] != "system"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", "missing"
    return "\n\n".join(messages_text), "kept"


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A recorded session.

    ``chat``, ``embedder`` and ``reader`` are the called agents, or None; ``prompts`` holds
    prompt texts by name; ``person`` is the questioner, if recorded."""

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
    def bundle_reader(self) -> BundleReader:
        return BundleReader(self.quads)

    @property
    def wording(self) -> int:
        """The number of the wording of the recorded reasons."""
        return self.bundle_reader.number(self.iri, "wording") or FIRST_WORDING

    @property
    def replayed_reader(self) -> ReplayedReader | None:
        """Return a reader replaying recorded readings, or None without readings."""
        return ReplayedReader(self.reader, self.calls) if self.reader else None


def read_recorded(store: Store, librarian: Librarian, bundle: str, session: str) -> RecordedSession:
    """Return a bundle's recorded session.

    Raise ``UsageError`` if the session has no end to compare with, or its calls have been
    erased."""
    quads = frozenset(store.match(None, None, None, NamedNode(bundle)))
    bundle_reader = BundleReader(quads)
    if (status := bundle_reader.read_text(session, "status")) in ("interrupted", "aborted"):
        raise UsageError(
            f"The session {session} was {status}: its record is not whole.", "Ask again."
        )
    calls = [
        _read_recorded_call(store, librarian, bundle_reader, iri)
        for iri in sorted(bundle_reader.read_texts(session, "call"))
    ]
    return RecordedSession(
        iri=session,
        uuid=session.removeprefix(v.session_iri("")),
        question=bundle_reader.read_text(session, "query"),
        mode=bundle_reader.read_text(session, "mode"),
        generation=bundle_reader.number(session, "generation"),
        collection=bundle_reader.read_text(session, "collection"),
        parameters=bundle_reader.parameters(session),
        quads=quads,
        calls=RecordedCalls(calls, bundle_reader.read_text(session, "error")),
        chat=_find_chat_agent(store, bundle_reader, calls),
        embedder=next((call.agent for call in calls if call.kind == "embedding"), None),
        reader=next((call.agent for call in calls if call.kind == "reading"), None),
        prompts={call.prompt.name: call.prompt.text for call in calls if call.prompt},
        person=_find_person(store, bundle_reader, session),
    )


def _read_recorded_call(store: Store, librarian: Librarian, said: BundleReader, iri: str) -> Call:
    try:
        content = json.loads(librarian.get_text(said.read_text(iri, "contentHash")))
        prompt = _load_prompt(store, librarian, content["prompt"]) if content["prompt"] else None
    except StoreError as error:
        raise UsageError(
            f"The session can't be replayed: a call of it can't be read. {error.message}",
            "Erased text can't be restored; ask the question again.",
        ) from error
    cached = said.read_text(iri, "cached") == "true"
    tokens = (said.number(iri, name) for name in ("inToken", "outToken", "reasoningToken"))
    sent, got, thought = tokens
    usage = Usage(sent, got, int(not cached), thought)
    started = datetime.fromisoformat(said.read_text(iri, "startedAtTime"))
    agent = agent_on_record(store, content["agent"])
    call = recorded_call(content, agent, started, usage, cached=cached)
    return replace(call, prompt=prompt, repaired=said.read_text(iri, "repaired") == "true")


def _load_prompt(store: Store, librarian: Librarian, iri: str) -> Prompt:
    sha256 = text_value(store, iri, v.tg("contentHash"))
    return Prompt(text_value(store, iri, v.RDFS_LABEL), librarian.get_text(sha256), sha256)


def _find_person(store: Store, said: BundleReader, session: str) -> str | None:
    agents = (agent_on_record(store, iri) for iri in said.read_texts(session, "wasAssociatedWith"))
    return next((agent.name for agent in agents if agent.kind == "person"), None)


def _find_chat_agent(store: Store, said: BundleReader, calls: Iterable[Call]) -> Agent | None:
    """Return the language model, even a model present without calls."""
    for call in calls:
        if call.kind == "chat":
            return call.agent
    for subject in sorted(said):
        kinds = {local_name(kind) for kind in said.nodes(subject, "type")}
        if "Synthesising" in kinds or "EdgeSelecting" in kinds:
            agent = agent_on_record(store, said.read_text(subject, "wasAssociatedWith"))
            if agent.kind == "model":
                return agent
    return None


_KINDS = {"Software": "software", "EmbeddedMethod": "method", "LanguageModel": "model"}


def agent_on_record(store: Store, iri: str) -> Agent:
    """Return an agent as recorded."""
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
