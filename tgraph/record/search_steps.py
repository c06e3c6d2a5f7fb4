"""The record of DRIFT search: the tree of actions, what each found and said, and what came of it.

An action that was carried out is an activity: a fold of the primer, or a question answered by local
search. What it said is an intermediate answer with its points; what it proposed to ask next are
follow-ups, also where a limit left them unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tgraph import vocabulary as v
from tgraph.answer.community_selection import BEST, Descent
from tgraph.answer.drift import Response
from tgraph.answer.map_reduce import Batch, Mapped
from tgraph.model import Candidate
from tgraph.record.session import SessionRecord
from tgraph.retrieve.search.drift_actions import Action
from tgraph.store.statements import iri

_ENTITIES = tuple(f"{v.URN}{kind}:" for kind in ("report", "finding", "chunk", "evidence"))
"""The kinds of things on the way from a point to its characters that are entities of PROV."""


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """An action as it is recorded.

    ``step`` is its activity, empty where it was not carried out; ``retrieved`` and ``shown`` are
    candidates by rank; ``points`` those of its answer, as items of the session.
    """

    action: Action
    parents: tuple[int, ...]
    step: str = ""
    retrieved: tuple[int, ...] = ()
    shown: tuple[int, ...] = ()
    response: Response | None = None
    points: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedPoint:
    """A point of the session: the candidate that stands for it, the activity that made it, and the
    ranks of the candidates that it cites."""

    point: Candidate
    step: str
    cites: tuple[int, ...]


def hypothesis(record: SessionRecord, step: str, text: str, template: str | None) -> str:
    """The question put as a hypothetical answer, in the manner of a report."""
    return record.entity(
        record.part("hypothesis"),
        "Hypothesis",
        (v.tg("text"), text),
        label="The question put as a hypothetical answer",
        by=step,
        origins=(template,) if template else (),
    )


def actions(record: SessionRecord, tree: Sequence[RecordedAction]) -> None:
    """Every action of the tree with all that came of it; to be written with the retrieval."""
    steps = {each.action.number: each.step for each in tree}
    for each in tree:
        if each.action.kind == "follow-up":
            _follow_up(record, each, steps)
        if each.step:
            _carried_out(record, each)
        if each.response is not None:
            _intermediate(record, each)


def points(record: SessionRecord, made: Iterable[RecordedPoint]) -> None:
    """What the actions said, statement by statement, each derived from what it cites."""
    for each in made:
        candidate = each.point
        grounds = [e.iri for e in candidate.evidence]
        way = [i for e in candidate.evidence for i in e.via if i.startswith(_ENTITIES)]
        origins = [*(record.part("candidate", rank) for rank in each.cites), *way, *grounds]
        record.entity(
            candidate.item.iri,
            "Point",
            (v.tg("index"), int(candidate.item.iri.rpartition(":")[2])),
            (v.tg("text"), candidate.item.text),
            (v.tg("score"), candidate.score),
            by=each.step,
            origins=dict.fromkeys(origins),
        )


def _follow_up(record: SessionRecord, each: RecordedAction, steps: dict[int, str]) -> None:
    """A question that an answer proposed to ask next, with its promise and its fate. It comes from
    the answer that proposed it first; others may have been given after it was asked."""
    action = each.action
    first, *others = (record.part("intermediate", number) for number in each.parents)
    record.entity(
        record.part("follow-up", action.number),
        "FollowUp",
        (v.tg("proposedAgainBy"), map(iri, others)),
        (v.tg("index"), action.number),
        (v.tg("query"), action.query),
        (v.tg("depth"), action.depth),
        (v.tg("score"), action.promise.score),
        (v.tg("reasoning"), str(action.promise)),
        (v.tg("status"), action.status),
        (v.tg("rejectionReason"), action.reason if action.status == "pruned" else None),
        by=steps[each.parents[0]],
        origins=(first,),
    )


def _carried_out(record: SessionRecord, each: RecordedAction) -> None:
    """What an action retrieved, and what of it was read."""
    used = [record.part("candidate", rank) for rank in each.shown]
    if each.action.kind == "follow-up":
        used.append(record.part("follow-up", each.action.number))
    record.out.add(
        each.step,
        (v.tg("index"), each.action.number),
        (v.prov("used"), map(iri, used)),
        (v.tg("candidate"), [iri(record.part("candidate", rank)) for rank in each.retrieved]),
    )


def _intermediate(record: SessionRecord, each: RecordedAction) -> None:
    """What an action answered: its points, and how well they answer in its own judgement."""
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
        (v.tg("point"), map(iri, each.points)),
        by=each.step,
        origins=origins,
        dropped=each.response.dropped,
    )


def state_ratings(record: SessionRecord, step: str, descent: Descent) -> str:
    """Every report that was rated, with the rating as a share of the highest, and why."""
    members = [record.part("rating", rank) for rank, _ in enumerate(descent.rated, 1)]
    for rank, (key, rated) in enumerate(zip(members, descent.rated, strict=True), 1):
        record.entity(
            key,
            "Rating",
            (v.tg("item"), iri(rated.report.iri)),
            (v.tg("rank"), rank),
            (v.tg("level"), rated.report.level),
            (v.tg("score"), None if rated.rating is None else rated.rating / BEST),
            (v.tg("relevant"), rated.relevant),
            (v.tg("reasoning"), rated.reason or None),
            origins=(rated.report.iri,),
        )
    return record.entity(
        record.part("ratings"),
        "Ratings",
        (v.prov("hadMember"), map(iri, members)),
        label="Reports rated",
        by=step,
        collection=True,
        dropped=descent.dropped,
    )


def state_batches(record: SessionRecord, step: str, batches: Sequence[Batch]) -> list[str]:
    """The batches with the candidates in each and what they cost in the prompt."""
    keys = [record.part("batch", number) for number, _ in enumerate(batches)]
    for number, (key, batch) in enumerate(zip(keys, batches, strict=True)):
        members = [record.part("candidate", c.rank) for c in batch.candidates]
        record.entity(
            key,
            "ReportBatch",
            (v.tg("index"), number),
            (v.tg("tokenCount"), batch.tokens),
            (v.prov("hadMember"), map(iri, members)),
            by=step,
            collection=True,
        )
    return keys


def state_points(record: SessionRecord, step: str, mapped: Sequence[Mapped]) -> None:
    """The points of each batch, derived from what they cite, and what was left out of it."""
    for number, each in enumerate(mapped):
        points = [record.part("point", number, index) for index, _ in enumerate(each.points)]
        for index, (key, point) in enumerate(zip(points, each.points, strict=True)):
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
        failure = each.failure or None
        record.out.add(batch, (v.tg("point"), map(iri, points)), (v.tg("error"), failure))
        record.dropped(batch, each.dropped)
