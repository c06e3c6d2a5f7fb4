"""Witnesses: the statements of knowledge that a computed result rests on (why-provenance).

A result *rests on* a statement where it would be another without it. Beside these stand the
statements that were looked at and decide nothing alone: the lesser values that a greatest was
*compared* with, and the rows that were *searched* and are not in the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal as Choice

from pyoxigraph import NamedNode

from tgraph import vocabulary as v
from tgraph.compute.algebra import Commonest, Extreme
from tgraph.compute.evaluation import Computed, Solution, compared_value
from tgraph.index.graph_source import Statement
from tgraph.model import Object

Role = Choice["rests", "contradicts", "compared", "searched"]


@dataclass(frozen=True, slots=True)
class Witness:
    """A statement that a result depends on or was compared with, the role of the statement, and the
    row that the statement describes."""

    statement: Statement
    role: Role
    row: NamedNode

    @property
    def is_edge(self) -> bool:
        """Whether the statement is a relationship, unlike a class or a name."""
        return v.is_statement(self.statement[1])

    @property
    def edge(self) -> str:
        """The IRI of the statement's edge."""
        return v.edge_iri(*self.statement)


def winners(computed: Computed) -> list[Solution]:
    """Return the solutions of an extreme that have its places, equals together, best first."""
    query = computed.query
    assert isinstance(query, Extreme)
    ordered = sorted(computed.solutions, key=lambda s: _order_of(s), reverse=query.is_most)
    values = list(dict.fromkeys(_order_of(solution) for solution in ordered))
    best = set(values[: query.places])
    return [solution for solution in ordered if _order_of(solution) in best]


def decisive_solutions(computed: Computed) -> list[Solution]:
    """Return the solutions that are the result: of an extreme the best, of a commonest value those
    that have it."""
    if isinstance(computed.query, Extreme):
        return winners(computed)
    if not isinstance(computed.query, Commonest):
        return list(computed.solutions)
    rows: defaultdict[Object | None, set[NamedNode]] = defaultdict(set)
    for solution in computed.solutions:
        rows[solution.group].add(solution.row)
    most = max(map(len, rows.values()), default=0)
    return [s for s in computed.solutions if len(rows[s.group]) == most]


def _order_of(solution: Solution) -> tuple[int, object]:
    value = compared_value(_value(solution))
    return (0, value) if not isinstance(value, str) else (1, value)


def _value(solution: Solution) -> Object:
    assert solution.value is not None
    return solution.value


def find_witnesses(computed: Computed) -> tuple[Witness, ...]:
    """Return the witnesses of a result, those that it rests on first; a statement counts once."""
    resting = decisive_solutions(computed)
    kept = {id(solution) for solution in resting}
    others = [s for s in computed.solutions if id(s) not in kept]
    roles: dict[Statement, Witness] = {}
    for witness in (
        *_witnesses_of(resting, "rests"),
        *_witnesses_of(computed.conflicts, "contradicts"),
        *_reopening(computed),
        *_witnesses_of(others, "compared"),
        *_witnesses_of((*computed.excluded, *computed.searched), "searched"),
    ):
        roles.setdefault(witness.statement, witness)
    return tuple(roles.values())


def _witnesses_of(solutions: Iterable[Solution], role: Role) -> Iterator[Witness]:
    for solution in solutions:
        for statement in solution.statements:
            yield Witness(statement, role, solution.row)


def _reopening(computed: Computed) -> Iterator[Witness]:
    """Yield the statements of excluded rows without which the row would change the result: each
    that alone excludes the row, and that nothing else of it rests on."""
    excluding: defaultdict[NamedNode, list[Solution]] = defaultdict(list)
    others: defaultdict[NamedNode, list[Solution]] = defaultdict(list)
    for solution in computed.excluded:
        excluding[solution.row].append(solution)
    for solution in computed.reopening:
        others[solution.row].append(solution)
    for row, solutions in excluding.items():
        alone = set(solutions[0].excluding).intersection(*(s.excluding for s in solutions))
        for statement in sorted(alone, key=str):
            remaining = [s for s in others[row] if statement not in s.statements]
            if remaining and _changes_result(computed, remaining):
                yield Witness(statement, "rests", row)


def _changes_result(computed: Computed, added: Sequence[Solution]) -> bool:
    """Return whether adding a row's solutions changes the result; the result of an extreme changes
    only if the row wins a place or has contradicting values."""
    query = computed.query
    if not isinstance(query, Extreme | Commonest):
        return True
    if isinstance(query, Extreme):
        values = {compared_value(_value(solution)) for solution in added}
        if len(values) > 1:
            return True
    extended = replace(computed, solutions=(*computed.solutions, *added))
    return any(solution in added for solution in decisive_solutions(extended))
