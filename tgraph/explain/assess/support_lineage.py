"""Support lineage: does cited evidence entail each answer sentence, and if not, at which step
was support lost?

The measures are ALCE's citation recall and precision (Gao and others, 2305.14627)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tgraph.answer.support import Support, SupportJudge
from tgraph.explain.assess.verification import (
    FINE,
    CitedPlace,
    JudgedSentence,
    Lost,
    SentenceVerdict,
    TrailStep,
)
from tgraph.explain.trace.derivation import DerivationNode, Derivations
from tgraph.explain.trace.values import Trace, TraceItem, TraceSentence
from tgraph.index.sources import is_mark
from tgraph.models.base import CallSink
from tgraph.retrieve.reasons import COUNTS, explain_selection
from tgraph.retrieve.text.lexical import terms

# To go back through what each step was made from until support is lost is VeriTrail's way
# (2505.21786); here the record is the graph that is walked.

MOST_STEPS = 12
"""Steps that are walked back at most: reports of reports are rarely deeper than a few levels."""
MOST_NODES = 40
"""Things of one step that are judged together, those first that share most words."""
MOST_JOINT = 8
"""Things that carry a sentence between them at most, none of them alone."""

_DEPTH = ("point", "report", "sub-report", "description", "summary", "extraction", "chunk")
_UNRECORDED = "the record has no origin of the item"

SentenceJudge = Callable[[Sequence[str]], Support]


class SupportLineage:
    """A statement's lineage back to documents; ``trail`` lists judged steps."""

    def __init__(self, origins: Derivations, judge: SentenceJudge, statement: str) -> None:
        self.trail: list[TrailStep] = []
        self._origins = origins
        self._judge = judge
        self._words = set(terms(statement))

    def back(self, sentence: str, chosen: Sequence[TraceItem], *, is_cited: bool) -> Lost:
        """Return the earliest step, counted from documents, whose output supports the statement
        while its inputs do not; ``chosen`` are the sentence's input items."""
        nodes = self._nearest_nodes(self._origins.of_item(item) for item in chosen)
        if not nodes:
            return Lost("answer", sentence, _UNRECORDED)
        support = self._judge_step("selection", nodes)
        if not support.is_proven:
            return self._in_reasoning(chosen, nodes) or Lost("answer", sentence, support.reason)
        for _ in range(MOST_STEPS):
            carriers, alone = self._find_carriers(nodes)
            # one of the texts alone, or nothing but texts together
            if (any if alone else all)(node.step == "chunk" for node in carriers):
                return _citation_loss(sentence, is_cited=is_cited)
            following = self._all_back(carriers) if alone else self._one_by_one(carriers)
            if isinstance(following, Lost):
                return following
            nodes = following
        lowest = _lowest_node(nodes)
        return Lost(lowest.step, lowest.iri, f"it goes back more than {MOST_STEPS} steps")

    # --- a step ---

    def _all_back(self, carriers: Sequence[DerivationNode]) -> list[DerivationNode] | Lost:
        """Return joint inputs of several carriers, each carrying the statement, or a loss if
        inputs lack support."""
        blamed = _lowest_node(carriers)
        before = self._nearest_nodes(
            input_node for node in carriers for input_node in self._origins.list_sources(node)
        )
        if not before:
            return Lost(blamed.step, blamed.iri, _UNRECORDED)
        support = self._judge_step(before[0].step, before)
        return before if support.is_proven else Lost(blamed.step, blamed.iri, support.reason)

    def _one_by_one(self, carriers: Sequence[DerivationNode]) -> list[DerivationNode] | Lost:
        """Return inputs of carriers that support the statement jointly.

        Carriers are replaced by their inputs one at a time: the first replacement that breaks
        support is returned as the loss."""
        current = list(carriers)
        for node in sorted(carriers, key=_step_depth):
            if node.step == "chunk":
                continue
            other_carriers = [carrier for carrier in current if carrier.iri != node.iri]
            before = self._nearest_nodes(self._origins.list_sources(node))
            current = _distinct_nodes([*other_carriers, *before])
            support = self._judge_step(before[0].step if before else node.step, current)
            if not support.is_proven:
                return Lost(node.step, node.iri, support.reason if before else _UNRECORDED)
        return current

    def _judge_step(self, step: str, nodes: Sequence[DerivationNode]) -> Support:
        support = self._judge([node.text for node in nodes])
        self.trail.append(
            TrailStep(step, tuple(n.iri for n in nodes), support.verdict, support.reason)
        )
        return support

    def _find_carriers(self, nodes: Sequence[DerivationNode]) -> tuple[list[DerivationNode], bool]:
        """Return nodes supporting the statement alone, or, without any, a minimal joint group."""
        if len(nodes) == 1:
            return list(nodes), True
        alone = [node for node in nodes if self._judge([node.text]).is_proven]
        return (alone, True) if alone else (self._minimise_nodes(nodes), False)

    def _minimise_nodes(self, nodes: Sequence[DerivationNode]) -> list[DerivationNode]:
        """Return a minimal group of nodes with joint support, preferring nodes with most
        statement words."""
        group_sizes = range(2, min(MOST_JOINT, len(nodes)) + 1)
        texts = [node.text for node in nodes]
        count = next((n for n in group_sizes if self._judge(texts[:n]).is_proven), 0)
        needed_nodes = list(nodes[:count])
        for node in reversed(needed_nodes[:]):
            remaining = [candidate for candidate in needed_nodes if candidate is not node]
            if remaining and self._judge([candidate.text for candidate in remaining]).is_proven:
                needed_nodes = remaining
        return needed_nodes or list(nodes)

    def _nearest_nodes(self, nodes: Iterable[DerivationNode]) -> list[DerivationNode]:
        """Return nodes sharing most words with the statement, best first."""
        candidates = _distinct_nodes(nodes)
        candidates.sort(key=lambda node: -len(self._words & set(terms(node.text))))
        return candidates[:MOST_NODES]

    # --- the choice ---

    def _in_reasoning(
        self, chosen: Sequence[TraceItem], nodes: Sequence[DerivationNode]
    ) -> Lost | None:
        """Return a selection loss if selection reasons support the statement while selected
        items do not."""
        texts = [node.text for node in nodes]
        missing = self._words - set(terms("\n".join(texts)))
        reasoned_items = [item for item in chosen if missing.intersection(terms(item.reasoning))]
        if not reasoned_items:
            return None
        support = self._judge([*texts, *(item.reasoning for item in reasoned_items)])
        iris = tuple(item.iri for item in reasoned_items)
        self.trail.append(TrailStep("reasoning", iris, support.verdict, support.reason))
        cause = "the reason of the selection supports the sentence, the selected item does not"
        return Lost("selection", iris[0], cause) if support.is_proven else None


