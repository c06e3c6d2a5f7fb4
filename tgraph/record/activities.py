"""The patterns of PROV that every part of the record is made of: activities, with who carried them
out by which plans, what they made, and what they ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.store.base import Store
from tgraph.store.statements import Pair, Statements, Value, iri
from tgraph.version import __version__

SOFTWARE = Agent("software", "tgraph", __version__)

_CLASSES = {
    "software": (v.prov("SoftwareAgent"), v.tg("Software")),
    "method": (v.prov("SoftwareAgent"), v.tg("EmbeddedMethod")),
    "model": (v.prov("SoftwareAgent"), v.tg("LanguageModel")),
    "person": (v.prov("Person"),),
}


def responsible(person: str | None) -> tuple[Agent, ...]:
    """Who does what somebody asks for: tgraph, and the person where the settings name one."""
    return (SOFTWARE, *([Agent("person", person)] if person else []))


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


def associations(
    out: Statements, activity: str, agent: Agent, prompts: Iterable[Prompt] = ()
) -> None:
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


@dataclass(frozen=True, slots=True)
class Activity:
    """Something that was done: of which ``kinds`` (names of tgraph's vocabulary), when, by whom and
    by which prompts, as a part of what, with what, and what went wrong or was left out. Where a
    clock was set back meanwhile it ended when it began."""

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
        """All of it, with what else is said of the activity; its IRI."""
        self.describe(out, *pairs)
        for agent in self.agents:
            associations(out, self.iri, agent, self.prompts)
        state_dropped(out, self.iri, self.dropped)
        return self.iri

    def describe(self, out: Statements, *pairs: Pair) -> None:
        """The activity alone, without its agents and what was left out."""
        out.add(
            self.iri,
            (v.RDF_TYPE, [v.prov("Activity"), *map(v.tg, self.kinds)]),
            (v.RDFS_LABEL, self.label),
            (v.dcterms("isPartOf"), iri(self.part_of) if self.part_of else None),
            (v.prov("startedAtTime"), self.started),
            (v.prov("endedAtTime"), self.ended and max(self.started, self.ended)),
            (v.prov("used"), map(iri, self.used)),
            (v.prov("wasInformedBy"), iri(self.informed_by) if self.informed_by else None),
            (v.tg("error"), self.error),
            *pairs,
        )


@dataclass(frozen=True, slots=True)
class Authorship:
    """Who made something in a run, by which prompts, from when to when; ``error`` tells why it was
    not who had been asked."""

    run: str
    agent: Agent
    prompts: Sequence[Prompt]
    started: datetime
    ended: datetime
    error: str = ""

    @property
    def uuid(self) -> str:
        """What hangs on the run is named by this."""
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
        """The part of the run that made the resource ``made``; its IRI begins with the name."""
        return Activity(
            f"{v.URN}{name}:{self.uuid}:{v.digest(made)}",
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
    """An entity of that kind (a name of tgraph's vocabulary, or ""), generated ``by`` an activity
    and derived from its origins."""
    kinds = [v.prov("Collection")] if collection else []
    out.add(
        subject,
        (v.RDF_TYPE, [v.prov("Entity"), *kinds, *([v.tg(kind)] if kind else [])]),
        (v.RDFS_LABEL, label),
        (v.prov("wasGeneratedBy"), iri(by) if by else None),
        (v.prov("wasDerivedFrom"), map(iri, origins)),
        *pairs,
    )


def state_invalidation(out: Statements, subject: str, activity: str, when: datetime) -> None:
    """The activity ended the entity."""
    ended_by = (v.prov("wasInvalidatedBy"), iri(activity))
    out.add(subject, (v.prov("invalidatedAtTime"), when), ended_by)


def state_dropped(out: Statements, subject: str, counts: Mapping[str, int]) -> None:
    """What was left out on the way to the subject, by reason."""
    for reason, count in sorted(counts.items()):
        key = f"{v.URN}prov:dropped:{v.digest(subject, reason)}"
        out.add(subject, (v.tg("dropped"), iri(key)))
        out.add(
            key, (v.RDF_TYPE, v.tg("Dropped")), (v.tg("reason"), reason), (v.tg("count"), count)
        )


def state_parameters(
    out: Statements, subject: str, parameters: Mapping[str, Value], uuid: str, *parts: str
) -> None:
    """By which parameters it was done; their IRIs hang on the UUID and the parts."""
    for name, value in sorted(parameters.items()):
        key = v.session_part_iri("parameter", uuid, *parts, name)
        out.add(subject, (v.tg("parameter"), iri(key)))
        out.add(key, (v.RDF_TYPE, v.tg("Parameter")), (v.RDFS_LABEL, name), (v.tg("value"), value))


def is_recorded(store: Store, entity: str) -> bool:
    """Whether the making of the entity is on record, from this run or an earlier one."""
    quads = store.match(NamedNode(entity), v.prov("wasGeneratedBy"), None, v.SOURCE_GRAPH)
    return next(quads, None) is not None


def standing(store: Store, kind: str) -> Iterator[NamedNode]:
    """The entities of the kind that nothing has ended."""
    for quad in store.match(None, v.RDF_TYPE, v.tg(kind), v.SOURCE_GRAPH):
        node = quad.subject
        assert isinstance(node, NamedNode)
        if next(store.match(node, v.prov("invalidatedAtTime"), None, v.SOURCE_GRAPH), None) is None:
            yield node


def names_of(store: Store, subject: NamedNode, predicate: str) -> list[str]:
    """The IRIs that the source graph has for the subject by tgraph's property."""
    quads = store.match(subject, v.tg(predicate), None, v.SOURCE_GRAPH)
    return [quad.object.value for quad in quads if isinstance(quad.object, NamedNode)]
