"""What was said of an answer later, as recorded: verdicts on sentences, influence analyses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.explain.trace.bundle_reader import BundleReader, kind_of
from tgraph.store.base import Graph, Store, match_record, text_of


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A sentence verdict: verification, start time, verdict, reason, and where support was
    lost.

    ``lost_at`` is blank if support was not lost."""

    verification: str
    started: str
    verdict: str
    reason: str
    lost_at: str
    lost_in: str


def verdicts_on(store: Store, sentence: str) -> list[RecordedVerdict]:
    """Return verdicts on an answer sentence, or on an answer as a whole, in order of creation."""
    verdicts = [
        _read_verdict(store, verdict, quad.graph_name)
        for quad in match_record(store, None, v.prov("wasDerivedFrom"), NamedNode(sentence))
        if kind_of(verdict := text_of(quad.subject)) == "verdict"
    ]
    return sorted(verdicts, key=lambda verdict: (v.in_time(verdict.started), verdict.verification))


def _read_verdict(store: Store, verdict: str, graph: Graph) -> RecordedVerdict:
    bundle_reader = BundleReader(store.match(NamedNode(verdict), None, None, graph))
    verification = bundle_reader.read_text(verdict, "wasGeneratedBy")
    of_it = BundleReader(store.match(NamedNode(verification), v.prov("startedAtTime"), None, graph))
    return RecordedVerdict(
        verification,
        of_it.read_text(verification, "startedAtTime"),
        *(
            bundle_reader.read_text(verdict, name)
            for name in ("verdict", "reasoning", "lostAt", "lostIn")
        ),
    )


@dataclass(frozen=True, slots=True)
class RecordedInfluence:
    """The latest completed influence analysis of an answer.

    ``weights`` holds the weight of each measured selection for the whole answer; ``above``
    lists selections with influence above noise, heaviest first; ``sentences`` holds weights
    above noise for each sentence, heaviest first. ``measures`` are figures by name."""

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
    """Return an answer's latest completed influence analysis, or None without analysis."""
    analyses = []
    for quad in match_record(store, None, v.prov("used"), NamedNode(answer)):
        if kind_of(analysis := text_of(quad.subject)) == "influence":
            bundle_reader = BundleReader(store.match(None, None, None, quad.graph_name))
            if bundle_reader.read_text(analysis, "status") == "completed":
                analyses.append(
                    (bundle_reader.read_text(analysis, "startedAtTime"), analysis, bundle_reader)
                )
    if not analyses:
        return None
    started, analysis, bundle_reader = max(analyses, key=lambda each: (v.in_time(each[0]), each[1]))
    return _read_influence(bundle_reader, analysis, started, answer)


def _read_influence(
    said: BundleReader, analysis: str, started: str, answer: str
) -> RecordedInfluence:
    uuid = analysis.rpartition(":")[2]
    weights: dict[str, dict[str, float]] = {}
    above: dict[str, float] = {}
    for subject in said.beginning(v.session_part_iri("influence", uuid, "")):
        selection, weight = (
            said.read_text(subject, "influencer"),
            said.real(subject, "influenceWeight"),
        )
        influenced = said.read_text(subject, "influenced")
        weights.setdefault(influenced, {})[selection] = weight
        if influenced == answer and said.read_text(subject, "aboveFloor") == "true":
            above[selection] = weight
    result = v.session_part_iri("influence-result", uuid)
    lds = said.read_text(result, "lds")
    return RecordedInfluence(
        analysis=analysis,
        started=started,
        method=said.parameters(analysis).get("method", ""),
        runs=len(said.beginning(v.session_part_iri("ablation", uuid, ""))),
        weights=_sort_by_weight(weights.pop(answer, {})),
        above=tuple(_sort_by_weight(above)),
        sentences={
            sentence: _sort_by_weight(selection_weights)
            for sentence, selection_weights in sorted(weights.items())
        },
        measures={
            said.read_text(m, "label"): said.real(m, "value")
            for m in sorted(said.read_texts(result, "metric"))
        },
        lds=float(lds) if lds else None,
    )


def _sort_by_weight(weights: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(weights.items(), key=lambda each: (-each[1], each[0])))
