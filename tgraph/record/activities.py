"""PROV patterns shared by all record parts: activities with agents, plans, generated entities
and invalidated entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.store.base import Store
from tgraph.store.statements import Pair, Statements, Value, iri_node
from tgraph.version import __version__

SOFTWARE = Agent("software", "tgraph", __version__)

_CLASSES = {
    "software": (v.prov("SoftwareAgent"), v.tg("Software")),
    "method": (v.prov("SoftwareAgent"), v.tg("EmbeddedMethod")),
    "model": (v.prov("SoftwareAgent"), v.tg("LanguageModel")),
    "person": (v.prov("Person"),),
}


def responsible_agents(person: str | None) -> tuple[Agent, ...]:
    """Return the agents responsible for a requested activity: tgraph, plus the person named in
    the settings, if any."""
    return (SOFTWARE, *([Agent("person", person)] if person else []))


def agent_quads(agents: Iterable[Agent]) -> list[Quad]:
    """Return quads describing each agent as ``prov:SoftwareAgent`` with its kind's class, or as
    ``prov:Person``."""
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
    """Return quads describing each prompt as ``prov:Plan``.

    The librarian keeps the prompt's text under its hash."""
    out = Statements(v.SOURCE_GRAPH)
    for prompt in prompts:
        out.add(
            prompt.iri,
            (v.RDF_TYPE, [v.prov("Entity"), v.prov("Plan"), v.tg("Prompt")]),
            (v.RDFS_LABEL, prompt.name),
            (v.tg("contentHash"), prompt.sha256),
        )
    return out.quads


def state_associations(
    out: Statements, activity: str, agent: Agent, prompts: Iterable[Prompt] = ()
) -> None:
    """State the activity's association with an agent, qualified by plans if prompts are given.

    Each qualified association has its own IRI, derived from the activity's IRI."""
    out.add(activity, (v.prov("wasAssociatedWith"), iri_node(agent.iri)))
    for prompt in prompts:
        key = f"{v.URN}prov:association:{v.digest_parts(activity, agent.iri, prompt.iri)}"
        out.add(activity, (v.prov("qualifiedAssociation"), iri_node(key)))
        out.add(
            key,
            (v.RDF_TYPE, v.prov("Association")),
            (v.prov("agent"), iri_node(agent.iri)),
            (v.prov("hadPlan"), iri_node(prompt.iri)),
        )


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity: kinds, label, times, agents, prompts, enclosing activity, inputs, errors and
    omissions.

    ``kinds`` contains names from tgraph's vocabulary. If a clock was set back meanwhile, the
    end time equals the start time."""

    iri: str
    kinds: Sequence[str]
    label: str
    started: datetime
    ended: datetime | None = None
    agents: Sequence[Agent] = ()
    prompts: Sequence[Prompt] = ()
    part_of: str = ""
    used: Sequence[str] = ()
    informed_by: str = ""
    error: str | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    def state(self, out: Statements, *pairs: Pair) -> str:
        """State the complete activity with additional property pairs; return the activity IRI."""
        self.describe(out, *pairs)
        for agent in self.agents:
            state_associations(out, self.iri, agent, self.prompts)
        state_dropped(out, self.iri, self.dropped)
        return self.iri

    def describe(self, out: Statements, *pairs: Pair) -> None:
        """State the activity itself, without agents and omissions."""
        out.add(
            self.iri,
            (v.RDF_TYPE, [v.prov("Activity"), *map(v.tg, self.kinds)]),
            (v.RDFS_LABEL, self.label),
            (v.dcterms("isPartOf"), iri_node(self.part_of) if self.part_of else None),
            (v.prov("startedAtTime"), self.started),
            (v.prov("endedAtTime"), self.ended and max(self.started, self.ended)),
            (v.prov("used"), map(iri_node, self.used)),
            (v.prov("wasInformedBy"), iri_node(self.informed_by) if self.informed_by else None),
            (v.tg("error"), self.error),
            *pairs,
        )


@dataclass(frozen=True, slots=True)
class Authorship:
    """Authorship of a resource made in a run: agent, prompts, start time and end time.

    ``error`` explains why the agent originally asked did not make the resource."""

    run: str
    agent: Agent
    prompts: Sequence[Prompt]
    started: datetime
    ended: datetime
    error: str = ""

    @property
    def uuid(self) -> str:
        """The run's UUID, used for naming resources attached to the run."""
        return uuid_of(self.run)

    def activity(
        self,
        name: str,
        kinds: Sequence[str],
        label: str,
        made: str,
        *,
        used: Sequence[str] = (),
        dropped: Mapping[str, int] | None = None,
    ) -> Activity:
        """Return the run's sub-activity making the resource ``made``; the activity IRI starts
        with ``name``."""
        return Activity(
            f"{v.URN}{name}:{self.uuid}:{v.digest_parts(made)}",
            kinds,
            label,
            self.started,
            self.ended,
            (self.agent,),
            self.prompts,
            self.run,
            used,
            error=self.error or None,
            dropped=dropped or {},
        )


