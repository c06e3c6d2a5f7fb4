"""What a session recorded so that it can be asked again: its parameters, agents, prompts, calls."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.errors import StoreError, UsageError
from tgraph.explain.said import Said, local_name
from tgraph.index.sources import text_value
from tgraph.librarian import Librarian
from tgraph.model import Agent, Prompt, Usage
from tgraph.models.base import Call
from tgraph.models.replay import RecordedCalls, recorded_call
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """A session as it was asked: ``chat`` and ``embedder`` are who was called, None for nobody;
    ``prompts`` the texts of the prompts used, by name."""

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
    prompts: Mapping[str, str]

    @property
    def said(self) -> Said:
        return Said(self.quads)


def read_recorded(store: Store, librarian: Librarian, bundle: str, session: str) -> RecordedSession:
    """The session of a bundle.

    ``UsageError`` where it has no end to compare with, or its calls have been erased.
    """
    quads = frozenset(store.match(None, None, None, NamedNode(bundle)))
    said = Said(quads)
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
        prompts={call.prompt.name: call.prompt.text for call in calls if call.prompt},
    )


def _call(store: Store, librarian: Librarian, said: Said, iri: str) -> Call:
    try:
        content = json.loads(librarian.get_text(said.one(iri, "contentHash")))
        prompt = _prompt(store, librarian, content["prompt"]) if content["prompt"] else None
    except StoreError as error:
        raise UsageError(
            f"The session can't be replayed: a call of it can't be read. {error.message}",
            "What has been erased stays erased; ask the question again.",
        ) from error
    cached = said.one(iri, "cached") == "true"
    usage = Usage(said.number(iri, "inToken"), said.number(iri, "outToken"), int(not cached))
    started = datetime.fromisoformat(said.one(iri, "startedAtTime"))
    agent = _agent(store, content["agent"])
    call = recorded_call(content, agent, started, usage, cached=cached)
    return replace(call, prompt=prompt, repaired=said.one(iri, "repaired") == "true")


def _prompt(store: Store, librarian: Librarian, iri: str) -> Prompt:
    sha256 = text_value(store, iri, v.tg("contentHash"))
    return Prompt(text_value(store, iri, v.RDFS_LABEL), librarian.get_text(sha256), sha256)


def _chat(store: Store, said: Said, calls: Iterable[Call]) -> Agent | None:
    """The language model, which also may have been there without being asked anything."""
    for call in calls:
        if call.kind == "chat":
            return call.agent
    for subject in sorted(said):
        kinds = {local_name(kind) for kind in said.nodes(subject, "type")}
        if "Synthesising" in kinds or "EdgeSelecting" in kinds:
            agent = _agent(store, said.one(subject, "wasAssociatedWith"))
            if agent.kind == "model":
                return agent
    return None


_KINDS = {"Software": "software", "EmbeddedMethod": "method", "LanguageModel": "model"}


def _agent(store: Store, iri: str) -> Agent:
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
