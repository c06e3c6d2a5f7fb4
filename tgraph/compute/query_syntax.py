"""The syntax of a query that a person or a model wrote: parsed by rdflib, as plain values.

Only the form of a text is read here, and within bounds of size and depth; what of it is allowed and
what it means is decided in ``tgraph.compute.query_reader``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import shorten
from typing import Any

from pyoxigraph import Literal, NamedNode, Variable
from rdflib import Literal as ParsedLiteral
from rdflib import URIRef
from rdflib import Variable as ParsedVariable
from rdflib.paths import SequencePath
from rdflib.plugins.sparql.algebra import (
    translatePath,
    translatePName,
    translatePrologue,
    traverse,
)
from rdflib.plugins.sparql.parser import parseQuery
from rdflib.plugins.sparql.parserutils import CompValue

from tgraph import vocabulary as v
from tgraph.errors import QueryError
from tgraph.store.query_guard import check_query, measure_structure, resolve_escapes

LONGEST_TEXT = 1_000_000
"""The characters of a query; most of a long one are the rows of a table."""

DEEPEST = 12
"""How deep the brackets of a query may nest."""

MOST_TOKENS = 1_000
"""Tokens of a query beside strings and IRIs."""

_LONGEST_MESSAGE = 500

Node = NamedNode | Literal | Variable


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or a function of an expression, with its operands; of ``NOT EXISTS`` the operand
    is a block."""

    name: str
    operands: tuple[Expression, ...]
    is_distinct: bool = False


@dataclass(frozen=True, slots=True)
class WrittenTriple:
    """A triple of a pattern; its predicates are those of a path."""

    subject: Node
    predicates: tuple[NamedNode, ...]
    object: Node


@dataclass(frozen=True, slots=True)
class PatternBlock:
    """A group graph pattern by its parts."""

    triples: tuple[WrittenTriple, ...] = ()
    values: tuple[tuple[Variable, tuple[NamedNode | Literal, ...]], ...] = ()
    filters: tuple[Expression, ...] = ()
    binds: tuple[tuple[Variable, Expression], ...] = ()
    minus: tuple[PatternBlock, ...] = ()
    optional: tuple[PatternBlock, ...] = ()
    inner: tuple[WrittenQuery, ...] = ()


Expression = Node | Operation | PatternBlock