def uuid_of(run: str) -> str:
    return run.rpartition(":")[2]


def state_entity(
    out: Statements,
    subject: str,
    kind: str,
    *pairs: Pair,
    label: str | None = None,
    by: str = "",
    origins: Iterable[str] = (),
    collection: bool = False,
) -> None:
    """State an entity generated ``by`` an activity and derived from its origins.

    ``kind`` is a name from tgraph's vocabulary, or ""."""
    kinds = [v.prov("Collection")] if collection else []
    out.add(
        subject,
        (v.RDF_TYPE, [v.prov("Entity"), *kinds, *([v.tg(kind)] if kind else [])]),
        (v.RDFS_LABEL, label),
        (v.prov("wasGeneratedBy"), iri_node(by) if by else None),
        (v.prov("wasDerivedFrom"), map(iri_node, origins)),
        *pairs,
    )


def state_invalidation(out: Statements, subject: str, activity: str, when: datetime) -> None:
    """The activity ended the entity."""
    ended_by = (v.prov("wasInvalidatedBy"), iri_node(activity))
    out.add(subject, (v.prov("invalidatedAtTime"), when), ended_by)


def state_dropped(out: Statements, subject: str, counts: Mapping[str, int]) -> None:
    """State omission counts for the subject, by reason."""
    for reason, count in sorted(counts.items()):
        key = f"{v.URN}prov:dropped:{v.digest_parts(subject, reason)}"
        out.add(subject, (v.tg("dropped"), iri_node(key)))
        out.add(
            key, (v.RDF_TYPE, v.tg("Dropped")), (v.tg("reason"), reason), (v.tg("count"), count)
        )


def state_parameters(
    out: Statements, subject: str, parameters: Mapping[str, Value], uuid: str, *parts: str
) -> None:
    """State the subject's parameters; parameter IRIs derive from the UUID and the parts."""
    for name, value in sorted(parameters.items()):
        key = v.session_part_iri("parameter", uuid, *parts, name)
        out.add(subject, (v.tg("parameter"), iri_node(key)))
        out.add(key, (v.RDF_TYPE, v.tg("Parameter")), (v.RDFS_LABEL, name), (v.tg("value"), value))


def is_recorded(store: Store, entity: str) -> bool:
    """Return whether the record states the entity's generation, by the current run or an
    earlier run."""
    quads = store.match(NamedNode(entity), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH)
    return next(quads, None) is not None


def find_standing(store: Store, kind: str) -> Iterator[NamedNode]:
    """Yield entities of the kind without an invalidation."""
    for quad in store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH):
        node = quad.subject
        assert isinstance(node, NamedNode)
        if next(store.match(node, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH), None) is None:
            yield node


def names_of(store: Store, subject: NamedNode, predicate: str) -> list[str]:
    """Return object IRIs of the subject's tgraph property in the source graph."""
    quads = store.match(subject, v.tg(predicate), None, v.SOURCE_GRAPH)
    return [quad.object.value for quad in quads if isinstance(quad.object, NamedNode)]
