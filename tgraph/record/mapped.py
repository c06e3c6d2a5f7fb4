"""The record of what reports were rated, read in batches, and drawn points from."""

from __future__ import annotations

from collections.abc import Sequence

from tgraph import vocabulary as v
from tgraph.answer.points import Batch, Mapped, Point
from tgraph.answer.rating import BEST, Descent
from tgraph.record.activities import state_entity
from tgraph.record.session import SessionRecord
from tgraph.store.statements import iri


def record_ratings(record: SessionRecord, step: str, descent: Descent) -> str:
    """Every report that was rated, with the rating as a share of the highest, and why."""
    members = [
        v.session_part_iri("rating", record.uuid, rank) for rank, _ in enumerate(descent.rated, 1)
    ]
    for rank, (key, rated) in enumerate(zip(members, descent.rated, strict=True), 1):
        state_entity(
            record.out,
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
    subject = v.session_part_iri("ratings", record.uuid)
    state_entity(
        record.out,
        subject,
        "Ratings",
        (v.prov("hadMember"), map(iri, members)),
        label="Reports rated",
        by=step,
        collection=True,
    )
    record.dropped(subject, descent.dropped)
    return subject


def batch_iri(uuid: str, number: int) -> str:
    """The batch of a session with that number, from 0."""
    return v.session_part_iri("batch", uuid, number)


def record_batches(record: SessionRecord, step: str, batches: Sequence[Batch]) -> list[str]:
    """The batches with the candidates in each and what they cost in the prompt."""
    keys = [batch_iri(record.uuid, number) for number, _ in enumerate(batches)]
    for number, (key, batch) in enumerate(zip(keys, batches, strict=True)):
        members = [v.session_part_iri("candidate", record.uuid, c.rank) for c in batch.candidates]
        state_entity(
            record.out,
            key,
            "ReportBatch",
            (v.tg("index"), number),
            (v.tg("tokenCount"), batch.tokens),
            (v.prov("hadMember"), map(iri, members)),
            by=step,
            collection=True,
        )
    return keys


def record_points(record: SessionRecord, step: str, mapped: Sequence[Mapped]) -> None:
    """The points of each batch, derived from what they cite, and what was left out of it."""
    for number, each in enumerate(mapped):
        points = [
            v.session_part_iri("point", record.uuid, number, index)
            for index, _ in enumerate(each.points)
        ]
        for index, (key, point) in enumerate(zip(points, each.points, strict=True)):
            state_entity(
                record.out,
                key,
                "Point",
                (v.tg("index"), index),
                (v.tg("text"), point.text),
                (v.tg("score"), point.score),
                by=step,
                origins=_origins(point),
            )
        batch = batch_iri(record.uuid, number)
        failure = each.failure or None
        record.out.add(batch, (v.tg("point"), map(iri, points)), (v.tg("error"), failure))
        record.dropped(batch, each.dropped)


def _origins(point: Point) -> list[str]:
    """What the point cites, and the reports that this is of."""
    return list(dict.fromkeys([*point.cites, *(place.via[0] for place in point.evidence)]))
