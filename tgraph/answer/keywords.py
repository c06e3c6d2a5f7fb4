"""Question keywords on two levels: supplied by the user, the model, or the embedded default."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Protocol

from pydantic import BaseModel, Field

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.answer.model import ModelStep, question_values
from tgraph.errors import ModelError
from tgraph.model import Agent
from tgraph.models.base import CallSink
from tgraph.retrieve.base import Context, Keywords, Question
from tgraph.retrieve.entity_matching import match_all
from tgraph.retrieve.modes.base import Level
from tgraph.version import __version__

MOST = 12
"""Keywords of one level."""


class KeywordFinder(Step, Protocol):
    """A step that finds names and themes in a question."""

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """Return short phrases, most specific first; levels may be empty."""


class EmbeddedKeywords:
    """Low level: graph names contained in the question. High level: the whole question, plus
    other telling words."""

    agent = Agent("method", "embedded-keywords", __version__)

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        concepts = EmbeddedConcepts().find(question, context, sink)
        called = match_all(concepts, context.graph)
        low = [concept for concept in concepts if called[concept]]
        other_concepts = [concept for concept in concepts if concept not in low]
        return Keywords(
            tuple(low or other_concepts), tuple(dict.fromkeys([question.text, *other_concepts]))
        )


class _KeywordsReply(BaseModel):
    high: list[str] = Field(default_factory=list)
    low: list[str] = Field(default_factory=list)


class ModelKeywords(ModelStep):
    """A model step that names the keywords; the embedded default replaces an unusable reply."""

    name = "extract_keywords"

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """As ``KeywordFinder.find``. ``EndpointError`` where the model can't be reached."""
        reply = self.try_ask(question_values(question), _KeywordsReply, sink)
        if isinstance(reply, ModelError):
            embedded_keywords = EmbeddedKeywords().find(question, context, sink)
            return replace(
                embedded_keywords, dropped={"reply without keywords: found without the model": 1}
            )
        return Keywords(_clean_keywords(reply.low), _clean_keywords(reply.high))


class GivenConcepts:
    """Question concepts supplied by a user."""

    agent = Agent("method", "given-concepts", __version__)

    def __init__(self, given: Iterable[str]) -> None:
        self._given = _clean_keywords(given)

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        return self._given


class GivenKeywords:
    """Keywords supplied by a user; ``finder`` finds keywords for the other ``needed`` levels."""

    def __init__(self, given: Keywords, needed: Collection[Level], finder: KeywordFinder) -> None:
        self._given = Keywords(_clean_keywords(given.low), _clean_keywords(given.high))
        self._needed = needed
        self._finder = finder

    @property
    def agent(self) -> Agent:
        return (
            self._finder.agent
            if self._has_missing_level
            else Agent("method", "given-keywords", __version__)
        )

    @property
    def _has_missing_level(self) -> bool:
        keywords_by_level = {"low": self._given.low, "high": self._given.high}
        return not all(keywords_by_level[level] for level in self._needed)

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """Return keywords; a needed level without keywords contains the question."""
        extra_keywords = (
            self._finder.find(question, context, sink) if self._has_missing_level else Keywords()
        )
        low = self._given.low or extra_keywords.low
        high = self._given.high or extra_keywords.high
        question_keywords = (question.text,)
        return Keywords(
            low or (question_keywords if "low" in self._needed else ()),
            high or (question_keywords if "high" in self._needed else ()),
            extra_keywords.dropped,
        )


def _clean_keywords(keywords: Iterable[str]) -> tuple[str, ...]:
    texts = (" ".join(keyword.split())[:200] for keyword in keywords)
    return tuple(dict.fromkeys(text for text in texts if text))[:MOST]
