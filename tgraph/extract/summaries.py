"""Merging several descriptions: summariser interface, and methods without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tgraph.extract.base import ExtractionStep
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.rendering import collapse_whitespace
from tgraph.vocabulary import digest_parts, normalise_name

OVER_THE_LIMIT = "sentence over the limit of a summary"

_NO_SPACES = "\u3040-\u9fff\uac00-\ud7af"
_WORDS = re.compile(rf"[{_NO_SPACES}]|[^\W{_NO_SPACES}]+(?:['’.-][^\W{_NO_SPACES}]+)*")
_ENDS = '.!?…。！？।؟:;"”’»)]'
_TERMS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """A summary sentence with source description indexes, at least one."""

    text: str
    rests_on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary replacing several descriptions; ``dropped`` counts omissions by reason."""

    sentences: tuple[SummarySentence, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Summary sentences joined by spaces, with missing full stops added."""
        texts = (sentence.text for sentence in self.sentences)
        return " ".join(text if text[-1] in _ENDS else f"{text}." for text in texts)


class Summariser(ExtractionStep, Protocol):
    """Summariser interface: several descriptions in, one summary out."""

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """Return a summary of the descriptions of ``subject``.

        It has at least one sentence and at most the summariser's limit of words. Raises
        ``ModelError`` if a model's reply is unusable."""


class _Limited:
    """A summarising method without a model; results depend only on word limit and input."""

    agent: Agent
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words

    @property
    def key(self) -> str:
        return digest_parts(self.agent.iri, str(self._max_words))


class DistinctSentences(_Limited):
    """An extractive ``Summariser`` without a model: it selects sentences, writing none.

    Of the sentences of all descriptions it repeatedly takes the sentence with most words not
    yet covered, as long as that fits into ``max_words`` (greedy coverage: Nemhauser, Wolsey and
    Fisher 1978); selected sentences stay in the order of the descriptions."""

    agent = Agent("method", "distinct-sentences", "1", "tgraph")

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """Return a summary like ``Summariser.summarise``; ``sink`` stays unused, since no calls
        occur."""
        candidates = _distinct_sentences(descriptions)
        new = [set(_TERMS.findall(sentence.text.lower())) for sentence in candidates]
        chosen: list[int] = []
        room, passed = self._max_words, 0
        open_ones = [at for at, terms in enumerate(new) if terms]
        while open_ones:
            best = max(open_ones, key=lambda at: (len(new[at]), -at))
            open_ones.remove(best)
            words = count_words(candidates[best].text)
            if words > room:
                passed += 1
                continue
            chosen.append(best)
            room -= words
            for at in open_ones:
                new[at] -= new[best]
            open_ones = [at for at in open_ones if new[at]]
        if not chosen:
            return join_descriptions(descriptions, self._max_words)
        picked = tuple(candidates[at] for at in sorted(chosen))
        return Summary(picked, {OVER_THE_LIMIT: passed} if passed else {})


class JoinedDescriptions(_Limited):
    """A substitute for a failed summary: the descriptions themselves, concatenated, cut at the
    limit."""

    agent = Agent("method", "joined-descriptions", "1", "tgraph")

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """Return a summary like ``Summariser.summarise``; never fails."""
        return join_descriptions(descriptions, self._max_words)


def join_descriptions(descriptions: Sequence[str], max_words: int) -> Summary:
    """Return a summary of as many descriptions as fit, in order; the earliest overlong
    description is cut."""
    dropped: Counter[str] = Counter()
    return Summary(
        limit_words(descriptions_as_sentences(descriptions), max_words, dropped), dict(dropped)
    )


def descriptions_as_sentences(descriptions: Sequence[str]) -> list[SummarySentence]:
    """Return descriptions unchanged as sentences, each resting on itself."""
    return [
        SummarySentence(collapse_whitespace(text), (at,)) for at, text in enumerate(descriptions)
    ]


def limit_words(
    found: Iterable[SummarySentence], max_words: int, dropped: Counter[str]
) -> tuple[SummarySentence, ...]:
    """Return sentences up to the word limit; a leading sentence over the limit is shortened."""
    selected: list[SummarySentence] = []
    room = max_words
    for sentence in found:
        words = count_words(sentence.text)
        if words <= room:
            selected.append(sentence)
            room -= words
        else:
            dropped[OVER_THE_LIMIT] += 1
            if not selected:
                ends = [match.end() for match in _WORDS.finditer(sentence.text)]
                selected.append(replace(sentence, text=f"{sentence.text[: ends[room - 1]]}…"))
            room = 0
    return tuple(selected)


def count_words(text: str) -> int:
    """Return the word count; in scripts without spaces each character counts as a word."""
    return len(_WORDS.findall(text))


def _distinct_sentences(descriptions: Sequence[str]) -> list[SummarySentence]:
    """Return distinct sentences with indexes of all descriptions containing them."""
    texts: dict[str, str] = {}
    places: dict[str, list[int]] = {}
    for at, description in enumerate(descriptions):
        for start, end in sentences(description):
            text = collapse_whitespace(description[start:end])
            key = normalise_name(text)
            texts.setdefault(key, text)
            if at not in places.setdefault(key, []):
                places[key].append(at)
    return [SummarySentence(texts[key], tuple(places[key])) for key in texts]
