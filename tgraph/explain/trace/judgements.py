"""What was said of an answer later, as recorded: verdicts on sentences, influence analyses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.trace.bundle_reader import BundleReader, kind_of
from tgraph.store.base import Graph, Store, text_of


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict on a sentence: of which verification, when that began, and where support was lost
    (empty where it was not)."""

    verification: str
    started: str
    verdict: str
    reason: str
    lost_at: str
    lost_in: str


def verdicts_on(store: Store, sentence: str) -> list[RecordedVerdict]:
    """The verdicts on a sentence of an answer, in the order in which they were made."""
    found = [
        _verdict(store, verdict, quad.graph_name)
        for quad in store.match(None, v.prov("wasDerivedFrom"), NamedNode(sentence), None)
        if kind_of(verdict := text_of(quad.subject)) == "verdict"
    ]
    return sorted(found, key=lambda verdict: (v.in_time(verdict.started), verdict.verification))


def _verdict(store: Store, verdict: str, graph: Graph) -> RecordedVerdict:
    said = BundleReader(store.match(NamedNode(verdict), None, None, graph))
    verification = said.one(verdict, "wasGeneratedBy")
    of_it = BundleReader(store.match(NamedNode(verification), v.prov("startedAtTime"), None, graph))
    return RecordedVerdict(
        verification,
        of_it.one(verification, "startedAtTime"),
        *(said.one(verdict, name) for name in ("verdict", "reasoning", "lostAt", "lostIn")),
    )


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
        if kind_of(analysis := text_of(quad.subject)) == "influence":
            said = BundleReader(store.match(None, None, None, quad.graph_name))
            if said.one(analysis, "status") == "completed":
                found.append((said.one(analysis, "startedAtTime"), analysis, said))
    if not found:
        return None
    started, analysis, said = max(found, key=lambda each: (v.in_time(each[0]), each[1]))
    return _read(said, analysis, started, answer)


def _read(said: BundleReader, analysis: str, started: str, answer: str) -> RecordedInfluence:
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