def _citation_loss(sentence: str, *, is_cited: bool) -> Lost:
    """Return a citation loss: a document supports the sentence, but its citation is missing or
    leads to other characters."""
    cause = "a document supports the sentence, but the sentence has no citation"
    if is_cited:
        cause = "the chunk supports the sentence, but the cited part does not"
    return Lost("citation", sentence, cause)


def _lowest_node(nodes: Sequence[DerivationNode]) -> DerivationNode:
    return max(nodes, key=_step_depth)


def _step_depth(node: DerivationNode) -> int:
    return _DEPTH.index(node.step) if node.step in _DEPTH else 0


def _distinct_nodes(nodes: Iterable[DerivationNode]) -> list[DerivationNode]:
    return list({node.iri: node for node in nodes}.values())


UNDECIDED = "judgement that can't be used"
ERASED = "sentence that can't be judged: text was erased"
_GONE = Support("undecided", ERASED)
NOT_SAID = "the sentence counts documents, which no document states"


class Verifier:
    """A sentence verifier for one trace.

    Equal judgements are requested once; erased sentences or citations are undecided without a
    request."""

    def __init__(
        self, trace: Trace, origins: Derivations, judge: SupportJudge, sink: CallSink
    ) -> None:
        self.dropped: Counter[str] = Counter()
        self._trace = trace
        self._origins = origins
        self._judge = judge
        self._sink = sink
        self._known: dict[tuple[str, tuple[str, ...]], Support] = {}

    def sentence(self, sentence: TraceSentence) -> JudgedSentence:
        """Return a sentence verdict, including the lineage of unsupported sentences."""
        quotes = tuple(dict.fromkeys(c.quote for c in sentence.citations))
        if is_mark(sentence.text) or any(map(is_mark, quotes)):
            self.dropped[ERASED] += 1
            places = self._judge_citations(sentence, _GONE)
            return JudgedSentence(sentence.iri, sentence.text, "undecided", ERASED, places)
        if self._rests_on_counts(sentence):
            places = self._judge_citations(sentence, _GONE)
            return JudgedSentence(sentence.iri, sentence.text, "undecided", NOT_SAID, places)
        support = self._judge_support(sentence.text, quotes)
        verdict: SentenceVerdict = support.verdict if quotes else "uncited"
        citations = self._judge_citations(sentence, support)
        judged = sentence.iri, sentence.text, verdict, support.reason, citations
        if verdict in FINE:
            return JudgedSentence(*judged)
        return JudgedSentence(*judged, *self._trace_loss(sentence))

    def _rests_on_counts(self, sentence: TraceSentence) -> bool:
        """Tell whether a sentence rests entirely on count points."""
        items = {item.iri: item for item in self._trace.selected}
        chosen = [items[iri] for iri in sentence.edge_selections if iri in items]
        why = explain_selection((COUNTS,))
        return bool(chosen) and all(
            item.kind == "point" and item.reasoning in (why, why.first) for item in chosen
        )

    def _judge_support(self, statement: str, texts: Sequence[str]) -> Support:
        key = statement, tuple(texts)
        if key not in self._known:
            support = self._judge.judge(self._trace.question, statement, texts, self._sink)
            self.dropped[UNDECIDED] += support.verdict == "undecided"
            self._known[key] = support
        return self._known[key]

    # --- citations ---

    def _judge_citations(self, sentence: TraceSentence, support: Support) -> tuple[CitedPlace, ...]:
        """Return judged citations of a sentence; necessity is judged only under full support."""
        by_place = {(c.document, c.page, c.start, c.end): c for c in sentence.citations}
        places = list(by_place.values())
        judged_places = []
        for at, place in enumerate(places):
            alone = needed = None
            if support.is_proven and len(places) > 1:
                alone = self._judge_support(sentence.text, (place.quote,)).is_proven
                if not alone:
                    other_quotes = [c.quote for n, c in enumerate(places) if n != at]
                    needed = not self._judge_support(
                        sentence.text, tuple(dict.fromkeys(other_quotes))
                    ).is_proven
            where = (place.document, place.chunk, place.path, place.page, place.start, place.end)
            judged_places.append(CitedPlace(*where, place.quote, alone, needed))
        return tuple(judged_places)

    # --- the way back ---

    def _trace_loss(self, sentence: TraceSentence) -> tuple[tuple[TrailStep, ...], Lost]:
        """Return the lineage trail of a sentence towards documents, and the step where support
        was lost."""
        cited = set(sentence.edge_selections)
        chosen = [item for item in self._trace.selected if item.iri in cited or not cited]
        walk = SupportLineage(
            self._origins, partial(self._judge_support, sentence.text), sentence.text
        )
        lost = walk.back(sentence.iri, chosen, is_cited=bool(sentence.citations))
        return tuple(walk.trail), lost


def judge_all(
    verifier: Verifier, sentences: Sequence[TraceSentence], done: Callable[[], None]
) -> tuple[JudgedSentence, ...]:
    """Return verdicts on all sentences in order."""
    judgements = []
    for sentence in sentences:
        judgements.append(verifier.sentence(sentence))
        done()
    return tuple(judgements)
