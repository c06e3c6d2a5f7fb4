"""Whether a sentence is said again in another answer."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph.answer.model import VERIFY
from tgraph.answer.support import LexicalJudge
from tgraph.models.base import no_sink


class SaidAgain:
    """Tells which sentences of one answer another answer still says.

    A sentence is still said where a sentence of the other answer proves it by its words, as
    ``verify`` judges without a model (``LexicalJudge``).
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        self._sentences = [_plain(text) for text in sentences]
        self._judge = LexicalJudge()
        self._known: dict[tuple[int, str], bool] = {}

    @property
    def measure(self) -> str:
        return self._judge.agent.name

    def of(self, answer: Sequence[str]) -> tuple[bool, ...]:
        """For each sentence whether the answer says it."""
        places = [_plain(text) for text in answer]
        return tuple(
            any(self._proves(place, number) for place in places)
            for number in range(len(self._sentences))
        )

    def _proves(self, place: str, number: int) -> bool:
        key = number, place
        if key not in self._known:
            sentence = self._sentences[number]
            found = place == sentence or (
                self._judge.judge("", sentence, (place,), no_sink).verdict == "supported"
            )
            self._known[key] = found
        return self._known[key]


def _plain(text: str) -> str:
    return " ".join(text.removesuffix(VERIFY).split())
