"""DRIFT search: from reports to a tree of follow-up questions, each answered by local search.

The question is put as a hypothetical answer, which finds the reports nearest to it. Folds of these
and a local search answer the question itself and propose what to ask next; the most promising of
that is asked, round by round, within limits on depth, breadth and calls. The answer is made from
the points that all of these made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

from tgraph import vocabulary as v
from tgraph.answer.base import Selector, Synthesiser
from tgraph.answer.drift import DriftPoint, Explorer, Response, Told
from tgraph.engine.ask.authority import NONE, weighed_point
from tgraph.engine.ask.methods import Gathering
from tgraph.engine.ask.question_run import gathered
from tgraph.errors import EndpointError, ModelError, StoreError
from tgraph.model import (
    Candidate,
    CommunityReport,
    Edge,
    Item,
    RankedOrder,
    Rejected,
    Retrieval,
    Selected,
    Selection,
)
from tgraph.models.base import CallSink
from tgraph.models.concurrency import nothing, together
from tgraph.record import search_steps as record_of
from tgraph.record.search_steps import RecordedAction, RecordedPoint, hypothesis
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question, Retriever, in_conversation
from tgraph.retrieve.modes.drift import DriftSearchSettings
from tgraph.retrieve.reports import grounded_selection
from tgraph.retrieve.search.community_reports import NearReport, nearest_reports
from tgraph.retrieve.search.drift_actions import (
    ENDED,
    NO_CALLS,
    NO_ROUND,
    ROOT,
    Action,
    ActionGraph,
    ActionStatus,
)
from tgraph.retrieve.search.local import read_ahead

UNUSED = "cited by no answer on the way"
UNHELPFUL = "it does not help to answer"
REPEATED = "said by another point"
BEHIND_OTHERS = "none of the points that cite it was selected"


@dataclass(slots=True)
class DoneAction:
    """What has been done about an action: what was retrieved and shown for it, and what it said."""

    step: str
    retrieved: tuple[Candidate, ...] = ()
    selected: tuple[Selected, ...] = ()
    reports: tuple[NearReport, ...] = ()
    response: Response | None = None

    @property
    def shown(self) -> list[str]:
        """What was read for it, by IRI."""
        return [
            *(each.candidate.item.iri for each in self.reports),
            *(each.item.iri for each in self.selected),
        ]


@dataclass(slots=True)
class DriftFindings:
    """What a search has come to so far.

    ``candidates`` are ranked in the order in which the tree came to them; ``reasons`` say why one
    was not read; ``edges`` are all edges that were retrieved, ``orders`` what limits cut off.
    """

    done: dict[int, DoneAction] = field(default_factory=dict)
    candidates: dict[str, Candidate] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    origins: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    orders: list[RankedOrder] = field(default_factory=list)

    def add(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            iri = candidate.item.iri
            known = self.candidates.get(iri)
            rank = known.rank if known else len(self.candidates) + 1
            score = max(candidate.score, known.score if known else 0.0)
            self.candidates[iri] = replace(known or candidate, rank=rank, score=score)
            if isinstance(candidate.item, Edge):
                self.edges.setdefault(iri)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def response(self, number: int) -> Response:
        return self.done[number].response or Response()

    @property
    def answered(self) -> list[int]:
        """The actions that have said something, if only that they failed."""
        return sorted(n for n, done in self.done.items() if done.response is not None)

    @property
    def retrieval(self) -> Retrieval:
        candidates = tuple(self.candidates.values())
        among = sum(isinstance(c.item, Edge) for c in candidates)
        return Retrieval(
            candidates,
            total=len(self.edges),
            items=len(candidates) - among,
            cut=tuple(self.edges) if len(self.edges) > among else (),
            dropped=self.dropped,
            orders=tuple(self.orders),
        )

    def rank(self, iri: str) -> int:
        return self.candidates[iri].rank


@dataclass(frozen=True, slots=True)
class DrawnPoint:
    """A point as an item of the session, the action that made it, and what it cites, by IRI."""

    item: Candidate
    action: int
    cites: tuple[str, ...]


def weighed(
    found: DriftFindings,
    graph: ActionGraph,
    explorer: Explorer,
    question: Question,
    context: Context,
    uuid: str,
) -> list[DrawnPoint]:
    """The points of all answers in their order, scored for the question as a whole."""
    told = [Told(graph[n].query, found.response(n)) for n in found.answered]
    points = explorer.weigh(question, told, context)
    return [
        DrawnPoint(
            weighed_point(_item(graph[number], index, point, uuid), context.authorities),
            number,
            tuple(candidate.item.iri for candidate in point.cites),
        )
        for number, own in zip(found.answered, points, strict=True)
        for index, point in enumerate(own)
    ]


def _item(action: Action, index: int, point: DriftPoint, uuid: str) -> Candidate:
    iri = v.session_part_iri("point", uuid, action.number, index)
    what = "the question" if action.depth == 0 else f"“{action.query}”"
    how = "from reports" if action.kind == "fold" else "from a local search"
    why = f"it answers {what} {how}"
    item = Item("point", iri, action.query, point.text)
    return Candidate(item, 0, point.score, evidence=point.evidence, reasons=(why,))


def select(found: DriftFindings, points: Sequence[DrawnPoint]) -> Selection:
    """The points, best first, each statement once, and the candidates that no selected point
    cites."""
    ranked = sorted(points, key=lambda made: -made.item.score)
    selected: list[Selected] = []
    rejected: list[Rejected] = []
    said: set[str] = set()
    used: set[str] = set()
    for made in ranked:
        wording = v.normalise_name(made.item.item.text)
        if reason := _objection(made.item, wording in said):
            rejected.append(Rejected(made.item, reason))
            continue
        said.add(wording)
        used.update(made.cites)
        candidate = replace(made.item, rank=len(selected) + 1)
        why = f"Chosen because {' and '.join(candidate.reasons)}."
        selected.append(Selected(len(selected), candidate, why, candidate.score))
    cited = {iri for made in points for iri in made.cites}
    rejected += [
        Rejected(candidate, BEHIND_OTHERS if iri in cited else found.reasons.get(iri, UNUSED))
        for iri, candidate in found.candidates.items()
        if iri not in used
    ]
    return Selection(tuple(selected), tuple(rejected))


def _objection(point: Candidate, repeated: bool) -> str:
    if not point.authority:
        return NONE
    if repeated:
        return REPEATED
    return UNHELPFUL if point.score <= 0 else ""


def write(
    record: SessionRecord, graph: ActionGraph, found: DriftFindings, points: Sequence[DrawnPoint]
) -> str:
    """Put the tree and all that it retrieved on record; the IRI of the retrieval."""
    for reason, count in graph.dropped.items():
        found.drop(reason, count)
    record_of.actions(record, [_recorded(action, graph, found, points) for action in graph])
    steps = {number: done.step for number, done in found.done.items()}
    record_of.points(
        record,
        [
            RecordedPoint(made.item, steps[made.action], tuple(map(found.rank, made.cites)))
            for made in points
        ],
    )
    return record.retrieval(found.retrieval, found.origins)


def _recorded(
    action: Action, graph: ActionGraph, found: DriftFindings, points: Sequence[DrawnPoint]
) -> RecordedAction:
    done = found.done.get(action.number, DoneAction(""))
    shown = set(done.shown)
    return RecordedAction(
        action,
        tuple(graph.parents(action.number)),
        done.step,
        tuple(found.rank(candidate.item.iri) for candidate in done.retrieved),
        tuple(sorted(found.rank(iri) for iri in shown)),
        done.response,
        tuple(made.item.item.iri for made in points if made.action == action.number),
    )


# --- the search ---


LEAST_IN_FOLD = 3
"""Reports that a fold has at least, where there are so many."""

LEAST_PARENT = 0.1
"""What the score of an answer that says nothing counts for the follow-ups that it proposes."""

NOTHING = "nothing was found that answers it"
UNANSWERED = "the session ended before it was answered"
FAR = "over the token budget of its fold"


@dataclass(frozen=True, slots=True)
class Drift:
    """The mode ``drift``. ``cancel`` ends calls that are under way."""

    mode: str
    explorer: Explorer
    retriever: Retriever
    selector: Selector
    synthesiser: Synthesiser
    settings: DriftSearchSettings
    concurrency: int = 1
    cancel: Callable[[], None] = nothing

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``. What was found before a failure is on record too."""
        found = DriftFindings()
        search = DriftSearch(self, question, context, record, found)
        try:
            search.run()
            points = weighed(found, search.graph, self.explorer, question, context, record.uuid)
        except BaseException:
            with suppress(StoreError):
                search.graph.close(ENDED)
                write(record, search.graph, found, [])
            raise
        yield write(record, search.graph, found, points)
        with record.step("Weighing", self.explorer.agent, [record.retrieval_iri]) as step:
            selection = select(found, points)
            stage = record.selection(step, selection)
        yield stage
        responses = [found.response(number).dropped for number in found.answered]
        return question, gathered(selection, [found.dropped, *responses])


