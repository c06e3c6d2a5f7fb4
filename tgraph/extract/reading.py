"""What the readers of all languages write down: facts, first mentions, and what was dropped."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pyoxigraph import Literal

from tgraph.extract.blocks import Block
from tgraph.extract.names import Named, Names

MENTIONS = "mentions"
WEAK = 2.0
Argument = Named | Literal


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement with its sentence as positions in the block's text."""

    subject: Named
    predicate: str
    object: Argument
    strength: float
    block: Block
    start: int
    end: int


@dataclass(slots=True)
class Reading:
    """What a chunk says: facts in order, first mentions, and what was dropped and why."""

    names: Names
    facts: list[Fact] = field(default_factory=list)
    first: dict[int, tuple[Block, int, int]] = field(default_factory=dict)
    found: list[Named] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)

    def see(self, entity: Named, block: Block, start: int, end: int) -> None:
        """Takes note of a mention; the first one is where the entity is said to stand."""
        if id(entity) not in self.first:
            self.first[id(entity)] = block, start, end
            self.found.append(entity)
