"""Summaries of clusters of passages: by a language model, or quoted from the passages."""

from __future__ import annotations

import json
import math
import re
from calendar import month_name
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Unpack

from tgraph import vocabulary as v
from tgraph.extract.model.replies import Row, Text
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import Author, CallSink, ChatModel, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, load_prompt
from tgraph.models.tokens import count_tokens, truncate
from tgraph.version import __version__

NAME = "summarise_cluster"

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"(?<![.!?\n] )(?<!^)\b[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)*", re.MULTILINE)
_LEAST_LETTERS = 4
_SHORTEST = 5  # words of a sentence that is worth quoting
_STOPS = (".", "!", "?", "。", "！", "？")
_LONGEST_TITLE = 120
_FRAME = 20  # tokens of a passage's JSON beside its text


@dataclass(frozen=True, slots=True)
class ClusterPassage:
    """A member of a cluster as a writer sees it: a chunk, or the summary of a cluster below."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A title and a text; ``dropped`` counts what was left out of it, by reason."""

    title: str
    text: str
    dropped: Mapping[str, int] = field(default_factory=dict)


class ClusterWriter(Author, Protocol):
    """Who summarises clusters."""

    def write(self, passages: Sequence[ClusterPassage], sink: CallSink = no_sink) -> ClusterSummary:
        """The summary. ``ModelError`` where a reply can't be used."""


class QuotingWriter:
    """Summaries without a model: the sentences that say most of what the passages have in common,
    each on a line of its own, word for word."""

    agent = Agent("method", "extractive-summary", __version__)
    prompts: Sequence[Prompt] = ()

    def __init__(self, max_words: int) -> None:
        self._most = max_words

    @property
    def key(self) -> str:
        return v.digest(self.agent.iri, str(self._most))

    def write(self, passages: Sequence[ClusterPassage], sink: CallSink = no_sink) -> ClusterSummary:
        """Sentences are taken one by one, each for the words that none before it has."""
        quotes = _quotes(passages)
        held = Counter(word for passage in passages for word in _words(passage.text))
        worth = {word: math.log1p(count) for word, count in held.items()}
        chosen: list[str] = []
        room, covered = self._most, set[str]()
        while quotes:
            best = max(quotes, key=lambda quote: _gain(quote, covered, worth))
            quotes.remove(best)
            length = len(best.split())
            if length > room and chosen:
                continue
            if _gain(best, covered, worth) <= 0 or room <= 0:
                break
            chosen.append(best)
            covered |= _words(best)
            room -= length
        text = "\n".join(chosen) or " ".join(passages[0].text.split()[: self._most])
        return ClusterSummary(_title(passages), text)


def _quotes(passages: Sequence[ClusterPassage]) -> list[str]:
    """The passages' sentences that are long enough to say something, each once, as one line; what
    is no prose only where there is none."""
    found: dict[str, None] = {}
    for passage in passages:
        for start, end in sentences(passage.text):
            words = passage.text[start:end].split()
            if len(words) >= _SHORTEST:
                found[" ".join(words)] = None
    prose = [quote for quote in found if quote.endswith(_STOPS)]
    return prose or list(found)


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if len(word) >= _LEAST_LETTERS}


def _gain(quote: str, covered: set[str], worth: Mapping[str, float]) -> float:
    """What the quote adds, by the length that it takes."""
    fresh = sum(worth.get(word, 0.0) for word in sorted(_words(quote) - covered))
    return fresh / math.sqrt(len(quote.split()) + 8)


def _title(passages: Sequence[ClusterPassage]) -> str:
    """The names that most of the passages hold, else the first passage's title."""
    held = Counter(name for passage in passages for name in set(_NAME.findall(passage.text)))
    common = sorted((-count, name) for name, count in held.items() if count > 1)
    names = [name for _, name in common if name not in month_name][:3]
    return ", ".join(names)[:_LONGEST_TITLE] or passages[0].title


class ClusterReply(Row):
    title: Text
    summary: Text


class ModelWriter(Prompted):
    """A ``ClusterWriter`` that asks a language model by the prompt ``summarise_cluster``. A prompt
    shows at most ``max_tokens_in`` tokens of passages, the same share of each where they are
    more."""

    def __init__(
        self,
        model: ChatModel,
        max_words: int,
        max_tokens_in: int,
        prompts: Prompts = None,
        **options: Unpack[Options],
    ) -> None:
        limits = (max_words, max_tokens_in)
        super().__init__(model, load_prompt(NAME, prompts), limits, **options)
        self._words = max_words
        self._room = max_tokens_in

    def write(self, passages: Sequence[ClusterPassage], sink: CallSink = no_sink) -> ClusterSummary:
        """As ``ClusterWriter.write``."""
        shown, cut = self._shown(passages)
        values = {"passages": shown, "max_words": str(self._words)}
        request = self._request(values, ClusterReply)
        reply = self._ask(request, ClusterReply, sink)
        title, text = (" ".join(s.split()) for s in (reply.value.title, reply.value.summary))
        if not text or len(text.split()) > 4 * self._words:
            raise self._refuse(request, "much too long" if text else "empty")
        dropped = {"passage cut for its summary": cut} if cut else {}
        return ClusterSummary(title[:_LONGEST_TITLE] or _title(passages), text, dropped)

    def _shown(self, passages: Sequence[ClusterPassage]) -> tuple[str, int]:
        """The passages as lines of JSON, and how many had to be cut."""
        each = max(1, self._room // len(passages) - _FRAME)
        costs = [count_tokens(passage.text) for passage in passages]
        if sum(costs) + _FRAME * len(costs) <= self._room:
            each = max(costs)
        shown = ({"title": p.title, "text": truncate(p.text, each)} for p in passages)
        lines = [json.dumps(passage, ensure_ascii=False) for passage in shown]
        return "\n".join(lines), sum(cost > each for cost in costs)
