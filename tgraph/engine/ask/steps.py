"""A question in steps: what it describes is asked first, then the question with its name.

Each step is retrieved and answered by itself, and is on record with its question, its answer and
the place that says so. The places of all steps are selected together, where they answer better than
what was found for the question as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tgraph.answer.base import Selector
from tgraph.answer.step_answers import StepAnswer, answers_in, best_sentences
from tgraph.engine.ask.methods import Gathering, MethodAround, TwoStages
from tgraph.model import Agent, Candidate, Evidence, Retrieval, Selection
from tgraph.models.base import CallSink
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.candidates import chunk_candidates
from tgraph.retrieve.candidates import ranked as renumbered
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.text.decomposition import QuestionStep, decomposed, without_article
from tgraph.retrieve.text.sentence_ranking import place_of
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
                retriever=_BridgedRetriever(inner.retriever, bridge),
                selector=_BridgedSelector(inner.selector, bridge),
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
    """The candidates of a retriever, those that hold the places of the steps first."""

    inner: Retriever
    bridge: StepBridge

    @property
    def step(self) -> str:
        return self.inner.step

    @property
    def matches_entities(self) -> bool:
        return self.inner.matches_entities

    def retrieve(self, question: Question, context: Context) -> Retrieval:
        """As ``Retriever.retrieve``."""
        found = self.inner.retrieve(question, context)
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


@dataclass(frozen=True, slots=True)
class _BridgedSelector:
    """A selector that is shown the places of the steps as the best evidence, where they are."""

    inner: Selector
    bridge: StepBridge

    @property
    def agent(self) -> Agent:
        return self.inner.agent

    @property
    def step(self) -> str:
        return self.inner.step

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        """As ``Selector.select``."""
        known = (e.relevance or 0.0 for c in retrieval.candidates for e in c.evidence)
        alone = max(known, default=0.0)
        if self.bridge.score <= alone - SLACK:
            return self.inner.select(question, retrieval, limit, sink)
        worth = min(1.0, max(alone, self.bridge.score - PENALTY))
        candidates = tuple(self._with_places(c, worth) for c in retrieval.candidates)
        return self.inner.select(question, replace(retrieval, candidates=candidates), limit, sink)

    def _with_places(self, candidate: Candidate, worth: float) -> Candidate:
        """The candidate, its places among those of the steps being worth so much; a chunk has all
        of them that stand in it."""
        places = {place_of(place): place for place in self.bridge.places}
        known = {place_of(e): e for e in candidate.evidence}
        if candidate.item.kind == "chunk":
            inside = {at: p for at, p in places.items() if p.chunk == candidate.item.iri}
            known = {**inside, **known}
        if places.keys().isdisjoint(known):
            return candidate
        found = [replace(e, relevance=worth) if at in places else e for at, e in known.items()]
        return replace(candidate, evidence=tuple(found))
