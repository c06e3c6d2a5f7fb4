"""The DRIFT search action graph: follow-up questions to ask, and questions to skip.

A follow-up question's worth is its *promise*: how well the proposing answer answered, times
similarity to the question, times distance from everything asked and found. (Microsoft GraphRAG
3.3.0 shuffles the open questions.) These numbers and the order of proposal decide everything,
so the same replies make the same graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tgraph.retrieve.reasons import WordedReason, explain
from tgraph.vocabulary import normalise_name

if TYPE_CHECKING:
    from numpy import float32
    from numpy.typing import NDArray

    Vector = NDArray[float32]

ActionKind = Literal["question", "fold", "follow-up"]
ActionStatus = Literal["waiting", "answered", "unanswered", "failed", "pruned"]

ROOT = 0
LONGEST_QUERY = 400
"""Characters of a follow-up question; what is longer is no question."""

TOO_DEEP = "beyond the depth limit"
NO_ROUND = "over the breadth limit"
NO_CALLS = "over the call budget"
ENDED = "the session ended before it was asked"


@dataclass(frozen=True, slots=True)
class Promise:
    """Follow-up question worth, given as factors between 0 and 1."""

    parent: float
    relevance: float
    novelty: float

    @property
    def score(self) -> float:
        return round(self.parent * self.relevance * self.novelty, 6)

    @property
    def reason(self) -> WordedReason:
        """The factors, as a reason."""
        return explain(
            "follow-up", parent=self.parent, relevance=self.relevance, novelty=self.novelty
        )


@dataclass(slots=True)
class Action:
    """A graph node: original question, primer fold, or follow-up question.

    ``depth`` is 0 for question and fold, and counts follow-ups from 1. ``reason`` explains a
    pruned or unanswered action. ``promise`` is the promise at the moment of deciding the
    action's fate."""

    number: int
    kind: ActionKind
    query: str
    depth: int
    status: ActionStatus = "waiting"
    reason: str = ""
    promise: Promise = field(default=Promise(1.0, 1.0, 1.0))

    def prune(self, reason: str) -> None:
        self.status, self.reason = "pruned", reason


