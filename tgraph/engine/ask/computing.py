"""The method of the mode ``sparql``: a query's witnesses are what is retrieved and selected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from pyoxigraph import NamedNode

from tgraph.answer.computed import ComputedSelection, ComputedSynthesiser
from tgraph.compute.algebra import CompareGroups, write_algebra
from tgraph.compute.computation import (
    Computation,
    QueryPlan,
    compute_plan,
    plan_query,
    plan_written,
)
from tgraph.compute.evaluation import MOST_RECORDED, Computed, EvaluationBounds
from tgraph.compute.printing import name_columns
from tgraph.compute.sentences import ComputedSentence, write_sentences
from tgraph.compute.witnesses import Witness, compute_without, find_witnesses, number_rows
from tgraph.engine.ask.methods import Gathering
from tgraph.model import (
    Agent,
    ComputedResult,
    Edge,
    Judgement,
    Object,
    ResultWitness,
    Retrieval,
    Selected,
    WitnessPlace,
    WitnessRole,
    build_rows,
)
from tgraph.models.base import CallSink
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import (
    assign_ranks,
    edge_candidate,
    entity_candidate,
    known_entities,
)
from tgraph.retrieve.labels import labels_of, name_rows, with_labels
from tgraph.retrieve.modes.sparql import SparqlSearchSettings
from tgraph.retrieve.reasons import explain, explain_selection
from tgraph.version import __version__

GRAMMAR = Agent("method", "query-grammar", __version__)
READER = Agent("method", "query-reader", __version__)

_SCORES: dict[WitnessRole, float] = {
    "rests": 1.0,
    "contradicts": 1.0,
    "compared": 0.5,
    "searched": 0.5,
}


class QueryMaker(Protocol):
    """Makes the query of a question."""

    @property
    def agent(self) -> Agent: ...

    def plan(self, question: Question, context: Context, sink: CallSink) -> QueryPlan:
        """Return the queries that the question may mean, the chosen one first."""


@dataclass(frozen=True, slots=True)
class GrammarMaker:
    """Makes queries by the grammar over the links of a question; ``made`` is the plan of the
    question, where it was made for the choice of the mode."""

    least: float
    made: QueryPlan | None = None
    agent: Agent = GRAMMAR

    def plan(self, question: Question, context: Context, sink: CallSink) -> QueryPlan:
        """As ``QueryMaker.plan``."""
        if self.made is not None:
            return replace(self.made, least=self.least)
        return plan_query(question.text, context, self.least)


@dataclass(frozen=True, slots=True)
class WrittenMaker:
    """Gives the query that a person wrote for the question."""

    agent: Agent = READER

    def plan(self, question: Question, context: Context, sink: CallSink) -> QueryPlan:
        """As ``QueryMaker.plan``. Raises ``QueryError`` for a text that can't be asked."""
        return plan_written(question.sparql, context, WRITTEN_REASON)


WRITTEN_REASON = "a person wrote the query"


@dataclass(frozen=True, slots=True)
class Computing:
    """A method that answers by a query; nothing is retrieved where no query is likely enough."""

    mode: str
    settings: SparqlSearchSettings
    synthesiser: ComputedSynthesiser
    maker: QueryMaker

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        maker = WrittenMaker() if question.sparql else self.maker
        with record.step("QueryMaking", maker.agent) as step:
            plan = maker.plan(question, context, record.call)
            computation = compute_plan(plan, context, evaluation_bounds(self.settings))
            query_iri = record.computed_query(step, computation, question.revises)
        with record.step("QueryEvaluating", GRAMMAR, [query_iri]):
            retrieval = retrieve_witnesses(computation, context, self.settings.most_witnesses)
            stage = record.retrieval(retrieval, [query_iri])
        yield stage
        with record.step("WitnessSelecting", GRAMMAR, [stage]) as step:
            selection = select_witnesses(computation, retrieval, context)
            stage = record.selection(step, selection)
        yield stage
        return question, selection


def evaluation_bounds(settings: SparqlSearchSettings) -> EvaluationBounds:
    """Return the bounds of a query that the settings give."""
    return EvaluationBounds(settings.most_rows, settings.seconds)


def compute_again(
    question: str, written: str, context: Context, settings: SparqlSearchSettings
) -> Computation:
    """Return the computation of a question, or of the query that was written for it, within the
    bounds of the settings."""
    plan = (
        plan_written(written, context, WRITTEN_REASON)
        if written
        else plan_query(question, context, settings.least_likelihood)
    )
    return compute_plan(plan, context, evaluation_bounds(settings))


def retrieve_witnesses(computation: Computation, context: Context, most: int) -> Retrieval:
    """Return the witnesses as candidates, those that the result rests on first: edges, and bearers
    of a class or a name of which no edge is a witness."""
    witnesses = computation.witnesses
    edges = {witness.edge: witness for witness in witnesses if witness.is_edge}
    edge_rows = {witness.row for witness in edges.values()}
    bare = {w.row.value: w for w in witnesses if not w.is_edge and w.row not in edge_rows}
    edge_witnesses = dict(list(edges.items())[:most])
    bearers = known_entities(context, list(bare)[: most - len(edge_witnesses)])
    labels = labels_of(context.graph, [witness.row for witness in witnesses])
    places = context.evidence.of_edges(list(edge_witnesses), context.limits.evidence_limit)
    labelled = with_labels(
        context.graph, [witness.statement for witness in edge_witnesses.values()]
    )
    candidates = [
        edge_candidate(edge, _SCORES[w.role], _explain_role(w, labels), places.get(edge.iri, ()))
        for edge, w in zip(labelled, edge_witnesses.values(), strict=True)
    ]
    candidates += [
        entity_candidate(
            bearer,
            _SCORES[bare[iri].role],
            _explain_role(bare[iri], labels),
            context.limits.evidence_limit,
        )
        for iri, bearer in bearers.items()
    ]
    cut = tuple(edges) + tuple(bare) if len(edges) + len(bare) > len(candidates) else ()
    return Retrieval(assign_ranks(candidates), total=len(edges), items=len(bare), cut=cut)


