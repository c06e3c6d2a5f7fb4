"""Sentences behind candidates, and how well each answers a question.

A sentence is read with what stands around it: the names that its edges resolved its pronouns to,
the title of its document, its heading, the sentences before it and the one after.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.extract.entity_types import kind_of_class
from tgraph.model import Candidate, Edge, Evidence, Retrieval
from tgraph.resources import weights
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.entity_matching import triples_of
from tgraph.retrieve.labels import with_labels
from tgraph.retrieve.reports import grounded
from tgraph.retrieve.text.answer_type import NamedAnswer
from tgraph.retrieve.text.lexicon import (
    ENGLISH,
    Lexicon,
    compound_parts,
    frequencies,
    is_pair,
    lexicon_of,
)
from tgraph.retrieve.text.page_sentences import QuoteSurroundings, surroundings
from tgraph.retrieve.text.question_analysis import AnalysedQuestion, analyse, matched, roots_of
from tgraph.retrieve.text.similarity import Similarity
from tgraph.retrieve.text.word_similarity import WordSimilarity

if TYPE_CHECKING:
    from tgraph.retrieve.text.similarity import Vector

Place = tuple[str, int | None, int, int]

WEIGHTS = weights("sentence")
"""What each of ``SentenceFeatures`` counts."""

WORD_WEIGHTS = weights("sentence_words")
"""The same for a question of which vectors tell nothing."""

LEAST_SHARE, LACKING = weights("least_words")
"""The share of what the question's words tell that a passage must have for such a question, and
what the score of one counts that has less."""

PART, APART = 0.7, 0.5
"""What a word counts that is part of a compound, and two Chinese characters that stand apart."""

TITLE, BEFORE, AFTER, FAR = 0.95, 0.95, 0.6, 0.35
"""What a term counts that only the title or heading has, the sentence before, the one after, or
one of the sentences farther before."""

_MENTIONS = "mentions"
_SAYING = frozenset(("prose", "item", "code"))
ASIDE = frozenset(("reference", "navigation", "licence"))
"""Kinds of segments that surround a text and aren't it."""
_ASKS = ("?", "？")
_ENDS = frozenset(".!?:;,\"'”’)…。！？»")


Section = tuple[str, int, tuple[str, ...]]
"""A document, a page of it, and the headings that something there stands under."""

ASKED_ABOVE = 0.9
"""What the score of a heading that asks counts in that of a sentence under it."""


@dataclass(frozen=True, slots=True)
class PassageWords:
    """The terms of a passage by where they stand; it depends on no question."""

    quote: frozenset[str]
    labels: frozenset[str]
    title: frozenset[str]
    around: Mapping[str, float]
    roots: frozenset[str]
    is_row: bool
    is_prose: bool
    is_aside: bool
    is_heading: bool
    section: Section
    parts: frozenset[str] = frozenset()
    """What the compounds of the quote begin and end with."""


@dataclass(frozen=True, slots=True)
class SentencePassage:
    """A sentence of a document with the edges that rest on it and the things it speaks of."""

    place: Place
    evidence: Evidence
    edges: tuple[str, ...]
    named: tuple[NamedAnswer, ...]
    wording: PassageWords

    @property
    def quote(self) -> str:
        return self.evidence.quote


class SentenceFeatures(NamedTuple):
    """What a passage is ranked by. All but the flags are 0 to 1, cosines -1 to 1.

    ``similar`` and ``asked`` are its likeness to the question with and without its names,
    ``setting`` that of its chunk; ``words`` the share of the question's words that it or what
    stands around it has, weighted by what they tell, ``said`` the share that itself has, ``names``
    the share of the names; ``kind`` whether it holds what is asked for. ``row`` is 1 for a row of a
    table, ``fragment`` for what is no sentence, ``aside`` for a bibliography, a menu or a licence.
    """

    similar: float
    asked: float
    setting: float
    words: float
    said: float
    names: float
    kind: float
    row: float
    fragment: float
    aside: float

    @property
    def score(self) -> float:
        return float(sum(map(mul, WEIGHTS, self)))


@dataclass(frozen=True, slots=True)
class Score:
    """How well a passage answers, 0 to 1, and how similar it is to the question."""

    score: float
    similar: float


