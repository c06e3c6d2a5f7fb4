"""A question in steps: what it describes is asked first, then the question with its name.

Each step is retrieved and answered by itself, and is on record with its question, its answer and
the place that says so. The places of all steps are selected together, where they answer better than
what was found for the question as a whole.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from tgraph.answer.step_answers import StepAnswer, answers_in, best_sentences
from tgraph.engine.ask.methods import Gathering, MethodAround, TwoStages
from tgraph.model import Agent, Candidate, Evidence, Retrieval
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.candidates import chunk_candidates
from tgraph.retrieve.candidates import ranked as renumbered
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.text.decomposition import QuestionStep, decomposed, without_article
from tgraph.retrieve.text.sentence_ranking import Place, place_of, sharpened
from tgraph.version import __version__

TRIED = 2
"""Answers of the last step before the end that are tried."""

SLACK = 0.1
"""How much less than the best sentence alone the steps together may be worth."""

PENALTY = 0.05
"""What the steps must be worth more than one sentence to be as good evidence as that."""


@dataclass(frozen=True, slots=True)
class StepBridge:
    """The places that answer the steps, the last one included, and their worth together."""

    places: tuple[Evidence, ...]
    score: float


@dataclass(frozen=True, slots=True)
class Stepwise(MethodAround):
    """A method that answers a question's steps before the question, where it takes any."""

    inner: TwoStages

    agent = Agent("method", "embedded-steps", __version__)

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        inner = self.inner
        steps = decomposed(question.text)
        bridge = self._bridge(steps, context, record) if steps else None
        if bridge is not None:
            inner = replace(
                inner,
                retriever=_BridgedRetriever(inner.retriever, bridge, inner.sharpens),
                sharpens=False,
            )
        return (yield from inner.gather(question, context, record))

    def _bridge(
        self, steps: Sequence[QuestionStep], context: Context, record: SessionRecord
    ) -> StepBridge | None:
        """The steps answered one after the other; None where one has no answer."""
        answers: dict[int, str] = {}
        found: list[StepAnswer] = []
        said: list[str] = []
        for number, step in enumerate(steps[:-1], 1):
            name, text = step.described(answers), step.asked(answers)
            if _is_name(name, context):
                answers[number] = name
                continue
            with record.step("StepAnswering", self.agent, said) as activity:
                options = answers_in(text, step.noun, self._sentences(text, context), context)
                best: StepAnswer | None
                if number == len(steps) - 1 and options:
                    best = self._best(options, number, steps[-1], answers, context)
                else:
                    best = options[0] if options else None
                said.append(_record(record, activity, number, text, best, said))
            if best is None:
                return None
            answers[number] = best.text
            found.append(best)
        if not found:
            return None
        text = steps[-1].asked(answers)
        with record.step("StepAnswering", self.agent, said) as activity:
            last = self._last(text, found[-1], context)
            _record(record, activity, len(steps), text, last, said)
        if last is None:
            return None
        score = 0.5 * (min(each.relevance for each in found) + last.relevance) + found[-1].fit
        return StepBridge((*(each.place for each in found), last.place), score)

    def _best(
        self,
        options: Sequence[StepAnswer],
        number: int,
        last: QuestionStep,
        answers: dict[int, str],
        context: Context,
    ) -> StepAnswer:
        """The answer of which what is asked in the end is said best."""
        worth: dict[int, float] = {}
        for place, option in enumerate(options[:TRIED]):
            end = self._last(last.asked({**answers, number: option.text}), option, context)
            worth[place] = option.score + (end.relevance if end else 0.0)
        return options[max(worth, key=lambda place: (worth[place], -place))]

    def _last(self, text: str, before: StepAnswer, context: Context) -> StepAnswer | None:
        """The best sentence about the answer of the step before, in another document."""
        for sentence in self._sentences(text, context):
            if sentence.document != before.place.document and before.is_meant_in(sentence, context):
                return StepAnswer("", sentence, sentence.relevance or 0.0, 0.0, frozenset())
        return None

    def _sentences(self, text: str, context: Context) -> list[Evidence]:
        question = Question(text)
        return best_sentences(question, self.inner.retriever.retrieve(question, context), context)


def _is_name(phrase: str, context: Context) -> bool:
    """Whether it names what it seems to describe ("the Gulf of Mexico")."""
    return any(match_names(each, context.store) for each in (phrase, without_article(phrase)))


def _record(
    record: SessionRecord,
    activity: str,
    number: int,
    question: str,
    answer: StepAnswer | None,
    before: Sequence[str],
) -> str:
    places = [answer.place.iri] if answer else []
    return record.step_answer(
        activity, number, question, answer.text if answer else "", places, before
    )


@dataclass(frozen=True, slots=True)
class _BridgedRetriever:
    """The candidates of a retriever, those that hold the places of the steps first.

    The places are worth as much as the best sentence, where the steps together are worth it.
    """

    inner: Retriever
    bridge: StepBridge
    sharpens: bool

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        found = self._with_chunks(self.inner.retrieve(question, context), context)
        found = sharpened(question, found, context) if self.sharpens else found
        known = (e.relevance or 0.0 for c in found.candidates for e in c.evidence)
        alone = max(known, default=0.0)
        if self.bridge.score <= alone - SLACK:
            return found
        worth = min(1.0, max(alone, self.bridge.score - PENALTY))
        candidates = tuple(self._with_places(c, worth) for c in found.candidates)
        return replace(found, candidates=candidates)

    def _with_chunks(self, found: Retrieval, context: Context) -> Retrieval:
        wanted = dict.fromkeys(place.chunk for place in self.bridge.places)
        held = {c.item.iri: c for c in found.candidates if c.item.iri in wanted}
        why = ("it answers a step of the question",)
        best = max((c.score for c in found.candidates), default=1.0)
        new = chunk_candidates(context, ((c, best, why) for c in wanted if c not in held))
        first = [*new, *(replace(c, reasons=(*why, *c.reasons)) for c in held.values())]
        rest = [c for c in found.candidates if c.item.iri not in held]
        edges = [c for c in rest if c.item.kind == "edge"]
        others = [c for c in rest if c.item.kind != "edge"]
        order = tuple(renumbered([*edges, *first, *others]))
        return replace(found, candidates=order, items=found.items + len(new))

    def _with_places(self, candidate: Candidate, worth: float) -> Candidate:
        """The candidate, the places of the steps that stand in it first, being worth so much, and
        the place of the step before the last of them as its bridge."""
        known = {place_of(e): e for e in candidate.evidence}
        own = [p for p in self.bridge.places if self._holds(candidate, p, known)]
        if not own:
            return candidate
        own.sort(key=self.bridge.places.index, reverse=True)
        first = [replace(known.get(place_of(p), p), relevance=worth) for p in own]
        taken = {place_of(p) for p in own}
        rest = [e for at, e in known.items() if at not in taken]
        before = self.bridge.places.index(own[0]) - 1
        bridge = self.bridge.places[before].iri if before >= 0 else ""
        return replace(candidate, evidence=(*first, *rest), bridge=bridge)

    def _holds(self, candidate: Candidate, place: Evidence, known: Container[Place]) -> bool:
        if candidate.item.kind == "chunk":
            return place.chunk == candidate.item.iri
        return place_of(place) in known