@dataclass(frozen=True, slots=True)
class WrittenQuery:
    """A SELECT or ASK query. ``shown`` are its columns, each with the expression behind it, if any;
    ``order`` are expressions, each with whether it descends."""

    is_ask: bool
    block: PatternBlock
    shown: tuple[tuple[Variable, Expression | None], ...] = ()
    groups: tuple[Expression, ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[tuple[Expression, bool], ...] = ()
    limit: int | None = None


def refusal(problem: str, remedy: str = "") -> QueryError:
    """Return the error of a query that computed answers don't allow, of bounded length."""
    return QueryError(*(shorten(text, width=_LONGEST_MESSAGE) for text in (problem, remedy)))


def parse_query(text: str) -> WrittenQuery:
    """Return a query by its parts. Raises ``QueryError`` for what is no query, or one that is not
    allowed whatever it asks."""
    _check_size(text)
    check_query(text)
    try:
        prologue, query = parseQuery(text)
        names = translatePrologue(prologue, None, dict(v.PREFIXES))
        query = traverse(query, visitPost=partial(translatePName, prologue=names))
        query = traverse(query, visitPost=translatePath)
    except RecursionError as error:
        raise refusal("The query is too long to be read.", "Ask for less.") from error
    except Exception as error:  # the parser has no class of its own for a wrong text
        problem = " ".join(str(error).split())[:200]
        message = f"This is no SPARQL query that can be read: {problem.rstrip('.')}."
        raise refusal(message) from error
    return _read_form(query)


def _check_size(text: str) -> None:
    if len(text) > LONGEST_TEXT:
        raise refusal(f"The query has more than {LONGEST_TEXT:,} characters.", "Ask for less.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = "The query has characters that are none (surrogates)."
        raise refusal(problem, "Leave them out.") from error
    if "\\\\u" in text or "\\\\U" in text:  # which the parser takes for an escape
        raise refusal("A backslash before a u can't be read.", "Ask for a part of the text.")
    for spelling in {text, resolve_escapes(text)}:
        depth, tokens = measure_structure(spelling)
        if depth > DEEPEST:
            raise refusal(
                f"The query nests deeper than {DEEPEST} brackets.", "Write it without them."
            )
        if tokens > MOST_TOKENS:
            raise refusal(
                f"The query has more than {MOST_TOKENS:,} words and signs.", "Ask for less."
            )


def _read_form(query: CompValue) -> WrittenQuery:
    if query.name not in ("SelectQuery", "AskQuery", "SubSelect"):
        kind = query.name.removesuffix("Query").upper()
        raise refusal(
            f"A computed answer is a SELECT or an ASK, no {kind}.",
            "`tgraph sparql` runs other queries.",
        )
    if query.datasetClause:
        raise refusal("A query is asked of knowledge alone (FROM).", "Leave FROM out.")
    limits = query.limitoffset
    if limits is not None and limits.offset is not None:
        raise refusal("A query can't leave out its first rows (OFFSET).", "Leave OFFSET out.")
    if query.valuesClause:
        raise refusal("VALUES stands after the pattern.", "Write VALUES into the pattern.")
    return WrittenQuery(
        query.name == "AskQuery",
        _read_block(query.where),
        tuple(_read_columns(query)),
        tuple(map(_read_expression, query.groupby.condition if query.groupby else ())),
        tuple(map(_read_expression, query.having.condition if query.having else ())),
        tuple(_read_order(query)),
        int(limits.limit) if limits is not None and limits.limit is not None else None,
    )


def _read_columns(query: CompValue) -> Iterator[tuple[Variable, Expression | None]]:
    for column in query.projection or ():
        if column.var is not None:
            yield Variable(str(column.var)), None
        else:
            yield Variable(str(column.evar)), _read_expression(column.expr)


def _read_order(query: CompValue) -> Iterator[tuple[Expression, bool]]:
    for condition in query.orderby.condition if query.orderby else ():
        yield _read_expression(condition.expr), condition.order == "DESC"


_NOT_ALLOWED = {
    "GraphGraphPattern": (
        "A computed answer is asked of knowledge alone (GRAPH).",
        "Leave GRAPH out; `tgraph sparql` asks the record.",
    ),
    "ServiceGraphPattern": ("A query may not reach other servers (SERVICE).", "Leave SERVICE out."),
}


def _read_block(group: CompValue) -> PatternBlock:
    if group.name == "SubSelect":
        return PatternBlock(inner=(_read_form(group),))
    parts: dict[str, list[Any]] = {name: [] for name in PatternBlock.__dataclass_fields__}
    for part in group.part or ():
        match part.name:
            case "TriplesBlock":
                parts["triples"] += [t for run in part.triples for t in _read_triples(run)]
            case "InlineData":
                parts["values"] += _read_values(part)
            case "Filter":
                parts["filters"] += _split_conjunction(_read_expression(part.expr))
            case "Bind":
                parts["binds"].append((Variable(str(part.var)), _read_expression(part.expr)))
            case "MinusGraphPattern":
                parts["minus"].append(_read_block(part.graph))
            case "OptionalGraphPattern":
                parts["optional"].append(_read_block(part.graph))
            case "GroupOrUnionGraphPattern":
                _read_nested(part, parts)
            case name:
                raise refusal(*_NOT_ALLOWED.get(name, (f"A pattern can't have {name}.", "")))
    return PatternBlock(**{name: tuple(values) for name, values in parts.items()})


def _read_nested(part: CompValue, parts: dict[str, list[Any]]) -> None:
    """Add the parts of a group within a group."""
    if len(part.graph) > 1:
        raise refusal("A pattern can't have alternatives (UNION).", "Ask for one of them.")
    nested = _read_block(part.graph[0])
    for name, values in parts.items():
        values += getattr(nested, name)


def _read_triples(run: Sequence[Any]) -> Iterator[WrittenTriple]:
    for at in range(0, len(run), 3):
        subject, path, obj = run[at : at + 3]
        yield WrittenTriple(_read_node(subject), tuple(_read_path(path)), _read_node(obj))


def _read_path(path: Any) -> Iterator[NamedNode]:
    if isinstance(path, SequencePath):
        for step in path.args:
            yield from _read_path(step)
    elif isinstance(path, URIRef):
        yield _read_iri(path)
    elif isinstance(path, ParsedVariable):
        raise refusal(f"The property of a pattern is a variable (?{path}).", "Name the property.")
    else:
        raise refusal(
            "A path is a sequence of properties: `*`, `+`, `?`, `|`, `^` and `!` are not allowed.",
            "Write the properties one after the other, with `/` between them.",
        )


def _read_values(part: CompValue) -> Iterator[tuple[Variable, tuple[NamedNode | Literal, ...]]]:
    if len(part.var) != 1:
        raise refusal("VALUES has several variables.", "Write VALUES for each variable.")
    rows = [row[0] if isinstance(row, list) else row for row in part.value]
    if not rows or any(row == "UNDEF" and not isinstance(row, ParsedLiteral) for row in rows):
        raise refusal("VALUES has no value, or UNDEF.", "List the values.")
    yield Variable(str(part.var[0])), tuple(map(_read_constant, rows))


def _read_constant(term: Any) -> NamedNode | Literal:
    node = _read_node(term)
    if isinstance(node, Variable):
        raise refusal(f"{node} stands where a value is needed.")
    return node


def _read_node(term: Any) -> Node:
    if isinstance(term, ParsedVariable):
        return Variable(str(term))
    if isinstance(term, URIRef):
        return _read_iri(term)
    if isinstance(term, ParsedLiteral):
        if term.language:
            return Literal(str(term), language=term.language)
        datatype = _read_iri(term.datatype) if term.datatype else None
        return Literal(str(term), datatype=datatype)
    raise refusal("A blank node, a list or a triple stands in a pattern.", "Write a variable.")


def _read_iri(iri: URIRef) -> NamedNode:
    try:
        return NamedNode(str(iri))
    except ValueError as error:
        remedy = "Write the whole IRI, or declare its PREFIX."
        raise refusal(f"<{iri}> is no absolute IRI.", remedy) from error


# --- expressions ------------------------------------------------------------------------------


def _split_conjunction(expression: Expression) -> list[Expression]:
    if isinstance(expression, Operation) and expression.name == "&&":
        return [part for side in expression.operands for part in _split_conjunction(side)]
    return [expression]


_CHAINS = {"ConditionalOrExpression": "||", "ConditionalAndExpression": "&&"}


def _read_expression(node: Any) -> Expression:
    if not isinstance(node, CompValue):
        return _read_node(node)
    if node.name in _CHAINS:
        operands = [node.expr, *(node.other or ())]
        return _combine(_CHAINS[node.name], operands)
    if node.name == "RelationalExpression":
        if node.op is None:
            return _read_expression(node.expr)
        others = node.other if isinstance(node.other, list) else [node.other]
        return _combine(node.op, [node.expr, *others])
    if node.name in ("AdditiveExpression", "MultiplicativeExpression"):
        return _read_arithmetic(node)
    if node.name.startswith("Unary"):
        return _read_sign(node.name, _read_expression(node.expr))
    return _read_call(node)


def _read_call(node: CompValue) -> Expression:
    if node.name in ("Builtin_NOTEXISTS", "Builtin_EXISTS"):
        name = "NOT EXISTS" if node.name == "Builtin_NOTEXISTS" else "EXISTS"
        return Operation(name, (_read_block(node.graph),))
    if node.name.startswith("Aggregate_"):
        counted = () if node.vars == "*" else (_read_expression(node.vars),)
        name = node.name.removeprefix("Aggregate_").upper()
        return Operation(name, counted, bool(node.distinct))
    if node.name.startswith("Builtin_"):
        arguments = [
            argument
            for key in ("arg", "arg1", "arg2", "arg3")
            if (argument := getattr(node, key)) is not None
        ]
        return _combine(node.name.removeprefix("Builtin_"), arguments)
    raise refusal("The query calls a function that is not allowed.", "Leave it out.")


def _combine(name: str, operands: Sequence[Any]) -> Expression:
    read = tuple(map(_read_expression, operands))
    return read[0] if name in ("||", "&&") and len(read) == 1 else Operation(name, read)


def _read_arithmetic(node: CompValue) -> Expression:
    read = _read_expression(node.expr)
    for sign, other in zip(node.op or (), node.other or (), strict=False):
        read = Operation(str(sign), (read, _read_expression(other)))
    return read


def _read_sign(name: str, expression: Expression) -> Expression:
    if name != "UnaryMinus":
        return expression if name == "UnaryPlus" else Operation("!", (expression,))
    if isinstance(expression, Literal) and expression.value[:1] not in ("-", "+"):
        return Literal(f"-{expression.value}", datatype=expression.datatype)
    raise refusal("A minus stands before what is no number.", "Write the number itself.")
