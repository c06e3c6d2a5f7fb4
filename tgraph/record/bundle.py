"""A bundle while it is written: what sessions and later statements about them have in common.

Frames go into a journal; whoever folds it seals the bundle and gives it its place in the chain
(``tgraph.record.ledger``). A bundle is about one activity, its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.model import Agent, Prompt
from tgraph.models.base import Call
from tgraph.record.activities import (
    SOFTWARE,
    Activity,
    associations,
    state_dropped,
    state_entity,
    state_parameters,
)
from tgraph.record.observer import Ending
from tgraph.record.recorder import Recorder
from tgraph.store.journal import Journal
from tgraph.store.statements import Pair, Statements, Value, iri, nquads, trig

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class BundleKind:
    """A sort of bundle: its name in the catalogue, the class of its subject, how that is named, and
    the catalogue's property for it."""

    name: str
    subject_class: NamedNode
    subject_iri: Callable[[str], str]
    subject_property: NamedNode

    def journal(self, uuid: str) -> str:
        """The name of the journal, which tells the kind even where the first frame is lost."""
        return f"{uuid}.journal" if self is SESSION else f"{uuid}.{self.name}.journal"


SESSION = BundleKind("session", v.tg("Session"), v.session_iri, v.tg("session"))
EVALUATION = BundleKind("evaluation", v.tg("Evaluation"), v.evaluation_iri, v.tg("evaluation"))
VERIFICATION = BundleKind(
    "verification", v.tg("Verification"), v.verification_iri, v.tg("verification")
)
INFLUENCE = BundleKind(
    "influence", v.tg("InfluenceAnalysis"), v.influence_analysis_iri, v.tg("influenceAnalysis")
)
INVALIDATION = BundleKind(
    "invalidation", v.tg("Invalidation"), v.invalidation_iri, v.tg("invalidation")
)
ERASURE = BundleKind("erasure", v.tg("Erasure"), v.erasure_iri, v.tg("erasure"))
KINDS: Mapping[str, BundleKind] = {
    kind.name: kind for kind in (SESSION, EVALUATION, VERIFICATION, INFLUENCE, INVALIDATION)
}


def kind_of_journal(path: Path) -> tuple[BundleKind, str]:
    """The kind and the UUID of the bundle that a journal is of. ``KeyError`` for no such kind."""
    uuid, _, name = path.stem.partition(".")
    return KINDS[name or SESSION.name], uuid


def forward(clock: Clock) -> Clock:
    """The clock, standing still where it is set back until it is as far again."""
    latest: list[datetime] = []

    def read() -> datetime:
        latest[:] = [max([clock(), *latest])]
        return latest[0]

    return read


