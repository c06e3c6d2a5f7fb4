"""What a search went through, read back from its record: ratings and batches of reports, and the
tree of actions of a DRIFT search, each with the points that came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tgraph import vocabulary as v
from tgraph.explain.said import Said, numbers
from tgraph.explain.traced import TracedAction, TracedBatch, TracedPoint, TracedRating


def points_in(said: Said, subject: str) -> tuple[TracedPoint, ...]:
    """The points of a batch or of an answer, in the order in which they were made."""
    return tuple(
        TracedPoint(
            iri=iri,
            text=said.one(iri, "text"),
            score=said.real(iri, "score"),
            cites=tuple(sorted(said.all(iri, "wasDerivedFrom"))),
            rejected=said.one(iri, "rejectionReason"),
        )
        for iri in said.numbered(subject, "point")
    )


def ratings_of(said: Said, uuid: str, label: Callable[[str], str]) -> tuple[TracedRating, ...]:
    """The ratings in the order in which they were made; ``label`` gives a report's title."""
    return tuple(
        TracedRating(
            report=said.one(r, "item"),
            label=label(said.one(r, "item")),
            level=said.number(r, "level"),
            score=said.score(r),
            relevant=said.one(r, "relevant") == "true",
            reasoning=said.one(r, "reasoning"),
        )
        for r in said.numbered(v.session_part_iri("ratings", uuid), "hadMember")
    )


def batches_of(said: Said, uuid: str) -> tuple[TracedBatch, ...]:
    """The batches in their order, each with its points in the order in which they were made."""
    found: list[TracedBatch] = []
    while said.all(batch := v.session_part_iri("batch", uuid, len(found)), "type"):
        members = said.numbered(batch, "hadMember")
        found.append(
            TracedBatch(
                iri=batch,
                reports=tuple(said.one(member, "item") for member in members),
                tokens=said.number(batch, "tokenCount"),
                points=points_in(said, batch),
                error=said.one(batch, "error"),
                dropped=said.dropped(batch),
            )
        )
    return tuple(found)


def read_actions(said: Said, uuid: str, question: str) -> TracedAction | None:
    """The question with everything below it; None where the session has no such tree."""
    return _Reader(said, uuid, question).read()


class _Reader:
    def __init__(self, said: Said, uuid: str, question: str) -> None:
        self._said = said
        self._question = question
        self._answers = self._numbered(v.session_part_iri("intermediate", uuid, ""))
        self._follow_ups = self._numbered(v.session_part_iri("follow-up", uuid, ""))
        steps = self._numbered(v.session_part_iri("step", uuid, "")).values()
        self._steps = {said.number(s, "index"): s for s in steps if said.all(s, "index")}
        self._below: defaultdict[int, list[int]] = defaultdict(list)

    def read(self) -> TracedAction | None:
        if not self._steps:
            return None
        numbers = {step: number for number, step in self._steps.items()}
        for number in sorted(self._steps):
            if number and number not in self._follow_ups:
                self._below[0].append(number)
        for number, iri in sorted(self._follow_ups.items()):
            self._below[numbers[self._said.one(iri, "wasGeneratedBy")]].append(number)
        return self._action(0)

    def _action(self, number: int) -> TracedAction:
        said = self._said
        step, answer = self._steps.get(number, ""), self._answers.get(number, "")
        follow_up = self._follow_ups.get(number, "")
        return TracedAction(
            number,
            "follow-up" if follow_up else "fold" if number else "question",
            follow_up or step,
            said.one(follow_up, "query") or self._question,
            said.number(follow_up, "depth"),
            said.one(follow_up or answer, "status") or "failed",
            said.one(follow_up, "rejectionReason")
            or (
                said.one(answer, "error") if answer else "the session ended before it was answered"
            ),
            said.score(follow_up),
            said.one(follow_up, "reasoning"),
            said.score(answer),
            len(said.all(step, "candidate")),
            sum(iri.startswith(_CANDIDATE) for iri in said.all(step, "used")),
            len(said.all(follow_up, "proposedAgainBy")),
            points_in(said, answer),
            tuple(map(self._action, self._below[number])),
        )

    def _numbered(self, prefix: str) -> dict[int, str]:
        return {numbers(iri)[-1]: iri for iri in self._said.beginning(prefix)}


_CANDIDATE = v.session_part_iri("candidate", "")
