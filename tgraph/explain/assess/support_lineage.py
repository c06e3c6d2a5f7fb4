"""Is each sentence of an answer entailed by what it cites, and if not, where was that lost?

The measures are ALCE's citation recall and precision (Gao and others, 2305.14627).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from tgraph.answer.support import Support, SupportJudge
from tgraph.answer.themes import COUNTS
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
_UNRECORDED = "nothing is on record that it was made from"

Judge = Callable[[Sequence[str]], Support]


class SupportLineage:
    """The way back of one statement; ``trail`` is what was judged on it."""

    def __init__(self, origins: Derivations, judge: Judge, statement: str) -> None:
        self.trail: list[TrailStep] = []
        self._origins = origins
        self._judge = judge
        self._words = set(terms(statement))

    def back(self, sentence: str, chosen: Sequence[TraceItem], *, is_cited: bool) -> Lost:
        """The first step, from the documents on, that says it while what that was made from does
        not; ``chosen`` is what the sentence was written from."""
        nodes = self._nearest(self._origins.of_item(item) for item in chosen)
        if not nodes:
            return Lost("answer", sentence, _UNRECORDED)
        found = self._judged("selection", nodes)
        if not found.full:
            return self._in_reasoning(chosen, nodes) or Lost("answer", sentence, found.reason)
        for _ in range(MOST_STEPS):
            carriers, alone = self._carriers(nodes)
            # one of the texts alone, or nothing but texts together
            if (any if alone else all)(node.step == "chunk" for node in carriers):
                return _cited(sentence, is_cited=is_cited)
            following = self._all_back(carriers) if alone else self._one_by_one(carriers)
            if isinstance(following, Lost):
                return following
            nodes = following
        lowest = _lowest(nodes)
        return Lost(lowest.step, lowest.iri, f"it goes back more than {MOST_STEPS} steps")

    # --- a step ---

    def _all_back(self, carriers: Sequence[DerivationNode]) -> list[DerivationNode] | Lost:
        """What those were made from that each carry it; lost where that doesn't say it."""
        blamed = _lowest(carriers)
        before = self._nearest(made for node in carriers for made in self._origins.before(node))
        if not before:
            return Lost(blamed.step, blamed.iri, _UNRECORDED)
        found = self._judged(before[0].step, before)
        return before if found.full else Lost(blamed.step, blamed.iri, found.reason)

    def _one_by_one(self, carriers: Sequence[DerivationNode]) -> list[DerivationNode] | Lost:
        """What those were made from that carry it between them: the first without which what it
        was made from doesn't do has lost it."""
        current = list(carriers)
        for node in sorted(carriers, key=_depth):
            if node.step == "chunk":
                continue
            others = [other for other in current if other.iri != node.iri]
            before = self._nearest(self._origins.before(node))
            current = _distinct([*others, *before])
            found = self._judged(before[0].step if before else node.step, current)
            if not found.full:
                return Lost(node.step, node.iri, found.reason if before else _UNRECORDED)
        return current

    def _judged(self, step: str, nodes: Sequence[DerivationNode]) -> Support:
        found = self._judge([node.text for node in nodes])
        self.trail.append(TrailStep(step, tuple(n.iri for n in nodes), found.verdict, found.reason))
        return found

    def _carriers(self, nodes: Sequence[DerivationNode]) -> tuple[list[DerivationNode], bool]:
        """Those that support it alone; where none does, those that only do together."""
        if len(nodes) == 1:
            return list(nodes), True
        alone = [node for node in nodes if self._judge([node.text]).full]
        return (alone, True) if alone else (self._needed(nodes), False)

    def _needed(self, nodes: Sequence[DerivationNode]) -> list[DerivationNode]:
        """As few as support it together, those with most of its words first."""
        most = range(2, min(MOST_JOINT, len(nodes)) + 1)
        texts = [node.text for node in nodes]
        count = next((n for n in most if self._judge(texts[:n]).full), 0)
        kept = list(nodes[:count])
        for node in reversed(kept[:]):
            rest = [other for other in kept if other is not node]
            if rest and self._judge([other.text for other in rest]).full:
                kept = rest
        return kept or list(nodes)

    def _nearest(self, nodes: Iterable[DerivationNode]) -> list[DerivationNode]:
        """Those with most words of the statement, best first."""
        found = _distinct(nodes)
        found.sort(key=lambda node: -len(self._words & set(terms(node.text))))
        return found[:MOST_NODES]

    # --- the choice ---

    def _in_reasoning(
        self, chosen: Sequence[TraceItem], nodes: Sequence[DerivationNode]
    ) -> Lost | None:
        """Where the reasons that an item was chosen for say what the items don't."""
        texts = [node.text for node in nodes]
        missing = self._words - set(terms("\n".join(texts)))
        said = [item for item in chosen if missing.intersection(terms(item.reasoning))]
        if not said:
            return None
        found = self._judge([*texts, *(item.reasoning for item in said)])
        iris = tuple(item.iri for item in said)
        self.trail.append(TrailStep("reasoning", iris, found.verdict, found.reason))
        cause = "the reason it was chosen for says it, what was chosen does not"
        return Lost("selection", iris[0], cause) if found.full else None