LexicalFeatures = dict[Place, tuple[SentencePassage, tuple[float, ...]]]
"""What the words of passages have been found to tell to one question."""


def overlap(one: Evidence, other: Evidence) -> bool:
    """Whether they share characters of a text."""
    same = (one.document, one.page) == (other.document, other.page)
    return same and one.start < other.end and other.start < one.end


def place_of(evidence: Evidence) -> Place:
    return evidence.document, evidence.page, evidence.start, evidence.end


# --- reading ---


def gather(
    edges: Mapping[str, Edge], evidence: Mapping[str, Sequence[Evidence]], context: Context
) -> dict[Place, SentencePassage]:
    """The distinct sentences behind the edges."""
    behind: dict[Place, tuple[Evidence, list[str]]] = {}
    for iri in edges:
        for item in evidence.get(iri, ()):
            behind.setdefault(place_of(item), (item, []))[1].append(iri)
    memory = context.remembered("passages", 20_000)
    missing = [
        (p, tuple(iris)) for p, (_, iris) in behind.items() if (p, tuple(iris)) not in memory
    ]
    edges_to_read = (edges[iri] for _, iris in missing for iri in iris)
    entities = list(dict.fromkeys(end for edge in edges_to_read for end, _ in _ends(edge)))
    _aliases(entities, context)  # of all entities at once
    _kinds(entities, context)
    found = {}
    for place, (item, iris) in behind.items():
        read = partial(_passage, place, item, [edges[iri] for iri in iris], context)
        found[place] = memory.get((place, tuple(iris)), read)
    return found


def _passage(
    place: Place, evidence: Evidence, edges: Sequence[Edge], context: Context
) -> SentencePassage:
    lexicon = lexicon_of(evidence, context)
    ends = {end: label for edge in edges for end, label in _ends(edge)}
    named = tuple(
        NamedAnswer(
            iri, label, _terms_of(iri, label, context, lexicon), _kinds([iri], context)[iri]
        )
        for iri, label in ends.items()
        if any(map(str.isupper, label))
    )
    return SentencePassage(
        place,
        evidence,
        tuple(edge.iri for edge in edges),
        named,
        _wording(evidence, edges, context, lexicon),
    )


def _ends(edge: Edge) -> Iterable[tuple[str, str]]:
    yield edge.subject.value, edge.subject_label
    if isinstance(edge.object, NamedNode):
        yield edge.object.value, edge.object_label


def _kinds(entities: Sequence[str], context: Context) -> dict[str, str]:
    """The kinds of the entities as their types say; empty for an entity without a type."""

    def read(missing: list[str]) -> dict[str, str]:
        types = context.graph.statements.types(missing)
        return {entity: kind_of(types.get(entity, ())) for entity in missing}

    def kind_of(types: Sequence[str]) -> str:
        kinds = [iri.rpartition(":")[2] for iri in types if iri.startswith(v.type_iri(""))]
        return kinds[0] if kinds else next(filter(None, map(named, types)), "")

    def named(kind: str) -> str:
        """What a class of an ontology stands for."""
        label = context.graph.statements.labels([kind]).get(kind)
        return kind_of_class(label) if label else ""

    return context.remembered("kinds", 50_000).get_all(entities, read)


def _aliases(entities: Sequence[str], context: Context) -> dict[str, list[str]]:
    def read(missing: list[str]) -> dict[str, list[str]]:
        found = context.graph.statements.aliases(missing)
        return {entity: found.get(entity, []) for entity in missing}

    return context.remembered("aliases", 50_000).get_all(entities, read)


def _terms_of(
    entity: str, label: str, context: Context, lexicon: Lexicon = ENGLISH
) -> frozenset[str]:
    """The terms of an entity's label, and of its names that are told in other words."""
    term_set = lexicon.term_set

    def read() -> frozenset[str]:
        own = term_set(label)
        others = map(term_set, _aliases([entity], context)[entity])
        return own.union(*(other for other in others if other.isdisjoint(own)))

    key = entity if lexicon is ENGLISH else (entity, lexicon.code)
    found: frozenset[str] = context.remembered("terms of names", 50_000).get(key, read)
    return found


