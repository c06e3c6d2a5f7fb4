"""Bundles during writing: common features of sessions and later statements about sessions.

Frames go into a journal; folding seals the bundle and adds it to the chain
(``tgraph.record.ledger``). A bundle describes one activity, its subject."""

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
    state_associations,
    state_dropped,
    state_entity,
    state_parameters,
)
from tgraph.record.observer import Ending
from tgraph.record.recorder import Recorder
from tgraph.store.journal import Journal
from tgraph.store.statements import Pair, Statements, Value, format_nquads, iri_node, trig

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class BundleKind:
    """A bundle type: catalogue name, subject class, subject IRI scheme and catalogue property."""

    name: str
    subject_class: NamedNode
    subject_iri: Callable[[str], str]
    subject_property: NamedNode

    def journal(self, uuid: str) -> str:
        """Return the journal's file name, telling the bundle kind even if the first frame is
        lost."""
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
    """Return the bundle kind and UUID encoded in a journal's file name.

    Raise ``KeyError`` for an unknown kind."""
    uuid, _, name = path.stem.partition(".")
    return KINDS[name or SESSION.name], uuid


def make_monotonic(clock: Clock) -> Clock:
    """Return a monotonic clock: while the given clock lags after being set back, time stands
    still."""
    latest: list[datetime] = []

    def read() -> datetime:
        latest[:] = [max([clock(), *latest])]
        return latest[0]

    return read


class BundleRecord(Recorder):
    """A bundle's statements.

    All statements go through ``_write``, so nothing is reported unwritten."""

    kind: ClassVar[BundleKind]

    def __init__(self, journals: Path, uuid: str, clock: Clock) -> None:
        super().__init__(uuid, self.kind.subject_iri(uuid))
        self._clock = make_monotonic(clock)
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
        """Record the activity's end: status, error and token usage.

        The activity ends once. Later calls change nothing, for example when a reader leaves
        before the last message."""
        if self._finished:
            return
        self._finished = True
        ended = self._clock()
        pairs: tuple[Pair, ...] = (
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
            *pairs,
        )
        self._write(type="end")
        self.observer.handle_end(self.subject, Ending(ended, status, error), pairs)

    def part(self, kind: str, *parts: str | int) -> str:
        """Return a subject part's IRI, built from kind and further parts."""
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
        """State an entity like ``state_entity``, plus each metric as a separate entity, plus
        omission counts. Return the entity IRI."""
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
            self.out.add(subject, (v.tg("metric"), iri_node(key)))
            of_kind = (v.RDF_TYPE, v.tg("Metric"))
            self.out.add(key, of_kind, (v.RDFS_LABEL, name), (v.tg("value"), float(value)))
        self.record_dropped(subject, dropped or {})
        return subject

    def close(self) -> None:
        """Close the journal; an activity without ``finish`` will be recorded as aborted."""
        self._journal.close()
        self.observer.handle_close(self.subject)

    def call(self, call: Call, step: str | None = None) -> None:
        """Record a model call or embedder call; store the reply before anybody uses the reply.

        The call is synced with the resulting stage, the first stage reported to anybody. Calls
        may come from several threads; ``step`` names the caller's step if several steps run at
        once, otherwise the latest started step is used."""
        with self._lock:
            call = self._number_call(call)
            activity = self._call_activity(call)
            subject = self._state_call(self.out, activity, call)
            step = step or self._last_step
            self._count(call, self._step_names.get(step or "", ""))
            if step:
                self.out.add(subject, (v.dcterms("isPartOf"), iri_node(step)))
            prompts = [call.prompt] if call.prompt else []
            self._shared += self._new([call.agent], prompts)
            if call.kind == "chat":
                self._associate(self.subject, call.agent, prompts)
            self._write(sync=False)
        self.observer.handle_call(activity, call, step or "")

    def record_dropped(self, subject: str, counts: Mapping[str, int]) -> None:
        """Record nonzero omission counts for the subject, by reason."""
        state_dropped(self.out, subject, {why: count for why, count in counts.items() if count})

    def _activity(self, activity: Activity, *pairs: Pair) -> None:
        """State an activity of the bundle, with agents and prompts."""
        activity.describe(self.out, *pairs)
        for agent in activity.agents:
            self._associate(activity.iri, agent, activity.prompts)

    def parameters(self, parameters: Mapping[str, Value]) -> None:
        """State the parameters of the bundle's subject."""
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
        """Record the start of the bundle's subject activity.

        The first frame names the bundle kind and the catalogue sealing the bundle."""
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
        self.observer.handle_start(activity, pairs)

    def _associate(self, activity: str, agent: Agent, prompts: Sequence[Prompt] = ()) -> None:
        association = (activity, agent.iri, *(prompt.iri for prompt in prompts))
        if association not in self._associated:
            self._associated.add(association)
            state_associations(self.out, activity, agent, prompts)
        self._shared += self._new([agent], prompts)

    def _add_trig(self, text: str) -> None:
        """Add TriG statements about the bundle to the next frame."""
        self._serialised += text

    def keep_content(self, content: str) -> str:
        """Add a text to the next frame, for the librarian; return the text's hash."""
        key = sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        self._texts[key] = content
        return key

    def _write(self, *, sync: bool = True, **head: str) -> None:
        """Write a frame with all statements since the last frame; ``head`` gives the frame
        type."""
        self._journal.append(
            {
                "type": "stage",
                **head,
                "time": self._clock().isoformat(),
                "quads": trig(self.out.take_quads()) + self._serialised,
                "shared": format_nquads(self._shared),
                "texts": self._texts,
            },
            sync=sync,
        )
        self._serialised, self._shared, self._texts = "", [], {}
