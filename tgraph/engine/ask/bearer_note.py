"""Whom an answer speaks of, where several bear a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tgraph.index.homonyms import Bearer
from tgraph.model import Citation, Sentence
from tgraph.record.merges import read_partings
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context

OTHER_BEARER = "sentence about another bearer of the name"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class NamedBearers:
    """The bearers of names that several bear, by name, and the bearers that the question does not
    mean: others than the one whose distinguishing words are in the question."""

    by_name: dict[str, list[Bearer]]
    not_meant: tuple[Bearer, ...]

    @classmethod
    def of_question(cls, question: str, context: Context) -> NamedBearers:
        """Return the standing bearers, told apart by the words of a question."""
        by_name: dict[str, list[Bearer]] = {}
        for parting in read_partings(context.store):
            if parting.stands:
                by_name.setdefault(parting.bearer.name, []).append(parting.bearer)
        asked = set(_WORD.findall(question.casefold()))
        not_meant: list[Bearer] = []
        for bearers in by_name.values():
            meant = [b for b in bearers if asked.issuperset(_WORD.findall(b.qualifier.casefold()))]
            if len(meant) == 1:
                not_meant += (bearer for bearer in bearers if bearer is not meant[0])
        return cls(dict(sorted(by_name.items())), tuple(not_meant))

    def is_about_others(self, sentence: Sentence) -> bool:
        """Return whether a sentence cites bearers alone that the question does not mean."""
        return bool(self.not_meant and sentence.citations) and all(
            any(_names(citation, bearer) for bearer in self.not_meant)
            for citation in sentence.citations
        )

    def describe(self, sentences: Sequence[Sentence], what: str = "") -> Iterator[str]:
        """Yield a note for each such name in the cited quotes: which sentences speak of whom, or
        whom ``what`` speaks of."""
        for bearers in self.by_name.values():
            spoken_of = [
                f"{f'{what} speaks' if what else _number_text(numbers)} of {bearer.label}"
                for bearer in sorted(bearers, key=lambda bearer: bearer.label)
                if (numbers := _cited_in(sentences, bearer))
            ]
            if spoken_of:
                name, whom = bearers[0].plain_name, "; ".join(spoken_of)
                yield f"“{name}” is the name of several: {whom}."


def _cited_in(sentences: Sequence[Sentence], bearer: Bearer) -> list[int]:
    """Return the numbers of the sentences that cite the bearer under the name."""
    return [
        number
        for number, sentence in enumerate(sentences, 1)
        if any(_names(citation, bearer) for citation in sentence.citations)
    ]


def _names(citation: Citation, bearer: Bearer) -> bool:
    quote = collapse_whitespace(citation.quote)
    return citation.document in bearer.documents and bearer.plain_name in quote


def _number_text(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"sentence {listed} speaks" if len(numbers) == 1 else f"sentences {listed} speak"
