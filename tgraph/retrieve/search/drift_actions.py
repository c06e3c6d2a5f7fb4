"""The graph of actions of DRIFT search: which questions to ask next, and which to leave.

A follow-up question is worth asking by its *promise*: how well the answer that proposed it
answered, times how near it is to the question, times how far it is from all that was asked and
found. (Microsoft GraphRAG 3.3.0 shuffles the open questions.) These numbers and the order of
proposal decide everything, so the same replies make the same graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tgraph.vocabulary import normalise_name

if TYPE_CHECKING:
    from networkx import DiGraph
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
    """What a follow-up question is worth, each part from 0 to 1."""

    parent: float
    relevance: float
    novelty: float

    @property
    def score(self) -> float:
        return round(self.parent * self.relevance * self.novelty, 6)

    def __str__(self) -> str:
        return (
            f"answer that proposed it {self.parent:.2f} × relevance {self.relevance:.2f}"
            f" × novelty {self.novelty:.2f}"
        )


@dataclass(slots=True)
class Action:
    """A node: the question itself, a fold of the primer, or a follow-up question.

    ``depth`` is 0 for the first two and counts follow-ups from 1. ``reason`` says why an action
    was pruned or has no answer. ``promise`` is that of the moment when its fate was decided.
    """

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
    """A directed acyclic graph from questions to the follow-up questions that came of them."""

    def __init__(self, question: str, vector: Vector, *, depth: int, duplicate: float) -> None:
        """``vector`` is the question's. Follow-ups below ``depth`` are pruned, and those that are
        ``duplicate`` similar, or more, to one that was asked."""
        import networkx

        self.graph: DiGraph[int] = networkx.DiGraph()
        self.dropped: dict[str, int] = {}
        self._depth = depth
        self._duplicate = duplicate
        self._question = vector
        self._vectors: dict[int, Vector] = {}
        self._asked: list[int] = []
        self._found: list[Vector] = []
        self._parents: dict[int, float] = {}
        self._by_text: dict[str, int] = {}
        self._add("question", question, 0, vector)
        self._asked.append(ROOT)

    # --- reading ---

    def __iter__(self) -> Iterator[Action]:
        """The actions in the order of their numbers."""
        return (self[number] for number in self.graph.nodes)

    def __getitem__(self, number: int) -> Action:
        action = self.graph.nodes[number]["action"]
        assert isinstance(action, Action)
        return action

    def parents(self, number: int) -> list[int]:
        """The actions that proposed it, the first one first."""
        return list(self.graph.predecessors(number))

    def waiting(self) -> list[Action]:
        """The follow-up questions that may still be asked."""
        return [a for a in self if a.status == "waiting" and a.kind == "follow-up"]

    # --- growing ---

    def add_fold(self) -> Action:
        """A fold of the primer: it answers the question itself, from some of the reports."""
        fold = self._add("fold", self[ROOT].query, 0, None)
        self.graph.add_edge(ROOT, fold.number)
        return fold

    def propose(self, parent: int, score: float, queries: Mapping[str, Vector]) -> None:
        """Follow-up questions that came of an answer with this score, each with its vector.

        One that is worded like a question before it is none; where that one still waits, both
        proposed it.
        """
        depth = self[parent].depth + 1
        for query, vector in queries.items():
            known = self._by_text.get(_wording(query))
            if known is None:
                action = self._add("follow-up", query, depth, vector)
                self._parents[action.number] = score
                self.graph.add_edge(parent, action.number)
                if depth > self._depth:
                    action.promise = self._promise(action.number)
                    action.prune(TOO_DEEP)
            elif self[known].status == "waiting" and known != ROOT and known != parent:
                self.graph.add_edge(parent, known)
                self[known].depth = min(self[known].depth, depth)
                self._parents[known] = max(self._parents[known], score)
            else:
                self.drop("follow-up that was asked before")

    def learn(self, found: Sequence[Vector]) -> None:
        """What has been found makes questions about it less new."""
        self._found += found

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    # --- deciding ---

    def choose(self, most: int) -> list[Action]:
        """At most ``most`` of the waiting questions, the most promising first.

        Each is chosen with those before it in mind, so that they differ. What is nearly the same
        as a question that was asked is pruned.
        """
        chosen: list[Action] = []
        open_ = {action.number for action in self.waiting()}
        while open_ and len(chosen) < most:
            promises = {number: self._promise(number) for number in sorted(open_)}
            number = min(promises, key=lambda n: (-promises[n].score, n))
            open_.remove(number)
            best, twin = self[number], self._twin(number)
            best.promise = promises[number]
            if twin is not None:
                best.prune(f"nearly the same as “{self[twin].query}”")
            else:
                chosen.append(best)
                self._asked.append(number)
        return chosen

    def close(self, reason: str) -> None:
        """Prune whatever waits still."""
        for action in [action for action in self if action.status == "waiting"]:
            if action.kind == "follow-up":
                action.promise = self._promise(action.number)
            action.prune(reason)

    def _promise(self, number: int) -> Promise:
        vector = self._vectors[number]
        relevance = _share(float(vector @ self._question))
        asked = [self._vectors[other] for other in self._asked if other != number]
        nearest = max((float(vector @ other) for other in [*asked, *self._found]), default=0.0)
        return Promise(self._parents[number], relevance, round(1.0 - _share(nearest), 6))

    def _twin(self, number: int) -> int | None:
        vector = self._vectors[number]
        near = (o for o in self._asked if float(vector @ self._vectors[o]) >= self._duplicate)
        return next(near, None)

    def _add(self, kind: ActionKind, query: str, depth: int, vector: Vector | None) -> Action:
        action = Action(len(self.graph), kind, query, depth)
        self.graph.add_node(action.number, action=action)
        if vector is not None:
            self._vectors[action.number] = vector
            self._by_text[_wording(query)] = action.number
        return action


def usable(queries: Sequence[str], most: int) -> tuple[list[str], dict[str, int]]:
    """The follow-up questions that can be asked, at most ``most``, and what was left out."""
    clean = [" ".join(query.split()) for query in queries]
    short = [query for query in clean if 0 < len(query) <= LONGEST_QUERY]
    distinct = list({_wording(query): query for query in reversed(short)}.values())[::-1]
    dropped = Counter({"follow-up that is empty or too long": len(clean) - len(short)})
    dropped["follow-up over the limit of one answer"] = max(0, len(distinct) - most)
    return distinct[:most], dict(+dropped)


def _wording(query: str) -> str:
    return normalise_name(query).rstrip(" ?？.。!")


def _share(similar: float) -> float:
    return round(min(1.0, max(0.0, similar)), 6)
