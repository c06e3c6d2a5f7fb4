"""The embedded way: concepts by names, selection by rank, an answer in the sources' own words.

Nothing is generated. The answer is made of the sentences that answer best, quoted as they stand;
where none answers well enough, there is no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tgraph.answer.base import Draft, Notes
from tgraph.answer.part_answers import quoted_parts
from tgraph.model import (
    Agent,
    Candidate,
    Evidence,
    Rejected,
    Retrieval,
    Selected,
    Selection,
)
from tgraph.models.base import CallSink
from tgraph.resources import load_weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import match_names
from tgraph.retrieve.reasons import UNREAD, explain, explain_selection, is_unread
from tgraph.retrieve.text.lexical import STOP_WORDS, words
from tgraph.retrieve.text.sentence_ranking import places_overlap
from tgraph.version import __version__

LONGEST_NAME = 6
"""Words in the longest name that is looked for in a question."""

_QuotePlace = tuple[str, int, int, int]
_WORDS = re.compile(r"[^\s,;:.!?()\[\]\"“”«»。，？！、；：]+")


class EmbeddedConcepts:
    """Names from the graph contained in the question, followed by the remaining telling words."""

    agent = Agent("method", "embedded-concepts", __version__)

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        text = " ".join([*(turn.question for turn in question.needed_turns[-1:]), question.text])
        tokens = _WORDS.findall(text)
        graph_names, name_positions = self._known_names(tokens, context)
        remaining_words = [
            t for i, t in enumerate(tokens) if i not in name_positions and _is_telling(t)
        ]
        return tuple(dict.fromkeys([*graph_names, *remaining_words]))[:8] or (question.text,)

    def _known_names(self, tokens: Sequence[str], context: Context) -> tuple[list[str], set[int]]:
        graph_names: list[str] = []
        used_positions: set[int] = set()
        for size in range(min(LONGEST_NAME, len(tokens)), 0, -1):
            for start in range(len(tokens) - size + 1):
                span = range(start, start + size)
                if not used_positions.isdisjoint(span) or not _is_telling(tokens[span[0]]):
                    continue
                name = re.sub(r"['’]s?$", "", " ".join(tokens[start : start + size]))
                if _is_telling(tokens[span[-1]]) and match_names(name, context.graph):
                    graph_names.append(name)
                    used_positions.update(span)
        return graph_names, used_positions


def _is_telling(token: str) -> bool:
    token_words = words(token)
    return bool(token_words) and not all(word in STOP_WORDS for word in token_words)


class EmbeddedSelector:
    """Selects candidates in the order of the retrieval, at most two edges of one sentence."""

    agent = Agent("method", "embedded-selection", __version__)
    step = "EdgeSelecting"

    SHARE = 0.1
    """Candidates below this share of the best score are not chosen."""

    MOST = 14

    def select(
        self, question: Question, retrieval: Retrieval, limit: int, sink: CallSink
    ) -> Selection:
        selection_limit = min(limit, self.MOST)
        best = max((candidate.score for candidate in retrieval.candidates), default=0.0)
        selected: list[Selected] = []
        rejected: list[Rejected] = []
        selections_by_place: dict[_QuotePlace, int] = {}
        for candidate in retrieval.candidates:
            reason = self._find_objection(
                candidate, best, len(selected), selection_limit, selections_by_place
            )
            if reason:
                rejected.append(Rejected(candidate, reason))
                continue
            for place in map(_place_key, candidate.evidence[:1]):
                selections_by_place[place] = selections_by_place.get(place, 0) + 1
            why = explain_selection(candidate.reasons)
            selected.append(Selected(len(selected), candidate, why, candidate.score))
        return Selection(tuple(selected), tuple(rejected))

    def _find_objection(
        self,
        candidate: Candidate,
        best: float,
        count: int,
        most: int,
        shown: dict[_QuotePlace, int],
    ) -> str:
        """Return the first reason against selecting the candidate; empty for none.

        The limit is checked first: once it is reached, it is the reason for all that follow."""
        if count >= most:
            return explain("selection-limit", limit=most)
        if is_unread(candidate.reasons):
            return UNREAD
        if candidate.score < self.SHARE * best:
            return explain("score-share", score=candidate.score, share=self.SHARE, best=best)
        if candidate.evidence and shown.get(_place_key(candidate.evidence[0]), 0) >= 2:
            return explain("same-sentence")
        return ""


@dataclass(frozen=True, slots=True)
class _QuotedSentence:
    """A source sentence with the selections it supports; ``others`` are places with identical
    wording."""

    evidence: Evidence
    selections: tuple[Selected, ...]
    score: float
    others: tuple[Evidence, ...] = ()

    @property
    def text(self) -> str:
        return " ".join(self.evidence.quote.split())


class EmbeddedSynthesiser:
    """Quotes the best-answering sentences: top sentences first, further sentences after, each
    group in text order.

    If the reader's confidence is below ``least_confidence``, no answer is composed; the best
    sentences are noted as nearest. Without a reader, the best score is compared with
    ``LEAST_SCORE`` instead."""

    agent = Agent("method", "embedded-synthesis", __version__)

    SENTENCES = 4
    MOST = 5
    NEAREST = 2
    (LEAST_SCORE,) = load_weights("answer")
    """The score that the best sentence must have where no reader read (``weights.toml``)."""
    TIE = 0.0006
    """Sentences whose scores differ by less answer together."""
    CLOSE, CLOSE_READ = 0.85, 0.25
    """The share of the best score that another sentence must have, by rank or as it was read."""

    def __init__(self, least_confidence: float = 0.0) -> None:
        self._least_confidence = least_confidence

    def synthesise(
        self, question: Question, selection: Selection, notes: Notes, sink: CallSink
    ) -> Iterator[Draft]:
        if selection.parts:
            yield from quoted_parts(selection, notes)
            return
        quotations, judgement = _collect_quotations(selection), selection.judgement
        confidence = judgement.confidence if judgement is not None else None
        best = quotations[0].score if quotations else 0.0
        worth, least = (
            (best, self.LEAST_SCORE) if confidence is None else (confidence, self._least_confidence)
        )
        if not quotations or worth < least:
            notes.drop("sentences that do not answer well enough", len(quotations))
            notes.nearest += [quotation.evidence for quotation in quotations[: self.NEAREST]]
            return
        close = self.CLOSE if judgement is None else self.CLOSE_READ
        for quotation in self._choose_quotations(quotations, close):
            places = (quotation.evidence.iri, *(duplicate.iri for duplicate in quotation.others))
            yield Draft(quotation.text, quotation.selections, places)

    def _choose_quotations(
        self, quotations: Sequence[_QuotedSentence], close: float
    ) -> list[_QuotedSentence]:
        best = quotations[0].score
        best_quotations = [q for q in quotations if q.score >= best - self.TIE][: self.MOST]
        runners_up = [q for q in quotations if best - self.TIE > q.score >= best * close]
        chosen = best_quotations + runners_up[: max(0, self.SENTENCES - len(best_quotations))]
        first = {q.evidence.document: i for i, q in reversed(list(enumerate(chosen)))}
        return sorted(
            chosen,
            key=lambda q: (
                q not in best_quotations,
                first[q.evidence.document],
                q.evidence.page or 0,
                q.evidence.start,
            ),
        )


def _collect_quotations(selection: Selection) -> list[_QuotedSentence]:
    """Return distinct quoted sentences behind the selection, best first; among overlapping
    sentences, the best.

    An edge contributes the sentence that led to its selection, other items contribute each
    ranked sentence."""
    by_place: dict[_QuotePlace, tuple[Evidence, list[Selected]]] = {}
    for selected in selection.selected:
        evidence = selected.candidate.evidence
        ranked = [place for place in evidence if place.relevance is not None]
        for place in ranked or (evidence[:1] if selected.item.kind == "edge" else ()):
            by_place.setdefault(_place_key(place), (place, []))[1].append(selected)
    quotations = [
        _QuotedSentence(
            place,
            tuple(selections),
            max(s.score for s in selections) if place.relevance is None else place.relevance,
        )
        for place, selections in by_place.values()
    ]
    return _merge_quotations(sorted(quotations, key=lambda q: (-q.score, q.evidence.iri)))


def _merge_quotations(quotations: Iterable[_QuotedSentence]) -> list[_QuotedSentence]:
    """Return distinct wordings, each listing all its places; drop overlapping text passages."""
    by_wording: dict[str, _QuotedSentence] = {}
    for quotation in quotations:
        wording = quotation.text.casefold()
        if any(
            places_overlap(quotation.evidence, earlier.evidence) for earlier in by_wording.values()
        ):
            continue
        if wording in by_wording:
            first = by_wording[wording]
            selections = {s.index: s for s in (*first.selections, *quotation.selections)}
            duplicates = (*first.others, quotation.evidence)
            by_wording[wording] = replace(
                first, selections=tuple(selections.values()), others=duplicates
            )
        else:
            by_wording[wording] = quotation
    return list(by_wording.values())


def _place_key(evidence: Evidence) -> tuple[str, int, int, int]:
    return evidence.document, evidence.page or 0, evidence.start, evidence.end
