"""What a session asked of models: its steps, their calls, and the prompts that are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Literal as Choice

from pyoxigraph import Literal as RdfLiteral

from tgraph import vocabulary as v
from tgraph.errors import StoreError
from tgraph.explain.said import Said, local_name
from tgraph.explain.traced import TracedCall, TracedPrompt, TracedStep
from tgraph.index.sources import text_value
from tgraph.store.base import Store

ReadText = Callable[[str], str]
State = Choice["kept", "erased", "missing"]


class Asked:
    """Reads what one session asked. ``texts`` gives the text of a hash, as the librarian does."""

    def __init__(self, store: Store, texts: ReadText, said: Said, session: str) -> None:
        self._store = store
        self._texts = texts
        self._said = said
        self._session = session
        self.calls = self._calls()

    def steps(self) -> tuple[TracedStep, ...]:
        """The steps in their order, each with what its calls came to."""
        prefix = v.session_part_iri("step", self._session.removeprefix(v.session_iri("")), "")
        return tuple(map(self._step, self._said.beginning(prefix)))

    def _step(self, step: str) -> TracedStep:
        calls = [call for call in self.calls if call.step == step]
        kinds = (local_name(term) for term in self._said.nodes(step, "type"))
        return TracedStep(
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

    def _calls(self) -> tuple[TracedCall, ...]:
        found = sorted(
            self._said.all(self._session, "call"),
            key=lambda c: (v.in_time(self._said.one(c, "startedAtTime")), c),
        )
        return tuple(map(self._call, found))

    def _call(self, call: str) -> TracedCall:
        steps = [s for s in self._said.all(call, "isPartOf") if s != self._session]
        return TracedCall(
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

    def prompts(self) -> tuple[TracedPrompt, ...]:
        """The prompts of the session and its calls by name, each with its text if it is kept."""
        activities = (self._session, *(call.iri for call in self.calls))
        plans = {plan for activity in activities for plan in self._plans(activity)}
        return tuple(sorted(map(self._prompt, plans), key=lambda p: (p.name, p.hash)))

    def _prompt(self, plan: str) -> TracedPrompt:
        key = text_value(self._store, plan, v.tg("contentHash"))
        text, state = read_kept(self._store, self._texts, key)
        return TracedPrompt(plan, self._name(plan), key, text, state)

    def _name(self, plan: str) -> str:
        return text_value(self._store, plan, v.RDFS_LABEL) or plan

    def _plans(self, activity: str) -> Iterable[str]:
        for association in self._said.all(activity, "qualifiedAssociation"):
            yield from self._said.all(association, "hadPlan")

    def _agents(self, activity: str) -> list[str]:
        agents = sorted(self._said.all(activity, "wasAssociatedWith"))
        return [text_value(self._store, a, v.RDFS_LABEL) or a for a in agents]


def read_kept(store: Store, texts: ReadText, key: str) -> tuple[str, State]:
    """The text of a hash, empty where it was erased or is not kept, and which of these it is."""
    try:
        return texts(key), "kept"
    except (StoreError, KeyError):
        removed = store.match(None, v.tg("removedText"), RdfLiteral(key), None)
        return "", "missing" if next(iter(removed), None) is None else "erased"


def read_request(store: Store, texts: ReadText, call: TracedCall) -> tuple[str, State]:
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
