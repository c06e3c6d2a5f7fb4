"""The record of a question, written during answering (design, section 3.3).

Each method states a stage, appends the stage to the session's journal and returns only after
the journal is on disk; anything sent to the user afterwards can be looked up by IRI, even after
a crash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.model import (
    Agent,
    AnswerJudgement,
    Candidate,
    Citation,
    Edge,
    EntityMatch,
    Judgement,
    Note,
    Rejected,
    Retrieval,
    Selected,
    Selection,
    Sentence,
)
from tgraph.record.activities import SOFTWARE, Activity, responsible_agents
from tgraph.record.bundle import SESSION, BundleRecord, Clock
from tgraph.record.observer import Ending
from tgraph.retrieve.orders import orders_to_json
from tgraph.retrieve.reasons import FIRST_WORDING, THIRD_WORDING, WORDING, render_reason
from tgraph.store.statements import Pair, Statements, Value, iri_node, trig

if TYPE_CHECKING:
    from tgraph.compute.computation import Computation

_KEPT = 8
_CLASSES = (v.prov("Entity"), v.tg("Candidate"))


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """A cache key for candidates, equal only to itself: comparing candidates takes too long."""

    candidates: Sequence[Candidate]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.candidates is other.candidates

    def __hash__(self) -> int:
        return id(self.candidates)


_SESSION = str(uuid4())
"""The identifier that stands for the identifier of any session in the cached statements."""


def candidate_statements(candidates: Sequence[Candidate], uuid: str) -> str:
    """Return as TriG what the session with the identifier states of its candidates.

    The statements about the last candidate lists are cached, since questions of a kind often have
    the same candidates, such as all reports of a level.
    """
    return _candidate_statements(_Same(candidates)).replace(_SESSION, uuid)


@lru_cache(maxsize=_KEPT)
def _candidate_statements(same: _Same) -> str:
    out, candidates = Statements(NamedNode(v.bundle_iri(_SESSION))), same.candidates
    iris = [v.session_part_iri("candidate", _SESSION, ranked.rank) for ranked in candidates]
    out.add(v.retrieval_iri(_SESSION), (v.tg("candidate"), map(iri_node, iris)))
    for subject, candidate in zip(iris, candidates, strict=True):
        is_edge = isinstance(candidate.item, Edge)
        out.add(
            subject,
            (v.RDF_TYPE, _CLASSES),
            (v.tg("edge") if is_edge else v.tg("item"), iri_node(candidate.item.iri)),
            (v.tg("hop"), candidate.hop if is_edge else None),
            (v.tg("rank"), candidate.rank),
            (v.tg("score"), candidate.score),
            (v.tg("tokenCount"), candidate.tokens),
            (v.tg("bridge"), iri_node(candidate.bridge) if candidate.bridge else None),
            (v.tg("authority"), candidate.authority if candidate.authority != 1 else None),
        )
    return trig(out.quads)


@dataclass(frozen=True, slots=True)
class SessionDescription:
    """How a session begins: the question, the mode and the parameters by which it is answered, and
    the generation of the collection's knowledge that answers.

    ``person`` is who asks, where the settings name one. ``as_of`` names the point in time that was
    asked for, empty for the newest knowledge."""

    question: str
    mode: str
    parameters: Mapping[str, Value]
    generation: int
    collection: str
    explain_collection: str
    person: str | None = None
    as_of: str = ""


class SessionRecord(BundleRecord):
    """A session's provenance record.

    All statements go through ``_write``, so nothing is reported unwritten."""

    kind = SESSION

    def __init__(self, journals: Path, uuid: str, clock: Clock, wording: int = WORDING) -> None:
        """Create a record with reasons in a wording; only replays need an earlier wording."""
        super().__init__(journals, uuid, clock)
        self.session = self.subject
        self.wording = wording
        self.retrieval_iri = v.retrieval_iri(uuid)
        self.selection_iri = v.selection_iri(uuid)
        self._steps = 0

    # --- the session ---

    def start(self, description: SessionDescription) -> None:
        """State that the session has begun."""
        self._begin(
            "GraphRAG query session",
            description.explain_collection,
            (v.tg("query"), description.question),
            (v.tg("mode"), description.mode),
            (v.tg("collection"), description.collection),
            (v.tg("generation"), description.generation),
            (v.tg("asOf"), description.as_of or None),
            (v.tg("wording"), None if self.wording == FIRST_WORDING else self.wording),
            agents=responsible_agents(description.person),
            parameters=description.parameters,
        )

    @contextmanager
    def step(
        self,
        kind: str,
        agent: Agent = SOFTWARE,
        used: Sequence[str] = (),
        after: str | None = None,
    ) -> Iterator[str]:
        """Run a session step as an activity, informed by ``after`` or the preceding step.

        The step is part of the session."""
        subject = self.part("step", self._steps)
        self._steps += 1
        activity = Activity(
            subject,
            (kind,),
            _format_kind(kind),
            self._clock(),
            agents=(agent,),
            part_of=self.session,
            used=used,
            informed_by=after or self._last_step or "",
        )
        self._activity(activity)
        self.observer.handle_start(activity)
        self._last_step = subject
        self._step_names[subject] = kind
        try:
            yield subject
        except BaseException as error:
            self._end_step(subject, error)
            raise
        self._end_step(subject)

    def _end_step(self, step: str, error: BaseException | None = None) -> None:
        ended = self._clock()
        self.out.add(step, (v.prov("endedAtTime"), ended))
        self.observer.handle_end(step, Ending.from_error(ended, error))

    # --- what the steps of a question produce ---

    def mode_choice(
        self, step: str, mode: str, reason: str, dropped: Mapping[str, int] | None = None
    ) -> str:
        """Record the mode chosen for the question, with the reason."""
        return self.entity(
            self.part("mode-choice"),
            "ModeChoice",
            (v.tg("mode"), mode),
            (v.tg("reasoning"), render_reason(reason, self.wording)),
            label="Mode chosen",
            by=step,
            dropped=dropped,
        )

    def computed_query(self, step: str, computation: Computation, revises: str = "") -> str:
        """Record the query that a question became, with its algebra and its result, and the
        likeliest queries that were not chosen, with the reason; the chosen one may be missing.

        A query that a person changed is a revision of that of the session ``revises``."""
        from tgraph.compute.algebra import write_algebra  # few sessions compute
        from tgraph.compute.evaluation import write_bindings
        from tgraph.compute.printing import write_columns

        plan, computed = computation.plan, computation.computed
        chosen = plan.chosen
        earlier = revises.removeprefix(v.session_iri(""))
        revised = iri_node(v.session_part_iri("query", earlier)) if earlier else None
        subject = self.entity(
            self.part("query"),
            "ComputedQuery",
            (v.tg("writtenQuery"), plan.text or None),
            (v.tg("sparql"), computed.sparql if computed else None),
            (v.tg("algebra"), write_algebra(computed.query) if computed else None),
            (v.tg("columns"), write_columns(computed.query) if computed else None),
            (v.tg("result"), write_bindings(computed.bindings) if computed else None),
            (v.tg("confidence"), chosen.likelihood if chosen else 0.0),
            (v.tg("reasoning"), "; ".join(chosen.candidate.reasons) if chosen else None),
            (v.tg("revises"), revised),
            label="Query of the question",
            by=step,
        )
        for number, one in enumerate(plan.rejected):
            other = self.entity(
                self.part("query-candidate", number),
                "CandidateQuery",
                (v.tg("index"), number),
                (v.tg("sparql"), one.sparql),
                (v.tg("confidence"), one.likelihood),
                (v.tg("reasoning"), one.reasons),
                (v.tg("rejectionReason"), one.rejection),
            )
            self.out.add(subject, (v.tg("candidateQuery"), iri_node(other)))
        return subject

    def decomposition(self, step: str, steps: Sequence[str], dropped: Mapping[str, int]) -> str:
        """Record the question's steps found by a model; ``#1`` denotes the first step's answer."""
        return self.entity(
            self.part("decomposition"),
            "Decomposition",
            (v.tg("text"), "\n".join(steps) or None),
            label="Steps of the question",
            by=step,
            dropped=dropped,
        )

    def step_answer(
        self,
        step: str,
        number: int,
        question: str,
        answer: str,
        places: Sequence[str],
        before: Sequence[str],
        dropped: Mapping[str, int] | None = None,
    ) -> str:
        """Record a step's question and answer.

        The answer is empty if missing or a whole sentence. It derives from the supporting
        places and from the preceding answers ``before``."""
        return self.entity(
            self.part("step-answer", number),
            "StepAnswer",
            (v.tg("index"), number),
            (v.tg("query"), question),
            (v.tg("text"), answer or None),
            label="Answer of a step",
            by=step,
            origins=[*places, *before],
            dropped=dropped,
        )

    def concepts(
        self,
        step: str,
        concepts: Sequence[str],
        low: Sequence[str] = (),
        high: Sequence[str] = (),
        dropped: Mapping[str, int] | None = None,
    ) -> str:
        """Record the question's concepts; ``low`` and ``high`` contain the keywords of each
        level."""
        return self.entity(
            self.part("concepts"),
            "Concepts",
            (v.tg("concept"), list(concepts)),
            (v.tg("lowLevelKeyword"), list(low)),
            (v.tg("highLevelKeyword"), list(high)),
            label="Concepts of the question",
            by=step,
            dropped=dropped,
        )

    def matches(self, step: str, concepts: Sequence[str], matches: Sequence[EntityMatch]) -> str:
        """Record entity matches, best first; ``concepts`` contains the matched concepts, empty
        for matching the complete question."""
        subject = self.entity(
            self.part("matches"),
            "EntityMatches",
            label="Entities matched",
            by=step,
            origins=concepts,
            collection=True,
        )
        for rank, match in enumerate(matches, 1):
            key = self.part("match", rank)
            self.out.add(subject, (v.prov("hadMember"), iri_node(key)))
            self.entity(
                key,
                "EntityMatch",
                (v.tg("entity"), iri_node(match.entity)),
                (v.tg("concept"), match.concept),
                (v.tg("rank"), rank),
                (v.tg("score"), match.score),
                (v.tg("matchMethod"), match.method),
            )
        return subject

    def retrieval(self, retrieval: Retrieval, derived_from: Sequence[str] = ()) -> str:
        """Record a retrieval: candidates with rank, score and, depending on the mode, hop and
        cost.

        The librarian keeps the complete list if a limit cut candidates, and the ranked orders
        beyond the limits."""
        subject, cut = self.retrieval_iri, retrieval.cut
        self.entity(
            subject,
            "Retrieval",
            (v.tg("edgeCount"), retrieval.total),
            (v.tg("itemCount"), retrieval.items or None),
            (v.tg("contentHash"), self.keep_content("\n".join(cut)) if cut else None),
            label="Retrieved edges"
            if retrieval.total or not retrieval.items
            else "Retrieved items",
            by=self.session,
            origins=derived_from,
            dropped=retrieval.dropped,
        )
        self.entity(
            self.part("orders"),
            "RankedOrders",
            (v.tg("contentHash"), self.keep_content(orders_to_json(retrieval.orders))),
            label="What limits cut off",
            by=self.session,
        )
        self._add_trig(candidate_statements(retrieval.candidates, self.uuid))
        self._write()
        self.observer.handle_retrieval(self._last_step or "", retrieval)
        return subject

    def judgement(self, step: str, judgement: Judgement | None) -> str:
        """Record the reader's judgement whether the documents answer the question."""
        verdict = judgement or Judgement(0.0)
        subject = self.entity(
            self.part("judgement"),
            "Judgement",
            (v.tg("confidence"), verdict.confidence),
            (v.tg("shortAnswer"), verdict.answer or None),
            (v.tg("shortConfidence"), verdict.short_confidence),
            label="Whether the documents answer",
            by=step,
            origins=[self.retrieval_iri, *([verdict.place.iri] if verdict.place else [])],
        )
        self._write()
        return subject

    def selection(self, step: str, selection: Selection) -> str:
        """Record selected candidates with reasoning, and rejected candidates with reasons."""
        subject = self.selection_iri
        dropped = {"unknown edge id": selection.unknown_ids, "malformed row": selection.malformed}
        members = [iri_node(self._selected_iri(s)) for s in selection.selected]
        edges = [
            iri_node(self._selected_iri(s)) for s in selection.selected if s.item.kind == "edge"
        ]
        self.entity(
            subject,
            "Selection",
            (v.tg("selectedEdge"), edges),
            (v.prov("hadMember"), members),
            label="Selected edges" if edges or not members else "Selected items",
            by=step,
            origins=(self.retrieval_iri,),
            collection=True,
            dropped=dropped,
        )
        for selected in selection.selected:
            self._state_selected(selected)
        self._state_rejections(selection.rejected)
        self._write()
        self.observer.handle_selection(step, selection)
        return subject

    def _state_selected(self, selected: Selected) -> None:
        """State a selected item, derived from shown evidence; record items also derive from the
        item itself."""
        item, candidate = selected.item, selected.candidate
        candidate_iri = (
            iri_node(self.part("candidate", candidate.rank)) if item.kind != "point" else None
        )
        is_edge = isinstance(item, Edge)
        origins = dict.fromkeys(
            [*_select_prov_entities([item.iri]), *(e.iri for e in candidate.evidence)]
        )
        self.entity(
            self._selected_iri(selected),
            "EdgeSelection" if is_edge else "ItemSelection",
            (v.tg("edge") if is_edge else v.tg("item"), iri_node(item.iri)),
            (v.tg("candidate"), candidate_iri),
            (v.tg("reasoning"), render_reason(selected.reasoning, self.wording)),
            (v.tg("score"), selected.score),
            (v.tg("witnessRole"), selected.role),
            (v.tg("resultRow"), selected.rows or None),
            origins=origins,
        )

    def _selected_iri(self, selected: Selected) -> str:
        return v.selected_iri(self.uuid, selected.item.kind, selected.index)

    def _state_rejections(self, rejected: Sequence[Rejected]) -> None:
        """State the rejections' reasons; a point drawn from retrieved content is a separate
        resource."""
        reason = v.tg("rejectionReason")
        for rejection in rejected:
            is_point = rejection.candidate.item.kind == "point"
            rank = self.part("candidate", rejection.candidate.rank)
            text = render_reason(rejection.reason, self.wording)
            self.out.add(rejection.candidate.item.iri if is_point else rank, (reason, text))

    def answer_begun(self, step: str) -> str:
        """Record the start of answer writing: the answer's origins and the text's future
        location.

        The entity becomes a ``tg:Answer`` when complete; an answer never completed remains an
        entity without text."""
        subject = v.answer_iri(self.uuid)
        self._state_answer(subject, "", step, [])
        self._write()
        return subject

    def _state_answer(
        self, subject: str, kind: str, step: str, cited: Iterable[str], *pairs: Pair
    ) -> None:
        document = (v.tg("document"), iri_node(v.answer_text_iri(self.uuid)))
        origins = [self.selection_iri, *cited]
        label = "GraphRAG answer"
        self.entity(subject, kind, document, *pairs, label=label, by=step, origins=origins)

    def _verdict_pairs(self, judged: AnswerJudgement) -> tuple[Pair, ...]:
        has_verdict = self.wording >= THIRD_WORDING
        return (
            (v.tg("answerVerdict"), judged.verdict if has_verdict else None),
            (v.tg("confidence"), judged.confidence),
            (v.tg("shortAnswer"), judged.short or None),
            (v.tg("shortConfidence"), judged.short_confidence),
        )

    def answer(
        self,
        step: str,
        text: str,
        sentences: Sequence[Sentence],
        dropped: Mapping[str, int] | None = None,
        notes: Sequence[Note] = (),
        judged: AnswerJudgement | None = None,
    ) -> str:
        """Record the answer by sentence, with citations down to characters, the verdict, and
        notes for readers."""
        subject = v.answer_iri(self.uuid)
        cited = dict.fromkeys(c.edge_selection for s in sentences for c in s.citations)
        answer_pairs = self._verdict_pairs(judged) if judged else ()
        self._state_answer(subject, "Answer", step, cited, *answer_pairs)
        content_pair = (v.tg("contentHash"), self.keep_content(text))
        self.entity(v.answer_text_iri(self.uuid), "AnswerText", content_pair)
        self.record_dropped(subject, dropped or {})
        for index, sentence in enumerate(sentences):
            self._state_sentence(subject, step, index, sentence)
        for index, note in enumerate(notes):
            self._state_note(subject, step, index, note)
        self._write()
        self.observer.handle_answer(step, text, sentences)
        return subject

    def _state_note(self, answer: str, step: str, index: int, note: Note) -> None:
        subject = self.part("note", index)
        self.out.add(answer, (v.tg("note"), iri_node(subject)))
        self.entity(
            subject,
            "Note",
            (v.tg("index"), index),
            (v.tg("text"), note.text),
            by=step,
            origins=dict.fromkeys(p.iri for p in note.places),
        )

    def _state_sentence(self, answer: str, step: str, index: int, sentence: Sentence) -> None:
        subject = self.part("sentence", index)
        selections = dict.fromkeys(c.edge_selection for c in sentence.citations)
        self.out.add(answer, (v.tg("sentence"), iri_node(subject)))
        self.entity(
            subject,
            "Sentence",
            (v.dcterms("isPartOf"), iri_node(answer)),
            (v.tg("index"), index),
            (v.tg("text"), sentence.text),
            by=step,
            origins=selections,
        )
        for number, citation in enumerate(sentence.citations):
            self._state_citation(subject, index, number, citation)

    def _state_citation(self, sentence: str, index: int, number: int, citation: Citation) -> None:
        """A W3C Web Annotation whose target is the page, selected by quote and by position."""
        subject = self.part("citation", index, number)
        target, quote, position = (f"{subject}:{part}" for part in ("target", "quote", "position"))
        origins = [citation.edge_selection, *_select_prov_entities(citation.via), citation.evidence]
        self.out.add(sentence, (v.tg("citation"), iri_node(subject)))
        self.out.add(
            subject,
            (v.RDF_TYPE, [v.prov("Entity"), v.oa("Annotation"), v.tg("Citation")]),
            (v.prov("wasDerivedFrom"), map(iri_node, dict.fromkeys(origins))),
            (v.oa("hasBody"), iri_node(sentence)),
            (v.oa("hasTarget"), iri_node(target)),
        )
        page = v.page_of(citation.document, citation.page)
        self.out.add(
            target,
            (v.RDF_TYPE, v.oa("SpecificResource")),
            (v.oa("hasSource"), iri_node(page)),
            (v.oa("hasSelector"), [iri_node(quote), iri_node(position)]),
        )
        self.out.add(
            quote, (v.RDF_TYPE, v.oa("TextQuoteSelector")), (v.oa("exact"), citation.quote)
        )
        self.out.add(
            position,
            (v.RDF_TYPE, v.oa("TextPositionSelector")),
            (v.oa("start"), citation.start),
            (v.oa("end"), citation.end),
        )


_WORLD = tuple(f"{v.URN}{kind}:" for kind in ("edge", "entity", "claim", "skolem"))


def _select_prov_entities(iris: Sequence[str]) -> list[str]:
    """Return the IRIs denoting PROV entities.

    Excluded: edges, entities and claims, since these are contents of texts, and resources with
    foreign IRIs, described by an imported graph."""
    return [
        resource
        for resource in iris
        if resource.startswith(v.URN) and not resource.startswith(_WORLD)
    ]


def _format_kind(kind: str) -> str:
    """``EntityMatching`` as words: ``Entity matching``."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind).strip()
    return words[:1].upper() + words[1:]
