"""Passages: the distinct sentences behind edges, and how well each answers a question.

A sentence is read with what stands around it: the names that its edges resolved its pronouns to,
the title of its document, its heading and the sentences before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from tgraph.model import Edge, Evidence
from tgraph.retrieve.base import Context
from tgraph.retrieve.corpus import heading, lead
from tgraph.retrieve.inquiry import Inquiry, answers, matched, roots_of
from tgraph.retrieve.lexical import terms
from tgraph.retrieve.meaning import Meaning

Place = tuple[str, int | None, int, int]

MEANING, ASKED, WORDS, KIND = 0.22, 0.15, 0.52, 0.11
"""Weights of a passage's score, each part between 0 and 1."""

ROW, FRAGMENT = 0.92, 0.5
"""What a row of a table and a piece that is no sentence count beside a sentence."""

LABEL, TITLE = 0.9, 0.6
"""What a term counts that only the names of the edges, or the title or heading, have."""

LEAD = (0.65, 0.52, 0.4, 0.4, 0.4)
"""What a term counts that only one of the sentences before has, nearest first."""

_ROW = re.compile(r"^[^:\n]{1,40}: [^;\n]*; [^:\n]{1,40}: ")


@dataclass(frozen=True, slots=True)
class Wording:
    """The terms of a passage by where they stand; it depends on no question."""

    quote: frozenset[str]
    labels: frozenset[str]
    around: Mapping[str, float]
    title: frozenset[str]
    roots: frozenset[str]
    is_row: bool
    is_prose: bool


@dataclass(slots=True)
class Passage:
    """A sentence of a document with the edges that rest on it, scored for one question."""

    place: Place
    evidence: Evidence
    edges: tuple[str, ...]
    wording: Wording
    similar: float = 0.0
    asked: float = 0.0
    matches: Mapping[str, float] = field(default_factory=dict)
    strict: Mapping[str, float] = field(default_factory=dict)
    covered: float = 0.0
    kind: float = 0.0
    score: float = 0.0

    @property
    def quote(self) -> str:
        return self.evidence.quote


def place_of(evidence: Evidence) -> Place:
    return evidence.document, evidence.page, evidence.start, evidence.end


def gather(
    edges: Mapping[str, Edge], evidence: Mapping[str, Sequence[Evidence]], context: Context
) -> dict[Place, Passage]:
    """The distinct sentences behind the edges."""
    behind: dict[Place, tuple[Evidence, list[str]]] = {}
    for iri in edges:
        for item in evidence.get(iri, ()):
            behind.setdefault(place_of(item), (item, []))[1].append(iri)
    memory = context.remembered("wordings", 20_000)
    found = {}
    for place, (item, iris) in behind.items():
        read = partial(_wording, item, [edges[iri] for iri in iris], context)
        wording = memory.get((place, tuple(iris)), read)
        found[place] = Passage(place, item, tuple(iris), wording)
    return found


def _wording(evidence: Evidence, edges: Iterable[Edge], context: Context) -> Wording:
    quote = frozenset(terms(evidence.quote))
    labels = frozenset(t for e in edges if e.predicate_label != "mentions" for t in terms(e.text))
    text = " ".join(evidence.quote.split())
    return Wording(
        quote=quote,
        labels=labels,
        around=_around(evidence, context),
        title=frozenset(terms(f"{evidence.title} {heading(evidence, context.texts)}")),
        roots=roots_of(quote),
        is_row=bool(_ROW.match(text)),
        is_prose=len(text) > 25 and text[-1] in ".!?:;,\"'”’)…。！？»",
    )


def _around(evidence: Evidence, context: Context) -> dict[str, float]:
    found: dict[str, float] = {}
    for sentence, worth in zip(lead(evidence, context.texts), LEAD, strict=False):
        for term in terms(sentence):
            found.setdefault(term, worth)
    return found


def score(passage: Passage, inquiry: Inquiry, meaning: Meaning) -> None:
    """Fill in the passage's likeness, coverage, kind and score."""
    passage.similar, passage.asked = meaning.of_sentence(passage.quote, passage.edges)
    passage.strict = {t: _own(t, passage.wording) for t in inquiry.weights}
    around = passage.wording.around
    passage.matches = {t: max(m, around.get(t, 0.0)) for t, m in passage.strict.items()}
    passage.covered = coverage(inquiry, passage.matches)
    passage.kind = answers(inquiry, " ".join(passage.quote.split()))
    passage.score = combine(
        passage.similar, passage.asked, passage.covered, passage.kind, passage.wording
    ) * support(inquiry, passage.strict, passage.asked)


def combine(similar: float, asked: float, covered: float, kind: float, wording: Wording) -> float:
    points = MEANING * likeness(similar) + ASKED * likeness(asked) + WORDS * covered + KIND * kind
    if wording.is_row:
        return points * ROW
    return points if wording.is_prose else points * FRAGMENT


def support(inquiry: Inquiry, matches: Mapping[str, float], asked: float) -> float:
    """0.75 to 1: whether the text speaks of what is asked, not only of whom it is asked."""
    plain = {t: w for t, w in inquiry.weights.items() if t not in inquiry.names}
    total = sum(plain.values())
    said = sum(w * matches[t] for t, w in plain.items()) / total if total else 1.0
    return 0.75 + 0.25 * min(1.0, max(said, likeness(asked)) / 0.5)


def likeness(similar: float) -> float:
    """A cosine brought to 0..1, as MiniLM spreads them."""
    return min(1.0, max(0.0, (similar - 0.1) / 0.6))


def coverage(inquiry: Inquiry, matches: Mapping[str, float]) -> float:
    """The share of what the question says, weighted by how much each term tells."""
    total = inquiry.total
    return sum(w * matches[t] for t, w in inquiry.weights.items()) / total if total else 0.0


def _own(term: str, wording: Wording) -> float:
    """How well the sentence itself, its edges and its title match a term."""
    found = matched(term, wording.quote, wording.roots)
    if term in wording.labels:
        found = max(found, LABEL)
    return max(found, TITLE) if term in wording.title else found
