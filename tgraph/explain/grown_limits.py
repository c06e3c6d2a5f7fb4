"""Which limit of the mode ``graph`` kept an edge out of the subgraph, or from being read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from tgraph.explain.expected import Expected
from tgraph.explain.nearest_limits import Limit, first_of, least_value, nth
from tgraph.explain.past_vectors import LostVectorsError
from tgraph.model import EntityMatch
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.corpus import frequencies
from tgraph.retrieve.graph import READ, in_context, reading_order
from tgraph.retrieve.inquiry import read_question
from tgraph.retrieve.meaning import Meaning
from tgraph.retrieve.passages import meaning_of
from tgraph.retrieve.subgraph import Subgraph, grow

_MOST = 1 << 20
_LIFTED = (("triple_limit", ""), ("entity_limit", ""), ("triple_limit", "entity_limit"))
"""The limits that are lifted, one after the other, and what is beside them."""


@dataclass(frozen=True)
class Grown:
    """Grows the subgraph once more, from the same entities, with limits lifted."""

    expected: Expected
    context: Context
    question: Question
    matches: Sequence[EntityMatch]

    def find(self, entity: str) -> Limit | None:
        """The limit; ``rank`` is the least value of it at which the expected comes in. None where
        a vector is on no record, or no limit was in the way. ``entity`` is the nearest match."""
        with suppress(LostVectorsError):
            if self._is_in({}):
                return self._unread()
            for field, other in _LIFTED:
                lifted = {other: _MOST} if other else {}
                if self._is_in({**lifted, field: _MOST}):
                    return self._beyond(field, lifted, entity)
        return None

    def _beyond(self, field: str, lifted: Mapping[str, int], entity: str) -> Limit:
        name, cutoff = field.replace("_", "-"), int(getattr(self.context.limits, field))
        rank = least_value(lambda n: self._is_in({**lifted, field: n}), cutoff, _MOST)
        why = f"of the edges on the way from {entity} others were nearer to the question: it comes"
        why = f"{why} into the subgraph from {name} {rank} on, and it was {cutoff}"
        also = "".join(f"; {other.replace('_', '-')} was in the way too" for other in lifted)
        return Limit(name, cutoff, rank, f"{why}{also}")

    def _unread(self) -> Limit | None:
        """The sentences of so many edges of the subgraph are read, the nearest."""
        subgraph = self._subgraph({})
        order = reading_order(subgraph, self._meaning, self.matches)
        rank = first_of(order, self.expected.edges)
        if rank <= READ:
            return None
        why = f"it is the {nth(rank)} of {len(order)} edges of the subgraph by likeness to the"
        why = f"{why} question, and the sentences of the first {READ} are read (fixed)"
        return Limit("most-read", READ, rank, why)

    def _is_in(self, limits: Mapping[str, int]) -> bool:
        return not self.expected.edges.isdisjoint(self._subgraph(limits).edges)

    def _subgraph(self, limits: Mapping[str, int]) -> Subgraph:
        settings = self.context.settings
        graph = settings.graph.model_copy(update=dict(limits))
        context = replace(self.context, settings=settings.model_copy(update={"graph": graph}))
        return grow([match.entity for match in self.matches], self._meaning, context)

    @cached_property
    def _meaning(self) -> Meaning:
        inquiry = read_question(in_context(self.question), frequencies(self.context))
        return meaning_of(inquiry, self.context)
