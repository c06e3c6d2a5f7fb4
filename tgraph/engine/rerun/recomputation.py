"""Verification of computed answers: the recorded query is run again, and each sentence is compared
with what its result says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.compute.evaluation import read_result, write_bindings
from tgraph.engine.ask.computing import compute_again, evaluation_bounds, name_result
from tgraph.engine.ask.parameters import QUERY
from tgraph.explain.assess.verification import CitedPlace, JudgedSentence, SentenceVerdict
from tgraph.explain.trace.bundle_reader import BundleReader
from tgraph.explain.trace.values import Trace, TraceSentence
from tgraph.index.sources import is_mark
from tgraph.retrieve.base import Context
from tgraph.retrieve.modes.registry import mode_named
from tgraph.store.base import Store

SAME = "the query, run again, gives the result that the sentence says"


def is_computed(mode: str) -> bool:
    """Return whether sessions of a mode are answered by queries."""
    known = mode_named(mode)
    return known is not None and known.pipeline == "computed"


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A recorded query, run again over the knowledge that its session read.

    ``record`` is the store with the session's bundle, ``context`` that knowledge."""

    trace: Trace
    record: Store
    context: Context
    bundle: str

    @classmethod
    def over(
        cls, trace: Trace, record: Store, store: Store, context: Context, bundle: str
    ) -> Recomputation:
        """Return a recomputation over the knowledge of a store."""
        return cls(trace, record, context.over_store(store), bundle)

    def judge_sentences(self) -> tuple[JudgedSentence, ...]:
        """Return the sentences, each supported where the result says the same again."""
        problem = self._compare_result()
        said = self._sentences() if not problem else []
        return tuple(
            _judge_sentence(sentence, problem or _find_fault(sentence, said))
            for sentence in self.trace.sentences
        )

    def _compare_result(self) -> str:
        """Return how the recorded query's result differs from the recorded one; empty if equal."""
        quads = self.record.match(None, None, None, NamedNode(self.bundle))
        uuid = self.trace.explain_id.removeprefix(v.session_iri(""))
        reader, subject = BundleReader(quads), v.session_part_iri("query", uuid)
        if self.trace.computed is None or not self.trace.computed.sparql:
            return "the record has no query"
        if is_mark(self.trace.computed.sparql):
            return "the query was erased with a document"
        bounds = evaluation_bounds(self.context.settings.sparql_search)
        result = write_bindings(read_result(self.context.store, self.trace.computed.sparql, bounds))
        is_same = result == reader.read_text(subject, "result")
        return "" if is_same else "the query, run again, gives another result"

    @property
    def _is_written(self) -> bool:
        """Whether a person or a model wrote the query, and no grammar made it."""
        return QUERY in self.trace.parameters or any(call.prompt for call in self.trace.calls)

    def _sentences(self) -> list[str]:
        settings = self.context.settings.sparql_search
        computed = self.trace.computed
        written = computed.written if computed and self._is_written else ""
        computation = compute_again(self.trace.question, written, self.context, settings)
        return [sentence.text for sentence in name_result(computation, self.context)]


def _find_fault(sentence: TraceSentence, said: Sequence[str]) -> str:
    """Return what the result says instead of a sentence; empty where it says the sentence."""
    return "" if sentence.text in said else f"the result says: {' '.join(said) or 'nothing'}"


def _judge_sentence(sentence: TraceSentence, fault: str) -> JudgedSentence:
    places = tuple(
        CitedPlace(c.document, c.chunk, c.path, c.page, c.start, c.end, c.quote)
        for c in sentence.citations
    )
    verdict: SentenceVerdict = "unsupported" if fault else "supported"
    return JudgedSentence(sentence.iri, sentence.text, verdict, fault or SAME, places)
