"""Passages: the distinct sentences behind edges, and how well each answers a question.

A sentence is read with what stands around it: the names that its edges resolved its pronouns to,
the title of its document, its heading, the sentences before it and the one after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.model import Edge, Evidence
from tgraph.resources import weights
from tgraph.retrieve.base import Context
from tgraph.retrieve.corpus import follow, heading, lead
from tgraph.retrieve.inquiry import Inquiry, matched, roots_of
from tgraph.retrieve.lexical import term_set
from tgraph.retrieve.meaning import Meaning
from tgraph.retrieve.sought import Named

Place = tuple[str, int | None, int, int]

MEANING, ASKED, SETTING, WORDS, NAMES, KIND = weights("sentence")
"""The shares of a passage's score."""

ROW, FRAGMENT = 0.07, 0.1
"""What a row of a table and a piece that is no sentence, such as a heading, lose."""

TITLE, BEFORE, AFTER, FAR = 0.95, 0.95, 0.6, 0.35
"""What a term counts that only the title or heading has, the sentence before, the one after, or
one of the sentences farther before."""

_ROW = re.compile(r"^[^:\n]{1,40}: [^;\n]*; [^:\n]{1,40}: ")
_MENTIONS = "mentions"
_ENDS = frozenset(".!?:;,\"'”’)…。！？»")


@dataclass(frozen=True, slots=True)
class Wording:
    """The terms of a passage by where they stand; it depends on no question."""

    quote: frozenset[str]
    labels: frozenset[str]
    title: frozenset[str]
    around: Mapping[str, float]
    roots: frozenset[str]
    is_row: bool
    is_prose: bool


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a document with the edges that rest on it and the things it speaks of."""

    place: Place
    evidence: Evidence
    edges: tuple[str, ...]
    named: tuple[Named, ...]
    wording: Wording

    @property
    def quote(self) -> str:
        return self.evidence.quote


@dataclass(frozen=True, slots=True)
class Rating:
    """How well a passage answers, 0 to 1, and how similar it is to the question."""

    score: float
    similar: float


Worths = dict[Place, tuple[Passage, float]]
"""What the words of passages have been found to be worth to one question."""


def overlap(one: Evidence, other: Evidence) -> bool:
    """Whether they share characters of a text."""
    same = (one.document, one.page) == (other.document, other.page)
    return same and one.start < other.end and other.start < one.end


def place_of(evidence: Evidence) -> Place:
    return evidence.document, evidence.page, evidence.start, evidence.end


# --- reading --------------------------------------------------------------------------------------


def gather(
    edges: Mapping[str, Edge], evidence: Mapping[str, Sequence[Evidence]], context: Context
) -> dict[Place, Passage]:
    """The distinct sentences behind the edges."""
    behind: dict[Place, tuple[Evidence, list[str]]] = {}
    for iri in edges:
        for item in evidence.get(iri, ()):
            behind.setdefault(place_of(item), (item, []))[1].append(iri)
    memory = context.remembered("passages", 20_000)
    found = {}
    for place, (item, iris) in behind.items():
        read = partial(_passage, place, item, [edges[iri] for iri in iris], context)
        found[place] = memory.get((place, tuple(iris)), read)
    return found


def _passage(place: Place, evidence: Evidence, edges: Sequence[Edge], context: Context) -> Passage:
    ends = {end: label for edge in edges for end, label in _ends(edge)}
    named = tuple(
        Named(iri, label, term_set(label), _kind(iri, context))
        for iri, label in ends.items()
        if any(map(str.isupper, label))
    )
    return Passage(
        place,
        evidence,
        tuple(edge.iri for edge in edges),
        named,
        _wording(evidence, edges, context),
    )


def _ends(edge: Edge) -> Iterable[tuple[str, str]]:
    yield edge.subject.value, edge.subject_label
    if isinstance(edge.object, NamedNode):
        yield edge.object.value, edge.object_label


def _kind(entity: str, context: Context) -> str:
    """The kind of an entity as its type says; empty where it has none."""

    def read() -> str:
        quads = context.store.match(NamedNode(entity), v.RDF_TYPE, None, v.KNOWLEDGE_GRAPH)
        found = sorted(q.object.value for q in quads if isinstance(q.object, NamedNode))
        kinds = [iri.rpartition(":")[2] for iri in found if iri.startswith(v.type_iri(""))]
        return kinds[0] if kinds else ""

    kind: str = context.remembered("kinds", 50_000).get(entity, read)
    return kind


def _wording(evidence: Evidence, edges: Iterable[Edge], context: Context) -> Wording:
    quote = term_set(evidence.quote)
    said = (term_set(e.text) for e in edges if e.predicate_label != _MENTIONS)
    text = " ".join(evidence.quote.split())
    is_row = bool(_ROW.match(text))
    return Wording(
        quote=quote,
        labels=frozenset().union(*said),
        title=term_set(f"{evidence.title} {heading(evidence, context.texts)}"),
        around={} if is_row else _around(evidence, context),
        roots=roots_of(quote),
        is_row=is_row,
        is_prose=text[-1:] in _ENDS or ": " in text,
    )


def _around(evidence: Evidence, context: Context) -> dict[str, float]:
    found: dict[str, float] = {}
    for place, sentence in enumerate(lead(evidence, context.texts)):
        for term in term_set(sentence):
            found.setdefault(term, FAR if place else BEFORE)
    for term in term_set(follow(evidence, context.texts)):
        found[term] = max(AFTER, found.get(term, 0.0))
    return found


# --- rating ---------------------------------------------------------------------------------------


def meaning_of(inquiry: Inquiry, context: Context) -> Meaning:
    """What the passages' likeness to the question is measured with."""
    question = context.embed([inquiry.text, inquiry.asked or inquiry.text])
    return Meaning(context.vectors["edge"], context.vectors["chunk"], question)


