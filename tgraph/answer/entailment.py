"""Judging answers: statements made by a text, and whether another text entails each statement.

RAGChecker (Ru et al. 2024, arXiv:2408.08067) calls these statements claims. Here the name
differs because a ``Claim`` is what a chunk claims of an entity."""

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

StatementWords = tuple[str, ...]
"""Subject, predicate and object; or one part, a sentence as it stands."""


def statement_text(statement: StatementWords) -> str:
    """Return the statement as text."""
    return " ".join(part for part in statement if part)


@dataclass(frozen=True, slots=True)
class ExtractedStatements:
    """Statements of a text, in text order; ``dropped`` counts unreadable statements."""

    statements: tuple[StatementWords, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedStatements:
    """A label from ``LABELS`` for each statement; ``dropped`` counts unreadable labels."""

    labels: tuple[str, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class StatementExtractor(Step, Protocol):
    """Takes a text apart into statements."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def statements(self, question: str, text: str, sink: CallSink) -> ExtractedStatements:
        """Return statements from a text that answers the question.

        Raises ``ModelError`` for an unusable reply."""


class EntailmentChecker(Step, Protocol):
    """A step that checks whether a reference entails or contradicts statements."""

    @property
    def prompts(self) -> tuple[Prompt, ...]: ...

    def check(
        self, question: str, reference: str, statements: Sequence[StatementWords], sink: CallSink
    ) -> CheckedStatements:
        """Return a label for each statement, in statement order.

        Raises ``ModelError`` for an unusable reply."""


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
    """A model-free ``StatementExtractor``: each sentence counts as a statement."""

    agent = Agent("method", "sentences-as-statements", __version__)
    prompts: tuple[Prompt, ...] = ()

    def statements(self, question: str, text: str, sink: CallSink) -> ExtractedStatements:
        """Return distinct sentences that contain words."""
        sentence_texts = (" ".join(text[start:end].split()) for start, end in sentences(text))
        statement_texts = dict.fromkeys(
            (sentence,) for sentence in sentence_texts if words(sentence)
        )
        return ExtractedStatements(tuple(statement_texts))


class LikenessEntailment:
    """A model-free ``EntailmentChecker``.

    A statement is compared with every sentence of the reference and, where no sentence is
    similar enough, with every two adjacent sentences. Likeness is the mean of two measures: the
    share of the statement's words found in the passage, numbers and names counting double, and
    the cosine of the vectors. A passage that is similar enough, has all numbers of the
    statement and the same negation entails the statement; a passage that differs only in
    negation contradicts the statement."""

    agent = Agent("method", "likeness-as-entailment", __version__)
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors: dict[str, NDArray[float32]] = {}

    def check(
        self, question: str, reference: str, statements: Sequence[StatementWords], sink: CallSink
    ) -> CheckedStatements:
        """As ``EntailmentChecker.check``."""
        alone = [" ".join(reference[start:end].split()) for start, end in sentences(reference)]
        pairs = [f"{first} {second}" for first, second in pairwise(alone)]
        texts = [statement_text(statement) for statement in statements]
        self._embed_missing([*alone, *pairs, *texts], sink)
        return CheckedStatements(
            tuple(
                self._label_statement(text, alone) or self._label_statement(text, pairs) or NEUTRAL
                for text in texts
            )
        )

    def _label_statement(self, text: str, places: Sequence[str]) -> str:
        """Return the label given by sufficiently similar passages; empty if no passage is
        similar enough."""
        weights, numbers, denies = _term_weights(text), _find_numbers(text), _is_denial(text)
        vector = self._vectors[text]
        agree = [
            _is_denial(place) == denies
            for place in places
            if numbers <= _find_numbers(place)
            and _text_likeness(weights, place, float(self._vectors[place] @ vector)) >= ENTAILED
        ]
        if not agree:
            return ""
        return ENTAILMENT if any(agree) else CONTRADICTION

    def _embed_missing(self, texts: Sequence[str], sink: CallSink) -> None:
        """Compute vectors of texts not yet remembered."""
        if len(self._vectors) > _REMEMBERED:
            self._vectors.clear()
        new = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if new:
            self._vectors |= zip(new, self._embedder.embed(new, sink), strict=True)


def _term_weights(text: str) -> dict[str, float]:
    """The stems of the text's words; numbers and capitalised words count double."""
    marked = {t for word in re.findall(r"\b[A-Z]\w*|\d[\w.,]*", text) for t in terms(word)}
    return {term: 2.0 if term in marked else 1.0 for term in terms(text)}


def _text_likeness(weights: dict[str, float], place: str, cosine: float) -> float:
    total_weight, there = sum(weights.values()), _term_set(place)
    shared = sum(weight for term, weight in weights.items() if term in there)
    return 0.5 * (shared / total_weight if total_weight else 0.0) + 0.5 * max(cosine, 0.0)


@lru_cache(maxsize=4096)
def _term_set(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _find_numbers(text: str) -> set[str]:
    return {number.strip(".,").replace(",", "") for number in _NUMBER.findall(text)}


def _is_denial(text: str) -> bool:
    return bool(_NOT.search(text))
