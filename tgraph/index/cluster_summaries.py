"""Summaries of passage clusters: by a language model, or quoted from passages."""

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
from tgraph.extract.model.replies import ReplyRow, ReplyText
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import Author, CallSink, ChatModel, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, load_prompt
from tgraph.models.tokens import count_tokens, truncate_text
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
    """A cluster member shown to writers: a chunk, or a lower cluster's summary."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A title with summary text; ``dropped`` counts omissions by reason."""

    title: str
    text: str
    dropped: Mapping[str, int] = field(default_factory=dict)


class ClusterWriter(Author, Protocol):
    """Who summarises clusters."""

    def write(self, passages: Sequence[ClusterPassage], sink: CallSink = no_sink) -> ClusterSummary:
        """Return a cluster summary. Raise ``ModelError`` if a reply is unusable."""


class QuotingWriter:
    """Cluster summaries without a model: sentences most representative of shared content, one
    per line, word for word."""

    agent = Agent("method", "extractive-summary", __version__)
    prompts: Sequence[Prompt] = ()

    def __init__(self, max_words: int) -> None:
        self._most = max_words

    @property
    def key(self) -> str:
        return v.digest_parts(self.agent.iri, str(self._most))

    def write(self, passages: Sequence[ClusterPassage], sink: CallSink = no_sink) -> ClusterSummary:
        """Return a summary of sentences selected greedily, each for words not yet covered."""
        quotes = _find_quotes(passages)
        word_counts = Counter(word for passage in passages for word in _long_words(passage.text))
        worth = {word: math.log1p(count) for word, count in word_counts.items()}
        chosen: list[str] = []
        room, covered = self._most, set[str]()
        while quotes:
            best = max(quotes, key=lambda quote: _quote_gain(quote, covered, worth))
            quotes.remove(best)
            length = len(best.split())
            if length > room and chosen:
                continue
            if _quote_gain(best, covered, worth) <= 0 or room <= 0:
                break
            chosen.append(best)
            covered |= _long_words(best)
            room -= length
        text = "\n".join(chosen) or " ".join(passages[0].text.split()[: self._most])
        return ClusterSummary(_choose_title(passages), text)


def _find_quotes(passages: Sequence[ClusterPassage]) -> list[str]:
    """Return distinct passage sentences long enough to be informative, each on one line; prose
    only, if any prose exists."""
    quotes: dict[str, None] = {}
    for passage in passages:
        for start, end in sentences(passage.text):
            words = passage.text[start:end].split()
            if len(words) >= _SHORTEST:
                quotes[" ".join(words)] = None
    prose = [quote for quote in quotes if quote.endswith(_STOPS)]
    return prose or list(quotes)


def _long_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.lower()) if len(word) >= _LEAST_LETTERS}


def _quote_gain(quote: str, covered: set[str], worth: Mapping[str, float]) -> float:
    """Return a quote's gain relative to its length."""
    fresh = sum(worth.get(word, 0.0) for word in sorted(_long_words(quote) - covered))
    return fresh / math.sqrt(len(quote.split()) + 8)


def _choose_title(passages: Sequence[ClusterPassage]) -> str:
    """Return names shared by most passages, otherwise the leading passage's title."""
    name_counts = Counter(name for passage in passages for name in set(_NAME.findall(passage.text)))
    common = sorted((-count, name) for name, count in name_counts.items() if count > 1)
    names = [name for _, name in common if name not in month_name][:3]
    return ", ".join(names)[:_LONGEST_TITLE] or passages[0].title


class ClusterReply(ReplyRow):
    title: ReplyText
    summary: ReplyText


class ModelWriter(Prompted):
    """A ``ClusterWriter`` asking a language model with the prompt ``summarise_cluster``.

    A prompt shows at most ``max_tokens_in`` tokens of passages, an equal share of each if they
    are longer."""

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
        passage_lines, cut = self._format_passages(passages)
        values = {"passages": passage_lines, "max_words": str(self._words)}
        request = self._request(values, ClusterReply)
        reply = self._ask(request, ClusterReply, sink)
        title, text = (" ".join(s.split()) for s in (reply.value.title, reply.value.summary))
        if not text or len(text.split()) > 4 * self._words:
            raise self._refuse(request, "much too long" if text else "empty")
        dropped = {"passage cut for its summary": cut} if cut else {}
        return ClusterSummary(title[:_LONGEST_TITLE] or _choose_title(passages), text, dropped)

    def _format_passages(self, passages: Sequence[ClusterPassage]) -> tuple[str, int]:
        """Return passages as JSON lines, plus the count of passages cut."""
        passage_limit = max(1, self._room // len(passages) - _FRAME)
        costs = [count_tokens(passage.text) for passage in passages]
        if sum(costs) + _FRAME * len(costs) <= self._room:
            passage_limit = max(costs)
        entries = (
            {"title": p.title, "text": truncate_text(p.text, passage_limit)} for p in passages
        )
        lines = [json.dumps(passage, ensure_ascii=False) for passage in entries]
        return "\n".join(lines), sum(cost > passage_limit for cost in costs)