def rate(
    passages: Iterable[Passage],
    inquiry: Inquiry,
    meaning: Meaning,
    known: Worths | None = None,
) -> dict[Place, Rating]:
    """How well each of the passages answers.

    ``known`` keeps what their words are worth to this inquiry, for the next time they are rated.
    """
    wanted = list(passages)
    worths, words = {} if known is None else known, Words(inquiry)
    settings = meaning.of_chunks({passage.evidence.chunk for passage in wanted})
    found = {}
    for passage in wanted:
        place = passage.place
        read, worth = worths.get(place, (None, 0.0))
        if read is not passage:  # more edges may rest on the sentence than before
            worth = words.worth(passage) - _toll(passage.wording)
            worths[place] = passage, worth
        similar, asked = meaning.of_sentence(passage.quote, passage.edges)
        setting = settings.get(passage.evidence.chunk, 0.0)
        points = MEANING * similar + ASKED * asked + SETTING * setting
        found[place] = Rating(max(0.0, points + worth), similar)
    return found


class Words:
    """What the words of passages are worth to an inquiry: the part of a score that needs no
    vector."""

    def __init__(self, inquiry: Inquiry) -> None:
        self._inquiry = inquiry
        self._names = _only(inquiry.weights, inquiry.names)

    def worth(self, passage: Passage) -> float:
        """The part of the passage's score."""
        inquiry, wording = self._inquiry, passage.wording
        credits = {term: credit(term, wording) for term in inquiry.weights}
        spoken = [named for named in passage.named if not named.terms.isdisjoint(wording.quote)]
        quote = " ".join(passage.quote.split())
        held = inquiry.sought.held_by(quote, spoken, inquiry.weights.keys())
        return (
            WORDS * share(inquiry.weights, credits)
            + NAMES * share(self._names, _present(credits))
            + KIND * held
        )


def credit(term: str, wording: Wording) -> float:
    """How well a passage and what stands around it match a term."""
    best = said(term, wording)
    if best < TITLE and term in wording.title:
        best = TITLE
    return max(best, wording.around.get(term, 0.0))


def said(term: str, wording: Wording) -> float:
    """How well the sentence itself matches a term, by its words or by what they stand for."""
    return 1.0 if term in wording.labels else matched(term, wording.quote, wording.roots)


def share(weights: Mapping[str, float], credits: Mapping[str, float]) -> float:
    """The share of what the terms say, 0 to 1, weighted by how much each of them tells."""
    total = sum(weights.values())
    return sum(w * credits[t] for t, w in weights.items()) / total if total else 0.0


def _only(weights: Mapping[str, float], names: frozenset[str]) -> dict[str, float]:
    return {term: weight for term, weight in weights.items() if term in names}


def _present(credits: Mapping[str, float]) -> dict[str, float]:
    return {term: 1.0 if worth else 0.0 for term, worth in credits.items()}


def _toll(wording: Wording) -> float:
    if wording.is_row:
        return ROW
    return 0.0 if wording.is_prose else FRAGMENT