@dataclass(slots=True)
class DriftSearch:
    """One question on its way through the tree; what it comes to is put into ``found``."""

    method: Drift
    question: Question
    context: Context
    record: SessionRecord
    found: DriftFindings
    graph: ActionGraph = field(init=False)
    trunk: str | None = None
    calls: int = 0

    def __post_init__(self) -> None:
        settings = self.method.settings
        text = in_conversation(self.question)
        vector = self.context.embed([text])[0]
        self.graph = ActionGraph(
            self.question.text, vector, depth=settings.depth, duplicate=settings.duplicate
        )

    def run(self) -> None:
        """Ask, round by round, until a limit is met or nothing is left to ask."""
        settings = self.method.settings
        self._answer([*self._folds(), *self._searched([self.graph[ROOT]])])
        for rounds_left in range(settings.depth, 0, -1):
            calls_left = settings.call_budget - self.calls - 1  # the last writes the answer
            size = min(settings.breadth, ceil(calls_left / rounds_left))
            if size < 1:
                break
            self._answer(self._searched(self.graph.choose(size)))
        spent = self.calls + 1 >= settings.call_budget
        self.graph.close(NO_CALLS if spent else NO_ROUND)
        failures = [self.found.response(number).failure for number in self.found.answered]
        if all(failures):
            raise ModelError(failures[0])

    def _folds(self) -> list[Action]:
        """The folds of the reports that are nearest to the question put as an answer."""
        reports = self._reports()
        limit = min(self.method.settings.folds, self.method.settings.call_budget - 3)
        count = min(limit, ceil(len(reports) / LEAST_IN_FOLD))
        folds = []
        for start in range(count):
            action = self.graph.add_fold()
            shown = self._within_budget(reports[start::count])
            retrieved = tuple(each.candidate for each in reports[start::count])
            self.found.done[action.number] = DoneAction("", retrieved, reports=tuple(shown))
            folds.append(action)
        return folds

    def _reports(self) -> list[NearReport]:
        settings, context = self.method.settings, self.context
        level = settings.community_level
        template, _ = nearest_reports(context, in_conversation(self.question), 1, level)
        if not template:
            self.found.drop("graph without community reports")
            return []
        best = template[0].report
        with self.record.step("Expanding", self.method.explorer.agent) as step:
            text = self._expansion(best)
            self.found.origins.append(hypothesis(self.record, step, text, best.iri))
        with self.record.step(
            "ReportMatching", context.embedder.agent, self.found.origins
        ) as self.trunk:
            found, orders = nearest_reports(context, text, settings.k, level)
        self.found.orders += orders
        self.found.add([each.candidate for each in found])
        return found

    def _expansion(self, template: CommunityReport) -> str:
        self.calls += 1
        try:
            return self.method.explorer.expand(
                self.question, template, self.context, self.record.call
            )
        except EndpointError:
            raise
        except ModelError:
            self.found.drop("hypothetical answer that can't be used")
            return self.question.text

    def _within_budget(self, reports: Sequence[NearReport]) -> Iterator[NearReport]:
        left = self.method.settings.primer_context_tokens
        for each in reports:
            cost = each.candidate.tokens or 0
            if cost <= left:
                left -= cost
                yield each
            else:
                self.found.reasons[each.candidate.item.iri] = FAR

    def _searched(self, actions: Sequence[Action]) -> list[Action]:
        """The actions, each with what a local search finds for it."""
        queries = [
            Question(action.query, self.question.history if action.number == ROOT else ())
            for action in actions
        ]
        read_ahead(queries, self.method.settings, self.context)
        found = [self._search(query) for query in queries]
        for action, (retrieval, _) in zip(actions, found, strict=True):
            query = "" if action.number == ROOT else action.query
            self.found.orders += [replace(order, query=query) for order in retrieval.orders]
        selected = [each for _, selection in found for each in selection.selected]
        grounded_selection(selected, self.context)  # all at once; what is read is kept
        for action, (retrieval, selection) in zip(actions, found, strict=True):
            own = grounded_selection(selection.selected, self.context)
            self.found.done[action.number] = DoneAction("", retrieval.candidates, own)
        return list(actions)

    def _search(self, query: Question) -> tuple[Retrieval, Selection]:
        retrieval = self.method.retriever.retrieve(query, self.context)
        limit = self.context.limits.edge_limit
        selection = self.method.selector.select(query, retrieval, limit, self.record.call)
        self.found.add(retrieval.candidates)
        self.found.edges |= dict.fromkeys(retrieval.cut)
        for rejected in selection.rejected:
            self.found.reasons.setdefault(rejected.candidate.item.iri, rejected.reason)
        for reason, count in retrieval.dropped.items():
            self.found.drop(reason, count)
        return retrieval, selection

    def _answer(self, actions: Sequence[Action]) -> None:
        """Ask all of them at the same time; take the answers in their order."""
        agent = self.method.explorer.agent
        with ExitStack() as steps:
            for action in actions:
                step = steps.enter_context(self._step(action))
                self.found.done[action.number].step = step
                action.status, action.reason = "failed", UNANSWERED
            self.calls += len(actions)
            if agent.kind == "model":
                most, cancel = self.method.concurrency, self.method.cancel
                responses = together(actions, self._respond, most, cancel)
            else:
                responses = [self._respond(action) for action in actions]
        for action, response in zip(actions, responses, strict=True):
            self.found.done[action.number].response = response
            action.status = _status(response)
            action.reason = response.failure or ("" if response.points else NOTHING)
        self._learn(actions)

    def _respond(self, action: Action) -> Response:
        """The answer to one action; a reply that can't be used costs this one alone."""
        done = self.found.done[action.number]
        sink: CallSink = partial(self.record.call, step=done.step)
        explorer, question, context = self.method.explorer, self.question, self.context
        try:
            if action.kind == "fold":
                return explorer.prime(question, done.reports, context, sink)
            return explorer.answer(question, action.query, done.selected, context, sink)
        except EndpointError:
            raise
        except ModelError as error:
            lost = {"answer on the way whose reply can't be used": 1}
            return Response(dropped=lost, failure=error.message)

    def _learn(self, actions: Sequence[Action]) -> None:
        """What the answers proposed is in the graph now, and what a model found is known.

        Sentences that were quoted are left aside: an embedded follow-up names an entity beside
        them, and embedding them would cost more than all the rest.
        """
        told = [(action.number, self.found.response(action.number)) for action in actions]
        proposed = [query for _, response in told for query in response.follow_ups]
        by_model = self.method.explorer.agent.kind == "model"
        stated = [p.text for _, r in told for p in r.points] if by_model else []
        if not proposed and not stated:
            return
        texts = [*proposed, *stated]
        vectors = dict(zip(texts, self.context.embed(texts), strict=True))
        for number, response in told:
            queries = {query: vectors[query] for query in response.follow_ups}
            self.graph.propose(number, max(LEAST_PARENT, response.score), queries)
        self.graph.learn([vectors[text] for text in stated])

    def _step(self, action: Action) -> AbstractContextManager[str]:
        """The activity that carries it out, informed by the one that proposed it."""
        agent, done = self.method.explorer.agent, self.found.done
        known = (done[n].step for n in self.graph.parents(action.number) if n in done)
        before = next((step for step in known if step), self.trunk)
        step = "Priming" if action.kind == "fold" else "Asking"
        return self.record.step(step, agent, after=before)


def _status(response: Response) -> ActionStatus:
    if response.failure:
        return "failed"
    return "answered" if response.points else "unanswered"
