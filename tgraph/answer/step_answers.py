"""Answers to question steps: a name from the best-answering sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tgraph.model import Candidate, Evidence, Retrieval
from tgraph.resources import load_weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import triples_of
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.text.answer_type import NamedAnswer, rate_kind_fit
from tgraph.retrieve.text.evidence_ranking import sharpen_evidence
from tgraph.retrieve.text.lexical import term_set
from tgraph.retrieve.text.lexicon import count_frequencies
from tgraph.retrieve.text.page_sentences import read_surroundings
from tgraph.retrieve.text.sentence_ranking import gather_sentences, place_of, stated_in

READ = 5
"""Sentences in which the answer of a step is looked for."""

FIT, _, RARITY = load_weights("bridge")
_VAGUE = frozenset({"topic", "group"})


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """A step answer: name, evidence place, place ``relevance``, and ``fit`` (at most 0), the
    likelihood of the name being the requested answer.

    ``terms`` are the terms of the name."""

    text: str
    place: Evidence
    relevance: float
    fit: float
    terms: frozenset[str]

    @property
    def score(self) -> float:
        return self.relevance + self.fit

    def is_meant_in(self, sentence: Evidence, context: Context) -> bool:
        """Return whether the sentence, or a heading above, mentions the name."""
        stands = read_surroundings(sentence, context)
        surrounding_text = " ".join((stands.text, sentence.title, *stands.context))
        return not self.terms.isdisjoint(term_set(surrounding_text))


def best_sentences(question: Question, retrieval: Retrieval, context: Context) -> list[Evidence]:
    """Return retrieved sentences with relevance, best-answering first."""
    candidates = sharpen_evidence(question, retrieval, context).candidates
    ranked = {
        place_of(e): e for c in candidates for e in c.evidence if e.relevance is not None
    }.values()
    return sorted(ranked, key=lambda e: (-(e.relevance or 0.0), e.iri))


def place_of_answer(
    answer: str, question: Question, cited: Candidate, context: Context
) -> Evidence | None:
    """Return the cited sentence sharing most words with the answer; of equals, the best
    sentence."""
    answer_terms = term_set(answer)
    [candidate] = sharpen_evidence(question, Retrieval((cited,), total=0), context).candidates
    return max(
        candidate.evidence, key=lambda e: len(answer_terms & term_set(e.quote)), default=None
    )


def answers_in(
    question: str, noun: str, sentences: Sequence[Evidence], context: Context
) -> list[StepAnswer]:
    """Return possible answer names from the best sentences, likeliest first; skip names
    contained in the question."""
    question_terms, counts = term_set(question), count_frequencies(context)
    answers_by_iri: dict[str, StepAnswer] = {}
    for sentence in sentences[:READ]:
        for named_answer in named_in(sentence, context):
            if (
                not named_answer.terms
                or named_answer.kind in _VAGUE
                or not named_answer.terms.isdisjoint(question_terms)
            ):
                continue
            rarity = max(map(counts.idf, named_answer.terms))
            fit = FIT * (rate_kind_fit(noun, named_answer.kind) - 1.0) + RARITY * (rarity - 1.0)
            answer = StepAnswer(
                named_answer.label, sentence, sentence.relevance or 0.0, fit, named_answer.terms
            )
            if (
                named_answer.iri not in answers_by_iri
                or answers_by_iri[named_answer.iri].score < answer.score
            ):
                answers_by_iri[named_answer.iri] = answer
    return sorted(answers_by_iri.values(), key=lambda each: (-each.score, each.text))


def named_in(sentence: Evidence, context: Context) -> Sequence[NamedAnswer]:
    """Return names mentioned by edges stated in the sentence."""
    stated_edges = stated_in([sentence.chunk], context).get(sentence.chunk, ())
    inside = [edge for start, edge in stated_edges if sentence.start <= start < sentence.end]
    triples = list(triples_of(inside, context).values())
    edges = {edge.iri: edge for edge in with_labels(context.graph, triples)}
    plain = replace(sentence, relevance=None)
    passages = gather_sentences(edges, dict.fromkeys(edges, (plain,)), context)
    return [named_answer for passage in passages.values() for named_answer in passage.named]
