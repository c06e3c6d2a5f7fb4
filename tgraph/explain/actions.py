"""The tree of actions of a DRIFT search, read back from its record."""

from __future__ import annotations

from collections import defaultdict

from tgraph import vocabulary as v
from tgraph.explain.said import Said, numbers
from tgraph.explain.traced import TracedAction, TracedPoint


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
            self._score(follow_up),
            said.one(follow_up, "reasoning"),
            self._score(answer),
            len(said.all(step, "candidate")),
            sum(iri.startswith(_CANDIDATE) for iri in said.all(step, "used")),
            len(said.all(follow_up, "proposedAgainBy")),
            self._points(answer),
            tuple(map(self._action, self._below[number])),
        )

    def _points(self, answer: str) -> tuple[TracedPoint, ...]:
        said = self._said
        return tuple(
            TracedPoint(
                iri=iri,
                text=said.one(iri, "text"),
                score=said.real(iri, "score"),
                cites=tuple(sorted(said.all(iri, "wasDerivedFrom"))),
                rejected=said.one(iri, "rejectionReason"),
            )
            for iri in said.numbered(answer, "point")
        )

    def _numbered(self, prefix: str) -> dict[int, str]:
        return {numbers(iri)[-1]: iri for iri in self._said if iri.startswith(prefix)}

    def _score(self, subject: str) -> float | None:
        return self._said.real(subject, "score") if self._said.all(subject, "score") else None


_CANDIDATE = v.session_part_iri("candidate", "")
