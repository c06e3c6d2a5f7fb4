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
from tgraph.compute.algebra import Extreme, ListRows
from tgraph.compute.evaluation import (
    MOST_RECORDED,
    Computed,
    Solution,
    compared_value,
    evaluate_query,
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
    solutions = (
        *computed.solutions,
        *computed.conflicts,
        *computed.excluded,
        *computed.reopening,
        *computed.searched,
    )
    witnesses = _witnesses_of(solutions, "rests")
    statements = (witness.statement for witness in witnesses if witness.item not in left_out)
    store = OxigraphStore.memory(Quad(*triple, v.KNOWLEDGE_GRAPH) for triple in statements)
    return evaluate_query(store, computed.query)


def winners(computed: Computed) -> list[Solution]:
    """Return the solutions of an extreme that have its places, equals together, best first."""
    query = computed.query
    assert isinstance(query, Extreme)
    ordered = sorted(computed.solutions, key=lambda s: _order_of(s), reverse=query.is_most)
    values = list(dict.fromkeys(_order_of(solution) for solution in ordered))
    best = set(values[: query.places])
    return [solution for solution in ordered if _order_of(solution) in best]


def _order_of(solution: Solution) -> tuple[int, object]:
    value = compared_value(_value(solution))
    return (0, value) if not isinstance(value, str) else (1, value)


def _value(solution: Solution) -> Object:
    assert solution.value is not None
    return solution.value


def find_witnesses(computed: Computed) -> tuple[Witness, ...]:
    """Return the witnesses of a result, those that it rests on first; a statement counts once."""
    query = computed.query
    resting = winners(computed) if isinstance(query, Extreme) else computed.solutions
    resting_ids = {id(solution) for solution in resting}
    lesser = [s for s in computed.solutions if id(s) not in resting_ids]
    roles: dict[Statement, Witness] = {}
    for witness in (
        *_witnesses_of(resting, "rests"),
        *_witnesses_of(computed.conflicts, "contradicts"),
        *_reopening(computed),
        *_witnesses_of(lesser, "compared"),
        *_witnesses_of((*computed.excluded, *computed.searched), "searched"),
    ):
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
    """Return whether adding a row's solutions changes the result; the result of an extreme changes
    only if the row wins a place or has contradicting values."""
    query = computed.query
    if not isinstance(query, Extreme):
        return True
    values = {compared_value(_value(solution)) for solution in added}
    if len(values) > 1:
        return True
    extended = replace(computed, solutions=(*computed.solutions, *added))
    return any(solution in added for solution in winners(extended))
