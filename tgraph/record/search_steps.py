"""The DRIFT search record: action tree, each action's findings and statements, and the results.

An executed action is an activity: a fold of the primer, or a question answered by local search.
The action's reply is an intermediate answer with points; proposed next questions are
follow-ups, even if a limit left the questions unasked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tgraph import vocabulary as v
from tgraph.answer.community_selection import BEST, Descent
from tgraph.answer.drift import Response
from tgraph.answer.map_reduce import Batch, Mapped
from tgraph.model import Candidate
from tgraph.record.session import SessionRecord
from tgraph.retrieve.reasons import render_reason
from tgraph.retrieve.search.drift_actions import Action
from tgraph.store.statements import iri_node

_ENTITIES = tuple(f"{v.URN}{kind}:" for kind in ("report", "finding", "chunk", "evidence"))
"""The kinds of things on the way from a point to its characters that are entities of PROV."""


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """A recorded action.

    ``step`` is the action's activity, empty for actions not executed; ``retrieved`` and
    ``shown`` contain candidate ranks; ``points`` contains the answer's points, as session
    items."""

    action: Action
    parents: tuple[int, ...]
    step: str = ""
    retrieved: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    response: Response | None = None
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedPoint:
    """A session point: the candidate representing the point, the generating activity, and ranks
    of cited candidates."""

    point: Candidate
    step: str
    cites: tuple[int, ...]


def state_hypothesis(record: SessionRecord, step: str, text: str, template: str | None) -> str:
    """State the question rewritten as a hypothetical answer in report style; return the entity
    IRI."""
    return record.entity(
        record.part("hypothesis"),
        "Hypothesis",
        (v.tg("text"), text),
        label="The question put as a hypothetical answer",
        by=step,
        origins=(template,) if template else (),
    )


def state_actions(record: SessionRecord, tree: Sequence[RecordedAction]) -> None:
    """State all tree actions including results; written together with the retrieval."""
    steps = {entry.action.number: entry.step for entry in tree}
    for entry in tree:
        if entry.action.kind == "follow-up":
            _follow_up(record, entry, steps)
        if entry.step:
            _carried_out(record, entry)
        if entry.response is not None:
            _state_intermediate(record, entry)


def state_action_points(record: SessionRecord, made: Iterable[RecordedPoint]) -> None:
    """State the actions' points, each derived from cited candidates and evidence."""
    for entry in made:
        candidate = entry.point
        grounds = [e.iri for e in candidate.evidence]
        way = [i for e in candidate.evidence for i in e.via if i.startswith(_ENTITIES)]
        origins = [*(record.part("candidate", rank) for rank in entry.cites), *way, *grounds]
        record.entity(
            candidate.item.iri,
            "Point",
            (v.tg("index"), int(candidate.item.iri.rpartition(":")[2])),
            (v.tg("text"), candidate.item.text),
            (v.tg("score"), candidate.score),
            by=entry.step,
            origins=dict.fromkeys(origins),
        )


def _follow_up(record: SessionRecord, each: RecordedAction, steps: dict[int, str]) -> None:
    """State a follow-up question proposed by an answer, with promise and fate.

    The follow-up derives from the first answer proposing the question; other proposals may have
    come after the question was asked."""
    action = each.action
    first, *later_parents = (record.part("intermediate", number) for number in each.parents)
    record.entity(
        record.part("follow-up", action.number),
        "FollowUp",
        (v.tg("proposedAgainBy"), map(iri_node, later_parents)),
        (v.tg("index"), action.number),
        (v.tg("query"), action.query),
        (v.tg("depth"), action.depth),
        (v.tg("score"), action.promise.score),
        (v.tg("reasoning"), render_reason(action.promise.reason, record.wording)),
        (v.tg("status"), action.status),
        (v.tg("rejectionReason"), action.reason if action.status == "pruned" else None),
        by=steps[each.parents[0]],
        origins=(first,),
    )


def _carried_out(record: SessionRecord, each: RecordedAction) -> None:
    """State an action's retrieved candidates, and the candidates read."""
    used = [record.part("candidate", rank) for rank in each.shown]
    if each.action.kind == "follow-up":
        used.append(record.part("follow-up", each.action.number))
    record.out.add(
        each.step,
        (v.tg("index"), each.action.number),
        (v.prov("used"), map(iri_node, used)),
        (v.tg("candidate"), [iri_node(record.part("candidate", rank)) for rank in each.retrieved]),
    )


def _state_intermediate(record: SessionRecord, each: RecordedAction) -> None:
    """State an action's answer: points, plus the self-assessed score."""
    assert each.response is not None
    number = each.action.number
    is_follow_up = each.action.kind == "follow-up"
    origins = (record.part("follow-up", number),) if is_follow_up else ()
    record.entity(
        record.part("intermediate", number),
        "IntermediateAnswer",
        (v.tg("score"), each.response.score),
        (v.tg("status"), each.action.status),
        (v.tg("error"), each.response.failure or None),
        (v.tg("point"), map(iri_node, each.points)),
        by=each.step,
        origins=origins,
        dropped=each.response.dropped,
    )


def state_ratings(record: SessionRecord, step: str, descent: Descent) -> str:
    """State every rated report, with reasoning and rating as a share of the highest rating."""
    members = [record.part("rating", rank) for rank, _ in enumerate(descent.rated, 1)]
    for rank, (key, rated) in enumerate(zip(members, descent.rated, strict=True), 1):
        record.entity(
            key,
            "Rating",
            (v.tg("item"), iri_node(rated.report.iri)),
            (v.tg("rank"), rank),
            (v.tg("level"), rated.report.level),
            (v.tg("score"), None if rated.rating is None else rated.rating / BEST),
            (v.tg("relevant"), rated.relevant),
            (v.tg("reasoning"), render_reason(rated.reason, record.wording) or None),
            origins=(rated.report.iri,),
        )
    return record.entity(
        record.part("ratings"),
        "Ratings",
        (v.prov("hadMember"), map(iri_node, members)),
        label="Reports rated",
        by=step,
        collection=True,
        dropped=descent.dropped,
    )


def state_batches(record: SessionRecord, step: str, batches: Sequence[Batch]) -> list[str]:
    """State the batches: candidates per batch and token cost in the prompt."""
    keys = [record.part("batch", number) for number, _ in enumerate(batches)]
    for number, (key, batch) in enumerate(zip(keys, batches, strict=True)):
        members = [record.part("candidate", c.rank) for c in batch.candidates]
        record.entity(
            key,
            "ReportBatch",
            (v.tg("index"), number),
            (v.tg("tokenCount"), batch.tokens),
            (v.prov("hadMember"), map(iri_node, members)),
            by=step,
            collection=True,
        )
    return keys


def state_points(record: SessionRecord, step: str, mapped: Sequence[Mapped]) -> None:
    """State each batch's points, derived from cited candidates, plus the batch's omissions."""
    for number, mapped_batch in enumerate(mapped):
        points = [
            record.part("point", number, index) for index, _ in enumerate(mapped_batch.points)
        ]
        for index, (key, point) in enumerate(zip(points, mapped_batch.points, strict=True)):
            record.entity(
                key,
                "Point",
                (v.tg("index"), index),
                (v.tg("text"), point.text),
                (v.tg("score"), point.score),
                by=step,
                origins=dict.fromkeys([*point.cites, *(p.via[0] for p in point.evidence)]),
            )
        batch = record.part("batch", number)
        failure = mapped_batch.failure or None
        record.out.add(batch, (v.tg("point"), map(iri_node, points)), (v.tg("error"), failure))
        record.record_dropped(batch, mapped_batch.dropped)
