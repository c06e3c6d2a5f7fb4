"""Agents and plans: who did something, by which prompt. They live in the source graph."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.store.statements import Statements, Writer, iri
from tgraph.version import __version__

SOFTWARE = Agent("software", "tgraph", __version__)

_CLASSES = {
    "software": (v.prov("SoftwareAgent"), v.tg("Software")),
    "method": (v.prov("SoftwareAgent"), v.tg("EmbeddedMethod")),
    "model": (v.prov("SoftwareAgent"), v.tg("LanguageModel")),
    "person": (v.prov("Person"),),
}


def agent_quads(agents: Iterable[Agent]) -> list[Quad]:
    """Each agent as a ``prov:SoftwareAgent`` by the class of its kind, or a ``prov:Person``."""
    out = Statements(v.SOURCE_GRAPH)
    for agent in agents:
        out.add(
            agent.iri,
            (v.RDF_TYPE, [v.prov("Agent"), *_CLASSES[agent.kind]]),
            (v.RDFS_LABEL, agent.name),
            (v.tg("componentVersion"), agent.version or None),
            (v.tg("provider"), agent.provider or None),
        )
    return out.quads


def prompt_quads(prompts: Iterable[Prompt]) -> list[Quad]:
    """Each prompt as a ``prov:Plan``; its text is kept by the librarian under its hash."""
    out = Statements(v.SOURCE_GRAPH)
    for prompt in prompts:
        out.add(
            prompt.iri,
            (v.RDF_TYPE, [v.prov("Entity"), v.prov("Plan"), v.tg("Prompt")]),
            (v.RDFS_LABEL, prompt.name),
            (v.tg("contentHash"), prompt.sha256),
        )
    return out.quads


def associations(out: Writer, activity: str, agent: Agent, prompts: Iterable[Prompt] = ()) -> None:
    """The activity was associated with the agent, by plan where there are prompts.

    A qualified association has an IRI of its own, hung on the activity's.
    """
    out.add(activity, (v.prov("wasAssociatedWith"), iri(agent.iri)))
    for prompt in prompts:
        key = f"{v.URN}prov:association:{v.digest(activity, agent.iri, prompt.iri)}"
        out.add(activity, (v.prov("qualifiedAssociation"), iri(key)))
        out.add(
            key,
            (v.RDF_TYPE, v.prov("Association")),
            (v.prov("agent"), iri(agent.iri)),
            (v.prov("hadPlan"), iri(prompt.iri)),
        )