def _wording(
    evidence: Evidence, edges: Iterable[Edge], context: Context, lexicon: Lexicon
) -> PassageWords:
    place, term_set = surroundings(evidence, context), lexicon.term_set
    text = place.text or " ".join(evidence.quote.split())
    quote = term_set(text)
    stating = [e for e in edges if e.predicate_label != _MENTIONS]
    ends = {end: label for edge in stating for end, label in _ends(edge)}
    said = [term_set(e.text) for e in stating]
    said += (_terms_of(iri, label, context, lexicon) for iri, label in ends.items())
    is_row = place.kind == "row"
    return PassageWords(
        quote=quote,
        labels=frozenset().union(*said),
        title=term_set(" ".join((evidence.title, *place.context))),
        around={} if is_row else _around(place, lexicon),
        roots=roots_of(quote),
        is_row=is_row,
        is_prose=place.kind in _SAYING and (text[-1:] in _ENDS or place.kind != "prose"),
        is_aside=place.kind in ASIDE,
        is_heading=place.is_heading,
        section=(
            evidence.document,
            evidence.page or 0,
            (*place.headings, place.text) if place.is_heading else place.headings,
        ),
        parts=lexicon.parts(quote),
    )


def _around(place: QuoteSurroundings, lexicon: Lexicon) -> dict[str, float]:
    found: dict[str, float] = {}
    term_set = lexicon.term_set
    for far, sentence in enumerate(place.before):
        for term in term_set(sentence):
            found.setdefault(term, FAR if far else BEFORE)
    for term in term_set(place.after):
        found[term] = max(AFTER, found.get(term, 0.0))
    return found


# --- rating ---


def meaning_of(
    inquiry: AnalysedQuestion, context: Context, vector: Vector | None = None
) -> Similarity:
    """What the passages' likeness to the question is measured with. A ``vector`` stands for the
    question, with and without its names, so that neither is embedded."""
    if inquiry.by_words:
        return WordSimilarity(inquiry, context, stated_in)
    if vector is None:
        question = context.embed([inquiry.text, inquiry.asked or inquiry.text])
    else:
        question = vector[None].repeat(2, 0)
    return Similarity(context.vectors["edge"], context.vectors["chunk"], question)


def likeness_to(texts: Sequence[str], context: Context) -> Similarity:
    """The likeness to the first of two texts, with that to the other, or by the first's words."""
    inquiry = analyse(texts[0], frequencies(context))
    if inquiry.by_words:
        return WordSimilarity(inquiry, context, stated_in)
    return Similarity(context.vectors["edge"], context.vectors["chunk"], context.embed(texts))


def rate(
    passages: Iterable[SentencePassage],
    inquiry: AnalysedQuestion,
    meaning: Similarity,
    known: LexicalFeatures | None = None,
) -> dict[Place, Score]:
    """How well each of the passages answers. A heading doesn't, being context of what stands under
    it: where it asks, as in a list of frequent questions, that has most of its score.

    ``known`` keeps what their words tell to this inquiry, for the next time they are rated.
    """
    wanted = list(passages)
    found = features_of(wanted, inquiry, meaning, known)
    asking = {
        passage.wording.section: scored(found[passage.place], inquiry)
        for passage in wanted
        if passage.wording.is_heading and passage.quote.rstrip().endswith(_ASKS)
    }
    ratings: dict[Place, Score] = {}
    for passage in wanted:
        features, score = found[passage.place], 0.0
        if not passage.wording.is_heading:
            alone = scored(features, inquiry)
            above = asking.get(passage.wording.section, 0.0)
            score = max(0.0, alone, ASKED_ABOVE * above + (1 - ASKED_ABOVE) * alone)
        ratings[passage.place] = Score(score, features.similar)
    return ratings


def scored(features: SentenceFeatures, inquiry: AnalysedQuestion) -> float:
    """How well a passage answers by its features, or by its words alone."""
    if not inquiry.by_words:
        return features.score
    score = float(sum(map(mul, WORD_WEIGHTS, features)))
    return score if features.words >= LEAST_SHARE else score * LACKING


