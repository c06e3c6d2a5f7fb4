"""Whether a recorded answer answers: its short answer held against what is cited, its verdict and
probabilities against what the reader finds in the recorded evidence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod

from tgraph.answer.support import LexicalJudge
from tgraph.engine.ask.parameters import asked_of, restore_settings
from tgraph.engine.ask.steps import plan_of
from tgraph.engine.ask.verdict import LEAST_SHORT_CONFIDENCE
from tgraph.engine.open_collection import OpenCollection
from tgraph.errors import TgraphError
from tgraph.explain.assess.verification import (
    JudgedAnswer,
    JudgedSentence,
    JudgedShortAnswer,
    SentenceVerdict,
)
from tgraph.explain.trace.values import Trace, TraceQuotation
from tgraph.index.sources import is_mark
from tgraph.ingest.base import shorten_line
from tgraph.model import Candidate, Evidence, Retrieval
from tgraph.models.base import CallSink, no_sink
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import assign_ranks, chunk_candidates
from tgraph.retrieve.modes.registry import mode_named
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.lexical import term_set, words
from tgraph.retrieve.text.reading import is_known_to, read_candidates
from tgraph.settings import AnswerSettings

TOLERANCE = 0.05
"""By how much a probability may differ from the one on record: the reader sees the selection alone
again, not all that was retrieved."""

MOST_ABOVE = 0.25
"""By how much a recorded probability may be above the one that is read again."""

LEAST_SHARE = 0.5
"""The share of the best sentence's probability that a sentence of an answer must have."""

