"""Verification values: sentence verdicts and citation measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal as Choice

from tgraph.answer.support import PROVEN
from tgraph.rendering import brief_repr, render_value

SentenceVerdict = Choice["supported", "quoted", "partly", "unsupported", "uncited", "undecided"]

FINE: tuple[SentenceVerdict, ...] = ("supported", "quoted", "undecided")
"""The verdicts that are no fault of an answer."""


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """A judged citation.

    ``alone`` tells whether the citation supports its sentence by itself, ``needed`` whether
    other citations fail without it; both are None if not judged. A citation is precise unless
    it neither supports alone nor is needed."""

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
    """A lineage step: output IRIs, plus a verdict whether outputs support the sentence."""

    step: str
    items: tuple[str, ...]
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """A support loss: the earliest step, counted from documents, whose output supports the
    sentence while its inputs do not; ``item`` is the output."""

    step: str
    item: str
    reason: str


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence with its verdict; for missing support, ``trail`` and ``lost`` locate the loss."""

    sentence: str
    text: str
    verdict: SentenceVerdict
    reason: str
    citations: tuple[CitedPlace, ...]
    trail: tuple[TrailStep, ...] = ()
    lost: Lost | None = None


@dataclass(frozen=True, slots=True)
class JudgedShortAnswer:
    """A short answer: whether citations state it (``quoted``, ``unsupported``, ``undecided``).

    ``probability`` is on record, ``recomputed`` by the reader over the recorded evidence, and
    ``follows`` whether the two agree; None where nobody judged."""

    text: str
    verdict: SentenceVerdict
    reason: str
    probability: float | None = None
    recomputed: float | None = None
    follows: bool | None = None


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """Whether an answer answers its question: ``supported``, ``unsupported`` or ``undecided``.

    ``recorded`` is the answer's verdict on record, ``recomputed`` the one that the reader's
    confidence in the recorded evidence leads to, empty where nobody judged."""

    verdict: SentenceVerdict
    reason: str
    recorded: str
    recomputed: str
    confidence: float | None
    recomputed_confidence: float | None
    short: JudgedShortAnswer | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """A verification: do citations entail each answer sentence, and does the answer answer?

    ``recall`` and ``precision`` (0 to 1) are ALCE's (Gao and others 2023, section 4): the share
    of sentences supported jointly by their citations, and the share of precise citations. A
    citation is imprecise if its sentence lacks support, or if it neither supports alone nor
    helps the others. Both are None without judged sentences. ``judge`` names the judge,
    ``verification`` is the recorded IRI; ``answer`` judges the answer as a whole."""

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
    answer: JudgedAnswer | None = None

    @property
    def is_supported(self) -> bool:
        """True if no sentence lacks support and the answer answers; what is undecided counts as
        supported."""
        answers = self.answer is None or self.answer.verdict in FINE
        return answers and all(s.verdict in FINE for s in self.sentences)

    @property
    def counts(self) -> dict[str, int]:
        """Sentence counts by verdict."""
        return dict(Counter(sentence.verdict for sentence in self.sentences))

    __repr__ = brief_repr

    def _repr_html_(self) -> str:
        return render_value(self, "notebook")


def citation_recall(judged: Sequence[JudgedSentence]) -> float | None:
    """The share of sentences whose citations support them together; undecided ones don't count."""
    verdicts = [sentence.verdict for sentence in judged if sentence.verdict != "undecided"]
    return sum(verdict in PROVEN for verdict in verdicts) / len(verdicts) if verdicts else None


def citation_precision(judged: Sequence[JudgedSentence]) -> float | None:
    """Return the share of precise citations; citations of unsupported sentences are imprecise."""
    decided = [sentence for sentence in judged if sentence.verdict != "undecided"]
    citations = [s.verdict in PROVEN and c.precise for s in decided for c in s.citations]
    return sum(citations) / len(citations) if citations else None