def _explain_role(witness: Witness, labels: dict[NamedNode, str]) -> str:
    return explain(f"witness-{witness.role}", row=labels[witness.row])


def select_witnesses(
    computation: Computation, retrieval: Retrieval, context: Context
) -> ComputedSelection:
    """Return all witnesses as the selection, with the sentences that say the result."""
    selected = _select_all(computation, retrieval)
    result = build_result(computation, selected, context)
    chosen = computation.plan.chosen
    if chosen is None:
        best = computation.plan.ranked[0] if computation.plan.ranked else None
        unlinked = best.unaccounted if best else ()
        return ComputedSelection(
            selected,
            judgement=Judgement(best.likelihood if best else 0.0),
            unlinked=unlinked,
            remark=computation.plan.remark,
            result=result,
        )
    judgement = Judgement(chosen.likelihood)
    return ComputedSelection(
        selected,
        judgement=judgement,
        sentences=name_result(computation, context),
        result=result,
        compute_without=partial(_name_without, computation, _label_terms(computation, context)),
    )


def _name_without(
    computation: Computation, labels: Mapping[NamedNode, str], left_out: Collection[str]
) -> tuple[ComputedSentence, ...]:
    """Return the sentences of a result without the witnesses of some items."""
    assert computation.computed is not None
    computed = compute_without(computation.computed, left_out)
    return write_sentences(computed, find_witnesses(computed), labels)


def name_result(computation: Computation, context: Context) -> tuple[ComputedSentence, ...]:
    """Return the sentences that say a computed result; none where nothing was computed."""
    if computation.computed is None:
        return ()
    labels = _label_terms(computation, context)
    return write_sentences(computation.computed, computation.witnesses, labels)


def _label_terms(computation: Computation, context: Context) -> dict[NamedNode, str]:
    labels = labels_of(context.graph, _named_nodes(computation))
    return name_rows(labels, labels)


def _select_all(computation: Computation, retrieval: Retrieval) -> tuple[Selected, ...]:
    roles: dict[str, WitnessRole] = {}
    rows: defaultdict[str, set[int]] = defaultdict(set)
    numbers = number_rows(computation.computed) if computation.computed else {}
    for witness in computation.witnesses:
        roles.setdefault(witness.item, witness.role)
        rows[witness.item].update(numbers.get(witness.statement, ()))
    return tuple(
        Selected(
            candidate.rank - 1,
            candidate,
            explain_selection(candidate.reasons),
            candidate.score,
            roles[candidate.item.iri],
            tuple(sorted(rows[candidate.item.iri])),
        )
        for candidate in retrieval.candidates
    )


def build_result(
    computation: Computation, selected: Sequence[Selected], context: Context
) -> ComputedResult:
    """Return a computation as its table, with the witnesses that were selected."""
    plan, computed = computation.plan, computation.computed
    chosen = plan.chosen
    witnesses = tuple(map(_build_witness, selected))
    columns = name_columns(computed.query) if computed else {}
    bindings = computed.bindings[:MOST_RECORDED] if computed else ()
    terms = [term for binding in bindings for term in binding.values()]
    labels = labels_of(context.graph, [term for term in terms if isinstance(term, NamedNode)])
    labels = name_rows(labels, terms)
    return ComputedResult(
        sparql=computed.sparql if computed else "",
        written=plan.text,
        algebra=write_algebra(computed.query) if computed else "",
        likelihood=chosen.likelihood if chosen else 0.0,
        reasons="; ".join(chosen.candidate.reasons) if chosen else "",
        columns=tuple(columns.values()),
        rows=build_rows(
            [{name: str(term) for name, term in binding.items()} for binding in bindings],
            tuple(columns),
            witnesses,
            labels.__getitem__,
        ),
        witnesses=witnesses,
        unchosen=plan.rejected,
    )


def _build_witness(selected: Selected) -> ResultWitness:
    assert selected.role is not None
    item = selected.item
    label = " — ".join(item.labels) if isinstance(item, Edge) else item.label
    place = WitnessPlace.first_of(selected.candidate.evidence)
    return ResultWitness(item.iri, label, selected.role, selected.rows, place)


def _named_nodes(computation: Computation) -> Iterable[NamedNode]:
    """Return all resources that a sentence may name."""
    assert computation.computed is not None
    terms = [term for witness in computation.witnesses for term in witness.statement]
    terms += _terms_of(computation.computed)
    return {term for term in terms if isinstance(term, NamedNode)}


def _terms_of(computed: Computed) -> Iterator[Object]:
    """Yield the terms that the bindings of a result have, and those that its query names."""
    for binding in computed.bindings:
        yield from binding.values()
    query = computed.query
    for condition in query.rows.conditions:
        yield from getattr(condition, "values", ())
    yield from query.rows.only
    if isinstance(query, CompareGroups):
        yield from (value for group in query.groups for value in group)
    for inner in computed.inner:
        yield from _terms_of(inner)
