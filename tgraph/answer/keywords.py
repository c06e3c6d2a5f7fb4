"""Keywords of a question on two levels: given, by the model, or by the embedded default."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Protocol

from pydantic import BaseModel, Field

from tgraph.answer.base import Step
from tgraph.answer.embedded import EmbeddedConcepts
from tgraph.answer.model import ModelStep, asked
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
    """Finds what a question names, and its themes."""

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """Short phrases, the most specific first. A level may be empty."""


class EmbeddedKeywords:
    """Low: names of the graph that the question contains. High: the question as a whole, and the
    other words in it that tell."""

    agent = Agent("method", "embedded-keywords", __version__)

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        concepts = EmbeddedConcepts().find(question, context, sink)
        called = match_all(concepts, context.graph)
        low = [concept for concept in concepts if called[concept]]
        rest = [concept for concept in concepts if concept not in low]
        return Keywords(tuple(low or rest), tuple(dict.fromkeys([question.text, *rest])))


class _KeywordsReply(BaseModel):
    high: list[str] = Field(default_factory=list)
    low: list[str] = Field(default_factory=list)


class ModelKeywords(ModelStep):
    """The model names them; where its reply can't be used the embedded default stands in."""

    name = "extract_keywords"

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """As ``KeywordFinder.find``. ``EndpointError`` where the model can't be reached."""
        reply = self.try_ask(asked(question), _KeywordsReply, sink)
        if isinstance(reply, ModelError):
            found = EmbeddedKeywords().find(question, context, sink)
            return replace(found, dropped={"reply without keywords: found without the model": 1})
        return Keywords(_cleaned(reply.low), _cleaned(reply.high))


class GivenConcepts:
    """What the question is about, as a user gave it."""

    agent = Agent("method", "given-concepts", __version__)

    def __init__(self, given: Iterable[str]) -> None:
        self._given = _cleaned(given)

    def find(self, question: Question, context: Context, sink: CallSink) -> tuple[str, ...]:
        return self._given


class GivenKeywords:
    """Keywords that a user gave; the ``finder`` finds those of the other levels of ``needed``."""

    def __init__(self, given: Keywords, needed: Collection[Level], finder: KeywordFinder) -> None:
        self._given = Keywords(_cleaned(given.low), _cleaned(given.high))
        self._needed = needed
        self._finder = finder

    @property
    def agent(self) -> Agent:
        return (
            self._finder.agent if self._missing else Agent("method", "given-keywords", __version__)
        )

    @property
    def _missing(self) -> bool:
        given = {"low": self._given.low, "high": self._given.high}
        return not all(given[level] for level in self._needed)

    def find(self, question: Question, context: Context, sink: CallSink) -> Keywords:
        """A level that is needed is never empty: where nothing is found it is the question."""
        found = self._finder.find(question, context, sink) if self._missing else Keywords()
        low = self._given.low or found.low
        high = self._given.high or found.high
        whole = (question.text,)
        return Keywords(
            low or (whole if "low" in self._needed else ()),
            high or (whole if "high" in self._needed else ()),
            found.dropped,
        )


def _cleaned(keywords: Iterable[str]) -> tuple[str, ...]:
    texts = (" ".join(keyword.split())[:200] for keyword in keywords)
    return tuple(dict.fromkeys(text for text in texts if text))[:MOST]
