"""Judging answers: what a text states, and whether another text entails it.

The statements are what RAGChecker (Ru et al. 2024, arXiv:2408.08067) calls claims. Here they have
a name of their own: a ``Claim`` is what a chunk claims of an entity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from tgraph.answer.base import Step
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, Embedder
from tgraph.retrieve.text.lexical import terms, words
from tgraph.version import __version__

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray


ENTAILMENT, NEUTRAL, CONTRADICTION = "Entailment", "Neutral", "Contradiction"
LABELS = (ENTAILMENT, NEUTRAL, CONTRADICTION)

Statement = tuple[str, ...]
"""Subject, predicate and object; or one part, a sentence as it stands."""


def spoken(statement: Statement) -> str:
    """The statement as a text."""
    return " ".join(part for part in statement if part)


@dataclass(frozen=True, slots=True)
class ExtractedStatements:
    """What a text states, in its order; ``dropped`` counts what could not be read."""

    statements: tuple[Statement, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedStatements:
    """A label of ``LABELS`` for each statement; ``dropped`` counts what could not be read."""

    labels: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class StatementExtractor(Step, Protocol):
    """Takes a text apart into statements."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def statements(self, question: str, text: str, sink: CallSink) -> ExtractedStatements:
        """What the text, an answer to the question, states. ``ModelError`` where a reply can't be
        used."""


class EntailmentChecker(Step, Protocol):
    """Says of statements whether a reference entails or contradicts them."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def check(
        self, question: str, reference: str, statements: Sequence[Statement], sink: CallSink
    ) -> CheckedStatements:
        """A label for each statement, in their order. ``ModelError`` for an unusable reply."""


# --- judging without a model: sentences for statements, likeness for entailment -------------------
# Both are approximations, and named so wherever their figures stand. A sentence may state several
# things, and likeness is no proof: what is said otherwise is missed, and what differs in one small
# word may pass.


ENTAILED = 0.55
"""Likeness from which a text counts as entailing a statement: of the 217 labels of RAGChecker's two
worked examples 90 % are then right as to entailment or not (F1 0.83)."""

_REMEMBERED = 20_000
_NUMBER = re.compile(r"\d[\d,.]*")
_NOT = re.compile(r"\b(?:not|never|neither)\b|n[’']t\b", re.IGNORECASE)


class SentenceStatements:
    """A ``StatementExtractor`` without a model: each sentence of the text is a statement."""

    agent = Agent("method", "sentences-as-statements", __version__)
    prompts: tuple[Prompt, ...] = ()

    def statements(self, question: str, text: str, sink: CallSink) -> ExtractedStatements:
        """The sentences that say something, each once."""
        found = (" ".join(text[start:end].split()) for start, end in sentences(text))
        said = dict.fromkeys((sentence,) for sentence in found if words(sentence))
        return ExtractedStatements(tuple(said))


class LikenessEntailment:
    """An ``EntailmentChecker`` without a model.

    A statement is compared with every sentence of the reference, and where none is like it with
    every two that stand side by side: by the share of its words that occur there, numbers and names
    counting double, and by the cosine of the vectors; likeness is the mean of the two. A place that
    is like enough, has all the statement's numbers and denies as much as it does, entails it; where
    only the denial differs, it contradicts it.
    """

    agent = Agent("method", "likeness-as-entailment", __version__)
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[float32]] = {}

    def check(
        self, question: str, reference: str, statements: Sequence[Statement], sink: CallSink
    ) -> CheckedStatements:
        """As ``EntailmentChecker.check``."""
        alone = [" ".join(reference[start:end].split()) for start, end in sentences(reference)]
        pairs = [f"{first} {second}" for first, second in pairwise(alone)]
        texts = [spoken(statement) for statement in statements]
        self._learn([*alone, *pairs, *texts], sink)
        return CheckedStatements(
            tuple(self._label(text, alone) or self._label(text, pairs) or NEUTRAL for text in texts)
        )

    def _label(self, text: str, places: Sequence[str]) -> str:
        """What the places that are like enough say of it; empty where none is."""
        weights, numbers, denies = _weights(text), _numbers(text), _denies(text)
        vector = self._vectors[text]
        agree = [
            _denies(place) == denies
            for place in places
            if numbers <= _numbers(place)
            and _likeness(weights, place, float(self._vectors[place] @ vector)) >= ENTAILED
        ]
        if not agree:
            return ""
        return ENTAILMENT if any(agree) else CONTRADICTION

    def _learn(self, texts: Sequence[str], sink: CallSink) -> None:
        """The vectors of the texts, computed where they are not remembered."""
        if len(self._vectors) > _REMEMBERED:
            self._vectors.clear()
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors |= zip(new, self._embedder.embed(new, sink), strict=True)


def _weights(text: str) -> dict[str, float]:
    """The stems of the text's words; numbers and capitalised words count double."""
    marked = {t for word in re.findall(r"\b[A-Z]\w*|\d[\w.,]*", text) for t in terms(word)}
    return {term: 2.0 if term in marked else 1.0 for term in terms(text)}


def _likeness(weights: dict[str, float], place: str, cosine: float) -> float:
    whole, there = sum(weights.values()), _terms(place)
    shared = sum(weight for term, weight in weights.items() if term in there)
    return 0.5 * (shared / whole if whole else 0.0) + 0.5 * max(cosine, 0.0)


@lru_cache(maxsize=4096)
def _terms(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _numbers(text: str) -> set[str]:
    return {number.strip(".,").replace(",", "") for number in _NUMBER.findall(text)}


def _denies(text: str) -> bool:
    return bool(_NOT.search(text))
