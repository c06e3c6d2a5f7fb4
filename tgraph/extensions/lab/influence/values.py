"""Influence analysis values: dependence of an answer on selected items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tgraph.rendering import brief_repr


@dataclass(frozen=True, slots=True)
class ItemInfluence:
    """The answer's loss without a selected item.

    ``weight`` is the share of answer sentences lost (-1 to 1; negative if more sentences appear
    without the item), ``by_sentence`` the loss per sentence; both are None if no reply was
    usable. ``influential`` tells whether the item changes the answer or a sentence by more than
    ``floor``, the ordinary difference between runs."""

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
    """A selected item's weight for a sentence, above noise, with a flag for citation by the
    sentence."""

    selection: str
    label: str
    weight: float
    cited: bool


@dataclass(frozen=True, slots=True)
class SentenceInfluence:
    """An answer sentence with its dependencies, heaviest first.

    ``reproduced`` is the share of unmodified runs repeating the sentence. The other flags tell
    whether it appears without its cited items, without all items at its cited positions, and
    from the writer without documents; None if unknown."""

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
    """Measures of the joint citation set (0 to 1, None if unmeasured).

    ``sufficiency`` is the answer share reproduced from cited items alone, ``necessity`` the
    share lost without them, ``f1`` their harmonic mean. Each is a mean over usable runs;
    ``spread`` is the largest difference between runs of the same kind, None without
    repetitions."""

    necessity: float | None
    sufficiency: float | None
    f1: float | None
    spread: float | None = None

    @classmethod
    def from_shares(
        cls, necessity: float | None, sufficiency: float | None, spread: float | None = None
    ) -> CitedSet:
        """Return a cited set with F1, the harmonic mean of necessity and sufficiency."""
        if necessity is None or sufficiency is None:
            return cls(necessity, sufficiency, None, spread)
        total = necessity + sufficiency
        f1 = 2 * necessity * sufficiency / total if total else 0.0
        return cls(necessity, sufficiency, f1, spread)


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap between citation and influence, as selection IRIs.

    ``gap`` is the share of cited items without influence plus the share of influential items
    without citation (0 to 2)."""

    cited_without_influence: tuple[str, ...]
    influential_uncited: tuple[str, ...]
    gap: float


@dataclass(frozen=True, slots=True)
class AblationRun:
    """A regeneration run: purposes, selection ``mask`` (1 for each remaining item), and
    repeated sentences ``said`` (1 for each; None if the reply was unusable)."""

    kinds: tuple[str, ...]
    mask: str
    repeat: int
    said: str | None


@dataclass(frozen=True, slots=True)
class Influence:
    """An influence analysis: dependence of an answer on selected items.

    ``writer`` regenerated answers, ``measure`` detected repeated sentences. ``noise_floor`` is
    the largest weight explained by noise: 0 if unmodified runs are equal. ``parametric`` is the
    answer share written without documents. ``analysis`` is the recorded IRI."""

    session: str
    question: str
    mode: str
    method: Literal["leave-one-out"]
    writer: str
    measure: str
    items: tuple[ItemInfluence, ...]
    sentences: tuple[SentenceInfluence, ...]
    noise_floor: float
    cited_set: CitedSet
    parametric: float | None
    gap: Gap
    runs: tuple[AblationRun, ...]
    analysis: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    __repr__ = brief_repr

    @property
    def ranked_items(self) -> tuple[ItemInfluence, ...]:
        """Influential items, heaviest first."""
        influential_items = [item for item in self.items if item.influential]
        return tuple(sorted(influential_items, key=lambda item: -(item.weight or 0.0)))


@dataclass(frozen=True, slots=True)
class InfluenceEstimate:
    """An influence analysis cost estimate, made before any spending.

    ``calls`` will be made, except free cached calls, counted in ``known``; at most ``later``
    more follow, depending on answer variation. Token counts cover remaining calls: exact for
    prompts, replies as long as the answer. ``cost`` is in US dollars, None without a known
    price; ``model`` is None if the embedded default writes without calls."""

    session: str
    items: int
    sentences: int
    method: Literal["leave-one-out"]
    model: str | None
    runs: int
    calls: int
    known: int
    later: int
    input_tokens: int
    output_tokens: int
    cost: float | None
