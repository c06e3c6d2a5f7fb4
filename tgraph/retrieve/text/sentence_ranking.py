"""Sentences behind candidates, rated by question relevance.

A sentence is read with its surroundings: entity names resolved from pronouns, document title,
heading, preceding sentences, following sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.extract.entity_types import kind_of_class
from tgraph.model import Edge, Evidence
from tgraph.resources import load_weights
from tgraph.retrieve.base import Context
from tgraph.retrieve.text.answer_type import VALUES, NamedAnswer
from tgraph.retrieve.text.lexicon import (
    ENGLISH,
    Lexicon,
    compound_parts,
    count_frequencies,
    is_pair,
    lexicon_of_chunk,
)
from tgraph.retrieve.text.page_sentences import QuoteSurroundings, read_surroundings
from tgraph.retrieve.text.question_analysis import (
    AnalysedQuestion,
    analyse_question,
    rate_match,
    roots_of,
)
from tgraph.retrieve.text.similarity import Similarity
from tgraph.retrieve.text.word_similarity import WordSimilarity

if TYPE_CHECKING:
    from tgraph.retrieve.text.similarity import Vector

SentencePlace = tuple[str, int | None, int, int]

WEIGHTS = load_weights("sentence")
"""What each of ``SentenceFeatures`` counts."""

WORD_WEIGHTS = load_weights("sentence_words")
"""The same for a question of which vectors tell nothing."""

LEAST_SHARE, LACKING = load_weights("least_words")
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


PageSection = tuple[str, int, tuple[str, ...]]
"""A document, a page of it, and the headings that something there stands under."""

HEADING_SHARE = 0.5
"""The share of what a question's words tell that a heading must have to answer itself."""

ASKED_ABOVE = 0.9
"""What the score of a heading that asks counts in that of a sentence under it."""


@dataclass(frozen=True, slots=True)
class PassageWords:
    """Passage terms by location, independent of questions."""

    quote: frozenset[str]
    labels: frozenset[str]
    title: frozenset[str]
    around: Mapping[str, float]
    roots: frozenset[str]
    is_row: bool
    is_prose: bool
    is_aside: bool
    is_heading: bool
    section: PageSection
    parts: frozenset[str] = frozenset()
    """What the compounds of the quote begin and end with."""


@dataclass(frozen=True, slots=True)
class SentencePassage:
    """A document sentence with its supported edges and mentioned entities."""

    place: SentencePlace
    evidence: Evidence
    edges: tuple[str, ...]
    named: tuple[NamedAnswer, ...]
    wording: PassageWords

    @property
    def quote(self) -> str:
        return self.evidence.quote


class SentenceFeatures(NamedTuple):
    """Ranking features of a passage: 0 to 1 except flags; cosines -1 to 1.

    ``similar`` and ``asked`` are similarities to the question with and without names,
    ``setting`` the chunk similarity; ``words`` is the weighted share of question words in
    passage and surroundings, ``said`` the share in the passage alone, ``names`` the share of
    names; ``kind`` tells whether the passage holds the requested kind. ``row`` is 1 for a table
    row, ``fragment`` for incomplete sentences, ``aside`` for a bibliography, menu or licence."""

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
    """An answer score, 0 to 1, with question similarity."""

    score: float
    similar: float


LexicalFeatures = dict[SentencePlace, tuple[SentencePassage, tuple[float, ...]]]
"""What the words of passages have been found to tell to one question."""


def places_overlap(one: Evidence, other: Evidence) -> bool:
    """Return whether two evidence places share text characters."""
    same = (one.document, one.page) == (other.document, other.page)
    return same and one.start < other.end and other.start < one.end


def place_of(evidence: Evidence) -> SentencePlace:
    return evidence.document, evidence.page, evidence.start, evidence.end


# --- reading ---


