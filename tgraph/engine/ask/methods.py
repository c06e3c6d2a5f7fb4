"""Mode methods: gathering the evidence behind an answer."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tgraph.answer.base import ConceptFinder, Selector, Synthesiser
from tgraph.model import Agent, Retrieval, Selection
from tgraph.models.base import Call, CallSink
from tgraph.models.reader import Reader
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question, Retriever
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.reading import in_order_read, is_for, is_known_to, read_candidates

if TYPE_CHECKING:
    from tgraph.answer.keywords import KeywordFinder
    from tgraph.answer.mode_choice import ModeReason

Gathering = Generator[str, None, tuple[Question, Selection]]
"""The IRI of each stage once it is on disk; in the end what the answer is made from."""


class Method(Protocol):
    """A mode's method: gathers evidence and names the synthesiser writing the answer."""

    @property
    def mode(self) -> str: ...

    @property
    def synthesiser(self) -> Synthesiser: ...

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """Retrieve and select, each step on record; yields the retrieval's and selection's IRI."""


@dataclass(frozen=True, slots=True)
class TwoStages:
    """The specification's two stages: retrieve candidates, then select those that matter.

    ``sharpens`` where the sentences of what was retrieved are yet to be ranked; with ``reads`` the
    best of them are read by the context's reader, if it has one. What will be quoted is narrowed to
    them; what a model is shown (``by_model``) stays whole, in the order in which it was read. The
    embedder retrieves, unless an ``agent`` is named.
    """

    mode: str
    retriever: Retriever
    selector: Selector
    synthesiser: Synthesiser
    concepts: ConceptFinder | None = None
    sharpens: bool = False
    reads: bool = False
    by_model: bool = False
    keywords: KeywordFinder | None = None
    agent: Agent | None = None

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        question, retrieval, stage = self._retrieve_evidence(question, context, record)
        yield stage
        origins = [stage]
        reader = self._choose_reader(question, retrieval, context)
        if reader is not None:
            with record.step("Reading", reader.agent, origins) as step:
                retrieval = self._read_retrieval(question, retrieval, reader, context)
                origins.append(record.judgement(step, retrieval.judgement))
        limit = context.limits.edge_limit
        with record.step(self.selector.step, self.selector.agent, origins) as step:
            selection = self.selector.select(question, retrieval, limit, record.call)
            judgement = retrieval.judgement or selection.judgement
            selection = replace(selection, judgement=judgement)
            stage = record.selection(step, selection)
        yield stage
        return question, selection

    def analyse_question(self, question: Question, context: Context, sink: CallSink) -> Question:
        """Return the question with concepts or keywords, if the mode starts from concepts or
        keywords."""
        if self.keywords is not None:
            keywords = self.keywords.find(question, context, sink)
            return replace(question, concepts=keywords.all_keywords, keywords=keywords)
        if self.concepts is None:
            return question
        return replace(question, concepts=self.concepts.find(question, context, sink))

    def _retrieve_evidence(
        self, question: Question, context: Context, record: SessionRecord
    ) -> tuple[Question, Retrieval, str]:
        question, concepts = self._find_concepts(question, context, record)
        if not self.retriever.matches_entities:
            agent = self.agent or context.embedder.agent
            with record.step(self.retriever.step, agent, concepts):
                retrieval = self._find_candidates(question, context)
                return question, retrieval, record.retrieval(retrieval, concepts)
        with record.step("EntityMatching", context.embedder.agent, concepts) as step:
            retrieval = self._find_candidates(question, context)
            matches = record.matches(step, concepts, retrieval.matches)
        with record.step(self.retriever.step, used=[matches]):
            return question, retrieval, record.retrieval(retrieval, [matches])

    def _find_candidates(self, question: Question, context: Context) -> Retrieval:
        retrieval = self.retriever.retrieve(question, context)
        narrows = self.sharpens and not self.by_model
        return sharpen_evidence(question, retrieval, context) if narrows else retrieval

    def _choose_reader(
        self, question: Question, retrieval: Retrieval, context: Context
    ) -> Reader | None:
        """Return the reader for the retrieval, or None.

        None is returned if the reader doesn't know the question's language. Beside a model,
        None is also returned where sentences can't be ranked by existing embeddings, or where
        the reader wasn't made for them."""
        reader = context.reader if self.reads else None
        if reader is not None and reader.language and not is_known_to(reader, question, context):
            return None
        if reader is None or not self.by_model:
            return reader
        ranked = not self.sharpens or context.at_hand(question.text) is not None
        fits = ranked and retrieval.candidates and is_for(reader, question, retrieval)
        return reader if fits else None

    def _read_retrieval(
        self, question: Question, retrieval: Retrieval, reader: Reader, context: Context
    ) -> Retrieval:
        """Return the retrieval after reading; beside a model, no embedder is called."""
        if not self.by_model:
            return read_candidates(question, retrieval, reader, context)
        ranked = retrieval
        if self.sharpens:
            vector = context.at_hand(question.text)
            ranked = sharpen_evidence(question, retrieval, context, vector)
        return in_order_read(retrieval, read_candidates(question, ranked, reader, context))

    def _find_concepts(
        self, question: Question, context: Context, record: SessionRecord
    ) -> tuple[Question, list[str]]:
        """Return the question with concepts or keywords, and the IRI of their record."""
        finder = self.keywords if self.keywords is not None else self.concepts
        if finder is None:
            return question, []
        with record.step("ConceptExtraction", finder.agent) as step:
            question = self.analyse_question(question, context, record.call)
            keywords = question.keywords
            concepts = record.concepts(
                step, question.concepts, keywords.low, keywords.high, keywords.dropped
            )
        return question, [concepts]


@dataclass(frozen=True, slots=True)
class Bypass:
    """A method without retrieval or selection; the record states the bypass."""

    mode: str
    synthesiser: Synthesiser

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        with record.step("Bypassing") as step:
            yield record.retrieval(Retrieval((), total=0))
            selection = Selection(())
            yield record.selection(step, selection)
        return question, selection


@dataclass(frozen=True, slots=True)
class MethodAround:
    """A wrapper that extends another method."""

    inner: Method

    @property
    def mode(self) -> str:
        return self.inner.mode

    @property
    def synthesiser(self) -> Synthesiser:
        return self.inner.synthesiser


@dataclass(frozen=True, slots=True)
class Chosen(MethodAround):
    """A method chosen by question form; the choice is recorded first.

    ``calls`` are model calls made for the choice, before there was a record."""

    about: ModeReason
    agent: Agent
    calls: tuple[Call, ...] = ()

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        with record.step("ModeChoosing", self.agent) as step:
            for call in self.calls:
                record.call(call)
            record.mode_choice(step, self.mode, self.about.reason, self.about.dropped)
        return (yield from self.inner.gather(question, context, record))


def without_retrieval(method: Method) -> Method:
    """Return the method without retrieval, for an empty graph."""
    if isinstance(method, Chosen):
        return replace(method, inner=without_retrieval(method.inner))
    return Bypass(method.mode, method.synthesiser)