class ActionGraph:
    """A directed acyclic graph leading from questions to resulting follow-up questions."""

    def __init__(self, question: str, vector: Vector, *, depth: int, duplicate: float) -> None:
        """Create a graph for the question with the embedding ``vector``.

        Follow-ups deeper than ``depth`` are pruned, and follow-ups whose similarity to an asked
        question reaches ``duplicate``."""
        self._actions: list[Action] = []
        self._proposers: dict[int, list[int]] = {}
        self.dropped: dict[str, int] = {}
        self._depth = depth
        self._duplicate = duplicate
        self._question = vector
        self._vectors: dict[int, Vector] = {}
        self._asked: list[int] = []
        self._found: list[Vector] = []
        self._parents: dict[int, float] = {}
        self._by_text: dict[str, int] = {}
        self._add_action("question", question, 0, vector)
        self._asked.append(ROOT)

    # --- reading ---

    def __iter__(self) -> Iterator[Action]:
        """Yield actions in number order."""
        return iter(self._actions)

    def __getitem__(self, number: int) -> Action:
        return self._actions[number]

    def parents(self, number: int) -> list[int]:
        """Return numbers of the actions proposing the action, the first proposer first."""
        return list(self._proposers.get(number, ()))

    def waiting(self) -> list[Action]:
        """Return follow-up questions still open for asking."""
        return [a for a in self if a.status == "waiting" and a.kind == "follow-up"]

    # --- growing ---

    def add_fold(self) -> Action:
        """Add a primer fold: an action answering the question itself from several reports."""
        fold = self._add_action("fold", self[ROOT].query, 0, None)
        self._proposers[fold.number] = [ROOT]
        return fold

    def propose(self, parent: int, score: float, queries: Mapping[str, Vector]) -> None:
        """Add follow-up questions proposed by an answer with the given score, each with its
        vector.

        A question worded like an earlier question is not added; if the earlier question still
        waits, both answers count as proposers."""
        depth = self[parent].depth + 1
        for query, vector in queries.items():
            known_number = self._by_text.get(_normalise_wording(query))
            if known_number is None:
                action = self._add_action("follow-up", query, depth, vector)
                self._parents[action.number] = score
                self._proposers[action.number] = [parent]
                if depth > self._depth:
                    action.promise = self._rate_promise(action.number)
                    action.prune(TOO_DEEP)
            elif (
                self[known_number].status == "waiting"
                and known_number != ROOT
                and known_number != parent
            ):
                if parent not in self._proposers[known_number]:
                    self._proposers[known_number].append(parent)
                self[known_number].depth = min(self[known_number].depth, depth)
                self._parents[known_number] = max(self._parents[known_number], score)
            else:
                self.drop("follow-up that was asked before")

    def learn(self, found: Sequence[Vector]) -> None:
        """Add vectors of found content, making questions about the content less novel."""
        self._found += found

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    # --- deciding ---

    def choose(self, most: int) -> list[Action]:
        """Return the most promising waiting questions, limited to ``most``, best first.

        Each choice considers the questions chosen before, so the choices differ. Questions
        nearly equal to an asked question are pruned."""
        chosen: list[Action] = []
        open_ = {action.number for action in self.waiting()}
        while open_ and len(chosen) < most:
            promises = {number: self._rate_promise(number) for number in sorted(open_)}
            number = min(promises, key=lambda n: (-promises[n].score, n))
            open_.remove(number)
            best, twin = self[number], self._find_twin(number)
            best.promise = promises[number]
            if twin is not None:
                best.prune(f"nearly the same as “{self[twin].query}”")
            else:
                chosen.append(best)
                self._asked.append(number)
        return chosen

    def close(self, reason: str) -> None:
        """Prune all waiting actions."""
        for action in [action for action in self if action.status == "waiting"]:
            if action.kind == "follow-up":
                action.promise = self._rate_promise(action.number)
            action.prune(reason)

    def _rate_promise(self, number: int) -> Promise:
        vector = self._vectors[number]
        relevance = _clamp_similarity(float(vector @ self._question))
        asked_vectors = [
            self._vectors[neighbour] for neighbour in self._asked if neighbour != number
        ]
        nearest = max(
            (float(vector @ neighbour) for neighbour in [*asked_vectors, *self._found]), default=0.0
        )
        return Promise(self._parents[number], relevance, round(1.0 - _clamp_similarity(nearest), 6))

    def _find_twin(self, number: int) -> int | None:
        vector = self._vectors[number]
        near = (o for o in self._asked if float(vector @ self._vectors[o]) >= self._duplicate)
        return next(near, None)

    def _add_action(
        self, kind: ActionKind, query: str, depth: int, vector: Vector | None
    ) -> Action:
        action = Action(len(self._actions), kind, query, depth)
        self._actions.append(action)
        if vector is not None:
            self._vectors[action.number] = vector
            self._by_text[_normalise_wording(query)] = action.number
        return action


def select_follow_ups(queries: Sequence[str], most: int) -> tuple[list[str], dict[str, int]]:
    """Return usable follow-up questions, at most ``most``, plus omission counts."""
    clean = [" ".join(query.split()) for query in queries]
    short = [query for query in clean if 0 < len(query) <= LONGEST_QUERY]
    distinct = list({_normalise_wording(query): query for query in reversed(short)}.values())[::-1]
    dropped = Counter({"follow-up that is empty or too long": len(clean) - len(short)})
    dropped["follow-up over the limit of one answer"] = max(0, len(distinct) - most)
    return distinct[:most], dict(+dropped)


def _normalise_wording(query: str) -> str:
    return normalise_name(query).rstrip(" ?？.。!")


def _clamp_similarity(similar: float) -> float:
    return round(min(1.0, max(0.0, similar)), 6)
