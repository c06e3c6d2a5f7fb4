"""What influence analyses have said of an answer, as it is on record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.said import Said, kind_of
from tgraph.store.base import Store


@dataclass(frozen=True, slots=True)
class RecordedInfluence:
    """The last analysis of an answer that came to a result.

    ``weights`` has the weight of each selection that was measured, for the whole answer; ``above``
    the selections whose influence is more than noise, the heaviest first; ``sentences`` for each
    sentence the weights above noise, the heaviest first. ``measures`` are the figures by name.
    """

    analysis: str
    started: str
    method: str
    runs: int
    weights: Mapping[str, float]
    above: tuple[str, ...]
    sentences: Mapping[str, Mapping[str, float]]
    measures: Mapping[str, float]
    lds: float | None = None


def influence_on(store: Store, answer: str) -> RecordedInfluence | None:
    """The last finished analysis of an answer; None where there is none."""
    found = []
    for quad in store.match(None, v.prov("used"), NamedNode(answer), None):
        if isinstance(quad.subject, NamedNode) and kind_of(quad.subject.value) == "influence":
            said = Said(store.match(None, None, None, quad.graph_name))
            analysis = quad.subject.value
            if said.one(analysis, "status") == "completed":
                found.append((said.one(analysis, "startedAtTime"), analysis, said))
    if not found:
        return None
    started, analysis, said = max(found, key=lambda each: (v.in_time(each[0]), each[1]))
    return _read(said, analysis, started, answer)


def _read(said: Said, analysis: str, started: str, answer: str) -> RecordedInfluence:
    uuid = analysis.rpartition(":")[2]
    weights: dict[str, dict[str, float]] = {}
    above: dict[str, float] = {}
    for subject in said.beginning(v.session_part_iri("influence", uuid, "")):
        selection, weight = said.one(subject, "influencer"), said.real(subject, "influenceWeight")
        influenced = said.one(subject, "influenced")
        weights.setdefault(influenced, {})[selection] = weight
        if influenced == answer and said.one(subject, "aboveFloor") == "true":
            above[selection] = weight
    result = v.session_part_iri("influence-result", uuid)
    lds = said.one(result, "lds")
    return RecordedInfluence(
        analysis=analysis,
        started=started,
        method=said.parameters(analysis).get("method", ""),
        runs=len(said.beginning(v.session_part_iri("ablation", uuid, ""))),
        weights=_heaviest(weights.pop(answer, {})),
        above=tuple(_heaviest(above)),
        sentences={sentence: _heaviest(own) for sentence, own in sorted(weights.items())},
        measures={
            said.one(m, "label"): said.real(m, "value") for m in sorted(said.all(result, "metric"))
        },
        lds=float(lds) if lds else None,
    )


def _heaviest(weights: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(weights.items(), key=lambda each: (-each[1], each[0])))
