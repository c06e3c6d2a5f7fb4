"""The pattern of a written query, understood by the catalogue: a row, the paths that lead from it,
and the conditions that the row meets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import get_args

from pyoxigraph import Literal, NamedNode, Variable

from tgraph import vocabulary as v
from tgraph.compute.algebra import (
    LONGEST_PATH,
    Compares,
    Condition,
    Contains,
    Differs,
    Equals,
    Order,
    Path,
    Rows,
)
from tgraph.compute.query_syntax import (
    Expression,
    Node,
    Operation,
    PatternBlock,
    WrittenTriple,
    refusal,
)
from tgraph.errors import QueryError, nearest_names
from tgraph.index.catalogue import Catalogue, KnownClass, KnownProperty
from tgraph.model import Object

MOST_DIGITS = 30
"""The digits of a number that values are compared with."""

_MIRRORED: dict[str, Order] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_NUMBERS = frozenset(map(v.xsd, ("integer", "decimal", "double", "float")))

_LONGEST_NAME, _MOST_NAMES = 200, 1_000
"""How long a wrong name is, and how many are there, where the nearest are looked for."""


class _Leaf:
    """The end of a path from the row, with the conditions that the value there meets; ``is_used``
    says that a condition or the result speaks of the value."""

    def __init__(self, path: Path, end: Node) -> None:
        self.path = path
        self.end = end
        self.conditions: list[Condition] = []
        self.is_used = False

    def add(self, condition: Condition) -> None:
        self.conditions.append(condition)
        self.is_used = True


class WrittenPattern:
    """A pattern by what the algebra has. ``row`` stands for the members; ``aliases`` are variables
    that stand for an expression."""

    def __init__(self, block: PatternBlock, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._properties = {p.iri: p for p in catalogue.properties}
        self._known_class: KnownClass | None = None
        self._sets: list[tuple[NamedNode, ...]] = []
        self._labels: dict[Variable, Node] = {}
        self._negated: list[PatternBlock] = list(block.minus)
        self._numeric: set[Variable] = set()
        self._leaves: list[_Leaf] = []
        self._inner: set[Node] = set()
        self.aliases: dict[Variable, Expression] = dict(block.binds)
        if block.inner:
            raise refusal("A query stands within the pattern.", "Ask for its result by itself.")
        edges = self._read_structure(block)
        self.row = self._find_row(edges, block)
        self._read_paths(edges)
        self._read_constants()
        for variable, terms in block.values:
            self._read_values(variable, terms)
        for expression in block.filters:
            self._read_filter(expression)

    # --- structure ---

    def _read_structure(self, block: PatternBlock) -> list[WrittenTriple]:
        """Keep the classes and names of the pattern; return the triples of its paths."""
        edges, self._types = [], []
        for triple in block.triples:
            if triple.predicates == (v.RDF_TYPE,):
                self._types.append(triple)
            elif triple.predicates == (v.RDFS_LABEL,):
                self._read_label(triple)
            else:
                edges.append(triple)
        for optional in block.optional:
            labels = [t for t in optional.triples if t.predicates == (v.RDFS_LABEL,)]
            if optional != PatternBlock(triples=tuple(labels)):
                raise refusal(
                    "A pattern can't have optional parts (OPTIONAL).", "Leave OPTIONAL out."
                )
            for triple in labels:
                self._read_label(triple)
        return edges

    def _read_label(self, triple: WrittenTriple) -> None:
        if not isinstance(triple.object, Variable):
            raise refusal(
                "A thing is chosen by its name (rdfs:label).",
                'Write its IRI, or compare the name: FILTER(CONTAINS(LCASE(?name), "...")).',
            )
        self._labels[triple.object] = triple.subject

    def _find_row(self, edges: list[WrittenTriple], block: PatternBlock) -> Node:
        """Return what all paths begin at."""
        ends = {edge.object for edge in edges}
        subjects = [t.subject for t in (*edges, *self._types)] or list(self._labels.values())
        if not subjects:
            subjects = [variable for variable, _ in block.values]
        roots = list(dict.fromkeys(s for s in subjects if s not in ends))
        if len(roots) != 1:
            names = ", ".join(map(str, roots))
            raise refusal(
                f"The pattern speaks of several rows that no path leads to ({names})."
                if roots
                else "The pattern has no row that its paths begin at.",
                "Let all paths begin at one variable.",
            )
        row = roots[0]
        if isinstance(row, NamedNode):
            self._sets.append((row,))
        for triple in self._types:
            self._read_type(triple, row)
        return row

    def _read_type(self, triple: WrittenTriple, row: Node) -> None:
        if triple.subject != row:
            raise refusal(f"{triple.subject} is no row, and has a class.", "Leave the class out.")
        if self._known_class is not None:
            raise refusal("The rows have two classes.", "Leave one out.")
        self._known_class = self._find_class(triple.object)

    def _find_class(self, term: Node) -> KnownClass:
        """Return the class with the IRI of a type or of a table, or called by a word. Of a type
        whose members are the rows of a table it is the table, which is complete."""
        classes = self._catalogue.classes
        if isinstance(term, NamedNode):
            tables = [c for c in classes if c.kind == "table" and c.key == term.value]
            complete = [c for c in classes if c.is_whole_type and c.type == term.value]
            types = [c for c in classes if c.kind == "type" and c.key == term.value]
            if len(tables) > 1:
                raise refusal(f"{term} has several tables.", "List the rows in VALUES.")
            if matching := (*tables, *complete, *types):
                return matching[0]
        elif isinstance(term, Literal):
            for known_class in classes:
                if known_class.kind == "name" and known_class.key == term.value:
                    return known_class
        remedy = _find_nearest(getattr(term, "value", ""), (c.key for c in classes))
        raise refusal(
            f"Knowledge has no class {term}.", remedy or "`tgraph catalogue` lists the classes."
        )

    # --- paths ---

    def _read_paths(self, edges: list[WrittenTriple]) -> None:
        """Keep the ends of the paths from the row, in the order of their triples."""
        by_subject: defaultdict[Node, list[int]] = defaultdict(list)
        for number, edge in enumerate(edges):
            by_subject[edge.subject].append(number)
        waiting: list[tuple[Node, tuple[KnownProperty, ...]]] = [(self.row, ())]
        leaves: dict[int, _Leaf] = {}
        while waiting:
            at, before = waiting.pop()
            for number in by_subject.get(at, ()):
                steps = (*before, *map(self._find_property, edges[number].predicates))
                if len(steps) > LONGEST_PATH:
                    raise refusal(f"A path has more than {LONGEST_PATH} properties.", "Shorten it.")
                end = edges[number].object
                if isinstance(end, Variable) and end in by_subject:
                    self._continue_path(end, len(by_subject[end]))
                    waiting.append((end, steps))
                else:
                    leaves[number] = _Leaf(Path(steps), end)
        self._leaves = [leaves[number] for number in sorted(leaves)]
        if len(leaves) + len(self._inner) < len(edges):
            raise refusal("A path begins at no row.", "Let all paths begin at one variable.")
        variables = [leaf.end for leaf in self._leaves if isinstance(leaf.end, Variable)]
        for variable, times in Counter(variables).items():
            if times > 1:
                raise _refuse_meeting(variable)

    def _read_constants(self) -> None:
        """Add the conditions of the paths that end at a value."""
        for leaf in self._leaves:
            if not isinstance(leaf.end, Variable):
                leaf.add(self._equals(leaf.path, (leaf.end,)))

    def _continue_path(self, end: Variable, ways: int) -> None:
        if end in self._inner or end == self.row:
            raise _refuse_meeting(end)
        if ways > 1:
            raise refusal(f"Two paths go on from {end}.", "Write each path from the row on.")
        self._inner.add(end)

    def _find_property(self, iri: NamedNode) -> KnownProperty:
        own_property = self._properties.get(iri)
        if own_property is None:
            remedy = _find_nearest(iri.value, (iri.value for iri in self._properties))
            raise refusal(
                f"Knowledge has no property {iri}.",
                remedy or "`tgraph catalogue` lists the properties.",
            )
        return own_property

    def _leaf(self, variable: Node) -> _Leaf:
        if variable == self.row:
            raise refusal(
                f"{variable} is the row, where a value is needed.", "Name a property of it."
            )
        if variable in self._inner:
            raise refusal(
                f"{variable} is a step of a path, and something else is asked of it.",
                "Write another path to it, with a variable of its own.",
            )
        for leaf in self._leaves:
            if leaf.end == variable:
                return leaf
        raise refusal(f"No path leads to {variable}.", "Write the triple that it is the value of.")

    def resolve(self, expression: Expression) -> tuple[Node, bool]:
        """Return the variable that an expression stands for, and whether its year is meant."""
        for _ in range(len(self.aliases) + 1):
            if isinstance(expression, Variable) and expression in self.aliases:
                expression = self.aliases[expression]
        if isinstance(expression, Operation) and expression.name == "YEAR":
            return self.resolve(expression.operands[0])[0], True
        if not isinstance(expression, Variable) or expression in self.aliases:
            raise refusal(
                "A computed value stands where a variable is needed.", "Write the variable."
            )
        return expression, False

    def take_path(self, expression: Expression) -> Path:
        """Return the path to a variable that the result shows or groups by."""
        variable, is_year = self.resolve(expression)
        if is_year:
            raise refusal("The result shows a year of a date.", "Show the date.")
        leaf = self._leaf(variable)
        leaf.is_used = True
        return leaf.path

    def take_measure(self, expression: Expression, kinds: Iterable[str]) -> Path:
        """Return the path to values of one of the kinds, which are computed with."""
        variable, is_year = self.resolve(expression)
        leaf = self._leaf(variable)
        if leaf.path.kind not in kinds or (is_year and leaf.path.kind != "year"):
            raise refusal(
                f"The values of “{leaf.path.label}” can't be computed with like this: most are of"
                f" the kind {leaf.path.kind}.",
                f"Choose a property with values of the kind {' or '.join(kinds)}.",
            )
        leaf.is_used = True
        assert isinstance(variable, Variable)
        self._numeric.discard(variable)
        return leaf.path

    def names_row(self, expression: Expression) -> bool:
        """Return whether an expression is the row, or the name of anything."""
        return expression == self.row or expression in self._labels

    # --- conditions ---

    def _read_values(self, variable: Variable, terms: tuple[NamedNode | Literal, ...]) -> None:
        if variable != self.row:
            leaf = self._leaf(variable)
            leaf.add(self._equals(leaf.path, terms))
            return
        rows = tuple(term for term in dict.fromkeys(terms) if isinstance(term, NamedNode))
        if len(rows) < len(set(terms)):
            raise refusal("A row is a literal.", "List the IRIs of rows.")
        self._sets.append(rows)

    def _equals(self, path: Path, values: Iterable[Node]) -> Equals:
        constants = tuple(value for value in values if not isinstance(value, Variable))
        return Equals(path, constants, self._name_values(path, constants))

    def _name_values(self, path: Path, values: Iterable[Object]) -> str:
        names = {value.value: value.label for value in path.last.values}
        return " or ".join(
            names.get(value)
            or (v.local_words(value.value) if isinstance(value, NamedNode) else value.value)
            for value in values
        )

    def _read_filter(self, expression: Expression) -> None:
        if not isinstance(expression, Operation):
            raise refusal("A FILTER has no comparison.", "Compare a value with another.")
        name, operands = expression.name, expression.operands
        if name == "NOT EXISTS":
            assert isinstance(operands[0], PatternBlock)
            self._negated.append(operands[0])
        elif name.upper() == "ISNUMERIC":
            variable, _ = self.resolve(operands[0])
            assert isinstance(variable, Variable)
            self._numeric.add(variable)
        elif name == "IN":
            self._read_choice(operands)
        elif name in get_args(Order):
            self._read_comparison(name, *operands)
        elif name == "CONTAINS":
            self._read_containing(*operands)
        elif name in ("!=", "NOT IN", "!"):
            raise refusal(
                f"A FILTER denies ({name}), which rows with several values meet in spite of it.",
                "Deny with FILTER NOT EXISTS { ... }.",
            )
        else:
            raise refusal(
                f"A FILTER can't have {name}.",
                "Compare by <, <=, >, >=, =, IN or CONTAINS, or deny by NOT EXISTS.",
            )

    def _read_choice(self, operands: tuple[Expression, ...]) -> None:
        chosen, *values = operands
        terms = tuple(value for value in values if isinstance(value, NamedNode | Literal))
        if len(terms) < len(values) or any(map(_is_number, terms)) or not terms:
            raise refusal("IN lists what is no name or text.", "Compare numbers by <=, >= and =.")
        if not isinstance(chosen, Variable):
            raise refusal("IN stands behind what is no variable.", "Write a variable before IN.")
        self._read_values(chosen, terms)

    def _read_comparison(self, sign: str, left: Expression, right: Expression) -> None:
        if isinstance(left, NamedNode | Literal):
            sign, left, right = _MIRRORED[sign], right, left
        if not isinstance(right, NamedNode | Literal):
            raise refusal(
                "Two values are compared with each other.", "Compare with a number or a name."
            )
        if sign == "=" and isinstance(left, Variable) and not _is_number(right):
            self._read_values(left, (right,))
            return
        variable, is_year = self.resolve(left)
        leaf = self._leaf(variable)
        kind = leaf.path.kind
        if is_year != (kind in ("year", "date")) or kind not in ("number", "year", "date"):
            raise refusal(
                f"The values of “{leaf.path.label}” can't be compared so: most are of the kind"
                f" {kind}.",
                "Compare numbers as ?value < 5, years and dates as YEAR(?value) < 1900.",
            )
        order = next(order for order in get_args(Order) if order == sign)
        leaf.add(Compares(leaf.path, order, _read_number(right)))

    def _read_containing(self, left: Expression, right: Expression) -> None:
        compared = _unwrap(_unwrap(left, "LCASE"), "STR")
        text = right.value if isinstance(right, Literal) else ""
        if (
            not isinstance(compared, Variable)
            or left == compared
            or not text
            or text != text.lower()
        ):
            raise refusal(
                "CONTAINS compares texts with their letter case.",
                'Write FILTER(CONTAINS(LCASE(STR(?name)), "words in small letters")).',
            )
        subject = self._labels.get(compared)
        leaf = self._leaf(compared if subject is None else subject)
        if (leaf.path.kind == "entity") != (subject is not None):
            raise refusal(
                f"CONTAINS is of what “{leaf.path.label}” doesn't have.",
                "Of a thing compare the name (rdfs:label), of other values the value itself.",
            )
        leaf.add(Contains(leaf.path, text))

    def _read_negation(self, block: PatternBlock) -> None:
        """Add the condition that a path of the row has none of some values."""
        denial = WrittenPattern(block, self._catalogue)
        if denial.row != self.row or denial._is_more_than_a_condition:
            raise refusal(
                "A negation denies something else than one property of the row.",
                "Write FILTER NOT EXISTS { ?row <property> <value> }.",
            )
        if shared := self._variables & denial._variables - {self.row}:
            raise refusal(
                f"A negation speaks of {min(map(str, shared))}, which stands outside it too.",
                "Give the negation a variable of its own.",
            )
        (denied,) = denial._leaves[0].conditions
        assert isinstance(denied, Equals)
        path = denied.path
        leaves = [leaf for leaf in self._leaves if leaf.path == path]
        for leaf in (*(leaf for leaf in leaves if not leaf.is_used), *leaves):
            leaf.add(Differs(path, denied.values, denied.label))
            return
        raise refusal(
            f"Rows without “{path.label}” would be in the result of the negation.",
            f"Add `?row {' / '.join(str(p.iri) for p in path.properties)} ?value`.",
        )

    @property
    def _is_more_than_a_condition(self) -> bool:
        """Whether the pattern has more than one path with one set of values."""
        if self._known_class or self._sets or self._negated or self._numeric or self.aliases:
            return True
        conditions = [condition for leaf in self._leaves for condition in leaf.conditions]
        return (
            len(self._leaves) != 1 or len(conditions) != 1 or not isinstance(conditions[0], Equals)
        )

    @property
    def _variables(self) -> set[Node]:
        return {self.row, *self._inner, *self._labels, *(leaf.end for leaf in self._leaves)}

    # --- the rows ---

    def find_rows(self, *, named: bool = False) -> Rows:
        """Return the rows of the pattern, once the result has taken its paths; with ``named`` they
        are those that the pattern lists."""
        self._attach_negations()
        if self._numeric:
            raise refusal(
                "isNumeric is of a value that is not computed with.", "Leave isNumeric out."
            )
        known_class, only = self._known_class, None
        for rows in self._sets:
            listed_class = None if known_class or named else self._find_class_of(rows)
            known_class = listed_class or known_class
            if listed_class is None:
                members = frozenset(rows)
                only = rows if only is None else tuple(row for row in only if row in members)
        if only is not None and not only:
            raise refusal("No row is in all lists of rows.", "Leave a list out.")
        for leaf in self._leaves:
            if not leaf.is_used:
                raise refusal(
                    f"Nothing is asked of {leaf.end}, “{leaf.path.label}”.",
                    "Compare it, show it, or leave it out.",
                )
        conditions = tuple(c for leaf in self._leaves for c in leaf.conditions)
        return Rows(known_class, conditions, only or ())

    def _attach_negations(self) -> None:
        while self._negated:
            self._read_negation(self._negated.pop(0))

    def take_leftover(self) -> Path | None:
        """Return the path to a value of which nothing is asked, if there is a single one."""
        self._attach_negations()
        unused = [leaf for leaf in self._leaves if not leaf.is_used]
        if len(unused) != 1:
            return None
        unused[0].is_used = True
        return unused[0].path

    def _find_class_of(self, rows: tuple[NamedNode, ...]) -> KnownClass | None:
        members = frozenset(rows)
        for known_class in self._catalogue.classes:
            if len(known_class.rows) == len(members) and members.issuperset(known_class.rows):
                return known_class
        return None


def _refuse_meeting(variable: Variable) -> QueryError:
    return refusal(f"Two paths lead to {variable}.", "Give each path a variable of its own.")


def _find_nearest(name: str, known: Iterable[str]) -> str:
    return nearest_names(name[:_LONGEST_NAME], islice(known, _MOST_NAMES), most=4)


def iterate_operations(expression: Expression) -> Iterator[Operation]:
    """Yield the operations of an expression."""
    if isinstance(expression, Operation):
        yield expression
        for operand in expression.operands:
            yield from iterate_operations(operand)


def _unwrap(expression: Expression, name: str) -> Expression:
    """Return what a function is called with, where the expression calls it."""
    if isinstance(expression, Operation) and expression.name == name:
        return expression.operands[0]
    return expression


def _is_number(term: Node) -> bool:
    return isinstance(term, Literal) and term.datatype in _NUMBERS


def _read_number(term: NamedNode | Literal) -> Decimal:
    try:
        number = Decimal(term.value) if _is_number(term) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number.adjusted()) > MOST_DIGITS or len(term.value) > 100:
        raise refusal(f"{term} is no number to compare with.", "Write a number, such as 12.5.")
    return number
