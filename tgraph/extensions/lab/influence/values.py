"""The values of an influence analysis: which of what was selected an answer depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as Choice

from tgraph.rendering import brief

Means = Choice["leave-one-out", "sampled"]


@dataclass(frozen=True, slots=True)
class ItemInfluence:
    """What the answer loses without a selected item.

    ``weight`` is the share of the answer's sentences that is lost (-1 to 1; below 0 where more of
    it is said without the item), ``by_sentence`` the same for each sentence; both are None where
    no reply could be used. ``influential`` says whether the item moves the answer, or one of its
    sentences, by more than ``floor``, what runs differ by in any case.
    """

    selection: str
    item: str
    kind: str
    label: str
    cited: bool
    weight: float | None
    floor: float
    influential: bool
    by_sentence: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class SentenceWeight:
    """What a selection weighs for one sentence, above the noise; whether the sentence cites it."""

    selection: str
    label: str
    weight: float
    cited: bool


@dataclass(frozen=True, slots=True)
class SentenceInfluence:
    """A sentence of the answer, and what it depends on, the heaviest first.

    ``reproduced`` is the share of the runs with nothing removed that say it again. The others say
    whether it is still said without what it cites, without everything that rests on the places that
    it cites, and by the writer without any document; None where that could not be told.
    """

    sentence: str
    text: str
    reproduced: float
    floor: float
    without_cited: bool | None
    without_places: bool | None
    without_anything: bool | None
    depends_on: tuple[SentenceWeight, ...] = ()


@dataclass(frozen=True, slots=True)
class CitedSet:
    """The set of all that the answer cites (0 to 1, None where it could not be measured).

    ``sufficiency`` is the share of the answer that is said from it alone, ``necessity`` the share
    that is lost without it, ``f1`` their harmonic mean. Each is the mean of as many runs as could
    be used; ``spread`` is the most by which two runs of the same kind differ, None where none was
    repeated.
    """

    necessity: float | None
    sufficiency: float | None
    f1: float | None
    spread: float | None = None

    @classmethod
    def of(
        cls, necessity: float | None, sufficiency: float | None, spread: float | None = None
    ) -> CitedSet:
        """The two with their mean."""
        if necessity is None or sufficiency is None:
            return cls(necessity, sufficiency, None, spread)
        both = necessity + sufficiency
        f1 = 2 * necessity * sufficiency / both if both else 0.0
        return cls(necessity, sufficiency, f1, spread)


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap between what is cited and what has influence, by IRIs of selections.

    ``gap`` is the share of the cited without influence plus the share of the influential that is
    not cited (0 to 2).
    """

    cited_without_influence: tuple[str, ...]
    influential_uncited: tuple[str, ...]
    gap: float


@dataclass(frozen=True, slots=True)
class SurrogateFit:
    """How well the sum of weights tells what an ablation does (sampled ablations only).

    ``lds`` is the linear datamodeling score, Spearman's rank correlation (-1 to 1) of the predicted
    and the actual share of the answer over ablations that were held out; ``by_citations`` and
    ``by_score`` are the same for the number of cited items and for the sum of the retrieval scores
    that were left, in place of the weights. None where nothing varies. ``error`` is what a weight
    may be off by for the fit alone; what is below it is not shown as influence.
    """

    trained: int
    held_out: int
    lds: float | None
    by_citations: float | None
    by_score: float | None
    error: float


@dataclass(frozen=True, slots=True)
class AblationRun:
    """One time the answer was written: what for, from which of the selected items (``mask``, a 1
    for each that was left), and which sentences were said again (``said``, a 1 for each; None where
    the reply could not be used)."""

    kinds: tuple[str, ...]
    mask: str
    repeat: int
    said: str | None


@dataclass(frozen=True, slots=True)
class Influence:
    """Which of the selected items an answer depends on.

    ``writer`` wrote the answers again, ``measure`` told whether a sentence is still said.
    ``noise_floor`` is what a weight may come to by noise alone: 0 where runs with nothing removed
    say the same.
    ``parametric`` is the share of the answer that the writer says without any document.
    ``top`` is what is lost without the (at most three) most influential items, ``random`` without
    as many others. ``analysis`` is the IRI on record.
    """

    session: str
    question: str
    mode: str
    method: Means
    writer: str
    measure: str
    items: tuple[ItemInfluence, ...]
    sentences: tuple[SentenceInfluence, ...]
    noise_floor: float
    cited_set: CitedSet
    parametric: float | None
    gap: Gap
    fit: SurrogateFit | None
    top: float | None
    random: float | None
    runs: tuple[AblationRun, ...]
    analysis: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    __repr__ = brief

    @property
    def ranked(self) -> tuple[ItemInfluence, ...]:
        """The items with influence, the heaviest first."""
        found = [item for item in self.items if item.influential]
        return tuple(sorted(found, key=lambda item: -(item.weight or 0.0)))


@dataclass(frozen=True, slots=True)
class InfluenceEstimate:
    """What an analysis would cost, told before anything is spent.

    ``calls`` will be made, except those ``known`` from before, which cost nothing; at most
    ``later`` more follow, the more the writer's answers differ by themselves. Tokens are those of
    the calls that are left: of the prompts exactly, of replies as many as the answer had. ``cost``
    is in US dollars, None where no price is known; ``model`` is None where the embedded default
    writes, without calls.
    """

    session: str
    items: int
    sentences: int
    method: Means
    model: str | None
    runs: int
    calls: int
    known: int
    later: int
    input_tokens: int
    output_tokens: int
    cost: float | None
