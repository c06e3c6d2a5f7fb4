"""A question computed: linked, made into queries, ranked, evaluated, with its witnesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product

from pyoxigraph import Literal, NamedNode

from tgraph import vocabulary as v
from tgraph.compute.algebra import Query
from tgraph.compute.evaluation import (
    BOUNDS,
    Computed,
    EvaluationBounds,
    evaluate_query,
    read_result,
)
from tgraph.compute.grammar import MOST_CANDIDATES, make_candidates
from tgraph.compute.group_forms import GroupForms
from tgraph.compute.linking import (
    EXACT,
    QuestionLinks,
    Span,
    ValueLink,
    link_question,
    stem,
)
from tgraph.compute.lookup import KnowledgeLookup, choose_computable
from tgraph.compute.order_forms import make_order_candidates
from tgraph.compute.parts import CandidateQuery
from tgraph.compute.phrases import make_phrase_candidates
from tgraph.compute.printing import print_query, write_query
from tgraph.compute.ranking import (
    LEAST_LIKELIHOOD,
    RankedQuery,
    doubt_readings,
    keep_likeliest,
    rank_candidates,
)
from tgraph.compute.results import result_terms
from tgraph.compute.witnesses import Witness, find_witnesses
from tgraph.errors import QueryError
from tgraph.index.catalogue import Catalogue, count_catalogue
from tgraph.model import Object, UnchosenQuery
from tgraph.retrieve.base import Context
from tgraph.retrieve.entity_matching import match_all

PLANNING = EvaluationBounds(rows=1_000, seconds=0.5)
"""The bounds in which a candidate is evaluated for its ranking."""

MOST_LITERALS = 20
"""Statements with a literal that are looked at for its properties."""

MOST_UNCHOSEN = 10
"""Queries not chosen that the record has."""


@dataclass(frozen=True, slots=True)
class RefusedText:
    """A written query that was refused, with the reason."""

    text: str
    problem: str


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What a question may mean: its links, and its candidate queries, the likeliest first.

    ``text`` is the chosen query as it was written, ``refused`` are texts that were written before
    it. ``remark`` says why there is no query."""

    links: QuestionLinks
    ranked: tuple[RankedQuery, ...]
    least: float = LEAST_LIKELIHOOD
    text: str = ""
    refused: tuple[RefusedText, ...] = ()
    remark: str = ""

    @property
    def chosen(self) -> RankedQuery | None:
        """The likeliest query, where it is likely enough to be what the question means."""
        best = self.ranked[0] if self.ranked else None
        if best is None or best.unaccounted:
            return None
        return best if best.likelihood >= self.least else None

    @property
    def unchosen(self) -> tuple[RankedQuery, ...]:
        """The queries that the question doesn't mean."""
        return self.ranked[1:] if self.chosen else self.ranked

    @property
    def rejected(self) -> tuple[UnchosenQuery, ...]:
        """The likeliest queries that the question doesn't mean, each with the reason."""
        return tuple(
            UnchosenQuery(
                print_query(ranked.candidate.query),
                ranked.likelihood,
                "; ".join(ranked.candidate.reasons),
                self._explain_rejection(ranked),
            )
            for ranked in self.unchosen[:MOST_UNCHOSEN]
        ) + tuple(
            UnchosenQuery(refused.text, 0.0, "it was written", refused.problem)
            for refused in self.refused
        )

    def _explain_rejection(self, ranked: RankedQuery) -> str:
        """Return why a query was not chosen."""
        if ranked.unaccounted:
            return f"it has no account of: {', '.join(ranked.unaccounted)}"
        if ranked.doubt:
            return f"it is unlikely: {ranked.doubt}"
        if ranked.likelihood < self.least:
            return f"its likelihood is below {self.least:g}"
        return "another query is at least as likely"


@dataclass(frozen=True, slots=True)
class Computation:
    """A question with its plan, and the result of the chosen query with its witnesses; neither
    where no query is likely enough."""

    plan: QueryPlan
    computed: Computed | None = None
    witnesses: tuple[Witness, ...] = ()


def catalogue_of(context: Context) -> Catalogue:
    """Return the catalogue of the knowledge that a question is asked of: what lies ready, else
    counted once while the state is open."""

    def read() -> Catalogue:
        table = context.catalogue()
        return table.catalogue if table is not None else count_catalogue(context.store)

    return context.read_once("catalogue", read)


def computable_of(context: Context) -> Catalogue:
    """Return the part of the catalogue that questions are computed with, chosen once while the
    state is open."""
    return context.read_once(
        "computable catalogue", lambda: choose_computable(catalogue_of(context))
    )