def gather_sentences(
    edges: Mapping[str, Edge], evidence: Mapping[str, Sequence[Evidence]], context: Context
) -> dict[SentencePlace, SentencePassage]:
    """Return distinct sentences behind the edges, by place."""
    behind: dict[SentencePlace, tuple[Evidence, list[str]]] = {}
    for iri in edges:
        for item in evidence.get(iri, ()):
            behind.setdefault(place_of(item), (item, []))[1].append(iri)
    memory = context.open_cache("passages", 20_000)
    missing = [
        (p, tuple(iris)) for p, (_, iris) in behind.items() if (p, tuple(iris)) not in memory
    ]
    edges_to_read = (edges[iri] for _, iris in missing for iri in iris)
    entities = list(dict.fromkeys(end for edge in edges_to_read for end, _ in _list_ends(edge)))
    _read_aliases(entities, context)  # of all entities at once
    _read_kinds(entities, context)
    passages = {}
    for place, (item, iris) in behind.items():
        read = partial(_build_passage, place, item, [edges[iri] for iri in iris], context)
        passages[place] = memory.load_item((place, tuple(iris)), read)
    return passages


def _build_passage(
    place: SentencePlace, evidence: Evidence, edges: Sequence[Edge], context: Context
) -> SentencePassage:
    lexicon = lexicon_of_chunk(evidence.chunk, context)
    ends = {end: label for edge in edges for end, label in _list_ends(edge)}
    named_answers = tuple(
        NamedAnswer(
            iri, label, _terms_of(iri, label, context, lexicon), _read_kinds([iri], context)[iri]
        )
        for iri, label in ends.items()
        if any(map(str.isupper, label))
    )
    return SentencePassage(
        place,
        evidence,
        tuple(edge.iri for edge in edges),
        named_answers,
        _read_wording(evidence, edges, context, lexicon),
    )


def _list_ends(edge: Edge) -> Iterable[tuple[str, str]]:
    yield edge.subject.value, edge.subject_label
    if isinstance(edge.object, NamedNode):
        yield edge.object.value, edge.object_label


def _read_kinds(entities: Sequence[str], context: Context) -> dict[str, str]:
    """Return entity kinds by IRI, named by their types; empty for untyped entities."""

    def read(missing: list[str]) -> dict[str, str]:
        types = context.graph.statements.types(missing)
        return {entity: kind_of(types.get(entity, ())) for entity in missing}

    def kind_of(types: Sequence[str]) -> str:
        kinds = [iri.rpartition(":")[2] for iri in types if iri.startswith(v.type_iri(""))]
        kinds = sorted(kinds, key=lambda kind: not kind_of_class(kind))
        return kinds[0] if kinds else next(filter(None, map(find_kind, types)), "")

    def find_kind(kind: str) -> str:
        """Return the kind denoted by an ontology class."""
        label = context.graph.statements.labels([kind]).get(kind)
        return kind_of_class(label) if label else ""

    return context.open_cache("kinds", 50_000).get_all(entities, read)


def _read_aliases(entities: Sequence[str], context: Context) -> dict[str, list[str]]:
    def read(missing: list[str]) -> dict[str, list[str]]:
        aliases = context.graph.statements.aliases(missing)
        return {entity: aliases.get(entity, []) for entity in missing}

    return context.open_cache("aliases", 50_000).get_all(entities, read)


def _terms_of(
    entity: str, label: str, context: Context, lexicon: Lexicon = ENGLISH
) -> frozenset[str]:
    """Return the terms of an entity label, plus alias terms sharing no label terms."""
    term_set = lexicon.term_set

    def read() -> frozenset[str]:
        label_terms = term_set(label)
        alias_term_sets = map(term_set, _read_aliases([entity], context)[entity])
        return label_terms.union(
            *(alias_terms for alias_terms in alias_term_sets if alias_terms.isdisjoint(label_terms))
        )

    key = entity if lexicon is ENGLISH else (entity, lexicon.code)
    name_terms: frozenset[str] = context.open_cache("terms of names", 50_000).load_item(key, read)
    return name_terms