class BundleRecord(Recorder):
    """One bundle's statements. All of it goes through ``_write``, so nothing is told unwritten."""

    kind: ClassVar[BundleKind]

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(uuid, self.kind.subject_iri(uuid))
        self._clock = forward(clock)
        self._journal = Journal(journals / self.kind.journal(uuid))
        self._bundle = NamedNode(v.bundle_iri(uuid))
        self.out = Statements(self._bundle)
        """What is stated beside the patterns below; it is written with the next of them."""
        self._serialised = ""
        self._shared: list[Quad] = []
        self._texts: dict[str, str] = {}
        self._associated: set[tuple[str, ...]] = set()
        self._last_step: str | None = None
        self._step_names: dict[str, str] = {}
        self._finished = False

    def finish(self, status: str, error: str = "") -> None:
        """The activity has ended, how, and at what price. It ends once: what comes later, as a
        reader who leaves before the last message, changes nothing."""
        if self._finished:
            return
        self._finished = True
        ended = self._clock()
        said: tuple[Pair, ...] = (
            (v.tg("status"), status),
            (v.tg("inToken"), self.usage.input_tokens),
            (v.tg("outToken"), self.usage.output_tokens),
            (v.tg("reasoningToken"), self.usage.reasoning_tokens or None),
            (v.tg("callCount"), self.usage.calls),
        )
        self.out.add(
            self.subject,
            (v.prov("endedAtTime"), ended),
            (v.tg("error"), error or None),
            *said,
        )
        self._write(type="end")
        self.observer.ended(self.subject, Ending(ended, status, error), said)

    def part(self, kind: str, *parts: str | int) -> str:
        """The IRI of a part of what the bundle is about."""
        return v.session_part_iri(kind, self.uuid, *parts)

    def entity(
        self,
        subject: str,
        kind: str,
        *pairs: Pair,
        label: str | None = None,
        by: str = "",
        origins: Iterable[str] = (),
        collection: bool = False,
        metrics: Mapping[str, float] | None = None,
        dropped: Mapping[str, int] | None = None,
    ) -> str:
        """``state_entity``, each measure of it as an entity of its own, and what was left out on
        the way to it; its IRI."""
        state_entity(
            self.out,
            subject,
            kind,
            *pairs,
            label=label,
            by=by,
            origins=origins,
            collection=collection,
        )
        for name, value in sorted((metrics or {}).items()):
            key = f"{subject}:{name}"
            self.out.add(subject, (v.tg("metric"), iri(key)))
            of_kind = (v.RDF_TYPE, v.tg("Metric"))
            self.out.add(key, of_kind, (v.RDFS_LABEL, name), (v.tg("value"), float(value)))
        self.dropped(subject, dropped or {})
        return subject

    def close(self) -> None:
        """Let go of the journal; what did not ``finish`` will be recorded as aborted."""
        self._journal.close()
        self.observer.left(self.subject)

    def call(self, call: Call, step: str | None = None) -> None:
        """A model or an embedder was called; its reply is kept before anybody uses it.

        It is synced with the stage that it leads to, which is the first that anybody is told of.
        Calls may come from several threads; ``step`` is theirs where several go on at once, else
        the last that was begun.
        """
        with self._lock:
            call = self._numbered(call)
            activity = self._call_activity(call)
            subject = self._state_call(self.out, activity, call)
            step = step or self._last_step
            self._count(call, self._step_names.get(step or "", ""))
            if step:
                self.out.add(subject, (v.dcterms("isPartOf"), iri(step)))
            prompts = [call.prompt] if call.prompt else []
            self._shared += self._new([call.agent], prompts)
            if call.kind == "chat":
                self._associate(self.subject, call.agent, prompts)
            self._write(sync=False)
        self.observer.called(activity, call, step or "")

    def dropped(self, subject: str, counts: Mapping[str, int]) -> None:
        """What was left out on the way to the subject, by reason."""
        state_dropped(self.out, subject, {why: count for why, count in counts.items() if count})

    def _activity(self, activity: Activity, *pairs: Pair) -> None:
        """State an activity of the bundle."""
        activity.describe(self.out, *pairs)
        for agent in activity.agents:
            self._associate(activity.iri, agent, activity.prompts)

    def parameters(self, parameters: Mapping[str, Value]) -> None:
        """By which parameters it is done."""
        state_parameters(self.out, self.subject, parameters, self.uuid)

    def _begin(
        self,
        label: str,
        explain_collection: str,
        *pairs: Pair,
        agents: Sequence[Agent] = (SOFTWARE,),
        used: Sequence[str] = (),
        parameters: Mapping[str, Value] | None = None,
    ) -> None:
        """The activity that the bundle is about has begun. The first frame says what it is, and
        where the bundle will be sealed."""
        began = self._clock()
        kind = self.kind.subject_class.value.removeprefix(v.TG)
        activity = Activity(self.subject, (kind,), label, began, agents=agents, used=used)
        self._activity(activity, *pairs)
        self.parameters(parameters or {})
        self._write(
            type=self.kind.name,
            uuid=self.uuid,
            subject=self.subject,
            bundle=self._bundle.value,
            catalogue=v.collection_iri(explain_collection),
            started=began.isoformat(),
        )
        self.observer.began(activity, pairs)

    def _associate(self, activity: str, agent: Agent, prompts: Sequence[Prompt] = ()) -> None:
        said = (activity, agent.iri, *(prompt.iri for prompt in prompts))
        if said not in self._associated:
            self._associated.add(said)
            associations(self.out, activity, agent, prompts)
        self._shared += self._new([agent], prompts)

    def _add_trig(self, text: str) -> None:
        """Put statements about the bundle that are TriG already into the next frame."""
        self._serialised += text

    def keep(self, content: str) -> str:
        """Put the text into the next frame, for the librarian; the hash it is kept under."""
        key = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        self._texts[key] = content
        return key

    def _write(self, *, sync: bool = True, **head: str) -> None:
        """One frame with all that was stated since the last; ``head`` says what kind it is."""
        self._journal.append(
            {
                "type": "stage",
                **head,
                "time": self._clock().isoformat(),
                "quads": trig(self.out.take()) + self._serialised,
                "shared": nquads(self._shared),
                "texts": self._texts,
            },
            sync=sync,
        )
        self._serialised, self._shared, self._texts = "", [], {}
