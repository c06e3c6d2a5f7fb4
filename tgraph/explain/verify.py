"""Is each sentence of an answer entailed by what it cites, and if not, where was that lost?

The measures are ALCE's citation recall and precision (Gao and others, 2305.14627).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

from tgraph.answer.support import Support, SupportJudge
from tgraph.explain.origins import Origins
from tgraph.explain.traced import Trace, TracedSentence
from tgraph.explain.verified import (
    CitedPlace,
    JudgedSentence,
    Lost,
    SentenceVerdict,
    TrailStep,
)
from tgraph.explain.walked_back import Walk
from tgraph.models.base import CallSink
from tgraph.record.rewriter import is_mark

UNDECIDED = "judgement that can't be used"
ERASED = "sentence that can't be judged: text was erased"


_GONE = Support("undecided", ERASED)


class Verifier:
    """Judges the sentences of one trace. Equal judgements are asked for once; what was erased, or
    cites what was, is undecided without being asked."""

    def __init__(self, trace: Trace, origins: Origins, judge: SupportJudge, sink: CallSink) -> None:
        self.dropped: Counter[str] = Counter()
        self._trace = trace
        self._origins = origins
        self._judge = judge
        self._sink = sink
        self._known: dict[tuple[str, tuple[str, ...]], Support] = {}

    def sentence(self, sentence: TracedSentence) -> JudgedSentence:
        """The verdict on a sentence, with the way back where it lacks support."""
        quotes = tuple(dict.fromkeys(c.quote for c in sentence.citations))
        if is_mark(sentence.text) or any(map(is_mark, quotes)):
            self.dropped[ERASED] += 1
            places = self._citations(sentence, _GONE)
            return JudgedSentence(sentence.iri, sentence.text, "undecided", ERASED, places)
        support = self._support(sentence.text, quotes)
        verdict: SentenceVerdict = support.verdict if quotes else "uncited"
        citations = self._citations(sentence, support)
        trail: tuple[TrailStep, ...] = ()
        lost = None
        if verdict not in ("supported", "undecided"):
            trail, lost = self._walk(sentence)
        return JudgedSentence(
            sentence.iri, sentence.text, verdict, support.reason, citations, trail, lost
        )

    def _support(self, statement: str, texts: Sequence[str]) -> Support:
        key = statement, tuple(texts)
        if key not in self._known:
            found = self._judge.judge(self._trace.question, statement, texts, self._sink)
            self.dropped[UNDECIDED] += found.verdict == "undecided"
            self._known[key] = found
        return self._known[key]

    # --- citations ---

    def _citations(self, sentence: TracedSentence, support: Support) -> tuple[CitedPlace, ...]:
        """Each place that is cited; whether it is needed is asked where support is full."""
        places = list(
            {(c.document, c.page, c.start, c.end): c for c in sentence.citations}.values()
        )
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

    def _walk(self, sentence: TracedSentence) -> tuple[tuple[TrailStep, ...], Lost]:
        """From the sentence back to the documents, as long as what it was made from supports it."""
        cited = set(sentence.edge_selections)
        chosen = [item for item in self._trace.selected if item.iri in cited or not cited]
        walk = Walk(self._origins, partial(self._support, sentence.text), sentence.text)
        lost = walk.back(sentence.iri, chosen, is_cited=bool(sentence.citations))
        return tuple(walk.trail), lost


def judge_all(
    verifier: Verifier, sentences: Sequence[TracedSentence], done: Callable[[], None]
) -> tuple[JudgedSentence, ...]:
    """Every sentence's verdict, in their order."""
    found = []
    for sentence in sentences:
        found.append(verifier.sentence(sentence))
        done()
    return tuple(found)