def _read_wording(
    evidence: Evidence, edges: Iterable[Edge], context: Context, lexicon: Lexicon
) -> PassageWords:
    place, term_set = read_surroundings(evidence, context), lexicon.term_set
    text = place.text or " ".join(evidence.quote.split())
    quote = term_set(text)
    stating = [e for e in edges if e.predicate_label != _MENTIONS]
    ends = {end: label for edge in stating for end, label in _list_ends(edge)}
    label_terms = [term_set(e.text) for e in stating]
    label_terms += (_terms_of(iri, label, context, lexicon) for iri, label in ends.items())
    is_row = place.kind == "row"
    return PassageWords(
        quote=quote,
        labels=frozenset().union(*label_terms),
        title=term_set(" ".join((evidence.title, *place.context))),
        around={} if is_row else _weigh_surroundings(place, lexicon),
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


def _weigh_surroundings(place: QuoteSurroundings, lexicon: Lexicon) -> dict[str, float]:
    term_weights: dict[str, float] = {}
    term_set = lexicon.term_set
    for far, sentence in enumerate(place.before):
        for term in term_set(sentence):
            term_weights.setdefault(term, FAR if far else BEFORE)
    for term in term_set(place.after):
        term_weights[term] = max(AFTER, term_weights.get(term, 0.0))
    return term_weights


# --- rating ---


def meaning_of(
    inquiry: AnalysedQuestion, context: Context, vector: Vector | None = None
) -> Similarity:
    """Return a similarity measure between question and passages.

    A ``vector`` replaces both question embeddings, with and without names, avoiding embedding
    calls."""
    if inquiry.by_words:
        return WordSimilarity(inquiry, context, stated_in)
    if vector is None:
        question = context.embed([inquiry.text, inquiry.text_without_names or inquiry.text])
    else:
        question = vector[None].repeat(2, 0)
    return Similarity(context.vectors["edge"], context.vectors["chunk"], question)


def likeness_to(texts: Sequence[str], context: Context) -> Similarity:
    """Compare meanings through text embeddings, or by matching words of the first text."""
    inquiry = analyse_question(texts[0], count_frequencies(context))
    if inquiry.by_words:
        return WordSimilarity(inquiry, context, stated_in)
    return Similarity(context.vectors["edge"], context.vectors["chunk"], context.embed(texts))


def rate_passages(
    passages: Iterable[SentencePassage],
    inquiry: AnalysedQuestion,
    meaning: Similarity,
    known: LexicalFeatures | None = None,
) -> dict[SentencePlace, Score]:
    """Rate how well each passage answers.

    Headings score zero, as context of sentences below, unless they answer themselves ("Foreman
    Lecture: Ada Reeve"); where a heading asks, as in lists of frequent questions, sentences below
    take most of the heading score. ``known`` caches lexical features of this inquiry between
    ratings."""
    passage_list = list(passages)
    features_by_place = features_of(passage_list, inquiry, meaning, known)
    asking = {
        passage.wording.section: compute_score(features_by_place[passage.place], inquiry)
        for passage in passage_list
        if passage.wording.is_heading and passage.quote.rstrip().endswith(_ASKS)
    }
    ratings: dict[SentencePlace, Score] = {}
    for passage in passage_list:
        features, score = features_by_place[passage.place], 0.0
        if not passage.wording.is_heading or _answers_itself(passage, inquiry):
            alone = compute_score(features, inquiry)
            above = asking.get(passage.wording.section, 0.0)
            score = max(0.0, alone, ASKED_ABOVE * above + (1 - ASKED_ABOVE) * alone)
        ratings[passage.place] = Score(score, features.similar)
    return ratings


def _answers_itself(passage: SentencePassage, inquiry: AnalysedQuestion) -> bool:
    """Return whether a heading names what is asked about, and a value of the kind asked for."""
    wording, weights = passage.wording, inquiry.weights
    if inquiry.sought.kind not in VALUES or passage.quote.rstrip().endswith(_ASKS):
        return False
    stated = sum(w for t, w in weights.items() if rate_match(t, wording.quote, wording.roots))
    if stated < HEADING_SHARE * inquiry.total:
        return False
    known = frozenset(weights) | inquiry.names
    return inquiry.sought.held_by(passage.quote, (), known) >= 0.5


def compute_score(features: SentenceFeatures, inquiry: AnalysedQuestion) -> float:
    """Return the passage score from all features, or from word features alone."""
    if not inquiry.by_words:
        return features.score
    score = float(sum(map(mul, WORD_WEIGHTS, features)))
    return score if features.words >= LEAST_SHARE else score * LACKING


def features_of(
    passages: Iterable[SentencePassage],
    inquiry: AnalysedQuestion,
    meaning: Similarity,
    known: LexicalFeatures | None = None,
) -> dict[SentencePlace, SentenceFeatures]:
    """Return ranking features of each passage; ``known`` works as in ``rate_passages``."""
    passage_list = list(passages)
    lexical, words = {} if known is None else known, Words(inquiry)
    settings = meaning.of_chunks({passage.evidence.chunk for passage in passage_list})
    features_by_place = {}
    for passage in passage_list:
        place = passage.place
        read, lexical_features = lexical.get(place, (None, ()))
        if read is not passage:  # more edges may rest on the sentence than before
            lexical_features = words.features(passage)
            lexical[place] = passage, lexical_features
        likeness = meaning.of_sentence(passage.quote, passage.edges)
        setting = settings.get(passage.evidence.chunk, 0.0)
        features_by_place[place] = SentenceFeatures(*likeness, setting, *lexical_features)
    return features_by_place


class Words:
    """Lexical passage features for an inquiry: features computed without vectors."""

    def __init__(self, inquiry: AnalysedQuestion) -> None:
        self._inquiry = inquiry
        weights = inquiry.weights.items()
        self._names = {term: weight for term, weight in weights if term in inquiry.names}

    def features(self, passage: SentencePassage) -> tuple[float, ...]:
        """Return lexical passage features, from ``words`` on."""
        inquiry, wording = self._inquiry, passage.wording
        sentence_credits = {term: credit_sentence(term, wording) for term in inquiry.weights}
        credits = {term: credit_term(term, wording) for term in inquiry.weights}
        spoken = [
            named_answer
            for named_answer in passage.named
            if not named_answer.terms.isdisjoint(wording.quote)
        ]
        quote = " ".join(passage.quote.split())
        return (
            weighted_share(inquiry.weights, credits),
            weighted_share(inquiry.weights, sentence_credits),
            weighted_share(
                self._names, {term: float(worth > 0) for term, worth in credits.items()}
            ),
            inquiry.sought.held_by(quote, spoken, inquiry.weights.keys()),
            float(wording.is_row),
            float(not wording.is_row and not wording.is_prose),
            float(wording.is_aside),
        )


def credit_term(term: str, wording: PassageWords) -> float:
    """Return the match credit of a term in a passage, including surroundings."""
    best = credit_sentence(term, wording)
    if best < TITLE and term in wording.title:
        best = TITLE
    return max(best, wording.around.get(term, 0.0))


def credit_sentence(term: str, wording: PassageWords) -> float:
    """Return how well a term matches the sentence itself, by literal words or entity labels."""
    if term in wording.labels:
        return 1.0
    match_score = rate_match(term, wording.quote, wording.roots)
    if match_score < PART and wording.parts and _is_part(term, wording):
        return PART
    if not match_score and is_pair(term) and wording.quote.issuperset(term):
        return APART
    return match_score


def _is_part(term: str, wording: PassageWords) -> bool:
    """Return whether a term begins or ends a quote compound, or conversely."""
    return term in wording.parts or not wording.quote.isdisjoint(compound_parts(term))


def weighted_share(weights: Mapping[str, float], credits: Mapping[str, float]) -> float:
    """Return credited term weight as a share of total term weight, 0 to 1."""
    total = sum(weights.values())
    return sum(w * credits[t] for t, w in weights.items()) / total if total else 0.0


_KEPT = 500
"""Chunks of which it is kept, a hundred edges each."""


def stated_in(chunks: Iterable[str], context: Context) -> dict[str, list[tuple[int, str]]]:
    """Return edges stated in each chunk, chunks sorted by IRI.

    Edges are (start, IRI) pairs from the chunk beginning on, including edges absorbing merged
    edges."""

    def read(missing: list[str]) -> dict[str, list[tuple[int, str]]]:
        edges_by_chunk = context.evidence.stated_in(missing)
        return {chunk: edges_by_chunk.get(chunk, []) for chunk in missing}

    return context.open_cache("chunks", _KEPT).get_all(sorted(set(chunks)), read)