def link_catalogue(question: str, context: Context) -> QuestionLinks:
    """Return the links of a question to the catalogue, and to the names and literals of the
    state."""

    def find_names(names: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return match_all(list(names), context.graph)

    def find_literals(text: str) -> list[tuple[NamedNode, Object]]:
        literal = Literal(text)
        quads = context.store.match(None, None, literal, v.KNOWLEDGE_GRAPH)
        properties = {
            quad.predicate
            for quad, _ in zip(quads, range(MOST_LITERALS), strict=False)
            if v.is_statement(quad.predicate)
        }
        return [(iri, literal) for iri in sorted(properties, key=str)]

    links = link_question(question, computable_of(context), find_names, find_literals)
    return replace(links, values=tuple(_join_names(links.values, context)))


def _join_names(values: Sequence[ValueLink], context: Context) -> Iterator[ValueLink]:
    """Yield the value links of a question; a first name and a last name that stand beside each
    other become one link, to the entities that have both names."""
    names = {known.iri for known in computable_of(context).properties if "name" in known.name}

    def find_named(link: ValueLink) -> dict[NamedNode, set[NamedNode]]:
        return {
            iri: {
                quad.subject
                for value in link.values
                if isinstance(value, Literal)
                for quad in context.store.match(None, iri, value, v.KNOWLEDGE_GRAPH)
                if isinstance(quad.subject, NamedNode)
            }
            for iri in names.intersection(link.properties)
        }

    joined: Span = frozenset()
    for first, last in product(values, repeat=2):
        if max(first.span) + 1 == min(last.span):
            pairs = product(find_named(first).items(), find_named(last).items())
            bearers = set().union(*(a & b for (iri, a), (last_iri, b) in pairs if iri != last_iri))
            if bearers:
                span = first.span | last.span
                joined |= span
                values_named = tuple(sorted(bearers, key=str))
                yield ValueLink(span, f"{first.label} {last.label}", values_named, EXACT)
    yield from (link for link in values if not link.span <= joined)


def plan_query(question: str, context: Context, least: float = LEAST_LIKELIHOOD) -> QueryPlan:
    """Return the queries that a question may mean; ``least`` is how likely the one it means is."""
    catalogue = computable_of(context)

    @cache
    def find_terms(query: Query) -> Sequence[Object] | None:
        try:
            return result_terms(query, read_result(context.store, print_query(query), PLANNING))
        except QueryError:
            return None

    links = _check_verb(link_catalogue(question, context), catalogue)
    lookup = KnowledgeLookup(context.store, catalogue)
    groups = GroupForms(links, lookup)
    candidates = (
        *make_candidates(links, lookup),
        *islice(make_phrase_candidates(links, lookup, groups), MOST_CANDIDATES),
        *islice(groups.candidates(), MOST_CANDIDATES),
        *islice(make_order_candidates(links, lookup), MOST_CANDIDATES),
    )
    ranked = rank_candidates(keep_likeliest(candidates, links), links)
    return QueryPlan(links, tuple(doubt_readings(ranked, links, find_terms)), least)


def _check_verb(links: QuestionLinks, catalogue: Catalogue) -> QuestionLinks:
    """Return the links without a verb that a frequent value begins with: "diminish" beside
    "Diminished"."""
    verbs = {links.words[at].stem for at in links.verb}
    values = (value.label for known in catalogue.properties for value in known.values)
    if verbs and any(stem(word) in verbs for label in values for word in label.split()):
        return replace(links, verb=frozenset())
    return links


def plan_written(
    text: str, context: Context, reason: str, refused: Sequence[RefusedText] = ()
) -> QueryPlan:
    """Return the plan of a query that a person or a model wrote, for a ``reason``.

    Raises ``QueryError`` for a text that can't be asked."""
    from tgraph.compute.query_reader import read_query  # loads a parser

    query = read_query(text, catalogue_of(context))
    candidate = CandidateQuery(query, frozenset(), (), (reason,))
    ranked = (RankedQuery(candidate, 1.0),)
    return QueryPlan(QuestionLinks(()), ranked, text=text, refused=tuple(refused))


def compute_plan(
    plan: QueryPlan, context: Context, bounds: EvaluationBounds = BOUNDS
) -> Computation:
    """Return the computation of a question: the result of its likeliest query, if it is likely
    enough."""
    if plan.chosen is None:
        return Computation(plan)
    query = plan.chosen.candidate.query
    plan = plan if plan.text else replace(plan, text=write_query(query, catalogue_of(context)))
    computed = evaluate_query(context.store, query, bounds)
    return Computation(plan, computed, find_witnesses(computed))
