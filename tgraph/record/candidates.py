"""The candidates of a retrieval as TriG: rows that differ between sessions by their UUID alone.

Questions of a kind often have the same candidates, such as all reports of a level, so that what a
row says is kept for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tgraph import vocabulary as v
from tgraph.model import Candidate, Edge
from tgraph.record.lines import rows_of
from tgraph.store.statements import iri

_KEPT = 8


@dataclass(frozen=True, slots=True, eq=False)
class _Same:
    """The candidates as a key: equal to none but themselves, for comparing them takes too long."""

    candidates: Sequence[Candidate]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.candidates is other.candidates

    def __hash__(self) -> int:
        return id(self.candidates)


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """By what the IRIs of the candidates end, in their order, and what is said of them, each
    beginning with that end and ``>``; edges first."""

    ends: tuple[str, ...]
    said: tuple[str, ...]


def candidate_rows(candidates: Sequence[Candidate]) -> CandidateRows:
    """What is said of the candidates in any session."""
    return _rows(_Same(candidates))


@lru_cache(maxsize=_KEPT)
def _rows(same: _Same) -> CandidateRows:
    candidates = same.candidates
    edges = [
        (str(c.rank), (iri(c.item.iri), c.hop, c.rank, c.score, c.tokens))
        for c in candidates
        if isinstance(c.item, Edge)
    ]
    items = [
        (str(c.rank), (iri(c.item.iri), c.rank, c.score, c.tokens))
        for c in candidates
        if not isinstance(c.item, Edge)
    ]
    kind = (v.RDF_TYPE, [v.prov("Entity"), v.tg("Candidate")])
    ranked = [v.tg("rank"), v.tg("score"), v.tg("tokenCount")]
    said = [
        *rows_of(edges, [v.tg("edge"), v.tg("hop"), *ranked], kind),
        *rows_of(items, [v.tg("item"), *ranked], kind),
    ]
    return CandidateRows(
        tuple(str(c.rank) for c in candidates), tuple(f"{end}> {row}.\n" for end, row in said)
    )