def features_of(
    passages: Iterable[SentencePassage],
    inquiry: AnalysedQuestion,
    meaning: Similarity,
    known: LexicalFeatures | None = None,
) -> dict[Place, SentenceFeatures]:
    """What each of the passages is ranked by; ``known`` is as of ``rate``."""
    wanted = list(passages)
    lexical, words = {} if known is None else known, Words(inquiry)
    settings = meaning.of_chunks({passage.evidence.chunk for passage in wanted})
    found = {}
    for passage in wanted:
        place = passage.place
        read, told = lexical.get(place, (None, ()))
        if read is not passage:  # more edges may rest on the sentence than before
            told = words.features(passage)
            lexical[place] = passage, told
        likeness = meaning.of_sentence(passage.quote, passage.edges)
        setting = settings.get(passage.evidence.chunk, 0.0)
        found[place] = SentenceFeatures(*likeness, setting, *told)
    return found


class Words:
    """What the words of passages tell to an inquiry: the part of the features that needs no
    vector."""

    def __init__(self, inquiry: AnalysedQuestion) -> None:
        self._inquiry = inquiry
        weights = inquiry.weights.items()
        self._names = {term: weight for term, weight in weights if term in inquiry.names}

    def features(self, passage: SentencePassage) -> tuple[float, ...]:
        """Those of the passage, from ``words`` on."""
        inquiry, wording = self._inquiry, passage.wording
        own = {term: said(term, wording) for term in inquiry.weights}
        credits = {term: credit(term, wording) for term in inquiry.weights}
        spoken = [named for named in passage.named if not named.terms.isdisjoint(wording.quote)]
        quote = " ".join(passage.quote.split())
        return (
            share(inquiry.weights, credits),
            share(inquiry.weights, own),
            share(self._names, {term: float(worth > 0) for term, worth in credits.items()}),
            inquiry.sought.held_by(quote, spoken, inquiry.weights.keys()),
            float(wording.is_row),
            float(not wording.is_row and not wording.is_prose),
            float(wording.is_aside),
        )


def credit(term: str, wording: PassageWords) -> float:
    """How well a passage and what stands around it match a term."""
    best = said(term, wording)
    if best < TITLE and term in wording.title:
        best = TITLE
    return max(best, wording.around.get(term, 0.0))


def said(term: str, wording: PassageWords) -> float:
    """How well the sentence itself matches a term, by its words or by what they stand for."""
    if term in wording.labels:
        return 1.0
    found = matched(term, wording.quote, wording.roots)
    if found < PART and wording.parts and _is_part(term, wording):
        return PART
    if not found and is_pair(term) and wording.quote.issuperset(term):
        return APART
    return found


def _is_part(term: str, wording: PassageWords) -> bool:
    """Whether a term begins or ends a compound of the quote, or the other way round."""
    return term in wording.parts or not wording.quote.isdisjoint(compound_parts(term))


def share(weights: Mapping[str, float], credits: Mapping[str, float]) -> float:
    """The share of what the terms say, 0 to 1, weighted by how much each of them tells."""
    total = sum(weights.values())
    return sum(w * credits[t] for t, w in weights.items()) / total if total else 0.0


_KEPT = 500
"""Chunks of which it is kept, a hundred edges each."""


def stated_in(chunks: Iterable[str], context: Context) -> dict[str, list[tuple[int, str]]]:
    """For each chunk, in the order of their IRIs, the edges that it states as (start, IRI), from
    its beginning on; those that they were merged into are among them."""

    def read(missing: list[str]) -> dict[str, list[tuple[int, str]]]:
        found = context.evidence.stated_in(missing)
        return {chunk: found.get(chunk, []) for chunk in missing}

    return context.remembered("chunks", _KEPT).get_all(sorted(set(chunks)), read)


# --- sharpening ---


KEPT = 6
"""Sentences kept of one candidate."""

_PLACES = 12
"""Places read of one edge."""

_OF_REPORTS = 50
"""Places read of one report among other candidates, the nearest: of 200 the answers of the mode
``local`` to questions on SQuAD's and MuSiQue's texts were no others (``benchmarks.answers``)."""

_OF_CHUNKS = ("chunk", "summary")

ByEdge = Mapping[str, Sequence[Evidence]]