_DECISION = re.compile(r"^(?:Yes|No)\s+[–-]\s+")
_UNREAD = "no reader judged the answer"


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the reader finds in the recorded evidence; ``reason`` says why it found nothing.

    ``short`` is the answer in a few words, and ``places`` are the places that answer best; both are
    empty where the question was read in parts."""

    confidence: float | None = None
    short_confidence: float | None = None
    reason: str = ""
    short: str = ""
    places: tuple[Evidence, ...] = ()


def check_answer(
    opened: OpenCollection, trace: Trace, sink: CallSink, *, lexical: bool
) -> JudgedAnswer:
    """Return the judgement on an answer as a whole and on its short answer."""
    settings = opened.settings
    found = Recomputed(reason=f"{_UNREAD}: words alone judge")
    if not lexical:
        try:
            settings = restore_settings(settings, trace.mode, trace.parameters)
            context = opened.context_as_of(trace.generation).for_question(sink)
            found = read_again(trace, replace(context, settings=settings))
        except TgraphError as error:
            found = Recomputed(reason=error.message)
    short = _check_short_answer(trace, found)
    return _check_verdict(trace, found, short, settings.answer)


def read_again(trace: Trace, context: Context) -> Recomputed:
    """Return what the reader finds in the evidence of the selection, read again for each part of
    the question."""
    question, mode = asked_of(trace.question, trace.parameters), mode_named(trace.mode)
    chunks = list(dict.fromkeys(e.chunk for item in trace.selected for e in item.evidence))
    reader = context.reader
    if reader is None:
        return Recomputed(reason=f"{_UNREAD}: there is none")
    if not chunks or mode is None or mode.reports == "only":
        return Recomputed(reason=_UNREAD)
    if reader.language and not is_known_to(reader, question, context):
        return Recomputed(reason=f"{_UNREAD}: it does not know the language of the question")
    plan = plan_of(trace.question, chained=False)
    if plan.subject:
        return Recomputed(reason=f"{_UNREAD}: each document is told")
    asked = [question]
    if plan:
        steps = (s for s in trace.step_answers if s.place and s.question != trace.question)
        asked = [replace(question, text=step.question) for step in steps]
    candidates = tuple(assign_ranks(chunk_candidates(context, ((c, 1.0, ()) for c in chunks))))
    readings = [_read_once(each, Retrieval(candidates, 0), context) for each in asked]
    if not readings:
        return Recomputed(reason=_UNREAD)
    if not plan:
        return readings[0]
    confidence = _multiply(reading.confidence for reading in readings)
    short = _multiply(reading.short_confidence for reading in readings)
    return Recomputed(confidence, confidence if plan.comparison else short)


def _read_once(question: Question, retrieval: Retrieval, context: Context) -> Recomputed:
    assert context.reader is not None
    ranked = sharpen_evidence(question, retrieval, context)
    found = read_candidates(question, ranked, context.reader, context)
    if found.judgement is None:
        return Recomputed()
    judged, places = found.judgement, _best_places(found.candidates)
    return Recomputed(
        judged.confidence, judged.short_confidence, short=judged.answer, places=places
    )


def _best_places(candidates: Sequence[Candidate]) -> tuple[Evidence, ...]:
    """Return the places nearly as likely to answer as the best."""
    rated = [(e, e.relevance or 0.0) for c in candidates for e in c.evidence]
    least = LEAST_SHARE * max((relevance for _, relevance in rated), default=0.0)
    return tuple(evidence for evidence, relevance in rated if relevance >= least)


def _multiply(probabilities: Iterable[float | None]) -> float | None:
    known = list(probabilities)
    numbers = [probability for probability in known if probability is not None]
    return round(prod(numbers), 6) if len(numbers) == len(known) else None


# --- the short answer ---


def _check_short_answer(trace: Trace, found: Recomputed) -> JudgedShortAnswer | None:
    """Judge whether citations state the short answer, and whether its recorded probability
    follows; None without a short answer."""
    if not trace.short:
        return None
    quotes = list(dict.fromkeys(c.quote for s in trace.sentences for c in s.citations))
    recorded, recomputed = trace.short_confidence, found.short_confidence
    follows = None
    if recorded is not None and recomputed is not None:
        follows = abs(recorded - recomputed) <= TOLERANCE
    if is_mark(trace.short) or any(map(is_mark, quotes)):
        reason = "text of the answer was erased"
        return JudgedShortAnswer(trace.short, "undecided", reason, recorded, recomputed, follows)
    unstated = [part for part in _short_parts(trace.short) if not _is_stated(part, quotes)]
    reason = f"no citation states “{'; '.join(unstated)}”" if unstated else "the citations state it"
    verdict: SentenceVerdict = "unsupported" if unstated else "quoted"
    return JudgedShortAnswer(trace.short, verdict, reason, recorded, recomputed, follows)


def _short_parts(short: str) -> list[str]:
    """Return the answers to the parts of a question, without the decision between them."""
    return [part for part in _DECISION.sub("", short).split("; ") if part.strip()]


def _is_stated(part: str, quotes: list[str]) -> bool:
    """Return whether quotes contain the words of a part, or its names and numbers together."""
    folded = collapse_whitespace(part).casefold()
    if any(folded in collapse_whitespace(quote).casefold() for quote in quotes):
        return True
    return LexicalJudge().judge("", part, quotes, no_sink).is_proven


# --- the verdict ---


def _check_verdict(
    trace: Trace,
    found: Recomputed,
    short: JudgedShortAnswer | None,
    settings: AnswerSettings,
) -> JudgedAnswer:
    recorded = trace.verdict or ("answered" if trace.sentences else "no_evidence")
    recomputed = _verdict_of(found.confidence, settings)
    faults = list(_short_faults(short))
    verdict: SentenceVerdict
    if not is_by_model(trace):
        faults += _verdict_faults(trace, found, recorded, recomputed)
        faults += _reading_faults(trace, found)
    if faults:
        verdict, reason = "unsupported", "; ".join(faults)
    elif found.confidence is None:
        verdict, reason = "undecided", found.reason or _UNREAD
    elif recorded != "answered":
        verdict, reason = "undecided", "the answer itself says that it may be none"
    else:
        verdict = "supported"
        reason = f"the reader gives the recorded evidence {found.confidence:.2f} to answer"
    return JudgedAnswer(
        verdict, reason, recorded, recomputed, trace.confidence, found.confidence, short
    )


def _short_faults(short: JudgedShortAnswer | None) -> Iterable[str]:
    if short is None:
        return
    if short.verdict == "unsupported":
        yield short.reason
    recomputed, recorded = short.recomputed or 0.0, short.probability or 0.0
    is_raised = recorded - recomputed > MOST_ABOVE
    if short.follows is False and (recomputed < LEAST_SHORT_CONFIDENCE or is_raised):
        yield (
            f"the probability of the short answer is {short.recomputed:.2f} by the recorded"
            f" evidence, not {short.probability:.2f}"
        )


def _verdict_faults(
    trace: Trace, found: Recomputed, recorded: str, recomputed: str
) -> Iterable[str]:
    """Yield what is wrong with the verdict and the confidence of an answer."""
    if found.confidence is None:
        return
    read = f"the reader gives the recorded evidence a probability of {found.confidence:.2f}"
    if recorded != recomputed and "answered" in (recorded, recomputed):
        if recorded == "answered" or found.confidence - (trace.confidence or 0.0) > MOST_ABOVE:
            yield f"{read} to answer, which is {recomputed.replace('_', ' ')}"
    elif trace.confidence is not None and trace.confidence - found.confidence > MOST_ABOVE:
        yield f"{read} to answer, not {trace.confidence:.2f}"


def _reading_faults(trace: Trace, found: Recomputed) -> Iterable[str]:
    """Yield where an answer quotes none of the sentences that the reader takes for the answer, or
    says other words in short."""
    if not found.places or not trace.sentences or trace.verdict != "answered":
        return
    cited = [citation for sentence in trace.sentences for citation in sentence.citations]
    if not any(_is_same_place(each, place) for each in cited for place in found.places):
        best = collapse_whitespace(found.places[0].quote)
        yield f"the reader takes another sentence for the answer: “{shorten_line(best, 100)}”"
    if trace.short and found.short and not _share_words(trace.short, found.short):
        yield f"the reader takes other words for the short answer: “{found.short}”"


def _is_same_place(cited: TraceQuotation, place: Evidence) -> bool:
    """Return whether the quote of a citation contains the quote of a place, or the reverse."""
    one, other = collapse_whitespace(cited.quote), collapse_whitespace(place.quote)
    return cited.chunk == place.chunk and (one in other or other in one)


def _share_words(one: str, other: str) -> bool:
    """Return whether one text's stems are a subset of the other text's stems."""
    own, others = term_set(one), term_set(other)
    return own <= others or others <= own


def _verdict_of(confidence: float | None, settings: AnswerSettings) -> str:
    """Return the verdict that a confidence leads to; empty without one."""
    if confidence is None:
        return ""
    if confidence < settings.least_confidence:
        return "no_evidence"
    return "uncertain" if confidence < settings.sure_confidence else "answered"


def check_order(sentence: JudgedSentence) -> JudgedSentence:
    """Return a quoted sentence, unsupported unless a citation holds the sentence's words in the
    same order. A heading before the quotation ("Heading: ...") may be missing in the citation."""
    if sentence.verdict != "supported":
        return sentence
    quotes = [words(citation.quote) for citation in sentence.citations]
    _, _, quoted = sentence.text.partition(": ")
    texts = (sentence.text, quoted) if quoted else (sentence.text,)
    if any(_stands_in_order(words(text), quote) for text in texts for quote in quotes):
        return sentence
    reason = "the answer quotes, and no citation has its words in this order"
    return replace(sentence, verdict="unsupported", reason=reason)


def _stands_in_order(own: Sequence[str], others: Sequence[str]) -> bool:
    rest = iter(others)
    return all(word in rest for word in own)


def is_by_model(trace: Trace) -> bool:
    """Return whether a model wrote the answer: it judged for itself whether there is one."""
    return any(call.prompt for call in trace.calls)
