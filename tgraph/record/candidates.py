"""The candidates of a retrieval as TriG: rows that differ between sessions by their UUID alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.model import Candidate, Edge
from tgraph.store.statements import Pair, iri, trig_row

_KEPT = 8
_CLASSES = (v.prov("Entity"), v.tg("Candidate"))


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
    """By what the IRIs of the candidates end, in their order, and what is said of them, as
    ``trig_row`` has it; edges first."""

    ends: tuple[str, ...]
    said: tuple[str, ...]


def candidate_rows(candidates: Sequence[Candidate]) -> CandidateRows:
    """What is said of the candidates in any session. It is kept for the next questions, since those
    of a kind often have the same candidates, such as all reports of a level."""
    return _rows(_Same(candidates))


@lru_cache(maxsize=_KEPT)
def _rows(same: _Same) -> CandidateRows:
    edges = [c for c in same.candidates if isinstance(c.item, Edge)]
    items = [c for c in same.candidates if not isinstance(c.item, Edge)]
    said = [
        *(_row(c, v.tg("edge"), (v.tg("hop"), c.hop)) for c in edges),
        *(_row(c, v.tg("item")) for c in items),
    ]
    return CandidateRows(tuple(str(c.rank) for c in same.candidates), tuple(said))


def _row(candidate: Candidate, kind: NamedNode, *pairs: Pair) -> str:
    return trig_row(
        str(candidate.rank),
        (v.RDF_TYPE, _CLASSES),
        (kind, iri(candidate.item.iri)),
        *pairs,
        (v.tg("rank"), candidate.rank),
        (v.tg("score"), candidate.score),
        (v.tg("tokenCount"), candidate.tokens),
    )
