"""Witnesses: the statements of knowledge that a computed result rests on (why-provenance).

A result *rests on* a statement where it would be another without it. Beside these stand the
statements that were looked at and decide nothing alone: the lesser values that a greatest was
*compared* with, and the rows that were *searched* and are not in the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyoxigraph import NamedNode, Quad

from tgraph import vocabulary as v
from tgraph.compute.algebra import ListRows, totalled_path
from tgraph.compute.evaluation import MOST_RECORDED, Computed, evaluate_query
from tgraph.compute.results import (
    Solution,
    compared_value,
    decisive_solutions,
    overturning_statements,
)
from tgraph.index.graph_source import Statement
from tgraph.model import Object, WitnessRole
from tgraph.store.oxigraph import OxigraphStore


@dataclass(frozen=True, slots=True)
class Witness:
    """A statement that a result depends on or was compared with, the role of the statement, and the
    row that the statement describes."""

    statement: Statement
    role: WitnessRole
    row: NamedNode

    @property
    def is_edge(self) -> bool:
        """Whether the statement is a relationship, unlike a class or a name."""
        return v.is_statement(self.statement[1])

    @property
    def item(self) -> str:
        """The IRI of the statement's edge, or of the bearer of a class or a name."""
        return self.edge if self.is_edge else self.row.value

    @property
    def edge(self) -> str:
        """The IRI of the statement's edge."""
        return v.edge_iri(*self.statement)


def compute_without(computed: Computed, left_out: Collection[str]) -> Computed:
    """Return the result without the witnesses of some items: of the query over what the result
    was computed from, less their statements."""
    witnesses = _witnesses_of(_all_solutions(computed), "rests")
    statements = (witness.statement for witness in witnesses if witness.item not in left_out)
    store = OxigraphStore.memory(Quad(*triple, v.KNOWLEDGE_GRAPH) for triple in statements)
    return evaluate_query(store, computed.query)


def _all_solutions(computed: Computed) -> Iterator[Solution]:
    """Yield what a result, and the results that it refers to, were computed from."""
    yield from computed.solutions
    yield from computed.conflicts
    yield from computed.excluded
    yield from computed.reopening
    yield from computed.searched
    yield from computed.whole
    for inner in computed.inner:
        yield from _all_solutions(inner)


_STRENGTH: tuple[WitnessRole, ...] = ("rests", "contradicts", "compared", "searched")


def find_witnesses(computed: Computed) -> tuple[Witness, ...]:
    """Return the witnesses of a result, those that it rests on first; a statement counts once."""
    roles: dict[Statement, Witness] = {}
    for witness in sorted(_all_witnesses(computed), key=lambda w: _STRENGTH.index(w.role)):
        roles.setdefault(witness.statement, witness)
    return tuple(roles.values())


def number_rows(computed: Computed) -> dict[Statement, tuple[int, ...]]:
    """Return the numbers of the recorded result rows that each statement is a witness of."""
    names = ("row", "group", "value") if isinstance(computed.query, ListRows) else ("row", "group")
    numbers: dict[tuple[Object | None, ...], int] = {}
    shared = [name for name in names if any(name in row for row in computed.bindings[:1])]
    for number, binding in enumerate(computed.bindings[:MOST_RECORDED]):
        numbers.setdefault(tuple(binding.get(name) for name in shared), number)
    rows: defaultdict[Statement, dict[int, None]] = defaultdict(dict)
    for solution in computed.solutions:
        row_number = numbers.get(tuple(getattr(solution, name) for name in shared))
        if row_number is not None:
            for statement in solution.statements:
                rows[statement][row_number] = None
    return {statement: tuple(sorted(found_rows)) for statement, found_rows in rows.items()}


def _all_witnesses(computed: Computed) -> Iterator[Witness]:
    """Yield the witnesses of a result and of the results that it refers to."""
    resting = decisive_solutions(computed.query, computed.solutions)
    resting_ids = {id(solution) for solution in resting}
    remaining = [s for s in computed.solutions if id(s) not in resting_ids]
    overturning = overturning_statements(computed.query, computed.solutions)
    yield from _witnesses_of((*resting, *computed.whole), "rests")
    yield from _witnesses_of(computed.conflicts, "contradicts")
    yield from _reopening(computed)
    for witness in _witnesses_of(remaining, "compared"):
        is_decisive = witness.statement in overturning
        yield replace(witness, role="rests") if is_decisive else witness
    yield from _witnesses_of((*computed.excluded, *computed.searched), "searched")
    for inner in computed.inner:
        yield from _all_witnesses(inner)


def _witnesses_of(solutions: Iterable[Solution], role: WitnessRole) -> Iterator[Witness]:
    for solution in solutions:
        for statement in solution.statements:
            yield Witness(statement, role, solution.row)


def _reopening(computed: Computed) -> Iterator[Witness]:
    """Yield the statements of excluded rows without which the row would change the result: each
    that alone excludes the row, and that nothing else of it rests on."""
    excluding: defaultdict[NamedNode, list[Solution]] = defaultdict(list)
    reopening: defaultdict[NamedNode, list[Solution]] = defaultdict(list)
    for solution in computed.excluded:
        excluding[solution.row].append(solution)
    for solution in computed.reopening:
        reopening[solution.row].append(solution)
    for row, solutions in excluding.items():
        alone = set(solutions[0].excluding).intersection(*(s.excluding for s in solutions))
        for statement in sorted(alone, key=str):
            remaining = [s for s in reopening[row] if statement not in s.statements]
            if remaining and _changes_result(computed, remaining):
                yield Witness(statement, "rests", row)


def _changes_result(computed: Computed, added: Sequence[Solution]) -> bool:
    """Return whether adding a row's solutions changes the result: where only winners count, only if
    the row takes part in a place or has contradicting values."""
    query, solutions = computed.query, computed.solutions
    values: defaultdict[Object | None, set[object]] = defaultdict(set)
    for solution in added:
        if totalled_path(query) is not None and solution.value is not None:
            values[solution.group].add(compared_value(solution.value))
    if any(len(group) > 1 for group in values.values()):
        return True
    before = decisive_solutions(query, solutions)
    return decisive_solutions(query, (*solutions, *added)) != before
