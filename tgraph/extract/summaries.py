"""One description out of several: what a summariser gives, and the way without a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from tgraph.extract.base import ExtractionStep
from tgraph.ingest.base import one_line
from tgraph.ingest.sentences import sentences
from tgraph.model import Agent, Prompt
from tgraph.models.base import CallSink, no_sink
from tgraph.vocabulary import digest, normalise_name

OVER_THE_LIMIT = "sentence over the limit of a summary"

_NO_SPACES = "\u3040-\u9fff\uac00-\ud7af"
_WORDS = re.compile(rf"[{_NO_SPACES}]|[^\W{_NO_SPACES}]+(?:['’.-][^\W{_NO_SPACES}]+)*")
_ENDS = '.!?…。！？।؟:;"”’»)]'
_TERMS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class SummarySentence:
    """A sentence, and which of the descriptions it rests on, by their index; never none."""

    text: str
    rests_on: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """What takes the place of several descriptions; ``dropped`` counts what was left out."""

    sentences: tuple[SummarySentence, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentences one after the other; one that has no end gets a full stop."""
        texts = (sentence.text for sentence in self.sentences)
        return " ".join(text if text[-1] in _ENDS else f"{text}." for text in texts)


class Summariser(ExtractionStep, Protocol):
    """Makes one description of several."""

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """The summary of the descriptions of what is called ``subject``.

        It has at least one sentence and at most the summariser's limit of words. Raises
        ``ModelError`` where a model's reply can't be used.
        """


class _Limited:
    """A way without a model, whose result depends on nothing but the limit."""

    agent: Agent
    prompts: tuple[Prompt, ...] = ()

    def __init__(self, max_words: int) -> None:
        self._max_words = max_words

    @property
    def key(self) -> str:
        return digest(self.agent.iri, str(self._max_words))


class DistinctSentences(_Limited):
    """A ``Summariser`` without a model: it writes nothing, it picks.

    Of the sentences of all descriptions it takes again and again the one with most words that none
    before it had, as long as that fits into ``max_words`` (greedy coverage: Nemhauser, Wolsey and
    Fisher 1978); they stay in the order of the descriptions.
    """

    agent = Agent("method", "distinct-sentences", "1", "tgraph")

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """As ``Summariser.summarise``; ``sink`` gets nothing, for there are no calls."""
        found = _sentences(descriptions)
        new = [set(_TERMS.findall(sentence.text.lower())) for sentence in found]
        chosen: list[int] = []
        room, passed = self._max_words, 0
        open_ones = [at for at, terms in enumerate(new) if terms]
        while open_ones:
            best = max(open_ones, key=lambda at: (len(new[at]), -at))
            open_ones.remove(best)
            words = count_words(found[best].text)
            if words > room:
                passed += 1
                continue
            chosen.append(best)
            room -= words
            for at in open_ones:
                new[at] -= new[best]
            open_ones = [at for at in open_ones if new[at]]
        if not chosen:
            return joined(descriptions, self._max_words)
        picked = tuple(found[at] for at in sorted(chosen))
        return Summary(picked, {OVER_THE_LIMIT: passed} if passed else {})


class JoinedDescriptions(_Limited):
    """What stands in for a summary that could not be made: the descriptions themselves, one after
    the other, cut at the limit."""

    agent = Agent("method", "joined-descriptions", "1", "tgraph")

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """As ``Summariser.summarise``; it never fails."""
        return joined(descriptions, self._max_words)


def joined(descriptions: Sequence[str], max_words: int) -> Summary:
    """The descriptions in their order, as many as fit; the first that doesn't is cut."""
    dropped: Counter[str] = Counter()
    return Summary(within(whole(descriptions), max_words, dropped), dict(dropped))


def whole(descriptions: Sequence[str]) -> list[SummarySentence]:
    """The descriptions as they are, each resting on itself."""
    return [SummarySentence(one_line(text), (at,)) for at, text in enumerate(descriptions)]


def within(
    found: Iterable[SummarySentence], max_words: int, dropped: Counter[str]
) -> tuple[SummarySentence, ...]:
    """The sentences up to the limit; of the first only its beginning where it is too long alone."""
    kept: list[SummarySentence] = []
    room = max_words
    for sentence in found:
        words = count_words(sentence.text)
        if words <= room:
            kept.append(sentence)
            room -= words
        else:
            dropped[OVER_THE_LIMIT] += 1
            if not kept:
                ends = [match.end() for match in _WORDS.finditer(sentence.text)]
                kept.append(replace(sentence, text=f"{sentence.text[: ends[room - 1]]}…"))
            room = 0
    return tuple(kept)


def count_words(text: str) -> int:
    """How many words; in scripts that put no spaces between them each character is one."""
    return len(_WORDS.findall(text))


def _sentences(descriptions: Sequence[str]) -> list[SummarySentence]:
    """Every sentence once, with all the descriptions that have it."""
    texts: dict[str, str] = {}
    places: dict[str, list[int]] = {}
    for at, description in enumerate(descriptions):
        for start, end in sentences(description):
            text = one_line(description[start:end])
            key = normalise_name(text)
            texts.setdefault(key, text)
            if at not in places.setdefault(key, []):
                places[key].append(at)
    return [SummarySentence(texts[key], tuple(places[key])) for key in texts]
