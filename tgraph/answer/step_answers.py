"""What answers a step of a question: a name in the sentence that answers it best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tgraph.model import Candidate, Evidence, Retrieval
from tgraph.resources import weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import triples_of
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.text.answer_type import NamedAnswer, fits
from tgraph.retrieve.text.lexical import term_set
from tgraph.retrieve.text.lexicon import frequencies
from tgraph.retrieve.text.page_sentences import surroundings
from tgraph.retrieve.text.sentence_ranking import gather, place_of, sharpened, stated_in

READ = 5
"""Sentences in which the answer of a step is looked for."""

FIT, _, RARITY = weights("bridge")
_VAGUE = frozenset({"topic", "group"})


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """A name, and the place that says it: how well that answers (``relevance``), and how likely the
    name is what is asked for (``fit``, at most 0). ``terms`` are those of the name."""

    text: str
    place: Evidence
    relevance: float
    fit: float
    terms: frozenset[str]

    @property
    def score(self) -> float:
        return self.relevance + self.fit

    def is_meant_in(self, sentence: Evidence, context: Context) -> bool:
        """Whether the sentence, or what it stands under, names it."""
        stands = surroundings(sentence, context)
        around = " ".join((stands.text, sentence.title, *stands.context))
        return not self.terms.isdisjoint(term_set(around))


def best_sentences(question: Question, retrieval: Retrieval, context: Context) -> list[Evidence]:
    """The sentences of what was retrieved, those that answer best first, with their relevance."""
    found = sharpened(question, retrieval, context).candidates
    ranked = {place_of(e): e for c in found for e in c.evidence if e.relevance is not None}.values()
    return sorted(ranked, key=lambda e: (-(e.relevance or 0.0), e.iri))


def place_of_answer(
    answer: str, question: Question, cited: Candidate, context: Context
) -> Evidence | None:
    """The sentence of what was cited for an answer that has most of its words; the best of them."""
    wanted = term_set(answer)
    [found] = sharpened(question, Retrieval((cited,), total=0), context).candidates
    return max(found.evidence, key=lambda e: len(wanted & term_set(e.quote)), default=None)


def answers_in(
    question: str, noun: str, sentences: Sequence[Evidence], context: Context
) -> list[StepAnswer]:
    """The names in the best sentences that may answer, the likeliest first; none that the question
    itself names."""
    known, counts = term_set(question), frequencies(context)
    found: dict[str, StepAnswer] = {}
    for sentence in sentences[:READ]:
        for named in named_in(sentence, context):
            if not named.terms or named.kind in _VAGUE or not named.terms.isdisjoint(known):
                continue
            rarity = max(map(counts.idf, named.terms))
            fit = FIT * (fits(noun, named.kind) - 1.0) + RARITY * (rarity - 1.0)
            answer = StepAnswer(named.label, sentence, sentence.relevance or 0.0, fit, named.terms)
            if named.iri not in found or found[named.iri].score < answer.score:
                found[named.iri] = answer
    return sorted(found.values(), key=lambda each: (-each.score, each.text))


def named_in(sentence: Evidence, context: Context) -> Sequence[NamedAnswer]:
    """What the edges that the sentence states speak of by name."""
    stated = stated_in([sentence.chunk], context).get(sentence.chunk, ())
    inside = [edge for start, edge in stated if sentence.start <= start < sentence.end]
    triples = list(triples_of(inside, context).values())
    edges = {edge.iri: edge for edge in with_labels(context.graph, triples)}
    plain = replace(sentence, relevance=None)
    passages = gather(edges, dict.fromkeys(edges, (plain,)), context)
    return [named for passage in passages.values() for named in passage.named]
