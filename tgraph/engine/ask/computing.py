"""The method of the mode ``sparql``: a query's witnesses are what is retrieved and selected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pyoxigraph import NamedNode

from tgraph.answer.computed import ComputedSelection, ComputedSynthesiser
from tgraph.compute.algebra import CompareGroups
from tgraph.compute.computation import Computation, compute_answer
from tgraph.compute.evaluation import Computed, EvaluationBounds
from tgraph.compute.sentences import ComputedSentence, write_sentences
from tgraph.compute.witnesses import Role, Witness
from tgraph.engine.ask.methods import Gathering
from tgraph.model import Agent, Candidate, Judgement, Object, Retrieval, Selected
from tgraph.record.session import SessionRecord
from tgraph.retrieve.base import Context, Question
from tgraph.retrieve.candidates import (
    assign_ranks,
    edge_candidate,
    entity_candidate,
    known_entities,
)
from tgraph.retrieve.labels import labels_of, with_labels
from tgraph.retrieve.modes.sparql import SparqlSearchSettings
from tgraph.retrieve.reasons import explain, explain_selection
from tgraph.version import __version__

GRAMMAR = Agent("method", "query-grammar", __version__)

_SCORES: dict[Role, float] = {"rests": 1.0, "contradicts": 1.0, "compared": 0.5, "searched": 0.5}


@dataclass(frozen=True, slots=True)
class Computing:
    """A method that answers by a query; nothing is retrieved where no query is likely enough."""

    mode: str
    settings: SparqlSearchSettings
    synthesiser: ComputedSynthesiser

    def gather(self, question: Question, context: Context, record: SessionRecord) -> Gathering:
        """As ``Method.gather``."""
        with record.step("QueryMaking", GRAMMAR) as step:
            computation = compute_question(question.text, context, self.settings)
            made = record.computed_query(step, computation)
        with record.step("QueryEvaluating", GRAMMAR, [made]):
            retrieval = retrieve_witnesses(computation, context, self.settings.most_witnesses)
            stage = record.retrieval(retrieval, [made])
        yield stage
        with record.step("WitnessSelecting", GRAMMAR, [stage]) as step:
            selection = select_witnesses(computation, retrieval, context)
            stage = record.selection(step, selection)
        yield stage
        return question, selection


def evaluation_bounds(settings: SparqlSearchSettings) -> EvaluationBounds:
    """Return the bounds of a query that the settings give."""
    return EvaluationBounds(settings.most_rows, settings.seconds)


def compute_question(
    question: str, context: Context, settings: SparqlSearchSettings
) -> Computation:
    """Return the computation of a question within the bounds of the settings."""
    bounds = evaluation_bounds(settings)
    return compute_answer(question, context, bounds, settings.least_likelihood)


def retrieve_witnesses(computation: Computation, context: Context, most: int) -> Retrieval:
    """Return the witnesses as candidates, those that the result rests on first: edges, and bearers
    of a class or a name of which no edge is a witness."""
    witnesses = computation.witnesses
    edges = {witness.edge: witness for witness in witnesses if witness.is_edge}
    told = {witness.row for witness in edges.values()}
    bare = {w.row.value: w for w in witnesses if not w.is_edge and w.row not in told}
    kept = dict(list(edges.items())[:most])
    bearers = known_entities(context, list(bare)[: most - len(kept)])
    labels = labels_of(context.graph, [witness.row for witness in witnesses])
    places = context.evidence.of_edges(list(kept), context.limits.evidence_limit)
    labelled = with_labels(context.graph, [witness.statement for witness in kept.values()])
    candidates = [
        edge_candidate(edge, _SCORES[w.role], _explain_role(w, labels), places.get(edge.iri, ()))
        for edge, w in zip(labelled, kept.values(), strict=True)
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
    selected = tuple(map(_select, retrieval.candidates))
    chosen = computation.plan.chosen
    if chosen is None:
        best = computation.plan.ranked[0] if computation.plan.ranked else None
        unlinked = best.unaccounted if best else ()
        confidence = best.likelihood if best else 0.0
        return ComputedSelection(selected, judgement=Judgement(confidence), unlinked=unlinked)
    judgement = Judgement(chosen.likelihood)
    sentences = name_result(computation, context)
    return ComputedSelection(selected, judgement=judgement, sentences=sentences)


def name_result(computation: Computation, context: Context) -> tuple[ComputedSentence, ...]:
    """Return the sentences that say a computed result; none where nothing was computed."""
    if computation.computed is None:
        return ()
    labels = labels_of(context.graph, _named_nodes(computation))
    return write_sentences(computation.computed, computation.witnesses, labels)


def _select(candidate: Candidate) -> Selected:
    why = explain_selection(candidate.reasons)
    return Selected(candidate.rank - 1, candidate, why, candidate.score)


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