def sharpened(
    question: Question, retrieval: Retrieval, context: Context, vector: Vector | None = None
) -> Retrieval:
    """The retrieval with each candidate's evidence narrowed to its best sentences.

    Where no model reads what was retrieved, its sentences are ranked instead, as those of the graph
    mode are; a candidate keeps the best of them as its evidence, each with its relevance.
    Candidates keep their order; those whose evidence holds no sentence that states an edge keep it
    as it is, without relevance. ``vector`` is as of ``meaning_of``.
    """
    candidates = grounded(retrieval.candidates, context, _OF_REPORTS)
    behind = _evidence_behind(candidates, context)
    relevance = relevance_of(question.text, _by_edge(behind.values()), context, vector)
    narrowed = (_narrowed(each, behind[each.rank], relevance) for each in candidates)
    return replace(retrieval, candidates=tuple(narrowed))


def _narrowed(
    candidate: Candidate, evidence: Sequence[Evidence], relevance: Mapping[Place, float]
) -> Candidate:
    best: dict[Place, Evidence] = {}
    for item in evidence:
        place = place_of(item)
        if place in relevance:
            best.setdefault(place, item)
    ranked = sorted(best, key=lambda place: (-relevance[place], best[place].iri))[:KEPT]
    kept = tuple(replace(best[place], relevance=relevance[place]) for place in ranked)
    return replace(candidate, evidence=kept) if kept else candidate


def _evidence_behind(
    candidates: Sequence[Candidate], context: Context
) -> dict[int, Sequence[Evidence]]:
    """For each candidate the evidence of edges that it holds: a chunk's are those it states, a
    summary's those that the chunks state which it rests on."""
    chunks = {e.chunk for c in candidates if c.item.kind in _OF_CHUNKS for e in c.evidence}
    stated = _stated_in(sorted(chunks), context)
    return {
        c.rank: _stated_by(c, stated) if c.item.kind in _OF_CHUNKS else c.evidence
        for c in candidates
    }


def _stated_by(
    candidate: Candidate, stated: Mapping[str, Sequence[Evidence]]
) -> Sequence[Evidence]:
    """What is stated where the candidate rests, with the way that leads there."""
    found = []
    for place in candidate.evidence:
        inside = (
            e for e in stated.get(place.chunk, ()) if place.start <= e.start and e.end <= place.end
        )
        found += [e if e.via == place.via else replace(e, via=place.via) for e in inside]
    return found


def _stated_in(chunks: Sequence[str], context: Context) -> dict[str, list[Evidence]]:
    stated = stated_in(chunks, context).values()
    edges = list(dict.fromkeys(edge for places in stated for _, edge in places))
    memory = context.remembered("evidence", 50_000)
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    wanted = set(chunks)
    for items in memory.get_all(edges, lambda missing: _read(missing, context)).values():
        for item in items:
            if item.chunk in wanted:
                found[item.chunk].append(item)
    return found


def _read(edges: list[str], context: Context) -> Mapping[str, tuple[Evidence, ...]]:
    return context.evidence.of_edges(edges, _PLACES)


def _by_edge(groups: Iterable[Sequence[Evidence]]) -> dict[str, list[Evidence]]:
    found: defaultdict[str, list[Evidence]] = defaultdict(list)
    for group in groups:
        for item in group:
            found[item.statement].append(item)
    return found


def relevance_of(
    question: str, evidence: ByEdge, context: Context, vector: Vector | None = None
) -> dict[Place, float]:
    """How well each place answers, 0 to 1; places are as of ``place_of``."""
    inquiry = analyse(question, frequencies(context))
    meaning = meaning_of(inquiry, context, vector)
    edges = _labelled(list(evidence), context)
    meaning.learn(edges)
    passages = gather(edges, evidence, context)
    ratings = rate(passages.values(), inquiry, meaning)
    return {place: min(1.0, round(rating.score, 6)) for place, rating in ratings.items()}


def _labelled(edges: list[str], context: Context) -> dict[str, Edge]:
    def read(missing: list[str]) -> dict[str, Edge]:
        known = triples_of(missing, context)
        labelled = with_labels(context.graph, list(known.values()))
        return dict(zip(known, labelled, strict=True))

    found: dict[str, Edge] = context.remembered("labels of edges", 50_000).get_all(edges, read)
    return found
