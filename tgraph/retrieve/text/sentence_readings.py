"""What a reader makes of a sentence: features, the likeliest answer, the probability to answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import mul
from typing import NamedTuple

from tgraph.model import Evidence
from tgraph.resources import load_weights
from tgraph.retrieve.text.lexical import words

WEIGHTS = load_weights("reading")
"""The bias, then what each of ``Features`` counts."""


class Features(NamedTuple):
    """Features predicting whether a sentence answers.

    ``ranked`` is the ranking score, ``span`` the logit of the likeliest answer within the
    sentence and ``relevance`` the passage logit, both bounded; ``behind`` is the lead of the
    best passage span, ``missing`` the weight share of question words absent from passage and
    headings, ``rarest`` the highest weight among absent words; ``bridged`` is 1 for passages
    joined from bridge places."""

    ranked: float
    span: float
    relevance: float
    behind: float
    missing: float
    rarest: float
    bridged: float = 0.0

    @property
    def logit(self) -> float:
        return compute_logit(WEIGHTS, self)


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence reading: features, likeliest answer, absent question terms.

    ``lacking`` holds question terms absent from the passage; ``authority`` is the document
    authority; ``passage`` is the text read, below a line of headings; ``lacks_asked`` is true for
    rows of tables that have no word of what is asked for."""

    evidence: Evidence
    features: Features
    answer: str
    lacking: tuple[str, ...]
    authority: float = 1.0
    passage: str = ""
    lacks_asked: bool = False

    @property
    def passage_body(self) -> str:
        """The passage without its headings."""
        return self.passage.partition("\n")[2]

    @property
    def probability(self) -> float:
        """The answer probability multiplied by document authority."""
        return logit_probability(self.features.logit) * self.authority

    @property
    def likelihood(self) -> float:
        """The unbounded sort key, ordering readings as ``probability`` does."""
        return self.features.logit + (math.log(self.authority) if self.authority else -math.inf)


def find_likeliest(readings: Sequence[SentenceReading]) -> SentenceReading | None:
    return max(readings, key=lambda each: (each.likelihood, each.evidence.iri), default=None)


def measure_share(readings: Sequence[SentenceReading], listed: Collection[str]) -> float:
    """Return the share of listed words among the words of the passages read."""
    bodies = dict.fromkeys(reading.passage_body for reading in readings)
    texts = [word for body in bodies for word in words(body)]
    return sum(word in listed for word in texts) / (len(texts) or 1)


def compute_logit(weights_: Sequence[float], features: Sequence[float]) -> float:
    """Return the logit: bias plus weighted features."""
    bias, *counts = weights_
    return float(bias + sum(map(mul, counts, features)))


def logit_probability(logit: float) -> float:
    """Return the probability of a logit."""
    return round(1 / (1 + math.exp(-max(-60.0, min(60.0, logit)))), 6)


_BOUND = 12.0


def bound_logit(logit: float) -> float:
    """Return a logit within bounds, so that no reader's single figure outweighs all others."""
    return max(-_BOUND, min(_BOUND, logit))
