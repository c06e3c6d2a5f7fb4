"""Summaries by a language model: what fits is packed into a prompt, and folded with the rest."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Unpack

from tgraph.errors import ModelError
from tgraph.extract.model.replies import Row, Text, Texts
from tgraph.extract.summaries import Summary, SummarySentence, whole, within
from tgraph.ingest.base import one_line
from tgraph.models.base import CallSink, ChatModel, no_sink
from tgraph.models.prompts import Options, Prompted, Prompts, load_prompt, messages
from tgraph.models.tokens import count_tokens, truncate

NAME = "summarise_descriptions"
_LEAST_ROOM = 100
_OF_A_LINE = 20  # tokens of an item's JSON beside its text, and of a long id
_Items = Sequence[SummarySentence]


class SentenceRow(Row):
    text: Text
    ids: Texts


class SummaryReply(Row):
    sentences: list[SentenceRow]


class ModelSummariser(Prompted):
    """A ``Summariser`` that asks a language model by the prompt ``summarise_descriptions``.

    Descriptions that don't fit into ``max_input_tokens`` together are summarised as far as they do;
    the sentences of that summary go into the next prompt with as many of the rest as fit, and so
    on. What a sentence rests on is passed on through every fold.
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
        rest = whole(descriptions)
        found: tuple[SummarySentence, ...] = ()
        while rest:
            taken = self._fitting(subject, found, rest, dropped)
            rest = rest[len(taken) :]
            found = self._fold(subject, [*found, *taken], sink, dropped)
        return Summary(found, {reason: count for reason, count in dropped.items() if count})

    def _fitting(
        self, subject: str, batch: _Items, rest: _Items, dropped: Counter[str]
    ) -> list[SummarySentence]:
        """As many of the rest as the prompt has room for beside the batch, but at least one."""
        asked = [m["content"] for m in messages(self._prompt, self._values(subject, batch))]
        if self._fit_anyhow(asked, rest):
            return list(rest)
        room = self._budget - sum(map(count_tokens, asked))
        taken: list[SummarySentence] = []
        for item in rest:
            cost = count_tokens(item.text) + _OF_A_LINE
            if cost > room:
                break
            taken.append(item)
            room -= cost
        if not taken:
            dropped["description cut for its summary"] += 1
            short = truncate(rest[0].text, max(room - _OF_A_LINE, _LEAST_ROOM))
            return [SummarySentence(short, rest[0].rests_on)]
        return taken

    def _fit_anyhow(self, asked: Sequence[str], rest: _Items) -> bool:
        """Whether there is room for all even if each byte is a token, as it is at most."""
        texts = [*asked, *(item.text for item in rest)]
        most = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return most + len(rest) * _OF_A_LINE <= self._budget

    def _values(self, subject: str, items: _Items) -> dict[str, str]:
        lines = (
            json.dumps({"id": str(number), "text": item.text}, ensure_ascii=False)
            for number, item in enumerate(items, 1)
        )
        return {
            "subject": one_line(subject),
            "descriptions": "\n".join(lines),
            "max_words": str(self._max_words),
        }

    def _fold(
        self, subject: str, items: _Items, sink: CallSink, dropped: Counter[str]
    ) -> tuple[SummarySentence, ...]:
        request = self._request(self._values(subject, items), SummaryReply)
        reply = self._ask(request, SummaryReply, sink)
        dropped["malformed sentence of a summary"] += reply.dropped
        dropped["summary that was cut off"] += reply.truncated
        found = _checked(reply.value, items, dropped)
        if not found:
            raise ModelError(
                f"The reply of {self.agent.name} to the step {NAME} has no sentence that says which"
                " description it rests on.",
                "A larger model, or one that supports structured output, does better.",
            )
        return within(found, self._max_words, dropped)


def _checked(reply: SummaryReply, items: _Items, dropped: Counter[str]) -> list[SummarySentence]:
    """The sentences with what they really rest on: ids that were not shown are dropped."""
    known = {str(number): item.rests_on for number, item in enumerate(items, 1)}
    found = []
    for row in reply.sentences:
        ids = [*filter(None, map(str.strip, row.ids))]
        rests_on = {at for one in ids for at in known.get(one, ())}
        dropped["unknown id in a summary"] += sum(one not in known for one in ids)
        text = one_line(row.text)
        if text and rests_on:
            found.append(SummarySentence(text, tuple(sorted(rests_on))))
        else:
            dropped["sentence of a summary without its source"] += 1
    return found
