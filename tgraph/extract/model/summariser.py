"""Summaries by language model: one prompt if descriptions fit, otherwise summaries of
summaries."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Unpack

from tgraph.errors import ModelError
from tgraph.extract.model.replies import ReplyRow, ReplyText, ReplyTexts
from tgraph.extract.summaries import (
    Summary,
    SummarySentence,
    descriptions_as_sentences,
    limit_words,
)
from tgraph.models.base import CallSink, ChatModel, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, fill_messages, load_prompt
from tgraph.models.tokens import count_tokens, truncate_text
from tgraph.rendering import collapse_whitespace

NAME = "summarise_descriptions"
_LEAST_ROOM = 100
_OF_A_LINE = 20  # tokens of an item's JSON beside its text, and of a long id
_SummarySentences = Sequence[SummarySentence]


class SentenceRow(ReplyRow):
    text: ReplyText
    ids: ReplyTexts


class SummaryReply(ReplyRow):
    sentences: list[SentenceRow]


class ModelSummariser(Prompted):
    """A ``Summariser`` that asks a language model by the prompt ``summarise_descriptions``.

    Descriptions that don't fit into ``max_input_tokens`` together are summarised in runs, and their
    summaries as descriptions are, until they fit. What a sentence rests on is passed on through
    every fold. Where a run ends is a matter of the texts in it (content-defined chunking:
    Muthitacharoen, Chen, Mazieres, "A Low-bandwidth Network File System", SOSP 2001), so that one
    description more alters the prompts of its own run and of those above it, and no others.
    """

    def __init__(
        self,
        model: ChatModel,
        max_words: int,
        max_input_tokens: int,
        prompts: Prompts = None,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            model, load_prompt(NAME, prompts), (max_words, max_input_tokens), **options
        )
        self._max_words = max_words
        self._budget = max_input_tokens

    def summarise(
        self, subject: str, descriptions: Sequence[str], sink: CallSink = no_sink
    ) -> Summary:
        """As ``Summariser.summarise``."""
        dropped: Counter[str] = Counter()
        groups = [_TextGroup((item,)) for item in descriptions_as_sentences(descriptions)]
        prompt_texts = [
            m["content"] for m in fill_messages(self._prompt, self._prompt_values(subject, ()))
        ]
        if not self._fit_anyhow(prompt_texts, descriptions):
            room = self._budget - sum(map(count_tokens, prompt_texts))
            groups = [_cut_description(group, room, dropped) for group in groups]
            least = 1
            while sum(group.cost for group in groups) > room and len(groups) > least:
                runs = _split_runs(groups, room, least)
                groups = [self._fold_run(subject, run, room, sink, dropped) for run in runs]
                least = 2  # summaries that are too long for two in a prompt are joined all the same
        sentences = self._summarise_items(subject, [*chain.from_iterable(groups)], sink, dropped)
        return Summary(sentences, {reason: count for reason, count in dropped.items() if count})

    def _fold_run(
        self,
        subject: str,
        run: Sequence[_TextGroup],
        room: int,
        sink: CallSink,
        dropped: Counter[str],
    ) -> _TextGroup:
        """Return a run's summary; a single description stays unchanged, unless long."""
        if len(run) == 1 and 2 * run[0].cost <= room:
            return run[0]
        return _TextGroup(
            self._summarise_items(subject, [*chain.from_iterable(run)], sink, dropped)
        )

    def _fit_anyhow(self, asked: Sequence[str], descriptions: Sequence[str]) -> bool:
        """Tell whether all descriptions fit, assuming one token per byte (an upper bound)."""
        byte_count = sum(len(text.encode("utf-8", "replace")) for text in (*asked, *descriptions))
        return byte_count + len(descriptions) * _OF_A_LINE <= self._budget

    def _prompt_values(self, subject: str, items: _SummarySentences) -> dict[str, str]:
        lines = (
            json.dumps({"id": str(number), "text": item.text}, ensure_ascii=False)
            for number, item in enumerate(items, 1)
        )
        return {
            "subject": collapse_whitespace(subject),
            "descriptions": "\n".join(lines),
            "max_words": str(self._max_words),
        }

    def _summarise_items(
        self, subject: str, items: _SummarySentences, sink: CallSink, dropped: Counter[str]
    ) -> tuple[SummarySentence, ...]:
        request = self._request(self._prompt_values(subject, items), SummaryReply)
        reply = self._ask(request, SummaryReply, sink)
        dropped["malformed sentence of a summary"] += reply.dropped
        dropped["summary that was cut off"] += reply.truncated
        sentences = _check_sentences(reply.value, items, dropped)
        if not sentences:
            raise ModelError(
                f"The reply of {self.agent.name} to the step {NAME} has no sentence that says which"
                " description it rests on.",
                "A larger model, or one that supports structured output, does better.",
            )
        return limit_words(sentences, self._max_words, dropped)


class _TextGroup(tuple[SummarySentence, ...]):
    """Sentences kept as a unit: a summary's sentences, or one description."""

    @cached_property
    def cost(self) -> int:
        """Approximate token cost in a prompt."""
        return sum(count_tokens(item.text) + _OF_A_LINE for item in self)

    def ends_run(self, chance: float) -> bool:
        """Tell whether a run ends at this group, true for a share ``chance`` of all groups."""
        text = "\n".join(item.text for item in self)
        digest = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
        return int.from_bytes(digest) < chance * 2**64


def _cut_description(description: _TextGroup, room: int, dropped: Counter[str]) -> _TextGroup:
    """Return a description cut to fit a prompt."""
    if description.cost <= room:
        return description
    dropped["description cut for its summary"] += 1
    (item,) = description
    token_limit = max(room - _OF_A_LINE, _LEAST_ROOM)
    return _TextGroup((replace(item, text=truncate_text(item.text, token_limit)),))


def _split_runs(groups: Sequence[_TextGroup], room: int, least: int) -> Iterator[list[_TextGroup]]:
    """Yield runs of groups, each of at least ``least`` groups, limited to prompt room if
    longer, on average about half."""
    run: list[_TextGroup] = []
    size = 0
    for group in groups:
        if len(run) >= least and size + group.cost > room:
            yield run
            run, size = [], 0
        run.append(group)
        size += group.cost
        if len(run) > 1 and group.ends_run(2 * group.cost / room):
            yield run
            run, size = [], 0
    if run:
        yield run


def _check_sentences(
    reply: SummaryReply, items: _SummarySentences, dropped: Counter[str]
) -> list[SummarySentence]:
    """Return summary sentences with verified sources: ids not shown are dropped."""
    sources_by_id = {str(number): item.rests_on for number, item in enumerate(items, 1)}
    sentences = []
    for row in reply.sentences:
        ids = [*filter(None, map(str.strip, row.ids))]
        rests_on = {at for sentence_id in ids for at in sources_by_id.get(sentence_id, ())}
        dropped["unknown id in a summary"] += sum(
            sentence_id not in sources_by_id for sentence_id in ids
        )
        text = collapse_whitespace(row.text)
        if text and rests_on:
            sentences.append(SummarySentence(text, tuple(sorted(rests_on))))
        else:
            dropped["sentence of a summary without its source"] += 1
    return sentences
