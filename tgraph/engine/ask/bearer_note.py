"""Whom an answer speaks of, where several bear a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tgraph.index.homonyms import Bearer
from tgraph.model import Sentence
from tgraph.record.merges import read_partings
from tgraph.rendering import collapse_whitespace
from tgraph.retrieve.base import Context


def describe_bearers(sentences: Sequence[Sentence], context: Context) -> Iterator[str]:
    """Yield a note for each name in the cited quotes that several bear: which sentences speak of
    which bearer."""
    bearers_by_name: dict[str, list[Bearer]] = {}
    for parting in read_partings(context.store):
        if parting.stands:
            bearers_by_name.setdefault(parting.bearer.name, []).append(parting.bearer)
    for _, bearers in sorted(bearers_by_name.items()):
        spoken_of = {
            bearer.label: numbers
            for bearer in sorted(bearers, key=lambda bearer: bearer.label)
            if (numbers := _cited_in(sentences, bearer))
        }
        if spoken_of:
            plain = bearers[0].plain_name
            whom = "; ".join(
                f"{_number_text(numbers)} of {label}" for label, numbers in spoken_of.items()
            )
            yield f"“{plain}” is the name of several: of the answer, {whom}."


def _cited_in(sentences: Sequence[Sentence], bearer: Bearer) -> list[int]:
    """Return the numbers of the sentences that cite the bearer under the name."""
    return [
        number
        for number, sentence in enumerate(sentences, 1)
        if any(
            citation.document in bearer.documents
            and bearer.plain_name in collapse_whitespace(citation.quote)
            for citation in sentence.citations
        )
    ]


def _number_text(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"sentence {listed} speaks" if len(numbers) == 1 else f"sentences {listed} speak"
