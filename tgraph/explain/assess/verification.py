"""The values of a verification: a verdict on each sentence of an answer, and the measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice

from tgraph.answer.support import PROVEN
from tgraph.rendering import brief, render

SentenceVerdict = Choice["supported", "quoted", "partly", "unsupported", "uncited", "undecided"]

FINE: tuple[SentenceVerdict, ...] = ("supported", "quoted", "undecided")
"""The verdicts that are no fault of an answer."""


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """A citation as it was judged. ``alone`` says whether it supports the sentence by itself,
    ``needed`` whether the others do without it; both are None where that was not asked. It is
    precise unless it neither supports alone nor is needed."""

    document: str
    chunk: str
    path: str
    page: int | None
    start: int
    end: int
    quote: str
    alone: bool | None = None
    needed: bool | None = None

    @property
    def precise(self) -> bool:
        return not (self.alone is False and self.needed is False)


@dataclass(frozen=True, slots=True)
class TrailStep:
    """A step on the way back from a sentence: what it made, by IRI, and whether that still says
    what the sentence says."""

    step: str
    items: tuple[str, ...]
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The first step, from the documents on, whose result says it while what that was made from
    does not: ``item`` is what it made."""

    step: str
    item: str
    reason: str


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence with its verdict; where support is missing, ``trail`` and ``lost`` say where."""

    sentence: str
    text: str
    verdict: SentenceVerdict
    reason: str
    citations: tuple[CitedPlace, ...]
    trail: tuple[TrailStep, ...] = ()
    lost: Lost | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether each sentence of an answer is entailed by what it cites.

    ``recall`` and ``precision`` (0 to 1) are ALCE's (Gao and others 2023, section 4): the share of
    sentences that their citations support together, and the share of citations that are neither of
    an unsupported sentence nor without support alone and of no use to the others. They are None
    where there is nothing to judge. ``judge`` is who judged, ``verification`` the IRI on record.
    """

    session: str
    question: str
    mode: str
    judge: str
    sentences: tuple[JudgedSentence, ...]
    recall: float | None
    precision: float | None
    verification: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no sentence lacks support; what is undecided does not count as lacking it."""
        return all(s.verdict in FINE for s in self.sentences)

    @property
    def counts(self) -> dict[str, int]:
        """How many sentences have each verdict."""
        return dict(Counter(sentence.verdict for sentence in self.sentences))

    __repr__ = brief

    def _repr_html_(self) -> str:
        return render(self, "notebook")


def citation_recall(judged: Sequence[JudgedSentence]) -> float | None:
    """The share of sentences whose citations support them together; undecided ones don't count."""
    known = [sentence.verdict for sentence in judged if sentence.verdict != "undecided"]
    return sum(verdict in PROVEN for verdict in known) / len(known) if known else None


def citation_precision(judged: Sequence[JudgedSentence]) -> float | None:
    """The share of citations that are precise; those of a sentence without support are not."""
    known = [sentence for sentence in judged if sentence.verdict != "undecided"]
    citations = [s.verdict in PROVEN and c.precise for s in known for c in s.citations]
    return sum(citations) / len(citations) if citations else None