def _cited(sentence: str, *, is_cited: bool) -> Lost:
    """A document says it: only the citation is missing, or leads to other characters."""
    cause = "a document says it, but the sentence cites nothing"
    if is_cited:
        cause = "the chunk says it, but what is cited of it does not"
    return Lost("citation", sentence, cause)


def _lowest(nodes: Sequence[DerivationNode]) -> DerivationNode:
    return max(nodes, key=_depth)


def _depth(node: DerivationNode) -> int:
    return _DEPTH.index(node.step) if node.step in _DEPTH else 0


def _distinct(nodes: Iterable[DerivationNode]) -> list[DerivationNode]:
    return list({node.iri: node for node in nodes}.values())


UNDECIDED = "judgement that can't be used"
ERASED = "sentence that can't be judged: text was erased"
_GONE = Support("undecided", ERASED)
NOT_SAID = "it counts documents, which no document does"


class Verifier:
    """Judges the sentences of one trace. Equal judgements are asked for once; what was erased, or
    cites what was, is undecided without being asked."""

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
        """The verdict on a sentence, with the way back where it lacks support."""
        quotes = tuple(dict.fromkeys(c.quote for c in sentence.citations))
        if is_mark(sentence.text) or any(map(is_mark, quotes)):
            self.dropped[ERASED] += 1
            places = self._citations(sentence, _GONE)
            return JudgedSentence(sentence.iri, sentence.text, "undecided", ERASED, places)
        if self._counts(sentence):
            places = self._citations(sentence, _GONE)
            return JudgedSentence(sentence.iri, sentence.text, "undecided", NOT_SAID, places)
        support = self._support(sentence.text, quotes)
        verdict: SentenceVerdict = support.verdict if quotes else "uncited"
        citations = self._citations(sentence, support)
        judged = sentence.iri, sentence.text, verdict, support.reason, citations
        if verdict in FINE:
            return JudgedSentence(*judged)
        return JudgedSentence(*judged, *self._walk(sentence))

    def _counts(self, sentence: TraceSentence) -> bool:
        """Whether it rests on nothing but points that count what was read."""
        items = {item.iri: item for item in self._trace.selected}
        chosen = [items[iri] for iri in sentence.edge_selections if iri in items]
        why = f"Chosen because {COUNTS}."
        return bool(chosen) and all(i.kind == "point" and i.reasoning == why for i in chosen)

    def _support(self, statement: str, texts: Sequence[str]) -> Support:
        key = statement, tuple(texts)
        if key not in self._known:
            found = self._judge.judge(self._trace.question, statement, texts, self._sink)
            self.dropped[UNDECIDED] += found.verdict == "undecided"
            self._known[key] = found
        return self._known[key]

    # --- citations ---

    def _citations(self, sentence: TraceSentence, support: Support) -> tuple[CitedPlace, ...]:
        """Each place that is cited; whether it is needed is asked where support is full."""
        by_place = {(c.document, c.page, c.start, c.end): c for c in sentence.citations}
        places = list(by_place.values())
        found = []
        for at, place in enumerate(places):
            alone = needed = None
            if support.full and len(places) > 1:
                alone = self._support(sentence.text, (place.quote,)).full
                if not alone:
                    rest = [c.quote for n, c in enumerate(places) if n != at]
                    needed = not self._support(sentence.text, tuple(dict.fromkeys(rest))).full
            where = (place.document, place.chunk, place.path, place.page, place.start, place.end)
            found.append(CitedPlace(*where, place.quote, alone, needed))
        return tuple(found)

    # --- the way back ---

    def _walk(self, sentence: TraceSentence) -> tuple[tuple[TrailStep, ...], Lost]:
        """From the sentence back to the documents, as long as what it was made from supports it."""
        cited = set(sentence.edge_selections)
        chosen = [item for item in self._trace.selected if item.iri in cited or not cited]
        walk = SupportLineage(self._origins, partial(self._support, sentence.text), sentence.text)
        lost = walk.back(sentence.iri, chosen, is_cited=bool(sentence.citations))
        return tuple(walk.trail), lost


def judge_all(
    verifier: Verifier, sentences: Sequence[TraceSentence], done: Callable[[], None]
) -> tuple[JudgedSentence, ...]:
    """Every sentence's verdict, in their order."""
    found = []
    for sentence in sentences:
        found.append(verifier.sentence(sentence))
        done()
    return tuple(found)
