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
from tgraph.answer.drift import DriftPoint, Explorer, Response
from tgraph.engine.ask.authority import NONE, weighed_point
from tgraph.engine.ask.methods import Gathering
from tgraph.engine.ask.question_run import count_selection
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
from tgraph.models.concurrency import do_nothing, run_parallel
from tgraph.record import search_steps as record_of
from tgraph.record.search_steps import RecordedAction, RecordedPoint, state_hypothesis
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question, Retriever, in_conversation
from tgraph.retrieve.modes.drift import DriftSearchSettings
from tgraph.retrieve.reasons import explain, explain_selection
from tgraph.retrieve.reports import grounded_selection
from tgraph.retrieve.search.community_reports import NearReport, nearest_reports
from tgraph.retrieve.search.drift import read_ahead
from tgraph.retrieve.search.drift_actions import (
    ENDED,
    NO_CALLS,
    NO_ROUND,
    ROOT,
    Action,
    ActionGraph,
    ActionStatus,
)

UNUSED = explain("uncited")
UNHELPFUL = explain("unhelpful")
REPEATED = explain("repeated")
BEHIND_OTHERS = explain("points-citing-unselected")


@dataclass(slots=True)
class DoneAction:
    """A performed action: retrieved candidates, shown items, and the response."""

    step: str
    retrieved: tuple[Candidate, ...] = ()
    selected: tuple[Selected, ...] = ()
    reports: tuple[NearReport, ...] = ()
    response: Response | None = None

    @property
    def item_iris(self) -> list[str]:
        """IRIs of items read for the action."""
        return [
            *(entry.candidate.item.iri for entry in self.reports),
            *(entry.item.iri for entry in self.selected),
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
            existing_candidate = self.candidates.get(iri)
            rank = existing_candidate.rank if existing_candidate else len(self.candidates) + 1
            score = max(candidate.score, existing_candidate.score if existing_candidate else 0.0)
            self.candidates[iri] = replace(existing_candidate or candidate, rank=rank, score=score)
            if isinstance(candidate.item, Edge):
                self.edges.setdefault(iri)

    def drop(self, reason: str, count: int = 1) -> None:
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def response(self, number: int) -> Response:
        return self.done[number].response or Response()

    @property
    def answered_numbers(self) -> list[int]:
        """Numbers of actions with a response, failures included."""
        return sorted(n for n, done_action in self.done.items() if done_action.response is not None)

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
    """A point as a session item, with its action number and cited IRIs."""

    item: Candidate
    action: int
    cites: tuple[str, ...]


def weigh_points(
    found: DriftFindings,
    graph: ActionGraph,
    explorer: Explorer,
    question: Question,
    context: Context,
    uuid: str,
) -> list[DrawnPoint]:
    """Return points from all answers in order, scored against the question as a whole."""
    responses = [found.response(number) for number in found.answered_numbers]
    points = explorer.weigh(question, responses, context)
    return [
        DrawnPoint(
            weighed_point(_point_candidate(graph[number], index, point, uuid), context.authorities),
            number,
            tuple(candidate.item.iri for candidate in point.cites),
        )
        for number, action_points in zip(found.answered_numbers, points, strict=True)
        for index, point in enumerate(action_points)
    ]


def _point_candidate(action: Action, index: int, point: DriftPoint, uuid: str) -> Candidate:
    iri = v.session_part_iri("point", uuid, action.number, index)
    subject = "the question" if action.depth == 0 else f"“{action.query}”"
    kind = "point-reports" if action.kind == "fold" else "point-local"
    why = explain(kind, subject=subject)
    item = Item("point", iri, action.query, point.text)
    return Candidate(item, 0, point.score, evidence=point.evidence, reasons=(why,))


def select_points(found: DriftFindings, points: Sequence[DrawnPoint]) -> Selection:
    """Select points, best first, without repeated statements; reject candidates not cited by a
    selected point."""
    ranked = sorted(points, key=lambda made: -made.item.score)
    selected: list[Selected] = []
    rejected: list[Rejected] = []
    wordings: set[str] = set()
    used: set[str] = set()
    for point in ranked:
        wording = v.normalise_name(point.item.item.text)
        if reason := _find_objection(point.item, wording in wordings):
            rejected.append(Rejected(point.item, reason))
            continue
        wordings.add(wording)
        used.update(point.cites)
        candidate = replace(point.item, rank=len(selected) + 1)
        why = explain_selection(candidate.reasons)
        selected.append(Selected(len(selected), candidate, why, candidate.score))
    cited = {iri for point in points for iri in point.cites}
    rejected += [
        Rejected(candidate, BEHIND_OTHERS if iri in cited else found.reasons.get(iri, UNUSED))
        for iri, candidate in found.candidates.items()
        if iri not in used
    ]
    return Selection(tuple(selected), tuple(rejected))


def _find_objection(point: Candidate, repeated: bool) -> str:
    if not point.authority:
        return NONE
    if repeated:
        return REPEATED
    return UNHELPFUL if point.score <= 0 else ""


def write_search(
    record: SessionRecord, graph: ActionGraph, found: DriftFindings, points: Sequence[DrawnPoint]
) -> str:
    """Record the action tree and retrieved items; return the retrieval IRI."""
    for reason, count in graph.dropped.items():
        found.drop(reason, count)
    record_of.state_actions(
        record, [_build_record(action, graph, found, points) for action in graph]
    )
    steps = {number: done_action.step for number, done_action in found.done.items()}
    record_of.state_action_points(
        record,
        [
            RecordedPoint(point.item, steps[point.action], tuple(map(found.rank, point.cites)))
            for point in points
        ],
    )
    return record.retrieval(found.retrieval, found.origins)


def _build_record(
    action: Action, graph: ActionGraph, found: DriftFindings, points: Sequence[DrawnPoint]
) -> RecordedAction:
    done_action = found.done.get(action.number, DoneAction(""))
    shown_iris = set(done_action.item_iris)
    return RecordedAction(
        action,
        tuple(graph.parents(action.number)),
        done_action.step,
        tuple(found.rank(candidate.item.iri) for candidate in done_action.retrieved),
        tuple(sorted(found.rank(iri) for iri in shown_iris)),
        done_action.response,
        tuple(point.item.item.iri for point in points if point.action == action.number),
    )


# --- the search ---


LEAST_IN_FOLD = 3
"""Reports that a fold has at least, where there are so many."""

LEAST_PARENT = 0.1
"""What the score of an answer that says nothing counts for the follow-ups that it proposes."""

NOTHING = "nothing was found that answers it"
UNANSWERED = "the session ended before it was answered"
FAR = explain("budget-fold")


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
    cancel: Callable[[], None] = do_nothing

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """Gather evidence as ``Method.gather`` does; findings preceding a failure are recorded
        too."""
        findings = DriftFindings()
        search = DriftSearch(self, question, context, record, findings)
        try:
            search.run()
            points = weigh_points(
                findings, search.graph, self.explorer, question, context, record.uuid
            )
        except BaseException:
            with suppress(StoreError):
                search.graph.close(ENDED)
                write_search(record, search.graph, findings, [])
            raise
        yield write_search(record, search.graph, findings, points)
        with record.step("Weighing", self.explorer.agent, [record.retrieval_iri]) as step:
            selection = select_points(findings, points)
            stage = record.selection(step, selection)
        yield stage
        responses = [findings.response(number).dropped for number in findings.answered_numbers]
        return question, count_selection(selection, [findings.dropped, *responses])


@dataclass(slots=True)
class DriftSearch:
    """A question's search through the action tree; results are stored in ``found``."""

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
        """Ask rounds of questions until a limit is reached or no question remains."""
        settings = self.method.settings
        self._answer_actions([*self._build_folds(), *self._search_actions([self.graph[ROOT]])])
        for rounds_left in range(settings.depth, 0, -1):
            calls_left = settings.call_budget - self.calls - 1  # the last writes the answer
            size = min(settings.breadth, ceil(calls_left / rounds_left))
            chosen = self.graph.choose(size) if size >= 1 else []
            if not chosen:
                break
            self._answer_actions(self._search_actions(chosen))
        spent = self.calls + 1 >= settings.call_budget
        self.graph.close(NO_CALLS if spent else NO_ROUND)
        failures = [self.found.response(number).failure for number in self.found.answered_numbers]
        if all(failures):
            raise ModelError(failures[0])

    def _build_folds(self) -> list[Action]:
        """Return fold actions for the reports nearest to the question, expanded into a
        hypothetical answer."""
        reports = self._find_reports()
        limit = min(self.method.settings.folds, self.method.settings.call_budget - 3)
        count = min(limit, ceil(len(reports) / LEAST_IN_FOLD))
        folds = []
        for start in range(count):
            action = self.graph.add_fold()
            shown_reports = self._within_budget(reports[start::count])
            retrieved = tuple(report.candidate for report in reports[start::count])
            self.found.done[action.number] = DoneAction("", retrieved, reports=tuple(shown_reports))
            folds.append(action)
        return folds

    def _find_reports(self) -> list[NearReport]:
        settings, context = self.method.settings, self.context
        level = settings.community_level
        template, _ = nearest_reports(context, in_conversation(self.question), 1, level)
        if not template:
            self.found.drop("graph without community reports")
            return []
        best = template[0].report
        with self.record.step("Expanding", self.method.explorer.agent) as step:
            text = self._expand_question(best)
            self.found.origins.append(state_hypothesis(self.record, step, text, best.iri))
        with self.record.step(
            "ReportMatching", context.embedder.agent, self.found.origins
        ) as self.trunk:
            near_reports, orders = nearest_reports(context, text, settings.k, level)
        self.found.orders += orders
        self.found.add([report.candidate for report in near_reports])
        return near_reports

    def _expand_question(self, template: CommunityReport) -> str:
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
        remaining_tokens = self.method.settings.primer_context_tokens
        for report in reports:
            cost = report.candidate.tokens or 0
            if cost <= remaining_tokens:
                remaining_tokens -= cost
                yield report
            else:
                self.found.reasons[report.candidate.item.iri] = FAR

    def _search_actions(self, actions: Sequence[Action]) -> list[Action]:
        """Run a local search for each action; return the actions."""
        queries = [
            Question(action.query, self.question.history if action.number == ROOT else ())
            for action in actions
        ]
        read_ahead(queries, self.method.settings, self.context)
        searches = [self._search_locally(query) for query in queries]
        for action, (retrieval, _) in zip(actions, searches, strict=True):
            query = "" if action.number == ROOT else action.query
            self.found.orders += [replace(order, query=query) for order in retrieval.orders]
        selected = [item for _, selection in searches for item in selection.selected]
        grounded_selection(selected, self.context)  # all at once; what is read is kept
        for action, (retrieval, selection) in zip(actions, searches, strict=True):
            selections = grounded_selection(selection.selected, self.context)
            self.found.done[action.number] = DoneAction("", retrieval.candidates, selections)
        return list(actions)

    def _search_locally(self, query: Question) -> tuple[Retrieval, Selection]:
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

    def _answer_actions(self, actions: Sequence[Action]) -> None:
        """Answer actions concurrently; process answers in action order."""
        agent = self.method.explorer.agent
        with ExitStack() as steps:
            for action in actions:
                step = steps.enter_context(self._action_step(action))
                self.found.done[action.number].step = step
                action.status, action.reason = "failed", UNANSWERED
            self.calls += len(actions)
            if agent.kind == "model":
                limit, cancel = self.method.concurrency, self.method.cancel
                responses = run_parallel(actions, self._respond_to_action, limit, cancel)
            else:
                responses = [self._respond_to_action(action) for action in actions]
        for action, response in zip(actions, responses, strict=True):
            self.found.done[action.number].response = response
            action.status = _response_status(response)
            action.reason = response.failure or ("" if response.points else NOTHING)
        self._learn_answers(actions)

    def _respond_to_action(self, action: Action) -> Response:
        """Return an action's answer; an unusable reply costs that action alone."""
        done_action = self.found.done[action.number]
        sink: CallSink = partial(self.record.call, step=done_action.step)
        explorer, question, context = self.method.explorer, self.question, self.context
        try:
            if action.kind == "fold":
                return explorer.prime(question, done_action.reports, context, sink)
            return explorer.answer(question, action.query, done_action.selected, context, sink)
        except EndpointError:
            raise
        except ModelError as error:
            lost = {"answer on the way whose reply can't be used": 1}
            return Response(dropped=lost, failure=error.message)

    def _learn_answers(self, actions: Sequence[Action]) -> None:
        """Add proposed follow-ups to the action graph, and model findings to known texts.

        Quoted sentences are left aside: an embedded follow-up names an entity beside them, and
        embedding them would cost more than all other texts."""
        responses = [(action.number, self.found.response(action.number)) for action in actions]
        proposed = [query for _, response in responses for query in response.follow_ups]
        by_model = self.method.explorer.agent.kind == "model"
        point_texts = [p.text for _, r in responses for p in r.points] if by_model else []
        if not proposed and not point_texts:
            return
        texts = [*proposed, *point_texts]
        vectors = dict(zip(texts, self.context.embed(texts), strict=True))
        for number, response in responses:
            queries = {query: vectors[query] for query in response.follow_ups}
            self.graph.propose(number, max(LEAST_PARENT, response.score), queries)
        self.graph.learn([vectors[text] for text in point_texts])

    def _action_step(self, action: Action) -> AbstractContextManager[str]:
        """Open the activity performing the action, informed by the proposing action's activity."""
        agent, done_actions = self.method.explorer.agent, self.found.done
        parent_steps = (
            done_actions[n].step for n in self.graph.parents(action.number) if n in done_actions
        )
        before = next((step for step in parent_steps if step), self.trunk)
        step = "Priming" if action.kind == "fold" else "Asking"
        return self.record.step(step, agent, after=before)


def _response_status(response: Response) -> ActionStatus:
    if response.failure:
        return "failed"
    return "answered" if response.points else "unanswered"
